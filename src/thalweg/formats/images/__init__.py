"""Pictures as bytes and as arrays: JPEG, PNG, GIF, BMP, with TensorFlow's rules for channels and types.

What is compressed is left to Pillow's decoders (zlib and filters, LZW, libjpeg); headers, chunks, palettes
and frames are read here. A size that a header claims is held against the number of bytes there are, before
any memory is asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np


class ImageError(ValueError):
    """The bytes are no picture, or not one that can be had as asked. The text says why."""


def pillow() -> Any:
    """PIL.Image, imported when the first picture comes: most programs never have one."""
    return importlib.import_module("PIL.Image")


def kind_of(data: bytes) -> str | None:
    """The format by its first bytes: "JPEG", "PNG", "GIF", "BMP" or None."""
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith(b"GIF8"):
        return "GIF"
    if data.startswith(b"BM"):
        return "BMP"
    return None


def decode(
    decoder: str, mode: str, width: int, height: int, data: bytes, args: tuple[Any, ...]
) -> np.ndarray:
    """What one of Pillow's decoders makes of compressed data: [height, width, channels], uint8."""
    image = pillow()
    try:
        made = image.frombytes(mode, (width, height), data, decoder, args)
    except (ValueError, OSError, MemoryError, SystemError) as e:
        raise ImageError(str(e) or type(e).__name__) from None
    array = np.asarray(made)
    return array.reshape(height, width, -1)
