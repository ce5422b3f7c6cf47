"""Diagonals: Diag, MatrixDiag, MatrixSetDiag, MatrixBandPart.

Source: TensorFlow's diag_op.cc, matrix_diag_op.cc, matrix_set_diag_op.cc, matrix_band_part_op.cc.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext, constant_value
from thalweg.kernel import checks
from thalweg.kernel.convention import traceable
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, is_host, shape_text
from thalweg.ops._emitting import beside, concat
from thalweg.ops._gradient_nodes import zeros_like
from thalweg.ops._types import INDEX

_DIAG_TYPES = "{bfloat16, half, float, double, int32, int64, complex64, complex128}"


def _set_diagonal(matrix: Any, diagonal: Any) -> Any:
    """The last two dimensions of `matrix` with another main diagonal."""
    shape = np.shape(matrix)
    rows, columns = shape[-2:]
    k = min(rows, columns)
    lead = np.ndim(diagonal) - 1
    spread = arrays.pad(diagonal, arrays.zero(diagonal.dtype), [0] * (lead + 1), [0] * lead + [columns - k])
    spread = arrays.reshape(spread, (*shape[:-2], 1, columns))
    return arrays.select(np.eye(rows, columns, dtype=bool), spread, matrix, shape)


def _on_diagonal(diagonal: Any) -> Any:
    """[..., n] as the main diagonal of [..., n, n]."""
    n = np.shape(diagonal)[-1]
    shape = (*np.shape(diagonal), n)
    zeros = arrays.full(shape, arrays.zero(diagonal.dtype)[()], diagonal.dtype, diagonal)
    return _set_diagonal(zeros, diagonal)


def _diagonal_of(x: Any) -> Any:
    """The main diagonal of the last two dimensions: every (n+1)th element of the square."""
    shape = np.shape(x)
    lead, k = shape[:-2], min(shape[-2:])
    square = arrays.strided(x, [0] * len(shape), (*lead, k, k))
    flat = arrays.reshape(square, (*lead, k * k))
    return arrays.strided(flat, [0] * (len(lead) + 1), (*lead, k * k), (*[1] * len(lead), k + 1))


def _diag_shape(c: ShapeContext) -> list[Shape]:
    s = c.with_rank_at_least(0, 1)
    return [None if s is None else s + s]


def _diag_kernel(diagonal: Any) -> Any:
    shape = tuple(np.shape(diagonal))
    fail_unless(len(shape) >= 1, lambda: "Input must be at least rank 1, got 0")
    flat = arrays.reshape(diagonal, (math.prod(shape),))
    return arrays.reshape(_on_diagonal(flat), shape + shape)


define_op(
    "Diag",
    inputs="diagonal: T",
    outputs="output: T",
    attrs=f"T: {_DIAG_TYPES}",
    shape=_diag_shape,
    kernel=traceable(_diag_kernel, host=_diag_kernel),
    gradient=lambda emit, op, dy: [emit("DiagPart", dy)],
    doc="Zeros of twice the rank, with the input where both halves of the index agree.",
)


def _diag_part_shape(c: ShapeContext) -> list[Shape]:
    s = c.shape(0)
    if s is None:
        return [None]
    if len(s) % 2 or not s:
        raise ValueError(f"Input must have even and non-zero rank, input rank is {len(s)}")
    half = len(s) // 2
    return [shapes.merge(s[:half], s[half:])]


def _diag_part_kernel(x: Any) -> Any:
    shape = tuple(np.shape(x))
    half = len(shape) // 2
    fail_unless(
        len(shape) == 2 * half and half > 0 and shape[:half] == shape[half:],
        lambda: f"the two halves of the shape must be equal, got {shape_text(shape)}",
    )
    n = math.prod(shape[:half])
    return arrays.reshape(_diagonal_of(arrays.reshape(x, (n, n))), shape[:half])


define_op(
    "DiagPart",
    inputs="input: T",
    outputs="diagonal: T",
    attrs=f"T: {_DIAG_TYPES}",
    shape=_diag_part_shape,
    kernel=traceable(_diag_part_kernel, host=_diag_part_kernel),
    gradient=lambda emit, op, dy: [emit("Diag", dy)],
    doc="The elements at which both halves of the index agree.",
)


def _matrix_diag_shape(c: ShapeContext) -> list[Shape]:
    s = c.with_rank_at_least(0, 1)
    return [None if s is None else (*s, s[-1])]


define_op(
    "MatrixDiag",
    inputs="diagonal: T",
    outputs="output: T",
    attrs="T: type",
    shape=_matrix_diag_shape,
    kernel=traceable(_on_diagonal, host=_on_diagonal),
    gradient=lambda emit, op, dy: [emit("MatrixDiagPart", dy)],
    doc="Square matrices with these main diagonals, zero elsewhere.",
)


def _matrix_diag_part_shape(c: ShapeContext) -> list[Shape]:
    s = c.with_rank_at_least(0, 2)
    if s is None:
        return [None]
    rows, columns = s[-2:]
    return [(*s[:-2], None if rows is None or columns is None else min(rows, columns))]


def _matrix_diag_part_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor]:
    s = op.inputs[0]._shape
    if s is not None and s[-1] is not None and s[-1] == s[-2]:
        return [emit("MatrixDiag", dy)]
    return [emit("MatrixSetDiag", zeros_like(emit, op.inputs[0]), dy)]


define_op(
    "MatrixDiagPart",
    inputs="input: T",
    outputs="diagonal: T",
    attrs="T: type",
    shape=_matrix_diag_part_shape,
    kernel=traceable(_diagonal_of, host=_diagonal_of),
    gradient=_matrix_diag_part_gradient,
    doc="The main diagonals of matrices.",
)


def _matrix_set_diag_shape(c: ShapeContext) -> list[Shape]:
    s, d = c.with_rank_at_least(0, 2), c.with_rank_at_least(1, 1)
    if s is None:
        return [None if d is None else (*d[:-1], None, None)]
    if d is None:
        return [s]
    rows, columns = s[-2:]
    k = None if rows is None or columns is None else min(rows, columns)
    merged = shapes.merge((*s[:-2], k), d)
    assert merged is not None
    return [(*merged[:-1], rows, columns)]


def _matrix_set_diag_kernel(x: Any, diagonal: Any) -> Any:
    shape = tuple(np.shape(x))
    wanted = (*shape[:-2], min(shape[-2:]))
    fail_unless(
        tuple(np.shape(diagonal)) == wanted,
        lambda: "must have diagonal.shape == input.shape[:-2] + min(input.shape[-2:]), but received input "
        f"shape: {shape_text(shape)} and diagonal shape: {shape_text(np.shape(diagonal))}",
    )
    return _set_diagonal(x, diagonal)


def _matrix_set_diag_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor]:
    s = shapes.merge(op.inputs[0]._shape, dy._shape)
    shape: Any
    if s is not None and None not in s:
        shape = [*s[:-2], min(s[-2:])]  # type: ignore[type-var]
    else:
        with beside(dy):
            full, rank = emit.shape(dy), emit.rank(dy)
            lead = emit("Sub", rank, 2, name="sub")
            batch = emit("Slice", full, [0], [lead])
            matrix = emit("Slice", full, [lead], [2])
            shape = concat(emit, [batch, [emit("Min", matrix, [0])]], 0)
    zeros = emit("Fill", shape, emit.constant(0, dy._dtype), name="zeros")
    return [emit("MatrixSetDiag", dy, zeros), emit("MatrixDiagPart", dy)]


define_op(
    "MatrixSetDiag",
    inputs="input: T, diagonal: T",
    outputs="output: T",
    attrs="T: type",
    shape=_matrix_set_diag_shape,
    kernel=traceable(_matrix_set_diag_kernel, host=_matrix_set_diag_kernel),
    gradient=_matrix_set_diag_gradient,
    doc="Matrices with other main diagonals.",
)


def _band_kernel(x: Any, num_lower: Any, num_upper: Any) -> Any:
    shape = np.shape(x)
    rows, columns = shape[-2:]
    _require_band(num_lower, rows, "num_lower", "rows")
    _require_band(num_upper, columns, "num_upper", "columns")
    down = np.arange(rows)[:, None] - np.arange(columns)[None, :]
    inside = ((num_lower < 0) | (down <= num_lower)) & ((num_upper < 0) | (-down <= num_upper))
    return arrays.select(inside, x, arrays.zero(x.dtype), shape)


def _require_band(n: Any, limit: int, name: str, what: str) -> None:
    checks.require(
        np.bool_(n <= limit) if is_host(n) else jnp.reshape(n <= limit, ()),
        lambda got: f"{name} must be negative or less or equal to number of {what} ({limit}) got: {got}",
        n,
    )


def _band_may_fail(op: Operation) -> bool:
    shape = op._inputs[0]._shape
    for t, n in zip(op._inputs[1:], shape[-2:] if shape is not None else (None, None), strict=True):
        value = constant_value(t)
        if value is None or (value >= 0 and (n is None or value > n)):
            return True
    return False


define_op(
    "MatrixBandPart",
    inputs="input: T, num_lower: Tindex, num_upper: Tindex",
    outputs="band: T",
    attrs=f"T: type, Tindex: {INDEX} = int64",
    shape=lambda c: [c.with_rank_at_least(0, 2)],
    kernel=traceable(_band_kernel, host=_band_kernel, may_fail=_band_may_fail),
    gradient=lambda emit, op, dy: [
        emit("MatrixBandPart", dy, op.inputs[1], op.inputs[2]),
        None,
        None,
    ],
    doc="Matrices with zeros outside of a band; a negative number keeps the whole triangle.",
)
