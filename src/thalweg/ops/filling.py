"""Tensors made from few values: Fill, ZerosLike, OneHot, Range, LinSpace.

Source: TensorFlow's array_ops.cc, sequence_ops.cc, one_hot_op.cc.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jax import lax

from thalweg.base.shape import Shape
from thalweg.graph.operation import Operation
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext, shape_value_of_scalar
from thalweg.kernel.convention import traceable
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, ints, is_host, shape_text
from thalweg.ops._types import FLOATS, INDEX

_CONSTANT = NotDifferentiable("the values do not depend on the input")


def _fill_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 1)
    known = c.value(0)
    if known is not None and (known < 0).any():
        raise ValueError(f"Fill dimensions must be >= 0, got {known.tolist()}")
    return [c.value_as_shape(0)]


def _fill_kernel(dims: Any, value: Any) -> Any:
    target = ints(dims)
    fail_unless(np.ndim(value) == 0, lambda: f"value must be a scalar, got {shape_text(np.shape(value))}")
    for i, d in enumerate(target):
        fail_unless(d >= 0, lambda i=i, d=d: f"Dimension {i} of dims must be >= 0, got {d}")
    return arrays.broadcast_to(value, target)


def _fill_value(op: Operation) -> Shape:
    n = op._outputs[0]._shape
    if n is None or len(n) != 1 or n[0] is None:
        return None
    return (shape_value_of_scalar(op._inputs[1]),) * n[0]


define_op(
    "Fill",
    inputs="dims: index_type, value: T",
    outputs="output: T",
    attrs=f"T: type, index_type: {INDEX} = int32",
    shape=_fill_shape,
    kernel=traceable(_fill_kernel, host=_fill_kernel, static=("dims",)),
    gradient=lambda emit, op, dy: [None, emit("Sum", dy, _all_axes(emit, dy))],
    shape_value=_fill_value,
    doc="A tensor of this shape that holds one value.",
)


def _all_axes(emit: Any, x: Any) -> Any:
    if x._shape:
        return emit.constant(np.arange(len(x._shape), dtype=np.int32), name="Const")
    return emit("Range", 0, emit.rank(x), 1, name="range")


def _zeros_like_kernel(x: Any) -> Any:
    return arrays.full(np.shape(x), arrays.zero(x.dtype)[()], x.dtype, x)


def _ones_like_kernel(x: Any) -> Any:
    return arrays.full(np.shape(x), np.ones((), x.dtype)[()], x.dtype, x)


define_op(
    "ZerosLike",
    inputs="x: T",
    outputs="y: T",
    attrs="T: type",
    shape=lambda c: [c.shape(0)],
    kernel=traceable(_zeros_like_kernel, host=_zeros_like_kernel),
    gradient=_CONSTANT,
    doc="Zeros (empty strings) in the shape of x.",
)

define_op(
    "OnesLike",
    inputs="x: T",
    outputs="y: T",
    attrs="T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, "
    "complex64, complex128, bool}",
    shape=lambda c: [c.shape(0)],
    kernel=traceable(_ones_like_kernel, host=_ones_like_kernel),
    gradient=_CONSTANT,
    doc="Ones in the shape of x.",
)


def _one_hot_axis(axis: int, rank: int) -> int:
    if not -1 <= axis <= rank:
        raise ValueError(f"axis must be in [-1, {rank}] for indices of rank {rank}, got {axis}")
    return rank if axis == -1 else axis


def _one_hot_shape(c: ShapeContext) -> list[Shape]:
    s, depth = c.shape(0), c.value(1)
    for i in (1, 2, 3):
        c.with_rank(i, 0)
    if depth is not None and depth < 0:
        raise ValueError(f"depth must be non-negative, got: {depth}")
    if s is None:
        return [None]
    axis = _one_hot_axis(c.attr("axis"), len(s))
    return [(*s[:axis], None if depth is None else int(depth), *s[axis:])]


def _one_hot_kernel(indices: Any, depth: Any, on_value: Any, off_value: Any, *, axis: int) -> Any:
    s, n = tuple(np.shape(indices)), int(depth)
    fail_unless(n >= 0, lambda: f"depth must be non-negative, got: {n}")
    at = len(s) if axis == -1 else axis
    wide = np.int64 if indices.dtype == np.int64 else np.int32
    if is_host(indices):
        indices = np.asarray(indices).astype(wide)
    else:
        indices = lax.convert_element_type(indices, wide)
    out = (*s[:at], n, *s[at:])
    places = np.arange(n, dtype=wide).reshape((n, *[1] * (len(s) - at)))
    spread = arrays.broadcast_to(arrays.reshape(indices, (*s[:at], 1, *s[at:])), out)
    hot = spread == arrays.broadcast_to(places, out)
    return arrays.select(hot, on_value, off_value, out)


define_op(
    "OneHot",
    inputs="indices: TI, depth: int32, on_value: T, off_value: T",
    outputs="output: T",
    attrs="axis: int = -1, T: type, TI: {uint8, int8, int32, int64} = int64",
    shape=_one_hot_shape,
    kernel=traceable(_one_hot_kernel, host=_one_hot_kernel, static=("depth",)),
    gradient=NotDifferentiable("indices are integers"),
    doc="on_value where the position along a new dimension is the index, off_value elsewhere.",
)


def _range_size(start: Any, limit: Any, delta: Any) -> int:
    """The number of elements. ValueError, in TensorFlow's words, where there is none."""
    if delta == 0:
        raise ValueError(f"Requires delta != 0: {delta}")
    if delta > 0 and start > limit:
        raise ValueError(f"Requires start <= limit when delta > 0: {start}/{limit}")
    if delta < 0 and start < limit:
        raise ValueError(f"Requires start >= limit when delta < 0: {start}/{limit}")
    if isinstance(start, int):
        return -((start - limit) // delta) if delta > 0 else -((limit - start) // -delta)
    return math.ceil(abs((limit - start) / delta))


def _range_values(values: list[Any]) -> list[Any]:
    """Python numbers: no overflow of small types."""
    return [np.asarray(v).reshape(()).item() for v in values]


def _range_shape(c: ShapeContext) -> list[Shape]:
    for i in range(3):
        c.with_rank(i, 0)
    values = [c.value(i) for i in range(3)]
    if any(v is None for v in values):
        return [(None,)]
    return [(_range_size(*_range_values(values)),)]


def _range_kernel(start: Any, limit: Any, delta: Any) -> np.ndarray:
    dtype = np.asarray(start).dtype
    first, last, step = _range_values([start, limit, delta])
    try:
        n = _range_size(first, last, step)
    except ValueError as error:
        text = str(error)
        fail_unless(False, lambda: text)
        raise
    if dtype.kind in "iu":
        return np.array(range(first, first + n * step, step), dtype) if n else np.zeros(0, dtype)
    counted = np.arange(n).astype(dtype) * np.asarray(delta).reshape(()) + np.asarray(start).reshape(())
    return np.asarray(counted).astype(dtype)


define_op(
    "Range",
    inputs="start: Tidx, limit: Tidx, delta: Tidx",
    outputs="output: Tidx",
    attrs="Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = int32",
    shape=_range_shape,
    kernel=traceable(_range_kernel, host=_range_kernel, static=("start", "limit", "delta")),
    gradient=NotDifferentiable("as TensorFlow has it"),
    doc="start, start + delta ... up to but without limit.",
)


def _lin_space_shape(c: ShapeContext) -> list[Shape]:
    for i in range(3):
        c.with_rank(i, 0)
    n = c.value(2)
    if n is not None and n <= 0:
        raise ValueError(f"Requires num > 0: {n}")
    return [(None if n is None else int(n),)]


def _lin_space_kernel(start: Any, stop: Any, num: Any) -> Any:
    n, dtype = int(num), start.dtype
    fail_unless(n > 0, lambda: f"Requires num > 0: {n}")
    if n == 1:
        return arrays.reshape(start, (1,))
    # TensorFlow's order of operations; the last value is stop itself
    step = (stop - start) / np.asarray(n - 1, dtype)
    at = np.arange(n - 1).astype(dtype)
    parts = [at * step + start, arrays.reshape(stop, (1,))]
    return arrays.concatenate(parts, 0)


define_op(
    "LinSpace",
    inputs="start: T, stop: T, num: Tidx",
    outputs="output: T",
    attrs=f"T: {FLOATS}, Tidx: {INDEX} = int32",
    shape=_lin_space_shape,
    kernel=traceable(_lin_space_kernel, host=_lin_space_kernel, static=("num",)),
    gradient=NotDifferentiable("as TensorFlow has it"),
    doc="num values from start to stop, both included, evenly apart.",
)

