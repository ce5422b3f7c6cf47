"""`thalweg place`: a graph's placement from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from google.protobuf import text_format

import thalweg as tf
from thalweg.cli.main import main

CLUSTER = {
    "devices": [{"name": "/job:w/task:{0..1}/cpu:0"}, {"name": "/job:w/task:{0..1}/gpu:{0..1}"}],
    "same_task": {"latency": 1e-5, "bandwidth": 1e10},
    "other_task": {"latency": 1e-4, "bandwidth": 1e9},
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2000, 2000], name="x")
        y = tf.matmul(x, x, name="product")
        with tf.device("/job:w/task:1/cpu:0"):
            tf.reduce_sum(y, name="total")
    (tmp_path / "g.pb").write_bytes(graph.as_graph_def().SerializeToString())
    (tmp_path / "g.pbtxt").write_text(text_format.MessageToString(graph.as_graph_def()))
    (tmp_path / "c.json").write_text(json.dumps(CLUSTER))
    return tmp_path


def run(*args: Any) -> Any:
    return CliRunner().invoke(main, ["place", *map(str, args)])


def test_it_prints_the_placement_and_writes_files(files: Path) -> None:
    result = run(
        files / "g.pb", "--cluster", files / "c.json", "--fetch", "total",
        "--json", files / "out.json", "--svg", files / "out.svg",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "predicted" in result.output and "asked for: /job:w/task:1/device:CPU:0" in result.output
    data = json.loads((files / "out.json").read_text())
    where = {row["name"]: row["device"] for row in data["nodes"]}
    assert where["total"] == "/job:w/replica:0/task:1/device:CPU:0"
    assert "/device:GPU:" in where["product"]
    assert (files / "out.svg").read_text().startswith("<svg")


def test_text_graphs_and_all_sinks(files: Path) -> None:
    result = run(files / "g.pbtxt", "--cluster", files / "c.json", "--nodes", 5)
    assert result.exit_code == 0, result.output
    assert "product" in result.output


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["g.pb"], "explicitly assigned to /job:w/task:1/device:CPU:0"),
        (["g.pb", "--cluster", "c.json", "--fetch", "nobody"], "nobody"),
        (["c.json"], "not a GraphDef"),
        (["g.pb", "--cluster", "g.pbtxt"], "not JSON"),
        (["g.pb", "--cluster", "c.json", "--costs", "c.json"], "a cost model is"),
        (["g.pb", "--cluster", "g.pb"], "the cluster description is not JSON"),
        (["g.pb", "--cluster", "c.json", "--json", "nowhere/out.json"], "No such file"),
        (["nowhere.pb"], "does not exist"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(files: Path, args: list[str], says: str) -> None:
    result = run(*[files / a if "." in a else a for a in args])
    assert result.exit_code != 0 and says in result.output and "Traceback" not in result.output
