"""Local response normalisation over neighbouring channels (Krizhevsky et al. 2012). Source: lrn_op."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import traceable
from thalweg.ops._no_gradient import undefined
from thalweg.ops._precision import in_float32, single

_ATTRS = (
    "depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5, "
    "T: {half, bfloat16, float} = float"
)


def _neighbours(x: Any, radius: int) -> Any:
    """The sum over channels up to `radius` away."""
    one, zero = (1,) * x.ndim, ((0, 0),) * (x.ndim - 1)
    window = (*one[1:], 2 * radius + 1)
    return lax.reduce_window(x, np.zeros((), x.dtype), lax.add, window, one, (*zero, (radius, radius)))


def _norm(x: Any, radius: int, bias: float, alpha: float) -> Any:
    if x.ndim != 4:
        raise ValueError(f"in must be 4-dimensional, got {x.shape}")
    scaled = lax.mul(_neighbours(lax.mul(x, x), radius), lax.full_like(x, single(alpha)))
    return lax.add(scaled, lax.full_like(x, single(bias)))


def _power(x: Any, exponent: float) -> Any:
    return lax.pow(x, np.array(exponent, x.dtype))


@in_float32
def _lrn(x: Any, *, depth_radius: int, bias: float, alpha: float, beta: float) -> Any:
    return lax.mul(x, _power(_norm(x, depth_radius, bias, alpha), -single(beta)))


@in_float32
def _lrn_grad(
    grads: Any, x: Any, y: Any, *, depth_radius: int, bias: float, alpha: float, beta: float
) -> Any:
    norm = _norm(x, depth_radius, bias, alpha)
    own = lax.mul(grads, _power(norm, -single(beta)))
    shared = _neighbours(lax.div(lax.mul(grads, y), norm), depth_radius)
    factor = lax.full_like(x, -2.0 * single(alpha) * single(beta))
    return lax.add(own, lax.mul(lax.mul(factor, x), shared))


def _lrn_shape(c: ShapeContext) -> list[Shape]:
    return [c.with_rank(0, 4)]


def _lrn_grad_shape(c: ShapeContext) -> list[Shape]:
    merged: Shape = None
    for i in range(3):
        merged = shapes.merge(merged, c.with_rank(i, 4))
    return [merged]


def _lrn_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    attrs = {name: op._attrs[name] for name in ("depth_radius", "bias", "alpha", "beta")}
    return [emit("LRNGrad", dy, op._inputs[0], op._outputs[0], **attrs)]


define_op(
    "LRN",
    inputs="input: T",
    outputs="output: T",
    attrs=_ATTRS,
    shape=_lrn_shape,
    kernel=traceable(_lrn),
    gradient=_lrn_gradient,
    doc="input / (bias + alpha * sum of squares over neighbouring channels) ** beta.",
)

define_op(
    "LRNGrad",
    inputs="input_grads: T, input_image: T, output_image: T",
    outputs="output: T",
    attrs=_ATTRS,
    shape=_lrn_grad_shape,
    kernel=traceable(_lrn_grad),
    gradient=undefined,
    doc="The gradient of LRN.",
)
