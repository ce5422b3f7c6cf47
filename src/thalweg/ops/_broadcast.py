"""Elementwise kernels and shapes that broadcast, on JAX arrays and on NumPy. Private to the op families."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel import checks

Fn = Callable[..., Any]


def same_shape(c: ShapeContext) -> list[Shape]:
    """The shape function of an op that works element by element on its first input."""
    return [c.shape(0)]


def broadcast_shape(c: ShapeContext) -> list[Shape]:
    """The shape function of an op whose inputs are broadcast together."""
    result = c.shape(0)
    for i in range(1, len(c)):
        result = shapes.broadcast(result, c.shape(i))
    return [result]


def common_shape(*arrays: Any) -> tuple[int, ...]:
    """The shape that arrays broadcast to. InvalidArgumentError, as TensorFlow's, where there is none."""
    return broadcast_shapes(*(tuple(a.shape) for a in arrays))


def broadcast_shapes(*each: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to. InvalidArgumentError where there is none."""
    if all(s == each[0] for s in each):
        return each[0]
    try:
        return np.broadcast_shapes(*each)
    except ValueError:
        names = " vs. ".join(shapes.format_shape(s) for s in each)
        checks.require(False, lambda: f"Incompatible shapes: {names}")
        raise


def broadcast_to(x: Any, shape: Sequence[int]) -> Any:
    """x repeated to `shape`, which it must broadcast to."""
    if x.shape == tuple(shape):
        return x
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))


def together(*arrays: Any) -> list[Any]:
    """The arrays, each broadcast to their common shape."""
    shape = common_shape(*arrays)
    return [broadcast_to(a, shape) for a in arrays]


def broadcasting(fn: Fn) -> Fn:
    """A kernel that broadcasts its arrays and calls fn on arrays of one shape."""

    def kernel(*arrays: Any) -> Any:
        return fn(*together(*arrays))

    return kernel


def on_host(fn: Fn) -> Fn:
    """A host kernel from a NumPy function, which broadcasts by itself: no warnings, always an array."""

    def kernel(*arrays: Any) -> np.ndarray:
        common_shape(*arrays)
        with np.errstate(all="ignore"):
            result = fn(*arrays)
        if arrays[0].dtype == object and not isinstance(result, np.ndarray | np.bool_):
            return np.array(result, dtype=object)
        return np.asarray(result)

    return kernel


def same_type(fn: Fn) -> Fn:
    """As on_host; the result has the element type of the first array (NumPy promotes in places)."""
    inner = on_host(fn)

    def kernel(*arrays: Any) -> np.ndarray:
        result: np.ndarray = inner(*arrays)
        return result.astype(arrays[0].dtype, copy=False)

    return kernel


def is_float(x: Any) -> bool:
    """Whether an array holds floating point numbers (bfloat16 too)."""
    return x.dtype.kind == "f" or x.dtype.name == "bfloat16"


def is_integer(x: Any) -> bool:
    """Whether an array holds integers."""
    return x.dtype.kind in "iu"


def conj(x: Any) -> Any:
    """The complex conjugate; x itself where it is real."""
    return lax.conj(x) if x.dtype.kind == "c" else x
