"""Moving elements about, on NumPy arrays of any type (strings too) and on JAX arrays alike.

Kernels written with these serve as their own host form. On JAX arrays they are single lax primitives, which
trace several times faster than their jnp counterparts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from thalweg.kernel import checks


def is_host(*values: Any) -> bool:
    """Whether all of these are NumPy values."""
    return all(isinstance(v, np.ndarray | np.generic) for v in values)


def fail_unless(ok: bool, message: Callable[..., str]) -> None:
    """InvalidArgumentError for what is wrong with shapes or known values, which needs no run to be seen."""
    if not ok:
        checks.require(False, message)


def ints(value: Any) -> list[int]:
    """A known integer vector (or scalar) as Python integers."""
    return [int(v) for v in np.asarray(value).reshape(-1)]


def normal_axis(axis: int, rank: int, what: str = "axis") -> int:
    """An axis counted from the front. InvalidArgumentError where it is out of range."""
    fail_unless(
        -rank <= axis < rank,
        lambda: f"{what} = {axis} is not in [-{rank}, {rank}): the input has rank {rank}",
    )
    return axis % rank if rank else 0


def reshape(x: Any, shape: Sequence[int]) -> Any:
    """x with its elements in another shape."""
    return np.asarray(x).reshape(shape) if is_host(x) else lax.reshape(x, tuple(shape))


def transpose(x: Any, perm: Sequence[int]) -> Any:
    """x with its axes in the order `perm`."""
    return np.transpose(x, perm) if is_host(x) else lax.transpose(x, tuple(perm))


def concatenate(values: Sequence[Any], axis: int) -> Any:
    """Arrays of one type joined along an axis."""
    if is_host(*values):
        return np.concatenate(values, axis)
    return values[0] if len(values) == 1 else lax.concatenate(list(values), axis)


def broadcast_to(x: Any, shape: Sequence[int]) -> Any:
    """x repeated along new leading axes and axes of size 1."""
    if is_host(x):
        return np.broadcast_to(x, tuple(shape))
    lead = len(shape) - x.ndim
    return lax.broadcast_in_dim(x, tuple(shape), tuple(range(lead, len(shape))))


def strided(x: Any, start: Sequence[int], limit: Sequence[int], step: Sequence[int] | None = None) -> Any:
    """x[start:limit:step] along every axis; 0 <= start <= limit <= size, step > 0."""
    if is_host(x):
        steps = step or [1] * np.ndim(x)
        return np.asarray(x)[tuple(slice(a, b, s) for a, b, s in zip(start, limit, steps, strict=True))]
    return lax.slice(x, tuple(start), tuple(limit), None if step is None else tuple(step))


def along(x: Any, axis: int, start: int, limit: int) -> Any:
    """x[start:limit] along one axis."""
    starts, limits = [0] * np.ndim(x), list(np.shape(x))
    starts[axis], limits[axis] = start, limit
    return strided(x, starts, limits)


def reverse(x: Any, axes: Sequence[int]) -> Any:
    """x back to front along these axes."""
    if not axes:
        return x
    return np.flip(x, tuple(axes)) if is_host(x) else lax.rev(x, tuple(axes))


def pad(
    x: Any, value: Any, low: Sequence[int], high: Sequence[int], interior: Sequence[int] | None = None
) -> Any:
    """x with `value` before, behind, and between its elements."""
    gaps = interior or [0] * np.ndim(x)
    if not is_host(x, value):
        config = [(int(a), int(b), int(g)) for a, b, g in zip(low, high, gaps, strict=True)]
        return lax.pad(x, value, config)
    x = np.asarray(x)
    inner = [n + max(n - 1, 0) * g for n, g in zip(x.shape, gaps, strict=True)]
    shape = [a + n + b for a, n, b in zip(low, inner, high, strict=True)]
    result = np.full(shape, np.asarray(value, x.dtype), x.dtype)
    places = tuple(slice(a, a + n, g + 1) for a, n, g in zip(low, inner, gaps, strict=True))
    result[places] = x
    return result


def full(shape: Sequence[int], value: Any, dtype: Any, like: Any) -> Any:
    """An array of one value: NumPy where `like` is."""
    if is_host(like):
        return np.full(tuple(shape), np.asarray(value, dtype), dtype)
    return lax.full(tuple(shape), value, dtype)


def zero(dtype: Any) -> Any:
    """The zero of a NumPy type, as a scalar array; for strings the empty one."""
    return np.array(b"", object) if np.dtype(dtype).kind == "O" else np.zeros((), dtype)


def select(mask: Any, yes: Any, no: Any, shape: Sequence[int]) -> Any:
    """Elementwise choice, all three broadcast to `shape`."""
    mask, yes, no = (broadcast_to(v, shape) for v in (mask, yes, no))
    if is_host(mask, yes, no):
        return np.where(mask, yes, no)
    return lax.select(mask, yes, no)


def position_text(shape: Sequence[int], flat: int) -> str:
    """The place of an element in error texts: "[2]", "[0,1]", and "" for a scalar."""
    if not shape:
        return ""
    return f"[{','.join(str(int(i)) for i in np.unravel_index(flat, tuple(shape)))}]"


def shape_text(shape: Sequence[int]) -> str:
    """A shape in error texts: [2,3]."""
    return f"[{','.join(str(int(d)) for d in shape)}]"
