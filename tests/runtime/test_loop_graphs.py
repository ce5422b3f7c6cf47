"""GraphDefs of TensorFlow's loops and branches, imported, give TensorFlow's values, whatever the plan."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np
import pytest
from tensorboard.compat.proto import graph_pb2

import thalweg as tf

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
sys.path[:0] = [str(GOLDEN), str(pathlib.Path(__file__).resolve().parent)]

import arrays  # noqa: E402
import loop_programs  # noqa: E402
from loops import on_the_executor  # noqa: E402

DATA, META = arrays.load(GOLDEN / "data" / "loop_graphs.npz")


def _config(clusters: bool, rewrite: bool) -> Any:
    config = tf.ConfigProto()
    options = config.graph_options.optimizer_options
    if not clusters:
        options.global_jit_level = tf.OptimizerOptions.OFF
    if not rewrite:
        options.opt_level = tf.OptimizerOptions.L0
    return config


@pytest.mark.parametrize("how", ["compiled", "clusters", "op by op", "not rewritten"])
@pytest.mark.parametrize("title", loop_programs.PROGRAMS)
def test_values(title: str, how: str) -> None:
    message = graph_pb2.GraphDef()
    message.ParseFromString(DATA[f"{title}/graph"].tobytes())
    _, runs = loop_programs.PROGRAMS[title]
    config = _config(how != "op by op", how != "not rewritten")
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        if how == "clusters":
            on_the_executor(session)
        tf.import_graph_def(message, name="")
        if META[title]["init"] in {n.name for n in message.node}:
            session.run(META[title]["init"])
        for i, feeds in enumerate(runs):
            for again in range(3 if not i and "variable" not in title and "resource" not in title else 1):
                values = session.run(META[title]["fetches"], {f"{k}:0": v for k, v in feeds.items()})
                for j, value in enumerate(values):
                    expected = DATA[f"{title}/{i}/{j}"]
                    assert value.dtype == expected.dtype and np.shape(value) == expected.shape
                    np.testing.assert_allclose(value, expected, rtol=2e-5, atol=1e-6, err_msg=f"{i} {j} {again}")
