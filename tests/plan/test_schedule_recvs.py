"""Receive scheduling: less memory on the receiving device, the same results, and no cycle whatever is added."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tf
from thalweg.graph.graph import Graph
from thalweg.plan.pipeline import Plan, PlanOptions, make_plan

CPU = "/job:localhost/replica:0/task:0/device:CPU:"
OPS = tf.OptimizerOptions
SIZE = 1 << 18


def config(scheduled: bool, devices: int = 2) -> Any:
    """Op by op; with receive scheduling or with no rewriting and none."""
    options = tf.ConfigProto(device_count={"CPU": devices})
    options.graph_options.optimizer_options.global_jit_level = OPS.OFF
    if not scheduled:
        options.graph_options.optimizer_options.opt_level = OPS.L0
    return options


def chain(links: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Device 1 takes one big value after another from device 0. All are there while it waits for a small one."""
    x = tf.placeholder(tf.float32, [SIZE], name="x")
    with tf.device("/cpu:0"):
        parts = [tf.multiply(x, float(i + 1), name=f"part_{i}") for i in range(links)]
        with tf.control_dependencies(parts):
            late = tf.py_func(lambda: (time.sleep(0.4), np.float32(0.5))[1], [], tf.float32)
            late.set_shape([])
    with tf.device("/cpu:1"):
        total = tf.tanh(tf.zeros([SIZE]) + late, name="start")
        for i, part in enumerate(parts):
            total = tf.tanh(tf.tanh(tf.tanh(total)) + part, name=f"link_{i}")
    return x, total


def run(scheduled: bool, links: int = 8) -> tuple[np.ndarray, int]:
    """The result, and the most bytes that device 1 held in a step beyond what it had before."""
    with Graph().as_default():
        x, y = chain(links)
        with tf.Session(config=config(scheduled)) as sess:
            feed = {x: np.linspace(-1, 1, SIZE, dtype=np.float32)}
            for _ in range(2):  # what takes long is known then, and others work meanwhile
                sess.run(y, feed)
            device = sess._master.worker.devices[CPU + "1"]
            before = device.bytes_in_use
            device.reset_peak()
            result = sess.run(
                y, feed, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=tf.RunMetadata()
            )
            return result, device.peak_bytes - before


def test_peak_memory_is_lower_and_results_are_the_same() -> None:
    with_it, low = run(scheduled=True)
    without, high = run(scheduled=False)
    np.testing.assert_array_equal(with_it, without)
    assert high >= 9 * 4 * SIZE  # all that is received lies there
    assert low <= 6 * 4 * SIZE


def planned(links: int, **options: bool) -> Plan:
    with Graph().as_default() as graph:
        x, y = chain(links)
        return make_plan(graph, [x], [y], [], PlanOptions(cluster=False, **options), [CPU + "0", CPU + "1"])


def test_only_control_edges_into_receives_are_added() -> None:
    with_it, without = planned(6), planned(6, schedule_receives=False)
    assert dict(with_it.report)["schedule_receives"] >= 4
    assert "schedule_receives" not in dict(without.report)
    for one, other in zip(with_it.partitions, without.partitions, strict=True):
        assert [op._name for op in one.graph._ops] == [op._name for op in other.graph._ops]
        for op, same in zip(one.graph._ops, other.graph._ops, strict=True):
            assert [t.name for t in op._inputs] == [t.name for t in same._inputs]
            controls = [c._name for c in op._control_inputs]
            if op.type != "_Recv":
                assert controls == [c._name for c in same._control_inputs]


def test_small_values_are_left_alone_unless_asked_for() -> None:
    with Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [4])
        with tf.device("/cpu:0"):
            part = x * 2.0
        with tf.device("/cpu:1"):
            y = x
            for _ in range(20):
                y = tf.tanh(y)
            y += part
        devices = [CPU + "0", CPU + "1"]
        counts = [
            dict(
                make_plan(graph, [x], [y], [], PlanOptions(cluster=False, schedule_all=all_), devices).report
            )
            for all_ in (False, True)
        ]
    assert [c["schedule_receives"] for c in counts] == [0, 1]


@st.composite
def layered(draw: st.DrawFn) -> list[tuple[int, list[int]]]:
    """Nodes: a device each, and the earlier nodes that they take from."""
    n = draw(st.integers(2, 14))
    return [
        (draw(st.integers(0, 2)), draw(st.lists(st.integers(0, i - 1), min_size=1, max_size=3)) if i else [])
        for i in range(n)
    ]


@settings(deadline=None, max_examples=60)
@given(layered())
def test_any_graph_still_runs(nodes: list[tuple[int, list[int]]]) -> None:
    """Edges never close a cycle, not even through other devices: the step ends, with the same values."""
    with Graph().as_default():
        x = tf.placeholder(tf.float32, [8])
        made: list[tf.Tensor] = []
        for device, sources in nodes:
            with tf.device(f"/cpu:{device}"):
                made.append(tf.tanh(tf.add_n([x, *(made[s] for s in sources)])))
        results = []
        for scheduled in (True, False):
            options = config(scheduled, 3)
            options.graph_options.enable_recv_scheduling = scheduled
            with tf.Session(config=options) as sess:
                feed = {x: np.linspace(-1, 1, 8, dtype=np.float32)}
                results.append(sess.run(made, feed, tf.RunOptions(timeout_in_ms=20_000)))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)  # first runs compile cheaply: docs/differences.md
