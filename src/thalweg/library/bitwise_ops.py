"""Functions of the bits of integers."""

from __future__ import annotations

from typing import Any

from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor


def bitwise_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits set in both."""
    return emit("BitwiseAnd", x, y, name=name)


def bitwise_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits set in either."""
    return emit("BitwiseOr", x, y, name=name)


def bitwise_xor(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits set in one of the two."""
    return emit("BitwiseXor", x, y, name=name)


def invert(x: Any, name: str | None = None) -> Tensor:
    """The bits not set."""
    return emit("Invert", x, name=name)


def left_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x shifted up by y bits."""
    return emit("LeftShift", x, y, name=name)


def right_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x shifted down by y bits; signed types keep their sign."""
    return emit("RightShift", x, y, name=name)
