"""How often a loop runs, at most: from a counter that its condition compares with what doesn't change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from thalweg.graph.operation import Operation, Tensor

#: how `counter OP limit` reads with the sides exchanged
_TURNED = {"Less": "Greater", "LessEqual": "GreaterEqual", "Greater": "Less", "GreaterEqual": "LessEqual"}


@dataclass(frozen=True)
class Trips:
    """The loop runs while counter OP limit, OP being < or <= (step > 0), > or >= (step < 0)."""

    counter: Operation
    limit: Tensor
    step: int
    inclusive: bool


def find_trips(
    condition: Tensor,
    following: dict[Operation, Tensor],
    in_condition: Callable[[Tensor], Tensor],
    in_body: Callable[[Tensor], Tensor],
    is_fixed: Callable[[Tensor], bool],
) -> list[Trips]:
    """The bounds among the things that must hold for the loop to go on.

    following: for the Merge of each loop variable what it becomes. in_condition, in_body: what stands for a
    tensor there. is_fixed: whether a tensor is the same in all iterations.
    """
    found: list[Trips] = []
    stack = [in_condition(condition)]
    while stack:
        op = stack.pop()._op
        inputs = [in_condition(t) for t in op._inputs]
        if op.type == "Identity" or op.type == "LogicalAnd":
            stack.extend(inputs)
        elif op.type in _TURNED and op._inputs[0]._dtype.is_integer:
            for (counter, limit), kind in zip(
                (inputs, inputs[::-1]), (op.type, _TURNED[op.type]), strict=True
            ):
                if counter._op in following and counter._index == 0 and is_fixed(limit):
                    step = _step(counter, following[counter._op], in_body)
                    if step and (step > 0) == kind.startswith("Less"):
                        found.append(Trips(counter._op, limit, step, kind.endswith("Equal")))
    return found


def _step(counter: Tensor, following: Tensor, in_body: Callable[[Tensor], Tensor]) -> int:
    """By how much the counter changes in each iteration; 0: it can't be told."""
    op = in_body(following)._op
    while op.type == "Identity":
        op = in_body(op._inputs[0])._op
    if op.type not in ("Add", "AddV2", "Sub"):
        return 0
    sides = [_behind(t, in_body) for t in op._inputs]
    values = [_constant(t) for t in sides]
    if sides[0] is counter and values[1] is not None:
        return -values[1] if op.type == "Sub" else values[1]
    if sides[1] is counter and values[0] is not None and op.type != "Sub":
        return values[0]
    return 0


def _behind(tensor: Tensor, in_body: Callable[[Tensor], Tensor]) -> Tensor:
    tensor = in_body(tensor)
    while tensor._op.type == "Identity":
        tensor = in_body(tensor._op._inputs[0])
    return tensor


def _constant(tensor: Tensor) -> int | None:
    op = tensor._op
    while op.type in ("Enter", "Identity"):
        op = op._inputs[0]._op
    if op.type != "Const" or op._attrs["value"].size != 1:
        return None
    return int(op._attrs["value"].reshape(()))
