"""Running sums and products along an axis. Source: TensorFlow's scan_ops.cc.

The gradient of Cumprod is where thalweg leaves TensorFlow, whose gradient divides by the input and is wrong
where that is zero. Here it is right everywhere: with p[i] the product before i, and s the recurrence

    s[i] = dy[i] + x[i + 1] * s[i + 1],       dx[i] = p[i] * s[i].

Recurrences of this kind are an op of their own, `_LinearRecurrence`, computed by a parallel scan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import OpRecord, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel import checks
from thalweg.kernel.convention import traceable
from thalweg.ops._gradient_nodes import conj, mul
from thalweg.ops._types import NUMBER


def _scan_shape(c: ShapeContext) -> list[Shape]:
    x = c.with_rank_at_least(0, 1)
    axis = c.value(len(c) - 1)
    if x is not None and axis is not None and not -len(x) <= int(axis) < len(x):
        raise ValueError(f"Expected scan axis in the range [{-len(x)}, {len(x)}), but got {int(axis)}")
    return [x]


def _axis(x: Any, axis: np.ndarray) -> int:
    at = int(np.asarray(axis).reshape(()))
    checks.require(
        -x.ndim <= at < x.ndim,
        lambda: f"Expected scan axis in the range [{-x.ndim}, {x.ndim}), but got {at}",
    )
    return at % x.ndim


def _moved(x: Any, axis: int, reverse: bool, fill: float) -> Any:
    """x moved one place along the axis (back, where reverse), `fill` in the place that falls free."""
    if x.shape[axis] == 0:
        return x
    widths = [(0, 0, 0)] * x.ndim
    widths[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return lax.pad(x, np.array(fill, x.dtype), widths)


def _scan(fn: Callable[..., Any], neutral: float) -> Callable[..., Any]:
    def kernel(x: Any, axis: np.ndarray, *, exclusive: bool, reverse: bool) -> Any:
        at = _axis(x, axis)
        if exclusive:
            x = _moved(x, at, reverse, neutral)
        return fn(x, axis=at, reverse=reverse)

    return kernel


def _scan_host(fn: Any, neutral: float) -> Callable[..., Any]:
    def kernel(x: np.ndarray, axis: np.ndarray, *, exclusive: bool, reverse: bool) -> np.ndarray:
        at = _axis(x, axis)
        x = np.moveaxis(x, at, 0)
        x = x[::-1] if reverse else x
        if exclusive:
            x = np.concatenate([np.full_like(x[:1], neutral), x[:-1]])
        with np.errstate(all="ignore"):
            y = fn(x, axis=0, dtype=x.dtype)
        return np.ascontiguousarray(np.moveaxis(y[::-1] if reverse else y, 0, at))

    return kernel


def _define_scan(name: str, fn: Any, host: Any, neutral: float, gradient: Any, doc: str) -> OpRecord:
    return define_op(
        name,
        inputs="x: T, axis: Tidx",
        outputs="out: T",
        attrs=f"exclusive: bool = False, reverse: bool = False, T: {NUMBER}, Tidx: {{int32, int64}} = int32",
        shape=_scan_shape,
        kernel=traceable(_scan(fn, neutral), host=_scan_host(host, neutral), static=("axis",)),
        gradient=gradient,
        doc=doc,
    )


def _cumsum_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    exclusive, reverse = op._attrs["exclusive"], op._attrs["reverse"]
    return [emit("Cumsum", dy, op._inputs[1], exclusive=exclusive, reverse=not reverse), None]


def _cumprod_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    x, axis = conj(emit, op._inputs[0]), op._inputs[1]
    exclusive, reverse = op._attrs["exclusive"], op._attrs["reverse"]
    before = emit("Cumprod", x, axis, exclusive=True, reverse=reverse)
    if exclusive:  # the outputs that x[i] takes part in start one later
        after = _following(emit, _recur(emit, x, dy, axis, not reverse), axis, not reverse)
    else:
        after = _recur(emit, _following(emit, x, axis, not reverse), dy, axis, not reverse)
    return [mul(emit, before, after), None]


def _recur(emit: Emitter, a: Tensor, b: Tensor, axis: Tensor, reverse: bool) -> Tensor:
    result: Tensor = emit("_LinearRecurrence", a, b, axis, reverse=reverse, name="LinearRecurrence")
    return result


def _following(emit: Emitter, x: Tensor, axis: Tensor, reverse: bool) -> Tensor:
    """x, moved one place in the direction in which a recurrence runs."""
    result: Tensor = emit("_Shift", x, axis, reverse=reverse, name="Shift")
    return result


_define_scan("Cumsum", lax.cumsum, np.cumsum, 0, _cumsum_gradient, "Running sums along an axis.")
_define_scan("Cumprod", lax.cumprod, np.cumprod, 1, _cumprod_gradient, "Running products along an axis.")


# -- linear recurrences -------------------------------------------------------------------------------------


def _recurrence_shape(c: ShapeContext) -> list[Shape]:
    return [shapes.merge(c.shape(0), c.shape(1))]


def _linear_recurrence(a: Any, b: Any, axis: np.ndarray, *, reverse: bool) -> Any:
    def combine(first: tuple[Any, Any], then: tuple[Any, Any]) -> tuple[Any, Any]:
        return lax.mul(first[0], then[0]), lax.add(lax.mul(then[0], first[1]), then[1])

    at = _axis(b, axis)
    if b.shape[at] == 0:
        return b
    both = (lax.convert_element_type(a, a.dtype), lax.convert_element_type(b, b.dtype))
    return lax.associative_scan(combine, both, reverse=reverse, axis=at)[1]


def _recurrence_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    a, axis, h = conj(emit, op._inputs[0]), op._inputs[2], conj(emit, op._outputs[0])
    reverse = op._attrs["reverse"]
    db = _recur(emit, _following(emit, a, axis, not reverse), dy, axis, not reverse)
    return [mul(emit, db, _following(emit, h, axis, reverse)), db, None]


linear_recurrence = define_op(
    "_LinearRecurrence",
    inputs="a: T, b: T, axis: Tidx",
    outputs="h: T",
    attrs=f"reverse: bool = False, T: {NUMBER}, Tidx: {{int32, int64}} = int32",
    shape=_recurrence_shape,
    kernel=traceable(_linear_recurrence, static=("axis",)),
    gradient=_recurrence_gradient,
    doc="h[i] = a[i] * h[i - 1] + b[i] along an axis; with h[i + 1] where reverse.",
)


def _shift(x: Any, axis: np.ndarray, *, reverse: bool) -> Any:
    return _moved(x, _axis(x, axis), reverse, 0)


def _shift_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [_following(emit, dy, op._inputs[1], not op._attrs["reverse"]), None]


shift = define_op(
    "_Shift",
    inputs="x: T, axis: Tidx",
    outputs="y: T",
    attrs=f"reverse: bool = False, T: {NUMBER}, Tidx: {{int32, int64}} = int32",
    shape=_scan_shape,
    kernel=traceable(_shift, static=("axis",)),
    gradient=_shift_gradient,
    doc="y[i] = x[i - 1] along an axis, 0 at its start; x[i + 1] where reverse.",
)
