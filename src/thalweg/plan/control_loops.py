"""Loops on several devices: each device gets a loop of its own that goes round when the others do.

A Recv in a loop must run in each iteration, but waits for nothing on its device that would say so. So a
device on which a loop receives something gets a *control loop*:

    Enter -> Merge -> Switch(the loop's condition, received) -> NextIteration -> Merge

The Merge is there in each iteration, and the Recvs of the loop wait for it. The Enter takes from the root,
or from the Merge of the control loop round it, so it is alive even where the loop itself is not: then dead
messages come, and the control loop ends. (TensorFlow's graph_partition.cc does the same.)
"""

from __future__ import annotations

import numpy as np

from thalweg.base import dtypes
from thalweg.base.errors import InvalidArgumentError, some
from thalweg.graph import registry
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import NEXT_ITERATION, raw_node, relink
from thalweg.plan.places import ENTER, Frame, Place, frame_of

#: per frame and device: the node that runs in each of its iterations
Triggers = dict[tuple[Frame, str], Operation]


def add_control_loops(graph: Graph) -> Triggers:
    """Adds a control loop to every device on which a loop receives; find_places must have run.

    Law: nothing else changes. A frame whose nodes are all on one device gets none. Errors:
    InvalidArgumentError where a loop on several devices has no condition of its own.
    """
    needed = _needed(graph)
    if not needed:
        return {}
    conditions: dict[Frame, list[Operation]] = {}
    goes_round: set[Frame] = set()
    for op in graph._ops:
        frame = frame_of(op)
        if frame is not None and op.type == "LoopCond":
            conditions.setdefault(frame, []).append(op)
        elif frame is not None and op.type in NEXT_ITERATION:
            goes_round.add(frame)
    triggers: Triggers = {}
    for frame in sorted(needed, key=_depth):
        found = conditions.get(frame, [])
        if len(found) > 1 or (not found and frame in goes_round):
            raise InvalidArgumentError(
                None, frame.enters[0], f"A cross-device loop must have a pivot predicate: '{frame.name}' has "
                f"{len(found)} LoopCond nodes, and its nodes are on {some(sorted(needed[frame]))}. "
                "Put them on one device",
            )  # fmt: skip
        for device in sorted(needed[frame]):
            parent = None if frame.parent is None else triggers[frame.parent, device]
            condition = found[0] if found else None
            triggers[frame, device] = _control_loop(graph, frame, device, parent, condition)
    relink(graph)
    return triggers


def _depth(frame: Frame) -> int:
    return 0 if frame.parent is None else 1 + _depth(frame.parent)


def _needed(graph: Graph) -> dict[Frame, set[str]]:
    """The devices on which a frame, or one inside it, receives."""
    devices: dict[Frame, set[str]] = {}
    received: dict[Frame, set[str]] = {}

    def is_on(frame: Frame | None, device: str) -> None:
        while frame is not None:
            devices.setdefault(frame, set()).add(device)
            frame = frame.parent

    for op in graph._ops:
        frame = frame_of(op)
        is_on(frame, op._device)
        sources = [*(t._op for t in op._inputs), *op._control_inputs]
        for source in sources:
            if source.type in ENTER:
                is_on(frame, source._device)
            if frame is not None and source._device != op._device and not _is_everywhere(source):
                received.setdefault(frame, set()).add(op._device)
    split = {frame: on for frame, on in devices.items() if len(on) > 1}
    homes = {frame_of(op): op._device for op in graph._ops if op.type == "LoopCond"}
    needed: dict[Frame, set[str]] = {frame: set() for frame in split}
    for frame in sorted(split, key=_depth, reverse=True):
        here = needed[frame]
        here |= received.get(frame, set())
        here |= split[frame] - {homes.get(frame, "")}  # they receive the condition
        if frame.parent is not None:
            needed[frame.parent] |= here
    return {frame: on for frame, on in needed.items() if on}


def _is_everywhere(op: Operation) -> bool:
    """Whether a node is there from the start: its value isn't received in each iteration."""
    return op.type in ("Const", "_Arg") and not op._control_inputs


def _control_loop(
    graph: Graph, frame: Frame, device: str, parent: Operation | None, condition: Operation | None
) -> Operation:
    """A control loop; the node that runs in each iteration of it."""
    real = frame.enters[0]
    name = f"_cloop/{frame.name}"
    outside = _place(frame.parent)

    def node(op: str, inputs: list[Tensor], outputs: int, place: Place | None, **attrs: object) -> Operation:
        types = [dtypes.float32] + [dtypes.int32 if op == "Merge" else dtypes.float32] * (outputs - 1)
        attrs = {"T": dtypes.float32, **attrs}
        made = raw_node(graph, registry.lookup(op), f"{name}/{op}", inputs, attrs, types, (), real)
        made._device = device
        made._control_flow_context = place
        for t in made._outputs:
            t._shape = (0,) if t._dtype is dtypes.float32 else ()
        return made

    if parent is None:
        start = empty_constant(graph, f"{name}/Const", device, real)
        start._control_flow_context = None
    else:
        start = parent
    enter = node(
        "Enter", [start._outputs[0]], 1, outside, frame_name=frame.name.encode(), is_constant=False,
        parallel_iterations=real._attrs["parallel_iterations"],
    )  # fmt: skip
    frame.enters.append(enter)
    if condition is None:
        return enter
    inside = _place(frame)
    merge = node("Merge", [enter._outputs[0]], 2, inside, N=2)
    switch = node("Switch", [merge._outputs[0], condition._outputs[0]], 2, inside)
    following = node("NextIteration", [switch._outputs[1]], 1, inside)
    merge._inputs.append(following._outputs[0])
    return merge


def empty_constant(graph: Graph, name: str, device: str, made_from: Operation) -> Operation:
    """A constant of no elements, as control edges that cross devices carry."""
    attrs = {"value": np.zeros((0,), np.float32), "dtype": dtypes.float32}
    op = raw_node(graph, registry.lookup("Const"), name, [], attrs, [dtypes.float32], (), made_from)
    op._device = device
    op._outputs[0]._shape = (0,)
    return op


def _place(frame: Frame | None) -> Place | None:
    return None if frame is None else Place(frame, frozenset())
