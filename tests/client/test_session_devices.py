"""Sessions with several devices: what they list, print and refuse; and a device type of our own."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.client import device_lib
from thalweg.testing import devices

TASK = "/job:localhost/replica:0/task:0"


def session(graph: tf.Graph, **count: int) -> tf.Session:
    return tf.Session(graph=graph, config=tf.ConfigProto(device_count=count))


def test_list_devices() -> None:
    graph = tf.Graph()
    with session(graph, CPU=2, TOY=1) as s:
        listed = s.list_devices()
        assert [d.name for d in listed] == [f"{TASK}/device:{n}" for n in ("CPU:0", "CPU:1", "TOY:0")]
        assert [d.device_type for d in listed] == ["CPU", "CPU", "TOY"]
        assert listed[2].memory_limit_bytes == 16 << 20 and len({d.incarnation for d in listed}) == 3
        assert s.list_devices()[0].incarnation == listed[0].incarnation
        assert repr(listed[2]) == f"_DeviceAttributes({TASK}/device:TOY:0, TOY, 16777216, {listed[2].incarnation})"


def test_list_local_devices() -> None:
    found = device_lib.list_local_devices(tf.ConfigProto(device_count={"CPU": 2}))
    assert [(d.name, d.device_type) for d in found] == [("/device:CPU:0", "CPU"), ("/device:CPU:1", "CPU")]
    assert found[0].memory_limit > 0 and found[0].physical_device_desc == ""


def test_a_session_needs_a_cpu() -> None:
    with pytest.raises(tf.errors.NotFoundError, match="No CPU devices are available in this process"):
        session(tf.Graph(), CPU=0)


def test_a_device_that_is_not_there() -> None:
    with tf.Graph().as_default() as graph:
        with tf.device("/device:CPU:5"):
            x = tf.identity(tf.placeholder(tf.float32, [], name="p"), name="x")
        for count in (1, 2):
            with session(graph, CPU=count) as s, pytest.raises(tf.errors.InvalidArgumentError) as raised:
                s.run(x, {"p:0": 1.0})
            for name in ("/device:CPU:5", f"{TASK}/device:CPU:{count - 1}"):
                assert name in str(raised.value)


def test_log_device_placement(capsys: pytest.CaptureFixture[str]) -> None:
    """The caller's nodes, once each, in TensorFlow's form."""
    with tf.Graph().as_default() as graph:
        p = tf.placeholder(tf.float32, [2], name="p")
        b = tf.multiply(p, p, name="b")
        c = tf.tanh(b, name="c")
        config = tf.ConfigProto(log_device_placement=True)
        with tf.Session(graph=graph, config=config) as s:
            for _ in range(2):
                s.run(b, {p: [1, 2]})
            s.run(c, {p: [1, 2]})
    printed = capsys.readouterr().out.splitlines()
    assert sorted(printed) == [
        f"b: (Mul): {TASK}/device:CPU:0",
        f"c: (Tanh): {TASK}/device:CPU:0",
        f"p: (Placeholder): {TASK}/device:CPU:0",
    ]


def test_nothing_is_printed_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as s:
        s.run(tf.no_op())
    assert capsys.readouterr().out == ""


def test_device_mapping_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "thalweg"):
        tf.Session(graph=tf.Graph(), config=tf.ConfigProto(log_device_placement=True)).close()
        assert "Device mapping: no known devices." in caplog.text
        config = tf.ConfigProto(log_device_placement=True, device_count={"TOY": 1})
        tf.Session(graph=tf.Graph(), config=config).close()
        assert f"{TASK}/device:TOY:0 -> device: 0, name: cpu" in caplog.text


# ---- kernels of a type of our own -------------------------------------------------------------------------


def on_toys(build: Any, feed: np.ndarray, trace: Any = None) -> Any:
    """What `build` makes of a placeholder x on /device:TOY:1, and the kernels of TOY that were called."""
    devices.calls.clear()
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, feed.shape, name="x")
        with tf.device("/device:TOY:1"):
            y = build(x)
        with session(graph, TOY=2, CPU=2) as s:
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            return s.run(y, {x: feed}, options, trace), devices.calls.copy()


def test_kernels_of_the_device_run() -> None:
    """Compiled ones in clusters, host ones by themselves, on the device they belong to."""
    feed = np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32)
    metadata = tf.RunMetadata()
    found, calls = on_toys(lambda x: tf.nn.relu(tf.matmul(x, x, transpose_b=True) - x) * x, feed, metadata)
    np.testing.assert_allclose(found, np.maximum(feed @ feed.T - feed, 0) * feed, rtol=1e-5, atol=1e-5)
    assert calls == {"MatMul": 1, "Sub": 1, "Relu": 1, "Mul": 1}
    ran = {d.device.removeprefix(TASK): [n.node_name for n in d.node_stats] for d in metadata.step_stats.dev_stats}
    assert len([n for n in ran["/device:TOY:1"] if "cluster" in n]) == 2 and "Relu" in ran["/device:TOY:1"]


def test_a_host_kernel_runs_in_each_step() -> None:
    devices.calls.clear()
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [3], name="x")
        with tf.device("/device:TOY:0"):
            y = tf.nn.relu(x)
        with session(graph, TOY=1) as s:
            for i in range(3):
                assert s.run(y, {x: [-1.0, i, 2.0]}).tolist() == [0, i, 2]
    assert devices.calls == {"Relu": 3}


def test_the_same_graph_with_other_kernels_is_compiled_anew() -> None:
    """Executables are kept by content: the kernels are part of it."""
    feed = np.arange(9, dtype=np.float32).reshape(3, 3)
    for _ in range(2):
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [3, 3])
            with session(graph) as s:
                expected = s.run(tf.matmul(x, x) + x, {x: feed})
        found, calls = on_toys(lambda x: tf.matmul(x, x) + x, feed)
        np.testing.assert_array_equal(found, expected)
        assert calls["MatMul"] == 1


def test_scalars_in_loops_take_the_kernels_of_the_device() -> None:
    def build(x: tf.Tensor) -> tf.Tensor:
        with tf.device("/cpu:0"):
            start = tf.reduce_sum(x)

        def body(i: tf.Tensor, y: tf.Tensor) -> Any:
            with tf.device("/device:TOY:1"):
                z = y * y
            return i + 1, z

        with tf.device("/cpu:0"):
            return tf.while_loop(lambda i, y: i < 3, body, [0, start])[1]

    found, calls = on_toys(build, np.array([1.0, 0.5], np.float32))
    assert found == 1.5**8 and calls["Mul"] >= 1


def test_no_kernel_for_the_device() -> None:
    """TOY has no Tanh, and no int32 Mul."""
    feed = np.zeros(3, np.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Tanh"):
        on_toys(tf.tanh, feed)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Mul"):
        on_toys(lambda x: tf.constant([1, 2]) * tf.placeholder_with_default([3, 4], [2]), feed)
