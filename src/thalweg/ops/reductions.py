"""Reductions over axes. Source: TensorFlow's math_ops.cc, reduction_ops_common.h and math_grad.py.

A reduction over nothing gives the neutral element: 0, 1, true, the lowest or highest value, NaN for a mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import GradientFn, NotDifferentiable, OpRecord, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel import checks
from thalweg.kernel.convention import traceable
from thalweg.ops._broadcast import is_float, is_integer
from thalweg.ops._gradient_nodes import add, cast, conj, mul, reduced_shape, truediv
from thalweg.ops._types import NUMBER

_ORDERED = (
    "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, "
    "quint8, qint32, qint16, quint16}"
)
Reduce = Callable[[Any, tuple[int, ...]], Any]


# -- axes ----------------------------------------------------------------------------------------------------


def _reduction_shape(c: ShapeContext) -> list[Shape]:
    shape, axes = c.shape(0), c.value(1)
    keep = c.attr("keep_dims")
    if shape is None:
        return [None]
    if axes is None:
        return [(None,) * len(shape) if keep else None]
    reduced = set()
    for axis in np.asarray(axes).reshape(-1).tolist():
        if not -len(shape) <= axis < len(shape):
            raise ValueError(f"Invalid reduction dimension {axis} for input with {len(shape)} dimensions.")
        reduced.add(axis % len(shape))
    if keep:
        return [tuple(1 if i in reduced else d for i, d in enumerate(shape))]
    return [tuple(d for i, d in enumerate(shape) if i not in reduced)]


def _axes(x: Any, indices: np.ndarray) -> tuple[int, ...]:
    """The axes that reduction_indices name, from 0 up. InvalidArgumentError for one that isn't there."""
    result: list[int] = []
    for axis in np.asarray(indices).reshape(-1).tolist():
        checks.require(
            -x.ndim <= axis < x.ndim,
            lambda axis=axis: f"Invalid reduction dimension ({axis} for input with {x.ndim} dimension(s)",
        )
        at = axis % x.ndim
        checks.require(
            at not in result,
            lambda at=at: f"Invalid reduction arguments: Axes contains duplicate dimension: {at}",
        )
        result.append(at)
    return tuple(sorted(result))


def _reducing(fn: Reduce) -> Callable[..., Any]:
    """A kernel from fn(x, axes)."""

    def kernel(x: Any, indices: np.ndarray, *, keep_dims: bool) -> Any:
        axes = _axes(x, indices)
        result = fn(x, axes)
        return lax.expand_dims(result, axes) if keep_dims and axes else result

    return kernel


def _on_host(fn: Reduce) -> Callable[..., Any]:
    def kernel(x: np.ndarray, indices: np.ndarray, *, keep_dims: bool) -> np.ndarray:
        axes = _axes(x, indices)
        with np.errstate(all="ignore"):
            result = np.asarray(fn(x, axes)).astype(x.dtype, copy=False)
        return np.expand_dims(result, axes) if keep_dims else result

    return kernel


# -- kernels -------------------------------------------------------------------------------------------------


def _is_small_float(x: Any) -> bool:
    return is_float(x) and x.dtype.itemsize == 2


def _reduce(x: Any, neutral: Any, fn: Callable[..., Any], axes: tuple[int, ...]) -> Any:
    """16-bit floats are added up in 32 bits, as in TensorFlow."""
    if not axes:
        return x
    if _is_small_float(x) and fn in (lax.add, lax.mul):
        wide = lax.convert_element_type(x, np.float32)
        return lax.convert_element_type(lax.reduce(wide, np.float32(neutral), fn, axes), x.dtype)
    return lax.reduce(x, np.array(neutral, x.dtype), fn, axes)


def _sum(x: Any, axes: tuple[int, ...]) -> Any:
    return _reduce(x, 0, lax.add, axes)


def _count(x: Any, axes: tuple[int, ...]) -> int:
    return int(np.prod([x.shape[a] for a in axes], dtype=np.int64))


def _mean(x: Any, axes: tuple[int, ...]) -> Any:
    n = _count(x, axes)
    if is_integer(x):  # the sum in 64 bits, the quotient towards zero
        total = _sum(lax.convert_element_type(x, np.uint64 if x.dtype.kind == "u" else np.int64), axes)
        return lax.convert_element_type(lax.div(total, lax.full_like(total, max(n, 1))), x.dtype)
    if _is_small_float(x):
        return lax.convert_element_type(_mean(lax.convert_element_type(x, np.float32), axes), x.dtype)
    total = _sum(x, axes)
    return lax.div(total, lax.full_like(total, n))


def _mean_host(x: np.ndarray, axes: tuple[int, ...]) -> Any:
    n = _count(x, axes)
    if is_integer(x):
        total = np.asarray(np.sum(x, axis=axes, dtype=np.uint64 if x.dtype.kind == "u" else np.int64))
        quotient = np.abs(total) // total.dtype.type(max(n, 1))
        return np.where(total < 0, -quotient, quotient) if x.dtype.kind == "i" else quotient
    wide = np.float32 if _is_small_float(x) else x.dtype
    total = np.asarray(np.sum(x, axis=axes, dtype=wide))
    return total / np.asarray(n).astype(total.dtype)


def _prod(x: Any, axes: tuple[int, ...]) -> Any:
    return _reduce(x, 1, lax.mul, axes)


def _limits(dtype: np.dtype) -> tuple[Any, Any]:
    """What is below and above every value."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.min, info.max
    return -np.inf, np.inf


def _max(x: Any, axes: tuple[int, ...]) -> Any:
    return _reduce(x, _limits(x.dtype)[0], lax.max, axes)


def _min(x: Any, axes: tuple[int, ...]) -> Any:
    return _reduce(x, _limits(x.dtype)[1], lax.min, axes)


def _sum_host(x: np.ndarray, axes: tuple[int, ...]) -> Any:
    return np.sum(x, axis=axes, dtype=np.float32 if _is_small_float(x) else x.dtype)


def _prod_host(x: np.ndarray, axes: tuple[int, ...]) -> Any:
    return np.prod(x, axis=axes, dtype=np.float32 if _is_small_float(x) else x.dtype)


def _max_host(x: Any, axes: tuple[int, ...]) -> Any:
    return np.max(x, axis=axes, initial=_limits(x.dtype)[0])


def _min_host(x: Any, axes: tuple[int, ...]) -> Any:
    return np.min(x, axis=axes, initial=_limits(x.dtype)[1])


def _all(x: Any, axes: tuple[int, ...]) -> Any:
    return _reduce(x, True, lax.bitwise_and, axes)


def _any(x: Any, axes: tuple[int, ...]) -> Any:
    return _reduce(x, False, lax.bitwise_or, axes)


def _norm(x: Any, axes: tuple[int, ...]) -> Any:
    if x.dtype.kind == "c":
        return lax.sqrt(_sum(lax.mul(x, lax.conj(x)), axes))
    if is_integer(x) or _is_small_float(x):
        wide = lax.convert_element_type(x, np.float64 if is_integer(x) else np.float32)
        return lax.convert_element_type(_norm(wide, axes), x.dtype)
    return lax.sqrt(_sum(lax.mul(x, x), axes))


# -- gradients -----------------------------------------------------------------------------------------------


def _sum_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [_spread(emit, op, dy), None]


def _spread(emit: Emitter, op: Operation, dy: Tensor) -> Tensor:
    """dy repeated along the axes that op reduced."""
    x, indices = op._inputs
    axes = emit.known_value(indices)
    shape = x._shape
    if shape is not None and axes is not None:
        if np.array_equal(axes, np.arange(len(shape))):
            dy = emit("Reshape", dy, np.ones(len(shape), np.int32))
            if shapes.is_fully_defined(shape):
                repeats = emit.constant(np.array(shape, np.int32))
            else:
                repeats = emit.shape(x)
            return emit("Tile", dy, repeats)
        if shapes.is_fully_defined(shape):
            dims = np.array(shape, np.int32)
            kept = dims.copy()
            kept[axes.reshape(-1).astype(np.int32)] = 1
            return emit("Tile", emit("Reshape", dy, kept), dims // np.maximum(kept, 1))
    input_shape = emit.shape(x)
    if not op._attrs["keep_dims"]:
        with get_default_graph().colocate_with(input_shape):
            kept_shape = reduced_shape(emit, input_shape, indices)
        dy = emit("Reshape", dy, kept_shape)
    return emit("BroadcastTo", dy, input_shape)


def _mean_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    total = _spread(emit, op, dy)
    x, y = op._inputs[0], op._outputs[0]
    count, left = shapes.num_elements(x._shape), shapes.num_elements(y._shape)
    if count is not None and left is not None:
        factor = emit.constant(np.array(count // max(left, 1)), total._dtype.base_dtype)
        return [truediv(emit, total, factor), None]
    input_shape = emit.shape(x)
    rank = emit.size(input_shape)
    axes = cast(emit, op._inputs[1], rank._dtype)
    axes = emit("FloorMod", add(emit, axes, rank), rank, name="mod")
    sizes = emit("GatherV2", input_shape, axes, 0)
    factor = _product(emit, sizes)
    return [truediv(emit, total, cast(emit, factor, total._dtype)), None]


def _product(emit: Emitter, x: Tensor) -> Tensor:
    """The product of all elements."""
    if x._shape is None:
        axes = emit("Range", 0, emit.rank(x), 1, name="range")
    else:
        axes = emit.constant(np.arange(len(x._shape), dtype=np.int32))
    return emit("Prod", x, axes)


def _extreme_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    """Shared evenly among the elements that equal the extreme."""
    x, indices = op._inputs
    y = op._outputs[0]
    input_shape = emit.shape(x)
    if op._attrs["keep_dims"]:
        kept: Any = emit.shape(y)
    else:
        kept = reduced_shape(emit, input_shape, indices)
        y, dy = emit("Reshape", y, kept), emit("Reshape", dy, kept)
    chosen = cast(emit, emit("Equal", y, x), dy._dtype)
    count = emit("Reshape", emit("Sum", chosen, indices), kept)
    return [mul(emit, truediv(emit, chosen, count), dy), None]


def _prod_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    """The product of the others, by running products from both sides: right at zeros."""
    x, indices = op._inputs
    input_shape = emit.shape(x)
    flat = emit("Reshape", indices, [-1])
    if not op._attrs["keep_dims"]:
        dy = emit("Reshape", dy, reduced_shape(emit, input_shape, indices))
    dy = emit("BroadcastTo", dy, input_shape)
    rank = emit.rank(x)
    flat = cast(emit, flat, rank._dtype)
    reduced = emit("FloorMod", add(emit, flat, rank), rank, name="mod")
    every = emit("Range", 0, rank, 1, name="range")
    other, _ = emit("ListDiff", every, reduced, out_idx=dtypes.int32)
    perm = emit("ConcatV2", [reduced, other], 0, name="concat")
    reduced_count = _product(emit, emit("GatherV2", input_shape, reduced, 0))
    other_count = _product(emit, emit("GatherV2", input_shape, other, 0))
    permuted = emit("Transpose", x, perm, name="transpose")
    permuted_shape = emit.shape(permuted)
    with get_default_graph().name_scope("Reshape") as scope:
        sizes = emit("Pack", [reduced_count, other_count], name="shape")
        matrix = emit("Reshape", permuted, sizes, name=scope)
    left = emit("Cumprod", matrix, 0, exclusive=True)
    right = emit("Cumprod", matrix, 0, exclusive=True, reverse=True)
    others = emit("Reshape", mul(emit, conj(emit, left), conj(emit, right)), permuted_shape)
    back = emit("Transpose", others, emit("InvertPermutation", perm), name="transpose")
    return [emit("Reshape", mul(emit, dy, back), input_shape), None]


def _norm_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    x, indices = op._inputs
    y = op._outputs[0]
    if not op._attrs["keep_dims"]:
        kept = reduced_shape(emit, emit.shape(x), indices)
        y, dy = emit("Reshape", y, kept), emit("Reshape", dy, kept)
    return [truediv(emit, x, truediv(emit, y, dy)), None]


# -- the ops -------------------------------------------------------------------------------------------------


def _define(
    name: str, types: str, fn: Reduce, gradient: GradientFn, doc: str, host: Reduce | None = None
) -> OpRecord:
    return define_op(
        name,
        inputs="input: T, reduction_indices: Tidx",
        outputs="output: T",
        attrs=f"keep_dims: bool = False, T: {types}, Tidx: {{int32, int64}} = int32",
        shape=_reduction_shape,
        kernel=traceable(_reducing(fn), host=host and _on_host(host), static=("reduction_indices",)),
        gradient=gradient,
        doc=doc,
    )


def _define_logic(name: str, fn: Reduce, host: Reduce, doc: str) -> OpRecord:
    return define_op(
        name,
        inputs="input: bool, reduction_indices: Tidx",
        outputs="output: bool",
        attrs="keep_dims: bool = False, Tidx: {int32, int64} = int32",
        shape=_reduction_shape,
        kernel=traceable(_reducing(fn), host=_on_host(host), static=("reduction_indices",)),
        gradient=NotDifferentiable("a truth value"),
        doc=doc,
    )


_define("Sum", NUMBER, _sum, _sum_gradient, "The sum over axes.", _sum_host)
_define("Mean", NUMBER, _mean, _mean_gradient, "The mean over axes; of integers towards zero.", _mean_host)
_define("Prod", NUMBER, _prod, _prod_gradient, "The product over axes.", _prod_host)
_define("Max", _ORDERED, _max, _extreme_gradient, "The largest over axes; NaN wins.", _max_host)
_define("Min", _ORDERED, _min, _extreme_gradient, "The smallest over axes; NaN wins.", _min_host)
_define("EuclideanNorm", NUMBER, _norm, _norm_gradient, "The root of the sum of squares over axes.")
_define_logic("All", _all, lambda x, axes: np.all(x, axis=axes), "Whether all hold, over axes.")
_define_logic("Any", _any, lambda x, axes: np.any(x, axis=axes), "Whether one holds, over axes.")


# -- where the extremes are ----------------------------------------------------------------------------------


def _arg_shape(c: ShapeContext) -> list[Shape]:
    shape, axis = c.shape(0), c.value(1)
    if shape is None:
        return [None]
    if axis is None:
        return [(None,) * (len(shape) - 1)]
    at = int(axis)
    if not -len(shape) <= at < len(shape):
        raise ValueError(
            f"Dimension ({at}) must be in the range [{-len(shape)}, {len(shape)}), where "
            f"{len(shape)} is the number of dimensions in the input."
        )
    at %= len(shape)
    return [shape[:at] + shape[at + 1 :]]


def _arg_axis(x: Any, dimension: np.ndarray) -> int:
    at = int(np.asarray(dimension).reshape(()))
    checks.require(
        -x.ndim <= at < x.ndim, lambda: f"Expected dimension in the range [{-x.ndim}, {x.ndim}), but got {at}"
    )
    at %= x.ndim
    checks.require(
        x.shape[at] > 0,
        lambda: f"Reduction axis {at} is empty in shape {shapes.format_shape(tuple(x.shape))}",
    )
    return at


def _arg(fn: Callable[..., Any], worst: float) -> Callable[..., Any]:
    """The first position of the extreme. NaN never is it, as in TensorFlow: all NaN gives 0."""

    def kernel(x: Any, dimension: np.ndarray, *, output_type: np.dtype) -> Any:
        at = _arg_axis(x, dimension)
        if x.dtype == np.bool_:
            x = lax.convert_element_type(x, np.int8)
        elif is_float(x):
            x = lax.select(lax.ne(x, x), lax.full_like(x, worst), x)
        return lax.convert_element_type(fn(x, at, np.dtype(np.int32)), output_type)

    return kernel


def _arg_host(fn: Callable[..., Any], worst: float) -> Callable[..., Any]:
    def kernel(x: np.ndarray, dimension: np.ndarray, *, output_type: np.dtype) -> np.ndarray:
        at = _arg_axis(x, dimension)
        if is_float(x):
            x = np.where(np.isnan(x), np.array(worst, x.dtype), x)
        return np.asarray(fn(x, axis=at)).astype(output_type)

    return kernel


def _define_arg(
    name: str,
    fn: Callable[..., Any],
    host: Callable[..., Any],
    worst: float,
    index: str,
    output: str,
    doc: str,
) -> OpRecord:
    return define_op(
        name,
        inputs="input: T, dimension: Tidx",
        outputs="output: output_type",
        attrs=f"T: {_ORDERED[:-1]}, bool}}, Tidx: {index} = int32, output_type: {output} = int64",
        shape=_arg_shape,
        kernel=traceable(_arg(fn, worst), host=_arg_host(host, worst), static=("dimension",)),
        gradient=NotDifferentiable("positions"),
        doc=doc,
    )


_define_arg(
    "ArgMax",
    lax.argmax,
    np.argmax,
    -np.inf,
    "{int16, int32, int64}",
    "{int16, uint16, int32, int64}",
    "The first position of the largest along an axis.",
)
_define_arg(
    "ArgMin",
    lax.argmin,
    np.argmin,
    np.inf,
    "{int32, int64}",
    "{int32, int64}",
    "The first position of the smallest along an axis.",
)
