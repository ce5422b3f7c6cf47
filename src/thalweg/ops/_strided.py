"""What a strided slice means: its begin, end, strides and masks resolved against a shape.

Follows TensorFlow's ValidateStridedSliceOp (util/strided_slice_op.cc), with unknown dimensions and values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from thalweg.base.shape import Dim


@dataclass(frozen=True)
class Masks:
    """The five bit masks of the op: one bit for each element of begin, end and strides."""

    begin: int = 0
    end: int = 0
    ellipsis: int = 0
    new_axis: int = 0
    shrink: int = 0


@dataclass(slots=True)
class Range:
    """The slice along one dimension of the input. begin is counted from the front, where known."""

    position: int | None  # which element of begin, end and strides it came from; None: left out
    size: Dim = None  # elements taken; None: unknown
    begin: Any = None
    step: int = 1
    shrink: bool = False


@dataclass(slots=True)
class Plan:
    """ranges: one per input dimension. order: the output's dimensions, by the input's; None: a new one."""

    ranges: list[Range]
    order: list[int | None]

    def output_shape(self) -> tuple[Dim, ...]:
        """The shape of the result."""
        return tuple(1 if i is None else self.ranges[i].size for i in self.order)


def needs_begin(count: int, masks: Masks) -> bool:
    """Whether the output's shape depends on begin: False where each element is masked or is an index."""
    free = masks.ellipsis | masks.new_axis | masks.shrink | masks.begin
    return any(not free >> i & 1 for i in range(count))


def needs_end(count: int, masks: Masks) -> bool:
    """Whether the output's shape depends on end."""
    free = masks.ellipsis | masks.new_axis | masks.shrink | masks.end
    return any(not free >> i & 1 for i in range(count))


def resolve(
    shape: Sequence[Dim],
    begin: Sequence[int] | None,
    end: Sequence[int] | None,
    strides: Sequence[int],
    masks: Masks,
) -> Plan:
    """The plan of a slice of a tensor of this shape. begin and end may be unknown (None).

    Errors: ValueError, in TensorFlow's words.
    """
    plan = _spread(len(shape), len(strides), masks)
    known = begin is not None and end is not None
    for dim, r in enumerate(plan.ranges):
        n, i = shape[dim], r.position
        if i is None:
            r.begin, r.size = 0, n
            continue
        r.step = strides[i]
        if r.step == 0:
            raise ValueError(f"strides[{i}] must be non-zero")
        if r.shrink and r.step < 0:
            raise ValueError("only stride 1 allowed on non-range indexing.")
        open_begin, open_end = bool(masks.begin >> i & 1), bool(masks.end >> i & 1)
        if r.shrink:
            r.size = 1
            if begin is not None and n is not None:
                r.begin = _index(begin[i], n, dim)
        elif n is None:
            continue
        elif known or (open_begin and open_end):
            first = _bound(None if open_begin else begin[i], n, r.step, at_begin=True)  # type: ignore[index]
            last = _bound(None if open_end else end[i], n, r.step, at_begin=False)  # type: ignore[index]
            r.begin, r.size = first, max(0, -((first - last) // r.step))
    return plan


def _spread(rank: int, count: int, masks: Masks) -> Plan:
    """Which element of the specification goes with which dimension."""
    ellipses = [i for i in range(count) if masks.ellipsis >> i & 1]
    if len(ellipses) > 1:
        raise ValueError("Multiple ellipses in slice spec not allowed")
    used = sum(
        1
        for i in range(count)
        if not masks.ellipsis >> i & 1 and not masks.new_axis >> i & 1
    )
    if used > rank:
        raise ValueError(f"Index out of range using input dim {rank}; input has only {rank} dims")
    plan = Plan([], [])

    def whole(n: int) -> None:
        for _ in range(n):
            plan.order.append(len(plan.ranges))
            plan.ranges.append(Range(None))

    for i in range(count):
        if masks.ellipsis >> i & 1:
            whole(rank - used)
        elif masks.new_axis >> i & 1:
            plan.order.append(None)
        else:
            shrink = bool(masks.shrink >> i & 1)
            if not shrink:
                plan.order.append(len(plan.ranges))
            plan.ranges.append(Range(i, shrink=shrink))
    if not ellipses:
        whole(rank - used)
    return plan


def _index(i: int, n: int, dim: int) -> int:
    at = i + n if i < 0 else i
    if not 0 <= at < n:
        raise ValueError(f"slice index {i} of dimension {dim} out of bounds.")
    return at


def _bound(value: int | None, n: int, step: int, *, at_begin: bool) -> int:
    low, high = (0, n) if step > 0 else (-1, n - 1)
    if value is None:
        return low if at_begin == (step > 0) else high
    return min(max(value + n if value < 0 else value, low), high)
