"""Values of several tensors: IndexedSlices (sparse gradients of gathers) and SparseTensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.convert import convert_to_tensor, get_default_graph, register_tensor_conversion_function
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.shape_context import constant_value_as_shape


def vector_slice(x: Tensor, begin: int, end: int, **masks: int) -> Tensor:
    """x[begin:end] of a vector, by the nodes that Python's slices make; masks: StridedSlice's."""
    with get_default_graph().name_scope("strided_slice") as scope:
        ends = [emit.constant([at], name="stack") for at in (begin, end, 1)]
        result: Tensor = emit("StridedSlice", x, *ends, name=scope, **masks)
        return result


class IndexedSlices:
    """Some rows of a larger tensor: values[i] belongs at row indices[i]; rows may repeat (they add up).

    values: [n, d1, ...]; indices: [n], integer; dense_shape: [rank] or None.
    """

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self) -> Tensor:
        """The rows."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """Where each row belongs."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """The shape of the dense tensor, where known."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The static shape of the dense tensor."""
        if self._dense_shape is None:
            return TensorShape(None)
        return TensorShape.of(constant_value_as_shape(self._dense_shape))

    @property
    def name(self) -> str:
        """The name of the values tensor."""
        return self._values.name

    @property
    def device(self) -> str:
        """The device of the values tensor."""
        return self._values.device

    @property
    def op(self) -> Operation:
        """The operation that makes the values."""
        return self._values.op

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._values.dtype

    @property
    def graph(self) -> Any:
        """The graph of the values tensor."""
        return self._values.graph

    def __str__(self) -> str:
        dense = f", dense_shape={self._dense_shape}" if self._dense_shape is not None else ""
        return f"IndexedSlices(indices={self._indices}, values={self._values}{dense})"

    __repr__ = __str__

    def _nest_components(self) -> tuple[Tensor, ...]:
        dense = () if self._dense_shape is None else (self._dense_shape,)
        return (self._values, self._indices, *dense)

    def _nest_rebuild(self, components: Sequence[Any]) -> IndexedSlices:
        return IndexedSlices(*components)

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self._values, self._indices, self._dense_shape)


class SparseTensor:
    """A tensor by its non-empty cells: indices [n, rank] int64, values [n], dense_shape [rank] int64."""

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        with get_default_graph().name_scope("SparseTensor"):
            self._indices = convert_to_tensor(indices, dtypes.int64, "indices")
            self._values = convert_to_tensor(values, name="values")
            self._dense_shape = convert_to_tensor(dense_shape, dtypes.int64, "dense_shape")
        i, v = self._indices._shape, self._values._shape
        if i is not None and len(i) != 2:
            raise ValueError(f"SparseTensor indices must be rank 2, got {shapes.format_shape(i)}")
        if v is not None and len(v) != 1:
            raise ValueError(f"SparseTensor values must be rank 1, got {shapes.format_shape(v)}")

    @property
    def indices(self) -> Tensor:
        """[n, rank], int64."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """[n]."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """[rank], int64."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return TensorShape.of(constant_value_as_shape(self._dense_shape))

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return self.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._values.dtype

    @property
    def op(self) -> Operation:
        """The operation that makes the values."""
        return self._values.op

    @property
    def graph(self) -> Any:
        """The graph of the tensors."""
        return self._values.graph

    @property
    def name(self) -> str:
        """The name of the values tensor."""
        return self._values.name

    def eval(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> Any:
        """The value as a SparseTensorValue."""
        indices, values, dense_shape = (
            t.eval(feed_dict, session) for t in (self._indices, self._values, self._dense_shape)
        )
        return SparseTensorValue(indices, values, dense_shape)

    def _nest_components(self) -> tuple[Tensor, ...]:
        return (self._indices, self._values, self._dense_shape)

    def _nest_rebuild(self, components: Sequence[Any]) -> SparseTensor:
        return SparseTensor(*components)

    @classmethod
    def from_value(cls, value: Any) -> SparseTensor:
        """A SparseTensor of constants."""
        if isinstance(value, SparseTensor):
            return value
        return cls(value.indices, value.values, value.dense_shape)

    def __str__(self) -> str:
        return (
            f"SparseTensor(indices={self._indices}, values={self._values}, dense_shape={self._dense_shape})"
        )

    __repr__ = __str__


class SparseTensorValue(NamedTuple):
    """What fetching a SparseTensor gives, and what is fed for one: its parts as NumPy arrays."""

    indices: Any
    values: Any
    dense_shape: Any


def _dense(value: IndexedSlices, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Tensor:
    """IndexedSlices as a dense tensor: rows that repeat add up."""
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            f"Tensor conversion requested dtype {dtype.name} for IndexedSlices with dtype {value.dtype.name}"
        )
    if value.dense_shape is None:
        raise ValueError(f"Tensor conversion requested for IndexedSlices without dense_shape: {value}")
    rows = vector_slice(value.dense_shape, 0, 1, shrink_axis_mask=1)
    result: Tensor = emit("UnsortedSegmentSum", value.values, value.indices, rows, name=name)
    return result


register_tensor_conversion_function(IndexedSlices, _dense)
