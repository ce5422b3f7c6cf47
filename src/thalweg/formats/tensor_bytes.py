"""Tensors as bytes in checkpoints, and their checksums.

Numbers are their memory. Strings are their lengths, a checksum of these, then the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.base.errors import DataLossError, UnimplementedError
from thalweg.formats.crc32c import crc32c, extend_crc32c, mask
from thalweg.formats.table_blocks import get_varint, put_varint

#: bytes of strings that are written at once
_PIECE = 1 << 20


def dtype_of(number: int, where: str) -> DType:
    """The type of that number, of those that files hold. UnimplementedError, with `where`, for all others."""
    try:
        dtype = DType(number)
    except TypeError:
        dtype = dtypes.variant
    if dtype.is_ref_dtype or not dtype.is_numpy_compatible:
        raise UnimplementedError(None, None, f"{where}: tensors of data type {number} can't be read")
    return dtype


def byte_view(array: np.ndarray) -> np.ndarray:
    """The bytes of an array of numbers, without a copy where it is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def number_checksum(data: np.ndarray) -> int:
    """The checksum of byte_view's bytes."""
    return crc32c(data)  # type: ignore[arg-type]  # anything contiguous does


class StringBytes:
    """An array of strings as bytes: pieces to write, and the checksum, size when they are all written."""

    def __init__(self, array: np.ndarray) -> None:
        self._strings: list[bytes] = array.ravel().tolist()
        self.crc = 0
        self.size = 0

    def pieces(self) -> Iterator[bytes]:
        """What is to be written, in order."""
        piece, crc = bytearray(), 0
        for string in self._strings:
            if type(string) is not bytes:
                raise TypeError(f"a string tensor holds bytes, got {type(string).__name__}")
            put_varint(piece, len(string))
            crc = extend_crc32c(crc, _length_bytes(len(string)))
        lengths = mask(crc).to_bytes(4, "little")
        piece += lengths
        self.crc = extend_crc32c(crc, lengths)
        for string in self._strings:
            if len(piece) >= _PIECE:
                self.size += len(piece)
                yield bytes(piece)
                piece.clear()
            piece += string
            self.crc = extend_crc32c(self.crc, string)
        self.size += len(piece)
        yield bytes(piece)


def _length_bytes(length: int) -> bytes:
    """What of a length goes into the checksum: four bytes where they do."""
    return length.to_bytes(4 if length < 1 << 32 else 8, "little")


def read_strings(data: bytes, count: int, where: str) -> tuple[np.ndarray, int]:
    """The strings that StringBytes made these bytes of, as a flat array, and their checksum.

    DataLossError, with `where`, for anything else.
    """

    def bad(what: str) -> DataLossError:
        return DataLossError(None, None, f"{where}: {what}")

    if count > len(data):
        raise bad(f"{count} strings in {len(data)} bytes")
    lengths, at, crc = [], 0, 0
    for _ in range(count):
        try:
            length, at = get_varint(data, at, len(data))
        except ValueError as e:
            raise bad(f"no length of a string at byte {at}") from e
        lengths.append(length)
        crc = extend_crc32c(crc, _length_bytes(length))
    if data[at : at + 4] != mask(crc).to_bytes(4, "little"):
        raise bad("wrong checksum of the lengths of its strings")
    crc = extend_crc32c(crc, data[at : at + 4])
    at += 4
    if at + sum(lengths) != len(data):
        raise bad(f"strings of {sum(lengths)} bytes, but {len(data) - at} are there")
    result = np.empty(count, object)
    for i, length in enumerate(lengths):
        result[i] = data[at : at + length]
        at += length
    return result, extend_crc32c(crc, data[len(data) - sum(lengths) :])


def element_count(shape: tuple[int, ...]) -> int:
    """How many elements an array of that shape has."""
    count = 1
    for d in shape:
        count *= d
    return count


def shape_from_proto(proto: Any, where: str) -> tuple[int, ...]:
    """The shape of a TensorShapeProto. DataLossError, with `where`, for one that no array can have."""
    shape = tuple(d.size for d in proto.dim)
    if proto.unknown_rank or len(shape) > 64 or any(d < 0 for d in shape):
        raise DataLossError(None, None, f"{where}: no shape of a tensor: {list(shape)[:70]}")
    return shape


def empty_array(shape: tuple[int, ...], dtype: DType, where: str) -> np.ndarray:
    """An array to read into. DataLossError, with `where`, where NumPy can't have one of that shape."""
    try:
        return np.empty(shape, dtype.as_numpy_dtype)
    except (ValueError, MemoryError) as e:
        raise DataLossError(None, None, f"{where}: no array of shape {list(shape)}: {e}") from e
