"""Sorted-string tables, as LevelDB and TensorFlow write them: checkpoints' .index files, and version 1's.

A table is data blocks (table_blocks), an empty block of meta information, an index block (for each data block
a key that is not less than its keys, and where it is), and a footer of 48 bytes. After each block come a byte
that says how it is compressed (0: not) and the masked checksum of both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import IO, Any

from thalweg.base.errors import DataLossError, InvalidArgumentError, UnimplementedError
from thalweg.formats.crc32c import masked_crc32c
from thalweg.formats.file_errors import RandomAccessFile
from thalweg.formats.table_blocks import BlockBuilder, block_entries, get_varint, put_varint

MAGIC = 0xDB4775248B80FB57
FOOTER_SIZE = 48
TRAILER_SIZE = 5
#: TensorFlow's, so that the same entries make the same file
BLOCK_SIZE = 262144
_COMPRESSIONS = {1: "snappy", 2: "zlib", 4: "zstd"}


class TableWriter:
    """Writes a table into a file. Keys come in rising order, each once."""

    def __init__(self, file: IO[bytes], block_size: int = BLOCK_SIZE) -> None:
        self._file = file
        self._block_size = block_size
        self._data = BlockBuilder()
        self._index = BlockBuilder(restart_interval=1)
        self._offset = 0
        self._last: bytes | None = None
        self._pending: bytes | None = None  # the handle of a finished block that isn't in the index yet

    def add(self, key: bytes, value: bytes) -> None:
        """Appends an entry. InvalidArgumentError for a key that doesn't come after the last."""
        if self._last is not None and key <= self._last:
            raise InvalidArgumentError(None, None, f"key {key!r} comes after {self._last!r} in a table")
        if self._pending is not None:
            assert self._last is not None
            self._index.add(separator(self._last, key), self._pending)
            self._pending = None
        self._data.add(key, value)
        self._last = key
        if self._data.size >= self._block_size:
            self._flush()

    def _flush(self) -> None:
        if self._data.count:
            self._pending = self._put_block(self._data.finish())
            self._data.clear()

    def _put_block(self, block: bytes) -> bytes:
        handle = bytearray()
        put_varint(handle, self._offset)
        put_varint(handle, len(block))
        block += b"\0"
        block += masked_crc32c(block).to_bytes(4, "little")
        self._file.write(block)
        self._offset += len(block)
        return bytes(handle)

    def finish(self) -> None:
        """Writes the rest. The caller closes the file."""
        self._flush()
        meta = self._put_block(BlockBuilder().finish())
        if self._pending is not None:
            assert self._last is not None
            self._index.add(successor(self._last), self._pending)
        handles = meta + self._put_block(self._index.finish())
        footer = handles + b"\0" * (FOOTER_SIZE - 8 - len(handles)) + MAGIC.to_bytes(8, "little")
        self._file.write(footer)


def separator(low: bytes, high: bytes) -> bytes:
    """A short key k with low <= k < high."""
    same = 0
    limit = min(len(low), len(high))
    while same < limit and low[same] == high[same]:
        same += 1
    if same < limit and low[same] < 0xFF and low[same] + 1 < high[same]:
        return low[:same] + bytes([low[same] + 1])
    return low


def successor(key: bytes) -> bytes:
    """A short key that is not less than this one."""
    for i, byte in enumerate(key):
        if byte != 0xFF:
            return key[:i] + bytes([byte + 1])
    return key


class TableReader:
    """Reads a table: its index at once, data blocks when they are asked for. Any thread may read.

    Errors: DataLossError for what is no table or is damaged, UnimplementedError for compressed blocks.
    """

    def __init__(self, file: RandomAccessFile) -> None:
        self._file = file
        self._cached: tuple[int, list[tuple[bytes, bytes]]] | None = None
        if file.size < FOOTER_SIZE:
            raise DataLossError(
                None, None, f"{file.path}: not a table file: {file.size} bytes, shorter than a table's footer"
            )
        at = file.size - FOOTER_SIZE
        footer = file.read(at, FOOTER_SIZE, "the footer")
        if int.from_bytes(footer[-8:], "little") != MAGIC:
            raise DataLossError(
                None, None, f"{file.path}: not a table file: no magic number at offset {file.size - 8}"
            )
        try:
            end = FOOTER_SIZE - 8
            meta, position = _get_handle(footer, 0, end)
            index, _ = _get_handle(footer, position, end)
        except ValueError as e:
            raise DataLossError(None, None, f"{file.path}: a bad footer at offset {at}") from e
        self._block(meta, "the meta block")  # nothing in it is used, but it must be whole
        self._keys: list[bytes] = []
        self._handles: list[tuple[int, int]] = []
        for key, value in block_entries(self._block(index, "the index block"), f"{file.path}: index block"):
            try:
                handle, _ = _get_handle(value, 0, len(value))
            except ValueError as e:
                raise DataLossError(None, None, f"{file.path}: a bad handle in the index block") from e
            self._keys.append(key)
            self._handles.append(handle)

    @property
    def path(self) -> str:
        """The file's path."""
        return self._file.path

    def _block(self, handle: tuple[int, int], what: str) -> bytes:
        offset, size = handle
        data = self._file.read(offset, size + TRAILER_SIZE, what)
        if masked_crc32c(data[:-4]) != int.from_bytes(data[-4:], "little"):
            raise DataLossError(
                None, None, f"{self.path}: wrong checksum of {what} at offset {offset} with {size} bytes"
            )
        kind = data[size]
        if kind:
            raise UnimplementedError(
                None,
                None,
                f"{self.path}: {what} at offset {offset} is compressed "
                f"({_COMPRESSIONS.get(kind, f'kind {kind}')}): only uncompressed tables are read",
            )
        return data[:size]

    def _entries(self, number: int) -> list[tuple[bytes, bytes]]:
        cached = self._cached
        if cached is not None and cached[0] == number:
            return cached[1]
        handle = self._handles[number]
        where = f"{self.path}: data block at offset {handle[0]}"
        entries = list(block_entries(self._block(handle, "a data block"), where))
        for (before, _), (key, _) in pairwise(entries):
            if key <= before:
                raise DataLossError(None, None, f"{where}: key {key!r} after {before!r}")
        self._cached = (number, entries)
        return entries

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None."""
        number = bisect_left(self._keys, key)
        if number == len(self._keys):
            return None
        entries = self._entries(number)
        at = bisect_left(entries, key, key=_key_of)
        return entries[at][1] if at < len(entries) and entries[at][0] == key else None

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """(key, value) of all entries, in order of keys."""
        for number in range(len(self._handles)):
            yield from self._entries(number)


def _key_of(entry: tuple[bytes, bytes]) -> Any:
    return entry[0]


def _get_handle(data: bytes, at: int, limit: int) -> tuple[tuple[int, int], int]:
    """(offset, size) of a block, and where the handle ends."""
    offset, at = get_varint(data, at, limit)
    size, at = get_varint(data, at, limit)
    return (offset, size), at
