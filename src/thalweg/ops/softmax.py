"""Softmax and what is computed with it: logarithm, cross entropies. And L2Loss.

Source: TensorFlow's nn_ops.cc, softmax_op, xent_op, sparse_xent_op, nn_grad.py.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel import checks
from thalweg.kernel.convention import traceable
from thalweg.ops._broadcast import together
from thalweg.ops._gradient_nodes import add, mul, neg, sub
from thalweg.ops._precision import in_float32
from thalweg.ops._types import FLOATS, INDEX

# -- kernels ------------------------------------------------------------------------------------------------


def _over_last(x: Any, like: Any) -> Any:
    """One number per row, repeated along a last axis."""
    return lax.broadcast_in_dim(x, like.shape, tuple(range(like.ndim - 1)))


def _sum_rows(x: Any) -> Any:
    return lax.reduce(x, np.zeros((), x.dtype), lax.add, (x.ndim - 1,))


def _shifted(logits: Any) -> tuple[Any, Any]:
    """(logits less their row's greatest, the sum of the exponentials of those)."""
    if logits.ndim < 1:
        raise ValueError("logits must have >= 1 dimension, got a scalar")
    top = lax.reduce(logits, np.array(-np.inf, logits.dtype), lax.max, (logits.ndim - 1,))
    below = lax.sub(logits, _over_last(top, logits))
    return below, _sum_rows(lax.exp(below))


@in_float32
def _softmax(logits: Any) -> Any:
    below, total = _shifted(logits)
    return lax.div(lax.exp(below), _over_last(total, logits))


@in_float32
def _log_softmax(logits: Any) -> Any:
    below, total = _shifted(logits)
    return lax.sub(below, _over_last(lax.log(total), logits))


@in_float32
def _cross_entropy(features: Any, labels: Any) -> Any:
    features, labels = together(features, labels)
    if features.ndim != 2:
        raise ValueError(f"logits and labels must be 2-D, or broadcast to 2-D, got {features.shape}")
    below, total = _shifted(features)
    terms = lax.mul(labels, lax.sub(_over_last(lax.log(total), features), below))
    # a class of no weight adds nothing, even where its logit is -inf
    terms = lax.select(lax.eq(labels, lax.full_like(labels, 0)), lax.full_like(terms, 0), terms)
    probabilities = lax.div(lax.exp(below), _over_last(total, features))
    return _sum_rows(terms), lax.sub(probabilities, labels)


def _sparse_cross_entropy(features: Any, labels: Any) -> Any:
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise ValueError(
            f"logits must be [batch, classes] and labels [batch], got {features.shape} and {labels.shape}"
        )
    classes = features.shape[1]
    xp: Any = np if isinstance(labels, np.ndarray) else jnp
    inside = xp.logical_and(labels >= 0, labels < classes)
    if labels.shape[0]:
        first = xp.argmin(inside)
        checks.require(xp.all(inside), lambda label: _label_message(label, classes), labels[first])
    return _sparse_cross_entropy_of(features, labels)


def _label_message(label: np.ndarray, classes: int) -> str:
    return f"Received a label value of {label} which is outside the valid range of [0, {classes})."


@in_float32
def _sparse_cross_entropy_of(features: Any, labels: Any) -> Any:
    below, total = _shifted(features)
    column = lax.broadcasted_iota(labels.dtype, features.shape, 1)
    mine = lax.eq(column, _over_last(labels, features))
    chosen = _sum_rows(lax.select(mine, below, lax.full_like(below, 0)))
    probabilities = lax.div(lax.exp(below), _over_last(total, features))
    ones = lax.convert_element_type(mine, features.dtype)
    return lax.sub(lax.log(total), chosen), lax.sub(probabilities, ones)


@in_float32
def _l2_loss(t: Any) -> Any:
    total = lax.reduce(lax.mul(t, t), np.zeros((), t.dtype), lax.add, tuple(range(t.ndim)))
    return lax.mul(total, np.array(0.5, t.dtype))


# -- shapes -------------------------------------------------------------------------------------------------


def _softmax_shape(c: ShapeContext) -> list[Shape]:
    return [c.with_rank_at_least(0, 1)]


def _cross_entropy_shape(c: ShapeContext) -> list[Shape]:
    both = shapes.broadcast(c.shape(0), c.shape(1))
    if both is None:
        return [(None,), (None, None)]
    if len(both) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(both)}: {shapes.format_shape(both)}")
    return [(both[0],), both]


def _sparse_cross_entropy_shape(c: ShapeContext) -> list[Shape]:
    features, labels = c.with_rank(0, 2), c.with_rank(1, 1)
    assert features is not None and labels is not None
    rows = shapes.merge((features[0],), labels)
    assert rows is not None
    return [rows, (rows[0], features[1])]


# -- gradients ----------------------------------------------------------------------------------------------


def _last_sum(emit: Emitter, x: Tensor) -> Tensor:
    return emit("Sum", x, -1, keep_dims=True)


def _softmax_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    y = op._outputs[0]
    total = _last_sum(emit, mul(emit, dy, y))
    return [mul(emit, sub(emit, dy, total), y)]


def _log_softmax_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    y = emit("Exp", op._outputs[0])
    return [sub(emit, dy, mul(emit, _last_sum(emit, dy), y))]


def _per_row(emit: Emitter, vector: Tensor, matrix: Tensor) -> Tensor:
    """matrix, each row times its number in vector."""
    return mul(emit, emit("ExpandDims", vector, -1), matrix)


def _is_zeros(grad: Tensor) -> bool:
    """Whether a gradient is the zeros that stand in for an output nobody uses."""
    return grad._op.type == "ZerosLike"


def _logits_gradient(emit: Emitter, op: Operation, loss_grad: Tensor, backprop_grad: Tensor) -> Tensor:
    """The gradient of either cross entropy's logits. Second derivatives are those of a softmax."""
    grad = _per_row(emit, loss_grad, op._outputs[1])
    if backprop_grad is None or _is_zeros(backprop_grad):
        return grad
    softmax = emit("Softmax", op._inputs[0])
    row, column = emit("ExpandDims", backprop_grad, 1), emit("ExpandDims", softmax, 2)
    dot = emit("Squeeze", emit("BatchMatMulV2", row, column, name="MatMul"), squeeze_dims=[1])
    return add(emit, grad, mul(emit, sub(emit, backprop_grad, dot), softmax))


def _cross_entropy_gradient(
    emit: Emitter, op: Operation, loss_grad: Tensor, backprop_grad: Tensor
) -> list[Any]:
    grad = _logits_gradient(emit, op, loss_grad, backprop_grad)
    return [grad, _per_row(emit, loss_grad, neg(emit, emit("LogSoftmax", op._inputs[0])))]


def _sparse_cross_entropy_gradient(
    emit: Emitter, op: Operation, loss_grad: Tensor, backprop_grad: Tensor
) -> list[Any]:
    return [_logits_gradient(emit, op, loss_grad, backprop_grad), None]


# -- definitions --------------------------------------------------------------------------------------------

define_op(
    "Softmax",
    inputs="logits: T",
    outputs="softmax: T",
    attrs=f"T: {FLOATS}",
    shape=_softmax_shape,
    kernel=traceable(_softmax),
    gradient=_softmax_gradient,
    doc="exp(logits) / sum(exp(logits)) along the last axis.",
)

define_op(
    "LogSoftmax",
    inputs="logits: T",
    outputs="logsoftmax: T",
    attrs=f"T: {FLOATS}",
    shape=_softmax_shape,
    kernel=traceable(_log_softmax),
    gradient=_log_softmax_gradient,
    doc="logits - log(sum(exp(logits))) along the last axis.",
)

define_op(
    "SoftmaxCrossEntropyWithLogits",
    inputs="features: T, labels: T",
    outputs="loss: T, backprop: T",
    attrs=f"T: {FLOATS}",
    shape=_cross_entropy_shape,
    kernel=traceable(_cross_entropy),
    gradient=_cross_entropy_gradient,
    doc="For each row the cross entropy of labels and softmax(features), and its gradient.",
)

define_op(
    "SparseSoftmaxCrossEntropyWithLogits",
    inputs="features: T, labels: Tlabels",
    outputs="loss: T, backprop: T",
    attrs=f"T: {FLOATS}, Tlabels: {INDEX} = int64",
    shape=_sparse_cross_entropy_shape,
    kernel=traceable(_sparse_cross_entropy, may_fail=True),
    gradient=_sparse_cross_entropy_gradient,
    doc="SoftmaxCrossEntropyWithLogits for labels given as one class number a row.",
)

define_op(
    "L2Loss",
    inputs="t: T",
    outputs="output: T",
    attrs=f"T: {FLOATS}",
    shape=lambda c: [()],
    kernel=traceable(_l2_loss),
    gradient=lambda emit, op, dy: [mul(emit, op._inputs[0], dy)],
    doc="Half the sum of the squares.",
)
