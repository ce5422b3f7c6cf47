"""The public shape objects of TensorFlow 1.x: `tf.Dimension` and `tf.TensorShape`.

Indexing or iterating over a TensorShape gives Dimension objects, as in TensorFlow 1.x. Inside thalweg shapes
are plain values (see shape.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, overload

from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

from thalweg.base import shape as shapes
from thalweg.base.shape import Dim, Shape


class Dimension:
    """The size of one dimension, or unknown.

    Arithmetic with an unknown dimension gives an unknown one, a comparison with one gives None. Not hashable.
    """

    __slots__ = ("_dim_value",)

    def __init__(self, value: Any) -> None:
        """Makes a dimension of an integer, None (unknown) or a Dimension.

        Raises:
          TypeError: if it is none of these.
          ValueError: if it is negative.
        """
        self._dim_value: Dim = shapes.as_dim(value)

    @property
    def value(self) -> Dim:
        """The size, or None if it is unknown."""
        return self._dim_value

    def is_compatible_with(self, other: Any) -> bool:
        """Returns whether both may be the same size."""
        return shapes.is_compatible((self._dim_value,), (shapes.as_dim(other),))

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError unless both may be the same size."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """Returns the dimension that both may be, known if one is. Raises ValueError if they differ."""
        self.assert_is_compatible_with(other)
        return Dimension(other if self._dim_value is None else self)

    def __repr__(self) -> str:
        return f"Dimension({self._dim_value})"

    def __str__(self) -> str:
        return "?" if self._dim_value is None else str(self._dim_value)

    def __bool__(self) -> bool:
        return bool(self._dim_value)

    def __int__(self) -> int:
        return self.__index__()

    def __index__(self) -> int:
        if self._dim_value is None:
            raise TypeError("An unknown dimension is no integer: tf.shape() gives the size at run time")
        return self._dim_value

    def _compare(self, other: Any, compare: Callable[[int, int], bool]) -> bool | None:
        value = shapes.as_dim(other)
        return None if self._dim_value is None or value is None else compare(self._dim_value, value)

    # TensorFlow 1.x answers None, not a bool, when it doesn't know.
    def __eq__(self, other: object) -> bool | None:  # type: ignore[override]
        try:
            return self._compare(other, operator.eq)
        except (TypeError, ValueError):
            return NotImplemented

    def __ne__(self, other: object) -> bool | None:  # type: ignore[override]
        try:
            return self._compare(other, operator.ne)
        except (TypeError, ValueError):
            return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equality isn't an equivalence here

    def __lt__(self, other: Any) -> bool | None:
        return self._compare(other, operator.lt)

    def __le__(self, other: Any) -> bool | None:
        return self._compare(other, operator.le)

    def __gt__(self, other: Any) -> bool | None:
        return self._compare(other, operator.gt)

    def __ge__(self, other: Any) -> bool | None:
        return self._compare(other, operator.ge)

    def _combine(self, other: Any, combine: Callable[[int, int], int]) -> Dimension:
        try:
            value = shapes.as_dim(other)
        except (TypeError, ValueError):
            return NotImplemented  # type: ignore[no-any-return]
        if self._dim_value is None or value is None:
            return Dimension(None)
        return Dimension(combine(self._dim_value, value))

    def __add__(self, other: Any) -> Dimension:
        return self._combine(other, operator.add)

    def __radd__(self, other: Any) -> Dimension:
        return self._combine(other, operator.add)

    def __sub__(self, other: Any) -> Dimension:
        return self._combine(other, operator.sub)

    def __rsub__(self, other: Any) -> Dimension:
        return self._combine(other, lambda mine, theirs: theirs - mine)

    def __mul__(self, other: Any) -> Dimension:
        return self._combine(other, operator.mul)

    def __rmul__(self, other: Any) -> Dimension:
        return self._combine(other, operator.mul)

    def __floordiv__(self, other: Any) -> Dimension:
        return self._combine(other, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Dimension:
        return self._combine(other, lambda mine, theirs: theirs // mine)

    def __mod__(self, other: Any) -> Dimension:
        return self._combine(other, operator.mod)

    def __rmod__(self, other: Any) -> Dimension:
        return self._combine(other, lambda mine, theirs: theirs % mine)

    def __truediv__(self, other: Any) -> NoReturn:
        kind = type(other).__name__
        raise TypeError(f"unsupported operand type(s) for /: 'Dimension' and '{kind}', please use // instead")

    def __rtruediv__(self, other: Any) -> NoReturn:
        kind = type(other).__name__
        raise TypeError(f"unsupported operand type(s) for /: '{kind}' and 'Dimension', please use // instead")

    def __reduce__(self) -> tuple[Any, ...]:
        return Dimension, (self._dim_value,)


def as_dimension(value: Any) -> Dimension:
    """Returns `value` itself if it is a Dimension, else `Dimension(value)`."""
    return value if isinstance(value, Dimension) else Dimension(value)


def dimension_value(dimension: Any) -> Any:
    """Returns the plain value of a Dimension, and anything else unchanged (tf.compat.dimension_value)."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """Returns the dimension at `index`; unknown if the rank is (tf.compat.dimension_at_index)."""
    return shape[index]


class TensorShape:
    """The static shape of a tensor: as far as it is known when the graph is built.

    Fully known `TensorShape([16, 256])`, partly known `TensorShape([None, 256])`, of unknown rank
    `TensorShape(None)`. Never changes.
    """

    __slots__ = ("_dims",)
    _dims: Shape

    def __init__(self, dims: Any) -> None:
        """Makes a shape of anything that `shape.as_shape` accepts; raises what that raises."""
        self._dims = shapes.as_shape(dims)

    @classmethod
    def of(cls, dims: Shape) -> TensorShape:
        """Wraps a plain shape value without looking at it."""
        self = object.__new__(cls)
        self._dims = dims
        return self

    def as_tuple(self) -> Shape:
        """Returns the plain shape value."""
        return self._dims

    def as_list(self) -> list[Dim]:
        """Returns the dimensions as integers and None. Raises ValueError if the rank is unknown."""
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def as_proto(self) -> TensorShapeProto:
        """Returns the shape as a TensorShapeProto: -1 is an unknown dimension there."""
        if self._dims is None:
            return TensorShapeProto(unknown_rank=True)
        sizes = [-1 if dim is None else dim for dim in self._dims]
        return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])

    @property
    def dims(self) -> list[Dimension] | None:
        """The dimensions, or None if the rank is unknown."""
        return None if self._dims is None else [Dimension(dim) for dim in self._dims]

    @property
    def rank(self) -> int | None:
        """The number of dimensions, or None if it is unknown."""
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        """The same as `rank`."""
        return self.rank

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        """Whether the rank is known."""
        return self._dims is not None

    def __iter__(self) -> Iterator[Dimension]:
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter([Dimension(dim) for dim in self._dims])

    @overload
    def __getitem__(self, key: slice) -> TensorShape: ...
    @overload
    def __getitem__(self, key: int) -> Dimension: ...
    def __getitem__(self, key: slice | int) -> TensorShape | Dimension:
        """Returns one Dimension, or for a slice the TensorShape of the dimensions in it.

        If the rank is unknown so is the result; a slice with known start and end has at least a rank. A slice
        with a step raises ValueError then.
        """
        if self._dims is not None:
            if isinstance(key, slice):
                return TensorShape.of(self._dims[key])
            return Dimension(self._dims[key])
        if not isinstance(key, slice):
            return Dimension(None)
        if key.step is not None:
            raise ValueError("Steps are not yet handled")
        start = 0 if key.start is None else key.start
        if key.stop is None or start < 0 or key.stop < 0:
            return TensorShape.of(None)
        return unknown_shape(max(key.stop - start, 0))

    def num_elements(self) -> int | None:
        """Returns how many elements a tensor of this shape has, or None if that isn't known."""
        return shapes.num_elements(self._dims)

    def is_fully_defined(self) -> bool:
        """Returns whether the rank and every dimension are known."""
        return shapes.is_fully_defined(self._dims)

    def is_compatible_with(self, other: Any) -> bool:
        """Returns whether some fully known shape fits both."""
        return shapes.is_compatible(self._dims, shapes.as_shape(other))

    def merge_with(self, other: Any) -> TensorShape:
        """Returns the shape that knows all that both know. ValueError if they contradict each other."""
        theirs = TensorShape(other)
        try:
            return TensorShape.of(shapes.merge(self._dims, theirs._dims))
        except ValueError:
            raise ValueError(f"Shapes {self} and {theirs} are not compatible") from None

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """Returns the most precise shape that covers both: dimensions in which they differ become unknown."""
        mine, theirs = self._dims, shapes.as_shape(other)
        if mine is None or theirs is None or len(mine) != len(theirs):
            return TensorShape.of(None)
        return TensorShape.of(tuple([x if x == y else None for x, y in zip(mine, theirs, strict=True)]))

    def concatenate(self, other: Any) -> TensorShape:
        """Returns this shape followed by `other`; of unknown rank if one of them is."""
        theirs = shapes.as_shape(other)
        if self._dims is None or theirs is None:
            return TensorShape.of(None)
        return TensorShape.of(self._dims + theirs)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def with_rank(self, rank: int) -> TensorShape:
        """Returns this shape, or one of that rank if the rank is unknown. ValueError if it has another."""
        self.assert_has_rank(rank)
        return unknown_shape(rank) if self._dims is None else self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """Returns this shape. Raises ValueError if its rank is known to be less."""
        if self._dims is not None and len(self._dims) < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """Returns this shape. Raises ValueError if its rank is known to be greater."""
        if self._dims is not None and len(self._dims) > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError if the rank is known to be another."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        """Raises ValueError if the ranks are known to differ."""
        theirs = TensorShape(other)
        if self.rank is not None and theirs.rank is not None and self.rank != theirs.rank:
            raise ValueError(f"Shapes {self} and {theirs} must have the same rank")

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError if no fully known shape fits both."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are incompatible")

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError if the rank or a dimension is unknown."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def __eq__(self, other: object) -> bool:
        """Whether both know the same: unknown equals unknown. `other` is what the constructor takes."""
        try:
            return self._dims == shapes.as_shape(other)
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({self.dims})"

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        text = ", ".join("?" if dim is None else str(dim) for dim in self._dims)
        return f"({text},)" if len(self._dims) == 1 else f"({text})"

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (self._dims,)


def as_shape(shape: Any) -> TensorShape:
    """Returns `shape` itself if it is a TensorShape, else `TensorShape(shape)`."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(rank: int | None = None) -> TensorShape:
    """Returns a shape of which at most the rank is known."""
    return TensorShape.of(None if rank is None else (None,) * rank)
