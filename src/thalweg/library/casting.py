"""Changes of element type."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import map_values, scope


def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """x with elements of `dtype`: a Tensor, SparseTensor or IndexedSlices, as x is.

    Floats become integers by cutting towards zero. A tensor of that type already is returned as it is.
    """
    target = dtypes.as_dtype(dtype).base_dtype
    if isinstance(x, Tensor) and x.dtype == target:
        return x
    with scope(name, "Cast") as named:

        def of_values(values: Any) -> Tensor:
            values = convert_to_tensor(values, name="x")
            if values.dtype.is_complex and target.is_floating:
                warnings.warn(
                    f"Casting {values.dtype.name} to {target.name} discards the imaginary part of "
                    f"'{values.name}'."
                )
            if values.dtype.base_dtype == target:
                return values
            return emit("Cast", values, DstT=target, name=named)

        return map_values(of_values, x)


def to_float(x: Any, name: str | None = "ToFloat") -> Any:
    """x as float32."""
    return cast(x, dtypes.float32, name=name)


def to_double(x: Any, name: str | None = "ToDouble") -> Any:
    """x as float64."""
    return cast(x, dtypes.float64, name=name)


def to_int32(x: Any, name: str | None = "ToInt32") -> Any:
    """x as int32."""
    return cast(x, dtypes.int32, name=name)


def to_int64(x: Any, name: str | None = "ToInt64") -> Any:
    """x as int64."""
    return cast(x, dtypes.int64, name=name)


def to_bfloat16(x: Any, name: str | None = "ToBFloat16") -> Any:
    """x as bfloat16."""
    return cast(x, dtypes.bfloat16, name=name)


def to_complex64(x: Any, name: str | None = "ToComplex64") -> Any:
    """x as complex64."""
    return cast(x, dtypes.complex64, name=name)


def to_complex128(x: Any, name: str | None = "ToComplex128") -> Any:
    """x as complex128."""
    return cast(x, dtypes.complex128, name=name)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """value cast to `dtype`, with what lies outside its range brought to its ends first."""
    with scope(name, "saturate_cast") as named:
        value = convert_to_tensor(value, name="value")
        target = dtypes.as_dtype(dtype).base_dtype
        source = value.dtype.base_dtype
        if _exact(source.min) < _exact(target.min):
            value = emit("Maximum", value, emit.constant(_inside(target.min, source, up=True), source, "min"))
        if _exact(source.max) > _exact(target.max):
            value = emit(
                "Minimum", value, emit.constant(_inside(target.max, source, up=False), source, "max")
            )
        return cast(value, target, name=named)


def _exact(limit: Any) -> Any:
    """A limit of an element type as a Python number, for comparisons that lose no bit."""
    limit = np.asarray(limit)
    return float(limit) if limit.dtype.kind not in "iub" else int(limit)


def _inside(limit: Any, source: dtypes.DType, *, up: bool) -> Any:
    """The value of type `source` nearest to `limit` on its inner side: float32(2**31 - 1) would lie
    outside."""
    kind = source.as_numpy_dtype
    value = kind(_exact(limit))
    if source.is_floating and math.isfinite(float(value)):
        exact = _exact(limit)
        if (up and float(value) < exact) or (not up and float(value) > exact):
            value = np.nextafter(value, kind(0), dtype=kind)
    return value


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """The same bytes read as elements of `type`; the last axis grows or goes where the sizes differ."""
    return emit("Bitcast", input, type=dtypes.as_dtype(type).base_dtype, name=name)
