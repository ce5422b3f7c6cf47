"""Stacks between a loop and the loop of its gradient: who pushes, who pops."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.plan.places import ENTER, Frame, frame_of


@dataclass(eq=False)
class Link:
    """A stack that one loop fills, one push in each iteration, and another empties."""

    push: Operation
    pop: Operation
    pusher: Frame
    popper: Frame
    #: whether what is popped is used as a value
    wanted: bool = False
    #: whether what is popped must be known when the loop that pops it is compiled
    known: bool = False
    #: once the loop that fills it is compiled: what was pushed, stacked, and the number of iterations
    buffer: Tensor = None  # type: ignore[assignment]
    count: Tensor = None  # type: ignore[assignment]
    #: instead, what was pushed, where that is known when compiling
    fixed: Tensor = None  # type: ignore[assignment]


def find_links(graph: Graph) -> list[Link]:
    """The stacks that are used by one push and one pop, in two loops right inside the stack's own frame."""
    links: list[Link] = []
    for op in graph._ops:
        if op.type != "StackV2":
            continue
        users = _users(op._outputs[0])
        kinds = {user.type: user for user in users}
        if len(users) != 2 or set(kinds) != {"StackPushV2", "StackPopV2"}:
            continue
        push, pop = kinds["StackPushV2"], kinds["StackPopV2"]
        pusher, popper = frame_of(push), frame_of(pop)
        if pusher is None or popper is None or pusher is popper:
            continue
        if pusher.parent is frame_of(op) and popper.parent is frame_of(op):
            links.append(Link(push, pop, pusher, popper))
    return links


def _users(handle: Tensor) -> list[Operation]:
    """What takes a handle, in whatever loop it enters."""
    users: list[Operation] = []
    stack = [handle]
    while stack:
        for op in stack.pop()._consumers:
            if op.type in ENTER or op.type == "Identity":
                stack.append(op._outputs[0])
            else:
                users.append(op)
    return users
