"""tf.image: pictures out of files and back."""

from __future__ import annotations

from typing import Any

from thalweg.base import dtypes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import scope


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """A JPEG as [height, width, channels], uint8. channels: 0 (as the file), 1 or 3.

    ratio: 1, 2, 4 or 8 times smaller. fancy_upscaling: colours that are stored for several pixels change
    gradually. dct_method: "INTEGER_FAST" (also what "" stands for) or "INTEGER_ACCURATE".
    try_recover_truncated, with an acceptable_fraction below 1: what is missing at the end is made up.
    """
    return emit(
        "DecodeJpeg",
        contents,
        channels=channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
        name=name,
    )


def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """A part of a JPEG; crop_window: [y, x, height, width]. The rest is as for decode_jpeg."""
    return emit(
        "DecodeAndCropJpeg",
        contents,
        crop_window,
        channels=channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
        name=name,
    )


def decode_png(
    contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None
) -> Tensor:
    """A PNG as [height, width, channels]. channels: 0 (as the file), 1, 3 or 4. dtype: uint8 or uint16."""
    return emit("DecodePng", contents, channels=channels, dtype=dtype, name=name)


def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """A GIF as [frames, height, width, 3], uint8."""
    return emit("DecodeGif", contents, name=name)


def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """A BMP as [height, width, channels], uint8. channels: 0 (as the file), 3 or 4."""
    return emit("DecodeBmp", contents, channels=channels, name=name)


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """A JPEG, PNG, GIF or BMP as [height, width, channels].

    A GIF is [frames, height, width, 3]; without expand_animations its first frame alone. dtype: uint8,
    uint16, or float32 between 0 and 1.
    """
    with scope(name, "decode_image"):
        return emit(
            "DecodeImage",
            contents,
            channels=channels or 0,
            dtype=dtype,
            expand_animations=expand_animations,
        )


def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Tensor:
    """[height, width, 1 or 3] of uint8 as a JPEG."""
    return emit(
        "EncodeJpeg",
        image,
        format=format,
        quality=quality,
        progressive=progressive,
        optimize_size=optimize_size,
        chroma_downsampling=chroma_downsampling,
        density_unit=density_unit,
        x_density=x_density,
        y_density=y_density,
        xmp_metadata=xmp_metadata,
        name=name,
    )


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """[..., height, width, 1 to 4] of uint8 or uint16 as PNGs. compression: zlib's level, or -1."""
    return emit("EncodePng", convert_to_tensor(image), compression=compression, name=name)


def extract_jpeg_shape(contents: Any, output_type: Any = dtypes.int32, name: str | None = None) -> Tensor:
    """[height, width, channels] of a JPEG, from its header."""
    return emit("ExtractJpegShape", contents, output_type=output_type, name=name)


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Whether the contents start as a JPEG does."""
    with scope(name, "is_jpeg"):
        start = emit("Substr", contents, 0, 3)
        return emit("Equal", start, b"\xff\xd8\xff", name=name)
