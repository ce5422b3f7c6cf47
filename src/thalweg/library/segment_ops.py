"""Sums and the like over segments: rows that share an id."""

from __future__ import annotations

from typing import Any

from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor


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


def unsorted_segment_prod(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """The products of each segment; an empty one gives 1."""
    return emit("UnsortedSegmentProd", data, segment_ids, num_segments, name=name)


def unsorted_segment_sum(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The sums of each segment; negative ids are left out."""
    return emit("UnsortedSegmentSum", data, segment_ids, num_segments, name=name)
