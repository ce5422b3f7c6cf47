"""The records of one file as readers give them: lines, pieces of a fixed length, TFRecords, the whole file.

A source gives keys and records, none at the end. Source: TensorFlow's text_line_reader_op.cc,
fixed_length_record_reader_op.cc, whole_file_read_ops.cc, tf_record_reader_op.cc.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, BinaryIO, Protocol

from thalweg.base.errors import DataLossError
from thalweg.formats.file_errors import file_errors
from thalweg.formats.file_system import as_path, open_file, read_whole
from thalweg.formats.records import OVERHEAD, RecordReader

Pair = tuple[bytes, bytes]
Pairs = tuple[list[bytes], list[bytes]]

_CHUNK = 256 * 1024


class Source(Protocol):
    """What gives the records of one file."""

    def read_many(self, n: int) -> Pairs:
        """Keys and records: up to n, at least one, except at the end."""
        ...

    def close(self) -> None:
        """Closes the file."""
        ...


class _OneByOne:
    """What sources share that read one record at a time. Abstract."""

    _file: BinaryIO | None = None

    def read(self) -> Pair | None:
        """The next key and record; None at the end."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the file, where one is open."""
        if self._file is not None:
            self._file.close()

    __del__ = close

    def read_many(self, n: int) -> Pairs:
        """Keys and records: up to n, at least one, except at the end."""
        keys: list[bytes] = []
        records: list[bytes] = []
        while len(keys) < n:
            pair = self.read()
            if pair is None:
                break
            keys.append(pair[0])
            records.append(pair[1])
        return keys, records


class IdentitySource(_OneByOne):
    """The name itself, once."""

    def __init__(self, work: bytes) -> None:
        self._work: bytes | None = work

    def read(self) -> Pair | None:
        """The name, as key and record."""
        work, self._work = self._work, None
        return None if work is None else (work, work)


class WholeFileSource(IdentitySource):
    """The whole file, once."""

    def read(self) -> Pair | None:
        """The name and all of the file."""
        work, self._work = self._work, None
        return None if work is None else (work, read_whole(work))


class TextLineSource(_OneByOne):
    """The lines of a file, without their ends. Keys: file:line, from 1 on. skip: lines to leave out."""

    def __init__(self, work: bytes, skip: int) -> None:
        self._work = work
        self._file: BinaryIO = open_file(work, "rb")
        self._number = 0
        for _ in range(skip):
            if self.read() is None:
                break

    def read(self) -> Pair | None:
        """The next line."""
        with file_errors(self._work):
            line = self._file.readline()
        if not line:
            return None
        self._number += 1
        if line.endswith(b"\n"):
            line = line[:-2] if line.endswith(b"\r\n") else line[:-1]
        return b"%s:%d" % (self._work, self._number), line


class FixedLengthSource(_OneByOne):
    """Pieces of a fixed length, each `hop` bytes after the one before. Keys: file:number, from 0 on.

    sizes: header, piece, footer, hop. Header and footer at the ends of the file belong to no piece. A piece
    that isn't whole is left out.
    """

    def __init__(self, work: bytes, sizes: Sequence[int], compression: str = "") -> None:
        header, length, footer, hop = sizes
        self._work = work
        self._file: BinaryIO = open_file(work, "rb")
        self._length, self._footer, self._hop = length, footer, hop or length
        self._number = 0
        self._buffer = b""
        self._skip = header
        self._inflate: Any = None
        if compression:
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS + (16 if compression == "GZIP" else 0))

    def read(self) -> Pair | None:
        """The next piece."""
        if self._number:
            self._skip += self._hop
        if not self._fill(self._skip + self._length + self._footer):
            return None
        self._buffer = self._buffer[self._skip :]
        self._skip = 0
        key = b"%s:%d" % (self._work, self._number)
        self._number += 1
        return key, self._buffer[: self._length]

    def _fill(self, size: int) -> bool:
        """Reads until the buffer has so many bytes; False where the file hasn't."""
        pieces, have = [self._buffer], len(self._buffer)
        while have < size:
            drop = min(have, self._skip)
            if drop and drop == have:  # what is skipped needn't be kept
                pieces, have = [], 0
                self._skip -= drop
                size -= drop
            piece = self._more(min(max(size - have, _CHUNK), 64 * _CHUNK))
            if not piece:
                self._buffer = b"".join(pieces)
                return False
            pieces.append(piece)
            have += len(piece)
        self._buffer = b"".join(pieces)
        return True

    def _more(self, size: int) -> bytes:
        with file_errors(self._work):
            if self._inflate is None:
                return self._file.read(size)
            while True:
                data = self._inflate.unconsumed_tail or self._file.read(_CHUNK)
                if not data or self._inflate.eof:
                    return b""
                try:
                    piece: bytes = self._inflate.decompress(data, size)
                except zlib.error as e:
                    where = self._file.tell()
                    message = f"{as_path(self._work)}: damaged compressed data before byte {where}: {e}"
                    raise DataLossError(None, None, message) from None
                if piece:
                    return piece


class TFRecordSource:
    """The records of a TFRecord file. Keys: file:offset of the record."""

    def __init__(self, work: bytes, compression: str) -> None:
        self._work = work
        self._reader = RecordReader(work, compression)

    def read_many(self, n: int) -> Pairs:
        """Keys and records: up to n, at least one, except at the end."""
        offset = self._reader.offset
        records = self._reader.read_many(n)
        keys = []
        for record in records:
            keys.append(b"%s:%d" % (self._work, offset))
            offset += len(record) + OVERHEAD
        return keys, records

    def close(self) -> None:
        """Closes the file."""
        self._reader.close()
