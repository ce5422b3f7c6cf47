"""Updates of variables as functions: assign, assign_add, scatter_add ... for both kinds of variable.

Each makes one node. Of a reference it returns the value after the update; of a resource variable the variable
as it is then (see UnreadVariable).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor


def assign(
    ref: Any,
    value: Any,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Any:
    """Gives a variable (or reference tensor) a value. validate_shape False: of any shape."""
    if not ref.dtype.is_ref_dtype:
        return ref.assign(value, name=name)
    return emit("Assign", ref, value, validate_shape=validate_shape, use_locking=use_locking, name=name)


def assign_add(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Adds value to a variable (or reference tensor)."""
    if not ref.dtype.is_ref_dtype:
        return ref.assign_add(value, name=name)
    return emit("AssignAdd", ref, value, use_locking=use_locking, name=name)


def assign_sub(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Subtracts value from a variable (or reference tensor)."""
    if not ref.dtype.is_ref_dtype:
        return ref.assign_sub(value, name=name)
    return emit("AssignSub", ref, value, use_locking=use_locking, name=name)


def count_up_to(ref: Any, limit: int, name: str | None = None) -> Tensor:
    """Adds one, and returns the value before. OutOfRangeError where that would pass `limit`."""
    if not ref.dtype.is_ref_dtype:
        return emit("ResourceCountUpTo", ref.handle, limit=limit, T=ref.dtype, name=name)
    return emit("CountUpTo", ref, limit=limit, name=name)


def _scatter(op_type: str, locking: bool, does: str) -> Callable[..., Any]:
    def scatter(
        ref: Any, indices: Any, updates: Any, use_locking: bool = locking, name: str | None = None
    ) -> Any:
        if not ref.dtype.is_ref_dtype:
            return ref._update("Resource" + op_type, indices, value=updates, name=name)
        return emit(op_type, ref, indices, updates, use_locking=use_locking, name=name)

    scatter.__doc__ = does
    return scatter


_ROWS = "rows of a variable at `indices` (any shape; row i of updates is for indices[i]). Repeats all count."
_CELLS = "elements or slices of a variable at indices [..., k] (k leading axes). Repeats all count."

scatter_add = _scatter("ScatterAdd", False, f"Adds updates to {_ROWS}")
scatter_sub = _scatter("ScatterSub", False, f"Subtracts updates from {_ROWS}")
scatter_mul = _scatter("ScatterMul", False, f"Multiplies by updates {_ROWS}")
scatter_div = _scatter("ScatterDiv", False, f"Divides by updates {_ROWS}")
scatter_max = _scatter("ScatterMax", False, f"Takes the maximum of updates and {_ROWS}")
scatter_min = _scatter("ScatterMin", False, f"Takes the minimum of updates and {_ROWS}")
scatter_update = _scatter("ScatterUpdate", True, "Puts updates into rows of a variable at `indices`.")
scatter_nd_add = _scatter("ScatterNdAdd", False, f"Adds updates to {_CELLS}")
scatter_nd_sub = _scatter("ScatterNdSub", False, f"Subtracts updates from {_CELLS}")
scatter_nd_update = _scatter("ScatterNdUpdate", True, "Puts updates into a variable at indices [..., k].")

for _name in [n for n in globals() if n.startswith("scatter_")]:
    globals()[_name].__name__ = globals()[_name].__qualname__ = _name
