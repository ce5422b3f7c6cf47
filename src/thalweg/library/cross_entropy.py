"""Losses of logits: cross entropies."""

from __future__ import annotations

import math
from typing import Any

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import renamed, scope
from thalweg.library.array_ops import rank, shape
from thalweg.library.casting import cast
from thalweg.library.check_ops import assert_equal
from thalweg.library.fill_ops import ones_like, zeros_like
from thalweg.library.sequence_ops import range


def _require_both(of: str, labels: Any, logits: Any) -> None:
    if labels is None or logits is None:
        raise ValueError(f"Both labels and logits must be provided to {of}.")


def softmax_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, dim: int = -1, name: str | None = None, axis: int | None = None
) -> Tensor:
    """The cross entropy of softmax(logits) against distributions along `dim`; labels count as constants.

    softmax_cross_entropy_with_logits_v2 lets gradients into the labels.
    """
    axis = dim if axis is None else axis
    _require_both("softmax_cross_entropy_with_logits", labels, logits)
    with scope(name, "softmax_cross_entropy_with_logits_sg") as named:
        labels = emit("StopGradient", labels, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(labels, logits, axis=axis, name=named)


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """The cross entropy of softmax(logits) against distributions along `axis` (the last)."""
    axis = renamed("axis", axis, "dim", dim)
    axis = -1 if axis is None else axis
    with scope(name, "softmax_cross_entropy_with_logits") as named:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        small = logits.dtype.base_dtype in (dtypes.float16, dtypes.bfloat16)
        precise = cast(logits, dtypes.float32) if small else logits
        labels = cast(labels, precise.dtype.base_dtype)
        n = rank(precise)
        static = logits._shape
        if axis != -1:
            precise, labels = _axis_to_end(precise, axis, n), _axis_to_end(labels, axis, n)
        outer = shape(precise)
        cost, _ = emit("SoftmaxCrossEntropyWithLogits", _flat_outer(precise), _flat_outer(labels), name=named)
        outer = emit("Slice", outer, [0], [emit("Sub", n, 1)])
        cost = emit("Reshape", cost, outer)
        if static is not None:
            left = list(static)
            del left[axis]
            cost.set_shape(left)
        return cast(cost, logits.dtype.base_dtype) if small else cost


def _axis_to_end(x: Tensor, axis: int, n: Tensor) -> Tensor:
    if x._shape is not None:
        axis %= len(x._shape)
    order = emit("ConcatV2", [range(axis), range(axis + 1, n), [axis]], 0, name="concat")
    return emit("Transpose", x, order, name="transpose")


def _flat_outer(x: Tensor) -> Tensor:
    """x as a matrix: all axes but the last in one."""
    n = rank(x)
    last = emit("Slice", shape(x), [emit("Sub", n, 1)], [1])
    result = emit("Reshape", x, emit("ConcatV2", [[-1], last], 0, name="concat"))
    if x._shape and None not in x._shape[:-1]:
        result.set_shape((shapes.num_elements(x._shape[:-1]), x._shape[-1]))
    return result


def sparse_softmax_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """The cross entropy of softmax(logits) along the last axis against the class numbers `labels`.

    labels: the shape of logits without its last axis. A label outside the classes is an error (on the CPU).
    Errors: ValueError where the shapes don't fit.
    """
    _require_both("sparse_softmax_cross_entropy_with_logits", labels, logits)
    with scope(name, "SparseSoftmaxCrossEntropyWithLogits"):
        labels = convert_to_tensor(labels)
        logits = convert_to_tensor(logits)
        half = logits.dtype.base_dtype == dtypes.float16
        precise = cast(logits, dtypes.float32) if half else logits
        label_shape = shape(labels)
        _require_labels_fit(labels._shape, logits._shape)
        if logits._shape is not None and len(logits._shape) == 2:
            cost, _ = emit("SparseSoftmaxCrossEntropyWithLogits", precise, labels, name=name)
        else:
            cost = _sparse_any_rank(labels, logits, precise, label_shape, name)
        return cast(cost, dtypes.float16) if half else cost


def _require_labels_fit(labels: shapes.Shape, logits: shapes.Shape) -> None:
    if logits is None:
        return
    if not logits:
        raise ValueError("Logits cannot be scalars - received shape ().")
    if labels is None:
        return
    if len(labels) != len(logits) - 1:
        raise ValueError(
            f"Rank mismatch: Rank of labels (received {len(labels)}) should equal rank of logits minus 1 "
            "(received "
            f"{len(logits)})."
        )
    if not shapes.is_compatible(labels, logits[:-1]):
        raise ValueError(
            "Shape mismatch: The shape of labels (received "
            f"{shapes.format_shape(labels)}) should equal the shape of logits except for the last dimension "
            f"(received {shapes.format_shape(logits)})."
        )


def _sparse_any_rank(
    labels: Tensor, logits: Tensor, precise: Tensor, label_shape: Tensor, name: str | None
) -> Tensor:
    checks = []
    if not (
        shapes.is_fully_defined(labels._shape)
        and logits._shape is not None
        and shapes.is_fully_defined(logits._shape[:-1])
    ):
        checks.append(assert_equal(shape(labels), shape(logits)[:-1]))
    with get_default_graph().control_dependencies(checks):
        classes = shape(logits)[rank(logits) - 1]
        flat = emit("Reshape", precise, [-1, classes])
        flat_labels = emit("Reshape", labels, [-1])
        cost, _ = emit("SparseSoftmaxCrossEntropyWithLogits", flat, flat_labels, name=name)
        cost = emit("Reshape", cost, label_shape)
        cost.set_shape(labels._shape)
        return cost


def _require_same_shape(a: Tensor, b: Tensor, what: str) -> None:
    if not shapes.is_compatible(a._shape, b._shape):
        raise ValueError(
            f"{what} must have the same shape ({shapes.format_shape(a._shape)} vs "
            f"{shapes.format_shape(b._shape)})"
        )


def sigmoid_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """The cross entropy of sigmoid(logits) against probabilities, each element by itself, without
    overflow."""
    _require_both("sigmoid_cross_entropy_with_logits", labels, logits)
    with scope(name, "logistic_loss") as named:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        _require_same_shape(logits, labels, "logits and labels")
        # max(x, 0) - x z + log(1 + exp(-|x|)), written so that the gradient at 0 is right
        zeros = zeros_like(logits, logits.dtype)
        positive = logits >= zeros
        relu = emit("Select", positive, logits, zeros)
        minus_abs = emit("Select", positive, -logits, logits)
        return emit("AddV2", relu - logits * labels, emit("Log1p", emit("Exp", minus_abs)), name=named)


def weighted_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    pos_weight: Any = None,
    name: str | None = None,
    targets: Any = None,
) -> Tensor:
    """sigmoid_cross_entropy_with_logits with the positive part weighted by pos_weight."""
    labels = renamed("labels", labels, "targets", targets)
    with scope(name, "logistic_loss") as named:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        _require_same_shape(logits, labels, "logits and targets")
        weight = 1 + (pos_weight - 1) * labels
        linear = (1 - labels) * logits
        log_part = emit("Log1p", emit("Exp", -emit("Abs", logits))) + emit("Relu", -logits)
        return emit("AddV2", linear, weight * log_part, name=named)


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """The loss exp(log_input) - log_input targets of Poisson's distribution; compute_full_loss adds
    Stirling's term."""
    with scope(name, "log_poisson_loss"):
        log_input = convert_to_tensor(log_input, name="log_input")
        targets = convert_to_tensor(targets, name="targets")
        _require_same_shape(log_input, targets, "log_input and targets")
        result = emit("Exp", log_input) - log_input * targets
        if not compute_full_loss:
            return result
        kind = targets.dtype.base_dtype
        half, two_pi = emit.constant(0.5, kind), emit.constant(2 * math.pi, kind)
        stirling = targets * emit("Log", targets) - targets + half * emit("Log", two_pi * targets)
        zeros, ones = zeros_like(targets, kind), ones_like(targets, kind)
        small = emit("LogicalAnd", targets >= zeros, targets <= ones)
        return result + emit("Select", small, zeros, stirling)
