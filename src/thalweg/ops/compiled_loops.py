"""Loops and branches that the plan compiles (plan.loops), and TensorArrays in them as plain tensors.

A TensorArray there is a *buffer*: one tensor, of `size` rows, that takes the place of the array's flow. Where
the shape of its elements isn't known before the first write, it has shape [size, 0] until then.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.base.shape import Shape
from thalweg.graph.operation import Operation
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.checks import require
from thalweg.kernel.convention import traceable
from thalweg.kernel.loops import is_unshaped, run_cond, run_while

_BY_PLAN = NotDifferentiable("made by the plan")


def _unknown(c: ShapeContext) -> list[Shape]:
    return [None] * len(c.op._outputs)


def _bodies_may_fail(*names: str) -> Any:
    def check(op: Operation) -> bool:
        return any(op._attrs[n].may_fail for n in names)

    return check


define_op(
    "_CompiledLoop",
    inputs="variables: T, captured: Tcaptured, popped: Tpopped, count: Ncount * int32, known: Tknown",
    outputs="results: Tout",
    attrs="T: list(type), Tcaptured: list(type), Tpopped: list(type), Ncount: int >= 0, Tknown: list(type), "
    "Tout: list(type), cond: func, body: func, finish: func, fixed: func, arrays: list(int), "
    "counters: list(int), pushes: int, trips: list(int)",
    shape=_unknown,
    kernel=traceable(run_while, static=("known",), may_fail=_bodies_may_fail("body", "finish")),
    gradient=_BY_PLAN,
    doc="A whole loop (see kernel.loops.run_while).",
)

define_op(
    "_CompiledCond",
    inputs="pred: bool, captured: Tcaptured, known: Tknown",
    outputs="results: Tout",
    attrs="Tcaptured: list(type), Tknown: list(type), Tout: list(type), then: func, otherwise: func, "
    "cheap: bool",
    shape=_unknown,
    kernel=traceable(run_cond, static=("known",), may_fail=_bodies_may_fail("then", "otherwise")),
    gradient=_BY_PLAN,
    doc="A whole conditional (see kernel.loops.run_cond).",
)


# ---- TensorArrays ----------------------------------------------------------------------------------------


def _new(size: np.ndarray, *, dtype: np.dtype, element_shape: Shape) -> Any:
    known = element_shape is not None and None not in element_shape
    return jnp.zeros((int(size), *(element_shape if known else (0,))), dtype)  # type: ignore[misc]


def _shaped(buffer: Any, like: Any, element: tuple[int, ...]) -> Any:
    """The buffer with places for elements of this shape."""
    if not is_unshaped(buffer):
        return buffer
    return jnp.zeros((like.shape[0], *element), like.dtype)


def _row(buffer: Any, index: Any, what: str, *, checked: bool) -> Any:
    index = jnp.asarray(index, np.int32)
    if checked:
        n = buffer.shape[0]
        require(
            lax.bitwise_and(lax.ge(index, np.int32(0)), lax.lt(index, np.int32(n))),
            lambda i: f"TensorArray: Tried to {what} index {i} but array size is: {n}",
            index,
        )
    return index


def _write(buffer: Any, index: Any, value: Any, *, checked: bool) -> Any:
    buffer = _shaped(buffer, buffer, np.shape(value))
    index = _row(buffer, index, "write to", checked=checked)
    if not buffer.shape[0]:
        return buffer
    return lax.dynamic_update_index_in_dim(buffer, jnp.asarray(value, buffer.dtype), index, 0)


def _read(buffer: Any, index: Any, *, checked: bool, element_shape: Shape) -> Any:
    if is_unshaped(buffer) and element_shape is not None and None not in element_shape:
        buffer = _shaped(buffer, buffer, element_shape)  # type: ignore[arg-type]
    index = _row(buffer, index, "read from", checked=checked)
    if not buffer.shape[0]:
        return jnp.zeros(buffer.shape[1:], buffer.dtype)
    return lax.dynamic_index_in_dim(buffer, index, keepdims=False)


def _gather(buffer: Any, indices: Any, *, element_shape: Shape) -> Any:
    if is_unshaped(buffer) and element_shape is not None and None not in element_shape:
        buffer = _shaped(buffer, buffer, element_shape)  # type: ignore[arg-type]
    if _is_whole(indices, buffer.shape[0]):
        return jnp.asarray(buffer)
    return jnp.take(buffer, jnp.asarray(indices), axis=0, mode="clip")


def _scatter(buffer: Any, indices: Any, value: Any) -> Any:
    if _is_whole(indices, buffer.shape[0]):
        return jnp.asarray(value)
    buffer = _shaped(buffer, buffer, np.shape(value)[1:])
    return jnp.asarray(buffer).at[jnp.asarray(indices)].set(value, mode="drop")


def _is_whole(indices: Any, n: int) -> bool:
    """Whether the indices are known to be 0, 1 ... n - 1."""
    return isinstance(indices, np.ndarray) and np.array_equal(indices, np.arange(n))


def _accumulate(buffer: Any, like: Any, index: Any, value: Any) -> Any:
    buffer = jnp.asarray(_shaped(buffer, like, np.shape(value)))
    if not buffer.shape[0]:
        return buffer
    index = jnp.asarray(index, np.int32)
    old = lax.dynamic_index_in_dim(buffer, index, keepdims=False)
    return lax.dynamic_update_index_in_dim(buffer, lax.add(old, jnp.asarray(value)), index, 0)


def _accumulate_rows(buffer: Any, like: Any, indices: Any, value: Any) -> Any:
    if is_unshaped(buffer) and _is_whole(indices, like.shape[0]):
        return jnp.asarray(value)
    buffer = jnp.asarray(_shaped(buffer, like, np.shape(value)[1:]))
    return buffer.at[jnp.asarray(indices)].add(value, mode="drop")


define_op(
    "_ArrayNew",
    inputs="size: int32",
    outputs="buffer: dtype",
    attrs="dtype: type, element_shape: shape = None",
    shape=_unknown,
    kernel=traceable(_new, static=("size",)),
    gradient=_BY_PLAN,
    doc="A buffer of zeros.",
)
define_op(
    "_ArrayNothing",
    inputs="like: T",
    outputs="buffer: T",
    attrs="T: type",
    shape=_unknown,
    kernel=traceable(lambda like: jnp.zeros((like.shape[0], 0), like.dtype)),
    gradient=_BY_PLAN,
    doc="The buffer of a gradient to which nothing was added yet.",
)
define_op(
    "_ArrayWrite",
    inputs="buffer: T, index: int32, value: T",
    outputs="output: T",
    attrs="T: type, checked: bool",
    shape=_unknown,
    kernel=traceable(_write, may_fail=lambda op: bool(op._attrs["checked"])),
    gradient=_BY_PLAN,
    doc="The buffer with another row.",
)
define_op(
    "_ArrayRead",
    inputs="buffer: T, index: int32",
    outputs="value: T",
    attrs="T: type, checked: bool, element_shape: shape = None",
    shape=_unknown,
    kernel=traceable(_read, may_fail=lambda op: bool(op._attrs["checked"])),
    gradient=_BY_PLAN,
    doc="A row of the buffer.",
)
define_op(
    "_ArrayGather",
    inputs="buffer: T, indices: int32",
    outputs="value: T",
    attrs="T: type, element_shape: shape = None",
    shape=_unknown,
    kernel=traceable(_gather),
    gradient=_BY_PLAN,
    doc="Rows of the buffer, stacked.",
)
define_op(
    "_ArrayScatter",
    inputs="buffer: T, indices: int32, value: T",
    outputs="output: T",
    attrs="T: type",
    shape=_unknown,
    kernel=traceable(_scatter),
    gradient=_BY_PLAN,
    doc="The buffer with other rows.",
)
define_op(
    "_ArrayAccumulate",
    inputs="buffer: T, like: T, index: int32, value: T",
    outputs="output: T",
    attrs="T: type",
    shape=_unknown,
    kernel=traceable(_accumulate),
    gradient=_BY_PLAN,
    doc="The buffer of a gradient with something added to a row; `like` is the array's own buffer.",
)
define_op(
    "_ArrayAccumulateRows",
    inputs="buffer: T, like: T, indices: int32, value: T",
    outputs="output: T",
    attrs="T: type",
    shape=_unknown,
    kernel=traceable(_accumulate_rows),
    gradient=_BY_PLAN,
    doc="The buffer of a gradient with something added to rows.",
)
define_op(
    "_ArraySize",
    inputs="buffer: T",
    outputs="size: int32",
    attrs="T: type",
    shape=lambda c: [()],
    kernel=traceable(lambda buffer: np.asarray(np.shape(buffer)[0], np.int32), shape_only=True),
    gradient=_BY_PLAN,
    doc="The number of rows.",
)
