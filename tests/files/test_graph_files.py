"""Graphs that TensorFlow wrote give here what they gave there (tests/golden/record_files_graphs.py)."""

from __future__ import annotations

import json
import pathlib
import shutil
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import thalweg as tf

FILES = pathlib.Path(__file__).parents[1] / "golden" / "data" / "files"


def recorded(part: str) -> dict[str, list[dict[str, Any]]]:
    """The runs of a part by file; each with its feeds and expected values."""
    result: dict[str, list[dict[str, Any]]] = {}
    with np.load(FILES / f"graphs_{part}.npz") as arrays:
        for n, run in enumerate(json.loads(str(arrays["runs"]))):
            run["feeds"] = {name: arrays[f"{n}_in_{i}"] for i, name in enumerate(run["feeds"])}
            run["values"] = [arrays[f"{n}_out_{i}"] for i in range(len(run["fetches"]))]
            result.setdefault(run["file"], []).append(run)
    return result


FUNCTIONS, FROZEN, META, SAVED_V1, SAVED_V2 = map(
    recorded, ("functions", "frozen", "metagraphs", "saved_v1", "saved_v2")
)


def read_graph(file: str) -> Any:
    graph_def = tf.GraphDef()
    if file.endswith("txt"):
        text_format.Parse((FILES / file).read_text(), graph_def)
    else:
        graph_def.ParseFromString((FILES / file).read_bytes())
    return graph_def


def agree(run: dict[str, Any], got: list[Any]) -> None:
    for name, value, wanted in zip(run["fetches"], got, run["values"], strict=True):
        if wanted.dtype.kind in "SUO":
            assert value == wanted, name
        else:
            assert np.asarray(value).dtype == wanted.dtype, name
            np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6, err_msg=name)


def runs_agree(session: tf.Session, runs: list[dict[str, Any]]) -> None:
    for run in runs:
        agree(run, session.run(run["fetches"], run["feeds"]))


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.mark.parametrize("file", FUNCTIONS)
@pytest.mark.parametrize("compiled", [True, False], ids=["clusters", "op by op"])
def test_functions(file: str, compiled: bool) -> None:
    """Calls, branches and loops whose bodies are functions."""
    config = tf.ConfigProto()
    if not compiled:
        config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.OFF
    tf.import_graph_def(read_graph(file), name="")
    with tf.Session(config=config) as session:
        session.run(FUNCTIONS[file][0]["init"])
        runs_agree(session, FUNCTIONS[file])


@pytest.mark.parametrize("file", FUNCTIONS)
def test_functions_survive_another_export(file: str, graph: tf.Graph) -> None:
    tf.import_graph_def(read_graph(file), name="")
    with tf.Graph().as_default() as other:
        tf.import_graph_def(graph.as_graph_def(), name="")
        assert other.as_graph_def() == graph.as_graph_def()
        with tf.Session() as session:
            session.run(FUNCTIONS[file][0]["init"])
            runs_agree(session, FUNCTIONS[file][:1])


@pytest.mark.parametrize("file", FROZEN)
def test_frozen_graphs(file: str) -> None:
    tf.import_graph_def(read_graph(file), name="")
    with tf.Session() as session:
        runs_agree(session, FROZEN[file])


def test_meta_graph() -> None:
    """A training graph with a loop, a branch, a queue: it goes on where TensorFlow stopped."""
    gradients, item, before, after = META["metagraph.meta"]
    saver = tf.train.import_meta_graph(str(FILES / "metagraph.meta"))
    assert [v.name for v in tf.global_variables()] == [
        "global_step:0", "w:0", "r:0", "parts/part_0:0", "parts/part_1:0",
        "w/Momentum:0", "r/Momentum:0", "parts/part_0/Momentum:0", "parts/part_1/Momentum:0",
    ]  # fmt: skip
    assert [v.name for v in tf.trainable_variables()] == ["w:0", "r:0", "parts/part_0:0", "parts/part_1:0"]
    assert tf.trainable_variables()[0] is tf.global_variables()[1]
    part = tf.trainable_variables()[3]
    assert part._get_save_slice_info().spec == "4 3 2,2:0,3"
    assert tf.get_collection("integers") == [1, 2, 3]
    assert tf.get_collection("numbers") == [0.5]
    assert tf.get_collection("texts") == [b"some text"]
    assert tf.train.get_global_step().name == "global_step:0"
    loss = tf.get_collection("losses")[0]
    assert loss.name == "loss:0"
    with tf.Session() as session:
        saver.restore(session, str(FILES / "metagraph"))
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        assert len(threads) == 2
        x = session.graph.get_tensor_by_name("x:0")
        taken = tf.gradients(loss, [x, *tf.global_variables()[1:3]])
        agree(gradients, session.run(taken, gradients["feeds"]))
        runs_agree(session, [item, before])
        for _ in range(3):
            session.run(tf.get_collection("train_op")[0], after["feeds"])
        runs_agree(session, [after])
        coordinator.request_stop()
        coordinator.join(threads)


def test_meta_graph_in_a_scope() -> None:
    run = META["metagraph.meta"][2]
    saver = tf.train.import_meta_graph(str(FILES / "metagraph.meta"), import_scope="scope", clear_devices=True)
    assert tf.global_variables()[1].name == "scope/w:0"
    with tf.Session() as session:
        saver.restore(session, str(FILES / "metagraph"))
        agree(run, session.run(["scope/loss:0"], {"scope/x:0": run["feeds"]["x:0"]}))


def test_saved_model_of_v1(tmp_path: pathlib.Path) -> None:
    """Tags, signature, asset and main op."""
    shutil.copytree(FILES / "saved_v1", tmp_path / "model")  # wherever it lies
    assert tf.saved_model.contains_saved_model(str(tmp_path / "model"))
    with tf.Session() as session:
        meta_graph = tf.saved_model.load(session, ["serve"], str(tmp_path / "model"))
        signature = meta_graph.signature_def["serving_default"]
        assert signature.method_name == "tensorflow/serving/predict"
        assert tf.saved_model.is_valid_signature(signature)
        (run,) = SAVED_V1["saved_v1"]
        y = session.run("y:0", run["feeds"])
        np.testing.assert_allclose(y, run["values"][0], rtol=1e-6)
        assert (FILES / "saved_v1" / "assets" / "words.txt").read_text() == "one\ntwo\n"
    with tf.Session() as session, pytest.raises(RuntimeError, match=r"\['gpu', 'train'\]"):
        tf.saved_model.load(session, ["train"], str(FILES / "saved_v1"))


def test_simple_save_of_v1() -> None:
    with tf.Session() as session:
        tf.saved_model.loader.load(session, {tf.saved_model.tag_constants.SERVING}, str(FILES / "saved_v1_cnn"))
        runs_agree(session, SAVED_V1["saved_v1_cnn"])


@pytest.mark.parametrize("model", SAVED_V2)
def test_saved_models_of_v2(model: str) -> None:
    predictor = tf.saved_model.predictor.from_saved_model(str(FILES / model))
    for run in SAVED_V2[model]:
        got = predictor(run["feeds"])
        agree(run, [got[name] for name in run["fetches"]])
    if "module" not in model:
        many = np.concatenate([run["feeds"][next(iter(run["feeds"]))]] * 3)
        assert next(iter(predictor({next(iter(run["feeds"])): many}).values())).shape[0] == len(many)
