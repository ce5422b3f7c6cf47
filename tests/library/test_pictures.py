"""Encoding pictures, and pictures that are none. What decoding gives is in test_record_files.py."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

import thalweg as tf
from thalweg.formats.images import ImageError
from thalweg.formats.images.bmp import decode_bmp
from thalweg.formats.images.gif import decode_gif
from thalweg.formats.images.jpeg import decode_jpeg
from thalweg.formats.images.png import decode_png


def run(make: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(make())


def picture(height: int = 20, width: int = 30, channels: int = 3, dtype: Any = np.uint8) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    waves = np.stack([np.sin(x / (4.0 + c)) + np.cos(y / 5.0) for c in range(channels)], -1)
    return ((waves / 4 + 0.5) * np.iinfo(dtype).max).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_round_trip(channels: int, dtype: Any) -> None:
    pixels = picture(channels=channels, dtype=dtype)
    for compression in (-1, 0, 9):
        data = run(lambda level=compression: tf.image.encode_png(pixels, level))
        assert data.startswith(b"\x89PNG")
        np.testing.assert_array_equal(run(lambda data=data: tf.image.decode_png(data, dtype=dtype)), pixels)
    if dtype == np.uint8:
        with Image.open(io.BytesIO(data)) as image:
            np.testing.assert_array_equal(np.asarray(image).reshape(pixels.shape), pixels)


def test_png_of_a_batch() -> None:
    batch = np.random.default_rng(0).integers(0, 256, (2, 3, 4, 5, 3)).astype(np.uint8)
    encoded = run(lambda: tf.image.encode_png(batch))
    assert encoded.shape == (2, 3)
    np.testing.assert_array_equal(run(lambda: tf.image.decode_png(encoded[1, 2])), batch[1, 2])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "options",
    [{}, {"progressive": True}, {"optimize_size": True}, {"chroma_downsampling": False}, {"quality": 100}],
    ids=str,
)
def test_jpeg_round_trip(channels: int, options: dict[str, Any]) -> None:
    pixels = picture(channels=channels)
    data = run(lambda: tf.image.encode_jpeg(pixels, **options))
    got = run(lambda: tf.image.decode_jpeg(data, dct_method="INTEGER_ACCURATE"))
    assert np.abs(got.astype(int) - pixels).mean() < 2
    assert run(lambda: tf.image.extract_jpeg_shape(data)).tolist() == [20, 30, channels]
    assert run(lambda: [tf.image.is_jpeg(data), tf.image.is_jpeg(b"GIF")]) == [True, False]


def test_jpeg_headers() -> None:
    data = run(
        lambda: tf.image.encode_jpeg(picture(), density_unit="cm", x_density=72, y_density=73, xmp_metadata="about")
    )
    assert data[:20] == b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x02\x00\x48\x00\x49\x00\x00"
    assert data[20:].startswith(b"\xff\xe1\x00\x24http://ns.adobe.com/xap/1.0/\0about")
    assert run(lambda: tf.image.encode_jpeg(picture()))[13:18] == b"\x01\x01\x2c\x01\x2c"


def test_jpeg_quality_from_a_tensor() -> None:
    sizes = [len(run(lambda q=q: tf.raw_ops.EncodeJpegVariableQuality(images=picture(), quality=q))) for q in (10, 50, 95)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.image.encode_jpeg(picture(channels=2)), "1 or 3 channels"),
        (lambda: tf.image.encode_jpeg(picture(), format="grayscale"), "expects 1 channels"),
        (lambda: tf.image.encode_jpeg(picture(), quality=101), r"quality must be in \[0,100\]"),
        (lambda: tf.image.encode_jpeg(np.zeros((0, 3, 3), np.uint8)), "empty"),
        (lambda: tf.image.encode_png(np.zeros((0, 3, 3), np.uint8)), "empty"),
        (lambda: tf.image.encode_png(picture(channels=5)), "1, 2, 3, or 4 channels"),
        (lambda: tf.image.encode_png(picture(), compression=10), r"\[-1,9\]"),
        (lambda: tf.image.decode_jpeg(b"hello"), "Unknown image file format"),
        (lambda: tf.image.decode_jpeg(b""), "Input is empty"),
        (lambda: tf.image.decode_jpeg(b"\xff\xd8\xff\xe0"), "Invalid JPEG data, size 4"),
        (lambda: tf.image.decode_png(b"\x89PNG\r\n\x1a\n"), "Invalid PNG data, size 8"),
        (lambda: tf.image.decode_gif(b"GIF89a"), "Invalid GIF data, size 6"),
        (lambda: tf.image.decode_bmp(b"BM"), "Incomplete bmp"),
        (lambda: tf.image.decode_png(b"BM" + bytes(60)), "Use `decode_bmp`"),
        (lambda: tf.image.decode_bmp(b"GIF89a"), "Use `decode_gif`"),
        (lambda: tf.image.decode_png(b"GIF89a", channels=2), "channels"),
        (lambda: tf.image.extract_jpeg_shape(b"GIF89a"), "Invalid JPEG data"),
        (lambda: tf.image.decode_and_crop_jpeg(b"GIF89a", [0, 0, 1, 1]), "JPEG only"),
        (lambda: tf.image.decode_jpeg(b"\xff\xd8\xff", ratio=3), "ratio must be 1, 2, 4, or 8"),
        (lambda: tf.image.decode_jpeg(b"\xff\xd8\xff", dct_method="SLOW"), "dct_method"),
    ],
)
def test_errors(make: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(make)


def test_crop_windows() -> None:
    data = run(lambda: tf.image.encode_jpeg(picture()))
    whole = run(lambda: tf.image.decode_jpeg(data))
    part = run(lambda: tf.image.decode_and_crop_jpeg(data, [3, 4, 5, 6]))
    np.testing.assert_array_equal(part, whole[3:8, 4:10])
    for window in ([0, 0, 21, 1], [-1, 0, 1, 1], [0, 0, 0, 1], [0, 30, 1, 1]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="crop window"):
            run(lambda w=window: tf.image.decode_and_crop_jpeg(data, w))


def test_what_is_cut_can_be_recovered() -> None:
    data = run(lambda: tf.image.encode_jpeg(picture(64, 64)))[:-200]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid JPEG data"):
        run(lambda: tf.image.decode_jpeg(data))
    pixels = run(lambda: tf.image.decode_jpeg(data, try_recover_truncated=True, acceptable_fraction=0.2))
    assert pixels.shape == (64, 64, 3)
    assert np.abs(pixels[:8].astype(int) - picture(64, 64)[:8]).mean() < 5


def chunk(name: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big")


def bombs() -> dict[str, tuple[Any, bytes]]:
    """Small files that claim to be huge."""
    header = struct.pack(">IIBBBBB", 100_000_000, 100_000_000, 16, 6, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    jpeg = bytearray(run(lambda: tf.image.encode_jpeg(picture())))
    at = jpeg.index(b"\xff\xc0")
    jpeg[at + 5 : at + 9] = b"\xff\xdc\xff\xdc"
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 60000, 60000, 0) + b"\x02\x02\x44\x01\0"
    screen = struct.pack("<HHBBB", 60000, 60000, 0x80, 0, 0) + bytes(6)
    small = b"\x2c" + struct.pack("<HHHHB", 59999, 59999, 1, 1, 0) + b"\x02\x02\x44\x01\0"
    bmp = b"BM" + struct.pack("<IHHI", 60, 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, 1 << 30, 1 << 30, 1, 24, 0, 0, 0, 0, 0, 0)
    return {
        "png": (decode_png, png),
        "jpeg": (decode_jpeg, bytes(jpeg)),
        "gif": (decode_gif, b"GIF89a" + screen + frame + b";"),
        "gif of many frames": (decode_gif, b"GIF89a" + screen + small * 1000 + b";"),
        "bmp": (decode_bmp, bmp),
    }


@pytest.mark.parametrize("name", ["png", "jpeg", "gif", "gif of many frames", "bmp"])
def test_bombs(name: str) -> None:
    decode, data = bombs()[name]
    tracemalloc.start()
    try:
        with pytest.raises(ImageError):
            decode(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_png_with_a_wrong_checksum() -> None:
    data = bytearray(run(lambda: tf.image.encode_png(picture())))
    data[60] ^= 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="checksum"):
        run(lambda: tf.image.decode_png(bytes(data)))
