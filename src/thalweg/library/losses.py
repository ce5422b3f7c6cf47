"""tf.losses: losses with weights and a reduction, collected in the graph."""

from __future__ import annotations

from typing import Any

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library.arguments import renamed, scope
from thalweg.library.array_ops import rank, shape, size
from thalweg.library.casting import cast
from thalweg.library.check_ops import Assert
from thalweg.library.counting_ops import remove_squeezable_dimensions
from thalweg.library.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)
from thalweg.library.fill_ops import ones_like, zeros_like
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.grouping import no_op
from thalweg.library.math_ops import add_n, div_no_nan
from thalweg.library.reduction_ops import reduce_all, reduce_sum
from thalweg.library.sequence_ops import range as range_op


class Reduction:
    """How the losses of a batch become one: the sum, the weighted mean, the mean over weights that aren't
    0 ..."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """The values."""
        return (
            cls.NONE,
            cls.SUM,
            cls.MEAN,
            cls.SUM_OVER_BATCH_SIZE,
            cls.SUM_OVER_NONZERO_WEIGHTS,
            cls.SUM_BY_NONZERO_WEIGHTS,
        )

    @classmethod
    def validate(cls, key: str) -> None:
        """ValueError where key is none of them."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}.")


_BY_NONZERO = Reduction.SUM_BY_NONZERO_WEIGHTS


# ---- the collection ------------------------------------------------------------------------------------


def add_loss(loss: Tensor, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Adds a loss to a collection; None: to none."""
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Tensor]:
    """The losses made so far; with `scope`, those whose names start so."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Tensor]:
    """The regularisation losses of variables made so far; with `scope`, those whose names start so."""
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(
    scope: str | None = None, name: str | None = "total_regularization_loss"
) -> Tensor:
    """The sum of the regularisation losses; 0 without any."""
    losses = get_regularization_losses(scope)
    return add_n(losses, name=name) if losses else emit.constant(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str | None = "total_loss", scope: str | None = None
) -> Tensor:
    """The sum of all losses made so far, with those of regularisation if asked."""
    losses = get_losses(scope)
    if add_regularization_losses:
        losses += get_regularization_losses(scope)
    return add_n(losses, name=name)


# ---- weights -------------------------------------------------------------------------------------------

_BROADCAST = "weights can not be broadcast to values."


def _assert_broadcastable(weights: Any, values: Any) -> Operation:
    """Checks that weights are a scalar, or of values' rank with each dimension 1 or the same; at once if
    known."""
    with scope(None, "assert_broadcastable") as named:
        with scope(None, "weights") as weights_name:
            weights = convert_to_tensor(weights, name=weights_name)
            weights_shape = emit.shape(weights, name="shape")
            weights_rank = emit.rank(weights, name="rank")
        with scope(None, "values") as values_name:
            values = convert_to_tensor(values, name=values_name)
            values_shape = emit.shape(values, name="shape")
            values_rank = emit.rank(values, name="rank")
        w, v = weights._shape, values._shape
        if w == ():
            return no_op(name="static_scalar_check_success")
        if w is not None and v is not None:
            shown = f"values.shape={shapes.format_shape(v)}. weights.shape={shapes.format_shape(w)}."
            if len(w) != len(v):
                raise ValueError(f"{_BROADCAST} values.rank={len(v)}. weights.rank={len(w)}. {shown}")
            if shapes.is_fully_defined(w) and shapes.is_fully_defined(v):
                for i, (a, b) in enumerate(zip(w, v, strict=True)):
                    if a not in (1, b):
                        raise ValueError(f"{_BROADCAST} Mismatch at dim {i}. {shown}")
                return no_op(name="static_dims_check_success")
        is_scalar = emit("Equal", 0, weights_rank, name="is_scalar")
        same_rank = emit("Equal", values_rank, weights_rank, name="is_same_rank")
        # shapes of one rank: broadcasting together changes nothing of the values' shape
        joint = emit("BroadcastArgs", weights_shape, values_shape)
        fits = emit("LogicalAnd", same_rank, reduce_all(emit("Equal", joint, values_shape)))
        valid = emit("LogicalOr", is_scalar, fits, name="is_valid_shape")
        data = [
            _BROADCAST,
            "weights.shape=",
            weights.name,
            weights_shape,
            "values.shape=",
            values.name,
            values_shape,
            "is_scalar=",
            is_scalar,
        ]
        return Assert(valid, data, name=named)


def _broadcast_weights(weights: Any, values: Any) -> Tensor:
    with scope(None, "broadcast_weights") as named:
        values = convert_to_tensor(values, name="values")
        weights = convert_to_tensor(weights, values.dtype.base_dtype, name="weights")
        w, v = weights._shape, values._shape
        if shapes.is_fully_defined(w) and w == v:
            return weights
        with get_default_graph().control_dependencies([_assert_broadcastable(weights, values)]):
            return emit("Mul", weights, ones_like(values), name=named)


def _num_present(losses: Tensor, weights: Any, per_batch: bool = False) -> Tensor:
    """How many elements have a weight that isn't 0."""
    if isinstance(weights, float) and weights != 0.0:
        return _num_elements(losses)
    with scope(None, "num_present") as named:
        weights = cast(weights, dtypes.float32)
        is_zero = emit("Equal", weights, 0.0)
        present = emit("Select", is_zero, zeros_like(weights), ones_like(weights))
        present = _broadcast_weights(present, losses)
        if per_batch:
            return reduce_sum(present, range_op(1, rank(present)), keepdims=True, name=named)
        return reduce_sum(present, name=named)


def _num_elements(losses: Tensor) -> Tensor:
    with scope(None, "num_elements") as named:
        return cast(size(losses, name=named), losses.dtype.base_dtype)


def _safe_mean(losses: Tensor, count: Tensor) -> Tensor:
    return div_no_nan(reduce_sum(losses), count, name="value")


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The losses times weights (a scalar, or of losses' rank), reduced, and added to the collection.

    A mean over nothing is 0.
    """
    Reduction.validate(reduction)
    graph = get_default_graph()
    with _scope(scope, "weighted_loss"), graph.control_dependencies([_assert_broadcastable(weights, losses)]):
        losses = convert_to_tensor(losses)
        kind = losses.dtype.base_dtype
        losses = cast(losses, dtypes.float32)
        weights = cast(weights, dtypes.float32)
        weighted = emit("Mul", losses, weights)
        if reduction == Reduction.NONE:
            loss = weighted
        else:
            loss = reduce_sum(weighted)
            if reduction == Reduction.MEAN:
                loss = _safe_mean(loss, reduce_sum(ones_like(losses) * weights))
            elif reduction == _BY_NONZERO:
                loss = _safe_mean(loss, _num_present(losses, weights))
            elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                loss = _safe_mean(loss, _num_elements(losses))
        loss = cast(loss, kind)
        add_loss(loss, loss_collection)
        return loss


_scope = scope  # the public functions have an argument of that name


def _pair(labels: Any, predictions: Any, names: str = "labels predictions") -> None:
    for value, name in zip((labels, predictions), names.split(), strict=True):
        if value is None:
            raise ValueError(f"{name} must not be None.")


def _as_floats(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """(labels, predictions) as float32 of one shape. ValueError where the shapes differ."""
    predictions = cast(predictions, dtypes.float32)
    labels = cast(labels, dtypes.float32)
    _require_shapes(predictions, labels)
    return labels, predictions


def _require_shapes(a: Tensor, b: Tensor) -> None:
    if not shapes.is_compatible(a._shape, b._shape):
        raise ValueError(
            f"Shapes {shapes.format_shape(a._shape)} and {shapes.format_shape(b._shape)} are incompatible: "
            f"'{a.name}' and '{b.name}'"
        )


# ---- losses --------------------------------------------------------------------------------------------


def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """|predictions - labels|, weighted and reduced (compute_weighted_loss)."""
    _pair(labels, predictions)
    with _scope(scope, "absolute_difference") as named:
        labels, predictions = _as_floats(labels, predictions)
        losses = emit("Abs", emit("Sub", predictions, labels))
        return compute_weighted_loss(losses, weights, named, loss_collection, reduction)


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
    dim: int | None = None,
) -> Tensor:
    """1 - the dot product along `axis` of unit vectors, weighted and reduced (compute_weighted_loss)."""
    axis = renamed("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("You must specify 'axis'.")
    _pair(labels, predictions)
    with _scope(scope, "cosine_distance_loss") as named:
        labels, predictions = _as_floats(labels, predictions)
        losses = 1 - reduce_sum(emit("Mul", predictions, labels), (axis,), keepdims=True)
        return compute_weighted_loss(losses, weights, named, loss_collection, reduction)


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """max(0, 1 - (2 labels - 1) logits) for labels 0 and 1, weighted and reduced (compute_weighted_loss)."""
    _pair(labels, logits, "labels logits")
    with _scope(scope, "hinge_loss") as named:
        labels, logits = _as_floats(labels, logits)
        one = ones_like(labels)
        signs = emit("Sub", 2 * labels, one)
        losses = emit("Relu", emit("Sub", one, emit("Mul", signs, logits)))
        return compute_weighted_loss(losses, weights, named, loss_collection, reduction)


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """Half the squared error up to delta, linear beyond, weighted and reduced (compute_weighted_loss)."""
    _pair(labels, predictions)
    with _scope(scope, "huber_loss") as named:
        labels, predictions = _as_floats(labels, predictions)
        error = emit("Abs", emit("Sub", predictions, labels))
        quadratic = emit("Minimum", error, delta)
        linear = emit("Sub", error, quadratic)
        half = emit.constant(0.5, quadratic.dtype)
        halves = emit("Mul", half, emit("Mul", quadratic, quadratic))
        losses = emit("AddV2", halves, emit("Mul", delta, linear), name="Add")
        return compute_weighted_loss(losses, weights, named, loss_collection, reduction)


def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The cross entropy of probabilities (kept epsilon away from 0), weighted and reduced
    (compute_weighted_loss)."""
    _pair(labels, predictions)
    with _scope(scope, "log_loss") as named:
        labels, predictions = _as_floats(labels, predictions)
        positive = emit("Mul", labels, emit("Log", predictions + epsilon))
        losses = -positive - emit("Mul", 1 - labels, emit("Log", 1 - predictions + epsilon))
        return compute_weighted_loss(losses, weights, named, loss_collection, reduction)


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """(predictions - labels) squared, weighted and reduced (compute_weighted_loss)."""
    _pair(labels, predictions)
    with _scope(scope, "mean_squared_error") as named:
        labels, predictions = _as_floats(labels, predictions)
        losses = emit("SquaredDifference", predictions, labels)
        return compute_weighted_loss(losses, weights, named, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Tensor:
    """For each example, the mean over pairs of its elements of the squared difference of their errors;
    summed."""
    _pair(labels, predictions)
    graph = get_default_graph()
    with _scope(scope, "mean_pairwise_squared_error"):
        weights = cast(weights, dtypes.float32)
        labels = cast(labels, dtypes.float32)
        with graph.control_dependencies([_assert_broadcastable(weights, labels)]):
            predictions = cast(predictions, dtypes.float32)
            _require_shapes(predictions, labels)
            errors = emit("Sub", predictions, labels)
            axes = range_op(1, rank(errors))
            squares = reduce_sum(emit("Square", errors), axes, keepdims=True)
            count = _num_present(errors, weights, per_batch=True)
            first = 2.0 * div_no_nan(squares, emit("Maximum", count - 1, 0), name="value")
            total = reduce_sum(errors, axes, keepdims=True)
            square = emit("Square", total)
            pairs = emit("Maximum", emit("Mul", count, count - 1), 0)
            second = 2.0 * div_no_nan(square, pairs, name="value")
            loss = reduce_sum(emit("Mul", first - second, weights))
            some = reduce_sum(count) > 0
            loss = emit("Select", some, loss, zeros_like(loss), name="value")
            add_loss(loss, loss_collection)
            return loss


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """sigmoid_cross_entropy_with_logits, weighted and reduced; label_smoothing moves labels towards 1/2."""
    _pair(multi_class_labels, logits, "multi_class_labels logits")
    with _scope(scope, "sigmoid_cross_entropy_loss") as named:
        logits = convert_to_tensor(logits)
        labels = cast(multi_class_labels, logits.dtype.base_dtype)
        _require_shapes(logits, labels)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = sigmoid_cross_entropy_with_logits(labels, logits, name="xentropy")
        return compute_weighted_loss(losses, weights, named, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """softmax_cross_entropy_with_logits, weighted and reduced; label_smoothing moves labels towards
    1/classes."""
    _pair(onehot_labels, logits, "onehot_labels logits")
    with _scope(scope, "softmax_cross_entropy_loss") as named:
        logits = convert_to_tensor(logits)
        labels = cast(onehot_labels, logits.dtype.base_dtype)
        _require_shapes(logits, labels)
        if label_smoothing > 0:
            classes = cast(shape(labels)[-1], logits.dtype.base_dtype)
            rest = label_smoothing / classes
            labels = labels * (1.0 - label_smoothing) + rest
        labels = emit("StopGradient", labels, name="labels_stop_gradient")
        losses = softmax_cross_entropy_with_logits_v2(labels, logits, name="xentropy")
        return compute_weighted_loss(losses, weights, named, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """sparse_softmax_cross_entropy_with_logits, weighted and reduced. labels, weights: may have a last
    axis of 1."""
    _pair(labels, logits, "labels logits")
    with _scope(scope, "sparse_softmax_cross_entropy_loss") as named:
        labels, logits = remove_squeezable_dimensions(labels, logits, expected_rank_diff=1)
        if weights is not None:
            weights = convert_to_tensor(weights)
            w, n = weights._shape, labels._shape
            if w is not None and n is not None and len(w) - len(n) == 1:
                weights = emit("Squeeze", weights, squeeze_dims=[-1])
        losses = sparse_softmax_cross_entropy_with_logits(labels, logits, name="xentropy")
        return compute_weighted_loss(losses, weights, named, loss_collection, reduction)
