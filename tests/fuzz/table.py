"""Table files."""

from __future__ import annotations

import os
import random
import tempfile

from tests.fuzz.tables import mutate_table, table_bytes

from thalweg.formats.file_errors import RandomAccessFile
from thalweg.formats.sstable import TableReader

NAME = "table"
_ENTRIES = {b"": b"header", **{b"key%03d/part" % i: b"value" * (i % 5) for i in range(60)}}
_PATH = os.path.join(tempfile.mkdtemp(prefix="fuzz-table-"), "t")


def seeds() -> list[bytes]:
    """One table."""
    return [table_bytes(_ENTRIES)]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """A changed table."""
    return mutate_table(rng, _ENTRIES)


def run(data: bytes) -> None:
    """Reads it all."""
    with open(_PATH, "wb") as out:
        out.write(data)
    file = RandomAccessFile(_PATH)
    try:
        table = TableReader(file)
        for key in (b"", b"key005/part", b"zzz"):
            table.get(key)
        for _ in table.items():
            pass
    finally:
        file.close()
