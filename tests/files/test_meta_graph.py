"""MetaGraphs: exported and imported here, whole and in part; what is said where one doesn't fit."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from google.protobuf import any_pb2

import thalweg as tf
from thalweg.library import meta_graph
from thalweg.library.proto_functions import prepend_name_scope, strip_name_scope


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def exported(**options: Any) -> Any:
    """What is exported of the default graph, from its bytes."""
    message = tf.MetaGraphDef()
    message.ParseFromString(tf.train.export_meta_graph(**options).SerializeToString())
    return message


def elsewhere(message: Any, **options: Any) -> tuple[tf.Graph, Any]:
    """A new graph with the MetaGraph in it, and its Saver."""
    with tf.Graph().as_default() as graph:
        return graph, tf.train.import_meta_graph(message, **options)


@pytest.mark.parametrize("resource", [False, True])
def test_variables(resource: bool) -> None:
    v = tf.get_variable("v", [2], initializer=tf.ones_initializer(), use_resource=resource)
    local = tf.get_variable("l", [], trainable=False, collections=["local_variables"], use_resource=resource)
    message = exported()
    graph, saver = elsewhere(message)
    assert saver is not None
    with graph.as_default():
        (again,) = tf.global_variables()
        (other,) = tf.local_variables()
        assert type(again) is type(v) and again.name == v.name and again.dtype == v.dtype
        assert again is tf.trainable_variables()[0] and not other.trainable
        assert again.shape == (2,) and again.initial_value.name == v.initial_value.name
        assert again.to_proto() == v.to_proto() and other.to_proto() == local.to_proto()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(again.assign_add([1.0, 2.0]))
            assert session.run(again).tolist() == [2.0, 3.0]
            assert session.run(again.initialized_value()).tolist() == [2.0, 3.0]


def test_a_variable_from_its_definition(graph: tf.Graph) -> None:
    v = tf.get_variable("v", [2])
    assert tf.Variable(variable_def=v.to_proto()).name == "v:0"
    assert tf.Variable.from_proto(v.to_proto()).initializer is v.initializer
    with pytest.raises(ValueError, match="mutually exclusive"):
        tf.Variable(1.0, variable_def=v.to_proto())
    with tf.Graph().as_default(), pytest.raises(KeyError, match="'v/Assign'"):
        tf.Variable.from_proto(v.to_proto())


def test_a_meta_graph_from_before_variables_said_whether_they_are_trainable() -> None:
    tf.get_variable("v", [])
    tf.get_variable("w", [], trainable=False)
    message = exported()
    message.meta_info_def.tensorflow_version = "1.4.0"
    for key in ("variables", "trainable_variables"):
        values = message.collection_def[key].bytes_list.value
        for i, value in enumerate(values):
            proto = type(tf.global_variables()[0].to_proto()).FromString(value)
            proto.ClearField("trainable")
            values[i] = proto.SerializeToString(deterministic=True)
    graph, _ = elsewhere(message)
    with graph.as_default():
        assert [v.trainable for v in tf.global_variables()] == [True, False]
        assert tf.trainable_variables() == tf.global_variables()[:1]


def test_slices_of_a_variable() -> None:
    tf.get_variable("p", [5, 2], partitioner=tf.fixed_size_partitioner(2))
    graph, _ = elsewhere(exported(), import_scope="s")
    with graph.as_default():
        first, second = tf.global_variables()
        assert first.name == "s/p/part_0:0"
        info = second._get_save_slice_info()
        assert (info.full_name, info.spec) == ("s/p", "5 2 3,2:0,2")


def test_queue_runners() -> None:
    queue = tf.FIFOQueue(10, tf.int32, name="q")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(3)] * 2))
    tf.identity(queue.dequeue(), name="item")
    graph, _ = elsewhere(exported(), import_scope="s")
    with graph.as_default(), tf.Session() as session:
        (runner,) = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
        assert runner.name == "s/q" and len(runner.enqueue_ops) == 2
        assert runner.queue_closed_exception_types == (tf.errors.OutOfRangeError,)
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        assert session.run("s/item:0") == 3
        coordinator.request_stop()
        coordinator.join(threads)


def test_gradients_through_imported_loops_and_branches() -> None:
    x = tf.placeholder(tf.float32, [], "x")

    def body(i: Any, a: Any) -> Any:
        inner = lambda: tf.while_loop(lambda j, b: j < 2, lambda j, b: (j + 1, b * x), [0, a])[1]
        return i + 1, tf.cond(a > 2.0, lambda: a + x, inner)

    y = tf.while_loop(lambda i, a: i < 3, body, (0, x), maximum_iterations=10)[1]
    tf.add_to_collection("y", tf.cond(x > 0.0, lambda: y * x, lambda: x))
    message = exported()
    feeds = [-1.0, 0.5, 1.3, 3.0]

    def values(scope: str) -> list[Any]:
        (y,) = tf.get_collection("y")
        x = y.graph.get_tensor_by_name(f"{scope}x:0")
        grad = tf.gradients(y, x)[0]
        with tf.Session() as session:
            return [session.run([y, grad], {x: v}) for v in feeds]

    expected = values("")
    for scope in (None, "s"):
        graph, _ = elsewhere(message, import_scope=scope)
        with graph.as_default():
            if scope is None:
                again = tf.train.export_meta_graph()
                assert again.collection_def["while_context"] == message.collection_def["while_context"]
                assert again.collection_def["cond_context"] == message.collection_def["cond_context"]
            np.testing.assert_allclose(values(f"{scope}/" if scope else ""), expected, rtol=1e-6)


def test_collections_of_all_kinds(graph: tf.Graph, caplog: pytest.LogCaptureFixture) -> None:
    a = tf.constant(1.0, name="a")
    anything = any_pb2.Any(type_url="type.googleapis.com/x", value=b"123")
    for key, value in (("i", 3), ("f", 0.5), ("s", "text"), ("b", b"\xff"), ("t", a), ("o", a.op), ("any", anything)):
        tf.add_to_collection(key, value)
    tf.add_to_collection("unknown", object())
    tf.add_to_collection(("a", "tuple"), 3)
    message = exported()
    assert "unknown" not in message.collection_def
    new, saver = elsewhere(message)
    assert saver is None
    assert [new.get_collection(k) for k in ("i", "f", "s", "b")] == [[3], [0.5], [b"text"], [b"\xff"]]
    assert new.get_collection("t")[0].name == "a:0" and new.get_collection("o")[0].name == "a"
    assert new.get_collection("any") == [anything]
    new, _ = elsewhere(message, import_scope="s", restore_collections_predicate=lambda key: key in "ts")
    assert new.get_collection("t")[0].name == "s/a:0" and new.get_collection("i") == []
    assert list(exported(collection_list=["i"]).collection_def) == ["i"]


def test_a_part_of_a_graph() -> None:
    """What is under a scope, with its inputs from outside to be given again."""
    x = tf.placeholder(tf.float32, [2], "x")
    with tf.variable_scope("model"):
        v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
        tf.add_to_collection("out", tf.multiply(x, v, name="y"))
    with tf.variable_scope("other"):
        tf.get_variable("w", [2])
    message, variables = meta_graph.export_scoped_meta_graph(export_scope="model")
    assert list(variables) == ["v:0"]
    assert sorted(n.name for n in message.graph_def.node if not n.name.startswith("v")) == ["y"]
    assert message.collection_def["unbound_inputs"].bytes_list.value == [b"$unbound_inputs_x"]
    with tf.Graph().as_default() as new:
        with pytest.raises(ValueError, match=r"Graph contains unbound inputs: \$unbound_inputs_x"):
            meta_graph.import_scoped_meta_graph(message)
        given = tf.constant([3.0, 4.0])
        found = meta_graph.import_scoped_meta_graph(
            message, import_scope="copy", input_map={"$unbound_inputs_x": given}
        )
        assert found["v:0"].name == "copy/v:0"
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert session.run("copy/y:0").tolist() == [3.0, 4.0]
        assert new.get_collection("out")[0].name == "copy/y:0"


def test_copies_of_a_part(graph: tf.Graph) -> None:
    with tf.variable_scope("one"):
        tf.get_variable("v", [2])
    assert meta_graph.copy_scoped_meta_graph("one", "two")["v:0"].name == "two/v:0"
    with pytest.raises(ValueError, match="need to be different"):
        meta_graph.copy_scoped_meta_graph("one", "one")


def test_options(tmp_path: pathlib.Path) -> None:
    with tf.device("/cpu:0"):
        tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]), transpose_b=True, name="m")
    path = str(tmp_path / "g.meta")
    message = tf.train.export_meta_graph(path, as_text=True, clear_devices=True, strip_default_attrs=True)
    (m,) = [n for n in message.graph_def.node if n.name == "m"]
    assert m.device == "" and "transpose_a" not in m.attr and m.attr["transpose_b"].b
    assert message.meta_info_def.stripped_default_attrs
    ops = {op.name for op in message.meta_info_def.stripped_op_list.op}
    assert ops == {"MatMul", "Const"}
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(path)
        op = graph.get_operation_by_name("m")
        assert op.get_attr("transpose_b") and not op.get_attr("transpose_a")


def test_attributes_that_only_the_producer_knows() -> None:
    """Dropped where they have its default."""
    tf.identity(1.0, name="y")
    message = exported()
    (op,) = [op for op in message.meta_info_def.stripped_op_list.op if op.name == "Identity"]
    op.attr.add(name="newer", type="int").default_value.i = 7
    (node,) = [n for n in message.graph_def.node if n.name == "y"]
    node.attr["newer"].i = 7
    graph, _ = elsewhere(message)
    with pytest.raises(ValueError, match="newer"):
        graph.get_operation_by_name("y").get_attr("newer")


def test_bad_files(tmp_path: pathlib.Path) -> None:
    with pytest.raises(OSError, match=r"nothing\.meta does not exist"):
        tf.train.import_meta_graph(str(tmp_path / "nothing.meta"))
    path = tmp_path / "bad.meta"
    path.write_bytes(b"\xff\xffnonsense")
    with pytest.raises(OSError, match=r"Cannot parse file .*bad\.meta"):
        tf.train.import_meta_graph(str(path))


def test_wrong_arguments(graph: tf.Graph) -> None:
    for options in ({"graph": 3}, {"graph_def": 3}, {"meta_info_def": 3}):
        with pytest.raises(TypeError, match="must be of type"):
            meta_graph.create_meta_graph_def(**options)
    with pytest.raises(TypeError, match="to_proto must be callable"):
        meta_graph_register("c", None, 3)


def meta_graph_register(*args: Any) -> None:
    from thalweg.library.proto_functions import register_proto_function

    register_proto_function(*args)


@pytest.mark.parametrize(
    ("name", "scope", "stripped"),
    [("a/b", "a", "b"), ("^a/b", "a", "^b"), ("loc:@a/b", "a/", "loc:@b"), ("ab/c", "a", "ab/c"), ("b", None, "b")],
)
def test_names_in_scopes(name: str, scope: str | None, stripped: str) -> None:
    assert strip_name_scope(name, scope) == stripped
    if scope and stripped != name:
        assert prepend_name_scope(stripped, scope) == name
