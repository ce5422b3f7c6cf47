"""Partitioners: into how many slices to cut a variable, for get_variable's `partitioner`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from thalweg.base import dtypes
from thalweg.base.tensor_shape import TensorShape

Partitioner = Callable[..., list[int]]


def _element_size(dtype: Any, bytes_per_string_element: int) -> int:
    dtype = dtypes.as_dtype(dtype)
    return bytes_per_string_element if dtype.base_dtype == dtypes.string else dtype.size


def _shape(shape: Any) -> list[int]:
    if not isinstance(shape, TensorShape):
        raise ValueError(f"shape is not a TensorShape: {shape}")
    if not shape.is_fully_defined():
        raise ValueError(f"shape is not fully defined: {shape}")
    return [d for d in shape.as_list() if d is not None]


def _along(axis: int, rank: int, count: int) -> list[int]:
    result = [1] * rank
    result[axis] = count
    return result


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """Cuts an axis into num_shards slices, or as many as it is long."""

    def partitioner(shape: TensorShape, **_: Any) -> list[int]:
        dims = _shape(shape)
        return _along(axis, len(dims), min(num_shards, dims[axis]))

    return partitioner


def variable_axis_size_partitioner(
    max_shard_bytes: int,
    axis: int = 0,
    bytes_per_string_element: int = 16,
    max_shards: int | None = None,
) -> Partitioner:
    """Cuts an axis into slices of at most max_shard_bytes (one row at least), at most max_shards of them."""
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError(
            f"Both max_shard_bytes ({max_shard_bytes}) and bytes_per_string_element "
            f"({bytes_per_string_element}) must be positive."
        )
    if max_shards is not None and max_shards < 1:
        raise ValueError("max_shards must be positive.")

    def partitioner(shape: TensorShape, dtype: Any) -> list[int]:
        dims = _shape(shape)
        row = math.prod(dims) // max(1, dims[axis]) * _element_size(dtype, bytes_per_string_element)
        rows_per_shard = max(1, max_shard_bytes // max(1, row))
        count = math.ceil(dims[axis] / rows_per_shard)
        return _along(axis, len(dims), count if max_shards is None else min(max_shards, count))

    return partitioner


def min_max_variable_partitioner(
    max_partitions: int = 1,
    axis: int = 0,
    min_slice_size: int = 256 << 10,
    bytes_per_string_element: int = 16,
) -> Partitioner:
    """Cuts an axis into at most max_partitions slices, of min_slice_size bytes or more."""

    def partitioner(shape: TensorShape, dtype: Any) -> list[int]:
        dims = _shape(shape)
        if axis >= len(dims):
            raise ValueError(f"Cannot partition variable along axis {axis} when shape is only {shape}")
        size = math.prod(dims) * _element_size(dtype, bytes_per_string_element)
        wanted = math.ceil(size / min_slice_size)
        return _along(axis, len(dims), max(1, min(dims[axis], max_partitions, wanted)))

    return partitioner
