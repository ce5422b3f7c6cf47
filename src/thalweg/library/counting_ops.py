"""How often things occur: bincount, confusion matrices, histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import scope
from thalweg.library.array_ops import shape
from thalweg.library.casting import cast
from thalweg.library.check_ops import assert_less, assert_non_negative
from thalweg.library.fill_ops import ones_like
from thalweg.library.grouping import with_dependencies
from thalweg.library.reduction_ops import reduce_max, reduce_prod


def bincount(
    arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = dtypes.int32
) -> Tensor:
    """How often each of 0, 1, 2 ... occurs in arr; with weights, the sums of those of its occurrences.

    The result has as many elements as the greatest value needs, at least minlength and at most maxlength.
    """
    with scope(None, "bincount"):
        arr = convert_to_tensor(arr, dtypes.int32, name="arr")
        nonempty = emit("Greater", reduce_prod(shape(arr)), 0)
        length: Any = emit("Mul", cast(nonempty, dtypes.int32), reduce_max(arr) + 1, name="mul")
        if minlength is not None:
            minlength = convert_to_tensor(minlength, dtypes.int32, name="minlength")
            length = emit("Maximum", minlength, length)
        if maxlength is not None:
            maxlength = convert_to_tensor(maxlength, dtypes.int32, name="maxlength")
            length = emit("Minimum", maxlength, length)
        if weights is None:
            weights = emit.constant(np.zeros(0, dtypes.as_dtype(dtype).as_numpy_dtype))
        else:
            weights = convert_to_tensor(weights, name="weights")
        return emit("Bincount", arr, length, weights)


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """[n, n]: how often label i was predicted as j (or the sum of the weights).

    labels, predictions: vectors of integers, not negative. num_classes: n; the greatest value + 1 where None.
    Errors, when run: InvalidArgumentError where a value is negative or not below num_classes.
    """
    with scope(name, "confusion_matrix"):
        labels = convert_to_tensor(labels, name="labels")
        predictions = convert_to_tensor(predictions, name="predictions")
        labels, predictions = remove_squeezable_dimensions(labels, predictions)
        predictions, labels = cast(predictions, dtypes.int64), cast(labels, dtypes.int64)
        labels = with_dependencies(
            [assert_non_negative(labels, message="`labels` contains negative values")], labels
        )
        predictions = with_dependencies(
            [assert_non_negative(predictions, message="`predictions` contains negative values")], predictions
        )
        if num_classes is None:
            num_classes = emit("Maximum", reduce_max(predictions), reduce_max(labels)) + 1
        else:
            bound = cast(num_classes, dtypes.int64)
            labels = with_dependencies([assert_less(labels, bound, message="`labels` out of bound")], labels)
            predictions = with_dependencies(
                [assert_less(predictions, bound, message="`predictions` out of bound")], predictions
            )
        kind = dtypes.as_dtype(dtype)
        if weights is not None:
            weights = convert_to_tensor(weights, name="weights")
            if not shapes.is_compatible(weights._shape, predictions._shape):
                raise ValueError(
                    f"weights {shapes.format_shape(weights._shape)} and predictions "
                    f"{shapes.format_shape(predictions._shape)} must have one shape"
                )
            weights = cast(weights, kind)
        size = convert_to_tensor([num_classes, num_classes], name="stack")
        indices = emit("Pack", [labels, predictions], axis=1, name="stack")
        values = ones_like(predictions, kind) if weights is None else weights
        return emit("ScatterNd", indices, values, cast(size, dtypes.int64))


def remove_squeezable_dimensions(
    labels: Any, predictions: Any, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """(labels, predictions), the one of higher rank without its last axis where that has length 1.

    expected_rank_diff: by how much the rank of predictions should exceed that of labels.
    """
    with scope(name, "remove_squeezable_dimensions"):
        predictions = convert_to_tensor(predictions)
        labels = convert_to_tensor(labels)
        p, t = predictions._shape, labels._shape
        if p is not None and t is not None:
            difference = len(p) - len(t)
            if difference == expected_rank_diff + 1 and p[-1] in (1, None):
                predictions = emit("Squeeze", predictions, squeeze_dims=[-1])
            elif difference == expected_rank_diff - 1 and t[-1] in (1, None):
                labels = emit("Squeeze", labels, squeeze_dims=[-1])
        return labels, predictions


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Which of nbins equal parts of value_range each value falls into; those outside go to the ends."""
    with scope(name, "histogram_fixed_width_bins"):
        values = convert_to_tensor(values, name="values")
        original = emit("Shape", values)
        values = emit("Reshape", values, [-1])
        value_range = convert_to_tensor(value_range, name="value_range")
        count = convert_to_tensor(nbins, dtypes.int32, name="nbins")
        bins = cast(count, values.dtype.base_dtype)
        low, high = value_range[0], value_range[1]
        place = emit("Floor", bins * ((values - low) / (high - low)))
        indices = emit("Minimum", emit("Maximum", cast(place, dtypes.int32), 0), count - 1)
        return emit("Reshape", cast(indices, dtype), original)


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """How many values fall into each of nbins equal parts of value_range; those outside count at the ends."""
    with scope(name, "histogram_fixed_width") as named:
        return emit(
            "HistogramFixedWidth", values, value_range, nbins, dtype=dtypes.as_dtype(dtype), name=named
        )
