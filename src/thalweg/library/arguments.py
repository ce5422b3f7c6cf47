"""What the functions of the library share about their arguments: name scopes, renamed arguments, values."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from thalweg.base.dtypes import DType
from thalweg.graph.composite import IndexedSlices, SparseTensor
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.graph.operation import Tensor


def scope(name: str | None, default: str) -> AbstractContextManager[str]:
    """The name scope of a function of several nodes: `name`, or its default; yields the scope with its
    "/"."""
    return get_default_graph().name_scope(default if name is None else name)


def renamed(new_name: str, new: Any, old_name: str, old: Any) -> Any:
    """The value of an argument that TensorFlow 1.x renamed. ValueError where both spellings are given."""
    if old is None:
        return new
    if new is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'.")
    return old


def map_values(function: Callable[[Any], Tensor], x: Any) -> Any:
    """function(x); of a SparseTensor or IndexedSlices, the same cells or rows with function of their
    values."""
    if isinstance(x, SparseTensor):
        return SparseTensor(x.indices, function(x.values), x.dense_shape)
    if isinstance(x, IndexedSlices):
        return IndexedSlices(function(x.values), x.indices, x.dense_shape)
    return function(x)


def convert_pair(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """x and y as tensors named "x" and "y"; y takes x's element type where it can."""
    x = convert_to_tensor(x, name="x")
    return x, convert_to_tensor(y, name="y", preferred_dtype=x.dtype.base_dtype)


def require_same_dtype(x: Tensor, y: Tensor) -> DType:
    """The element type of both. TypeError where they differ."""
    a, b = x.dtype.base_dtype, y.dtype.base_dtype
    if a != b:
        raise TypeError(f"x and y must have the same dtype, got {a!r} != {b!r}")
    return a
