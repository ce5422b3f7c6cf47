"""What a cost model takes from traced runs: side by side on the same cores, in loops, while waiting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.plan.placement.costs import CostModel

CPU = "/job:localhost/replica:0/task:0/device:CPU:{}"
GPU = "/job:localhost/replica:0/task:0/device:GPU:{}"


def run_of(events: list[tuple[str, str, int, int]], ops: dict[str, str] | None = None) -> Any:
    """A RunMetadata of nodes that ran: (device, node, from, to), in seconds."""
    metadata = tf.RunMetadata()
    for device, name, start, end in events:
        stats = metadata.step_stats.dev_stats.add(device=device).node_stats.add(node_name=name)
        stats.all_start_nanos, stats.all_end_rel_nanos = start * 10**9, (end - start) * 10**9
    graph = metadata.partition_graphs.add()
    for name, op in (ops or {}).items():
        graph.node.add(name=name, op=op)
    return metadata


def times(metadata: Any, *nodes: str, kind: str = "CPU") -> list[float | None]:
    costs = CostModel()
    costs.measure(metadata)
    return [costs.time(node, kind) for node in nodes]


def test_side_by_side_on_the_same_cores_each_counts_by_its_share() -> None:
    events = [(CPU.format(0), "a", 10, 14), (CPU.format(1), "b", 12, 18)]
    assert times(run_of(events), "a", "b") == pytest.approx([3.0, 5.0])
    events = [(GPU.format(0), "a", 10, 14), (GPU.format(1), "b", 12, 18)]
    assert times(run_of(events), "a", "b", kind="GPU") == [4.0, 6.0]


def test_waiting_is_not_computing() -> None:
    events = [(CPU.format(0), "a", 10, 14), (CPU.format(1), "a/_1", 10, 14), (CPU.format(1), "b", 14, 15)]
    measured = times(run_of(events, {"a": "Add", "a/_1": "_Recv", "b": "Add"}), "a", "a/_1", "b")
    assert measured == [4.0, None, 1.0]


def test_a_node_that_runs_twice_takes_the_sum() -> None:
    events = [(CPU.format(0), "a", 10, 12), (CPU.format(0), "a", 13, 14), (CPU.format(0), "b", 14, 14)]
    assert times(run_of(events), "a", "b") == [3.0, 0.0]


def test_a_compiled_loop_gives_its_time_to_its_body() -> None:
    size = 256
    with tf.Graph().as_default() as graph:
        w = tf.placeholder(tf.float32, [size, size])
        _, end = tf.while_loop(lambda i, _: i < 30, lambda i, x: (i + 1, tf.matmul(x, w, name="product")), [0, w])
        outside = tf.matmul(end, end, name="outside")
    metadata = tf.RunMetadata()
    with tf.Session(graph=graph) as session:
        for _ in range(2):
            session.run(outside, {w: np.eye(size)}, tf.RunOptions(trace_level=3), metadata)
    costs = tf.placement.measure(graph, metadata)
    took = sum(
        stats.all_end_rel_nanos * 1e-9 for device in metadata.step_stats.dev_stats for stats in device.node_stats
    )
    inside, after = costs.time("while/product", "CPU"), costs.time("outside", "CPU")
    assert inside is not None and after is not None
    assert inside > 3 * after and 0.5 * took < inside <= took


def test_what_follows_a_loop_waits_for_it() -> None:
    """A loop counts as one pass; its back edge is left out, but not what leaves it when it has ended."""
    with tf.Graph().as_default() as graph:
        w = tf.placeholder(tf.float32, [64, 64])
        _, end = tf.while_loop(lambda i, _: i < 30, lambda i, x: (i + 1, tf.matmul(x, w, name="product")), [0, w])
        outside = tf.matmul(end, end, name="outside")
    report = tf.placement.explain(graph, outside, config=tf.ConfigProto(device_count={"CPU": 2}))
    rows = {row.name: row for row in report.nodes}
    assert rows["outside"].start >= rows["while/product"].start + rows["while/product"].time > 0


def test_traced_times_are_of_the_work_and_not_of_its_dispatch() -> None:
    """Work that XLA does later isn't counted to what takes its result; nor what an earlier step left behind."""
    size = 1200
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [size, size])
        with tf.device("/cpu:0"):
            heavy = tf.matmul(x, tf.matmul(x, x), name="heavy")
        with tf.device("/cpu:1"):
            light = tf.reduce_sum(heavy[:2, :2] + 1.0, name="light")
    metadata = tf.RunMetadata()
    with tf.Session(graph=graph, config=config) as session:
        for _ in range(3):
            session.run(light, {x: np.eye(size)}, tf.RunOptions(trace_level=3), metadata)
    costs = tf.placement.measure(graph, metadata)
    slow, fast = costs.time("heavy", "CPU"), costs.time("light", "CPU")
    assert slow is not None and fast is not None and slow > fast
