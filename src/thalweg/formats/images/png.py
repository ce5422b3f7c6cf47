"""PNG, of 8 and 16 bits. Source: TensorFlow's png_io.cc, and the PNG specification."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np

from thalweg.formats.images import ImageError, decode

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _RGB, _PALETTE, _GREY_ALPHA, _RGBA = 0, 2, 3, 4, 6
_DEPTHS = {
    _GREY: (1, 2, 4, 8, 16),
    _RGB: (8, 16),
    _PALETTE: (1, 2, 4, 8),
    _GREY_ALPHA: (8, 16),
    _RGBA: (8, 16),
}
_SAMPLES = {_GREY: 1, _RGB: 3, _PALETTE: 1, _GREY_ALPHA: 2, _RGBA: 4}
#: deflate makes at most this many bytes of one
_MOST_INFLATED = 1032


@dataclass(frozen=True)
class _Picture:
    """The chunks that matter."""

    width: int
    height: int
    depth: int
    kind: int
    interlaced: int
    palette: bytes
    transparency: bytes
    data: bytes


def _read(data: bytes) -> _Picture:
    bad = f"Invalid PNG data, size {len(data)}"
    header: tuple[int, ...] | None = None
    palette, transparency = b"", b""
    parts: list[bytes] = []
    at = len(_SIGNATURE)
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        name, start, end = data[at + 4 : at + 8], at + 8, at + 8 + length
        if end + 4 > len(data):
            break
        body = data[start:end]
        critical = name[:1].isupper()
        if critical and zlib.crc32(body, zlib.crc32(name)) != int.from_bytes(data[end : end + 4], "big"):
            raise ImageError(f"{bad}: the checksum of the chunk at byte {at} is wrong")
        at = end + 4
        if name == b"IHDR" and length == 13:
            header = struct.unpack(">IIBBBBB", body)
        elif header is None:
            raise ImageError(f"{bad}: it doesn't start with its header")
        elif name == b"PLTE":
            palette = body
        elif name == b"tRNS":
            transparency = body
        elif name == b"IDAT":
            parts.append(body)
        elif name == b"IEND":
            break
        elif critical:
            raise ImageError(f"{bad}: the chunk {name!r} is not known")
    if header is None or not parts:
        raise ImageError(bad)
    width, height, depth, kind, compression, filters, interlaced = header
    if depth not in _DEPTHS.get(kind, ()) or compression or filters or interlaced > 1:
        raise ImageError(f"{bad}: header {header}")
    if not 0 < width < 1 << 27 or not 0 < height < 1 << 27:
        raise ImageError(f"{bad}: {width} x {height} pixels")
    if kind == _PALETTE and (not palette or len(palette) % 3 or len(palette) > 768):
        raise ImageError(f"{bad}: a palette of {len(palette)} bytes")
    joined = b"".join(parts)
    row = (width * depth * _SAMPLES[kind] + 7) // 8 + 1
    if height * row > _MOST_INFLATED * (len(joined) + 64):
        raise ImageError(f"{bad}: it claims to be {width} x {height} pixels")
    return _Picture(width, height, depth, kind, interlaced, palette, transparency, joined)


def _samples(picture: _Picture) -> np.ndarray:
    """[height, width, samples] as stored: uint8, or uint16 where the depth is 16."""
    kind, depth = picture.kind, picture.depth

    def pixels(mode: str, rawmode: str) -> np.ndarray:
        try:
            return decode(
                "zip", mode, picture.width, picture.height, picture.data, (rawmode, picture.interlaced)
            )
        except ImageError as e:
            raise ImageError(f"Invalid PNG data: {e}") from None

    if depth < 8:
        return pixels("P", f"P;{depth}")
    if depth == 8:
        mode = {_GREY: "L", _RGB: "RGB", _PALETTE: "P", _GREY_ALPHA: "LA", _RGBA: "RGBA"}[kind]
        return pixels(mode, mode)
    if kind in (_GREY, _GREY_ALPHA):  # two bytes a sample are two samples of a byte, as far as filters know
        mode = "LA" if kind == _GREY else "RGBA"
        halves = pixels(mode, mode)
        return halves[..., 0::2].astype(np.uint16) << 8 | halves[..., 1::2]
    mode = "RGB" if kind == _RGB else "RGBA"
    high = pixels(mode, f"{mode};16B").astype(np.uint16)
    return high << 8 | pixels(mode, f"{mode};16L")  # read as if the low bytes were the high ones


def decode_png(data: bytes, channels: int = 0, dtype: np.dtype | type = np.uint8) -> np.ndarray:
    """[height, width, channels] of uint8 or uint16. channels: 0 (as the file) or 1 to 4."""
    picture = _read(data)
    pixels = _samples(picture)
    if picture.kind == _PALETTE:
        pixels = _looked_up(pixels, picture)
    else:
        pixels = _stretched(pixels, picture, channels == 4)
    pixels = as_channels(pixels, channels)
    wide = pixels.dtype == np.uint16
    if np.dtype(dtype) == np.uint16 and not wide:
        pixels = pixels.astype(np.uint16) * 257
    elif np.dtype(dtype) == np.uint8 and wide:
        pixels = (pixels >> 8).astype(np.uint8)
    return pixels


def _looked_up(indices: np.ndarray, picture: _Picture) -> np.ndarray:
    colors = np.zeros((256, 4), np.uint8)
    colors[:, 3] = 255
    given = np.frombuffer(picture.palette, np.uint8).reshape(-1, 3)
    colors[: len(given), :3] = given
    alpha = np.frombuffer(picture.transparency[:256], np.uint8)
    colors[: len(alpha), 3] = alpha
    return (colors if len(alpha) else colors[:, :3])[indices[..., 0]]


def _stretched(pixels: np.ndarray, picture: _Picture, with_alpha: bool) -> np.ndarray:
    """Small greys stretched to a byte; where an alpha channel is wanted, a transparent colour as one."""
    clear = None
    size = 2 * _SAMPLES[picture.kind]
    if with_alpha and picture.kind in (_GREY, _RGB) and len(picture.transparency) >= size:
        wanted = np.frombuffer(picture.transparency[:size], ">u2")
        clear = (pixels == wanted.astype(np.int64)).all(-1)
    if picture.depth < 8:
        pixels = pixels * np.uint8(255 // ((1 << picture.depth) - 1))
    if clear is None:
        return pixels
    top = np.iinfo(pixels.dtype).max
    return np.concatenate((pixels, np.where(clear, 0, top).astype(pixels.dtype)[..., None]), -1)


def as_channels(pixels: np.ndarray, channels: int) -> np.ndarray:
    """A picture of 1 to 4 channels with as many as asked for (0: as it is)."""
    has = pixels.shape[-1]
    if channels in (0, has):
        return pixels
    color = pixels[..., : 1 if has < 3 else 3]
    if channels >= 3 and has < 3:
        color = np.repeat(color, 3, -1)
    elif channels < 3 and has >= 3:
        color = _grey(color)
    if channels in (1, 3):
        return np.ascontiguousarray(color)
    top = np.iinfo(pixels.dtype).max
    alpha = pixels[..., -1:] if has in (2, 4) else np.full((*pixels.shape[:-1], 1), top, pixels.dtype)
    return np.concatenate((color, alpha), -1)


def _grey(color: np.ndarray) -> np.ndarray:
    """libpng's weights for the red, green and blue that TensorFlow asks for, in units of 1/32768."""
    red, green = 9797, 19234
    weights = np.array([red, green, 32768 - red - green], np.int64)
    half = 16384 if color.dtype == np.uint16 else 0
    grey = (color.astype(np.int64) @ weights + half) >> 15
    same = (color[..., 0] == color[..., 1]) & (color[..., 1] == color[..., 2])
    return np.where(same, color[..., 0], grey).astype(color.dtype)[..., None]


def encode_png(pixels: np.ndarray, compression: int = -1) -> bytes:
    """[height, width, 1 to 4] of uint8 or uint16 as PNG. compression: zlib's level."""
    height, width, channels = pixels.shape
    if not height or not width:
        raise ImageError(f"PNG encoding failed: the image is empty: {list(pixels.shape)}")
    depth = pixels.dtype.itemsize * 8
    kind = {1: _GREY, 2: _GREY_ALPHA, 3: _RGB, 4: _RGBA}[channels]
    rows = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder(">"))).view(np.uint8)
    filtered = _filtered(rows.reshape(height, -1), channels * depth // 8)
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(filtered, compression)), (b"IEND", b"")]
    return _SIGNATURE + b"".join(
        len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big")
        for name, body in chunks
    )


def _filtered(rows: np.ndarray, step: int) -> bytes:
    """Each row behind the filter whose differences are the smallest; step: bytes of a pixel."""
    left = np.zeros_like(rows)
    left[:, step:] = rows[:, :-step]
    up = np.zeros_like(rows)
    up[1:] = rows[:-1]
    both = np.zeros_like(rows)
    both[1:] = left[:-1]
    average = ((left.astype(np.uint16) + up) >> 1).astype(np.uint8)
    candidates = np.stack((rows, rows - left, rows - up, rows - average, rows - _paeth(left, up, both)))
    cost = np.minimum(candidates, -candidates).sum(-1, dtype=np.int64)
    best = cost.argmin(0)
    result = np.empty((len(rows), rows.shape[1] + 1), np.uint8)
    result[:, 0] = best
    result[:, 1:] = candidates[best, np.arange(len(rows))]
    return result.tobytes()


def _paeth(left: np.ndarray, up: np.ndarray, both: np.ndarray) -> np.ndarray:
    a, b, c = left.astype(np.int16), up.astype(np.int16), both.astype(np.int16)
    to_a, to_b, to_c = np.abs(b - c), np.abs(a - c), np.abs(a + b - 2 * c)
    return np.where((to_a <= to_b) & (to_a <= to_c), left, np.where(to_b <= to_c, up, both))
