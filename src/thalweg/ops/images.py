"""Pictures: JPEG, PNG, GIF and BMP as tensors and back. Source: TensorFlow's decode_image_op.cc,
encode_jpeg_op.cc, encode_png_op.cc, extract_jpeg_shape_op.cc.

Every op that decodes takes every format that its result can hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.formats.images import ImageError, kind_of
from thalweg.formats.images.bmp import decode_bmp
from thalweg.formats.images.gif import decode_gif
from thalweg.formats.images.jpeg import decode_jpeg, encode_jpeg, read_header
from thalweg.formats.images.png import decode_png, encode_png
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel import checks
from thalweg.kernel.convention import host
from thalweg.ops._arrays import shape_text

_NO_GRADIENT = NotDifferentiable("encoded pictures have no gradient")


def _fail(message: str) -> InvalidArgumentError:
    op = checks.current_op()
    return InvalidArgumentError(None, op, message if op is None else f"{op.type} '{op.name}': {message}")


def _bytes(contents: Any) -> bytes:
    if np.ndim(contents):
        raise _fail(f"`contents` must be scalar but got shape {shape_text(np.shape(contents))}")
    data: bytes = np.asarray(contents, object).item()
    if not data:
        raise _fail("Input is empty.")
    return data


def _check_channels(channels: int) -> None:
    if channels not in (0, 1, 3, 4):
        raise _fail(f"`channels` must be 0, 1, 3 or 4 but got {channels}")


def _decode(
    op: str, data: bytes, channels: int, dtype: Any = np.uint8, only_first: bool = False, **jpeg: Any
) -> np.ndarray:
    """A picture of any format but BMP; [frames, height, width, 3] for GIF. only_first: one frame."""
    kind = kind_of(data)
    if kind is None:
        raise _fail("Unknown image file format. One of JPEG, PNG, GIF, BMP required.")
    _check_channels(channels)
    if kind == "BMP":
        raise _fail(
            "Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` instead. "
            f"Op used: {op}"
        )
    try:
        if kind == "PNG":
            return decode_png(data, channels, dtype)
        if kind == "JPEG":
            return decode_jpeg(data, channels, **jpeg)
        if channels not in (0, 3):
            raise ImageError(f"channels must be 0 or 3 for GIF, got {channels}")
        return decode_gif(data, only_first)
    except ImageError as e:
        raise _fail(str(e)) from None


def _still(pixels: np.ndarray, op: str) -> np.ndarray:
    """One picture: of a GIF its only frame."""
    if pixels.ndim == 3:
        return pixels
    if len(pixels) > 1:
        raise _fail(f"Got {len(pixels)} frames, but animated gifs can only be decoded by tf.io.decode_gif or "
                    f"tf.io.decode_image. Op used: {op}")  # fmt: skip
    return pixels[0]


def _as_dtype(pixels: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if pixels.dtype == dtype:
        return pixels
    if dtype == np.float32:
        return pixels.astype(np.float32) * np.float32(1.0 / np.iinfo(pixels.dtype).max)
    return pixels.astype(np.uint16) * np.uint16(256)


def _decode_jpeg_kernel(
    contents: Any,
    *,
    channels: int,
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    acceptable_fraction: float,
    dct_method: str,
) -> np.ndarray:
    if ratio not in (1, 2, 4, 8):
        raise _fail(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    if dct_method not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        raise _fail("dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}")
    pixels = _decode(
        "DecodeJpeg",
        _bytes(contents),
        channels,
        ratio=ratio,
        recover=try_recover_truncated and acceptable_fraction < 1,
        smooth=fancy_upscaling,
        accurate=dct_method == "INTEGER_ACCURATE",
    )
    return _still(pixels, "DecodeJpeg")


def _decode_png_kernel(contents: Any, *, channels: int, dtype: np.dtype) -> np.ndarray:
    return _as_dtype(_still(_decode("DecodePng", _bytes(contents), channels, dtype), "DecodePng"), dtype)


def _decode_gif_kernel(contents: Any) -> np.ndarray:
    pixels = _decode("DecodeGif", _bytes(contents), 3)
    return pixels[None] if pixels.ndim == 3 else pixels


def _decode_bmp_kernel(contents: Any, *, channels: int) -> np.ndarray:
    data = _bytes(contents)
    _check_channels(channels)
    kind = kind_of(data)
    if kind is None:
        raise _fail("Unknown image file format. One of JPEG, PNG, GIF, BMP required.")
    if kind != "BMP":
        raise _fail(
            f"Trying to decode {kind} format using DecodeBmp op. Use `decode_{kind.lower()}` or "
            "`decode_image` instead."
        )
    try:
        return decode_bmp(data, channels)
    except ImageError as e:
        raise _fail(str(e)) from None


def _decode_image_kernel(
    contents: Any, *, channels: int, dtype: np.dtype, expand_animations: bool
) -> np.ndarray:
    data = _bytes(contents)
    _check_channels(channels)
    if kind_of(data) == "BMP":
        pixels = _decode_bmp_kernel(contents, channels=channels)
    else:
        wide = np.uint8 if dtype == np.uint8 else np.uint16
        pixels = _decode("DecodeImage", data, channels, wide, only_first=not expand_animations)
    if pixels.ndim == 4 and not expand_animations:
        pixels = pixels[0]
    return _as_dtype(pixels, dtype)


def _decode_and_crop_kernel(
    contents: Any,
    crop_window: Any,
    *,
    channels: int,
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    acceptable_fraction: float,
    dct_method: str,
) -> np.ndarray:
    data = _bytes(contents)
    kind = kind_of(data)
    if kind != "JPEG":
        raise _fail(
            f"DecodeAndCropJpeg operation can run on JPEG only, but detected {kind or 'something else'}."
        )
    if np.shape(crop_window) != (4,):
        raise _fail(f"crop_window must have four elements, got shape {shape_text(np.shape(crop_window))}")
    whole = _decode_jpeg_kernel(
        contents,
        channels=channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
    )
    y, x, height, width = (int(v) for v in crop_window)
    rows, columns, _ = whole.shape
    if not (height > 0 and width > 0 and 0 <= y <= rows - height and 0 <= x <= columns - width):
        raise _fail(
            "jpeg::Uncompress failed. Invalid JPEG data or crop window. (the window "
            f"{[y, x, height, width]} is not inside of {rows} x {columns} pixels)"
        )
    return np.ascontiguousarray(whole[y : y + height, x : x + width])


def _extract_shape_kernel(contents: Any, *, output_type: np.dtype) -> np.ndarray:
    data = _bytes(contents)
    try:
        if kind_of(data) != "JPEG":
            raise ImageError(f"Invalid JPEG data, size {len(data)}")
        header = read_header(data)
    except ImageError as e:
        raise _fail(str(e)) from None
    return np.array([header.height, header.width, header.components], output_type)


def _channels(c: ShapeContext) -> int | None:
    channels = c.attr("channels")
    if channels < 0:
        raise ValueError(f"channels must be non-negative, got {channels}")
    return channels or None


def _still_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    return [(None, None, _channels(c))]


def _gif_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    return [(None, None, None, 3)]


def _image_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    channels = _channels(c)
    return [None if c.attr("expand_animations") else (None, None, channels)]


def _crop_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    c.with_rank(1, 1)
    window = c.value(1)
    size = (None, None) if window is None else (int(window[2]), int(window[3]))
    return [(*size, _channels(c))]


def _shape_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    return [(3,)]


_JPEG_ATTRS = (
    "channels: int = 0, ratio: int = 1, fancy_upscaling: bool = True, try_recover_truncated: bool = False, "
    "acceptable_fraction: float = 1, dct_method: string = ''"
)

define_op(
    "DecodeJpeg",
    inputs="contents: string",
    outputs="image: uint8",
    attrs=_JPEG_ATTRS,
    shape=_still_shape,
    kernel=host(_decode_jpeg_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="A JPEG (or PNG, or GIF of one frame) as [height, width, channels].",
)

define_op(
    "DecodeAndCropJpeg",
    inputs="contents: string, crop_window: int32",
    outputs="image: uint8",
    attrs=_JPEG_ATTRS,
    shape=_crop_shape,
    kernel=host(_decode_and_crop_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="A part of a JPEG, as [height, width, channels]: crop_window is [y, x, height, width].",
)

define_op(
    "DecodePng",
    inputs="contents: string",
    outputs="image: dtype",
    attrs="channels: int = 0, dtype: {uint8, uint16} = uint8",
    shape=_still_shape,
    kernel=host(_decode_png_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="A PNG (or JPEG, or GIF of one frame) as [height, width, channels].",
)

define_op(
    "DecodeGif",
    inputs="contents: string",
    outputs="image: uint8",
    shape=_gif_shape,
    kernel=host(_decode_gif_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="A GIF (or JPEG, or PNG) as [frames, height, width, 3].",
)

define_op(
    "DecodeBmp",
    inputs="contents: string",
    outputs="image: uint8",
    attrs="channels: int = 0",
    shape=_still_shape,
    kernel=host(_decode_bmp_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="A BMP as [height, width, channels].",
)

define_op(
    "DecodeImage",
    inputs="contents: string",
    outputs="image: dtype",
    attrs="channels: int = 0, dtype: {uint8, uint16, float} = uint8, expand_animations: bool = True",
    shape=_image_shape,
    kernel=host(_decode_image_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="A JPEG, PNG, GIF or BMP as [height, width, channels]; a GIF as [frames, height, width, 3].",
)

define_op(
    "ExtractJpegShape",
    inputs="contents: string",
    outputs="image_shape: output_type",
    attrs="output_type: {int32, int64} = int32",
    shape=_shape_shape,
    kernel=host(_extract_shape_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="[height, width, channels] of a JPEG, from its header.",
)


def _check_jpeg(image: Any, format: str) -> np.ndarray:
    pixels = np.asarray(image)
    if pixels.ndim != 3:
        raise _fail(f"image must be 3-dimensional, got {shape_text(pixels.shape)}")
    channels = pixels.shape[2]
    if channels not in (1, 3):
        raise _fail(f"image must have 1 or 3 channels, got {shape_text(pixels.shape)}")
    wanted = {"": channels, "grayscale": 1, "rgb": 3}[format]
    if channels != wanted:
        raise _fail(f"format {format} expects {wanted} channels, got {shape_text(pixels.shape)}")
    return pixels


def _encoded(pixels: np.ndarray, quality: int, **options: Any) -> np.ndarray:
    if not 0 <= quality <= 100:
        raise _fail(f"quality must be in [0,100], got {quality}")
    try:
        return np.array(encode_jpeg(pixels, quality, **options), object)
    except ImageError as e:
        raise _fail(str(e)) from None


def _encode_jpeg_kernel(
    image: Any,
    *,
    format: str,
    quality: int,
    progressive: bool,
    optimize_size: bool,
    chroma_downsampling: bool,
    density_unit: str,
    x_density: int,
    y_density: int,
    xmp_metadata: str,
) -> np.ndarray:
    return _encoded(
        _check_jpeg(image, format),
        quality,
        progressive=progressive,
        optimize=optimize_size,
        downsample=chroma_downsampling,
        density=(density_unit, x_density, y_density),
        xmp=xmp_metadata.encode(),
    )


def _encode_variable_kernel(images: Any, quality: Any) -> np.ndarray:
    return _encoded(_check_jpeg(images, ""), int(quality))


def _encode_jpeg_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 3)
    return [()]


def _encode_variable_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 3)
    c.with_rank(1, 0)
    return [()]


define_op(
    "EncodeJpeg",
    inputs="image: uint8",
    outputs="contents: string",
    attrs="format: {'', 'grayscale', 'rgb'} = '', quality: int = 95, progressive: bool = False, "
    "optimize_size: bool = False, chroma_downsampling: bool = True, density_unit: {'in', 'cm'} = 'in', "
    "x_density: int = 300, y_density: int = 300, xmp_metadata: string = ''",
    shape=_encode_jpeg_shape,
    kernel=host(_encode_jpeg_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="[height, width, 1 or 3] as a JPEG.",
)

define_op(
    "EncodeJpegVariableQuality",
    inputs="images: uint8, quality: int32",
    outputs="contents: string",
    shape=_encode_variable_shape,
    kernel=host(_encode_variable_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="[height, width, 1 or 3] as a JPEG of a quality that a tensor gives.",
)


def _encode_png_kernel(image: Any, *, compression: int) -> np.ndarray:
    pixels = np.asarray(image)
    if pixels.ndim < 3:
        raise _fail(f"images must be at least rank 3, got {shape_text(pixels.shape)}")
    if not 1 <= pixels.shape[-1] <= 4:
        raise _fail(f"image must have 1, 2, 3, or 4 channels, got {pixels.shape[-1]}")
    if not -1 <= compression <= 9:
        raise _fail(f"compression should be in [-1,9], got {compression}")
    batch = pixels.shape[:-3]
    result = np.empty(batch, object)
    flat, pictures = result.reshape(-1), pixels.reshape((-1, *pixels.shape[-3:]))
    try:
        for i in range(flat.size):
            flat[i] = encode_png(pictures[i], compression)
    except ImageError as e:
        raise _fail(str(e)) from None
    return result


def _encode_png_shape(c: ShapeContext) -> list[Shape]:
    shape = c.with_rank_at_least(0, 3)
    return [None if shape is None else shape[:-3]]


define_op(
    "EncodePng",
    inputs="image: T",
    outputs="contents: string",
    attrs="compression: int = -1, T: {uint8, uint16} = uint8",
    shape=_encode_png_shape,
    kernel=host(_encode_png_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="[..., height, width, 1 to 4] as PNGs.",
)
