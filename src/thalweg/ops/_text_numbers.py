"""Numbers in text, as C's strtod and TensorFlow's safe_strto32 read them: spaces around are fine."""

from __future__ import annotations

import re

import numpy as np

_INTEGER = re.compile(rb"[ \t\n\v\f\r]*([+-]?\d+)[ \t\n\v\f\r]*")
_HEX = re.compile(rb"([+-]?)0[xX]([0-9a-fA-F]*\.?[0-9a-fA-F]*)(?:[pP]([+-]?\d+))?")


def integer(text: bytes, dtype: np.dtype) -> int | None:
    """The integer that a text is, or None: also where it doesn't fit."""
    found = _INTEGER.fullmatch(text)
    if found is None or len(found[1]) > 40:
        return None
    value = int(found[1])
    limits = np.iinfo(dtype)
    return value if limits.min <= value <= limits.max else None


def real(text: bytes) -> float | None:
    """The number that a text is, or None. What is too large is infinite."""
    if b"_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return _hexadecimal(text.strip())


def _hexadecimal(text: bytes) -> float | None:
    found = _HEX.fullmatch(text)
    if found is None or found[2] in (b"", b"."):
        return None
    try:
        return float.fromhex(text.decode())
    except OverflowError:
        return float("-inf") if found[1] == b"-" else float("inf")


def number(text: bytes, dtype: np.dtype) -> float | int | None:
    """The number of a type that a text is, or None."""
    return real(text) if dtype.kind == "f" else integer(text, dtype)


def as_array(values: list[float | int], dtype: np.dtype) -> np.ndarray:
    """Numbers as an array of a type; reals that are too large for it are infinite."""
    with np.errstate(over="ignore"):
        return np.array(values, np.float64).astype(dtype) if dtype.kind == "f" else np.array(values, dtype)
