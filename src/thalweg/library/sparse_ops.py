"""Sparse tensors: placeholders, and between sparse and dense."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.graph.composite import SparseTensor, SparseTensorValue
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import renamed, scope
from thalweg.library.framework import placeholder, placeholder_with_default


def _sparse(x: Any) -> SparseTensor:
    if isinstance(x, SparseTensorValue | SparseTensor):
        return SparseTensor.from_value(x)
    raise TypeError(f"Input must be a SparseTensor, got {x!r}")


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A SparseTensor whose value must be fed (a SparseTensorValue, or a triple). shape: where it is known."""

    def part(suffix: str) -> str | None:
        return None if name is None else f"{name}/{suffix}"

    rank: int | None = None
    if shape is None:
        dense_shape = placeholder(dtypes.int64, [None], name=part("shape"))
    else:
        if not isinstance(shape, Tensor):
            sizes = [-1 if d is None else int(d) for d in shape]
            rank = len(sizes)
            shape = convert_to_tensor(np.array(sizes, np.int64), name=part("shape_default"))
        elif shape._shape:
            rank = shape._shape[0]
        dense_shape = placeholder_with_default(shape, shape._shape, name=part("shape"))
    values = placeholder(dtype, [None], name=part("values"))
    indices = placeholder(dtypes.int64, [None, rank], name=part("indices"))
    return SparseTensor(indices, values, dense_shape)


def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A tensor of output_shape with default_value everywhere but at the indices.

    Error when run: InvalidArgumentError for indices outside, out of order or repeated (unless not validated).
    """
    return emit(
        "SparseToDense",
        sparse_indices,
        output_shape,
        sparse_values,
        default_value,
        validate_indices=validate_indices,
        name=name,
    )


def sparse_tensor_to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """A SparseTensor as a tensor, with default_value (0, "", false) in its empty cells."""
    x = _sparse(sp_input)
    if default_value is None:
        kind = x.dtype.base_dtype
        default_value = b"" if kind == dtypes.string else False if kind == dtypes.bool else 0
    return sparse_to_dense(x.indices, x.dense_shape, x.values, default_value, validate_indices, name)


to_dense = sparse_tensor_to_dense


def sparse_tensor_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The product of a sparse and a dense matrix, each transposed and conjugated where asked."""
    x = _sparse(sp_a)
    with scope(name, "SparseTensorDenseMatMul") as named:
        b = convert_to_tensor(b, name="b")
        return emit(
            "SparseTensorDenseMatMul",
            x.indices,
            x.values,
            x.dense_shape,
            b,
            adjoint_a=adjoint_a,
            adjoint_b=adjoint_b,
            name=named,
        )


sparse_dense_matmul = sparse_tensor_dense_matmul


def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The same cells in the order of their indices."""
    x = _sparse(sp_input)
    indices, values = emit("SparseReorder", x.indices, x.values, x.dense_shape, name=name)
    return SparseTensor(indices, values, x.dense_shape)


def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The same cells in another shape; one -1 in it stands for what is left."""
    x = _sparse(sp_input)
    with scope(name, "SparseReshape") as named:
        shape = convert_to_tensor(shape, dtypes.int64)
        indices, dense_shape = emit("SparseReshape", x.indices, x.dense_shape, shape, name=named)
        return SparseTensor(indices, x.values, dense_shape)


def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """The cells where to_retain (a boolean for each) is true."""
    x = _sparse(sp_input)
    keep = convert_to_tensor(to_retain)
    where = emit("Reshape", emit("Where", keep), [-1])
    indices, values = emit("GatherV2", x.indices, where, 0), emit("GatherV2", x.values, where, 0)
    return SparseTensor(indices, values, emit("Identity", x.dense_shape))


def sparse_concat(axis: Any, sp_inputs: Any, name: str | None = None, concat_dim: Any = None) -> SparseTensor:
    """Sparse tensors one after the other along `axis`."""
    axis = renamed("axis", axis, "concat_dim", concat_dim)
    parts = [_sparse(x) for x in sp_inputs]
    if len(parts) == 1:
        return parts[0]
    indices, values, dense_shape = emit(
        "SparseConcat",
        [x.indices for x in parts],
        [x.values for x in parts],
        [x.dense_shape for x in parts],
        concat_dim=axis,
        name=name,
    )
    return SparseTensor(indices, values, dense_shape)


def sparse_slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The cells of the part that begins at `start` and has this size, moved to the origin."""
    x = _sparse(sp_input)
    with scope(name, "SparseSlice") as named:
        start, size = convert_to_tensor(start, dtypes.int64), convert_to_tensor(size, dtypes.int64)
        indices, values, dense_shape = emit(
            "SparseSlice", x.indices, x.values, x.dense_shape, start, size, name=named
        )
        return SparseTensor(indices, values, dense_shape)


def sparse_fill_empty_rows(
    sp_input: Any, default_value: Any, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """(the tensor with a cell [row, 0] = default_value in every empty row, which rows were empty)."""
    x = _sparse(sp_input)
    with scope(name, "SparseFillEmptyRows"):
        value = convert_to_tensor(default_value, x.dtype.base_dtype)
        indices, values, empty, _ = emit("SparseFillEmptyRows", x.indices, x.values, x.dense_shape, value)
        return SparseTensor(indices, values, x.dense_shape), empty
