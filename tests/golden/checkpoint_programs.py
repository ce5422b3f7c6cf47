"""Programs whose Savers' nodes are compared with TensorFlow's. Each builds a graph with `tf`."""

from __future__ import annotations

from typing import Any


def _variables(tf: Any, use_resource: bool = False) -> list[Any]:
    with tf.variable_scope("net", use_resource=use_resource):
        return [
            tf.get_variable("kernel", initializer=[[1.0, 2.0], [3.0, 4.0]]),
            tf.get_variable("bias", initializer=[1.0]),
            tf.get_variable("count", initializer=3, trainable=False),
        ]


def plain(tf: Any) -> None:
    _variables(tf)
    tf.train.Saver()


def resources(tf: Any) -> None:
    _variables(tf, use_resource=True)
    tf.train.Saver()


def by_names(tf: Any) -> None:
    kernel, bias, _ = _variables(tf)
    tf.train.Saver({"old/k": kernel, "b": bias})


def two_savers(tf: Any) -> None:
    variables = _variables(tf)
    tf.train.Saver(variables[:1])
    tf.train.Saver(variables, name="mine", filename="/somewhere/model")


def reshaped(tf: Any) -> None:
    _variables(tf)
    tf.train.Saver(reshape=True)


def reshaped_resources(tf: Any) -> None:
    _variables(tf, use_resource=True)
    tf.train.Saver(reshape=True, restore_sequentially=True)


def partitioned(tf: Any) -> None:
    tf.get_variable("table", [5, 2], initializer=tf.zeros_initializer(), partitioner=tf.fixed_size_partitioner(2))
    tf.get_variable("bias", [2], initializer=tf.zeros_initializer())
    tf.train.Saver()


def partitioned_by_name(tf: Any) -> None:
    table = tf.get_variable(
        "table", [5, 2], initializer=tf.zeros_initializer(), partitioner=tf.fixed_size_partitioner(2)
    )
    tf.train.Saver({"whole": table})


def one_by_one(tf: Any) -> None:
    """A builder of the program's own: the base class restores each variable by a node of its own."""
    from_tf = getattr(tf, "BaseSaverBuilder", None)
    _variables(tf)
    tf.train.Saver(builder=from_tf())


def on_devices(tf: Any) -> None:
    with tf.device("/cpu:0"):
        tf.get_variable("a", initializer=[1.0])
    with tf.device("/job:ps/task:1/device:GPU:0"):
        tf.get_variable("b", initializer=[1.0])
    tf.train.Saver()


def sharded(tf: Any) -> None:
    with tf.device("/cpu:0"):
        tf.get_variable("a", initializer=[1.0])
        tf.get_variable("c", initializer=[1.0], use_resource=True)
    with tf.device("/cpu:1"):
        tf.get_variable("b", initializer=[1.0])
    tf.train.Saver(sharded=True)


def version_1(tf: Any) -> None:
    _variables(tf)
    tf.train.Saver(write_version=tf.train.SaverDef.V1)


def sharded_version_1(tf: Any) -> None:
    _variables(tf)
    with tf.device("/cpu:1"):
        tf.get_variable("b", initializer=[1.0])
    tf.train.Saver(write_version=tf.train.SaverDef.V1, sharded=True)


def initialised_from(tf: Any) -> None:
    """init_from_checkpoint, by names, scopes and for partitioned variables."""
    with tf.variable_scope("new"):
        whole = tf.get_variable("a", [3, 4], dtype=tf.float64)
        tf.get_variable("float64", [3, 4], dtype=tf.float64, use_resource=True)
    with tf.variable_scope("parts"):
        tf.get_variable("t", [10, 6], partitioner=tf.fixed_size_partitioner(2))
    path = "tests/golden/data/files/checkpoints/v2"
    tf.train.init_from_checkpoint(path, {"types/float64": whole, "rows": "parts/t"})
    with tf.variable_scope("other"):
        tf.get_variable("float32", [3, 4])
    tf.train.init_from_checkpoint(path, {"types/": "other/"})


PROGRAMS = {
    f.__name__: f
    for f in (
        plain,
        resources,
        by_names,
        two_savers,
        reshaped,
        reshaped_resources,
        partitioned,
        partitioned_by_name,
        one_by_one,
        on_devices,
        sharded,
        version_1,
        sharded_version_1,
        initialised_from,
    )
}
