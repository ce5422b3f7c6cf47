"""The largest elements of rows, compiled.

XLA sorts pairs of numbers with a slow comparison, single integers fast. So an element and its place become
one 64-bit integer, ordered as `top` promises, and where few of many are wanted, only the groups of elements
whose largest are among the largest take part in the last sort.
"""

from __future__ import annotations

import math

import jax
import numpy as np
from jax import lax

#: from so many columns on
_WIDE = 64
_LOW = np.int64(0xFFFFFFFF)


def top(x: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    """Values and int32 places of the k largest of each row in descending order, equal ones in order of place.

    NaN counts as the largest, the two zeros as equal.
    """
    n = x.shape[-1]
    if x.dtype.itemsize > 4 or n < _WIDE or k == 0:
        values, places = lax.top_k(x, k)
        return values, places
    rows = lax.reshape(x, (math.prod(x.shape[:-1]), n))
    packed = _packed(rows)
    group = _group_size(n, k)
    if group > 1:
        packed = _candidates(packed, k, group)
    ordered = lax.sort(packed, dimension=1, is_stable=False)
    best = lax.rev(ordered[:, packed.shape[1] - k :], (1,))
    places = lax.convert_element_type(_LOW - (best & _LOW), np.int32)
    shape = (*x.shape[:-1], k)
    return lax.reshape(_picked(rows, places), shape), lax.reshape(places, shape)


def _packed(rows: jax.Array) -> jax.Array:
    """One integer per element: larger for a larger element, and of equal ones for the first."""
    if np.issubdtype(rows.dtype, np.integer):
        order = lax.convert_element_type(rows, np.int64)
        if rows.dtype == np.uint32:
            order = order - np.int64(1 << 31)  # 32 bits with a sign
    else:
        wide = lax.convert_element_type(rows, np.float32)
        bits = lax.bitcast_convert_type(wide, np.int32)
        negative = lax.shift_right_arithmetic(bits, np.int32(31))
        ordered = bits ^ (negative & np.int32(0x7FFFFFFF))
        ordered = lax.select(wide == 0, lax.full_like(ordered, 0), ordered)
        ordered = lax.select(wide != wide, lax.full_like(ordered, 0x7FFFFFFF), ordered)
        order = lax.convert_element_type(ordered, np.int64)
    place = lax.broadcasted_iota(np.int64, rows.shape, 1)
    return lax.shift_left(order, np.int64(32)) | (_LOW - place)


def _group_size(n: int, k: int) -> int:
    """Elements per group, so that the sort of the groups and that of what they hold cost about the same."""
    group = 1
    while group * group * k < n:
        group *= 2
    return group if group >= 4 else 1


def _candidates(packed: jax.Array, k: int, group: int) -> jax.Array:
    """The elements of the k groups with the largest elements: the k largest elements are among them."""
    rows, n = packed.shape
    groups = -(-n // group)
    least = np.int64(np.iinfo(np.int64).min)
    filled = lax.pad(packed, least, ((0, 0, 0), (0, groups * group - n, 0)))
    apart = lax.reshape(filled, (rows, group, groups))
    largest = lax.reduce_max(apart, (1,))
    threshold = lax.sort(largest, dimension=1, is_stable=False)[:, groups - k, None]
    number = lax.broadcasted_iota(np.int64, largest.shape, 1)
    chosen = lax.select(largest >= threshold, number, lax.full_like(number, groups))
    chosen = lax.sort(chosen, dimension=1, is_stable=False)[:, :k]
    return lax.reshape(_columns(apart, chosen), (rows, group * k))


def _columns(apart: jax.Array, chosen: jax.Array) -> jax.Array:
    """apart[row, :, chosen[row, j]] as [row, :, j]."""
    group = apart.shape[1]
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(1,), collapsed_slice_dims=(2,), start_index_map=(2,),
        operand_batching_dims=(0,), start_indices_batching_dims=(0,),
    )  # fmt: skip
    return lax.gather(
        apart, chosen[:, :, None], numbers, (1, group, 1),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )  # fmt: skip


def _picked(rows: jax.Array, places: jax.Array) -> jax.Array:
    """rows[row, places[row, j]]"""
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(), collapsed_slice_dims=(1,), start_index_map=(1,),
        operand_batching_dims=(0,), start_indices_batching_dims=(0,),
    )  # fmt: skip
    return lax.gather(
        rows, places[:, :, None], numbers, (1, 1), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS
    )
