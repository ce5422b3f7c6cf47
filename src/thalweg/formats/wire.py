"""The protobuf wire format, read directly: varints and fields of a bytes object, between two positions.

Everything here raises WireError on bytes that are no message; nothing reads past `end`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """The bytes are not a message. The text says where and why."""


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The varint at a position, and the position behind it."""
    if at < end and data[at] < 0x80:
        return data[at], at + 1
    value = shift = 0
    stop = min(end, at + 10)
    while at < stop:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise WireError(f"a varint doesn't end, at byte {at}")


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(number, wire type, start, end) of every field: where its content is, without tag and length."""
    while at < end:
        tag = data[at]
        at += 1
        if tag >= 0x80:
            tag, at = varint(data, at - 1, end)
        kind = tag & 7
        if tag < 8:
            raise WireError(f"field number 0, at byte {at - 1}")
        if kind == BYTES:
            if at < end and data[at] < 0x80:
                start = at + 1
                stop = start + data[at]
            else:
                length, start = varint(data, at, end)
                stop = start + length
        elif kind == VARINT:
            start = at
            stop = varint(data, at, end)[1]
        elif kind == FIXED32:
            start, stop = at, at + 4
        elif kind == FIXED64:
            start, stop = at, at + 8
        else:
            raise WireError(f"wire type {kind} at byte {at - 1}")
        if stop > end:
            raise WireError(f"a field of {stop - start} bytes at {start} goes past the end at {end}")
        yield tag >> 3, kind, start, stop
        at = stop


def decode_varints(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The varints of a uint8 array that is nothing but varints, as int64; and where each ends.

    The ends are positions of last bytes.
    """
    if data.size == 0:
        return np.empty(0, np.int64), np.empty(0, np.intp)
    last = np.flatnonzero(data < 0x80)
    if last.size == 0 or last[-1] != data.size - 1:
        raise WireError("a varint doesn't end")
    if last.size == data.size:
        return data.astype(np.int64), last
    start = np.empty_like(last)
    start[0] = 0
    np.add(last[:-1], 1, start[1:])
    longest = int((last - start).max()) + 1
    if longest > 10:
        raise WireError("a varint of more than 10 bytes")
    values = (data[start] & 0x7F).astype(np.uint64)
    for k in range(1, longest):
        at = start + k
        inside = at <= last
        part = data[np.minimum(at, last)].astype(np.uint64)
        values |= np.where(inside, (part & np.uint64(0x7F)) << np.uint64(7 * k), np.uint64(0))
    return values.view(np.int64), last
