"""Comparisons and logic, choosing by condition, clipping. Source: TensorFlow's math_ops.cc, array_ops.cc."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import NotDifferentiable, OpRecord, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel import checks
from thalweg.kernel.convention import traceable
from thalweg.ops._broadcast import (
    broadcast_shape,
    broadcast_shapes,
    broadcast_to,
    broadcasting,
    common_shape,
    on_host,
    same_type,
    together,
)
from thalweg.ops._gradient_nodes import reduce_to_inputs, sum_over, zeros, zeros_like
from thalweg.ops._types import NUMBER, REAL

_TRUTH = NotDifferentiable("a truth value")

# -- comparisons and logic -----------------------------------------------------------------------------------


def _define_ordering(name: str, fn: Callable[..., Any], host: Callable[..., Any], doc: str) -> OpRecord:
    return define_op(
        name,
        inputs="x: T, y: T",
        outputs="z: bool",
        attrs=f"T: {REAL}",
        shape=broadcast_shape,
        kernel=traceable(broadcasting(fn), host=on_host(host)),
        gradient=_TRUTH,
        doc=doc,
    )


_define_ordering("Less", lax.lt, np.less, "Whether x < y.")
_define_ordering("LessEqual", lax.le, np.less_equal, "Whether x <= y.")
_define_ordering("Greater", lax.gt, np.greater, "Whether x > y.")
_define_ordering("GreaterEqual", lax.ge, np.greater_equal, "Whether x >= y.")


def _equality_shape(c: ShapeContext) -> list[Shape]:
    if c.attr("incompatible_shape_error"):
        return broadcast_shape(c)
    try:
        known = broadcast_shape(c)
    except ValueError:  # tensors of unlike shapes are unequal: one answer
        return [()]
    return known if shapes.is_fully_defined(c.shape(0)) and shapes.is_fully_defined(c.shape(1)) else [None]


def _equality(fn: Callable[..., Any], host: Callable[..., Any], unlike: bool) -> Any:
    """The kernel of Equal or NotEqual. unlike: the answer for shapes that don't broadcast."""
    compare, compare_on_host = broadcasting(fn), on_host(host)

    def fits(x: Any, y: Any) -> bool:
        try:
            np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            return False
        return True

    def kernel(x: Any, y: Any, *, incompatible_shape_error: bool) -> Any:
        if not incompatible_shape_error and not fits(x, y):
            return np.array(unlike)
        return compare(x, y)

    def host_kernel(x: Any, y: Any, *, incompatible_shape_error: bool) -> Any:
        if not incompatible_shape_error and not fits(x, y):
            return np.array(unlike)
        return compare_on_host(x, y)

    return traceable(kernel, host=host_kernel)


def _define_equality(name: str, kernel: Any, doc: str) -> OpRecord:
    return define_op(
        name,
        inputs="x: T, y: T",
        outputs="z: bool",
        attrs="T: type, incompatible_shape_error: bool = True",
        shape=_equality_shape,
        kernel=kernel,
        gradient=_TRUTH,
        commutative=True,
        doc=doc,
    )


_define_equality("Equal", _equality(lax.eq, np.equal, False), "Whether x and y are equal.")
_define_equality("NotEqual", _equality(lax.ne, np.not_equal, True), "Whether x and y differ.")


def _define_logic(name: str, fn: Callable[..., Any], host: Callable[..., Any], doc: str) -> OpRecord:
    return define_op(
        name,
        inputs="x: bool, y: bool",
        outputs="z: bool",
        shape=broadcast_shape,
        kernel=traceable(broadcasting(fn), host=on_host(host)),
        gradient=_TRUTH,
        commutative=True,
        doc=doc,
    )


_define_logic("LogicalAnd", lax.bitwise_and, np.logical_and, "Whether both hold.")
_define_logic("LogicalOr", lax.bitwise_or, np.logical_or, "Whether one of them holds.")


def _approximate_shape(c: ShapeContext) -> list[Shape]:
    return [shapes.merge(c.shape(0), c.shape(1))]


def _require_same(x: Any, y: Any) -> None:
    checks.require(
        x.shape == y.shape,
        lambda: (
            f"x and y must be of the same shape. x shape: {shapes.format_shape(tuple(x.shape))}. "
            f"y shape: {shapes.format_shape(tuple(y.shape))}"
        ),
    )


def _approximate(x: Any, y: Any, *, tolerance: float) -> Any:
    _require_same(x, y)
    difference = lax.sub(x, y)
    size = difference if x.dtype.kind == "u" else lax.abs(difference)
    return lax.lt(lax.convert_element_type(size, np.float64), np.float64(tolerance))


def _approximate_host(x: np.ndarray, y: np.ndarray, *, tolerance: float) -> np.ndarray:
    _require_same(x, y)
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(x - y).astype(np.float64) < tolerance)


approximate_equal = define_op(
    "ApproximateEqual",
    inputs="x: T, y: T",
    outputs="z: bool",
    attrs=f"T: {NUMBER}, tolerance: float = 9.999999747378752e-06",
    shape=_approximate_shape,
    kernel=traceable(_approximate, host=_approximate_host),
    gradient=_TRUTH,
    commutative=True,
    doc="Whether |x - y| < tolerance, for tensors of one shape.",
)


# -- choosing ------------------------------------------------------------------------------------------------


def _select_shape(c: ShapeContext) -> list[Shape]:
    condition, result = c.shape(0), shapes.merge(c.shape(1), c.shape(2))
    if condition is None or result is None or len(condition) == 0:
        return [result]
    if len(condition) == 1 and len(result) >= 1:  # one truth value a row
        row = shapes.merge(condition, result[:1])
        assert row is not None
        return [row + result[1:]]
    return [shapes.merge(condition, result)]


def _rows(condition: Any, shape: tuple[int, ...]) -> Any:
    """The condition of Select for every element: it may be a scalar, or a vector of one for each row."""
    if condition.ndim <= 1 and len(shape) > condition.ndim:
        checks.require(
            condition.ndim == 0 or condition.shape[0] == shape[0],
            lambda: (
                f"Number of batches of 'then' must match size of 'cond', but saw: {shape[0]} vs. "
                f"{condition.shape[0]}"
            ),
        )
        return lax.broadcast_in_dim(condition, shape, tuple(range(condition.ndim)))
    checks.require(
        condition.shape == shape,
        lambda: (
            f"'then' and 'cond' must have the same size. but received: "
            f"{shapes.format_shape(shape)} vs. {shapes.format_shape(tuple(condition.shape))}"
        ),
    )
    return condition


def _require_branches(t: Any, e: Any) -> None:
    checks.require(
        t.shape == e.shape,
        lambda: (
            f"'then' and 'else' must have the same size. but received: "
            f"{shapes.format_shape(tuple(t.shape))} vs. {shapes.format_shape(tuple(e.shape))}"
        ),
    )


def _select(condition: Any, t: Any, e: Any) -> Any:
    _require_branches(t, e)
    return lax.select(_rows(condition, tuple(t.shape)), t, e)


def _select_host(condition: np.ndarray, t: np.ndarray, e: np.ndarray) -> np.ndarray:
    _require_branches(t, e)
    if condition.ndim == 1 and t.ndim > 1:
        condition = condition.reshape((-1,) + (1,) * (t.ndim - 1))
    common_shape(condition, t)
    return np.asarray(np.where(condition, t, e), t.dtype)


def _select_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    condition, t = op._inputs[0], op._inputs[1]
    nothing = zeros_like(emit, t)
    return [None, emit("Select", condition, dy, nothing), emit("Select", condition, nothing, dy)]


select = define_op(
    "Select",
    inputs="condition: bool, t: T, e: T",
    outputs="output: T",
    attrs="T: type",
    shape=_select_shape,
    kernel=traceable(_select, host=_select_host),
    gradient=_select_gradient,
    doc="t where the condition holds, e elsewhere; a vector condition chooses rows.",
)


def _select_v2(condition: Any, t: Any, e: Any) -> Any:
    return lax.select(*together(condition, t, e))


def _select_v2_host(condition: np.ndarray, t: np.ndarray, e: np.ndarray) -> np.ndarray:
    common_shape(condition, t, e)
    return np.asarray(np.where(condition, t, e), t.dtype)


def _select_v2_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    condition, t, e = op._inputs
    nothing = emit.constant(np.zeros((), dy._dtype.as_numpy_dtype), name="zeros")
    gt, ge = emit("SelectV2", condition, dy, nothing), emit("SelectV2", condition, nothing, dy)
    output = op._outputs[0]
    gt, _ = reduce_to_inputs(emit, t, output, gt, None)
    ge, _ = reduce_to_inputs(emit, e, output, ge, None)
    return [None, gt, ge]


select_v2 = define_op(
    "SelectV2",
    inputs="condition: bool, t: T, e: T",
    outputs="output: T",
    attrs="T: type",
    shape=broadcast_shape,
    kernel=traceable(_select_v2, host=_select_v2_host),
    gradient=_select_v2_gradient,
    doc="t where the condition holds, e elsewhere, all three broadcast together.",
)


# -- clipping ------------------------------------------------------------------------------------------------


def _clip_bound(t: Any, bound: Any) -> Any:
    checks.require(
        bound.ndim == 0 or bound.shape == t.shape,
        lambda: (
            "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. "
            f"input: {shapes.format_shape(tuple(t.shape))}, bound: {shapes.format_shape(tuple(bound.shape))}"
        ),
    )
    return broadcast_to(bound, t.shape)


def _clip(t: Any, low: Any, high: Any) -> Any:
    return lax.max(lax.min(t, _clip_bound(t, high)), _clip_bound(t, low))


def _clip_host(t: np.ndarray, low: np.ndarray, high: np.ndarray) -> Any:
    return np.maximum(np.minimum(t, _clip_bound(t, high)), _clip_bound(t, low))


def _clip_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    x, low, high = op._inputs
    sx, sy, sz = emit.shape(x), emit.shape(low), emit.shape(high)
    nothing = zeros(emit, emit.shape(dy), dy._dtype.base_dtype)
    below, above = emit("Less", x, low), emit("Greater", x, high)
    _, by_low = emit("BroadcastGradientArgs", sx, sy)
    _, by_high = emit("BroadcastGradientArgs", sx, sz)
    gx = emit("Select", emit("LogicalOr", below, above), nothing, dy)
    gy, gz = emit("Select", below, dy, nothing), emit("Select", above, dy, nothing)
    return [gx, sum_over(emit, gy, by_low, sy), sum_over(emit, gz, by_high, sz)]


def _clip_shape(c: ShapeContext) -> list[Shape]:
    result = c.shape(0)
    for i in (1, 2):
        bound = c.shape(i)
        if bound is not None and len(bound) > 0:
            result = shapes.broadcast(result, bound)
    return [result]


clip_by_value = define_op(
    "ClipByValue",
    inputs="t: T, clip_value_min: T, clip_value_max: T",
    outputs="output: T",
    attrs=f"T: {NUMBER}",
    shape=_clip_shape,
    kernel=traceable(_clip, host=lambda t, low, high: same_type(_clip_host)(t, low, high)),
    gradient=_clip_gradient,
    doc="t, not below clip_value_min and not above clip_value_max.",
)


# -- which axes broadcasting stretched -----------------------------------------------------------------------


def _gradient_args(s0: np.ndarray, s1: np.ndarray) -> list[np.ndarray]:
    x, y = tuple(int(d) for d in s0), tuple(int(d) for d in s1)
    if x == y:
        return [np.zeros(0, s0.dtype), np.zeros(0, s0.dtype)]
    broadcast_shapes(x, y)
    rank = max(len(x), len(y))
    x, y = (1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y
    # an axis of 1 in both is summed in both, which changes nothing: as TensorFlow
    return [np.array([i for i in range(rank) if s[i] == 1], s0.dtype) for s in (x, y)]


broadcast_gradient_args = define_op(
    "BroadcastGradientArgs",
    inputs="s0: T, s1: T",
    outputs="r0: T, r1: T",
    attrs="T: {int32, int64} = int32",
    shape=lambda c: [(None,), (None,)],
    kernel=traceable(_gradient_args, host=_gradient_args, static=("s0", "s1")),
    gradient=NotDifferentiable("shapes"),
    doc="The axes along which gradients of a broadcasting op are summed, for inputs of shapes s0 and s1.",
)
