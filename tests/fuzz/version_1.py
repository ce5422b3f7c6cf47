"""Checkpoints of version 1."""

from __future__ import annotations

import os
import pathlib
import random
import tempfile

from tests.fuzz.tables import mutate_table

from thalweg.formats.checkpoint_v1 import CheckpointV1Reader
from thalweg.formats.file_errors import RandomAccessFile
from thalweg.formats.sstable import TableReader

NAME = "version_1"
_FILES = pathlib.Path(__file__).parent.parent / "golden" / "data" / "files" / "checkpoints"
_PATH = os.path.join(tempfile.mkdtemp(prefix="fuzz-v1-"), "v1")


def seeds() -> list[bytes]:
    """What TensorFlow wrote."""
    return [(_FILES / "v1").read_bytes()]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """A changed table."""
    file = RandomAccessFile(str(_FILES / "v1"))
    try:
        return mutate_table(rng, dict(TableReader(file).items()))
    finally:
        file.close()


def run(data: bytes) -> None:
    """Reads all tensors that there are."""
    with open(_PATH, "wb") as out:
        out.write(data)
    error: Exception | None = None
    with CheckpointV1Reader(_PATH) as reader:
        for name in reader.names():
            try:
                reader.read(name)
            except Exception as e:  # the others are read all the same
                if error is None or not hasattr(e, "error_code"):
                    error = e
    if error is not None:
        raise error
