"""Pad, PadV2, MirrorPad and its adjoint. Source: TensorFlow's pad_op.cc, mirror_pad_op.cc, array_grad.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.shape import Dim, Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import MAX_RANK, ShapeContext
from thalweg.kernel.convention import traceable
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, shape_text
from thalweg.ops._emitting import stack
from thalweg.ops._types import INDEX


def _padded_shape(c: ShapeContext, sign: int = 1) -> list[Shape]:
    s, paddings, table = c.shape(0), c.value(1), c.with_rank(1, 2)
    assert table is not None
    if table[1] not in (None, 2):
        raise ValueError(f"paddings must have two columns: {shapes.format_shape(table)}")
    rank = table[0] if s is None else len(s)
    if s is not None and table[0] not in (None, rank):
        raise ValueError(f"Shape must be rank {table[0]} but is rank {rank}: one row of paddings a dimension")
    if rank is None or rank > MAX_RANK:
        return [None]
    if paddings is None or s is None:
        return [(None,) * rank]
    if (paddings < 0).any():
        raise ValueError(f"Paddings must be non-negative: {paddings.tolist()}")
    result: list[Dim] = []
    for n, (before, behind) in zip(s, paddings.tolist(), strict=True):
        result.append(None if n is None else n + sign * (before + behind))
    return [tuple(result)]


def _rows(x: Any, paddings: Any) -> tuple[list[int], list[int]]:
    table = np.asarray(paddings)
    fail_unless(
        table.shape == (np.ndim(x), 2),
        lambda: "The first dimension of paddings must be the rank of inputs"
        f"{shape_text(table.shape)} {shape_text(np.shape(x))}",
    )
    fail_unless(bool((table >= 0).all()), lambda: f"Paddings must be non-negative: {table.tolist()}")
    return [int(n) for n in table[:, 0]], [int(n) for n in table[:, 1]]


def _pad_kernel(x: Any, paddings: Any) -> Any:
    low, high = _rows(x, paddings)
    return arrays.pad(x, arrays.zero(x.dtype), low, high)


def _pad_v2_kernel(x: Any, paddings: Any, constant_values: Any) -> Any:
    low, high = _rows(x, paddings)
    fail_unless(
        np.ndim(constant_values) == 0,
        lambda: f"constant_values must be a scalar. Found: {shape_text(np.shape(constant_values))}",
    )
    return arrays.pad(x, constant_values, low, high)


def _pad_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    """What the padding put round the input is cut off."""
    x, paddings = op.inputs[0], op.inputs[1]
    before = emit("Slice", paddings, [0, 0], stack(emit, [emit.rank(x), 1]))
    begin = emit("Reshape", before, [-1])
    dx = emit("Slice", dy, begin, emit.shape(x, out_type=begin._dtype))
    return [dx, *[None] * (len(op.inputs) - 1)]


define_op(
    "Pad",
    inputs="input: T, paddings: Tpaddings",
    outputs="output: T",
    attrs=f"T: type, Tpaddings: {INDEX} = int32",
    shape=_padded_shape,
    kernel=traceable(_pad_kernel, host=_pad_kernel, static=("paddings",)),
    gradient=_pad_gradient,
    doc="Its input with zeros before and behind, as the rows of paddings say.",
)

define_op(
    "PadV2",
    inputs="input: T, paddings: Tpaddings, constant_values: T",
    outputs="output: T",
    attrs=f"T: type, Tpaddings: {INDEX} = int32",
    shape=_padded_shape,
    kernel=traceable(_pad_v2_kernel, host=_pad_v2_kernel, static=("paddings",)),
    gradient=_pad_gradient,
    doc="Its input with constant_values before and behind, as the rows of paddings say.",
)

_MIRROR_ATTRS = f"T: type, Tpaddings: {INDEX} = int32, mode: {{'REFLECT', 'SYMMETRIC'}}"


def _mirror_pad_kernel(x: Any, paddings: Any, *, mode: str) -> Any:
    offset = 1 if mode == "REFLECT" else 0
    low, high = _rows(x, paddings)
    for axis, (before, behind) in enumerate(zip(low, high, strict=True)):
        n = np.shape(x)[axis]
        limit = n - offset
        wanted, got = ("less than", "not less than") if offset else ("no greater than", "greater than")
        text = f"paddings must be {wanted} the dimension size: {before}, {behind} {got} {n}"
        fail_unless(before <= limit and behind <= limit, lambda text=text: text)
        parts = [x]
        if before:
            parts.insert(0, arrays.reverse(arrays.along(x, axis, offset, offset + before), [axis]))
        if behind:
            end = n - offset
            parts.append(arrays.reverse(arrays.along(x, axis, end - behind, end), [axis]))
        if len(parts) > 1:
            x = arrays.concatenate(parts, axis)
    return x


def _mirror_pad_grad_kernel(dy: Any, paddings: Any, *, mode: str) -> Any:
    offset = 1 if mode == "REFLECT" else 0
    low, high = _rows(dy, paddings)
    for axis, (before, behind) in enumerate(zip(low, high, strict=True)):
        total = np.shape(dy)[axis]
        n = total - before - behind
        fail_unless(
            n >= 0 and before <= n - offset and behind <= n - offset,
            lambda before=before, behind=behind, total=total: f"the paddings {before}, {behind} do not fit "
            f"into the size {total} of the gradient",
        )
        result = arrays.along(dy, axis, before, before + n)
        zeros = [0] * np.ndim(dy)
        if before:
            edge = arrays.reverse(arrays.along(dy, axis, 0, before), [axis])
            result = result + _placed(edge, axis, offset, n - offset - before, zeros)
        if behind:
            edge = arrays.reverse(arrays.along(dy, axis, total - behind, total), [axis])
            result = result + _placed(edge, axis, n - offset - behind, offset, zeros)
        dy = result
    return dy


def _placed(edge: Any, axis: int, before: int, behind: int, zeros: list[int]) -> Any:
    low, high = list(zeros), list(zeros)
    low[axis], high[axis] = before, behind
    return arrays.pad(edge, arrays.zero(edge.dtype), low, high)


def _mirror_pad_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    return [emit("MirrorPadGrad", dy, op.inputs[1], mode=op._attrs["mode"].decode()), None]


def _mirror_pad_grad_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    return [emit("MirrorPad", dy, op.inputs[1], mode=op._attrs["mode"].decode()), None]


define_op(
    "MirrorPad",
    inputs="input: T, paddings: Tpaddings",
    outputs="output: T",
    attrs=_MIRROR_ATTRS,
    shape=_padded_shape,
    kernel=traceable(_mirror_pad_kernel, host=_mirror_pad_kernel, static=("paddings",)),
    gradient=_mirror_pad_gradient,
    doc="Its input continued by its mirror image: REFLECT leaves the edge out, SYMMETRIC repeats it.",
)

define_op(
    "MirrorPadGrad",
    inputs="input: T, paddings: Tpaddings",
    outputs="output: T",
    attrs=_MIRROR_ATTRS,
    shape=lambda c: _padded_shape(c, -1),
    kernel=traceable(_mirror_pad_grad_kernel, host=_mirror_pad_grad_kernel, static=("paddings",)),
    gradient=_mirror_pad_grad_gradient,
    doc="The adjoint of MirrorPad: every element is added to the one that it is an image of.",
)
