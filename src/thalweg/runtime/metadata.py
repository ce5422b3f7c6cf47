"""What a run tells of itself: step statistics and the partition graphs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorboard.compat.proto import graph_pb2

from thalweg.graph.graphdef import node_def
from thalweg.graph.operation import Operation
from thalweg.kernel.body import Body
from thalweg.plan.pipeline import Plan


class StepRecorder:
    """Times every instruction of a step. Filled into a StepStats message afterwards."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, str, int, int, int]] = []

    @contextmanager
    def node(self, op: Operation, device: str) -> Iterator[None]:
        """Times the node that runs inside."""
        start = time.time_ns()
        try:
            yield
        finally:
            self.record(op, device, start)

    def record(self, op: Operation, device: str, start: int) -> None:
        """A node that started then (in nanoseconds) and has just ended."""
        self._rows.append((device, op._name, _label(op), start, time.time_ns(), threading.get_ident()))

    def fill(self, step_stats: Any) -> None:
        """Writes what was recorded into a StepStats message, by device."""
        devices: dict[str, Any] = {}
        for device, name, label, start, end, thread in self._rows:
            stats = devices.get(device)
            if stats is None:
                stats = devices[device] = step_stats.dev_stats.add(device=device)
            stats.node_stats.add(
                node_name=name,
                timeline_label=label,
                all_start_micros=start // 1000,
                op_start_rel_micros=0,
                op_end_rel_micros=(end - start) // 1000,
                all_end_rel_micros=(end - start) // 1000,
                all_start_nanos=start,
                op_end_rel_nanos=end - start,
                all_end_rel_nanos=end - start,
                scheduled_micros=start // 1000,
                thread_id=thread % (1 << 31),
            )


def _label(op: Operation) -> str:
    inputs = ", ".join(t._op._name for t in op._inputs)
    body = op._attrs.get("body")
    if isinstance(body, Body):
        counts: dict[str, int] = {}
        for member in body.nodes:
            counts[member.type] = counts.get(member.type, 0) + 1
        common = sorted(counts.items(), key=lambda c: -c[1])[:4]
        return f"{op._name} = cluster of {len(body.nodes)} nodes ({', '.join(f'{n} {t}' for t, n in common)})"
    return f"{op._name} = {op.type}({inputs})"


def partition_graph(plan: Plan) -> Any:
    """The plan's graph as a GraphDef, pruned and rewritten; a node's cluster is its attribute `_cluster`."""
    message = graph_pb2.GraphDef()
    for op in plan.graph._ops:
        if op.type != "_Cluster":
            message.node.append(node_def(op))
            continue
        body: Body = op._attrs["body"]
        for member in body.nodes:
            node = node_def(member)
            node.attr["_cluster"].s = op._name.encode()
            message.node.append(node)
    return message
