"""Graph files made by TensorFlow, with what they give. Run with an interpreter that has TensorFlow and Keras:

    python tests/golden/record_files_graphs.py [part ...]

Writes tests/golden/data/files/: frozen graphs, MetaGraphs, SavedModels in the manner of TensorFlow 1.x and of
TensorFlow 2, and graphs_<part>.npz with the inputs and outputs of each.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf2

tf = tf2.compat.v1
FILES = pathlib.Path(__file__).parent / "data" / "files"
RNG = np.random.RandomState(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


class Recorded:
    """Runs of named fetches under feeds, as one .npz file."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.runs: list[dict[str, Any]] = []

    def run(self, file: str, session: Any, fetches: list[str], feeds: dict[str, Any], **more: Any) -> None:
        """Records one run; runs of one file follow each other in one session."""
        values = session.run(fetches, feeds)
        self.add(file, fetches, feeds, values, **more)

    def add(self, file: str, fetches: list[str], feeds: dict[str, Any], values: list[Any], **more: Any) -> None:
        n = len(self.runs)
        for i, v in enumerate(values):
            self.arrays[f"{n}_out_{i}"] = np.asarray(v)
        for i, v in enumerate(feeds.values()):
            self.arrays[f"{n}_in_{i}"] = np.asarray(v)
        self.runs.append({"file": file, "fetches": list(fetches), "feeds": list(feeds), **more})

    def write(self, part: str) -> None:
        np.savez_compressed(FILES / f"graphs_{part}.npz", runs=np.array(json.dumps(self.runs)), **self.arrays)


def in_graph(v2: bool = False) -> Any:
    """A new default graph; v2: control flow as functions."""
    (tf.enable_control_flow_v2 if v2 else tf.disable_control_flow_v2)()
    return tf.Graph().as_default()


# ---- GraphDefs with functions ----------------------------------------------------------------------------


def cond_v2() -> tuple[list[Any], list[dict[str, Any]]]:
    x = tf.placeholder(tf.float32, [], "x")
    v = tf.get_variable("v", [], initializer=tf.constant_initializer(2.0), use_resource=True)
    y = tf.cond(x > 1.0, lambda: v.assign_add(x), lambda: v.assign_sub(x))
    with tf.control_dependencies([y]):
        return [tf.cond(x > 1.0, lambda: x * v, lambda: x - v)], [{"x:0": 3.0}, {"x:0": 0.5}, {"x:0": 0.25}]


def while_v2() -> tuple[list[Any], list[dict[str, Any]]]:
    x = tf.placeholder(tf.float32, [None, 2], "x")
    w = tf.constant([[0.5, 0.1], [0.2, 0.3]])
    free = [tf.TensorShape([]), tf.TensorShape([None, 2])]
    i, y = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.matmul(y, w) + 1.0), [0, x], free)
    return [i, y], [{"x:0": floats(3, 2)}, {"x:0": floats(1, 2)}]


def lists() -> tuple[list[Any], list[dict[str, Any]]]:
    x = tf.placeholder(tf.float32, [4, None], "x")
    return [
        tf.scan(lambda a, b: a * 0.5 + b, x),
        tf.map_fn(lambda r: tf.reduce_sum(r) * 2.0, x),
    ], [{"x:0": floats(4, 3)}]


def nested() -> tuple[list[Any], list[dict[str, Any]]]:
    x = tf.placeholder(tf.float32, [], "x")

    def body(i: Any, a: Any) -> Any:
        inner = lambda: tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b + 1.5), [0, a])[1]
        return i + 1, tf.cond(tf.equal(i % 2, 0), inner, lambda: a * 2.0)

    return [tf.while_loop(lambda i, a: i < 6, body, [0, x])[1]], [{"x:0": 1.0}, {"x:0": -2.0}]


def switch_case() -> tuple[list[Any], list[dict[str, Any]]]:
    x = tf.placeholder(tf.int32, [], "x")
    ten, twenty = lambda: tf.constant(10.0), lambda: tf.constant(20.0)
    y = tf.switch_case(x, [ten, twenty, lambda: tf.cast(x, tf.float32)])
    return [y], [{"x:0": np.int32(i)} for i in (-1, 0, 1, 2, 7)]


def calls() -> tuple[list[Any], list[dict[str, Any]]]:
    """Calls in calls; what they change is seen by who waits for them."""
    x = tf.placeholder(tf.float32, [3], "x")
    n = tf.get_variable("n", [], tf.int32, initializer=tf.constant_initializer(0), use_resource=True)

    @tf2.function
    def inner(a: Any) -> Any:
        n.assign_add(1)
        return a * 2.0, tf.reduce_sum(a)

    @tf2.function
    def outer(a: Any) -> Any:
        b, c = inner(a)
        return inner(b + c)

    a, b = outer(x)
    with tf.control_dependencies([a]):
        count = n.read_value()
    return [a, b, count], [{"x:0": floats(3)}, {"x:0": floats(3)}]


def early_exit() -> tuple[list[Any], list[dict[str, Any]]]:
    """What autograph makes of while, if and break."""
    x = tf.placeholder(tf.float32, [], "x")

    @tf2.function
    def walk(x: Any) -> Any:
        s, i = tf.constant(0.0), tf.constant(0)
        while i < 10:
            if x > 5.0:
                x = x - 3.0
            else:
                x = x + 2.0
            s += x
            i += 1
            if s > 40.0:
                break
        return s

    return [walk(x)], [{"x:0": 1.0}, {"x:0": 100.0}]


def gradient_of_loop() -> tuple[list[Any], list[dict[str, Any]]]:
    """A gradient that TensorFlow built through a loop: lists as stacks."""
    x = tf.placeholder(tf.float32, [3], "x")
    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * a), [0, x])[1]
    return [y, tf.gradients(y, x)[0]], [{"x:0": floats(3)}]


def defun() -> tuple[list[Any], list[dict[str, Any]]]:
    """Functions of TensorFlow 1.x: nodes of their names, and SymbolicGradient."""
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, tf.float32, func_name="Inner")
    def inner(a: Any, b: Any) -> Any:
        return tf.tanh(a * b), a + b

    @function.Defun(tf.float32, tf.float32, func_name="Outer")
    def outer(a: Any, b: Any) -> Any:
        u, v = inner(a, b * 2.0)
        return u * v

    x, w = tf.placeholder(tf.float32, [3], "x"), tf.placeholder(tf.float32, [3], "w")
    y = outer(x, w)
    feed = {"x:0": floats(3), "w:0": floats(3)}
    return [y, *tf.gradients(y * y, [x, w])], [feed]


def loop_in_a_function() -> tuple[list[Any], list[dict[str, Any]]]:
    """Nodes of control flow (Enter, Switch, Merge ...) inside a function, called from a branch."""
    from tensorflow.python.framework import function

    tf.disable_control_flow_v2()

    @function.Defun(tf.float32, func_name="Powers")
    def powers(a: Any) -> Any:
        step = lambda i, b: (i + 1, tf.cond(tf.reduce_sum(b) > 1.0, lambda: b * 0.5, lambda: b * a + 1.0))
        return tf.while_loop(lambda i, b: i < 4, step, [0, a])[1]

    x = tf.placeholder(tf.float32, [3], "x")
    y = tf.cond(x[0] > 0.0, lambda: powers(x), lambda: powers(x * 2.0) - 1.0)
    z = tf.while_loop(lambda i, b: i < 2, lambda i, b: (i + 1, tf.ensure_shape(powers(b), [3])), [0, x])[1]
    return [y, powers(x + 1.0), z], [{"x:0": floats(3)}, {"x:0": -np.abs(floats(3))}, {"x:0": np.abs(floats(3))}]


def functions() -> None:
    """GraphDefs that call functions."""
    recorded = Recorded()
    for build in (cond_v2, while_v2, lists, nested, switch_case, calls, early_exit, gradient_of_loop, defun,
                  loop_in_a_function):  # fmt: skip
        with in_graph(v2=True) as graph:
            fetches, feeds = build()
            init = tf.global_variables_initializer()
            file = f"function_{build.__name__}.pb"
            (FILES / file).write_bytes(graph.as_graph_def(add_shapes=True).SerializeToString())
            with tf.Session() as session:
                session.run(init)
                for feed in feeds:
                    recorded.run(file, session, [t.name for t in fetches], feed, init=init.name)
    recorded.write("functions")


# ---- frozen graphs ---------------------------------------------------------------------------------------


def small_cnn(x: Any, resource: bool) -> Any:
    with tf.variable_scope("cnn", use_resource=resource):
        w = tf.get_variable("w", [3, 3, 1, 4], initializer=tf.constant_initializer(floats(3, 3, 1, 4)))
        b = tf.get_variable("b", [4], initializer=tf.constant_initializer(floats(4)))
        y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), b))
        y = tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        v = tf.get_variable("v", [64, 3], initializer=tf.constant_initializer(floats(64, 3)))
        return tf.nn.softmax(tf.matmul(tf.reshape(y, [-1, 64]), v), name="probabilities")


def loop_and_cond(x: Any) -> Any:
    w = tf.get_variable("loop_w", [3, 3], initializer=tf.constant_initializer(floats(3, 3)), use_resource=True)
    table = tf.get_variable("table", [5, 3], initializer=tf.constant_initializer(floats(5, 3)), use_resource=True)

    def body(i: Any, a: Any) -> Any:
        rows = tf.gather(table.read_value(), [i])
        return i + 1, tf.cond(tf.reduce_sum(a) > 0.0, lambda: tf.tanh(tf.matmul(a, w)), lambda: a + rows)

    return tf.while_loop(lambda i, a: i < 4, body, [0, x])[1]


def frozen() -> None:
    """Frozen graphs: a small CNN over both kinds of variable; variables in loops and branches."""
    recorded = Recorded()
    for resource in (False, True):
        with in_graph():
            tf.set_random_seed(1)
            x = tf.placeholder(tf.float32, [None, 8, 8, 1], "x")
            y = small_cnn(x, resource)
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                graph_def = tf.graph_util.convert_variables_to_constants(
                    session, session.graph_def, ["cnn/probabilities"]
                )
                file = f"frozen_cnn_{'resource' if resource else 'ref'}.pb"
                (FILES / file).write_bytes(graph_def.SerializeToString())
                recorded.run(file, session, [y.name], {"x:0": floats(2, 8, 8, 1)})
    with in_graph():
        x = tf.placeholder(tf.float32, [1, 3], "x")
        y = tf.identity(loop_and_cond(x), name="y")
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            graph_def = tf.graph_util.convert_variables_to_constants(session, session.graph_def, ["y"])
            (FILES / "frozen_loop.pbtxt").write_text(str(graph_def))
            for value in (floats(1, 3), np.ones((1, 3), np.float32)):
                recorded.run("frozen_loop.pbtxt", session, ["y:0"], {"x:0": value})
    recorded.write("frozen")


# ---- MetaGraphs ------------------------------------------------------------------------------------------


def metagraphs() -> None:
    """A training graph with a loop, a branch and a queue, and all kinds of collections."""
    recorded = Recorded()
    with in_graph():
        tf.set_random_seed(3)
        step = tf.train.create_global_step()
        source = tf.train.range_input_producer(5, shuffle=False, name="source")
        item = tf.identity(source.dequeue(), name="item")
        x = tf.placeholder(tf.float32, [2, 3], "x")
        w = tf.get_variable("w", [3, 3], initializer=tf.constant_initializer(floats(3, 3)))
        r = tf.get_variable("r", [3], initializer=tf.constant_initializer(floats(3)), use_resource=True)
        parts = tf.get_variable(
            "parts", [4, 3], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(2)
        )

        def body(i: Any, a: Any) -> Any:
            a = tf.cond(tf.reduce_mean(a) > 0.1, lambda: tf.matmul(a, w), lambda: a + r)
            return i + 1, a

        y = tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]
        loss = tf.add(tf.reduce_sum(tf.square(y)), tf.reduce_sum(parts), name="loss")
        tf.add_to_collection("losses", loss)
        train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, step, name="train")
        tf.add_to_collection("train_op", train)
        for value in (1, 2, 3):
            tf.add_to_collection("integers", value)
        tf.add_to_collection("numbers", 0.5)
        tf.add_to_collection("texts", "some text")
        init = tf.global_variables_initializer()
        saver = tf.train.Saver()
        tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
        with tf.Session() as session:
            session.run([init, tf.local_variables_initializer()])
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            saver.save(session, str(FILES / "metagraph"), write_state=False, write_meta_graph=False)
            (FILES / "metagraph.meta").write_bytes(saver.export_meta_graph().SerializeToString())
            feed = {"x:0": floats(2, 3)}
            gradients = tf.gradients(loss, [x, w, tf.global_variables()[2]])
            names = [tf.convert_to_tensor(g) for g in gradients]
            values = session.run(names, feed)
            recorded.add("metagraph.meta", ["x:0", "w", "r"], feed, values, what="gradients of loss")
            recorded.run("metagraph.meta", session, ["item:0"], {})
            recorded.run("metagraph.meta", session, ["loss:0"], feed)
            for _ in range(3):
                session.run("train", feed)
            recorded.run("metagraph.meta", session, ["loss:0", "w:0", "global_step:0"], feed, what="after 3 steps")
            coordinator.request_stop()
            coordinator.join(threads)
    recorded.write("metagraphs")


# ---- SavedModels -----------------------------------------------------------------------------------------


def fresh(name: str) -> str:
    path = FILES / name
    shutil.rmtree(path, ignore_errors=True)
    return str(path)


def saved_v1() -> None:
    """SavedModels of TensorFlow 1.x: two sets of tags, an asset, a main op; and simple_save."""
    recorded = Recorded()
    with in_graph():
        x = tf.placeholder(tf.float32, [None, 2], "x")
        w = tf.get_variable("w", [2, 2], initializer=tf.constant_initializer(floats(2, 2)))
        s = tf.get_variable("s", [], initializer=tf.zeros_initializer(), collections=["local_variables"])
        os.chdir(FILES)  # the path of the asset goes into the file
        asset_file = pathlib.Path("words.txt")
        asset_file.write_text("one\ntwo\n")
        asset = tf.constant(str(asset_file), name="asset")
        tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, asset)
        text = tf.read_file(asset, name="text")
        y = tf.add(tf.matmul(x, w), s, name="y")
        main = tf.group(tf.assign(s, 5.0), name="main")
        signature = tf.saved_model.predict_signature_def({"x": x}, {"y": y, "text": text})
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            builder = tf.saved_model.Builder(fresh("saved_v1"))
            builder.add_meta_graph_and_variables(
                session,
                ["serve"],
                {"serving_default": signature},
                assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
                main_op=main,
                strip_default_attrs=True,
            )
            builder.add_meta_graph(["train", "gpu"], {"serving_default": signature})
            builder.save()
            session.run(main)
            feed = {"x:0": floats(3, 2)}
            recorded.run("saved_v1", session, [y.name, text.name], feed, signature={"x": x.name, "y": y.name})
        asset_file.unlink()
    with in_graph():
        x = tf.placeholder(tf.float32, [None, 8, 8, 1], "x")
        y = small_cnn(x, resource=True)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            tf.saved_model.simple_save(session, fresh("saved_v1_cnn"), {"x": x}, {"y": y})
            recorded.run("saved_v1_cnn", session, [y.name], {"x:0": floats(2, 8, 8, 1)})
    recorded.write("saved_v1")


def module() -> Any:
    class Counted(tf2.Module):
        """Loops and branches in functions, and a variable that calls count in."""

        def __init__(self) -> None:
            super().__init__()
            self.w = tf2.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
            self.n = tf2.Variable(0, name="n")

        @tf2.function(input_signature=[tf2.TensorSpec([None, 2], tf2.float32)])
        def __call__(self, x: Any) -> Any:
            self.n.assign_add(1)
            i = tf2.constant(0)
            while i < 3:
                x = x @ self.w
                if tf2.reduce_sum(x) > 100.0:
                    x = x / 10.0
                i += 1
            return {"y": x, "n": self.n.read_value()}

    return Counted()


def saved_v2() -> None:
    """SavedModels of TensorFlow 2: a module, and Keras models as Model.export writes them."""
    import keras

    keras.utils.set_random_seed(0)
    layers = keras.layers
    models = {
        "dense": (
            [layers.Input((4,)), layers.Dense(8, "relu"), layers.Dropout(0.2), layers.Dense(3, "softmax")],
            floats(3, 4),
        ),
        "conv": (
            [
                layers.Input((8, 8, 1)),
                layers.Conv2D(4, 3, padding="same"),
                layers.BatchNormalization(),
                layers.ReLU(),
                layers.MaxPooling2D(),
                layers.DepthwiseConv2D(3),
                layers.GlobalAveragePooling2D(),
                layers.Dense(2),
            ],
            floats(2, 8, 8, 1),
        ),
        "lstm": (
            [
                layers.Input((5,), dtype="int32"),
                layers.Embedding(10, 4),
                layers.LSTM(6),
                layers.Dense(2, "sigmoid"),
            ],
            RNG.randint(0, 10, (3, 5)).astype(np.int32),
        ),
    }
    recorded = Recorded()
    for name, (parts, x) in models.items():
        model = keras.Sequential(parts)
        path = fresh(f"saved_v2_{name}")
        model.export(path, verbose=False)
        signature = tf2.saved_model.load(path).signatures["serving_default"]
        (given,) = signature.structured_input_signature[1]
        result = signature(**{given: tf2.constant(x)})
        recorded.add(
            f"saved_v2_{name}", list(result), {given: x}, [v.numpy() for v in result.values()], what="signature"
        )
    counted = module()
    path = fresh("saved_v2_module")
    tf2.saved_model.save(counted, path, signatures=counted.__call__)
    signature = tf2.saved_model.load(path).signatures["serving_default"]
    for x in (floats(3, 2), floats(1, 2) * 20):
        result = signature(x=tf2.constant(x))
        names = sorted(result)
        recorded.add("saved_v2_module", names, {"x": x}, [result[n].numpy() for n in names], what="signature")
    for path in FILES.glob("saved_v2_*"):
        (path / "fingerprint.pb").unlink(missing_ok=True)
        (path / "assets").rmdir()
    recorded.write("saved_v2")


PARTS: dict[str, Callable[[], None]] = {
    "functions": functions,
    "frozen": frozen,
    "metagraphs": metagraphs,
    "saved_v1": saved_v1,
    "saved_v2": saved_v2,
}


def main(parts: list[str]) -> None:
    FILES.mkdir(parents=True, exist_ok=True)
    eager = [p for p in parts if p == "saved_v2"]
    for part in eager:  # before eager execution is switched off
        PARTS[part]()
    if eager != parts:
        tf.disable_eager_execution()
        tf.disable_resource_variables()
    for part in parts:
        if part not in eager:
            PARTS[part]()


if __name__ == "__main__":
    main(sys.argv[1:] or list(PARTS))
