"""Tensors as text, as TensorFlow's Tensor::SummarizeValue writes them: in Print, Assert and StringFormat."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_ESCAPES = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}


def summarize(value: Any, limit: int) -> str:
    """The first `limit` elements (all, where negative), the inner dimensions in brackets."""
    array = np.asarray(value)
    if limit < 0:
        limit = array.size
    shown = [_element(v) for v in array.reshape(-1)[:limit]]
    cut = "..." if array.size > limit else ""
    if array.dtype == object or array.ndim < 2:
        return " ".join(shown) + cut
    if not shown and not cut:
        return ""
    return _nested(array.shape, shown, [0]) + cut


def _nested(shape: tuple[int, ...], shown: list[str], at: list[int]) -> str:
    """The elements from position at[0] on, as far as there are any; at[0] moves on."""
    if len(shape) == 1:
        part = shown[at[0] : at[0] + shape[0]]
        at[0] += len(part)
        return " ".join(part) + ("..." if len(part) < shape[0] else "")
    text = ""
    for _ in range(shape[0]):
        if at[0] >= len(shown):
            break
        text += f"[{_nested(shape[1:], shown, at)}]"
    return text


def pretty(value: Any, edge: int) -> str:
    """NumPy's style: brackets and lines, the first and last `edge` of each dimension; all, where negative."""
    array = np.asarray(value)
    if edge < 0:
        edge = max(array.shape, default=0)
    return _pretty(array, edge, array.ndim)


def _pretty(array: np.ndarray, edge: int, rank: int) -> str:
    if array.ndim == 0:
        return f'"{_element(array[()])}"' if array.dtype == object else _element(array[()])
    n = len(array)
    places = list(range(n))
    if n > 2 * edge:
        places = [*range(edge), -1, *range(n - edge, n)]
    parts = ["..." if i < 0 else _pretty(array[i, ...], edge, rank) for i in places]
    gap = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * (rank - array.ndim + 1)
    return f"[{gap.join(parts)}]"


def _element(value: Any) -> str:
    if isinstance(value, bytes | str):
        return _escape(value if isinstance(value, bytes) else value.encode())
    if isinstance(value, bool | np.bool_):
        return "1" if value else "0"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, complex | np.complexfloating):
        return f"({_number(float(value.real), 9)},{_number(float(value.imag), 9)})"
    return _number(float(value), 17 if isinstance(value, np.float64) else 9)


def _number(x: float, digits: int) -> str:
    """The shorter of two precisions that reads back as the same number."""
    if math.isnan(x) or math.isinf(x):
        return str(x)
    short = f"{x:.{15 if digits == 17 else 6}g}"
    same = float(short) == x if digits == 17 else np.float32(short) == np.float32(x)
    return short if same else f"{x:.{digits}g}"


def _escape(text: bytes) -> str:
    """C escapes, as absl::CEscape writes them."""
    return "".join(
        _ESCAPES.get(c) or (chr(c) if 32 <= c < 127 else f"\\{c:03o}") for c in text
    )
