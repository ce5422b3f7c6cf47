"""Changing element types: by value (Cast) and by bits (Bitcast). Source: TensorFlow's cast_op.cc.

Where TensorFlow's result is whatever the processor does (floats that don't fit an int32 or int64, NaN as an
integer), thalweg gives the nearest integer there is, and 0 for NaN, on every device and on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

from thalweg.base.errors import UnimplementedError
from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext, constant_value_as_shape, shape_value_of_scalar
from thalweg.kernel import checks
from thalweg.kernel.convention import traceable
from thalweg.ops._broadcast import is_float, is_integer, same_shape

_MANTISSA_BITS = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}


def _require_numbers(source: np.dtype, target: np.dtype) -> None:
    names = ["string" if d.kind == "O" else d.name for d in (source, target)]
    checks.require(
        "string" not in names or names[0] == names[1],
        lambda: f"Cast {names[0]} to {names[1]} is not supported",
        error=UnimplementedError,
    )


def _through(target: np.dtype) -> np.dtype | None:
    """The type through which floats become small integers, whose high bits are then cut: as TensorFlow."""
    if target.kind in "iu" and target.itemsize < 4:
        return np.dtype(np.int32)
    return np.dtype(np.int64) if target == np.uint32 else None


def _cast(x: Any, *, DstT: np.dtype, Truncate: bool) -> Any:
    _require_numbers(np.dtype(x.dtype), DstT)
    if x.dtype == DstT:
        return x
    if x.dtype.kind == "c" and DstT.kind != "c":
        x = lax.real(x)
    if DstT == np.bool_:
        return lax.ne(x, lax.full_like(x, 0))
    if x.dtype == np.bool_ and DstT.kind not in "iu":
        # a plain conversion lets XLA turn mask * y into select(mask, y, 0), which loses NaN and infinity
        return lax.select(x, lax.full_like(x, 1, DstT), lax.full_like(x, 0, DstT))
    between = _through(DstT)
    if is_float(x) and between is not None:
        x = lax.convert_element_type(x, between)
    if Truncate and is_float(x) and DstT.name in _MANTISSA_BITS:
        x = _cut_mantissa(x, DstT)
    return lax.convert_element_type(x, DstT)


def _cut_mantissa(x: Any, target: np.dtype) -> Any:
    """x with the mantissa bits that `target` has no room for set to zero: rounding towards zero."""
    drop = _MANTISSA_BITS[x.dtype.name] - _MANTISSA_BITS[target.name]
    if drop <= 0:
        return x
    bits = np.dtype(f"uint{x.dtype.itemsize * 8}")
    mask = np.array((1 << bits.itemsize * 8) - (1 << drop), bits)
    if isinstance(x, np.ndarray):
        return (x.view(bits) & mask).view(x.dtype)
    kept = lax.bitwise_and(lax.bitcast_convert_type(x, bits), lax.full_like(x, mask, bits))
    return lax.bitcast_convert_type(kept, x.dtype)


def _cast_host(x: np.ndarray, *, DstT: np.dtype, Truncate: bool) -> np.ndarray:
    _require_numbers(x.dtype, DstT)
    if x.dtype == DstT:
        return x
    if x.dtype.kind == "c" and DstT.kind != "c":
        x = x.real
    if DstT == np.bool_:
        return np.asarray(x != 0)
    if is_float(x) and is_integer(np.empty(0, DstT)):
        return _float_to_integer(x, DstT)
    if Truncate and is_float(x) and DstT.name in _MANTISSA_BITS:
        x = _cut_mantissa(x, DstT)
    with np.errstate(all="ignore"):
        return x.astype(DstT)


def _float_to_integer(x: np.ndarray, target: np.dtype) -> np.ndarray:
    """Towards zero; what doesn't fit becomes the nearest integer there is, NaN 0: as XLA converts."""
    whole = _through(target) or target
    limits = np.iinfo(whole)
    values = x.astype(np.float64)
    low, high = values <= float(limits.min), values >= float(limits.max)
    inside = np.where(low | high | np.isnan(values), 0.0, values).astype(whole)
    inside = np.where(low, limits.min, np.where(high, limits.max, inside)).astype(whole)
    return np.asarray(inside.astype(target))


def _cast_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    source = op._inputs[0]._dtype.base_dtype
    if all(d.is_floating or d.is_complex for d in (source, dy._dtype)):
        return [dy if dy._dtype.base_dtype == source else emit("Cast", dy, DstT=source)]
    return [None]


def _cast_shape_value(op: Operation) -> Shape:
    x = op._inputs[0]
    if not x._dtype.is_integer or x._shape is None:
        return None
    if len(x._shape) == 0:
        return (shape_value_of_scalar(x),)
    return constant_value_as_shape(x)


cast = define_op(
    "Cast",
    inputs="x: SrcT",
    outputs="y: DstT",
    attrs="SrcT: type, DstT: type, Truncate: bool = False",
    shape=same_shape,
    kernel=traceable(_cast, host=_cast_host),
    gradient=_cast_gradient,
    shape_value=_cast_shape_value,
    doc="x as another element type: floats to integers towards zero, anything to bool as `x != 0`.",
)


# -- Bitcast -------------------------------------------------------------------------------------------------

_BITS = (
    "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, "
    "complex128, qint8, quint8, qint16, quint16, qint32}"
)


def _bitcast_shape(c: ShapeContext) -> list[Shape]:
    shape = c.shape(0)
    size, wanted = c.dtype(0).size, c.attr("type").size
    if shape is None or size == wanted:
        return [shape]
    if size > wanted:
        return [(*shape, size // wanted)]
    ratio = wanted // size
    if not shape or shape[-1] not in (None, ratio):
        raise ValueError(
            f"Cannot bitcast due to shape. {shape[-1] if shape else 'A scalar'} does not match {ratio}"
        )
    return [shape[:-1]]


def _bitcast(x: Any, *, type: np.dtype) -> Any:
    if isinstance(x, np.ndarray):
        return _bitcast_host(x, type=type)
    if x.dtype.kind == "c":
        parts = [lax.expand_dims(p, (x.ndim,)) for p in (lax.real(x), lax.imag(x))]
        x = lax.concatenate(parts, x.ndim)
    if type.kind == "c":
        half = np.dtype(f"float{type.itemsize * 4}")
        if x.dtype.itemsize < half.itemsize:  # [..., n] small ones: first [..., 2, n / 2], then two parts
            x = lax.reshape(x, (*x.shape[:-1], 2, x.shape[-1] // 2))
        x = lax.bitcast_convert_type(x, half)
        if x.ndim and x.shape[-1] != 2:
            x = lax.reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
        real, imag = (lax.index_in_dim(x, i, -1, keepdims=False) for i in (0, 1))
        return lax.complex(real, imag)
    return _regroup(x, type)


def _regroup(x: Any, type: np.dtype) -> Any:
    if x.dtype.itemsize < type.itemsize and x.shape[-1] * x.dtype.itemsize != type.itemsize:
        ratio = type.itemsize // x.dtype.itemsize
        x = lax.reshape(x, (*x.shape[:-1], x.shape[-1] // ratio, ratio))
    return lax.bitcast_convert_type(x, type)


def _bitcast_host(x: np.ndarray, *, type: np.dtype) -> np.ndarray:
    x = np.ascontiguousarray(x).reshape(x.shape)
    if x.dtype.itemsize == type.itemsize:
        return x.view(type)
    if x.dtype.itemsize > type.itemsize:
        return x.reshape((*x.shape, 1)).view(type)
    return x.view(type).reshape(x.shape[:-1])


bitcast = define_op(
    "Bitcast",
    inputs="input: T",
    outputs="output: type",
    attrs=f"T: {_BITS}, type: {_BITS}",
    shape=_bitcast_shape,
    kernel=traceable(_bitcast, host=_bitcast_host),
    gradient=NotDifferentiable("bits, not numbers"),
    doc="The same bits read as another type; the last axis appears or goes where sizes differ.",
)
