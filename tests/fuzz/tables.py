"""Mutations of table files that keep their checksums right, so that what is behind them is reached."""

from __future__ import annotations

import io
import random

from tests.fuzz.driver import mutate_bytes

from thalweg.formats.crc32c import masked_crc32c
from thalweg.formats.sstable import FOOTER_SIZE, TRAILER_SIZE, TableWriter
from thalweg.formats.table_blocks import get_varint


def table_bytes(entries: dict[bytes, bytes], block_size: int = 256) -> bytes:
    """A table file."""
    file = io.BytesIO()
    writer = TableWriter(file, block_size)
    for key in sorted(entries):
        writer.add(key, entries[key])
    writer.finish()
    return file.getvalue()


def mutate_table(rng: random.Random, entries: dict[bytes, bytes]) -> bytes:
    """A table with changed entries, changed blocks under right checksums, or changed bytes."""
    kind = rng.randrange(4)
    if kind < 2:
        changed = dict(entries)
        for _ in range(rng.choice((1, 1, 2, 4))):
            key = rng.choice(list(changed)) if changed else b""
            what = rng.randrange(6)
            if what < 3:
                changed[key] = mutate_bytes(rng, changed.get(key, b""))
            elif what == 3:
                changed[mutate_bytes(rng, key)] = changed.get(key, b"")
            elif what == 4:
                changed.pop(key, None)
            else:
                changed[key] = changed[rng.choice(list(changed))] if changed else b""
        return table_bytes(changed, rng.choice((16, 256, 1 << 18)))
    data = table_bytes(entries)
    return _mutate_block(rng, data) if kind == 2 else mutate_bytes(rng, data)


def _mutate_block(rng: random.Random, data: bytes) -> bytes:
    """Changes bytes of the index block or of the block before it, of the same length, with a right checksum."""
    footer = data[-FOOTER_SIZE:]
    _, at = get_varint(footer, 0, 40)
    _, at = get_varint(footer, at, 40)
    index_at, at = get_varint(footer, at, 40)
    index_size, at = get_varint(footer, at, 40)
    if rng.randrange(3):
        start, size = index_at, index_size
    else:
        start, size = 0, min(256, index_at - TRAILER_SIZE)
    block = mutate_bytes(rng, data[start : start + size])[:size].ljust(size, b"\0") + bytes([rng.choice((0, 0, 0, 1))])
    block += masked_crc32c(block).to_bytes(4, "little")
    return data[:start] + block + data[start + size + TRAILER_SIZE :]
