"""The lists of types, shapes and names that queues, barriers and staging areas are made with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.base.tensor_shape import TensorShape, as_shape, unknown_shape


def as_type_list(types: Any) -> list[DType]:
    """One type or several as a list."""
    return [dtypes.as_dtype(t) for t in (types if isinstance(types, list | tuple) else [types])]


def as_shape_list(shapes: Any, *, partial: bool = False) -> list[TensorShape] | None:
    """One shape or several as a list of shapes of known rank, all dimensions known unless `partial`."""
    if partial and (
        not isinstance(shapes, Sequence) or not shapes or any(s is None or isinstance(s, int) for s in shapes)
    ):
        raise ValueError("When providing partial shapes, a list of shapes must be provided.")
    if shapes is None:
        return None
    if isinstance(shapes, TensorShape):
        shapes = [shapes]
    if not isinstance(shapes, tuple | list):
        raise TypeError(
            f"Shapes must be a TensorShape or a list or tuple of TensorShapes, got {type(shapes)} instead."
        )
    if all(s is None or isinstance(s, int) for s in shapes):
        shapes = [shapes]
    result = [as_shape(s) for s in shapes]
    if not partial and not all(s.is_fully_defined() for s in result):
        raise ValueError(f"All shapes must be fully defined: {result}")
    if any(s.ndims is None for s in result):
        raise ValueError(f"All shapes must have a defined rank: {result}")
    return result


def as_name_list(names: Any, types: Sequence[DType]) -> list[str] | None:
    """One name or several as a list, one per type."""
    if names is None:
        return None
    result = list(names) if isinstance(names, list | tuple) else [names]
    if len(result) != len(types):
        raise ValueError(
            "List of names must have the same length as the list of dtypes, received "
            f"len(names)={len(result)},len(dtypes)={len(types)}"
        )
    return result


def shapes_or_unknown(shapes: Any, types: Sequence[DType], what: str) -> list[TensorShape]:
    """One shape per type: unknown ones where none are given."""
    if shapes is None:
        return [unknown_shape() for _ in types]
    if len(shapes) != len(types):
        raise ValueError(
            f"{what} shapes must have the same length as dtypes, received len(shapes)={len(shapes)}, "
            f"len(dtypes)={len(types)}"
        )
    return [TensorShape(s) for s in shapes]
