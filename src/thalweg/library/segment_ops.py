"""Sums and the like over segments: rows that share an id."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import scope
from thalweg.library.array_ops import rank, shape
from thalweg.library.fill_ops import ones


def segment_max(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """The maxima of the rows of each segment. segment_ids: sorted, one for each row."""
    return emit("SegmentMax", data, segment_ids, name=name)


def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """The means of the rows of each segment. segment_ids: sorted, one for each row."""
    return emit("SegmentMean", data, segment_ids, name=name)


def segment_min(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """The minima of the rows of each segment. segment_ids: sorted, one for each row."""
    return emit("SegmentMin", data, segment_ids, name=name)


def segment_prod(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """The products of the rows of each segment. segment_ids: sorted, one for each row."""
    return emit("SegmentProd", data, segment_ids, name=name)


def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """The sums of the rows of each segment. segment_ids: sorted, one for each row."""
    return emit("SegmentSum", data, segment_ids, name=name)


def unsorted_segment_max(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The maxima of each segment; an empty one gives the lowest value."""
    return emit("UnsortedSegmentMax", data, segment_ids, num_segments, name=name)


def unsorted_segment_min(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The minima of each segment; an empty one gives the highest value."""
    return emit("UnsortedSegmentMin", data, segment_ids, num_segments, name=name)


def unsorted_segment_prod(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The products of each segment; an empty one gives 1."""
    return emit("UnsortedSegmentProd", data, segment_ids, num_segments, name=name)


def unsorted_segment_sum(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The sums of each segment; negative ids are left out."""
    return emit("UnsortedSegmentSum", data, segment_ids, num_segments, name=name)


def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The means of each segment; an empty one gives 0."""
    with scope(name, "UnsortedSegmentMean"):
        data, segment_ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        counts = _counts(data, segment_ids, num_segments)
        return emit("UnsortedSegmentSum", data, segment_ids, num_segments) / counts


def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """The sums of each segment divided by the square root of its number of elements; an empty one gives 0."""
    with scope(name, "UnsortedSegmentSqrtN"):
        data, segment_ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        counts = _counts(data, segment_ids, num_segments)
        return emit("UnsortedSegmentSum", data, segment_ids, num_segments) / emit("Sqrt", counts)


def _counts(data: Tensor, segment_ids: Tensor, num_segments: Any) -> Tensor:
    """How many elements each segment has, at least 1, in a shape that broadcasts against the segments."""
    n = convert_to_tensor(num_segments)
    each = emit("UnsortedSegmentSum", ones(shape(segment_ids), data.dtype), segment_ids, n)
    outer = n[np.newaxis]
    inner = ones([rank(data) - rank(segment_ids)], n.dtype)
    full = emit("ConcatV2", [outer, inner], 0, name="concat")
    return emit("Maximum", emit("Reshape", each, full), 1)


def sparse_segment_sum(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """The sums of the rows data[indices] of each segment."""
    return _sparse("SparseSegmentSum", data, indices, segment_ids, num_segments, name)


def sparse_segment_mean(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """The means of the rows data[indices] of each segment."""
    return _sparse("SparseSegmentMean", data, indices, segment_ids, num_segments, name)


def sparse_segment_sqrt_n(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """The sums of the rows data[indices] of each segment, divided by the square root of their number."""
    return _sparse("SparseSegmentSqrtN", data, indices, segment_ids, num_segments, name)


def _sparse(op: str, data: Any, indices: Any, ids: Any, num_segments: Any, name: str | None) -> Tensor:
    if num_segments is None:
        return emit(op, data, indices, ids, name=name)
    return emit(f"{op}WithNumSegments", data, indices, ids, num_segments, name=name)
