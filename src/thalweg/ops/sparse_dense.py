"""Sparse tensors and dense ones: SparseToDense, SparseTensorDenseMatMul.

Source: TensorFlow's sparse_to_dense_op.cc, sparse_tensor_dense_matmul_op.cc, sparse_grad.py.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.base.shape import Dim, Shape
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext, constant_value
from thalweg.kernel import checks
from thalweg.kernel.convention import traceable
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, ints, is_host, shape_text
from thalweg.ops._emitting import column
from thalweg.ops._points import scatter
from thalweg.ops._types import INDEX


def _sparse_to_dense_shape(c: ShapeContext) -> list[Shape]:
    return [c.value_as_shape(1)]


def _require_ordered(indices: Any, shape: list[int], strict: bool) -> None:
    """InvalidArgumentError for the first row that is out of bounds, or not behind the row before it."""
    n = np.shape(indices)[0]
    if not n:
        return
    limits = np.array(shape, indices.dtype)
    outside = ((indices < 0) | (indices >= limits)).any(axis=1)
    strides = np.cumprod([1, *shape[:0:-1]])[::-1].astype(np.int64)
    flat = (indices.astype(np.int64) * strides).sum(axis=1)
    late = flat[1:] <= flat[:-1] if strict else flat[1:] != flat[1:]
    xp: Any = np if is_host(indices) else jnp
    bad = outside | xp.concatenate([xp.zeros((1,), bool), late])
    at = xp.argmax(bad)

    def message(i: np.ndarray, row: np.ndarray, out: np.ndarray, equal: np.ndarray) -> str:
        place = f"indices[{i}] = [{','.join(str(v) for v in row)}]"
        if out:
            return f"{place} is out of bounds: need 0 <= index < {shape_text(shape)}"
        return f"{place} is {'repeated' if equal else 'out of order'}"

    same = flat[at] == flat[xp.maximum(at - 1, 0)]
    checks.require(xp.logical_not(bad.any()), message, xp.asarray(at), indices[at], outside[at], same)


def _sparse_to_dense_kernel(
    indices: Any, output_shape: Any, values: Any, default: Any, *, validate_indices: bool
) -> Any:
    target = ints(output_shape)
    rows = arrays.reshape(indices, _as_rows(np.shape(indices)))
    n, depth = np.shape(rows)
    fail_unless(
        depth == len(target),
        lambda: f"output_shape has incorrect number of elements: {len(target)} should be: {depth}",
    )
    fail_unless(
        np.shape(values) in ((), (n,)),
        lambda: f"sparse_values has incorrect shape {shape_text(np.shape(values))}, should be [] or [{n}]",
    )
    _require_ordered(rows, target, validate_indices)
    spread = arrays.broadcast_to(values, (n,))
    return scatter(arrays.broadcast_to(default, target), rows, spread, add=False)


def _as_rows(shape: tuple[int, ...]) -> tuple[int, int]:
    """indices may be a scalar or a vector where the result is a vector."""
    if len(shape) == 2:
        return shape[0], shape[1]
    return (shape[0] if shape else 1), 1


def _sparse_to_dense_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    indices = op.inputs[0]
    picked = emit("GatherNd", dy, indices)
    default = emit("Sub", _total(emit, dy), _total(emit, picked), name="sub")
    return [None, None, picked, default]


def _total(emit: Emitter, x: Tensor) -> Tensor:
    if x._shape is None:
        axes = emit("Range", 0, emit.rank(x), 1, name="range")
    else:
        axes = emit.constant(np.arange(len(x._shape), dtype=np.int32))
    result: Tensor = emit("Sum", x, axes)
    return result


define_op(
    "SparseToDense",
    inputs="sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T",
    outputs="dense: T",
    attrs=f"validate_indices: bool = True, T: type, Tindices: {INDEX}",
    shape=_sparse_to_dense_shape,
    kernel=traceable(
        _sparse_to_dense_kernel, host=_sparse_to_dense_kernel, static=("output_shape",), may_fail=True
    ),
    gradient=_sparse_to_dense_gradient,
    doc="default_value everywhere but at sparse_indices, where sparse_values are.",
)


def _sparse_matmul_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 2)
    c.with_rank(1, 1)
    a, b = c.value_as_shape(2), c.with_rank(3, 2)
    assert b is not None
    rows: Dim = None
    columns = b[0] if c.attr("adjoint_b") else b[1]
    if a is not None:
        if len(a) != 2:
            raise ValueError(f"a_shape must have 2 elements, got {len(a)}")
        rows, inner = reversed(a) if c.attr("adjoint_a") else a
        inner_b = b[1] if c.attr("adjoint_b") else b[0]
        if inner is not None and inner_b is not None and inner != inner_b:
            raise ValueError(f"Dimensions must be equal, but are {inner} and {inner_b}: the inner dimensions")
    return [(rows, columns)]


def _adjoint(x: Any) -> Any:
    x = arrays.transpose(x, (1, 0))
    if x.dtype.kind != "c":
        return x
    return np.conj(x) if is_host(x) else lax.conj(x)


def _sparse_matmul_kernel(
    indices: Any, values: Any, a_shape: Any, b: Any, *, adjoint_a: bool, adjoint_b: bool
) -> Any:
    shape = ints(a_shape)
    fail_unless(len(shape) == 2, lambda: f"Tensor 'a_shape' must have 2 elements, got {len(shape)}")
    if adjoint_a:
        shape = shape[::-1]
        indices = arrays.reverse(indices, [1])
        if values.dtype.kind == "c":
            values = np.conj(values) if is_host(values) else lax.conj(values)
    if adjoint_b:
        b = _adjoint(b)
    rows, inner = shape
    fail_unless(
        np.shape(b)[0] == inner,
        lambda: "Cannot multiply A and B because inner dimension does not match: "
        f"{inner} vs. {np.shape(b)[0]}",
    )
    _require_cells(indices, rows, inner)
    columns = np.shape(b)[1]
    if is_host(indices, values, b):
        result = np.zeros((rows, columns), b.dtype)
        np.add.at(result, indices[:, 0], values[:, None] * b[indices[:, 1]])
        return result
    if 0 in (rows, inner, columns):
        return jnp.zeros((rows, columns), b.dtype)
    terms = jnp.asarray(values)[:, None] * jnp.take(b, indices[:, 1], axis=0, mode="clip")
    return jnp.zeros((rows, columns), b.dtype).at[indices[:, 0]].add(terms, mode="drop")


def _require_cells(indices: Any, rows: int, inner: int) -> None:
    if not np.shape(indices)[0]:
        return
    bad = (indices < 0) | (indices >= np.array([rows, inner], indices.dtype))

    def message(cells: np.ndarray) -> str:
        wrong = (cells < 0) | (cells >= np.array([rows, inner]))
        i, j = (int(v) for v in np.argwhere(wrong)[0])
        name, limit = (("m", rows), ("k", inner))[j]
        return f"{name} ({cells[i, j]}) from index[{i},{j}] out of bounds (>={limit})"

    ok = np.bool_(not bad.any()) if is_host(indices) else jnp.logical_not(jnp.any(bad))
    checks.require(ok, message, indices)


def _cells_may_fail(op: Operation) -> bool:
    cells, shape = constant_value(op._inputs[0]), constant_value(op._inputs[2])
    return cells is None or shape is None or bool(((cells < 0) | (cells >= shape)).any())


def _sparse_matmul_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    """b gets the adjoint product; each value of a the product of its row of dy and its row of b."""
    indices, values, shape, b = op.inputs
    adjoint_a, adjoint_b = op._attrs["adjoint_a"], op._attrs["adjoint_b"]
    b_grad = emit("SparseTensorDenseMatMul", indices, values, shape, dy, adjoint_a=not adjoint_a)
    if adjoint_b:
        kind = "ConjugateTranspose" if b._dtype.is_complex else "Transpose"
        with get_default_graph().name_scope("matrix_transpose"):
            b_grad = emit(kind, b_grad, [1, 0], name="transpose")
    rows, columns = column(emit, indices, 0), column(emit, indices, 1)
    if adjoint_a:
        rows, columns = columns, rows
    parts_a = emit("GatherV2", dy, rows, 0)
    across = emit("Transpose", b, [1, 0], name="transpose") if adjoint_b else b
    parts_b = emit("GatherV2", across, columns, 0)
    both = adjoint_a == adjoint_b
    left = emit("ExpandDims", parts_a, -1 if adjoint_a else -2)
    right = emit("ExpandDims", parts_b, -2 if both else -1)
    product = emit("BatchMatMulV2", left, right, adj_x=adjoint_a, adj_y=both, name="MatMul")
    return [None, emit("Squeeze", product, squeeze_dims=[-2, -1]), None, b_grad]


define_op(
    "SparseTensorDenseMatMul",
    inputs="a_indices: Tindices, a_values: T, a_shape: int64, b: T",
    outputs="product: T",
    attrs=f"T: type, Tindices: {INDEX} = int64, adjoint_a: bool = False, adjoint_b: bool = False",
    shape=_sparse_matmul_shape,
    kernel=traceable(
        _sparse_matmul_kernel, host=_sparse_matmul_kernel, static=("a_shape",), may_fail=_cells_may_fail
    ),
    gradient=_sparse_matmul_gradient,
    doc="The product of a sparse matrix and a dense one, each transposed and conjugated first where asked.",
)
