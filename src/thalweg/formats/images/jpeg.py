"""JPEG. Source: TensorFlow's jpeg_mem.cc.

Pillow decodes in two ways: with libjpeg's accurate transform and smooth colours, or with its fast transform
and colours as they are stored. TensorFlow uses the fast transform and smooth colours. Where a picture's
colours are stored for every pixel, or only the brightness is wanted, the second way gives the very same
numbers. Elsewhere the first one is used, which differs by up to 4 of 255.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np

from thalweg.formats.images import ImageError, decode, pillow

_START_OF_FRAME = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
#: a compressed block of 64 values has a bit at least: more pixels than this per byte are a lie
_MOST_PIXELS_PER_BYTE = 1024
_XMP = b"http://ns.adobe.com/xap/1.0/\0"


@dataclass(frozen=True)
class Header:
    """What a JPEG says of itself."""

    width: int
    height: int
    components: int
    is_adobe: bool
    #: the horizontal and vertical sampling of each component
    sampling: tuple[tuple[int, int], ...]


def read_header(data: bytes) -> Header:
    """The size of a JPEG. ImageError where there is none."""
    at, size = 2, len(data)
    is_adobe = False
    while at + 4 <= size:
        if data[at] != 0xFF:
            at += 1  # what lies between segments is skipped, as libjpeg does
            continue
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        at += 2
        if marker == 0 or marker == 1 or 0xD0 <= marker <= 0xD8:
            continue
        length = data[at] << 8 | data[at + 1]
        if marker in (0xD9, 0xDA) or length < 2 or at + length > size:
            break
        if marker == 0xEE and data[at + 2 : at + 7] == b"Adobe":
            is_adobe = True
        if marker in _START_OF_FRAME:
            if length < 8:
                break
            height, width = data[at + 3] << 8 | data[at + 4], data[at + 5] << 8 | data[at + 6]
            if not height or not width:
                break
            places = range(at + 9, min(at + 9 + 3 * data[at + 7], at + length), 3)
            sampling = tuple((data[i] >> 4, data[i] & 15) for i in places)
            return Header(width, height, data[at + 7], is_adobe, sampling)
        at += length
    raise ImageError(f"Invalid JPEG data, size {size}")


def _is_spread(header: Header, channels: int, ratio: int) -> bool:
    """Whether colours must be spread over more pixels than they are stored for."""
    if channels == 1 and header.components < 4:
        return False
    first, *others = header.sampling or ((1, 1),)
    if ratio > 1 and first == (2, 2):
        return any(o not in ((1, 1), first) for o in others)
    return any(o != first for o in others)


def decode_jpeg(
    data: bytes,
    channels: int = 0,
    ratio: int = 1,
    recover: bool = False,
    smooth: bool = True,
    accurate: bool = False,
) -> np.ndarray:
    """[height, width, channels], uint8. channels: 0 (as the file: 1 or 3), 1 or 3.

    ratio: 1, 2, 4 or 8 times smaller. recover: what is missing at the end becomes grey. smooth: colours
    stored for several pixels change gradually. accurate: libjpeg's accurate transform.
    """
    if channels not in (0, 1, 3):
        raise ImageError(f"JPEG does not support {channels} channels")
    if ratio not in (1, 2, 4, 8):
        raise ImageError(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    header = read_header(data)
    if header.width * header.height > _MOST_PIXELS_PER_BYTE * len(data):
        raise ImageError(
            f"Invalid JPEG data, size {len(data)}: it claims to be {header.width} x {header.height} pixels"
        )
    if header.components not in (1, 3, 4):
        raise ImageError(f"Invalid JPEG data: {header.components} components a pixel")
    channels = channels or min(header.components, 3)
    width, height = -(-header.width // ratio), -(-header.height // ratio)
    is_cmyk = header.components == 4
    if is_cmyk and channels == 1:
        raise ImageError("jpeg::Uncompress failed: a picture of four inks can't be had in grey")
    fast = not accurate and not (smooth and _is_spread(header, channels, ratio))
    mode = "CMYK" if is_cmyk else "RGB" if channels == 3 else "L"
    if recover:
        data += b"\xff\xd9"
    try:
        pixels = decode("jpeg", mode, width, height, data, (mode, "", ratio, int(fast)))
    except ImageError as e:
        raise ImageError(f"jpeg::Uncompress failed. Invalid JPEG data or crop window. ({e})") from None
    return _from_cmyk(pixels, header.is_adobe) if is_cmyk else pixels


def _from_cmyk(pixels: np.ndarray, is_adobe: bool) -> np.ndarray:
    """Adobe stores the inks inverted: how much light is left."""
    light = pixels.astype(np.int32) if is_adobe else 255 - pixels.astype(np.int32)
    return (light[..., 3:] * light[..., :3] // 255).astype(np.uint8)


def encode_jpeg(
    pixels: np.ndarray,
    quality: int = 95,
    progressive: bool = False,
    optimize: bool = False,
    downsample: bool = True,
    density: tuple[str, int, int] = ("in", 300, 300),
    xmp: bytes = b"",
) -> bytes:
    """[height, width, 1 or 3] as JPEG. density: unit ("in" or "cm") and pixels per unit, for printers."""
    image = pillow()
    height, width, channels = pixels.shape
    if not height or not width:
        raise ImageError(f"JPEG encoding failed: the image is empty: {list(pixels.shape)}")
    if height > 65500 or width > 65500:
        raise ImageError(f"JPEG encoding failed: an image of {height} x {width} is too large")
    array = np.ascontiguousarray(pixels)
    made = image.frombuffer("L" if channels == 1 else "RGB", (width, height), array, "raw")
    out = io.BytesIO()
    made.save(
        out,
        "JPEG",
        quality=quality or 1,
        progressive=progressive,
        optimize=optimize,
        subsampling=2 if downsample else 0,
    )
    return _with_headers(out.getvalue(), density, xmp)


def _with_headers(data: bytes, density: tuple[str, int, int], xmp: bytes) -> bytes:
    """The JFIF header with a density, and XMP metadata behind it."""
    unit, x, y = density
    if data[2:4] != b"\xff\xe0" or data[6:11] != b"JFIF\0":
        raise ImageError("the encoder wrote no JFIF header")
    end = 4 + int.from_bytes(data[4:6], "big")
    dots = (min(max(x, 0), 65535)).to_bytes(2, "big") + (min(max(y, 0), 65535)).to_bytes(2, "big")
    start = data[:13] + bytes([1 if unit == "in" else 2]) + dots + data[18:end]
    if xmp:
        payload = _XMP + xmp
        if len(payload) + 2 > 65535:
            raise ImageError(f"XMP metadata of {len(xmp)} bytes doesn't fit a JPEG segment")
        start += b"\xff\xe1" + (len(payload) + 2).to_bytes(2, "big") + payload
    return start + data[end:]
