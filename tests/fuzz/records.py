"""TFRecord files. The first byte says how the rest is compressed."""

from __future__ import annotations

import os
import random
import struct
import tempfile
import zlib

from tests.fuzz.driver import mutate_bytes

from thalweg.formats.crc32c import masked_crc32c
from thalweg.formats.records import COMPRESSIONS, RecordReader

NAME = "records"
_PATH = os.path.join(tempfile.mkdtemp(prefix="fuzz-records-"), "r")
_RECORDS = [b"", b"one", b"x" * 700, bytes(range(256)), b"last"]


def _frame(record: bytes, length: int | None = None) -> bytes:
    size = struct.pack("<Q", len(record) if length is None else length)
    return size + struct.pack("<I", masked_crc32c(size)) + record + struct.pack("<I", masked_crc32c(record))


def _packed(kind: int, data: bytes) -> bytes:
    if kind == 0:
        return data
    stream = zlib.compressobj(wbits=15 if kind == 1 else 31)
    return stream.compress(data) + stream.flush()


def seeds() -> list[bytes]:
    """The same records, in all three ways."""
    data = b"".join(map(_frame, _RECORDS))
    return [bytes([kind]) + _packed(kind, data) for kind in range(3)]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """A changed file, or records that lie about their length with a good checksum."""
    if rng.random() < 0.5:
        return data[:1] + mutate_bytes(rng, data[1:])
    kind = rng.randrange(3)
    frames = []
    for record in rng.sample(_RECORDS, rng.randrange(1, 5)):
        length = rng.choice((None, None, rng.randrange(2000), 1 << rng.randrange(64), (1 << 64) - rng.randrange(1, 20)))
        frames.append(_frame(record, length))
    return bytes([kind]) + _packed(kind, b"".join(frames))


def run(data: bytes) -> None:
    """Reads it twice, one by one and in pieces."""
    compression = COMPRESSIONS[data[0] % 3] if data else ""
    with open(_PATH, "wb") as out:
        out.write(data[1:])
    with RecordReader(_PATH, compression) as reader:
        while reader.read_many(3):
            pass
    with RecordReader(_PATH, compression) as reader:
        for _ in reader:
            pass
