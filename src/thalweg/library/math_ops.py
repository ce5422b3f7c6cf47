"""Arithmetic beyond one op: what depends on element types, has old names, or is made of several nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.graph.composite import IndexedSlices, SparseTensor
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import convert_pair, map_values, require_same_dtype, scope
from thalweg.library.casting import cast

#: the type in which `/` divides: None stays as it is (Python 3's division: integers become floats)
_TRUE_DIVISION: dict[DType, DType | None] = {
    dtypes.uint8: dtypes.float32,
    dtypes.int8: dtypes.float32,
    dtypes.uint16: dtypes.float32,
    dtypes.int16: dtypes.float32,
    dtypes.uint32: dtypes.float64,
    dtypes.int32: dtypes.float64,
    dtypes.uint64: dtypes.float64,
    dtypes.int64: dtypes.float64,
    dtypes.bfloat16: None,
    dtypes.float16: None,
    dtypes.float32: None,
    dtypes.float64: None,
    dtypes.complex64: None,
    dtypes.complex128: None,
}


# ---- sums, products, quotients -------------------------------------------------------------------------


def add(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x + y, elementwise with broadcasting; strings are joined."""
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        return emit("Add" if x.dtype.base_dtype == dtypes.string else "AddV2", x, y, name=name or "Add")
    with scope(name, "Add") as named:
        x, y = convert_pair(x, y)
        return emit("Add" if x.dtype.base_dtype == dtypes.string else "AddV2", x, y, name=named)


def subtract(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x - y, elementwise with broadcasting."""
    return emit("Sub", x, y, name=name)


def multiply(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x times y, elementwise with broadcasting."""
    return emit("Mul", x, y, name=name)


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """A scalar times a tensor or IndexedSlices. ValueError where `scalar` is not one."""
    scalar = convert_to_tensor(scalar, dtypes.as_dtype(x.dtype).base_dtype, name="scalar")
    if scalar._shape is not None and scalar._shape != ():
        raise ValueError(f"scalar_mul takes a scalar, got shape {shapes.format_shape(scalar._shape)}")
    return map_values(lambda values: emit("Mul", scalar, values, name=name), x)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as Python 3 divides: integers give floats."""
    if name is None and not isinstance(x, Tensor):
        x = convert_to_tensor(x, y.dtype.base_dtype if isinstance(y, Tensor) else None)
    return truediv(x, y, name)


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as Python 3 divides: integers of up to 16 bits give float32, others float64.

    Errors: TypeError where the element types differ or can't be divided.
    """
    with scope(name, "truediv") as named:
        x, y = _divisible(x, y)
        return emit("RealDiv", x, y, name=named)


def _divisible(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    x, y = convert_pair(x, y)
    kind = require_same_dtype(x, y)
    if kind not in _TRUE_DIVISION:
        raise TypeError(f"Invalid dtype {kind!r} for true division; it takes numbers.")
    through = _TRUE_DIVISION[kind]
    if through is not None:
        x, y = cast(x, through), cast(y, through)
    return x, y


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as Python 2 divides: integers give integers, rounded down."""
    with scope(name, "div") as named:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype.base_dtype, name="y")
        kind = x.dtype.base_dtype
        return emit("RealDiv" if kind.is_floating or kind.is_complex else "FloorDiv", x, y, name=named)


def div_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0."""
    with scope(name, "div_no_nan") as named:
        if isinstance(y, Tensor) and not isinstance(x, Tensor):
            x = convert_to_tensor(x, y.dtype.base_dtype, name="x")
        x, y = _divisible(x, y)
        return emit("DivNoNan", x, y, name=named)


divide_no_nan = div_no_nan


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x times y, and 0 where y is 0 even if x is infinite or NaN."""
    with scope(name, "multiply_no_nan") as named:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype.base_dtype, name="y")
        return emit("MulNoNan", x, y, name=named)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0."""
    with scope(name, "reciprocal_no_nan") as named:
        x = convert_to_tensor(x, name="x")
        return emit("DivNoNan", emit.constant(1, x.dtype.base_dtype, "one"), x, name=named)


def mod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder of division that rounds down: it has y's sign, as in Python."""
    return emit("FloorMod", x, y, name=name)


def floordiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y rounded down, as Python's `//`."""
    with scope(name, "floordiv") as named:
        return emit("FloorDiv", x, y, name=named)


def floor_div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y rounded down."""
    return emit("FloorDiv", x, y, name=name)


def pow(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x to the power y."""
    with scope(name, "Pow") as named:
        return emit("Pow", x, y, name=named)


def xdivy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where x is 0."""
    with scope(name, "xdivy") as named:
        return emit("Xdivy", x, y, name=named)


def xlogy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x log(y), and 0 where x is 0."""
    return emit("Xlogy", x, y, name=name)


# ---- of one tensor -------------------------------------------------------------------------------------


def abs(x: Any, name: str | None = None) -> Any:
    """The absolute value; the modulus of complex numbers, as real ones."""
    with scope(name, "Abs") as named:

        def of_values(values: Any) -> Tensor:
            values = convert_to_tensor(values, name="x")
            if values.dtype.is_complex:
                return emit("ComplexAbs", values, Tout=values.dtype.real_dtype, name=named)
            return emit("Abs", values, name=named)

        return map_values(of_values, x)


def negative(x: Any, name: str | None = None) -> Any:
    """-x."""
    return map_values(lambda values: emit("Neg", values, name=name), x)


def sign(x: Any, name: str | None = None) -> Any:
    """-1, 0 or 1 by the sign of x; x / |x| for complex numbers."""

    def of_values(values: Any) -> Tensor:
        values = convert_to_tensor(values)
        if values.dtype.is_complex:
            modulus = cast(emit("ComplexAbs", values, Tout=values.dtype.real_dtype), values.dtype)
            return emit("DivNoNan", values, modulus, name=name)
        return emit("Sign", values, name=name)

    return map_values(of_values, x)


def square(x: Any, name: str | None = None) -> Any:
    """x times x."""
    return map_values(lambda values: emit("Square", values, name=name), x)


def sqrt(x: Any, name: str | None = None) -> Any:
    """The square root."""
    return map_values(lambda values: emit("Sqrt", values, name=name), x)


def erf(x: Any, name: str | None = None) -> Any:
    """The error function."""
    return map_values(lambda values: emit("Erf", values, name=name), x)


def tanh(x: Any, name: str | None = None) -> Any:
    """The hyperbolic tangent."""
    return map_values(lambda values: emit("Tanh", values, name=name), x)


def sigmoid(x: Any, name: str | None = None) -> Tensor:
    """1 / (1 + exp(-x))."""
    with scope(name, "Sigmoid") as named:
        return emit("Sigmoid", x, name=named)


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(sigmoid(x)), exact where sigmoid(x) is near 0."""
    with scope(name, "LogSigmoid") as named:
        x = convert_to_tensor(x, name="x")
        return emit("Neg", emit("Softplus", emit("Neg", x)), name=named)


def round(x: Any, name: str | None = None) -> Tensor:
    """The nearest integer, as a number of x's type; halves go to the even one."""
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.is_integer else emit("Round", x, name=name)


def polyval(coeffs: list[Any], x: Any, name: str | None = None) -> Tensor:
    """The polynomial with these coefficients, the highest power first, at x."""
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type found {type(coeffs)}.")
    with scope(name, "polyval") as named:
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            return emit("ZerosLike", x, name=named)
        terms = [convert_to_tensor(c, name=f"coeff_{i}") for i, c in enumerate(coeffs)]
        value = terms[0]
        for term in terms[1:]:
            value = term + value * x
        return value


# ---- complex numbers -----------------------------------------------------------------------------------


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """Complex numbers from their parts, which are both float32 or both float64."""
    real = convert_to_tensor(real, name="real")
    imag = convert_to_tensor(imag, name="imag")
    with scope(name, "Complex") as named:
        kinds = (real.dtype.base_dtype, imag.dtype.base_dtype)
        if kinds == (dtypes.float64, dtypes.float64):
            target = dtypes.complex128
        elif kinds == (dtypes.float32, dtypes.float32):
            target = dtypes.complex64
        else:
            raise TypeError(
                f"complex takes parts that are both float32 or both float64, got {kinds[0].name} and "
                f"{kinds[1].name}"
            )
        return emit("Complex", real, imag, Tout=target, name=named)


def real(input: Any, name: str | None = None) -> Tensor:
    """The real parts; real numbers are returned as they are."""
    with scope(name, "Real") as named:
        input = convert_to_tensor(input, name="input")
        if not input.dtype.is_complex:
            return input
        return emit("Real", input, Tout=input.dtype.real_dtype, name=named)


def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary parts; zeros for real numbers."""
    with scope(name, "Imag") as named:
        input = convert_to_tensor(input, name="input")
        if not input.dtype.is_complex:
            return emit("ZerosLike", input, name="zeros_like")
        return emit("Imag", input, Tout=input.dtype.real_dtype, name=named)


def angle(input: Any, name: str | None = None) -> Tensor:
    """The angle of complex numbers in [-pi, pi]; 0 or pi for real ones."""
    with scope(name, "Angle") as named:
        input = convert_to_tensor(input, name="input")
        if input.dtype.is_complex:
            return emit("Angle", input, Tout=input.dtype.real_dtype, name=named)
        zeros = emit("ZerosLike", input, name="zeros_like")
        return emit("Select", input < 0, zeros + emit.constant(np.pi, input.dtype.base_dtype), zeros)


def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate; real numbers are returned as they are."""
    if isinstance(x, Tensor) and (x.dtype.is_floating or x.dtype.is_integer):
        return x
    with scope(name, "Conj") as named:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex or x.dtype.base_dtype == dtypes.variant:
            return emit("Conj", x, name=named)
        if x.dtype.is_floating or x.dtype.is_integer:
            return x
        raise TypeError(f"Expected numeric tensor, got dtype {x.dtype!r}")


# ---- comparisons and logic -----------------------------------------------------------------------------


def equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where x and y are equal, elementwise with broadcasting."""
    return emit("Equal", x, y, name=name)


def not_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where x and y differ, elementwise with broadcasting."""
    return emit("NotEqual", x, y, name=name)


def logical_xor(x: Any, y: Any, name: str | None = "LogicalXor") -> Tensor:
    """Where one of the two is true."""
    either = emit("LogicalOr", x, y)
    not_both = emit("LogicalNot", emit("LogicalAnd", x, y))
    return emit("LogicalAnd", either, not_both, name=name)


# ---- sums of many tensors ------------------------------------------------------------------------------


def _tensors_or_slices(inputs: Any, of: str) -> list[Any]:
    problem = f"{of} takes a list of at least one Tensor/IndexedSlices with the same dtype and shape, got "
    if not isinstance(inputs, list | tuple) or not inputs:
        raise ValueError(problem + repr(inputs))
    if any(isinstance(x, SparseTensor) for x in inputs):
        raise ValueError(problem + "a SparseTensor")
    return [x if isinstance(x, IndexedSlices) else convert_to_tensor(x) for x in inputs]


def add_n(inputs: Sequence[Any], name: str | None = None) -> Tensor:
    """The sum of tensors of one shape and type; IndexedSlices among them are made dense."""
    if not isinstance(inputs, list | tuple) and np.iterable(inputs):
        inputs = list(inputs)
    values = _tensors_or_slices(inputs, "add_n")
    if len(values) == 1:
        only = convert_to_tensor(values[0])
        return emit("Identity", only, name=name) if name else only
    return emit("AddN", values, name=name)


def accumulate_n(
    inputs: Sequence[Any], shape: Any = None, tensor_dtype: Any = None, name: str | None = None
) -> Tensor:
    """The sum of tensors, whose shapes (and `shape`) must agree where they are known."""
    values = _tensors_or_slices(inputs, "accumulate_n")
    if any(isinstance(v, IndexedSlices) for v in values) or any(v.dtype != values[0].dtype for v in values):
        raise ValueError("inputs must be a list of at least one Tensor with the same dtype and shape")
    if tensor_dtype is not None and tensor_dtype != values[0].dtype:
        raise TypeError(f"tensor_dtype is {tensor_dtype}, but input is of type {values[0].dtype}")
    known = None if shape is None else shapes.as_shape(shape)
    for value in values:
        known = shapes.merge(known, value._shape)
    if len(values) == 1:
        return emit("Identity", values[0], name=name) if name is not None else values[0]
    return emit("AddN", values, name=name)
