"""Blocks of sorted-string tables: sorted keys without the prefix that each shares with the one before.

A block is entries, then the offsets of its restarts (entries whose key is whole) and how many they are, all
as uint32. An entry is three varints (bytes shared with the key before, bytes that are not, bytes of the
value), then the rest of the key, then the value.
"""

from __future__ import annotations

from collections.abc import Iterator

from thalweg.base.errors import DataLossError


def put_varint(data: bytearray, value: int) -> None:
    """Appends a number, seven bits a byte, the lowest first."""
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)


def get_varint(data: bytes, at: int, limit: int) -> tuple[int, int]:
    """The number at `at`, and where it ends. ValueError unless it ends before limit and has 64 bits."""
    value = shift = 0
    while at < limit and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 1 << 64:
                break
            return value, at
        shift += 7
    raise ValueError(f"no varint at {at}")


class BlockBuilder:
    """Makes one block. Keys come in rising order."""

    def __init__(self, restart_interval: int = 16) -> None:
        self._interval = restart_interval
        self.clear()

    def clear(self) -> None:
        """Starts the next block."""
        self._data = bytearray()
        self._restarts = [0]
        self._since = 0
        self._last = b""
        self.count = 0

    def add(self, key: bytes, value: bytes) -> None:
        """Appends an entry."""
        shared = 0
        if self._since < self._interval:
            limit = min(len(key), len(self._last))
            while shared < limit and key[shared] == self._last[shared]:
                shared += 1
        else:
            self._restarts.append(len(self._data))
            self._since = 0
        for number in (shared, len(key) - shared, len(value)):
            put_varint(self._data, number)
        self._data += key[shared:]
        self._data += value
        self._last = key
        self._since += 1
        self.count += 1

    @property
    def size(self) -> int:
        """Bytes that the block has as it is."""
        return len(self._data) + 4 * len(self._restarts) + 4

    def finish(self) -> bytes:
        """The block; it takes no more entries before `clear`."""
        tail = b"".join(n.to_bytes(4, "little") for n in (*self._restarts, len(self._restarts)))
        return bytes(self._data) + tail


def block_entries(data: bytes, where: str) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of each entry of a block. DataLossError, with `where`, for what is no block."""
    if len(data) < 4:
        raise DataLossError(None, None, f"{where}: a block of {len(data)} bytes")
    restarts = int.from_bytes(data[-4:], "little")
    limit = len(data) - 4 - 4 * restarts
    if limit < 0:
        raise DataLossError(None, None, f"{where}: {restarts} restarts in a block of {len(data)} bytes")
    key, at = b"", 0
    while at < limit:
        start = at
        try:
            shared, at = get_varint(data, at, limit)
            rest, at = get_varint(data, at, limit)
            size, at = get_varint(data, at, limit)
        except ValueError as e:
            raise DataLossError(None, None, f"{where}: no entry at offset {start} of its block") from e
        if shared > len(key) or at + rest + size > limit:
            raise DataLossError(None, None, f"{where}: a bad entry at offset {start} of its block")
        key = key[:shared] + data[at : at + rest]
        at += rest
        yield key, data[at : at + size]
        at += size
