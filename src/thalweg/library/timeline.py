"""A traced run as a Chrome trace (chrome://tracing, ui.perfetto.dev). Source: TensorFlow's timeline.py."""

from __future__ import annotations

import json
from typing import Any


class Timeline:
    """The time line of a StepStats message: a row of bars for each thread of each device."""

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        del graph
        self._step_stats = step_stats

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule"
    ) -> str:
        """The trace as JSON text.

        show_dataflow: with an arrow from each node to those that use its output. show_memory is accepted:
        step statistics don't hold memory yet. op_time is accepted: a bar is the time that a thread spent.
        """
        del show_memory, op_time
        events: list[dict[str, Any]] = []
        ends: dict[str, dict[str, Any]] = {}
        for process, device in enumerate(self._step_stats.dev_stats):
            name = {"name": device.device + " Compute"}
            events.append({"name": "process_name", "ph": "M", "pid": process, "args": name})
            threads: dict[int, int] = {}
            for stats in device.node_stats:
                thread = threads.setdefault(stats.thread_id, len(threads))
                bar = _bar(stats, process, thread)
                events.append(bar)
                ends[stats.node_name] = bar
        if show_dataflow:
            events += _arrows(ends)
        return json.dumps({"traceEvents": events}, indent=4, separators=(",", ": "))


def _bar(stats: Any, process: int, thread: int) -> dict[str, Any]:
    op, inputs = _parsed(stats.timeline_label)
    arguments = {"name": stats.node_name, "op": op}
    arguments.update({f"input{i}": name for i, name in enumerate(inputs)})
    return {
        "ph": "X",
        "cat": "Op",
        "name": op,
        "pid": process,
        "tid": thread,
        "ts": stats.all_start_micros,
        "dur": max(1, stats.all_end_rel_micros),
        "args": arguments,
    }


def _parsed(label: str) -> tuple[str, list[str]]:
    """The op and inputs of a label "name = Op(input, ...)"."""
    _, _, call = label.partition(" = ")
    op, _, rest = call.partition("(")
    inputs = [name for name in rest.rstrip(")").split(", ") if name]
    return op.strip() or "unknown", inputs if op.isidentifier() else []


def _arrows(bars: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """An arrow for each input that is a bar too."""
    arrows: list[dict[str, Any]] = []
    for bar in bars.values():
        for key, name in bar["args"].items():
            source = bars.get(name.lstrip("^").partition(":")[0])
            if not key.startswith("input") or source is None:
                continue
            common = {"cat": "DataFlow", "name": name, "id": len(arrows) // 2}
            start = source["ts"] + source["dur"]
            arrows.append({"ph": "s", **common, "pid": source["pid"], "tid": source["tid"], "ts": start})
            end = max(start, bar["ts"])
            arrows.append({"ph": "t", **common, "pid": bar["pid"], "tid": bar["tid"], "ts": end})
    return arrows
