"""Makes small pictures of every kind, as files: run with Pillow, where thalweg's tests run.

    python tests/golden/make_pictures.py

Writes tests/golden/data/files/pictures.npz: bytes by name. What TensorFlow makes of them is recorded by
record_files_records.py. Nothing of thalweg is imported.
"""

from __future__ import annotations

import io
import pathlib
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent


def picture(height: int, width: int, channels: int, dtype: Any = np.uint8) -> np.ndarray:
    """Smooth colours with a little noise and an edge."""
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / (3.0 + c) + c) + np.cos(y / (4.0 - 0.5 * c)) for c in range(channels)]
    array = np.stack(waves, -1) / 4 + 0.5
    array[height // 2 :, width // 2 :] *= 0.6
    array += np.random.default_rng(3).random(array.shape) * 0.02
    top = np.iinfo(dtype).max
    return (np.clip(array, 0, 1) * top).astype(dtype)


def saved(array: np.ndarray, mode: str, kind: str, **options: Any) -> bytes:
    """An array as a file, by Pillow."""
    image = Image.fromarray(array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array)
    if mode != image.mode:
        image = image.convert(mode, palette=Image.Palette.ADAPTIVE, colors=13) if mode == "P" else image.convert(mode)
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def chunk(name: bytes, body: bytes) -> bytes:
    """A chunk of a PNG."""
    return len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big")


def png(array: np.ndarray, kind: int, depth: int, interlaced: bool = False, extra: bytes = b"") -> bytes:
    """A PNG of samples [height, width, samples] as they are, with every filter in turn."""
    height, width, samples = array.shape
    step = max(1, samples * depth // 8)
    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    data = b""
    for top, left, down, right in passes if interlaced else [(0, 0, 1, 1)]:
        part = array[top::down, left::right]
        if part.size:
            data += b"".join(filtered(packed(part, depth), step))
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced)
    body = chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def packed(part: np.ndarray, depth: int) -> np.ndarray:
    """Rows of bytes."""
    if depth == 16:
        return part.astype(">u2").view(np.uint8).reshape(len(part), -1)
    if depth == 8:
        return part.astype(np.uint8).reshape(len(part), -1)
    bits = np.unpackbits(part.astype(np.uint8), axis=-1)[..., 8 - depth :].reshape(len(part), -1)
    return np.packbits(bits, axis=-1)


def filtered(rows: np.ndarray, step: int) -> list[bytes]:
    """Row i behind filter i % 5."""
    result, before = [], np.zeros(rows.shape[1], int)
    for i, row in enumerate(rows.astype(int)):
        left = np.concatenate((np.zeros(step, int), row))[: len(row)]
        corner = np.concatenate((np.zeros(step, int), before))[: len(row)]
        guess = left + before - corner
        near = [abs(guess - v) for v in (left, before, corner)]
        paeth = np.where((near[0] <= near[1]) & (near[0] <= near[2]), left, np.where(near[1] <= near[2], before, corner))
        from_ = [0, left, before, (left + before) // 2, paeth][i % 5]
        result.append(bytes([i % 5]) + ((row - from_) % 256).astype(np.uint8).tobytes())
        before = row
    return result


def gif() -> bytes:
    """Three frames of different sizes and palettes: one interlaced, one with a transparent colour."""
    frames = []
    for i, (left, top, width, height) in enumerate([(0, 0, 11, 9), (3, 2, 5, 5), (0, 1, 8, 8)]):
        pixels = (np.arange(width * height).reshape(height, width) * (i + 1)) % 7
        image = Image.fromarray(pixels.astype(np.uint8), "P") if False else Image.new("P", (width, height))
        image.putdata(pixels.ravel().tolist())
        image.putpalette([(40 * i + 30 * c + 9 * k) % 256 for k in range(8) for c in range(3)])
        out = io.BytesIO()
        image.save(out, "GIF", interlace=int(i == 1))
        frames.append((out.getvalue(), left, top, width, height))
    result = b"GIF89a" + struct.pack("<HHBBB", 11, 9, 0, 0, 0)
    for i, (data, left, top, width, height) in enumerate(frames):
        flags = data[10]
        colors = data[13 : 13 + (3 << ((flags & 7) + 1))]
        at = data.index(b"\x2c", 13 + len(colors))
        control = bytes([0x21, 0xF9, 4, int(i == 2), 5, 0, 3, 0])
        place = struct.pack("<BHHHHB", 0x2C, left, top, width, height, 0x80 | (data[at + 9] & 0x40) | (flags & 7))
        own = data[at + 9] & 0x80
        start = at + 10 + ((3 << ((data[at + 9] & 7) + 1)) if own else 0)
        result += control + place + colors + data[start:-1]
    return result + b"\x3b"


def bmp(array: np.ndarray, upside_down: bool) -> bytes:
    """A BMP of 1, 3 or 4 channels; rows from the bottom up unless upside_down."""
    height, width, channels = array.shape
    rows = array if upside_down else array[::-1]
    order = {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[channels]
    lines = rows[..., order].reshape(height, -1)
    lines = np.pad(lines, ((0, 0), (0, -lines.shape[1] % 4)))
    head = struct.pack("<IHHI", 54 + lines.size, 0, 0, 54)
    info = struct.pack("<IiiHHIIiiII", 40, width, -height if upside_down else height, 1, 8 * channels, 0, 0, 0, 0, 0, 0)
    return b"BM" + head + info + lines.tobytes()


def main() -> None:
    """Writes the file."""
    rgb, grey, rgba = picture(13, 18, 3), picture(13, 18, 1), picture(9, 8, 4)
    wide = {c: picture(9, 7, c, np.uint16) for c in (1, 2, 3, 4)}
    palette = bytes(i * 5 % 256 for i in range(48))
    small = np.arange(9 * 13).reshape(9, 13, 1)
    files = {
        "rgb.jpg": saved(rgb, "RGB", "JPEG", quality=90, subsampling=2),
        "rgb444.jpg": saved(rgb, "RGB", "JPEG", quality=95, subsampling=0),
        "rgb422.jpg": saved(rgb, "RGB", "JPEG", quality=75, subsampling=1),
        "progressive.jpg": saved(rgb, "RGB", "JPEG", quality=80, progressive=True),
        "grey.jpg": saved(grey, "L", "JPEG", quality=85),
        "cmyk.jpg": saved(rgb, "CMYK", "JPEG", quality=92),
        "restart.jpg": saved(rgb, "RGB", "JPEG", quality=70, restart_marker_rows=1),
        "rgb.png": png(rgb, 2, 8),
        "grey.png": png(grey, 0, 8),
        "grey_alpha.png": png(picture(7, 6, 2), 4, 8),
        "rgba.png": png(rgba, 6, 8),
        "interlaced.png": png(rgb, 2, 8, interlaced=True),
        "interlaced16.png": png(wide[3], 2, 16, interlaced=True),
        "grey1.png": png(small % 2, 0, 1),
        "grey2.png": png(small % 4, 0, 2),
        "grey4.png": png(small % 16, 0, 4),
        "grey16.png": png(wide[1], 0, 16),
        "grey_alpha16.png": png(wide[2], 4, 16),
        "rgb16.png": png(wide[3], 2, 16),
        "rgba16.png": png(wide[4], 6, 16),
        "palette.png": png(small % 16, 3, 8, extra=chunk(b"PLTE", palette)),
        "palette4.png": png(small % 16, 3, 4, extra=chunk(b"PLTE", palette)),
        "palette_alpha.png": png(small % 16, 3, 8, extra=chunk(b"PLTE", palette) + chunk(b"tRNS", bytes(range(0, 90, 10)))),
        "grey_clear.png": png(grey, 0, 8, extra=chunk(b"tRNS", struct.pack(">H", int(grey[3, 4, 0])))),
        "rgb_clear.png": png(rgb, 2, 8, extra=chunk(b"tRNS", struct.pack(">HHH", *rgb[5, 6].tolist()))),
        "three.gif": gif(),
        "one.gif": saved(rgb, "P", "GIF"),
        "rgb.bmp": bmp(rgb[:5, :7], False),
        "rgba.bmp": bmp(rgba[:5, :6], False),
        "top_down.bmp": bmp(rgb[:5, :6], True),
        "grey.bmp": bmp(grey[:5, :7], False),
    }
    path = HERE / "data" / "files" / "pictures.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **{k: np.frombuffer(v, np.uint8) for k, v in files.items()})
    print(f"{len(files)} pictures, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
