"""GraphDefs, MetaGraphs and SavedModels for check_files.py: written by thalweg, loaded and run by TensorFlow."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np


def numbers(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape)).reshape(shape) % 7 - 3).astype(np.float32) / 4


X = numbers(2, 3)


def build(tf: Any) -> Any:
    """A training graph with a loop, a branch, a queue, both kinds of variable, slices, and collections."""
    source = tf.train.range_input_producer(5, shuffle=False, name="source")
    tf.identity(source.dequeue(), name="item")
    step = tf.train.create_global_step()
    x = tf.placeholder(tf.float32, [2, 3], "x")
    w = tf.get_variable("w", initializer=tf.constant(numbers(3, 3)))
    r = tf.get_variable("r", initializer=tf.constant(numbers(3)), use_resource=True)
    sliced = tf.fixed_size_partitioner(2)
    parts = tf.get_variable("parts", [4, 3], initializer=tf.ones_initializer(), partitioner=sliced)

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(tf.reduce_mean(a) > 0.1, lambda: tf.matmul(a, w), lambda: a + r)

    y = tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]
    loss = tf.add(tf.reduce_sum(tf.square(y)), tf.reduce_sum(parts), name="loss")
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, step, name="train")
    tf.add_to_collection("train_op", train)
    tf.add_to_collection("losses", loss)
    tf.add_to_collection("texts", "some text")
    for value in (1, 2, 3):
        tf.add_to_collection("integers", value)
    tf.add_to_collection("numbers", 0.5)
    return x, y


def in_session(tf: Any, work: Callable[[Any, Any, Any], None]) -> None:
    """A new graph with `build` in it, initialised, three steps trained."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = build(tf)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for _ in range(3):
            session.run("train", {"x:0": X})
        work(session, x, y)


def write(tf: Any, folder: str) -> None:
    """All kinds of graph files, and numbers.npz: what they give."""
    path = pathlib.Path(folder)

    def work(session: Any, x: Any, y: Any) -> None:
        saver = tf.train.Saver()
        tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
        saver.save(session, f"{folder}/model", write_state=False)
        tf.train.export_meta_graph(f"{folder}/text.meta", as_text=True)
        tf.train.export_meta_graph(f"{folder}/stripped.meta", strip_default_attrs=True, clear_devices=True)
        tf.train.write_graph(session.graph, folder, "graph.pbtxt")
        tf.train.write_graph(session.graph.as_graph_def(add_shapes=True), folder, "graph.pb", as_text=False)
        frozen = tf.graph_util.convert_variables_to_constants(session, session.graph_def, [y.op.name])
        tf.train.write_graph(frozen, folder, "frozen.pb", as_text=False)
        asset = path / "words.txt"
        asset.write_text("one two")
        builder = tf.saved_model.Builder(f"{folder}/saved_model")
        signature = tf.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {"serving_default": signature},
            assets_collection=[tf.constant(str(asset), name="asset")],
            main_op=tf.group(tf.assign_add(tf.train.get_global_step(), 100), name="main"),
        )
        builder.add_meta_graph(["train"], {"serving_default": signature})
        builder.save()
        tf.saved_model.simple_save(session, f"{folder}/simple", {"x": x}, {"y": y})
        values = dict(zip(("y", "loss", "step"), session.run([y, "loss:0", "global_step:0"], {x: X}), strict=True))
        more = [session.run("train", {"x:0": X}) for _ in range(2)]
        values["loss_later"] = session.run("loss:0", {"x:0": X})
        np.savez(path / "numbers.npz", y_name=np.array(y.name), more=len(more), **values)

    in_session(tf, work)
    write_functions(tf, folder)


def read_graph(tf: Any, path: pathlib.Path) -> Any:
    """The GraphDef in a file, binary or text."""
    from google.protobuf import text_format

    graph_def = tf.GraphDef()
    if path.suffix == ".pbtxt":
        text_format.Parse(path.read_text(), graph_def)
    else:
        graph_def.ParseFromString(path.read_bytes())
    return graph_def


def write_functions(tf: Any, folder: str) -> None:
    """TensorFlow's graphs with functions, imported and exported again."""
    for path in sorted((pathlib.Path(__file__).parent / "data" / "files").glob("function_*.pb")):
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(read_graph(tf, path), name="")
            tf.train.write_graph(graph, folder, path.name, as_text=False)


def check_functions(tf: Any, folder: str, near: Any) -> int:
    """Each gives what it gave before it was exported again."""
    data = pathlib.Path(__file__).parent / "data" / "files"
    arrays = np.load(data / "graphs_functions.npz")
    sessions: dict[str, Any] = {}
    for n, run in enumerate(json.loads(str(arrays["runs"]))):
        file = run["file"]
        if file not in sessions:
            graph = tf.Graph()
            sessions[file] = tf.Session(graph=graph)
            with graph.as_default():
                tf.import_graph_def(read_graph(tf, pathlib.Path(folder, file)), name="")
            sessions[file].run(run["init"])
        feeds = {name: arrays[f"{n}_in_{i}"] for i, name in enumerate(run["feeds"])}
        for i, value in enumerate(sessions[file].run(run["fetches"], feeds)):
            near(value, arrays[f"{n}_out_{i}"])
    return len(sessions)


def check(tf: Any, folder: str, other: str) -> str:
    """Loads each file with TensorFlow, and compares what it gives; and the files with TensorFlow's own."""
    write(tf, other)
    ours, theirs = np.load(f"{folder}/numbers.npz"), np.load(f"{other}/numbers.npz")
    near = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5)
    for name in ("y", "loss", "step", "loss_later"):
        near(ours[name], theirs[name])
    y = str(ours["y_name"])
    for file in ("model.meta", "text.meta", "stripped.meta"):
        check_meta_graph(tf, folder, file, ours, near)
    check_collections(tf, folder, other)
    for file in ("graph.pb", "graph.pbtxt", "frozen.pb"):
        graph_def = read_graph(tf, pathlib.Path(folder, file))
        with tf.Graph().as_default(), tf.Session() as session:
            tf.import_graph_def(graph_def, name="")
            if file == "frozen.pb":
                near(session.run(y, {"x:0": X}), ours["y"])
    with tf.Graph().as_default(), tf.Session() as session:
        message = tf.saved_model.load(session, ["serve"], f"{folder}/saved_model")
        info = message.signature_def["serving_default"].outputs["y"]
        near(session.run(info.name, {"x:0": X}), ours["y"])
        assert session.run("global_step:0") == 103, "the main op ran"
    for tags, name in ((["train"], "saved_model"), (["serve"], "simple")):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.saved_model.load(session, tags, f"{folder}/{name}")
            near(session.run([y, "loss:0"], {"x:0": X})[0], ours["y"])
    functions = check_functions(tf, folder, near)
    return (
        f"graphs: 3 GraphDefs, {functions} GraphDefs with functions, 3 MetaGraphs (gradients, training, queues after "
        "import), 3 graphs of SavedModels: same numbers"
    )


def check_meta_graph(tf: Any, folder: str, file: str, ours: Any, near: Any) -> None:
    """Restores, runs, takes gradients through loop and branch, trains on, and reads the queue."""
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{folder}/{file}")
        saver = saver or tf.train.Saver()
        saver.restore(session, f"{folder}/model")
        session.run(tf.local_variables_initializer())
        near(session.run(["loss:0", "global_step:0"], {"x:0": X}), [ours["loss"], ours["step"]])
        loss = tf.get_collection("losses")[0]
        taken = tf.gradients(loss, [tf.global_variables()[1], session.graph.get_tensor_by_name("x:0")])
        assert all(np.isfinite(v).all() for v in session.run(taken, {"x:0": X}))
        for _ in range(int(ours["more"])):
            session.run(tf.get_collection("train_op")[0], {"x:0": X})
        near(session.run("loss:0", {"x:0": X}), ours["loss_later"])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        assert [int(session.run("item:0")) for _ in range(6)] == [0, 1, 2, 3, 4, 0]
        coordinator.request_stop()
        coordinator.join(threads)


def check_collections(tf: Any, folder: str, other: str) -> None:
    """The collections of both MetaGraphs hold the same."""
    from tensorflow.core.framework import variable_pb2
    from tensorflow.core.protobuf import control_flow_pb2, queue_runner_pb2

    kinds = {
        "cond_context": control_flow_pb2.CondContextDef,
        "while_context": control_flow_pb2.WhileContextDef,
        "queue_runners": queue_runner_pb2.QueueRunnerDef,
        "variables": variable_pb2.VariableDef,
        "trainable_variables": variable_pb2.VariableDef,
        "local_variables": variable_pb2.VariableDef,
    }
    both = []
    for where in (folder, other):
        message = tf.MetaGraphDef()
        message.ParseFromString(pathlib.Path(where, "model.meta").read_bytes())
        both.append(message.collection_def)
    ours, theirs = both
    assert sorted(ours) == sorted(theirs), (sorted(ours), sorted(theirs))
    for key in ours:
        if key not in kinds:
            if key != "savers":
                assert ours[key] == theirs[key], key
            continue
        a, b = ([kinds[key].FromString(v) for v in c[key].bytes_list.value] for c in (ours, theirs))
        assert len(a) == len(b), key
        for one, two in zip(a, b, strict=True):
            assert one == two or key.endswith("context"), (key, one, two)
