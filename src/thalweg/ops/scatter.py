"""Updates of a variable's rows and slices by index.

Where an index is bad nothing at all is changed (TensorFlow changes what comes before it).
Source: TensorFlow's state_ops.cc, resource_variable_ops.cc, scatter_op.cc, scatter_nd_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.operation import Operation
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext, constant_value
from thalweg.kernel import checks
from thalweg.kernel.convention import update
from thalweg.ops._arrays import fail_unless, is_host, shape_text
from thalweg.ops._handles import NO_GRADIENT, behind, variable_shape
from thalweg.ops._points import require_points
from thalweg.ops._rows import NOWHERE, all_or_nowhere, change_rows, put_rows
from thalweg.ops._types import INDEX, NUMBER

_ORDERED = "{half, bfloat16, float, double, int32, int64}"


# --- rows ---


def _rows_shape(c: ShapeContext) -> list[Shape]:
    table, indices, updates = behind(c, 0)[1], c.shape(1), c.shape(2)
    if table is not None and not table:
        raise ValueError("params must be at least 1-D, got shape []")
    if table is not None and indices is not None and updates != ():
        shapes.merge(updates, (*indices, *table[1:]))
    return [table] if c.op._outputs else []


def _rows_kernel(how: str) -> Callable[[Any, Any, Any], Any]:
    def kernel(table: Any, indices: Any, updates: Any) -> Any:
        fail_unless(np.ndim(table) > 0, lambda: "params must be at least 1-D, got shape []")
        limit, *rest = np.shape(table)
        given = np.shape(updates)
        fail_unless(
            given in ((), (*np.shape(indices), *rest)),
            lambda: "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
            f"updates.shape {shape_text(given)}, indices.shape {shape_text(np.shape(indices))}, "
            f"params.shape {shape_text(np.shape(table))}",
        )
        if table.dtype == object:
            return _replace_strings(table, all_or_nowhere(np.asarray(indices), limit), updates)
        at = all_or_nowhere(indices, limit)
        shape = (at.shape[0], *rest)
        if 0 in shape or not limit:
            return table
        rows = lax.reshape(updates, shape) if given else lax.broadcast(updates, shape)
        if how == "div":
            return change_rows([table], at, _divide, rows)[0]
        return put_rows(table, at, rows, how)

    return kernel


def _replace_strings(table: np.ndarray, at: np.ndarray, updates: np.ndarray) -> np.ndarray:
    result = table.copy()
    rows = np.broadcast_to(updates, (len(at), *table.shape[1:])) if not np.ndim(updates) else updates
    result[at] = rows.reshape(len(at), *table.shape[1:])
    return result


def _divide(rows: Any, by: Any) -> list[Any]:
    """Quotients; of integers without the fraction."""
    return [lax.div(rows, by)]


def _division_kernel(table: Any, indices: Any, updates: Any) -> Any:
    if np.issubdtype(table.dtype, np.integer):
        zero = jnp.any(updates == 0)
        checks.require(jnp.logical_not(zero), lambda: "Integer division by zero")
        updates = jnp.where(zero, jnp.ones_like(updates), updates)
    return _rows_kernel("div")(table, indices, updates)


def _rows_may_fail(op: Operation) -> bool:
    """False where the indices are constants inside of a known dimension."""
    if op.type.endswith("Div"):
        return True
    indices, table = constant_value(op._inputs[1]), variable_shape(op._inputs[0])
    if indices is None or not table or table[0] is None:
        return True
    return bool(((indices < 0) | (indices >= table[0])).any())


def _define_rows(how: str, does: str, ref_types: str, resource_types: str) -> None:
    """The update for both kinds of variable."""
    kernel = _division_kernel if how == "div" else _rows_kernel(how)
    name = f"Scatter{how.capitalize()}"
    define_op(
        name,
        inputs="ref: Ref(T), indices: Tindices, updates: T",
        outputs="output_ref: Ref(T)",
        attrs=f"T: {ref_types}, Tindices: {INDEX}, use_locking: bool = {how == 'update'}",
        shape=_rows_shape,
        kernel=update(kernel, writes=("ref",), may_fail=_rows_may_fail),
        gradient=NO_GRADIENT,
        doc=f"Rows of a reference variable {does} updates; a scalar counts for every row.",
    )
    define_op(
        f"Resource{name}",
        inputs="resource: resource, indices: Tindices, updates: dtype",
        attrs=f"dtype: {resource_types}, Tindices: {INDEX}",
        shape=_rows_shape,
        kernel=update(kernel, writes=("resource",), may_fail=_rows_may_fail),
        stateful=True,
        gradient=NO_GRADIENT,
        doc=f"Rows of a resource variable {does} updates; a scalar counts for every row.",
    )


_define_rows("update", "replaced by", "type", "type")
_define_rows("add", "increased by", NUMBER, NUMBER)
_define_rows("sub", "decreased by", NUMBER, NUMBER)
_define_rows("mul", "multiplied by", NUMBER, NUMBER)
_define_rows("div", "divided by", NUMBER, NUMBER)
_define_rows("min", "cut down to", _ORDERED, NUMBER)
_define_rows("max", "raised to", _ORDERED, NUMBER)


# --- slices ---


def _slices_shape(c: ShapeContext) -> list[Shape]:
    table, indices, updates = behind(c, 0)[1], c.with_rank_at_least(1, 1), c.shape(2)
    if table is not None and indices is not None and indices[-1] is not None:
        wanted = _slices_wanted(table, indices)
        if not shapes.is_compatible(updates, wanted):
            raise ValueError(_misfit(table, indices, updates, wanted))
    return [table] if c.op._outputs else []


def _slices_wanted(table: Shape, indices: Shape) -> Shape:
    """The shape of updates. ValueError where indices are too deep."""
    assert table is not None and indices is not None and indices[-1] is not None
    depth = indices[-1]
    if depth > len(table):
        raise ValueError(
            f"indices.shape[-1] must be <= the rank of the variable, got indices.shape "
            f"{shapes.format_shape(indices)}, params.shape {shapes.format_shape(table)}"
        )
    return (*indices[:-1], *table[depth:])


def _misfit(table: Shape, indices: Shape, updates: Shape, wanted: Shape) -> str:
    return (
        f"Must have updates.shape = indices.shape[:-1] + params.shape[indices.shape[-1]:] = "
        f"{shapes.format_shape(wanted)}, got updates.shape {shapes.format_shape(updates)}, indices.shape "
        f"{shapes.format_shape(indices)}, params.shape {shapes.format_shape(table)}"
    )


_SLICES = {
    "update": lax.scatter,
    "add": lax.scatter_add,
    "sub": lax.scatter_sub,
    "min": lax.scatter_min,
    "max": lax.scatter_max,
}


def _slices_kernel(how: str) -> Callable[..., Any]:
    def kernel(table: Any, indices: Any, updates: Any, *, bad_indices_policy: str) -> Any:
        t, i, u = (tuple(np.shape(x)) for x in (table, indices, updates))
        fail_unless(
            bad_indices_policy in ("", "DEFAULT", "ERROR", "IGNORE"),
            lambda: f"Unknown bad indices handling attribute: {bad_indices_policy}",
        )
        fail_unless(len(i) > 0, lambda: "indices must be at least a vector, got shape []")
        wanted = _slices_wanted(t, i)
        fail_unless(u == wanted, lambda: _misfit(t, i, u, wanted))
        if 0 in u or (0 in t and bad_indices_policy == "IGNORE"):
            return table
        if bad_indices_policy != "IGNORE":
            indices = _all_points_or_nowhere(indices, t)
        if 0 in t:
            return table
        depth = i[-1]
        numbers = lax.ScatterDimensionNumbers(
            update_window_dims=tuple(range(len(i) - 1, len(u))),
            inserted_window_dims=tuple(range(depth)),
            scatter_dims_to_operand_dims=tuple(range(depth)),
        )
        drop = lax.GatherScatterMode.FILL_OR_DROP
        return _SLICES[how](table, indices, updates, numbers, mode=drop)

    return kernel


def _all_points_or_nowhere(indices: Any, shape: tuple[int, ...]) -> Any:
    """The indices; NOWHERE, all of them, where a row is no place in `shape`, which is an error."""
    require_points(indices, shape, "shape")
    limits = np.array(shape[: indices.shape[-1]], np.int64)
    if is_host(indices) or not limits.size:
        return indices
    ok = jnp.all((indices >= 0) & (indices < limits))
    return lax.select(lax.broadcast(ok, indices.shape), indices, lax.full_like(indices, NOWHERE))


def _slices_may_fail(op: Operation) -> bool:
    """False where the indices are constants inside of a known shape."""
    if op._attrs["bad_indices_policy"] == b"IGNORE":
        return False
    indices, table = constant_value(op._inputs[1]), variable_shape(op._inputs[0])
    if indices is None or table is None or not indices.ndim or None in table[: indices.shape[-1]]:
        return True
    limits = np.array(table[: indices.shape[-1]], np.int64)
    return bool(((indices < 0) | (indices >= limits)).any())


def _define_slices(how: str, does: str) -> None:
    """The update for both kinds of variable."""
    kernel = _slices_kernel(how)
    name = f"ScatterNd{how.capitalize()}"
    any_type = "type" if how == "update" else NUMBER
    define_op(
        name,
        inputs="ref: Ref(T), indices: Tindices, updates: T",
        outputs="output_ref: Ref(T)",
        attrs=f"T: {any_type}, Tindices: {INDEX}, use_locking: bool = {how == 'update'}, "
        "bad_indices_policy: string = ''",
        shape=_slices_shape,
        kernel=update(kernel, writes=("ref",), may_fail=_slices_may_fail),
        gradient=NO_GRADIENT,
        doc=f"Slices of a reference variable, at the places that the rows of indices name, {does} updates.",
    )
    define_op(
        f"Resource{name}",
        inputs="ref: resource, indices: Tindices, updates: T",
        attrs=f"T: type, Tindices: {INDEX}, use_locking: bool = True, bad_indices_policy: string = ''",
        shape=_slices_shape,
        kernel=update(kernel, writes=("ref",), may_fail=_slices_may_fail),
        stateful=True,
        gradient=NO_GRADIENT,
        doc=f"Slices of a resource variable, at the places that the rows of indices name, {does} updates.",
    )


_define_slices("update", "replaced by")
_define_slices("add", "increased by")
_define_slices("sub", "decreased by")
_define_slices("min", "cut down to")
_define_slices("max", "raised to")
