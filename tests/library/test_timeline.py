"""Chrome traces of traced runs."""

from __future__ import annotations

import json

import thalweg as tf
from thalweg.library.timeline import Timeline


def test_bars_and_arrows() -> None:
    stats = tf.RunMetadata().step_stats
    device = stats.dev_stats.add(device="/cpu:0")
    for name, label, start, thread in (
        ("a", "a = Const()", 10, 77),
        ("b", "b = Add(a:0, ^a)", 20, 99),
        ("c", "c = cluster of 3 nodes (2 Mul, 1 Add)", 30, 77),
    ):
        device.node_stats.add(node_name=name, timeline_label=label, all_start_micros=start, all_end_rel_micros=5, thread_id=thread)
    events = json.loads(Timeline(stats).generate_chrome_trace_format())["traceEvents"]
    assert events[0] == {"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "/cpu:0 Compute"}}
    bars = [(e["name"], e["tid"], e["ts"], e["dur"], e["args"]) for e in events if e["ph"] == "X"]
    assert bars == [
        ("Const", 0, 10, 5, {"name": "a", "op": "Const"}),
        ("Add", 1, 20, 5, {"name": "b", "op": "Add", "input0": "a:0", "input1": "^a"}),
        ("cluster of 3 nodes", 0, 30, 5, {"name": "c", "op": "cluster of 3 nodes"}),
    ]
    arrows = [(e["ph"], e["id"], e["tid"], e["ts"]) for e in events if e["ph"] in "st"]
    assert arrows == [("s", 0, 0, 15), ("t", 0, 1, 20), ("s", 1, 0, 15), ("t", 1, 1, 20)]
    plain = json.loads(Timeline(stats).generate_chrome_trace_format(show_dataflow=False))["traceEvents"]
    assert {e["ph"] for e in plain} == {"M", "X"}


def test_a_traced_run() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0])
        session.run(v.initializer)
        metadata = tf.RunMetadata()
        session.run(tf.reduce_sum(v * 2.0), options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    events = json.loads(Timeline(metadata.step_stats).generate_chrome_trace_format())["traceEvents"]
    assert sum(e["ph"] == "X" for e in events) >= 1
    assert all(e["dur"] >= 1 for e in events if e["ph"] == "X")
