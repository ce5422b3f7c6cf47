"""TFRecord files: length, checksum of the length, data, checksum of the data; plain, zlib or gzip.

Reading checks every checksum, and every length against what the file can still hold, before anything of that
length is allocated. Source: TensorFlow's record_reader.cc, record_writer.cc, zlib_inputstream.cc.
"""

from __future__ import annotations

import os
import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from google_crc32c import value as _crc32c

from thalweg.base.errors import DataLossError, InvalidArgumentError
from thalweg.formats.crc32c import MASK, masked_crc32c
from thalweg.formats.file_errors import file_errors
from thalweg.formats.file_system import as_path, open_file

COMPRESSIONS = ("", "ZLIB", "GZIP")

_HEADER = 12  # length and its checksum
_FOOTER = 4
#: what a record takes in a file beyond its data
OVERHEAD = _HEADER + _FOOTER
_CHUNK = 256 * 1024
#: deflate makes at most this many bytes of one
_MOST_INFLATED = 1032
#: of a compressed file, whose true size nobody knows: a message can't be larger either
_LONGEST_INFLATED = (1 << 31) - 1

_U64 = struct.Struct("<Q")
_U32 = struct.Struct("<I")


def check_compression(compression: str) -> str:
    """The compression as it is written in options. InvalidArgumentError where there is no such."""
    if compression not in COMPRESSIONS:
        raise InvalidArgumentError(
            None, None, f"Unsupported compression type: '{compression}'; it must be '', 'ZLIB' or 'GZIP'"
        )
    return compression


class _Plain:
    """A file as it is."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.read = file.read
        self.limit = 1 << 63

    def left(self) -> int | None:
        """How many bytes can still come at most; None: nobody knows."""
        return _bytes_left(self._file)


def _bytes_left(file: BinaryIO) -> int | None:
    try:
        status = os.fstat(file.fileno())
    except (OSError, AttributeError):
        size = getattr(file, "size", None)
        return size - file.tell() if isinstance(size, int) else None
    return status.st_size - file.tell() if stat.S_ISREG(status.st_mode) else None


class _Inflated:
    """A compressed file, decompressed; streams one after the other count as one."""

    def __init__(self, file: BinaryIO, path: str, wbits: int) -> None:
        self._file = file
        self._path = path
        self._wbits = wbits
        self._stream = zlib.decompressobj(wbits)
        self._compressed = b""
        self._is_fresh = True
        self.limit = _LONGEST_INFLATED

    def left(self) -> int | None:
        """How many bytes can still come at most; None: nobody knows."""
        left = _bytes_left(self._file)
        return None if left is None else (left + len(self._compressed) + 4096) * _MOST_INFLATED

    def read(self, n: int) -> bytes:
        """Up to n bytes; fewer only where the file ends."""
        parts: list[bytes] = []
        while n > 0:
            if not self._compressed:
                self._compressed = self._file.read(_CHUNK)
                if not self._compressed:
                    if not parts:  # what came before the end is given first
                        self._check_end()
                    break
            if self._stream.eof:
                self._stream = zlib.decompressobj(self._wbits)
            try:
                part = self._stream.decompress(self._compressed, n)
            except zlib.error as e:
                where = self._file.tell() - len(self._compressed)
                message = f"{self._path}: damaged compressed data near byte {where}: {e}"
                raise DataLossError(None, None, message) from None
            self._compressed = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
            self._is_fresh = self._stream.eof
            if part:
                parts.append(part)
                n -= len(part)
        return b"".join(parts)

    def _check_end(self) -> None:
        if not (self._is_fresh or self._stream.eof):
            raise DataLossError(
                None, None, f"{self._path}: the compressed data ends early, at byte {self._file.tell()}"
            )


def _source(file: BinaryIO, path: str, compression: str) -> Any:
    if not compression:
        return _Plain(file)
    return _Inflated(file, path, zlib.MAX_WBITS + (16 if compression == "GZIP" else 0))


class RecordReader:
    """The records of one file, in order. Not thread-safe.

    It holds one chunk of the file, and no more of a record than the file has. `offset` is where the next
    record starts, in the file as it was before compression.
    """

    def __init__(self, path: Any, compression: str = "") -> None:
        self._compression = check_compression(compression)
        self.path = as_path(path)
        self._file = open_file(path, "rb")
        self._data = _source(self._file, self.path, compression)
        self._buffer = b""
        self._start = 0  # of the buffer, in the data
        self._records: list[bytes] = []  # of the buffer, the next one last
        self._error: DataLossError | None = None
        self._is_done = False
        self._lengths: dict[bytes, int] = {}  # of headers whose checksum is good
        self.offset = 0

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __del__(self) -> None:
        file = getattr(self, "_file", None)  # missing where it couldn't be opened
        if file is not None:
            file.close()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def read(self) -> bytes | None:
        """The next record, or None at the end. DataLossError where it is damaged: so is any later call's."""
        if not self._records and not self._fill():
            return None
        record = self._records.pop()
        self.offset += len(record) + OVERHEAD
        return record

    def read_many(self, n: int) -> list[bytes]:
        """Up to n records; at least one, except at the end."""
        if not self._records and not self._fill():
            return []
        records = self._records[-n:]
        del self._records[-n:]
        records.reverse()
        self.offset += sum(map(len, records)) + len(records) * OVERHEAD
        return records

    def __iter__(self) -> Iterator[bytes]:
        while self._records or self._fill():
            records, self._records = self._records, []
            records.reverse()
            for record in records:
                self.offset += len(record) + OVERHEAD
                yield record

    def _fill(self) -> bool:
        """Reads on until there is a whole record; False at the end."""
        if self._error is not None:
            raise self._error
        try:
            while not self._records and not self._is_done:
                self._more()
        except DataLossError as e:
            self._error = e
            raise
        if not self._records and self._error is not None:
            raise self._error
        return bool(self._records)

    def _more(self) -> None:
        needed = self._needed() - len(self._buffer)
        with file_errors(self.path):
            pieces = [self._buffer]
            while needed > 0:
                piece = self._data.read(max(_CHUNK, min(needed, 16 << 20)))
                if not piece:
                    self._finish(b"".join(pieces))
                    return
                pieces.append(piece)
                needed -= len(piece)
        self._buffer = b"".join(pieces)
        self._take_records()

    def _needed(self) -> int:
        """The bytes of the record at the start of the buffer, or of its header where that isn't there."""
        if len(self._buffer) < _HEADER:
            return _HEADER
        length = self._length(self._buffer[:_HEADER], self._start)
        rest = length + OVERHEAD - len(self._buffer)
        left = self._data.left()
        if (left is not None and rest > left) or length > self._data.limit:
            raise self._truncated(f"its length is {length}, more than the file holds")
        return length + OVERHEAD

    def _finish(self, rest: bytes) -> None:
        self._is_done = True
        self._buffer = b""
        if rest:
            raise self._truncated(f"the file ends after {len(rest)} bytes of it")

    def _truncated(self, why: str) -> DataLossError:
        return DataLossError(None, None, f"{self.path}: truncated record at {self._start}: {why}")

    def _length(self, header: bytes, offset: int) -> int:
        length = self._lengths.get(header)
        if length is not None:
            return length
        if masked_crc32c(header[:8]) != _U32.unpack_from(header, 8)[0]:
            raise DataLossError(
                None,
                None,
                f"{self.path}: corrupted record at {offset}: the checksum of its length is wrong "
                "(Is this even a TFRecord file?)",
            )
        if len(self._lengths) > 10_000:
            self._lengths.clear()
        length = self._lengths[header] = _U64.unpack_from(header)[0]
        return length

    def _take_records(self) -> None:
        """Moves the whole records of the buffer to the list; what is damaged raises after those before it."""
        buffer, size, lengths = self._buffer, len(self._buffer), self._lengths
        crc_of, crc_at = _crc32c, _U32.unpack_from
        records = []
        at = 0
        try:
            while size - at >= _HEADER:
                header = buffer[at : at + _HEADER]
                length = lengths.get(header)
                if length is None:
                    length = self._length(header, self._start + at)
                end = at + _HEADER + length
                if end + _FOOTER > size:
                    break
                record = buffer[at + _HEADER : end]
                crc = crc_of(record)
                if ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF != crc_at(buffer, end)[0]:
                    where = f"{self.path}: corrupted record at {self._start + at}"
                    raise DataLossError(None, None, f"{where}: the checksum of its data is wrong")
                records.append(record)
                at = end + _FOOTER
        except DataLossError as e:
            self._error = e
            self._is_done = True
        self._buffer = buffer[at:]
        self._start += at
        records.reverse()
        self._records = records


def read_records(path: Any, compression: str = "") -> Iterator[bytes]:
    """The records of a file, one by one. NotFoundError at the first, DataLossError at a damaged one."""
    with RecordReader(path, compression) as reader:
        yield from reader


@dataclass(frozen=True)
class Deflate:
    """How a compressed file is written: zlib's parameters."""

    level: int = zlib.Z_DEFAULT_COMPRESSION
    method: int = zlib.DEFLATED
    window_bits: int | None = None
    memory_level: int = 9
    strategy: int = zlib.Z_DEFAULT_STRATEGY
    flush_mode: int = zlib.Z_NO_FLUSH

    def compressor(self, compression: str) -> Any:
        """A zlib compressor for "ZLIB" or "GZIP"."""
        bits = self.window_bits
        if bits is None:
            bits = zlib.MAX_WBITS
        if compression == "GZIP" and bits <= zlib.MAX_WBITS:
            bits += 16
        try:
            return zlib.compressobj(self.level, self.method, bits, self.memory_level, self.strategy)
        except (ValueError, OverflowError) as e:
            raise InvalidArgumentError(None, None, f"{self}: zlib refuses this: {e}") from None


class RecordWriter:
    """Writes records to a file, which it makes or replaces. Not thread-safe."""

    def __init__(self, path: Any, compression: str = "", deflate: Deflate | None = None) -> None:
        self.path = as_path(path)
        deflate = deflate or Deflate()
        check_compression(compression)
        self._deflate = deflate.compressor(compression) if compression else None
        self._flush_mode = deflate.flush_mode or zlib.Z_SYNC_FLUSH
        self._file: BinaryIO | None = open_file(path, "wb")

    def write(self, record: bytes) -> None:
        """Adds a record."""
        self._open_file()
        header = _U64.pack(len(record))
        data = b"".join((header, _U32.pack(masked_crc32c(header)), record, _U32.pack(masked_crc32c(record))))
        self._put(data if self._deflate is None else self._deflate.compress(data))

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        if self._deflate is not None:
            self._put(self._deflate.flush(self._flush_mode))
        with file_errors(self.path):
            self._open_file().flush()

    def close(self) -> None:
        """Writes out what is left and closes the file; nothing the second time."""
        if self._file is None:
            return
        file, self._file = self._file, None
        with file_errors(self.path), file:
            if self._deflate is not None:
                file.write(self._deflate.flush())

    def _put(self, data: bytes) -> None:
        file = self._open_file()
        with file_errors(self.path):
            file.write(data)

    def _open_file(self) -> BinaryIO:
        if self._file is None:
            raise InvalidArgumentError(None, None, f"{self.path}: the writer is closed")
        return self._file

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
