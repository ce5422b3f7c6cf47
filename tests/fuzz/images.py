"""Pictures of all kinds."""

from __future__ import annotations

import pathlib
import random
import zlib

import numpy as np
from tests.fuzz.driver import mutate_bytes

from thalweg.formats.images import ImageError, kind_of
from thalweg.formats.images.bmp import decode_bmp
from thalweg.formats.images.gif import decode_gif
from thalweg.formats.images.jpeg import decode_jpeg, read_header
from thalweg.formats.images.png import decode_png

NAME = "images"
ALLOWED = (ImageError,)
_PICTURES = pathlib.Path(__file__).parents[1] / "golden" / "data" / "files" / "pictures.npz"
_START = b"\x89PNG\r\n\x1a\n"


def seeds() -> list[bytes]:
    """The pictures that TensorFlow's values were recorded for."""
    with np.load(_PICTURES) as data:
        return [data[name].tobytes() for name in data.files]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """A changed picture that still starts as one; of a PNG often with good checksums, and its data unpacked."""
    if data.startswith(_START) and rng.random() < 0.8:
        return _mutated_png(rng, data)
    return data[:3] + mutate_bytes(rng, data[3:])


def _mutated_png(rng: random.Random, data: bytes) -> bytes:
    chunks, at = [], len(_START)
    while at + 12 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    i = rng.randrange(len(chunks))
    name, body = chunks[i]
    if name == b"IDAT" and rng.random() < 0.5:
        body = zlib.compress(mutate_bytes(rng, zlib.decompress(body)))
    else:
        body = mutate_bytes(rng, body)
    chunks[i] = name, body
    if rng.random() < 0.1:
        rng.shuffle(chunks)
    return _START + b"".join(
        len(b).to_bytes(4, "big") + n + b + zlib.crc32(n + b).to_bytes(4, "big") for n, b in chunks
    )


def run(data: bytes) -> None:
    """Decodes it."""
    kind = kind_of(data)
    if kind == "JPEG":
        read_header(data)
        decode_jpeg(data)
        decode_jpeg(data, 3, 2, recover=True)
    elif kind == "PNG":
        decode_png(data)
        decode_png(data, 4, np.uint16)
        decode_png(data, 1)
    elif kind == "GIF":
        decode_gif(data)
    elif kind == "BMP":
        decode_bmp(data)
