"""Private copies of (parts of) graphs, which passes may change freely.

Copies keep names, attributes, devices, origins and static shapes; they infer nothing again.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from thalweg.base.dtypes import DType
from thalweg.graph import registry
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor

#: the ops that close a loop: what they pass on arrives in the next iteration
NEXT_ITERATION = frozenset(("NextIteration", "RefNextIteration"))


def ancestors(
    roots: Iterable[Operation], stop: Callable[[Tensor], bool], done: Collection[Operation] = ()
) -> list[Operation]:
    """Every operation that the roots need, by data and control, in order of creation.

    A data edge is not followed where stop(tensor) holds, a control edge not to what is done.
    """
    seen: set[Operation] = set()
    stack = list(roots)
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        for tensor in op._inputs:
            if tensor._op not in seen and not stop(tensor):
                stack.append(tensor._op)
        for control in op._control_inputs:
            if control not in seen and control not in done:
                stack.append(control)
    return sorted(seen, key=lambda op: op._id)


def copy_op(
    graph: Graph, op: Operation, inputs: list[Tensor], control_inputs: Sequence[Operation]
) -> Operation:
    """Adds a copy of `op` with these inputs."""
    new = raw_node(
        graph,
        op._record,
        op._name,
        inputs,
        dict(op._attrs),
        [t._dtype for t in op._outputs],
        control_inputs,
        op,
    )
    for a, b in zip(new._outputs, op._outputs, strict=True):
        a._shape = b._shape
        a._handle = b._handle
    return new


def raw_node(
    graph: Graph,
    record: registry.OpRecord,
    name: str,
    inputs: list[Tensor],
    attrs: dict[str, Any],
    output_dtypes: Sequence[DType],
    control_inputs: Sequence[Operation] = (),
    made_from: Operation | None = None,
) -> Operation:
    """Adds a node as it is: no scopes, no inference, the name made unique only where it is taken."""
    if name in graph._by_name:
        i = 1
        while f"{name}_{i}" in graph._by_name:
            i += 1
        name = f"{name}_{i}"
    op = Operation(
        graph,
        graph._next_id,
        name,
        record,
        inputs,
        list(dict.fromkeys(control_inputs)),
        attrs,
        output_dtypes,
        made_from._device if made_from is not None else "",
        made_from._origin if made_from is not None else (),
    )
    if made_from is not None:
        op._original_op = made_from._original_op or made_from
        op._control_flow_context = made_from._control_flow_context
    graph._next_id += 1
    graph._ops.append(op)
    graph._by_name[name] = op
    return op


def replace_uses(old: Tensor, new: Tensor) -> None:
    """Every consumer of `old` takes `new` in its place."""
    for op in list(dict.fromkeys(old._consumers)):
        for i, t in enumerate(op._inputs):
            if t is old:
                op._inputs[i] = new
                new._consumers.append(op)
    old._consumers.clear()


def remove_op(op: Operation) -> None:
    """Takes a node that nobody uses out of its graph. Controls through it are kept: see bypass_control."""
    graph = op._graph
    for tensor in op._inputs:
        tensor._consumers.remove(op)
    for control in op._control_inputs:
        control._control_outputs.remove(op)
    for user in op._control_outputs:
        user._control_inputs.remove(op)
    del graph._by_name[op._name]
    graph._removed.add(op)


def rename(op: Operation, name: str) -> None:
    """Gives a node another name, which must be free."""
    graph = op._graph
    del graph._by_name[op._name]
    op._name = name
    graph._by_name[name] = op


def bypass_control(op: Operation, extra: Sequence[Operation] = ()) -> None:
    """What waited for `op` waits for what `op` waited for (its control inputs, and `extra`)."""
    for user in list(op._control_outputs):
        user._control_inputs.remove(op)
        for source in (*op._control_inputs, *extra):
            if source is not user and source not in user._control_inputs:
                user._control_inputs.append(source)
                source._control_outputs.append(user)
    op._control_outputs.clear()


def sweep(graph: Graph) -> None:
    """Drops removed nodes from the graph's list."""
    if graph._removed:
        graph._ops = [op for op in graph._ops if op not in graph._removed]
        graph._removed.clear()


def relink(graph: Graph) -> None:
    """Sets consumers and control outputs anew, from the inputs and control inputs of the graph's nodes."""
    for op in graph._ops:
        op._control_outputs = []
        for tensor in op._outputs:
            tensor._consumers = []
    for op in graph._ops:
        for tensor in op._inputs:
            tensor._consumers.append(op)
        for control in op._control_inputs:
            control._control_outputs.append(op)


def topological_order(
    graph: Graph, later: Mapping[Operation, Sequence[Operation]] | None = None
) -> list[Operation]:
    """The operations so that each comes after its inputs and control inputs; ties in order of creation.

    later: by node, others that come after it too.
    ValueError where there is a cycle that no NextIteration breaks.
    """
    pending: dict[Operation, int] = {}
    order: list[Operation] = []
    for op in graph._ops:
        n = sum(1 for t in op._inputs if t._op.type not in NEXT_ITERATION) + len(op._control_inputs)
        pending[op] = n
    later = later or {}
    for users in later.values():
        for op in users:
            pending[op] += 1
    ready = [(op._id, op) for op, n in pending.items() if n == 0]
    heapq.heapify(ready)
    while ready:
        op = heapq.heappop(ready)[1]
        order.append(op)
        if op.type in NEXT_ITERATION:
            users = list(op._control_outputs)
        else:
            users = [c for t in op._outputs for c in t._consumers] + op._control_outputs
        if later:
            users += later.get(op, ())
        for user in users:
            pending[user] -= 1
            if pending[user] == 0:
                heapq.heappush(ready, (user._id, user))
    if len(order) != len(graph._ops):
        stuck = sorted(op._name for op, n in pending.items() if n > 0)
        raise ValueError(f"the graph has a cycle through {', '.join(stuck[:5])}")
    return order
