"""Static shapes as plain values, and the pure functions on them.

A shape is a tuple with None for each dimension that isn't known, or None when not even the rank is known. The
public `tf.TensorShape` wraps one of these values; everything inside thalweg passes the value itself.
"""

from __future__ import annotations

import math
import operator
from typing import Any

Dim = int | None
Shape = tuple[Dim, ...] | None


def as_dim(value: Any) -> Dim:
    """Returns the dimension that `value` means: None, an integer (it has `__index__`) or a tf.Dimension.

    Raises:
      TypeError: if it is none of these.
      ValueError: if it is negative.
    """
    if value is None:
        return None
    if type(value) is not int:
        if hasattr(value, "_dim_value"):  # a tf.Dimension
            dim: Dim = value._dim_value
            return dim
        try:
            value = int(operator.index(value))
        except TypeError:
            raise TypeError(
                "Dimension value must be integer or None or have an __index__ method, "
                f"got value {value!r} with type {type(value)!r}"
            ) from None
    if value < 0:
        raise ValueError(f"Dimension {value} must be >= 0")
    return int(value)


def as_shape(value: Any) -> Shape:
    """Returns the shape that `value` means.

    Args:
      value: None (unknown rank), a tf.TensorShape, a TensorShapeProto (any object with its fields), an
        iterable of what `as_dim` takes, or one such dimension, which is a shape of rank 1.

    Raises:
      TypeError: if it is none of these.
      ValueError: if a dimension is negative; -1 means unknown in protos only.
    """
    if value is None:
        return None
    if isinstance(value, (tuple, list)):
        return tuple([as_dim(dim) for dim in value])
    if hasattr(value, "as_tuple"):  # a tf.TensorShape
        shape: Shape = value.as_tuple()
        return shape
    if hasattr(value, "unknown_rank"):
        if value.unknown_rank:
            return None
        return tuple([None if dim.size == -1 else dim.size for dim in value.dim])
    try:
        dims = iter(value)
    except TypeError:
        return (as_dim(value),)
    try:
        return tuple([as_dim(dim) for dim in dims])
    except TypeError as error:
        raise TypeError(
            f"Failed to convert {value!r} to a shape: a shape should either be a single dimension (e.g. 10), "
            f"or an iterable of dimensions (e.g. [1, 10, None]). {error}"
        ) from error


def merge(a: Shape, b: Shape) -> Shape:
    """Returns the shape that knows all that `a` and `b` know. ValueError if they contradict each other."""
    if a is None or a == b:
        return b
    if b is None:
        return a
    if len(a) != len(b):
        raise ValueError(
            f"Shapes must be equal rank, but are {len(a)} and {len(b)}. "
            f"Shapes are {format_shape(a)} and {format_shape(b)}."
        )
    for index, (x, y) in enumerate(zip(a, b, strict=True)):
        if x is not None and y is not None and x != y:
            raise ValueError(
                f"Dimension {index} in both shapes must be equal, but are {x} and {y}. "
                f"Shapes are {format_shape(a)} and {format_shape(b)}."
            )
    return tuple([y if x is None else x for x, y in zip(a, b, strict=True)])


def is_compatible(a: Shape, b: Shape) -> bool:
    """Returns whether some fully known shape fits both `a` and `b`, so that `merge` succeeds."""
    if a is None or b is None or a == b:
        return True
    if len(a) != len(b):
        return False
    return all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))


def is_fully_defined(shape: Shape) -> bool:
    """Returns whether the rank and every dimension are known."""
    return shape is not None and None not in shape


def num_elements(shape: Shape) -> int | None:
    """Returns how many elements a tensor of this shape has, or None if that isn't known."""
    known = _known(shape)
    return None if known is None else math.prod(known)


def _known(shape: Shape) -> list[int] | None:
    if shape is None:
        return None
    known = [dim for dim in shape if dim is not None]
    return known if len(known) == len(shape) else None


def broadcast(a: Shape, b: Shape) -> Shape:
    """Returns the shape of an elementwise operation on shapes `a` and `b`, by NumPy's rules.

    An unknown dimension with n > 1 gives n (it can only be 1 or n); with 0, 1 or unknown it gives unknown.

    Raises:
      ValueError: if two known dimensions differ and neither is 1.
    """
    if a is None or b is None:
        return None
    if a == b:
        return a
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    lead = len(longer) - len(shorter)
    result = list(longer[:lead])
    for x, y in zip(longer[lead:], shorter, strict=True):
        if x == y or y == 1:
            result.append(x)
        elif x == 1:
            result.append(y)
        elif x is None:
            result.append(y if y else None)
        elif y is None:
            result.append(x if x else None)
        else:
            mine, theirs = (x, y) if longer is a else (y, x)
            raise ValueError(
                f"Dimensions must be equal, but are {mine} and {theirs}: "
                f"shapes {format_shape(a)} and {format_shape(b)} do not broadcast"
            )
    return tuple(result)


def format_shape(shape: Shape) -> str:
    """Returns "[?,784]", or "<unknown>" for an unknown rank. `parse` reads it back."""
    if shape is None:
        return "<unknown>"
    return f"[{','.join('?' if dim is None else str(dim) for dim in shape)}]"


def parse(text: str) -> Shape:
    """Returns the shape written as "[?,3]", "[]", or, for an unknown rank, "<unknown>" or "?".

    Raises:
      ValueError: if `text` is written otherwise.
    """
    text = text.strip()
    if text in ("<unknown>", "?"):
        return None
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError(f"Not a shape: {text!r}; write it as '[?,3]', '[]' or '<unknown>'")
    inner = text[1:-1].strip()
    if not inner:
        return ()
    dims = [item.strip() for item in inner.split(",")]
    for item in dims:
        if item != "?" and not item.isdecimal():
            raise ValueError(f"Not a shape: {text!r}: dimension {item!r} is neither a number nor '?'")
    return tuple([None if item == "?" else int(item) for item in dims])
