"""StridedSlice (Python's x[a:b:c, i, ..., newaxis]) and its adjoint. Source: TensorFlow's array_ops.cc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext, constant_value, constant_value_as_shape
from thalweg.kernel import checks
from thalweg.kernel.convention import traceable
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, ints, is_host, shape_text
from thalweg.ops._strided import Masks, Plan, needs_begin, needs_end, resolve

_MASKS = (
    "begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, "
    "shrink_axis_mask: int = 0"
)
_MASK_NAMES = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _masks_of(op: Operation) -> Masks:
    return Masks(*(op._attrs[name] for name in _MASK_NAMES))


def _static_bounds(op: Operation, first: int) -> tuple[str, ...]:
    """The inputs whose values decide the shape of the result: not the index in x[i]."""
    strides = op._inputs[first + 2]._shape
    if strides is None or strides[0] is None:
        return ("begin", "end", "strides")
    masks, count = _masks_of(op), strides[0]
    names = ["strides"]
    if needs_begin(count, masks):
        names.append("begin")
    if needs_end(count, masks):
        names.append("end")
    return tuple(names)


def _index_may_fail(op: Operation, first: int) -> bool:
    """Whether an index is computed by the step: known ones are looked at before it runs."""
    return op._attrs["shrink_axis_mask"] != 0 and constant_value(op._inputs[first]) is None


def _strided_slice_shape(c: ShapeContext) -> list[Shape]:
    begin, end, strides = (c.value(i) for i in (1, 2, 3))
    s = c.shape(0)
    bounds: Shape = None
    for i in (1, 2, 3):
        bounds = shapes.merge(bounds, c.with_rank(i, 1))
    if s is None or strides is None:
        return [None]
    plan = resolve(
        s,
        None if begin is None else ints(begin),
        None if end is None else ints(end),
        ints(strides),
        _masks_of(c.op),
    )
    return [plan.output_shape()]


def _strided_slice_value(op: Operation) -> Shape:
    known = constant_value_as_shape(op._inputs[0])
    begin, end, strides = (constant_value(t) for t in op._inputs[1:])
    masks = _masks_of(op)
    if known is None or begin is None or end is None or strides is None:
        return None
    if masks.new_axis or begin.size != 1:
        return None
    try:
        r = resolve((len(known),), ints(begin), ints(end), ints(strides), masks).ranges[0]
    except ValueError:
        return None
    assert r.size is not None
    return tuple(known[r.begin + i * r.step] for i in range(r.size))


def plan_or_fail(shape: Sequence[int], begin: Any, end: Any, strides: Any, masks: Masks) -> Plan:
    """The plan of a slice; bounds that aren't known yet (traced) are left open. InvalidArgumentError."""
    b, e = (ints(v) if is_host(v) else None for v in (begin, end))
    if b is None and e is not None:
        e = None
    if b is not None and e is None:
        e = [0] * len(b)  # of no effect: every element is masked, or the end of an index
    try:
        return resolve(shape, b, e, ints(strides), masks)
    except ValueError as error:
        text = str(error)
        fail_unless(False, lambda: text)
        raise


def _traced_index(begin: Any, position: int, n: int, dim: int) -> Any:
    """An index that the step computes, from the front, checked."""
    i = lax.index_in_dim(begin, position, keepdims=False)
    at = jnp.where(i < 0, i + n, i)
    checks.require(
        (at >= 0) & (at < n), lambda bad: f"slice index {bad} of dimension {dim} out of bounds.", i
    )
    return jnp.clip(at, 0, max(n - 1, 0))


def _strided_slice_kernel(
    x: Any,
    begin: Any,
    end: Any,
    strides: Any,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Any:
    shape = np.shape(x)
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    plan = plan_or_fail(shape, begin, end, strides, masks)
    for dim, r in enumerate(plan.ranges):
        if r.begin is None and r.shrink:  # an index known only when the step runs
            at = _traced_index(begin, r.position or 0, shape[dim], dim)
            if shape[dim]:
                x = lax.dynamic_slice_in_dim(x, at, 1, dim)
            else:
                x = jnp.zeros((*np.shape(x)[:dim], 1, *np.shape(x)[dim + 1 :]), x.dtype)
            r.begin = 0
    start, limit, step, flip = [], [], [], []
    for dim, r in enumerate(plan.ranges):
        size = r.size or 0
        last = r.begin + (size - 1) * r.step
        low, high = (r.begin, last) if r.step > 0 else (last, r.begin)
        start.append(low if size else 0)
        limit.append(high + 1 if size else 0)
        step.append(abs(r.step))
        if r.step < 0:
            flip.append(dim)
    if start != [0] * len(start) or limit != list(np.shape(x)) or any(s != 1 for s in step):
        x = arrays.strided(x, start, limit, step)
    return arrays.reshape(arrays.reverse(x, flip), plan.output_shape())  # type: ignore[arg-type]


def _known_or(emit: Emitter, tensor: Tensor) -> Any:
    known = emit.known_value(tensor)
    return tensor if known is None else known


def _strided_slice_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    x, *bounds = op.inputs
    shape = emit.shape(x, out_type=bounds[0]._dtype.base_dtype)
    masks = {name: op._attrs[name] for name in _MASK_NAMES}
    values = [_known_or(emit, t) for t in (shape, *bounds)]
    return [emit("StridedSliceGrad", *values, dy, **masks), None, None, None]


define_op(
    "StridedSlice",
    inputs="input: T, begin: Index, end: Index, strides: Index",
    outputs="output: T",
    attrs=f"T: type, Index: {{int16, int32, int64}}, {_MASKS}",
    shape=_strided_slice_shape,
    kernel=traceable(
        _strided_slice_kernel,
        host=_strided_slice_kernel,
        static=lambda op: _static_bounds(op, 1),
        may_fail=lambda op: _index_may_fail(op, 1),
    ),
    gradient=_strided_slice_gradient,
    shape_value=_strided_slice_value,
    doc="Python's x[begin:end:strides], with bit masks for what is left out, indices, ellipsis and new axes.",
)


def _strided_slice_grad_kernel(
    shape: Any,
    begin: Any,
    end: Any,
    strides: Any,
    dy: Any,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Any:
    target = ints(shape)
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    plan = plan_or_fail(target, begin, end, strides, masks)
    wanted = plan.output_shape()
    fail_unless(
        tuple(np.shape(dy)) == wanted,
        lambda: f"shape of dy was {shape_text(np.shape(dy))} instead of {shape_text(wanted)}",  # type: ignore[arg-type]
    )
    low, high, gaps, flip = [], [], [], []
    places: dict[int, Any] = {}
    for dim, (r, n) in enumerate(zip(plan.ranges, target, strict=True)):
        size = r.size or 0
        if r.begin is None:
            places[dim] = _traced_index(begin, r.position or 0, n, dim)
            low.append(0)
            high.append(0)
            gaps.append(0)
            continue
        ends = (r.begin, r.begin + (size - 1) * r.step)
        low.append(min(ends) if size else 0)
        high.append(n - 1 - max(ends) if size else n)
        gaps.append(abs(r.step) - 1)
        if r.step < 0:
            flip.append(dim)
    dy = arrays.reverse(arrays.reshape(dy, [r.size or 0 for r in plan.ranges]), flip)
    result = arrays.pad(dy, arrays.zero(dy.dtype), low, high, gaps)
    if not places or 0 in target:
        return result if not places else lax.full(target, 0, dy.dtype)
    starts = [places.get(dim, np.int32(0)) for dim in range(len(target))]
    starts = [lax.convert_element_type(s, jnp.int64) for s in starts]
    return lax.dynamic_update_slice(lax.full(target, 0, dy.dtype), result, starts)


def _strided_slice_grad_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    masks = {name: op._attrs[name] for name in _MASK_NAMES}
    _, begin, end, strides, _ = op.inputs
    return [None, None, None, None, emit("StridedSlice", dy, begin, end, strides, **masks)]


define_op(
    "StridedSliceGrad",
    inputs="shape: Index, begin: Index, end: Index, strides: Index, dy: T",
    outputs="output: T",
    attrs=f"T: type, Index: {{int32, int64}}, {_MASKS}",
    shape=lambda c: [c.value_as_shape(0)],
    kernel=traceable(
        _strided_slice_grad_kernel,
        host=_strided_slice_grad_kernel,
        static=lambda op: ("shape", *_static_bounds(op, 1)),
        may_fail=lambda op: _index_may_fail(op, 1),
    ),
    gradient=_strided_slice_grad_gradient,
    doc="dy put where a strided slice of a tensor of this shape took its elements from; zero elsewhere.",
)
