"""Checkpoints of version 2: an input is the length of the index (4 bytes), the index, the data."""

from __future__ import annotations

import os
import random
import tempfile

import numpy as np
from tests.fuzz.driver import mutate_bytes
from tests.fuzz.tables import mutate_table

from thalweg.formats.bundle_reader import BundleReader, data_path, index_path
from thalweg.formats.bundle_writer import BundleWriter
from thalweg.formats.file_errors import RandomAccessFile
from thalweg.formats.sstable import TableReader
from thalweg.formats.tensor_slices import Extent

NAME = "bundle"
_PREFIX = os.path.join(tempfile.mkdtemp(prefix="fuzz-bundle-"), "b")


def _packed(index: bytes, data: bytes) -> bytes:
    return len(index).to_bytes(4, "little") + index + data


def _unpacked(data: bytes) -> tuple[bytes, bytes]:
    size = int.from_bytes(data[:4], "little")
    return data[4 : 4 + size], data[4 + size :]


def seeds() -> list[bytes]:
    """One bundle with numbers, strings, and a tensor in slices."""
    strings = np.empty(3, object)
    strings[:] = [b"", b"some", b"x" * 200]
    with BundleWriter(_PREFIX) as writer:
        writer.add("a/numbers", np.arange(12.0).reshape(3, 4))
        writer.add("a/strings", strings)
        writer.add("b/empty", np.zeros((0, 2), np.int16))
        writer.add("b/scalar", np.array(3, np.uint8))
        for i in range(2):
            writer.add_slice("c/slices", (4, 3), (Extent(2 * i, 2), Extent(0, 3)), np.full((2, 3), i))
    with open(index_path(_PREFIX), "rb") as index, open(data_path(_PREFIX, 0, 1), "rb") as data:
        return [_packed(index.read(), data.read())]


def _entries(index: bytes) -> dict[bytes, bytes]:
    with open(index_path(_PREFIX), "wb") as out:
        out.write(index)
    file = RandomAccessFile(index_path(_PREFIX))
    try:
        return dict(TableReader(file).items())
    finally:
        file.close()


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Changes of the index, most of them with right checksums, or of the data."""
    index, values = _unpacked(data)
    if rng.randrange(6):
        return _packed(mutate_table(rng, _entries(index)), values)
    return _packed(index, mutate_bytes(rng, values))


def run(data: bytes) -> None:
    """Reads all tensors that there are, whole and in part."""
    index, values = _unpacked(data)
    with open(index_path(_PREFIX), "wb") as out:
        out.write(index)
    with open(data_path(_PREFIX, 0, 1), "wb") as out:
        out.write(values)
    error: Exception | None = None
    with BundleReader(_PREFIX) as reader:
        for name in reader.names():
            for extents in (None, (Extent(0, 1), Extent(0, -1))):
                try:
                    reader.shape(name), reader.dtype(name), reader.slices(name)
                    reader.read(name, extents if extents is None or len(reader.shape(name)) == 2 else None)
                except Exception as e:  # the others are read all the same
                    if error is None or not hasattr(e, "error_code"):
                        error = e
    if error is not None and not (hasattr(error, "message") and "is not in shape" in error.message):
        raise error
