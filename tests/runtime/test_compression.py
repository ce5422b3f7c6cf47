"""float32 that crosses as 16 bits: the mantissa cut, zeros in its place; half the bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.graph.graph import Graph
from thalweg.plan.pipeline import _COMPRESS
from thalweg.runtime.metadata import bytes_sent


def cut(x: np.ndarray) -> np.ndarray:
    """The upper half of every float's bits, as the SPEC says."""
    return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def run(compress: str, dtype: Any = tf.float32, loop: bool = False) -> tuple[np.ndarray, int, list[str]]:
    """What device 1 got of x, the bytes that crossed, and the types of the nodes."""
    with Graph().as_default():
        x = tf.placeholder(dtype, [1000], name="x")
        with tf.device("/cpu:0"):
            made = tf.negative(x, name="made")
        with tf.device("/cpu:1"):
            if loop:
                got = tf.while_loop(lambda i, y: i < 1, lambda i, y: (i + 1, tf.negative(made)), [0, made])[1]
            else:
                got = tf.negative(made)
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
            sess._master.options = replace(sess._master.options, compress=compress)
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            metadata = tf.RunMetadata()
            value = sess.run(got, {x: values(dtype)}, options, metadata)
    types = [node.op for graph in metadata.partition_graphs for node in graph.node]
    return value, sum(bytes_sent(metadata.step_stats).values()), types


def values(dtype: Any) -> np.ndarray:
    special = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40, 3.4e38, 1 + 2**-8]
    numbers = np.concatenate([np.random.default_rng(0).normal(size=992), special])
    with np.errstate(all="ignore"):
        return numbers.astype(tf.as_dtype(dtype).as_numpy_dtype)


@pytest.mark.parametrize("loop", [False, True])
def test_values_lose_the_low_half_of_their_bits_and_cost_half(loop: bool) -> None:
    plain, whole, types = run("", loop=loop)
    np.testing.assert_array_equal(plain, values(tf.float32))
    assert "Cast" not in types
    lossy, half, types = run("devices", loop=loop)
    np.testing.assert_array_equal(lossy, cut(values(tf.float32)))
    assert types.count("Cast") == 2
    assert whole - half == 2000


@pytest.mark.parametrize("dtype", [tf.float64, tf.int32, tf.float16])
def test_other_types_cross_as_they_are(dtype: Any) -> None:
    exact, _, types = run("devices", dtype)
    np.testing.assert_array_equal(exact, values(dtype))
    assert "Cast" not in types


def test_only_between_tasks_where_the_config_asks_for_it() -> None:
    between = _COMPRESS["tasks"]
    task = "/job:worker/replica:0/task:{}/device:CPU:{}"
    assert between(task.format(0, 0), task.format(1, 0))
    assert not between(task.format(0, 0), task.format(0, 1))
    config = tf.ConfigProto()
    config.graph_options.enable_bfloat16_sendrecv = True
    with tf.Session(graph=Graph(), config=config) as sess:
        assert sess._master.options.compress == "tasks"
