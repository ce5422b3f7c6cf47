"""Biases: one number per channel added to a tensor. Source: TensorFlow's BiasAdd, BiasAddGrad, nn_grad.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import traceable
from thalweg.ops._emitting import concat, head, tail
from thalweg.ops._gradient_nodes import ones_like, sub
from thalweg.ops._precision import in_float32
from thalweg.ops._sums import channel_sums
from thalweg.ops._types import NUMBER

_FORMAT = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"


def _channel_axis(rank: int, data_format: str) -> int:
    return 1 if data_format == "NCHW" else rank - 1


def _bias_shape(c: ShapeContext, data_format: str) -> list[Shape]:
    value, bias = c.with_rank_at_least(0, 2), c.with_rank(1, 1)
    if value is None or bias is None:
        return [value]
    axis = _channel_axis(len(value), data_format)
    channels, given = value[axis], bias[0]
    if channels is not None and given is not None and channels != given:
        raise ValueError(
            f"Dimensions must be equal, but are {channels} and {given}: the value's channels and the bias"
        )
    return [(*value[:axis], given if channels is None else channels, *value[axis + 1 :])]


def _bias_add(value: Any, bias: Any, *, data_format: str) -> Any:
    if value.ndim < 2 or bias.ndim != 1:
        raise ValueError(f"value must be at least 2-D and bias 1-D, got {value.shape} and {bias.shape}")
    axis = _channel_axis(value.ndim, data_format)
    if bias.shape[0] != value.shape[axis]:
        raise ValueError(
            f"Must provide as many biases as the channel dimension of the input tensor: {bias.shape} vs. "
            f"{value.shape[axis]} in {value.shape}"
        )
    return lax.add(value, lax.broadcast_in_dim(bias, value.shape, (axis,)))


def _bias_add_v1(value: Any, bias: Any) -> Any:
    return _bias_add(value, bias, data_format="NHWC")


def _bias_grad_shape(c: ShapeContext) -> list[Shape]:
    dy = c.with_rank_at_least(0, 2)
    return [(None,)] if dy is None else [(dy[_channel_axis(len(dy), c.text("data_format"))],)]


@in_float32
def _bias_add_grad(dy: Any, *, data_format: str) -> Any:
    if dy.ndim < 2:
        raise ValueError(f"Input tensor must be at least 2D: {dy.shape}")
    axis = _channel_axis(dy.ndim, data_format)
    if axis == dy.ndim - 1 and dy.dtype in (np.float32, np.float64):
        return channel_sums(lax.reshape(dy, (int(np.prod(dy.shape[:-1])), dy.shape[-1])))
    others = tuple(a for a in range(dy.ndim) if a != axis)
    return lax.reduce(dy, np.zeros((), dy.dtype), lax.add, others)


def _bias_add_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor]:
    return [dy, emit("BiasAddGrad", dy, data_format=op._attrs["data_format"])]


def _bias_add_v1_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor]:
    last = sub(emit, emit.rank(dy), 1)
    return [dy, emit("Sum", dy, emit("Range", 0, last, 1, name="range"))]


def _bias_add_grad_gradient(emit: Emitter, op: Operation, grad: Tensor) -> list[Tensor]:
    """The bias's gradient repeated over everything but the channels."""
    shape, bias_shape = emit.shape(op._inputs[0]), emit.shape(grad)
    if op._attrs["data_format"] == b"NCHW":
        before, after = ones_like(emit, head(emit, shape, 1)), ones_like(emit, tail(emit, shape, 2))
        expanded = concat(emit, [before, bias_shape, after], 0)
        times = concat(emit, [head(emit, shape, 1), [1], tail(emit, shape, 2)], 0)
    else:
        expanded = concat(emit, [ones_like(emit, head(emit, shape, -1)), bias_shape], 0)
        times = concat(emit, [head(emit, shape, -1), [1]], 0)
    return [emit("Tile", emit("Reshape", grad, expanded), times)]


define_op(
    "BiasAdd",
    inputs="value: T, bias: T",
    outputs="output: T",
    attrs=f"T: {NUMBER}, {_FORMAT}",
    shape=lambda c: _bias_shape(c, c.text("data_format")),
    kernel=traceable(_bias_add),
    gradient=_bias_add_gradient,
    doc="value with bias[c] added to channel c: the last axis, or the second one of NCHW.",
)

define_op(
    "BiasAddV1",
    inputs="value: T, bias: T",
    outputs="output: T",
    attrs=f"T: {NUMBER}",
    shape=lambda c: _bias_shape(c, "NHWC"),
    kernel=traceable(_bias_add_v1),
    gradient=_bias_add_v1_gradient,
    doc="BiasAdd on the last axis, as graphs of the first releases have it.",
)

define_op(
    "BiasAddGrad",
    inputs="out_backprop: T",
    outputs="output: T",
    attrs=f"T: {NUMBER}, {_FORMAT}",
    shape=_bias_grad_shape,
    kernel=traceable(_bias_add_grad),
    gradient=_bias_add_grad_gradient,
    doc="The sums over everything but the channels: the gradient of a bias.",
)
