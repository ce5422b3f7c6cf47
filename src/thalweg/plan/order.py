"""The order of reads and writes of variables, where the program leaves it open."""

from __future__ import annotations

import heapq

from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation
from thalweg.graph.subgraph import NEXT_ITERATION
from thalweg.kernel.body import StateKey
from thalweg.plan.places import Place, exits_after_enters
from thalweg.plan.state import accesses, state_keys


def order_state(graph: Graph) -> list[Operation]:
    """Fixes one order of all reads and writes of each variable, by control edges; returns the whole order.

    Law: edges of the program are kept. A read that the program orders neither before nor after a write
    comes first; writes that are not ordered run in order of creation. Always the same order for the same
    graph, whatever the executor does, so a read is a snapshot and clusters and op-by-op runs agree.
    """
    keys = {op: state_keys(op) for op in graph._ops}
    access = {op: accesses(op, k) for op, k in keys.items() if k}
    access = {op: rw for op, rw in access.items() if rw[0] or rw[1]}
    readers: dict[StateKey, set[Operation]] = {}
    for op, (reads, writes) in access.items():
        for key in reads - writes:
            readers.setdefault(key, set()).add(op)
    order = _list_schedule(graph, access, readers)
    _add_edges(order, access)
    return order


def _list_schedule(
    graph: Graph,
    access: dict[Operation, tuple[set[StateKey], set[StateKey]]],
    readers: dict[StateKey, set[Operation]],
) -> list[Operation]:
    """A topological order in which a write waits for every read that doesn't depend on it."""
    pending = {
        op: sum(1 for t in op._inputs if t._op.type not in NEXT_ITERATION) + len(op._control_inputs)
        for op in graph._ops
    }
    exits = exits_after_enters(graph)
    for ops in exits.values():
        for op in ops:
            pending[op] += 1
    ready: list[tuple[int, Operation]] = []
    writes: list[tuple[int, Operation]] = []

    def push(op: Operation) -> None:
        heapq.heappush(writes if op in access and access[op][1] else ready, (op._id, op))

    for op, n in pending.items():
        if n == 0:
            push(op)
    order: list[Operation] = []
    while ready or writes:
        op = heapq.heappop(ready)[1] if ready else _next_write(writes, access, readers)
        order.append(op)
        if op in access:
            for key in access[op][0]:
                if key in readers:
                    readers[key].discard(op)
        users = list(op._control_outputs)
        users += exits.get(op, ())
        if op.type not in NEXT_ITERATION:
            users += [c for t in op._outputs for c in t._consumers]
        for user in users:
            pending[user] -= 1
            if pending[user] == 0:
                push(user)
    if len(order) != len(graph._ops):
        stuck = sorted(op._name for op, n in pending.items() if n > 0)
        raise ValueError(f"the graph has a cycle through {', '.join(stuck[:5])}")
    return order


def _next_write(
    writes: list[tuple[int, Operation]],
    access: dict[Operation, tuple[set[StateKey], set[StateKey]]],
    readers: dict[StateKey, set[Operation]],
) -> Operation:
    """The first ready write for which no independent read is still to come; else the first of all."""
    skipped: list[tuple[int, Operation]] = []
    chosen: Operation | None = None
    while writes and chosen is None:
        item = heapq.heappop(writes)
        waiting = {r for key in access[item[1]][1] for r in readers.get(key, ())}
        if not waiting or waiting <= _descendants(item[1]):
            chosen = item[1]
        else:
            skipped.append(item)
    if chosen is None:
        chosen = skipped.pop(0)[1]
    for item in skipped:
        heapq.heappush(writes, item)
    return chosen


def _descendants(op: Operation) -> set[Operation]:
    seen: set[Operation] = set()
    stack = [op]
    while stack:
        at = stack.pop()
        for user in [*at._control_outputs, *(c for t in at._outputs for c in t._consumers)]:
            if user not in seen:
                seen.add(user)
                stack.append(user)
    return seen


def _add_edges(
    order: list[Operation], access: dict[Operation, tuple[set[StateKey], set[StateKey]]]
) -> None:
    """Control edges that hold any executor to the order, among the accesses of each variable."""
    last_write: dict[tuple[StateKey, Place | None], Operation] = {}
    reads_since: dict[tuple[StateKey, Place | None], list[Operation]] = {}
    for op in order:
        if op not in access:
            continue
        place: Place | None = op._control_flow_context
        reads, writes = ({(key, place) for key in keys} for keys in access[op])
        before: dict[Operation, None] = {}
        for key in reads | writes:
            if key in last_write:
                before.setdefault(last_write[key])
        for key in writes:
            for reader in reads_since.pop(key, ()):
                before.setdefault(reader)
            last_write[key] = op
        for key in reads - writes:
            reads_since.setdefault(key, []).append(op)
        before.pop(op, None)
        for earlier in before:
            if earlier not in op._control_inputs and all(t._op is not earlier for t in op._inputs):
                op._control_inputs.append(earlier)
                earlier._control_outputs.append(op)
