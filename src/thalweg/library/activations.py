"""Activation functions and softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base.errors import InvalidArgumentError
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import renamed, scope
from thalweg.library.casting import cast
from thalweg.library.math_ops import sigmoid, tanh

__all__ = [
    "crelu",
    "elu",
    "leaky_relu",
    "log_softmax",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "softmax",
    "softplus",
    "softsign",
    "swish",
    "tanh",
]


def relu(features: Any, name: str | None = None) -> Tensor:
    """max(features, 0)."""
    return emit("Relu", features, name=name)


def relu6(features: Any, name: str | None = None) -> Tensor:
    """min(max(features, 0), 6)."""
    with scope(name, "Relu6") as named:
        return emit("Relu6", convert_to_tensor(features, name="features"), name=named)


def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> Tensor:
    """features, times alpha where it is negative. Integers become float32."""
    with scope(name, "LeakyRelu") as named:
        features = convert_to_tensor(features, name="features")
        if features.dtype.is_integer:
            features = cast(features, dtypes.float32)
        if isinstance(alpha, Tensor):
            return emit("Maximum", alpha * features, features, name=named)
        return emit("LeakyRelu", features, alpha=float(alpha), name=named)


def elu(features: Any, name: str | None = None) -> Tensor:
    """features, and exp(features) - 1 where it is negative."""
    return emit("Elu", features, name=name)


def selu(features: Any, name: str | None = None) -> Tensor:
    """elu scaled so that it keeps mean 0 and variance 1."""
    return emit("Selu", features, name=name)


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """relu of features and of -features, side by side along `axis`."""
    with scope(name, "CRelu") as named:
        features = convert_to_tensor(features, name="features")
        both = emit("ConcatV2", [features, -features], axis, name=named)
        return emit("Relu", both)


def softplus(features: Any, name: str | None = None) -> Tensor:
    """log(1 + exp(features))."""
    return emit("Softplus", features, name=name)


def softsign(features: Any, name: str | None = None) -> Tensor:
    """features / (1 + |features|)."""
    return emit("Softsign", features, name=name)


def swish(features: Any, beta: Any = 1.0) -> Tensor:
    """features times sigmoid(beta * features)."""
    features = convert_to_tensor(features, name="features")
    with scope(None, "swish"):
        return features * emit("Sigmoid", features if _is_one(beta) else beta * features)


def _is_one(beta: Any) -> bool:
    return not isinstance(beta, Tensor) and np.isscalar(beta) and beta == 1


# ---- softmax -------------------------------------------------------------------------------------------


def softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: Any = None) -> Tensor:
    """exp(logits) divided by its sums along `axis` (the last)."""
    return _along(logits, "Softmax", renamed("axis", axis, "dim", dim), name)


def log_softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: Any = None) -> Tensor:
    """log(softmax(logits)) along `axis` (the last)."""
    return _along(logits, "LogSoftmax", renamed("axis", axis, "dim", dim), name)


def _along(inputs: Any, op: str, axis: Any, name: str | None) -> Tensor:
    """An op of the last axis, along another: the two are swapped before and after."""
    axis = -1 if axis is None else axis
    inputs = convert_to_tensor(inputs)
    shape = inputs._shape
    if axis == -1 or (shape is not None and axis == len(shape) - 1):
        return emit(op, inputs, name=name)
    if shape is None:
        raise ValueError(f"{op} along axis {axis} needs a known rank, got '{inputs.name}'")
    rank = len(shape)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            None,
            None,
            f"`dim` must be in the range [{-rank}, {rank}) where {rank} is the number of dimensions, got "
            f"{axis}",
        )
    axis %= rank
    perm = list(range(rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    order = np.array(perm, np.int32)
    swapped = emit(op, emit("Transpose", inputs, order, name="transpose"))
    result = emit("Transpose", swapped, order, name=name or "transpose")
    result.set_shape(shape)
    return result
