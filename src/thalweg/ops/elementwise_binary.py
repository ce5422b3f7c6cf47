"""Elementwise arithmetic of two tensors, which broadcast. Source: TensorFlow's math_ops.cc, math_grad.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import GradientFn, NotDifferentiable, OpRecord, define_op
from thalweg.kernel.convention import traceable
from thalweg.ops import _division as division
from thalweg.ops._broadcast import broadcast_shape, broadcasting, same_type
from thalweg.ops._gradient_nodes import (
    add,
    cast,
    conj,
    mul,
    neg,
    ones_like,
    reduce_to_inputs,
    same_known_shapes,
    sub,
    sum_over,
    truediv,
    zeros_like,
)

_INTEGERS = "{int8, int16, int32, int64, uint8, uint16, uint32, uint64}"
_ADD = "{bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}"
_ADD_V2 = (
    "{bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, "
    "complex64, complex128}"
)
_SUB = (
    "{bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, "
    "complex128, uint32, uint64}"
)
_MUL = (
    "{bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}"
)
_NO_NAN = "{bfloat16, half, float, double, complex64, complex128}"
_REMAINDER = "{int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}"
_TRUNCATED = "{int32, int64, bfloat16, half, float, double}"
_ORDERED = "{bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}"
_DIFFERENCE = "{bfloat16, half, float, double, int32, int64, complex64, complex128}"

_INTEGER_STEPS = NotDifferentiable("constant between its steps")


def _define(
    name: str,
    types: str,
    fn: Callable[[Any, Any], Any],
    gradient: GradientFn | NotDifferentiable,
    doc: str,
    host: Callable[[Any, Any], Any] | None = None,
    *,
    commutative: bool = False,
    may_fail: Callable[[Operation], bool] | bool = False,
    inputs: str = "x: T, y: T",
) -> OpRecord:
    return define_op(
        name,
        inputs=inputs,
        outputs="z: T",
        attrs=f"T: {types}",
        shape=broadcast_shape,
        kernel=traceable(broadcasting(fn), host=host and same_type(host), may_fail=may_fail),
        gradient=gradient,
        commutative=commutative,
        doc=doc,
    )


# -- kernels -------------------------------------------------------------------------------------------------


def _zero_where(zero: Any, otherwise: Any) -> Any:
    return lax.select(zero, lax.full_like(otherwise, 0), otherwise)


def _is_zero(x: Any) -> Any:
    return lax.eq(x, lax.full_like(x, 0))


def _mul_no_nan(x: Any, y: Any) -> Any:
    return _zero_where(_is_zero(y), lax.mul(x, y))


def _div_no_nan(x: Any, y: Any) -> Any:
    return _zero_where(_is_zero(y), lax.div(x, y))


def _xdivy(x: Any, y: Any) -> Any:
    return _zero_where(_is_zero(x), lax.div(x, y))


def _xlogy(x: Any, y: Any) -> Any:
    return _zero_where(_is_zero(x), lax.mul(x, lax.log(y)))


def _xlog1py(x: Any, y: Any) -> Any:
    return _zero_where(_is_zero(x), lax.mul(x, lax.log1p(y)))


def _squared_difference(x: Any, y: Any) -> Any:
    d = lax.sub(x, y)
    return lax.mul(d, lax.conj(d) if d.dtype.kind == "c" else d)


def _squared_difference_host(x: np.ndarray, y: np.ndarray) -> Any:
    d = x - y
    return d * np.conj(d)


def _shift_count(y: Any) -> Any:
    """TensorFlow clamps the count to [0, bits - 1]: a larger shift is not an error."""
    return lax.clamp(np.zeros((), y.dtype), y, np.array(y.dtype.itemsize * 8 - 1, y.dtype))


def _left_shift(x: Any, y: Any) -> Any:
    return lax.shift_left(x, _shift_count(y))


def _right_shift(x: Any, y: Any) -> Any:
    shift = lax.shift_right_logical if x.dtype.kind == "u" else lax.shift_right_arithmetic
    return shift(x, _shift_count(y))


def _clipped_count(y: np.ndarray) -> np.ndarray:
    return np.clip(y, 0, y.dtype.itemsize * 8 - 1).astype(y.dtype)


# -- gradients -----------------------------------------------------------------------------------------------


def _add_gradient(emit: Emitter, op: Operation, dy: Any) -> list[Any]:
    x, y = op._inputs
    if same_known_shapes(x, y, dy):
        return [dy, dy]
    return reduce_to_inputs(emit, x, y, dy, dy)


def _sub_gradient(emit: Emitter, op: Operation, dy: Any) -> list[Any]:
    x, y = op._inputs
    negative = neg(emit, dy)
    if same_known_shapes(x, y, dy):
        return [dy, negative]
    return reduce_to_inputs(emit, x, y, dy, negative)


def _mul_gradient(emit: Emitter, op: Operation, dy: Any) -> list[Any]:
    x, y = op._inputs
    if same_known_shapes(x, y, dy) and dy._dtype.name in ("int32", "float32"):
        return [emit("Mul", dy, y), emit("Mul", dy, x)]
    gx = emit("Mul", dy, conj(emit, y))
    gy = emit("Mul", conj(emit, x), dy)
    return reduce_to_inputs(emit, x, y, gx, gy)


def _mul_no_nan_gradient(emit: Emitter, op: Operation, dy: Any) -> list[Any]:
    x, y = op._inputs
    gx, gy = emit("MulNoNan", dy, y), emit("MulNoNan", x, dy)
    if same_known_shapes(x, y, dy):
        return [gx, gy]
    return reduce_to_inputs(emit, x, y, gx, gy)


def _quotient_gradient(op_type: str, name: str | None = None) -> GradientFn:
    """dy / y and dy * (-x / y / y), with the division of the op itself."""

    def gradient(emit: Emitter, op: Operation, dy: Any) -> list[Any]:
        x, y = op._inputs
        cx, cy = conj(emit, x), conj(emit, y)
        gx = emit(op_type, dy, cy, name=name)
        once = emit(op_type, neg(emit, cx), cy, name=name)
        gy = mul(emit, dy, emit(op_type, once, cy, name=name))
        return reduce_to_inputs(emit, x, y, gx, gy)

    return gradient


def _floor_mod_gradient(emit: Emitter, op: Operation, dy: Any) -> list[Any]:
    x, y = op._inputs
    quotient = emit("FloorDiv", x, y)
    return reduce_to_inputs(emit, x, y, dy, mul(emit, dy, neg(emit, quotient)))


def _pow_gradient(emit: Emitter, op: Operation, dy: Any) -> list[Any]:
    x, y = op._inputs
    cx, cy = conj(emit, x), conj(emit, y)
    scaled = mul(emit, dy, cy)
    gx = mul(emit, scaled, emit("Pow", cx, sub(emit, cy, 1)))
    # log x is of no use where x is 0, or negative and real: the gradient there is 0
    mask = emit("NotEqual", cx, 0) if x._dtype.is_complex else emit("Greater", cx, 0)
    safe = emit("Select", mask, cx, ones_like(emit, x))
    log_x = emit("Select", mask, emit("Log", safe), zeros_like(emit, x))
    gy = mul(emit, mul(emit, dy, conj(emit, op._outputs[0])), log_x)
    return reduce_to_inputs(emit, x, y, gx, gy)


def _choice_gradient(comparison: str) -> GradientFn:
    """dy to x where the comparison holds, to y elsewhere."""

    def gradient(emit: Emitter, op: Operation, dy: Any) -> list[Any]:
        x, y = op._inputs
        zeros = zeros_like(emit, dy)
        mask = emit(comparison, x, y)
        gx, gy = emit("SelectV2", mask, dy, zeros), emit("SelectV2", mask, zeros, dy)
        return reduce_to_inputs(emit, x, y, gx, gy)

    return gradient


def _squared_difference_gradient(emit: Emitter, op: Operation, dy: Any) -> list[Any]:
    x, y = op._inputs
    two = emit.constant(2.0, dy.dtype.base_dtype, name="scalar")
    gx = mul(emit, emit("Mul", two, dy), sub(emit, x, y))
    gy = neg(emit, gx)
    if same_known_shapes(x, y, dy):
        return [gx, gy]
    return reduce_to_inputs(emit, x, y, gx, gy)


def _atan2_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    y, x = op._inputs
    inverse = truediv(emit, dy, add(emit, emit("Square", y), emit("Square", x)))
    gy = mul(emit, x, inverse)
    gx = mul(emit, neg(emit, y), inverse)
    return reduce_to_inputs(emit, y, x, gy, gx)


def _x_op_y_gradient(op_type: str, partial_y: Callable[[Emitter, Tensor, Tensor], Tensor]) -> GradientFn:
    """The gradient of a product x * f(y) that is 0 where x is 0, whatever y is."""

    def gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
        x, y = op._inputs
        sx, sy = emit.shape(x), emit.shape(y)
        rx, ry = emit("BroadcastGradientArgs", sx, sy)
        with get_default_graph().name_scope("Cast"):
            zero = emit.constant(0.0, x._dtype.base_dtype, name="x")
        not_zero = cast(emit, emit("NotEqual", x, zero), x._dtype)
        by_x = emit(op_type, not_zero, y)
        by_y = partial_y(emit, x, y)
        return [
            sum_over(emit, mul(emit, by_x, dy), rx, sx),
            sum_over(emit, mul(emit, by_y, dy), ry, sy),
        ]

    return gradient


def _polygamma_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    n, x = op._inputs
    sn, sx = emit.shape(n), emit.shape(x)
    _, rx = emit("BroadcastGradientArgs", sn, sx)
    by_x = emit("Polygamma", add(emit, n, 1), x)
    return [None, sum_over(emit, mul(emit, by_x, dy), rx, sx)]


def _zeta_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    x, q = op._inputs
    sx, sq = emit.shape(x), emit.shape(q)
    _, rq = emit("BroadcastGradientArgs", sx, sq)
    by_q = mul(emit, neg(emit, x), emit("Zeta", add(emit, x, 1), q))
    return [None, sum_over(emit, mul(emit, by_q, dy), rq, sq)]


# -- the ops -------------------------------------------------------------------------------------------------

_define("Add", _ADD, lax.add, _add_gradient, "x + y; strings are joined.", np.add)
_define("AddV2", _ADD_V2, lax.add, _add_gradient, "x + y.", np.add, commutative=True)
_define("Sub", _SUB, lax.sub, _sub_gradient, "x - y.", np.subtract)
_define("Mul", _MUL, lax.mul, _mul_gradient, "x * y.", np.multiply, commutative=True)
_define("MulNoNan", _NO_NAN, _mul_no_nan, _mul_no_nan_gradient, "x * y; 0 where y is 0, whatever x is.")

_define(
    "Div",
    _MUL,
    division.truncate_div_or_div,
    _quotient_gradient("RealDiv", "truediv"),
    "x / y; the whole part of it where they are integers.",
    division.truncate_div_or_div_host,
    may_fail=division.may_divide_by_zero,
)
_define("RealDiv", _MUL, lax.div, _quotient_gradient("RealDiv"), "x / y.", division.real_div_host)
_define(
    "DivNoNan",
    "{half, float, bfloat16, double, complex64, complex128}",
    _div_no_nan,
    _quotient_gradient("DivNoNan", "div_no_nan"),
    "x / y; 0 where y is 0.",
)
_define(
    "FloorDiv",
    _MUL,
    division.floor_div,
    _INTEGER_STEPS,
    "The greatest whole number that is not above x / y.",
    division.floor_div_host,
    may_fail=division.may_divide_by_zero,
)
_define(
    "TruncateDiv",
    _MUL,
    division.truncate_div,
    _INTEGER_STEPS,
    "x / y without its fraction.",
    division.truncate_div_host,
    may_fail=division.may_divide_by_zero,
)
_define(
    "FloorMod",
    _REMAINDER,
    division.floor_mod,
    _floor_mod_gradient,
    "x - floor(x / y) * y: has the sign of y.",
    division.floor_mod_host,
    may_fail=division.may_divide_by_zero,
)
for _name, _types in (
    ("Mod", "{int32, int64, half, half, bfloat16, float, double}"),
    ("TruncateMod", _TRUNCATED),
):
    _define(
        _name,
        _types,
        division.truncate_mod,
        NotDifferentiable("TensorFlow has none: use FloorMod"),
        "x - truncate(x / y) * y: has the sign of x.",
        division.truncate_mod_host,
        may_fail=division.may_divide_by_zero,
    )
_define(
    "Pow",
    "{bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
    division.power,
    _pow_gradient,
    "x to the y.",
    division.power_host,
    may_fail=division.may_be_negative_power,
)
_define("Maximum", _ORDERED, lax.max, _choice_gradient("GreaterEqual"), "The larger; NaN wins.", np.maximum)
_define("Minimum", _ORDERED, lax.min, _choice_gradient("LessEqual"), "The smaller; NaN wins.", np.minimum)
_define(
    "SquaredDifference",
    _DIFFERENCE,
    _squared_difference,
    _squared_difference_gradient,
    "(x - y)^2, by the conjugate where complex.",
    _squared_difference_host,
    commutative=True,
)
_define(
    "Atan2",
    "{bfloat16, half, float, double}",
    lax.atan2,
    _atan2_gradient,
    "The angle of the point (x, y), in radians.",
    inputs="y: T, x: T",
)
_X_OP_Y = "{half, bfloat16, float, double, complex64, complex128}"
_define(
    "Xdivy",
    _X_OP_Y,
    _xdivy,
    _x_op_y_gradient("Xdivy", lambda emit, x, y: emit("Xdivy", neg(emit, x), emit("Pow", y, 2, name="pow"))),
    "x / y; 0 where x is 0, whatever y is.",
)
_define(
    "Xlogy",
    _X_OP_Y,
    _xlogy,
    _x_op_y_gradient("Xlogy", lambda emit, x, y: emit("Xdivy", x, y)),
    "x * log(y); 0 where x is 0, whatever y is.",
)
_define(
    "Xlog1py",
    _X_OP_Y,
    _xlog1py,
    _x_op_y_gradient("Xlog1py", lambda emit, x, y: emit("Xdivy", x, add(emit, y, 1.0))),
    "x * log(1 + y); 0 where x is 0, whatever y is.",
)
_define(
    "Polygamma",
    "{float, double}",
    lax.polygamma,
    _polygamma_gradient,
    "The n-th derivative of digamma.",
    inputs="a: T, x: T",
)
_define("Zeta", "{float, double}", lax.zeta, _zeta_gradient, "Hurwitz zeta.", inputs="x: T, q: T")

_NO_BITS = NotDifferentiable("integers")
_define("BitwiseAnd", _INTEGERS, lax.bitwise_and, _NO_BITS, "x & y.", np.bitwise_and, commutative=True)
_define("BitwiseOr", _INTEGERS, lax.bitwise_or, _NO_BITS, "x | y.", np.bitwise_or, commutative=True)
_define("BitwiseXor", _INTEGERS, lax.bitwise_xor, _NO_BITS, "x ^ y.", np.bitwise_xor, commutative=True)
_define(
    "LeftShift",
    _INTEGERS,
    _left_shift,
    _NO_BITS,
    "x << y, the count clamped to [0, bits - 1].",
    lambda x, y: np.left_shift(x, _clipped_count(y)),
)
_define(
    "RightShift",
    _INTEGERS,
    _right_shift,
    _NO_BITS,
    "x >> y, the count clamped to [0, bits - 1]; keeps the sign.",
    lambda x, y: np.right_shift(x, _clipped_count(y)),
)
