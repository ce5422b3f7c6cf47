"""Products of matrices and of tensors along axes."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import scope
from thalweg.library.fill_ops import matrix_diag_part
from thalweg.library.math_ops import conj
from thalweg.library.reduction_ops import reduce_prod, reduce_sum
from thalweg.library.sequence_ops import range


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of matrices, or of batches of matrices (the axes before the last two broadcast).

    Each is first transposed, or transposed and conjugated, where asked. a_is_sparse, b_is_sparse: hints that
    many elements are zero; they make no difference. Errors: ValueError where the inner dimensions differ
    or both
    transpose and adjoint of one are asked for.
    """
    if transpose_a and adjoint_a:
        raise ValueError("Only one of transpose_a and adjoint_a can be True.")
    if transpose_b and adjoint_b:
        raise ValueError("Only one of transpose_b and adjoint_b can be True.")
    with scope(name, "MatMul") as named:
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, name="b", preferred_dtype=a.dtype.base_dtype)
        if any(t._shape is None or len(t._shape) > 2 for t in (a, b)):
            # the batch op knows only the adjoint
            if transpose_a:
                a, adjoint_a = conj(a), True
            if transpose_b:
                b, adjoint_b = conj(b), True
            return emit("BatchMatMulV2", a, b, adj_x=adjoint_a, adj_y=adjoint_b, name=named)
        if adjoint_a:
            a, transpose_a = conj(a), True
        if adjoint_b:
            b, transpose_b = conj(b), True
        return emit("MatMul", a, b, transpose_a=transpose_a, transpose_b=transpose_b, name=named)


def sparse_matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of two matrices of which many elements may be zero."""
    return matmul(a, b, transpose_a, transpose_b, name=name or "SparseMatMul")


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of matrices and vectors (the last axis of b)."""
    with scope(name, "MatVec"):
        column = emit("ExpandDims", b, -1)
        product = matmul(a, column, transpose_a=transpose_a, adjoint_a=adjoint_a)
        return emit("Squeeze", product, squeeze_dims=[-1])


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the diagonal of each matrix."""
    with scope(name, "Trace") as named:
        return reduce_sum(matrix_diag_part(convert_to_tensor(x, name="x")), [-1], name=named)


# ---- tensordot -----------------------------------------------------------------------------------------


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sum of products over pairs of axes; the axes that are left follow each other, a's first.

    axes: n, for the last n axes of a and the first n of b; or (axes of a, axes of b).
    """
    with scope(name, "Tensordot") as named:
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, name="b")
        a_axes, b_axes = _contracted_axes(a, axes)
        a_matrix, a_free, a_static = _as_matrix(a, a_axes, contracted_first=False)
        b_matrix, b_free, b_static = _as_matrix(b, b_axes, contracted_first=True)
        product = matmul(a_matrix, b_matrix)
        if isinstance(a_free, list) and isinstance(b_free, list):
            if product._shape == (*a_free, *b_free):
                return product
            return emit("Reshape", product, np.array(a_free + b_free, np.int32), name=named)
        free = [convert_to_tensor(f, dtypes.int32) for f in (a_free, b_free)]
        result = emit("Reshape", product, emit("ConcatV2", free, 0, name="concat"), name=named)
        if a_static is not None and b_static is not None:
            result.set_shape((*a_static, *b_static))
        return result


def _contracted_axes(a: Tensor, axes: Any) -> tuple[Any, Any]:
    if isinstance(axes, int | np.integer):
        if axes < 0:
            raise ValueError("'axes' must be at least 0.")
        if a._shape is None:
            rank = emit.rank(a)
            return range(rank - axes, rank, dtype=dtypes.int32), range(axes, dtype=dtypes.int32)
        n = len(a._shape)
        if axes > n:
            raise ValueError(f"'axes' must not be larger than the number of dimensions of tensor {a}.")
        return list(builtins.range(n - axes, n)), list(builtins.range(axes))
    if isinstance(axes, list | tuple):
        if len(axes) != 2:
            raise ValueError("'axes' must be an integer or have length 2.")
        a_axes, b_axes = axes
        if isinstance(a_axes, int | np.integer) and isinstance(b_axes, int | np.integer):
            a_axes, b_axes = [a_axes], [b_axes]
        if not isinstance(a_axes, Tensor) and not isinstance(b_axes, Tensor) and len(a_axes) != len(b_axes):
            raise ValueError(
                f"Different number of contraction axes 'a' and 'b', {len(a_axes)} != {len(b_axes)}."
            )
        return a_axes, b_axes
    axes = convert_to_tensor(axes, dtypes.int32, name="axes")
    return axes[0], axes[1]


def _as_matrix(a: Tensor, axes: Any, contracted_first: bool) -> tuple[Tensor, Any, Any]:
    """a as a matrix of (free, contracted) axes: (matrix, free dimensions, what is known of them)."""
    shape = a._shape
    listed = isinstance(axes, list | tuple)
    free: Any
    if listed and shape is not None:
        axes = [int(i) + len(shape) if i < 0 else int(i) for i in axes]
        free = [i for i in builtins.range(len(shape)) if i not in axes]
        free_static: Any = [shape[i] for i in free]
        if shapes.is_fully_defined(shape):
            perm = [*axes, *free] if contracted_first else [*free, *axes]
            rows = int(np.prod(free_static))
            inner = int(np.prod([shape[i] for i in axes]))
            matrix = a if perm == list(builtins.range(len(shape))) else _transpose(a, perm)
            wanted = (inner, rows) if contracted_first else (rows, inner)
            return (
                (matrix if matrix._shape == wanted else emit("Reshape", matrix, wanted)),
                free_static,
                free_static,
            )
        axes = convert_to_tensor(axes, dtypes.int32, name="axes")
        free = convert_to_tensor(free, dtypes.int32, name="free")
        dims = emit("Shape", a)
    else:
        free_static = None
        dims, rank = emit.shape(a), emit.rank(a)
        axes = convert_to_tensor(axes, dtypes.int32, name="axes")
        axes = emit("Select", axes >= 0, axes, axes + rank)
        free, _ = emit("ListDiff", range(rank), axes, out_idx=dtypes.int32)
    free_dims, inner_dims = emit("GatherV2", dims, free, 0), emit("GatherV2", dims, axes, 0)
    rows_t, inner_t = reduce_prod(free_dims), reduce_prod(inner_dims)
    parts = (axes, free) if contracted_first else (free, axes)
    sizes = (inner_t, rows_t) if contracted_first else (rows_t, inner_t)
    order = emit("ConcatV2", parts, 0, name="concat")
    wanted_t = convert_to_tensor(list(sizes), name="stack")
    return emit("Reshape", _transpose(a, order), wanted_t), free_dims, free_static


def _transpose(a: Tensor, perm: Any) -> Tensor:
    return emit("Transpose", a, perm, name="transpose")
