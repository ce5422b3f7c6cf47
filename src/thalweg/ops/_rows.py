"""Rows of a table by index: looked up, and changed in place where the table is a variable.

Changing rows costs what the rows cost, whatever the size of the table, as long as the table's buffer is
donated: nothing here copies a table, and no loop carries one (XLA would copy it in every iteration).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.kernel import checks
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, is_host, position_text, shape_text


def require_in_range(indices: Any, limit: int) -> None:
    """InvalidArgumentError that shows the first of these indices that is not in [0, limit)."""
    if not np.size(indices):
        return
    shape = np.shape(indices)

    def message(at: np.ndarray, value: np.ndarray) -> str:
        return f"indices{position_text(shape, int(at))} = {value} is not in [0, {limit})"

    flat: Any
    first: Any
    if is_host(indices):
        flat = np.asarray(indices).reshape(-1)
        bad = (flat < 0) | (flat >= limit)
        first = int(np.argmax(bad))
        checks.require(not bad.any(), message, np.asarray(first), flat[first])
        return
    flat = lax.reshape(indices, (int(np.prod(shape)),))
    bad = (flat < 0) | (flat >= limit)
    first = jnp.argmax(bad)
    checks.require(jnp.logical_not(jnp.any(bad)), message, first, flat[first])


def gather(params: Any, indices: Any, axis: int = 0, batch: int = 0) -> Any:
    """params with the dimension `axis` replaced by those of `indices`; both share the first `batch`."""
    p, i = tuple(np.shape(params)), tuple(np.shape(indices))
    fail_unless(
        p[:batch] == i[:batch],
        lambda: f"params.shape{shape_text(p)} and indices.shape{shape_text(i)} differ in the first {batch} "
        "dimensions",
    )
    require_in_range(indices, p[axis])
    out = (*p[:axis], *i[batch:], *p[axis + 1 :])
    if 0 in out or p[axis] == 0:
        return arrays.full(out, arrays.zero(params.dtype)[()], params.dtype, params)
    if is_host(params, indices):
        return _host_gather(np.asarray(params), np.asarray(indices), axis, batch)
    if not is_host(indices) and indices.dtype not in (np.int32, np.int64):
        indices = lax.convert_element_type(indices, np.int32)
    inner = len(i) - batch
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(*range(batch, axis), *range(axis + inner, axis + inner + len(p) - axis - 1)),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        operand_batching_dims=tuple(range(batch)),
        start_indices_batching_dims=tuple(range(batch)),
    )
    sizes = tuple(1 if d == axis or d < batch else n for d, n in enumerate(p))
    return lax.gather(
        params, arrays.reshape(indices, (*i, 1)), numbers, sizes, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS
    )


def _host_gather(params: np.ndarray, indices: np.ndarray, axis: int, batch: int) -> np.ndarray:
    if not batch:
        if params.dtype.kind == "O" and not indices.ndim:
            return params[(slice(None),) * axis + (indices, ...)].copy()  # np.take unpacks one string
        return np.take(params, indices, axis)
    lead = params.shape[:batch]
    rows = [np.take(params[at], indices[at], axis - batch) for at in np.ndindex(*lead)]
    stacked = np.empty((len(rows), *rows[0].shape), params.dtype)
    for n, row in enumerate(rows):
        stacked[n] = row
    return stacked.reshape(*lead, *rows[0].shape)


_DROP = lax.GatherScatterMode.FILL_OR_DROP
#: where no row is
NOWHERE = -1

_SCATTER = {
    "update": lax.scatter,
    "add": lax.scatter_add,
    "sub": lax.scatter_sub,
    "mul": lax.scatter_mul,
    "min": lax.scatter_min,
    "max": lax.scatter_max,
}


def all_or_nowhere(indices: Any, limit: int) -> Any:
    """These indices as a vector; NOWHERE, all of them, where one is not in [0, limit), which is an error.

    So a change of rows either happens as a whole or, where the step fails, not at all.
    """
    require_in_range(indices, limit)
    flat = arrays.reshape(indices, (int(np.prod(np.shape(indices))),))
    if is_host(flat) or not flat.shape[0]:
        return flat
    ok = jnp.all((flat >= 0) & (flat < limit))
    return lax.select(lax.broadcast(ok, flat.shape), flat, lax.full_like(flat, NOWHERE))


def take_rows(table: Any, at: Any) -> Any:
    """The rows of a table; any row for NOWHERE."""
    rest = tuple(np.shape(table)[1:])
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(1, 1 + len(rest))), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    mode = lax.GatherScatterMode.CLIP
    return lax.gather(table, lax.reshape(at, (at.shape[0], 1)), numbers, (1, *rest), mode=mode)


def put_rows(table: Any, at: Any, rows: Any, how: str = "update") -> Any:
    """The table with rows replaced, or increased ("add"), multiplied ...; nothing is done for NOWHERE."""
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, np.ndim(table))),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
    )
    return _SCATTER[how](table, lax.reshape(at, (at.shape[0], 1)), rows, numbers, mode=_DROP)


def change_rows(
    tables: Sequence[Any], at: Any, change: Callable[..., Sequence[Any]], *inputs: Any
) -> list[Any]:
    """The tables with the rows `at` replaced by change(*rows, *inputs), as if row after row.

    at: a vector. inputs: one slice for each of `at`. change: from arrays [n, ...] to as many arrays as there
    are tables, [n, ...], each row of which depends on that row of its arguments only.
    A row that is named again is changed again, from what the first change left.
    """
    n = at.shape[0]
    if not n:
        return list(tables)
    at, order = _sorted(at)
    inputs = tuple(take_rows(x, order) for x in inputs)
    rows = list(change(*(take_rows(t, at) for t in tables), *inputs))
    same = lax.eq(at[1:], at[:-1])
    edge = jnp.zeros(1, bool)
    again = lax.concatenate([edge, same], 0) & (at >= 0)
    rows = _change_again(rows, again, change, inputs)
    followed = lax.concatenate([same, edge], 0)
    last = lax.select(followed, lax.full_like(at, NOWHERE), at)
    return [put_rows(t, last, r) for t, r in zip(tables, rows, strict=True)]


def _sorted(at: Any) -> tuple[Any, Any]:
    """Indices in order, and the positions they come from, equal ones in their order."""
    n = at.shape[0]
    # one sort of one array: four times as fast as a stable sort of pairs
    wide = lax.convert_element_type(at, np.int64)
    packed = lax.sort((wide << np.int64(32)) | lax.iota(np.int64, n))
    order = lax.convert_element_type(packed & np.int64(0xFFFFFFFF), np.int32)
    return packed >> np.int64(32), order


def _change_again(
    first: list[Any], again: Any, change: Callable[..., Sequence[Any]], inputs: tuple[Any, ...]
) -> list[Any]:
    """Rows in order of their index, each that is marked `again` made from the one before it."""
    n = again.shape[0]
    places = lax.iota(np.int32, n)
    count = jnp.sum(again, dtype=np.int32)
    todo = lax.cond(
        count > 0,
        lambda: lax.sort(lax.select(again, places, lax.full_like(places, n))),
        lambda: places,
    )

    def step(state: tuple[Any, list[Any], list[Any]]) -> tuple[Any, list[Any], list[Any]]:
        k, rows, before = state
        place = lax.dynamic_index_in_dim(todo, k, keepdims=False)
        # `rows` is written here and never read, or XLA would copy it in every iteration
        follows = lax.dynamic_index_in_dim(again, place - 1, keepdims=False)
        old = [
            lax.select(follows, b, lax.dynamic_slice_in_dim(r, place - 1, 1))
            for b, r in zip(before, first, strict=True)
        ]
        new = list(change(*old, *(lax.dynamic_slice_in_dim(x, place, 1) for x in inputs)))
        changed = [lax.dynamic_update_slice_in_dim(r, v, place, 0) for r, v in zip(rows, new, strict=True)]
        return k + np.int32(1), changed, new

    before = [lax.slice_in_dim(r, 0, 1) for r in first]
    result: list[Any] = lax.while_loop(lambda s: s[0] < count, step, (np.int32(0), first, before))[1]
    return result
