"""Slices of an array at places that the rows of an index array name: taken, replaced, increased."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.kernel import checks
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, is_host, position_text, shape_text


def require_points(indices: Any, shape: tuple[int, ...], says: str) -> None:
    """InvalidArgumentError that shows the first row of `indices` that is no place in `shape`."""
    depth = np.shape(indices)[-1]
    rows = math.prod(np.shape(indices)[:-1])
    if not rows or not depth:
        return
    lead = np.shape(indices)[:-1]

    def message(at: np.ndarray, row: np.ndarray) -> str:
        place = ", ".join(str(i) for i in row)
        where = position_text(lead, int(at))
        return f"indices{where} = [{place}] does not index into {says} {shape_text(shape)}"

    limits = np.array(shape[:depth], np.int64)
    flat = arrays.reshape(indices, (rows, depth))
    outside = (flat < 0) | (flat >= limits)
    if is_host(indices):
        bad = outside.any(-1)
        first = int(np.argmax(bad))
        checks.require(not bad.any(), message, np.asarray(first), flat[first])
        return
    bad = jnp.any(outside, axis=-1)
    at = jnp.argmax(bad)
    checks.require(jnp.logical_not(jnp.any(bad)), message, at, flat[at])


def _points(indices: Any) -> Any:
    """Indices in a type that XLA takes."""
    if indices.dtype in (np.int32, np.int64):
        return indices
    return indices.astype(np.int32) if is_host(indices) else lax.convert_element_type(indices, np.int32)


def gather_nd(params: Any, indices: Any) -> Any:
    """The slices of params at the places that the rows of `indices` name."""
    p, i = tuple(np.shape(params)), tuple(np.shape(indices))
    depth = i[-1]
    fail_unless(
        depth <= len(p),
        lambda: "index innermost dimension length must be <= params rank; saw: "
        f"{depth} vs. {len(p)}",
    )
    require_points(indices, p, "param shape")
    out = (*i[:-1], *p[depth:])
    if depth == 0:
        return arrays.broadcast_to(arrays.reshape(params, (*[1] * len(i[:-1]), *p)), out)
    if 0 in out or 0 in p:
        return arrays.full(out, arrays.zero(params.dtype)[()], params.dtype, params)
    if is_host(params, indices):
        return np.asarray(params)[tuple(np.moveaxis(np.asarray(indices), -1, 0))]
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(len(i) - 1, len(out))),
        collapsed_slice_dims=tuple(range(depth)),
        start_index_map=tuple(range(depth)),
    )
    sizes = (*[1] * depth, *p[depth:])
    mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS
    return lax.gather(params, _points(indices), numbers, sizes, mode=mode)


def scatter(target: Any, indices: Any, updates: Any, *, add: bool, says: str = "shape") -> Any:
    """target with the slices that the rows of `indices` name replaced by `updates`, or increased."""
    t, i, u = tuple(np.shape(target)), tuple(np.shape(indices)), tuple(np.shape(updates))
    depth = i[-1]
    fail_unless(
        depth <= len(t),
        lambda: f"indices.shape[-1] must be <= the rank of the result: {shape_text(i)} and {shape_text(t)}",
    )
    wanted = (*i[:-1], *t[depth:])
    fail_unless(
        u == wanted,
        lambda: "Dimensions of indices, updates and the result do not fit: updates have shape "
        f"{shape_text(u)}, expected {shape_text(wanted)} for indices {shape_text(i)} and shape "
        f"{shape_text(t)}",
    )
    require_points(indices, t, says)
    if 0 in u or 0 in t:
        return target
    if is_host(target, indices, updates):
        return _host_scatter(np.array(target), np.asarray(indices), np.asarray(updates), add)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(len(i) - 1, len(u))),
        inserted_window_dims=tuple(range(depth)),
        scatter_dims_to_operand_dims=tuple(range(depth)),
    )
    do = lax.scatter_add if add else lax.scatter
    if add and updates.dtype == np.bool_:
        do = lax.scatter_max
    mode = lax.GatherScatterMode.FILL_OR_DROP  # the check reports what is dropped
    return do(target, _points(indices), updates, numbers, mode=mode)


def _host_scatter(target: np.ndarray, indices: np.ndarray, updates: np.ndarray, add: bool) -> np.ndarray:
    places = tuple(np.moveaxis(indices, -1, 0)) or (Ellipsis,)
    if not add:
        for at in np.ndindex(*indices.shape[:-1]):  # the last one of equal places stays
            target[tuple(indices[at])] = updates[at]
    elif target.dtype == np.bool_:
        np.logical_or.at(target, places, updates)
    elif indices.shape[-1] == 0:
        target += updates.sum(tuple(range(indices.ndim - 1)), dtype=target.dtype)
    else:
        np.add.at(target, places, updates)
    return target
