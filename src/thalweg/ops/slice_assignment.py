"""StridedSliceAssign: `v[a:b:c].assign(value)`. Source: TensorFlow's array_ops.cc."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import update
from thalweg.ops._arrays import fail_unless, ints, shape_text
from thalweg.ops._handles import NO_GRADIENT, behind
from thalweg.ops._strided import Masks, Range, resolve

_ATTRS = (
    "T: type, Index: {int32, int64}, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, "
    "new_axis_mask: int = 0, shrink_axis_mask: int = 0"
)


def _shape(c: ShapeContext) -> list[Shape]:
    for i in (1, 2, 3):
        c.with_rank(i, 1)
    whole = behind(c, 0)[1]
    begin, end, strides = (c.value(i) for i in (1, 2, 3))
    if whole is not None and None not in whole and not any(v is None for v in (begin, end, strides)):
        masks = Masks(*(c.attr(f"{n}_mask") for n in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")))
        part = resolve(whole, ints(begin), ints(end), ints(strides), masks).output_shape()
        if c.shape(4) != ():
            shapes.merge(part, c.shape(4))
    return [whole] if c.op._outputs else []


def _index(r: Range, n: int) -> Any:
    if r.shrink:
        return r.begin
    assert r.size is not None
    stop = r.begin + r.size * r.step
    return slice(r.begin, None if stop < 0 else stop, r.step)


def _kernel(
    old: Any,
    begin: Any,
    end: Any,
    strides: Any,
    value: Any,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Any:
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    plan = resolve(old.shape, ints(begin), ints(end), ints(strides), masks)
    part = tuple(d for d in plan.output_shape() if d is not None)
    fail_unless(
        value.shape in (part, ()),
        lambda: f"the slice has shape {shape_text(part)}, the value {shape_text(value.shape)}",
    )
    index = tuple(_index(r, n) for r, n in zip(plan.ranges, old.shape, strict=True))
    inner = tuple(r.size for r in plan.ranges if not r.shrink)
    return jnp.asarray(old).at[index].set(jnp.broadcast_to(value, part).reshape(inner))


for _prefix, _ref, _outputs in (("", "Ref(T)", "output_ref: Ref(T)"), ("Resource", "resource", "")):
    define_op(
        f"{_prefix}StridedSliceAssign",
        inputs=f"ref: {_ref}, begin: Index, end: Index, strides: Index, value: T",
        outputs=_outputs,
        attrs=_ATTRS,
        shape=_shape,
        kernel=update(_kernel, writes=("ref",), static=("begin", "end", "strides")),
        stateful=_prefix == "Resource",
        gradient=NO_GRADIENT,
        doc="Puts a value (or one number) in place of a strided slice of a variable; the rest stays.",
    )
