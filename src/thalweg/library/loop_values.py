"""What goes round a loop or comes out of a branch: nests of tensors, TensorArrays, sparse values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base import nest
from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.composite import IndexedSlices, SparseTensor
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.operation import Tensor
from thalweg.graph.shape_context import constant_value_as_shape
from thalweg.library.tensor_array import TensorArray


def flatten(structure: Any) -> list[Any]:
    """The atoms, with sparse values as their tensors."""
    return nest.flatten(structure, expand_composites=True)


def pack(structure: Any, atoms: Sequence[Any]) -> Any:
    """Undoes `flatten`."""
    return nest.pack_sequence_as(structure, atoms, expand_composites=True)


def check_same_structure(first: Any, second: Any) -> None:
    """ValueError or TypeError where two nests differ."""
    nest.assert_same_structure(first, second, expand_composites=True)


def convert(value: Any) -> Any:
    """A value as a tensor, TensorArray or sparse value."""
    if isinstance(value, TensorArray | IndexedSlices | SparseTensor):
        return value
    return convert_to_tensor(value)


def to_flow(value: Any) -> Any:
    """The flow of a TensorArray, which stands for it in the loop; others as they are."""
    return value.flow if isinstance(value, TensorArray) else value


def from_flow(original: Any, value: Tensor) -> Any:
    """The TensorArray that `value` is a flow of, where `original` is one."""
    return original.with_flow(value) if isinstance(original, TensorArray) else value


def from_flows(originals: Sequence[Any], values: Sequence[Tensor]) -> list[Any]:
    """`from_flow` of each."""
    return [from_flow(o, v) for o, v in zip(originals, values, strict=True)]


def shapes_of(value: Any) -> list[Shape]:
    """The static shape of each tensor of a loop variable, as far as a loop may rely on it.

    How many cells a SparseTensor has may change.
    """
    if isinstance(value, SparseTensor):
        rank = None if (s := constant_value_as_shape(value.dense_shape)) is None else len(s)
        return _sparse_shapes(rank)
    if isinstance(value, IndexedSlices):
        n, rows = value.indices._shape, value.values._shape
        first = shapes.merge(n, None if rows is None else rows[:1])
        return _rows_shapes(first, None if rows is None else rows[1:], value)
    tensor: Tensor = to_flow(value)
    return [tensor._shape]


def invariant_shapes(value: Any, invariant: Any) -> list[Shape]:
    """`shapes_of` a loop variable for which the program gives an invariant."""
    if invariant is None:
        return shapes_of(value)
    if not isinstance(invariant, TensorShape):
        raise TypeError(f"'shape' must be one of TypeSpec, TensorShape or None. Received: {type(invariant)}")
    shape = shapes.as_shape(invariant)
    if isinstance(value, SparseTensor):
        return _sparse_shapes(None if shape is None else len(shape))
    if isinstance(value, IndexedSlices):
        if shape is None:
            return _rows_shapes(None, None, value)
        return _rows_shapes(shape[:1], shape[1:], value)
    return [shape]


def _sparse_shapes(rank: int | None) -> list[Shape]:
    return [(None, rank), (None,), (rank,)]


def _rows_shapes(first: Shape, row: Shape, value: IndexedSlices) -> list[Shape]:
    count = (None,) if first is None else first
    result: list[Shape] = [None if row is None else (*count, *row), count]
    if value.dense_shape is not None:
        result.append((None if row is None else 1 + len(row),))
    return result


def tensor(value: Any) -> Tensor:
    """The tensor that goes round for an atom of a loop variable."""
    return convert_to_tensor(to_flow(value))


def known(values: Any) -> list[Any]:
    """What among nested values may tell the graph."""
    return [v for v in nest.flatten(values) if v is not None]
