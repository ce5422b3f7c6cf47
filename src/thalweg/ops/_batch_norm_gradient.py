"""The gradient of the fused batch norm's gradient, in closed form, as nodes. Private to batch_norm.

With r = 1/sqrt(variance + epsilon), h = (x - mean) r, and P(u) = u - mean(u) - h mean(u h), which is its own
transpose, training computes dx = scale r P(dy), dscale = sum(dy h), doffset = sum(dy); r and h depend on x.
TensorFlow builds the same from primitives and differentiates those: other nodes, the same numbers.
"""

from __future__ import annotations

from typing import Any

from thalweg.base import dtypes
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.ops._gradient_nodes import add, cast, mul, sub
from thalweg.ops._windows import layout


class _Channels:
    """Arithmetic per channel on tensors of one data format."""

    def __init__(self, emit: Emitter, op: Operation) -> None:
        self.emit = emit
        data_format = op._attrs["data_format"].decode()
        channel = layout(data_format)[2]
        self.axes = [a for a in range(len(data_format)) if a != channel]
        self.like = [-1 if a == channel else 1 for a in range(len(data_format))]

    def spread(self, vector: Tensor) -> Tensor:
        """A vector, shaped to broadcast along the channels."""
        return self.emit("Reshape", vector, self.like)

    def mean(self, x: Tensor) -> Tensor:
        """The mean of each channel, shaped to broadcast."""
        return self.emit("Mean", x, self.axes, keep_dims=True)

    def sum(self, x: Tensor) -> Tensor:
        """The sum of each channel, as a vector."""
        return self.emit("Sum", x, self.axes)


def grad_gradient(emit: Emitter, op: Operation, ddx: Any, ddscale: Any, ddoffset: Any, *_: Any) -> list[Any]:
    """The gradients of y_backprop, x and scale; the reserves get none, as in TensorFlow."""
    kind = op._inputs[1]._dtype.base_dtype
    dy, x, g = (cast(emit, t, dtypes.float32) for t in (op._inputs[0], op._inputs[1], ddx))
    per = _Channels(emit, op)
    scale, gs, go = (per.spread(t) for t in (op._inputs[2], ddscale, ddoffset))
    rule = _training if op._attrs["is_training"] else _inference
    g_dy, g_x, g_scale = rule(emit, op, per, dy, x, g, scale, gs, go)
    return [cast(emit, g_dy, kind), cast(emit, g_x, kind), g_scale, *(None for _ in op._inputs[3:])]


def _epsilon(emit: Emitter, op: Operation) -> Tensor:
    return emit.constant(op._attrs["epsilon"], dtypes.float32, "epsilon")


def _training(
    emit: Emitter,
    op: Operation,
    per: _Channels,
    dy: Tensor,
    x: Tensor,
    g: Tensor,
    scale: Tensor,
    gs: Tensor,
    go: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    centred = sub(emit, x, per.mean(x))
    variance = per.mean(emit("Square", centred))
    r = emit("Rsqrt", add(emit, variance, _epsilon(emit, op)))
    h = mul(emit, centred, r)

    def project(u: Tensor) -> Tensor:
        less_mean = sub(emit, u, per.mean(u))
        return sub(emit, less_mean, mul(emit, h, per.mean(mul(emit, u, h))))

    projected = project(dy)
    scale_r = mul(emit, scale, r)
    through_dx = mul(emit, scale_r, project(g))
    g_dy = add(emit, add(emit, through_dx, mul(emit, gs, h)), go)
    g_scale = per.sum(mul(emit, mul(emit, g, r), projected))
    # what reaches x through h, then through r
    both = add(emit, mul(emit, g, per.mean(mul(emit, dy, h))), mul(emit, dy, per.mean(mul(emit, g, h))))
    through_h = sub(emit, mul(emit, gs, dy), mul(emit, scale_r, both))
    through_r = mul(emit, mul(emit, scale_r, r), mul(emit, h, per.mean(mul(emit, g, projected))))
    g_x = sub(emit, mul(emit, r, project(through_h)), through_r)
    return g_dy, g_x, g_scale


def _inference(
    emit: Emitter,
    op: Operation,
    per: _Channels,
    dy: Tensor,
    x: Tensor,
    g: Tensor,
    scale: Tensor,
    gs: Tensor,
    go: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    mean, variance = per.spread(op._inputs[3]), per.spread(op._inputs[4])
    r = emit("Rsqrt", add(emit, variance, _epsilon(emit, op)))
    h = mul(emit, sub(emit, x, mean), r)
    g_dy = add(emit, add(emit, mul(emit, g, mul(emit, scale, r)), mul(emit, gs, h)), go)
    g_x = mul(emit, mul(emit, gs, r), dy)
    g_scale = per.sum(mul(emit, mul(emit, g, dy), r))
    return g_dy, g_x, g_scale
