"""Elementwise functions of one tensor. Source: TensorFlow's math_ops.cc, cwise_ops and math_grad.py.

XLA approximates exp, log, tanh, erf, lgamma, digamma ... otherwise than Eigen: the last bits differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import GradientFn, NotDifferentiable, OpRecord, define_op
from thalweg.kernel.convention import traceable
from thalweg.ops._broadcast import conj as conjugate
from thalweg.ops._broadcast import is_integer, on_host, same_shape, same_type
from thalweg.ops._gradient_nodes import add, conj, mul, neg, sub, truediv, zeros_like

_SIGNED = "{bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}"
_REAL_SIGNED = "{bfloat16, half, float, double, int8, int16, int32, int64}"
_ANY_NUMBER = (
    "{bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
    "complex64, complex128}"
)
_CONTINUOUS = "{bfloat16, half, float, double, complex64, complex128}"
_REAL = "{bfloat16, half, float, double}"
_INTEGERS = "{int8, int16, int32, int64, uint8, uint16, uint32, uint64}"

_STEPS = NotDifferentiable("constant between its steps")


def _define(
    name: str,
    types: str,
    fn: Callable[[Any], Any],
    gradient: GradientFn | NotDifferentiable,
    doc: str,
    host: Callable[[Any], Any] | None = None,
) -> OpRecord:
    return define_op(
        name,
        inputs="x: T",
        outputs="y: T",
        attrs=f"T: {types}",
        shape=same_shape,
        kernel=traceable(fn, host=host and same_type(host)),
        gradient=gradient,
        doc=doc,
    )


# -- kernels -------------------------------------------------------------------------------------------------


def _reciprocal(x: Any) -> Any:
    return lax.div(lax.full_like(x, 1), x)


def _round(x: Any) -> Any:
    """To the nearest whole number, halves to the even one."""
    if is_integer(x):
        return x
    if x.dtype.kind == "c":
        return lax.complex(_round(lax.real(x)), _round(lax.imag(x)))
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def _sigmoid_grad(y: Any, dy: Any) -> Any:
    return lax.mul(lax.mul(dy, lax.sub(lax.full_like(y, 1), y)), y)


def _tanh_grad(y: Any, dy: Any) -> Any:
    return lax.mul(dy, lax.sub(lax.full_like(y, 1), lax.mul(y, y)))


# the gradients of Sigmoid and Tanh pass the conjugate of y, those of the following pass y: as TensorFlow
def _sqrt_grad(y: Any, dy: Any) -> Any:
    return lax.div(lax.mul(dy, lax.full_like(dy, 0.5)), conjugate(y))


def _rsqrt_grad(y: Any, dy: Any) -> Any:
    y = conjugate(y)
    return lax.mul(lax.mul(dy, lax.mul(lax.full_like(y, -0.5), y)), lax.mul(y, y))


def _reciprocal_grad(y: Any, dy: Any) -> Any:
    y = conjugate(y)
    return lax.mul(lax.neg(dy), lax.mul(y, y))


# -- gradients -----------------------------------------------------------------------------------------------


def _x(emit: Emitter, op: Operation) -> Tensor:
    return conj(emit, op._inputs[0])


def _y(emit: Emitter, op: Operation) -> Tensor:
    return conj(emit, op._outputs[0])


def _zero_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [zeros_like(emit, op._inputs[0])]


def _abs_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [mul(emit, dy, emit("Sign", op._inputs[0]))]


def _square_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    x = _x(emit, op)
    two = emit.constant(2.0, x._dtype.base_dtype)
    return [emit("Mul", dy, emit("Mul", x, two))]


def _times(function: str) -> GradientFn:
    """dy * function(x)."""
    return lambda emit, op, dy: [mul(emit, dy, emit(function, _x(emit, op)))]


def _of_output(grad_op: str, conjugate: bool = False) -> GradientFn:
    """grad_op(y, dy)."""

    def gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
        return [emit(grad_op, _y(emit, op) if conjugate else op._outputs[0], dy)]

    return gradient


def _exp_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [mul(emit, dy, _y(emit, op))]


def _log1p_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [mul(emit, dy, emit("Reciprocal", add(emit, 1, _x(emit, op))))]


def _cos_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    x = _x(emit, op)
    return [mul(emit, neg(emit, dy), emit("Sin", x))]


def _tan_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    secant = emit("Reciprocal", emit("Cos", _x(emit, op)))
    return [mul(emit, emit("Square", secant), dy)]


def _one(emit: Emitter, dy: Tensor) -> Tensor:
    return emit.constant(1, dy._dtype.base_dtype)


def _arc_inverse(emit: Emitter, op: Operation, dy: Tensor) -> Tensor:
    """1 / sqrt(1 - x^2)."""
    squared = emit("Square", _x(emit, op))
    root = emit("Sqrt", emit("Sub", _one(emit, dy), squared))
    return emit("Reciprocal", root)


def _asin_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [mul(emit, dy, _arc_inverse(emit, op, dy))]


def _acos_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    inverse = _arc_inverse(emit, op, dy)
    return [mul(emit, neg(emit, dy), inverse)]


def _atan_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    squared = emit("Square", _x(emit, op))
    return [mul(emit, dy, emit("Reciprocal", emit("AddV2", _one(emit, dy), squared, name="Add")))]


def _atanh_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    squared = emit("Square", _x(emit, op))
    return [mul(emit, dy, emit("Reciprocal", emit("Sub", _one(emit, dy), squared)))]


def _asinh_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [truediv(emit, dy, emit("Cosh", _y(emit, op)))]


def _acosh_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [truediv(emit, dy, emit("Sinh", _y(emit, op)))]


def _bell(factor: float) -> GradientFn:
    """dy * factor * exp(-x^2)."""

    def gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
        c = emit.constant(factor, dy._dtype.base_dtype)
        x = _x(emit, op)
        scaled = mul(emit, dy, c)
        return [mul(emit, scaled, emit("Exp", neg(emit, emit("Square", x))))]

    return gradient


def _erfinv_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    c = emit.constant(np.sqrt(np.pi) / 2, dy._dtype.base_dtype)
    scaled = mul(emit, dy, c)
    return [mul(emit, scaled, emit("Exp", emit("Square", op._outputs[0])))]


def _digamma_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    x = op._inputs[0]
    return [mul(emit, dy, emit("Polygamma", emit.constant(1, x._dtype.base_dtype), x))]


def _sigmoid_grad_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    y, b = (conj(emit, t) for t in op._inputs)
    gb = mul(emit, dy, b)
    dydy = mul(emit, mul(emit, 2.0, gb), y)
    return [sub(emit, gb, dydy), emit("SigmoidGrad", y, dy)]


def _tanh_grad_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    y, b = (conj(emit, t) for t in op._inputs)
    dydy = mul(emit, mul(emit, mul(emit, dy, -2.0), b), y)
    return [dydy, emit("TanhGrad", y, dy)]


def _sqrt_grad_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    ga = truediv(emit, dy, op._inputs[0])
    return [mul(emit, neg(emit, conj(emit, ga)), op._outputs[0]), mul(emit, 0.5, ga)]


def _rsqrt_grad_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    y, cg = conj(emit, op._inputs[0]), conj(emit, dy)
    scaled = mul(emit, mul(emit, -1.5, cg), op._inputs[1])
    return [mul(emit, scaled, emit("Square", y)), emit("RsqrtGrad", y, dy)]


def _reciprocal_grad_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    y, cg = conj(emit, op._inputs[0]), conj(emit, dy)
    scaled = mul(emit, mul(emit, cg, -2.0), op._inputs[1])
    return [mul(emit, scaled, y), emit("ReciprocalGrad", y, dy)]


# -- the ops -------------------------------------------------------------------------------------------------

_define("Neg", _SIGNED, lax.neg, lambda emit, op, dy: [neg(emit, dy)], "-x.", np.negative)
_define("Abs", _REAL_SIGNED, lax.abs, _abs_gradient, "|x|.", np.abs)
_define("Sign", _SIGNED, lax.sign, _zero_gradient, "-1, 0 or 1; x / |x| of a complex x; NaN of NaN.", np.sign)
_define("Square", _ANY_NUMBER, lambda x: lax.mul(x, x), _square_gradient, "x * x.", np.square)
_define("Sqrt", _CONTINUOUS, lax.sqrt, _of_output("SqrtGrad"), "The square root.")
_define("Rsqrt", _CONTINUOUS, lax.rsqrt, _of_output("RsqrtGrad"), "1 / sqrt(x).")
_define("Reciprocal", _SIGNED, _reciprocal, _of_output("ReciprocalGrad"), "1 / x.")
_define("Inv", _SIGNED, _reciprocal, _of_output("ReciprocalGrad"), "1 / x.")
_define("Exp", _CONTINUOUS, lax.exp, _exp_gradient, "e to the x.")
_define("Expm1", _CONTINUOUS, lax.expm1, _times("Exp"), "exp(x) - 1, exact near 0.")
_define("Log", _CONTINUOUS, lax.log, _times("Reciprocal"), "The natural logarithm.")
_define("Log1p", _CONTINUOUS, lax.log1p, _log1p_gradient, "log(1 + x), exact near 0.")
_define("Sin", _CONTINUOUS, lax.sin, _times("Cos"), "The sine.")
_define("Cos", _CONTINUOUS, lax.cos, _cos_gradient, "The cosine.")
_define("Tan", _CONTINUOUS, lax.tan, _tan_gradient, "The tangent.")
_define("Asin", _CONTINUOUS, lax.asin, _asin_gradient, "The arc sine.")
_define("Acos", _CONTINUOUS, lax.acos, _acos_gradient, "The arc cosine.")
_define("Atan", _CONTINUOUS, lax.atan, _atan_gradient, "The arc tangent.")
_define("Sinh", _CONTINUOUS, lax.sinh, _times("Cosh"), "The hyperbolic sine.")
_define("Cosh", _CONTINUOUS, lax.cosh, _times("Sinh"), "The hyperbolic cosine.")
_define("Tanh", _CONTINUOUS, lax.tanh, _of_output("TanhGrad", True), "The hyperbolic tangent.")
_define("Asinh", _CONTINUOUS, lax.asinh, _asinh_gradient, "The inverse hyperbolic sine.")
_define("Acosh", _CONTINUOUS, lax.acosh, _acosh_gradient, "The inverse hyperbolic cosine.")
_define("Atanh", _CONTINUOUS, lax.atanh, _atanh_gradient, "The inverse hyperbolic tangent.")
_define("Sigmoid", _CONTINUOUS, lax.logistic, _of_output("SigmoidGrad", True), "1 / (1 + exp(-x)).")
_define("Erf", _REAL, lax.erf, _bell(2 / np.sqrt(np.pi)), "The error function.")
_define("Erfc", _REAL, lax.erfc, _bell(-2 / np.sqrt(np.pi)), "1 - erf(x).")
_define("Erfinv", _REAL, lax.erf_inv, _erfinv_gradient, "The inverse of erf.")
_define("Lgamma", _REAL, lax.lgamma, _times("Digamma"), "log |gamma(x)|.")
_define("Digamma", _REAL, lax.digamma, _digamma_gradient, "The derivative of lgamma; NaN at its poles.")
_define("Floor", _REAL, lax.floor, _STEPS, "The greatest whole number that is not above x.", np.floor)
_define("Ceil", _REAL, lax.ceil, _STEPS, "The least whole number that is not below x.", np.ceil)
_define("Round", _SIGNED, _round, _STEPS, "The nearest whole number, halves to the even one.", np.round)
_define("Rint", _REAL, _round, _STEPS, "The nearest whole number, halves to the even one.", np.rint)
_define("Invert", _INTEGERS, lax.bitwise_not, NotDifferentiable("integers"), "Every bit flipped.", np.invert)


def _define_test(name: str, fn: Callable[[Any], Any], host: Callable[[Any], Any], doc: str) -> OpRecord:
    return define_op(
        name,
        inputs="x: T",
        outputs="y: bool",
        attrs=f"T: {_REAL}",
        shape=same_shape,
        kernel=traceable(fn, host=on_host(host)),
        gradient=NotDifferentiable("a truth value"),
        doc=doc,
    )


def _is_inf(x: Any) -> Any:
    return lax.eq(lax.abs(x), lax.full_like(x, np.inf))


_define_test("IsNan", lambda x: lax.ne(x, x), np.isnan, "Whether x is not a number.")
_define_test("IsInf", _is_inf, np.isinf, "Whether x is an infinity.")
_define_test("IsFinite", lax.is_finite, np.isfinite, "Whether x is neither an infinity nor NaN.")

logical_not = define_op(
    "LogicalNot",
    inputs="x: bool",
    outputs="y: bool",
    shape=same_shape,
    kernel=traceable(lax.bitwise_not, host=on_host(np.logical_not)),
    gradient=NotDifferentiable("a truth value"),
    doc="The other truth value.",
)


def _define_grad(name: str, fn: Callable[[Any, Any], Any], gradient: GradientFn, doc: str) -> OpRecord:
    return define_op(
        name,
        inputs="y: T, dy: T",
        outputs="z: T",
        attrs=f"T: {_CONTINUOUS}",
        shape=same_shape,
        kernel=traceable(fn),
        gradient=gradient,
        doc=doc,
    )


_define_grad("SigmoidGrad", _sigmoid_grad, _sigmoid_grad_gradient, "dy * y * (1 - y), for y = sigmoid(x).")
_define_grad("TanhGrad", _tanh_grad, _tanh_grad_gradient, "dy * (1 - y * y), for y = tanh(x).")
_define_grad("SqrtGrad", _sqrt_grad, _sqrt_grad_gradient, "dy * 0.5 / y, for y = sqrt(x).")
_define_grad("RsqrtGrad", _rsqrt_grad, _rsqrt_grad_gradient, "dy * -0.5 * y^3, for y = rsqrt(x).")
_define_grad("ReciprocalGrad", _reciprocal_grad, _reciprocal_grad_gradient, "-dy * y * y, for y = 1 / x.")
_define_grad("InvGrad", _reciprocal_grad, _reciprocal_grad_gradient, "-dy * y * y, for y = 1 / x.")
