"""BMP without compression, of 8 (grey), 24 and 32 bits a pixel. Source: TensorFlow's decode_image_op.cc."""

from __future__ import annotations

import struct

import numpy as np

from thalweg.formats.images import ImageError


def decode_bmp(data: bytes, channels: int = 0) -> np.ndarray:
    """[height, width, channels], uint8. channels: 0 (as the file), 3 or 4."""
    if channels not in (0, 3, 4):
        raise ImageError(f"`channels` must be 0, 3 or 4 for BMP, but got {channels}")
    if len(data) < 32:
        raise ImageError(
            f"Incomplete bmp content, requires at least 32 bytes to find the header, has {len(data)}"
        )
    start, _, width, height, _, bits = struct.unpack_from("<IIiiHH", data, 10)
    stored = bits // 8
    if bits not in (8, 24, 32):
        raise ImageError(f"Number of channels inherent in the image must be 1, 3 or 4, was {bits / 8:g}")
    if channels and channels != stored and not (stored == 3 and channels == 4):
        raise ImageError(f"channels attribute {channels} does not match bits per pixel from file {stored}")
    rows = abs(height)
    if width <= 0 or rows == 0:
        raise ImageError(f"BMP of {width} x {height} pixels")
    row = (stored * width + 3) & ~3
    if start + row * (rows - 1) + stored * width > len(data):
        raise ImageError(
            f"Incomplete bmp content, requires at least {start + row * rows} bytes, has {len(data)}"
        )
    whole = np.frombuffer(data[start : start + row * rows].ljust(row * rows, b"\0"), np.uint8)
    pixels = whole.reshape(rows, row)[:, : stored * width].reshape(rows, width, stored)
    if height > 0:
        pixels = pixels[::-1]
    if stored == 1:
        return pixels.copy()
    order = [2, 1, 0] if stored == 3 else [2, 1, 0, 3]
    pixels = pixels[..., order]
    if channels == 4 and stored == 3:
        return np.concatenate((pixels, np.full((rows, width, 1), 255, np.uint8)), -1)
    return np.ascontiguousarray(pixels)
