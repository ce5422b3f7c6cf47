"""What the checkpoints of the tests hold, the same for TensorFlow and thalweg."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

NUMBERS = (
    "float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "complex64", "complex128", "bool",
)  # fmt: skip
#: types that version 1 has
NUMBERS_V1 = tuple(n for n in NUMBERS if n not in ("uint32", "uint64"))


def strings() -> np.ndarray:
    """Strings with every awkward byte, short and long."""
    result = np.empty((2, 3), object)
    result[:] = [[b"", b"a", bytes(range(256))], [b"\xff\x00\xff", "gr\u00fc\u00dfe".encode(), b"long " * 400]]
    return result


def number(name: str) -> np.ndarray:
    """An array of that type with negative numbers, large ones and extremes where there are such."""
    base = np.arange(-3, 9).reshape(3, 4)
    if name == "bool":
        return base % 2 == 0
    if name.startswith("complex"):
        return (base * 1.5 + 2j * base[::-1]).astype(name)
    if name.startswith("uint"):
        return np.array([[0, 1, np.iinfo(name).max]], name)
    if name.startswith("int"):
        return np.array([[np.iinfo(name).min, -1, 0, np.iinfo(name).max]], name)
    result = base.astype(name) / 3
    result[0] = [np.inf, -np.inf, np.nan, -0.0]
    return result


def values(names: tuple[str, ...] = NUMBERS) -> dict[str, Any]:
    """Tensors by name: every type, and every odd shape."""
    result = {f"types/{name}": number(name) for name in names}
    result["types/string"] = strings()
    result["shapes/scalar"] = np.array(2.5)
    result["shapes/empty"] = np.zeros((0, 3), np.int32)
    result["shapes/deep"] = np.arange(8, dtype=np.float32).reshape(1, 2, 1, 2, 1, 2)
    result["shapes/scalar_string"] = np.array(b"one", object)
    if "uint32" in names:
        result["types/bfloat16"] = np.array([1.5, -2.25, 3e38, 0.0], ml_dtypes.bfloat16)
    result["gr\u00f6\u00dfe/\u91cd\u307f"] = np.array([1, 2], np.int32)
    return result


def partitioned() -> np.ndarray:
    """A tensor that is stored in slices."""
    return np.arange(10 * 6, dtype=np.float32).reshape(10, 6)


#: its slices: the first axis in 4 uneven parts; a grid over both axes
ROWS = ["10 6 0,3:0,6", "10 6 3,3:0,6", "10 6 6,2:0,6", "10 6 8,2:-"]
GRID = ["10 6 0,5:0,2", "10 6 0,5:2,4", "10 6 5,5:0,2", "10 6 5,5:2,4"]


def cut(whole: np.ndarray, spec: str) -> np.ndarray:
    """The part of a tensor that a slice spec says."""
    extents = spec.rpartition(" ")[2].split(":")
    index = []
    for extent in extents:
        start, _, length = extent.partition(",")
        index.append(slice(None) if extent == "-" else slice(int(start), int(start) + int(length)))
    return whole[tuple(index)]
