"""Gradients checked against differences: tf.test.compute_gradient and compute_gradient_error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.graph import scope_stacks
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.convert import constant
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.gradients import gradients

__all__ = ["compute_gradient", "compute_gradient_error"]

_ALLOWED = (
    dtypes.float16,
    dtypes.bfloat16,
    dtypes.float32,
    dtypes.float64,
    dtypes.complex64,
    dtypes.complex128,
)


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Sequence[Any] | None = None,
    extra_feed_dict: dict[Any, Any] | None = None,
) -> Any:
    """The Jacobian of y by x twice, each [size of x, size of y]: (by gradients, by central differences).

    x, x_shape: a tensor and its shape, or lists of them (a list of pairs is returned then).
    x_init_value: where to differentiate (a list for a list); random by default.
    delta: how far to either side the differences are taken.
    init_targets: operations to run first. extra_feed_dict: further values to feed.
    Complex numbers count as two, real and imaginary part. Runs in the default session.
    Errors: ValueError without a default session, for other than floating and complex types, and for an
    x_init_value of another shape.
    """
    session = scope_stacks.default_sessions.top()
    if session is None:
        raise ValueError("compute_gradient needs a default session: use `with sess.as_default()`")
    many = isinstance(x, list)
    xs, shapes = (x, x_shape) if many else ([x], [x_shape])
    starts = x_init_value if many and x_init_value is not None else [x_init_value] * len(xs)
    feeds = extra_feed_dict or {}
    checks = [_Check(xi, y, y_shape) for xi in xs]
    for target in init_targets or ():
        session.run(target)
    result = []
    for check, shape, start in zip(checks, shapes, starts, strict=True):
        at = _start(check.x, tuple(shape), start)
        result.append((check.theoretical(session, at, feeds), check.numeric(session, at, delta, feeds)))
    return result if many else result[0]


def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Sequence[Any] | None = None,
    extra_feed_dict: dict[Any, Any] | None = None,
) -> float:
    """The largest difference between the two Jacobians of compute_gradient, which has the same arguments."""
    pairs = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    errors = [np.fabs(t - n).max() for t, n in (pairs if isinstance(pairs, list) else [pairs]) if t.size]
    return float(max(errors, default=0.0))


def _start(x: Tensor, shape: tuple[int, ...], given: Any) -> np.ndarray:
    """The value of x to differentiate at."""
    kind = x.dtype.base_dtype.as_numpy_dtype
    if given is not None:
        given = np.asarray(given)
        if given.shape != shape:
            raise ValueError(f"x_shape = {shape}, x_init_value has shape {given.shape}")
        return given.astype(kind)
    value = np.random.random_sample(shape)
    if x.dtype.base_dtype.is_complex:
        return (value + 1j * np.random.random_sample(shape)).astype(kind)
    return value.astype(kind)


def _parts(array: np.ndarray) -> np.ndarray:
    """The real numbers of an array, flat, as a view: of complex ones both parts."""
    flat = array.reshape(-1)
    return flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat


def _real(dtype: DType) -> Any:
    return dtype.base_dtype.real_dtype.as_numpy_dtype


class _Check:
    """y as a function of one x."""

    def __init__(self, x: Tensor, y: Tensor, y_shape: Any) -> None:
        for tensor, what in ((x, "x"), (y, "y")):
            if tensor.dtype.base_dtype not in _ALLOWED:
                raise ValueError(f"Don't support type {tensor.dtype.name} for {what}")
        self.x, self.y, self.y_shape = x, y, tuple(y_shape)
        with x.graph.as_default():
            # fed one unit vector after another
            self.dy = constant(np.ones(self.y_shape), y.dtype.base_dtype)
            self.dx = gradients(y, x, emit("Identity", self.dy))[0]
        if self.dx is None:
            raise ValueError(f"{y.name} does not depend on {x.name}")

    def theoretical(self, session: Any, at: np.ndarray, feeds: dict[Any, Any]) -> np.ndarray:
        dy = np.zeros(self.y_shape, self.y.dtype.base_dtype.as_numpy_dtype)
        units = _parts(dy)
        jacobian = np.zeros((_parts(at).size, units.size), _real(self.x.dtype))
        for column in range(units.size):
            units[column] = 1
            jacobian[:, column] = _parts(self._run(session, at, dy, feeds))
            units[column] = 0
        if not units.size:
            self._check_empty(self._run(session, at, dy, feeds), at)
        return jacobian

    def _run(self, session: Any, at: np.ndarray, dy: np.ndarray, feeds: dict[Any, Any]) -> np.ndarray:
        """The gradient, dense."""
        feeds = {**feeds, self.x: at, self.dy: dy}
        if not isinstance(self.dx, IndexedSlices):
            return np.asarray(session.run(self.dx, feeds))
        indices, values = session.run([self.dx.indices, self.dx.values], feeds)
        dense = np.zeros_like(at)
        np.add.at(dense, indices, values)
        return dense

    def _check_empty(self, dx: np.ndarray, at: np.ndarray) -> None:
        if dx.shape != at.shape:
            raise ValueError(f"Empty gradient has wrong shape: expected {at.shape}, got {dx.shape}")
        if np.any(dx):
            raise ValueError("Empty tensor with nonzero gradients")

    def numeric(self, session: Any, at: np.ndarray, delta: float, feeds: dict[Any, Any]) -> np.ndarray:
        def run(value: np.ndarray) -> np.ndarray:
            return _parts(np.asarray(session.run(self.y, {**feeds, self.x: value}))).astype(np.float64)

        rows = []
        for row in range(_parts(at).size):
            above, below = at.copy(), at.copy()
            _parts(above)[row] += delta
            _parts(below)[row] -= delta
            # what rounding made of 2 * delta
            width = float(_parts(above)[row]) - float(_parts(below)[row])
            rows.append((run(above) - run(below)) / (width or 2 * delta))
        size = int(np.prod(self.y_shape)) * (2 if self.y.dtype.is_complex else 1)
        return np.array(rows, _real(self.x.dtype)).reshape(len(rows), size)
