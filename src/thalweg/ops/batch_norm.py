"""Fused batch normalisation and its gradient, three versions each. Source: TensorFlow's fused_batch_norm_op.

The reserves are what TensorFlow's CPU kernels leave: the batch's mean and (biased) variance. The arithmetic
is in _batch_norm.py.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import traceable
from thalweg.ops import _batch_norm as formulas
from thalweg.ops._batch_norm_gradient import grad_gradient
from thalweg.ops._precision import single
from thalweg.ops._windows import layout

_NUMBERS = "epsilon: float = 9.999999747378752e-05"
_FACTOR = "exponential_avg_factor: float = 1.0"
_PLANE = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
_ANY = "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'"
_TRAINING = "is_training: bool = True"
_T1 = "T: {float}"
_T2 = "T: {half, bfloat16, float}, U: {float}"
_T3 = "T: {half, bfloat16, float}, U: {bfloat16, float}"


# -- kernels ------------------------------------------------------------------------------------------------


def _check(x: Any, data_format: str, **vectors: Any) -> int:
    """The number of channels, which each of the vectors must have."""
    channels: int = x.shape[layout(data_format)[2]]
    for name, vector in vectors.items():
        if tuple(vector.shape) != (channels,):
            raise ValueError(
                f"{name} must have the same number of elements as the channels of x, got {vector.shape} and "
                f"{channels}"
            )
    return channels


def _forward(outputs: int) -> Any:
    def kernel(
        x: Any,
        scale: Any,
        offset: Any,
        mean: Any,
        variance: Any,
        *,
        epsilon: float,
        exponential_avg_factor: float,
        data_format: str,
        is_training: bool,
    ) -> Any:
        if x.ndim != len(data_format):
            raise ValueError(f"input must be {len(data_format)}-dimensional, got {x.shape}")
        _check(x, data_format, scale=scale, offset=offset)
        if not is_training or exponential_avg_factor != 1.0:
            _check(x, data_format, mean=mean, variance=variance)
        kind = scale.dtype
        given = [v.astype(np.float32) for v in (scale, offset, mean, variance)]
        results = formulas.fused_batch_norm(
            x,
            *given,
            epsilon=single(epsilon),
            exponential_avg_factor=single(exponential_avg_factor),
            data_format=data_format,
            is_training=is_training,
        )
        y, *statistics = results[:outputs]
        return (y, *(jnp.asarray(s).astype(kind) for s in statistics))

    return kernel


def _backward_kernel(
    y_backprop: Any,
    x: Any,
    scale: Any,
    reserve_1: Any,
    reserve_2: Any,
    *reserve_3: Any,
    epsilon: float,
    data_format: str,
    is_training: bool,
) -> Any:
    if x.shape != y_backprop.shape:
        raise ValueError(f"x and y_backprop must have the same shape, got {x.shape} and {y_backprop.shape}")
    _check(x, data_format, scale=scale, reserve_space_1=reserve_1, reserve_space_2=reserve_2)
    how = {"epsilon": single(epsilon), "data_format": data_format, "is_training": is_training}
    results = formulas.fused_batch_norm_grad(y_backprop, x, scale, reserve_1, reserve_2, **how)
    nothing = jnp.zeros((0,), np.float32)
    return (*results, nothing, nothing)


# -- shapes -------------------------------------------------------------------------------------------------


def _merge_channels(c: ShapeContext, x: Shape, inputs: range) -> tuple[tuple[Any, ...], int, Any]:
    """(x's shape, its channel axis, the number of channels that x and the vectors agree on)."""
    assert x is not None
    axis = layout(c.text("data_format"))[2]
    channels: Shape = (x[axis],)
    for i in inputs:
        vector = c.with_rank(i, 1)
        if vector is not None and vector[0] != 0:  # statistics that training ignores may be empty
            channels = shapes.merge(channels, vector)
    assert channels is not None
    return x, axis, channels[0]


def _forward_shape(c: ShapeContext) -> list[Shape]:
    given = range(1, 3) if c.attr("is_training") else range(1, 5)
    x, axis, channels = _merge_channels(c, c.with_rank(0, len(c.text("data_format"))), given)
    y = (*x[:axis], channels, *x[axis + 1 :])
    rest: list[Shape] = [(channels,)] * (len(c.op._outputs) - 1)
    if len(c.op._outputs) == 6:
        rest[-1] = None
    return [y, *rest]


def _backward_shape(c: ShapeContext) -> list[Shape]:
    rank = len(c.text("data_format"))
    both = shapes.merge(c.with_rank(0, rank), c.with_rank(1, rank))
    x, axis, channels = _merge_channels(c, both, range(2, 5))
    return [(*x[:axis], channels, *x[axis + 1 :]), (channels,), (channels,), (0,), (0,)]


# -- gradients ----------------------------------------------------------------------------------------------


def _transposed(emit: Emitter, x: Tensor, perm: list[int]) -> Tensor:
    return emit("Transpose", x, perm, name="transpose")


_TO_LAST = {b"NCHW": [0, 2, 3, 1], b"NCDHW": [0, 2, 3, 4, 1]}
_FROM_LAST = {b"NCHW": [0, 3, 1, 2], b"NCDHW": [0, 4, 1, 2, 3]}


def _forward_gradient(grad_op: str) -> Any:
    def gradient(emit: Emitter, op: Operation, dy: Tensor, *unused: Any) -> list[Any]:
        x, scale, _, mean, variance = op._inputs
        attrs = {name: op._attrs[name] for name in ("epsilon", "data_format", "is_training")}
        third = op._outputs[5:]
        if op._attrs["is_training"]:
            return [*emit(grad_op, dy, x, scale, *op._outputs[3:5], *third, **attrs)[:3], None, None]
        data_format = op._attrs["data_format"]
        if data_format in _TO_LAST:
            x = _transposed(emit, x, _TO_LAST[data_format])
            dy = _transposed(emit, dy, _TO_LAST[data_format])
        attrs["data_format"] = b"NHWC" if data_format in (b"NCHW", b"NHWC") else b"NDHWC"
        dx, *others = emit(grad_op, dy, x, scale, mean, variance, *third, **attrs)[:3]
        if data_format in _FROM_LAST:
            dx = _transposed(emit, dx, _FROM_LAST[data_format])
        return [dx, *others, None, None]

    return gradient


# -- definitions --------------------------------------------------------------------------------------------


def _define(version: str, types: str, vector: str, scale: str, data_format: str, *, third: bool) -> None:
    name, grad = f"FusedBatchNorm{version}", f"FusedBatchNormGrad{version}"
    reserves = f"reserve_space_1: {vector}, reserve_space_2: {vector}"
    last = f", reserve_space_3: {vector}" if third else ""
    define_op(
        name,
        inputs=f"x: T, scale: {vector}, offset: {vector}, mean: {vector}, variance: {vector}",
        outputs=f"y: T, batch_mean: {vector}, batch_variance: {vector}, {reserves}{last}",
        attrs=f"{types}, {_NUMBERS}, {_FACTOR}, {data_format}, {_TRAINING}",
        shape=_forward_shape,
        kernel=traceable(_forward(6 if third else 5)),
        gradient=_forward_gradient(grad),
        doc="x normalised by mean and variance per channel (given ones when not training), scaled, shifted.",
    )
    first, second = ("4", "5") if third else ("3", "4")
    define_op(
        grad,
        inputs=f"y_backprop: T, x: T, scale: {scale}, {reserves}{last}",
        outputs=f"x_backprop: T, scale_backprop: {vector}, offset_backprop: {vector}, "
        f"reserve_space_{first}: {vector}, reserve_space_{second}: {vector}",
        attrs=f"{types.replace(_T3, _T2)}, {_NUMBERS}, {data_format}, {_TRAINING}",
        shape=_backward_shape,
        kernel=traceable(_backward_kernel),
        gradient=grad_gradient,
        doc=f"The gradient of {name}.",
    )


_define("", _T1, "T", "T", _PLANE, third=False)
_define("V2", _T2, "U", "float", _PLANE, third=False)
_define("V3", _T3, "U", "float", _ANY, third=True)
