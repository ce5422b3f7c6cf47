"""The placeholders that the cases of sugar use by name: (element type, static shape, value fed)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np


def _f(*shape: int, start: int = 0, kind: Any = np.float32) -> np.ndarray:
    n = int(np.prod(shape, dtype=int))
    return ((np.arange(start, start + n) * 5 % 13 - 5) / 4).astype(kind).reshape(shape)


INPUTS: dict[str, tuple[str, Any, np.ndarray]] = {
    "x": ("float32", [2, 3], _f(2, 3)),
    "y": ("float32", [2, 3], _f(2, 3, start=4)),
    "v": ("float32", [None, 3], _f(2, 3, start=1)),
    "u": ("float32", None, _f(2, 3, start=2)),
    "s": ("float32", [], np.float32(1.5)),
    "p": ("float32", [4], np.array([0.5, 1, 2, 0.25], np.float32)),
    "q": ("float32", [2, 3], np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]], np.float32)),
    "d": ("float64", [2, 3], _f(2, 3, kind=np.float64)),
    "m": ("float32", [2, 3, 4], _f(2, 3, 4)),
    "w": ("float32", [3, 4], _f(3, 4, start=3)),
    "sq": ("float32", [3, 3], _f(3, 3) + 4 * np.eye(3, dtype=np.float32)),
    "i": ("int32", [2, 3], np.array([[3, -1, 4], [1, -5, 9]], np.int32)),
    "j": ("int32", [2, 3], np.array([[2, 3, -2], [4, 2, -4]], np.int32)),
    "k": ("int32", [], np.int32(1)),
    "k64": ("int64", [], np.int64(1)),
    "ids": ("int32", [4], np.array([0, 2, 1, 2], np.int32)),
    "seg": ("int32", [4], np.array([0, 0, 1, 2], np.int32)),
    "lab": ("int64", [2], np.array([2, 0], np.int64)),
    "b": ("bool", [2, 3], np.array([[True, False, True], [False, False, True]])),
    "c": ("bool", [2, 3], np.array([[True, True, False], [False, True, True]])),
    "b2": ("bool", [2], np.array([False, True])),
    "bn": ("bool", [None], np.array([False, True])),
    "z": ("complex64", [2], np.array([1 + 2j, -0.5 - 1j], np.complex64)),
    "t": ("string", [2], np.array([b"ab", b"c"], object)),
    "img": ("float32", [1, 4, 4, 2], _f(1, 4, 4, 2)),
    "imgn": ("float32", [None, 4, 4, 2], _f(2, 4, 4, 2)),
    "imgc": ("float32", [1, 2, 4, 4], _f(1, 2, 4, 4)),
    "ker": ("float32", [2, 2, 2, 3], _f(2, 2, 2, 3, start=1)),
    "vol": ("float32", [1, 2, 4, 4, 2], _f(1, 2, 4, 4, 2)),
    "seq": ("float32", [2, 5, 2], _f(2, 5, 2)),
    "shp": ("int32", [2], np.array([3, 2], np.int32)),
    "tab": ("float32", [4, 2], _f(4, 2)),
    "tab2": ("float32", [3, 2], _f(3, 2, start=5)),
    "nz": ("float32", [3], np.array([0.0, 2, 0], np.float32)),
}


def used(code: str) -> list[str]:
    """The names among INPUTS that a piece of code mentions, in the order of INPUTS."""
    words = set(re.findall(r"(?<![\w.'\"])[a-z]\w*(?!\w*\s*=[^=])(?![\w'\"])", code))
    return [name for name in INPUTS if name in words]
