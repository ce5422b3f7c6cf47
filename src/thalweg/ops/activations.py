"""Activations, element by element, and their gradients. Source: TensorFlow's nn_ops.cc, relu_op, nn_grad.py.

At a kink (a Relu of 0) the gradient is that of the flat side, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax import lax

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import GradientFn, OpRecord, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import traceable
from thalweg.ops._broadcast import same_shape
from thalweg.ops._gradient_nodes import add, mul, neg, truediv, zeros_like
from thalweg.ops._no_gradient import undefined
from thalweg.ops._precision import in_float32, single
from thalweg.ops._types import FLOATS, REAL

_RELU_TYPES = f"{REAL[:-1]}, qint8}}"
_LEAKY_ATTRS = f"alpha: float = 0.20000000298023224, T: {FLOATS} = float"

# Klambauer et al., "Self-normalizing neural networks", 2017: lambda, and lambda * alpha
_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


# -- kernels ------------------------------------------------------------------------------------------------


def _full(x: Any, value: float) -> Any:
    return lax.full_like(x, value)


def _positive(x: Any) -> Any:
    return lax.gt(x, _full(x, 0))


def _relu(x: Any) -> Any:
    return lax.max(x, _full(x, 0))


def _relu_grad(dy: Any, x: Any) -> Any:
    return lax.select(_positive(x), dy, _full(dy, 0))


def _relu6(x: Any) -> Any:
    return lax.min(lax.max(x, _full(x, 0)), _full(x, 6))


def _relu6_grad(dy: Any, x: Any) -> Any:
    between = lax.bitwise_and(_positive(x), lax.lt(x, _full(x, 6)))
    return lax.select(between, dy, _full(dy, 0))


def _leaky_relu(x: Any, *, alpha: float) -> Any:
    return lax.select(_positive(x), x, lax.mul(x, _full(x, single(alpha))))


def _leaky_relu_grad(dy: Any, x: Any, *, alpha: float) -> Any:
    return lax.select(_positive(x), dy, lax.mul(dy, _full(dy, single(alpha))))


def _negative_exp(x: Any) -> Any:
    """exp(x) - 1 of the negative elements; of the others too small a number to overflow."""
    return lax.expm1(lax.min(x, _full(x, 0)))


def _elu(x: Any) -> Any:
    return lax.select(lax.lt(x, _full(x, 0)), _negative_exp(x), x)


def _elu_grad(dy: Any, y: Any) -> Any:
    return lax.select(lax.lt(y, _full(y, 0)), lax.mul(lax.add(y, _full(y, 1)), dy), dy)


def _selu(x: Any) -> Any:
    below = lax.mul(_full(x, _SELU_SCALE_ALPHA), _negative_exp(x))
    return lax.select(lax.lt(x, _full(x, 0)), below, lax.mul(_full(x, _SELU_SCALE), x))


def _selu_grad(dy: Any, y: Any) -> Any:
    below = lax.mul(dy, lax.add(y, _full(y, _SELU_SCALE_ALPHA)))
    return lax.select(lax.lt(y, _full(y, 0)), below, lax.mul(dy, _full(dy, _SELU_SCALE)))


def _softplus(x: Any) -> Any:
    return lax.add(lax.max(x, _full(x, 0)), lax.log1p(lax.exp(lax.neg(lax.abs(x)))))


def _softplus_grad(dy: Any, x: Any) -> Any:
    return lax.div(dy, lax.add(lax.exp(lax.neg(x)), _full(x, 1)))


def _softsign(x: Any) -> Any:
    return lax.div(x, lax.add(lax.abs(x), _full(x, 1)))


def _softsign_grad(dy: Any, x: Any) -> Any:
    root = lax.add(lax.abs(x), _full(x, 1))
    return lax.div(dy, lax.mul(root, root))


def _together(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A gradient kernel, which takes two arrays of one shape and says so."""
    inner = in_float32(fn)

    def kernel(dy: Any, x: Any) -> Any:
        _check_sizes(dy, x)
        return inner(dy, x)

    return kernel


def _check_sizes(dy: Any, x: Any) -> None:
    if tuple(dy.shape) != tuple(x.shape):
        given = f"{shapes.format_shape(tuple(dy.shape))} and {shapes.format_shape(tuple(x.shape))}"
        raise ValueError(f"gradients and features must have the same shape, got {given}")


def _leaky_grad_kernel(dy: Any, x: Any, *, alpha: float) -> Any:
    _check_sizes(dy, x)
    return in_float32(_leaky_relu_grad)(dy, x, alpha=alpha)


# -- gradients ----------------------------------------------------------------------------------------------


def _of_output(grad_op: str) -> GradientFn:
    """grad_op(dy, y)."""
    return lambda emit, op, dy: [emit(grad_op, dy, op._outputs[0])]


def _linear(grad_op: str) -> GradientFn:
    """Of a gradient op that is linear in dy and steps in x."""

    def gradient(emit: Emitter, op: Operation, ddx: Tensor) -> list[Any]:
        x = op._inputs[1]
        return [emit(grad_op, ddx, x), zeros_like(emit, x)]

    return gradient


def _leaky_relu_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [emit("LeakyReluGrad", dy, op._inputs[0], alpha=op._attrs["alpha"])]


def _leaky_relu_grad_gradient(emit: Emitter, op: Operation, ddx: Tensor) -> list[Any]:
    x = op._inputs[1]
    return [emit("LeakyReluGrad", ddx, x, alpha=op._attrs["alpha"]), zeros_like(emit, x)]


def _exponential(grad_op: str) -> GradientFn:
    """Of EluGrad and SeluGrad, whose slope below zero is linear in y."""

    def gradient(emit: Emitter, op: Operation, ddx: Tensor) -> list[Any]:
        dy, y = op._inputs
        first = emit(grad_op, ddx, y)
        below = emit("Less", y, 0.0)
        slope = mul(emit, ddx, dy)
        return [first, emit("Select", below, slope, zeros_like(emit, y))]

    return gradient


def _softplus_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [mul(emit, dy, emit("Sigmoid", op._inputs[0]))]


def _softplus_grad_gradient(emit: Emitter, op: Operation, ddx: Tensor) -> list[Any]:
    dy, x = op._inputs
    with get_default_graph().control_dependencies([ddx]):
        first = emit("SoftplusGrad", ddx, x)
        above = mul(emit, ddx, dy)
        below = add(emit, emit("Exp", neg(emit, x)), 2.0)
        below = add(emit, below, emit("Exp", x))
        return [first, truediv(emit, above, below)]


def _softsign_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [emit("SoftsignGrad", dy, op._inputs[0])]


# -- definitions --------------------------------------------------------------------------------------------


def _merged_shape(c: ShapeContext) -> list[Shape]:
    return [shapes.merge(c.shape(0), c.shape(1))]


def _activation(
    name: str,
    fn: Callable[..., Any],
    gradient: GradientFn,
    doc: str,
    attrs: str = f"T: {FLOATS}",
) -> OpRecord:
    return define_op(
        name,
        inputs="features: T",
        outputs="activations: T",
        attrs=attrs,
        shape=same_shape,
        kernel=traceable(in_float32(fn)),
        gradient=gradient,
        doc=doc,
    )


def _activation_grad(
    name: str,
    kernel: Callable[..., Any],
    gradient: GradientFn,
    attrs: str = f"T: {FLOATS}",
    second: str = "features",
) -> OpRecord:
    of = name.removesuffix("Grad")
    return define_op(
        name,
        inputs=f"gradients: T, {second}: T",
        outputs="backprops: T",
        attrs=attrs,
        shape=_merged_shape,
        kernel=traceable(kernel),
        gradient=gradient,
        doc=f"The gradient of {of}, from that of its result and its {second}.",
    )


_activation("Relu", _relu, _of_output("ReluGrad"), "max(x, 0).", f"T: {_RELU_TYPES}")
_activation("Relu6", _relu6, _of_output("Relu6Grad"), "min(max(x, 0), 6).", f"T: {REAL}")
_activation("LeakyRelu", _leaky_relu, _leaky_relu_gradient, "x where positive, else alpha x.", _LEAKY_ATTRS)
_activation("Elu", _elu, _of_output("EluGrad"), "exp(x) - 1 where x < 0, else x.")
_activation("Selu", _selu, _of_output("SeluGrad"), "A scaled Elu that keeps mean 0 and variance 1.")
_activation("Softplus", _softplus, _softplus_gradient, "log(exp(x) + 1).")
_activation("Softsign", _softsign, _softsign_gradient, "x / (|x| + 1).")

_activation_grad("ReluGrad", _together(_relu_grad), _linear("ReluGrad"), f"T: {REAL}")
_activation_grad("Relu6Grad", _together(_relu6_grad), _linear("Relu6Grad"), f"T: {REAL}")
_activation_grad("LeakyReluGrad", _leaky_grad_kernel, _leaky_relu_grad_gradient, _LEAKY_ATTRS)
_activation_grad("EluGrad", _together(_elu_grad), _exponential("EluGrad"), second="outputs")
_activation_grad("SeluGrad", _together(_selu_grad), _exponential("SeluGrad"), second="outputs")
_activation_grad("SoftplusGrad", _together(_softplus_grad), _softplus_grad_gradient)
_activation_grad("SoftsignGrad", _together(_softsign_grad), undefined)

