"""`thalweg graph`: what it says of files of all kinds."""

from __future__ import annotations

import pathlib
import shutil

import pytest
from click.testing import CliRunner

import thalweg as tf
from thalweg.cli.main import main

FILES = pathlib.Path(__file__).parents[1] / "golden" / "data" / "files"


def output(*arguments: object, fails: bool = False) -> str:
    result = CliRunner().invoke(main, ["graph", *map(str, arguments)])
    assert (result.exit_code != 0) == fails, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output


def test_summary_of_a_saved_model() -> None:
    text = output("summary", FILES / "saved_v1")
    assert "saved_model.pb [serve]" in text and "saved_model.pb [train, gpu]" in text
    for line in ("x              float [?, 2]", "w  float [2, 2]  4", "saved_model_main_op  1 in node_list"):
        assert line in text
    assert "signature serving_default tensorflow/serving/predict" in text
    assert "variables (5 elements)" in text


def test_summary_of_functions_and_unknown_ops(tmp_path: pathlib.Path) -> None:
    text = output("summary", FILES / "saved_v2_lstm")
    assert "7 functions" in text and "While" in text and "not built" not in text
    message = tf.GraphDef()
    message.node.add(name="a", op="Frobnicate")
    (tmp_path / "g.pb").write_bytes(message.SerializeToString())
    assert "not built in thalweg: Frobnicate" in output("summary", tmp_path / "g.pb")


@pytest.mark.parametrize("file", ["metagraph.meta", "frozen_loop.pbtxt", "function_calls.pb", "saved_v2_module/saved_model.pb"])
def test_all_kinds_of_files(file: str) -> None:
    assert "inputs" in output("summary", FILES / file)
    assert " = Placeholder()" in output("text", FILES / file)


def test_text_of_functions() -> None:
    text = output("text", FILES / "function_while_v2.pb")
    assert "function while_body_" in text and "  return " in text
    assert "while = StatelessWhile(" in text and "body=while_body_" in text


def test_pictures(tmp_path: pathlib.Path) -> None:
    output("svg", FILES / "metagraph.meta", tmp_path / "g.dot")
    dot = (tmp_path / "g.dot").read_text()
    assert dot.startswith("digraph {") and 'label="while"' in dot and "style=dotted" in dot
    assert "249 nodes are too many" in output("svg", FILES / "metagraph.meta", tmp_path / "g.dot", "--limit", 10, fails=True)
    if shutil.which("dot"):
        output("svg", FILES / "frozen_loop.pbtxt", tmp_path / "g.svg")
        assert "<svg" in (tmp_path / "g.svg").read_text()


def test_without_graphviz(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "graphviz's dot is not installed" in output("svg", FILES / "metagraph.meta", tmp_path / "g.svg", fails=True)


def test_files_that_hold_no_graph(tmp_path: pathlib.Path) -> None:
    (tmp_path / "bad").write_bytes(b"\xff\x00nonsense")
    assert "holds no GraphDef, MetaGraphDef or SavedModel" in output("summary", tmp_path / "bad", fails=True)
    (tmp_path / "empty").write_bytes(b"")
    assert "holds no GraphDef" in output("text", tmp_path / "empty", fails=True)
    assert "holds no saved_model.pb" in output("summary", tmp_path, fails=True)
