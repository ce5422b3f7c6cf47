"""Summaries as nodes: serialised Summary messages. Source: TensorFlow's logging_ops.cc, summary_*_op.cc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from tensorboard.compat.proto import summary_pb2

from thalweg.base import dtypes
from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.graph.tensor_proto import array_to_proto
from thalweg.kernel.convention import host, stateful
from thalweg.ops._summary_messages import serialized, tag_of
from thalweg.ops._types import REAL


def _one_message(c: ShapeContext) -> list[Shape]:
    return [()]


# ---- scalars ---------------------------------------------------------------------------------------------


def _scalar_kernel(tags: Any, values: Any) -> np.ndarray:
    if np.shape(tags) != np.shape(values):
        raise ValueError(
            f"tags and values are not the same shape: {list(np.shape(tags))} != {list(np.shape(values))}"
        )
    summary = summary_pb2.Summary()
    for tag, value in zip(np.ravel(tags), np.ravel(values), strict=True):
        summary.value.add(tag=tag.decode(), simple_value=float(value))
    return serialized(summary)


define_op(
    "ScalarSummary",
    inputs="tags: string, values: T",
    outputs="summary: string",
    attrs=f"T: {REAL}",
    shape=_one_message,
    kernel=host(_scalar_kernel, foldable=False),
    gradient=NotDifferentiable("it is text"),
    doc="A Summary message that gives each tag its value.",
)

# ---- histograms ------------------------------------------------------------------------------------------


def _limits() -> np.ndarray:
    """Upper ends of the buckets: steps of 10% from 1e-12 to 1e20 on either side of zero."""
    positive = []
    v = 1e-12
    while v < 1e20:
        positive.append(v)
        v *= 1.1
    positive.append(np.finfo(np.float64).max)
    return np.array([-v for v in reversed(positive)] + [0.0] + positive)


_LIMITS = _limits()


def _fill_histogram(histogram: Any, values: np.ndarray) -> None:
    """Counts values into buckets. Neighbouring empty buckets are written as one."""
    if not values.size:
        histogram.min, histogram.max = _LIMITS[-1], _LIMITS[0]
        histogram.bucket_limit.append(_LIMITS[-1])
        histogram.bucket.append(0)
        return
    histogram.min, histogram.max = float(values.min()), float(values.max())
    histogram.num = values.size
    with np.errstate(over="ignore"):
        # cumsum adds from left to right, as TensorFlow does; sum doesn't
        histogram.sum = float(np.cumsum(values)[-1])
        histogram.sum_squares = float(np.cumsum(values * values)[-1])
    places = np.minimum(np.searchsorted(_LIMITS, values, side="right"), len(_LIMITS) - 1)
    counts = np.bincount(places, minlength=len(_LIMITS))
    used = counts > 0
    written = used | np.append(used[1:], True)  # a bucket in use, or the last of a row of empty ones
    histogram.bucket_limit.extend(_LIMITS[written].tolist())
    histogram.bucket.extend(counts[written].tolist())


def _histogram_kernel(context: Any, tag: Any, values: Any) -> np.ndarray:
    numbers = np.asarray(values).astype(np.float64).reshape(-1)
    finite = np.isfinite(numbers)
    if not finite.all():
        kind = "Nan" if np.isnan(numbers).any() else "Infinity"
        at = int(np.argmin(finite))
        raise context.fail(
            InvalidArgumentError, f"{kind} in summary histogram for: {context.op.name} (element {at})"
        )
    summary = summary_pb2.Summary()
    _fill_histogram(summary.value.add(tag=tag_of(tag)).histo, numbers)
    return serialized(summary)


define_op(
    "HistogramSummary",
    inputs="tag: string, values: T",
    outputs="summary: string",
    attrs=f"T: {REAL} = float",
    shape=_one_message,
    kernel=stateful(_histogram_kernel),
    gradient=NotDifferentiable("it is text"),
    doc="A Summary message with a histogram of the values. InvalidArgumentError where one is not finite.",
)

# ---- tensors ---------------------------------------------------------------------------------------------


def _add_tensor(value: Any, tensor: Any) -> None:
    array = np.asarray(tensor)
    if array.dtype == object:
        value.tensor.CopyFrom(array_to_proto(array))
        return
    # a single number too is written as bytes here
    value.tensor.dtype = dtypes.as_dtype(array.dtype).as_datatype_enum
    value.tensor.tensor_shape.CopyFrom(TensorShape.of(array.shape).as_proto())
    value.tensor.tensor_content = array.tobytes()


def _tensor_kernel(context: Any, tensor: Any) -> np.ndarray:
    summary = summary_pb2.Summary()
    _add_tensor(summary.value.add(node_name=context.op.name), tensor)
    return serialized(summary)


define_op(
    "TensorSummary",
    inputs="tensor: T",
    outputs="summary: string",
    attrs="T: type, description: string = '', labels: list(string) = [], display_name: string = ''",
    shape=_one_message,
    kernel=stateful(_tensor_kernel),
    gradient=NotDifferentiable("it is text"),
    doc="A Summary message with a tensor, under the node's name.",
)


def _tensor_v2_kernel(tag: Any, tensor: Any, serialized_summary_metadata: Any) -> np.ndarray:
    summary = summary_pb2.Summary()
    value = summary.value.add(tag=tag_of(tag))
    if np.ndim(serialized_summary_metadata):
        raise ValueError("serialized_summary_metadata must be scalar")
    metadata = np.asarray(serialized_summary_metadata).item()
    try:
        value.metadata.MergeFromString(metadata)
    except DecodeError as e:
        raise ValueError("serialized_summary_metadata could not be parsed as a SummaryMetadata") from e
    _add_tensor(value, tensor)
    return serialized(summary)


define_op(
    "TensorSummaryV2",
    inputs="tag: string, tensor: T, serialized_summary_metadata: string",
    outputs="summary: string",
    attrs="T: type",
    shape=_one_message,
    kernel=host(_tensor_v2_kernel, foldable=False),
    gradient=NotDifferentiable("it is text"),
    doc="A Summary message with a tensor under a tag, and what TensorBoard's plugins are told of it.",
)

# ---- merging ---------------------------------------------------------------------------------------------


def _merge_kernel(inputs: Sequence[Any]) -> np.ndarray:
    merged = summary_pb2.Summary()
    for message in inputs:
        for text in np.asarray(message, object).reshape(-1):
            try:
                merged.MergeFromString(text)
            except DecodeError as e:
                raise ValueError("Could not parse one of the summary inputs") from e
    seen = set()
    for value in merged.value:
        if value.tag and value.tag in seen:
            raise ValueError(f"Duplicate tag {value.tag} found in summary inputs")
        seen.add(value.tag)
    return serialized(merged)


define_op(
    "MergeSummary",
    inputs="inputs: N * string",
    outputs="summary: string",
    attrs="N: int >= 1",
    shape=_one_message,
    kernel=host(_merge_kernel, foldable=False),
    gradient=NotDifferentiable("it is text"),
    doc="One Summary message with all values of the inputs. InvalidArgumentError where two have one tag.",
)
