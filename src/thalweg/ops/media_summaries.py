"""Summaries of images and sound. Source: TensorFlow's summary_image_op.cc, summary_audio_op.cc."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from tensorboard.compat.proto import summary_pb2

from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import host
from thalweg.ops._summary_messages import serialized, series_tag, tag_of

# ---- images ----------------------------------------------------------------------------------------------

#: a range of values below which an image counts as empty
_ZERO = 1e-6
_PNG_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}


def _png(image: np.ndarray) -> bytes:
    """An image of bytes (height, width, 1, 3 or 4 channels) as a PNG file."""
    height, width, channels = image.shape
    # each line starts with its filter, 0 for none
    lines = np.zeros((height, 1 + width * channels), np.uint8)
    lines[:, 1:] = image.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, _PNG_COLOUR_TYPES[channels], 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines.tobytes())), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _normalized(image: np.ndarray, bad_color: np.ndarray) -> np.ndarray:
    """Floats as bytes: from 0 to the largest, or round 128 where some are negative.

    Pixels that are not finite get bad_color and don't count.
    """
    kind = image.dtype.type
    finite = np.isfinite(image).all(axis=-1)
    inside = image[finite].astype(np.float32)
    low, high = (float(inside.min()), float(inside.max())) if inside.size else (np.inf, -np.inf)
    if low < 0:
        largest = np.float32(max(abs(low), abs(high)))
        scale, offset = (np.float32(127) / largest if largest >= _ZERO else 0), 128
    else:
        scale, offset = (np.float32(255) / np.float32(high) if high >= _ZERO else 0), 0
    result = np.empty(image.shape, np.uint8)
    result[finite] = np.clip(image[finite] * kind(scale) + kind(offset), 0, 255).astype(np.uint8)
    result[~finite] = bad_color
    return result


def _image_kernel(tag: Any, tensor: Any, *, max_images: int, bad_color: Any) -> np.ndarray:
    images = np.asarray(tensor)
    text = tag_of(tag)
    if images.ndim != 4 or images.shape[3] not in (1, 3, 4):
        raise ValueError(f"Tensor must be 4-D with last dim 1, 3, or 4, not {list(images.shape)}")
    _, height, width, depth = images.shape
    if not height * width:
        raise ValueError(f"input tensor must have non-zero dims. Found: {list(images.shape)}.")
    if height * width >= 1 << 29:
        raise ValueError(f"Tensor too large for summary {list(images.shape)}")
    colour = np.asarray(bad_color)
    if colour.dtype != np.uint8 or colour.ndim != 1:
        raise ValueError(f"bad_color must be a vector of uint8, got {colour.dtype}{list(colour.shape)}")
    if images.dtype != np.uint8 and depth > len(colour):
        raise ValueError(
            f"expected depth <= bad_color.size, got depth = {depth}, bad_color.size = {len(colour)}"
        )
    summary = summary_pb2.Summary()
    for i, image in enumerate(images[:max_images]):
        if image.dtype != np.uint8:
            image = _normalized(image, colour[:depth])
        message = summary.value.add(tag=series_tag(text, "image", i, max_images)).image
        message.height, message.width, message.colorspace = height, width, depth
        message.encoded_image_string = _png(image)
    return serialized(summary)


def _image_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(1, 4)
    return [()]


define_op(
    "ImageSummary",
    inputs="tag: string, tensor: T",
    outputs="summary: string",
    attrs="max_images: int >= 1 = 3, T: {uint8, float, half, double} = float, bad_color: tensor = "
    "{'uint8': [255, 0, 0, 255]}",
    shape=_image_shape,
    kernel=host(_image_kernel, foldable=False),
    gradient=NotDifferentiable("it is text"),
    doc="A Summary message with the first images of a batch as PNG files.",
)

# ---- sound -----------------------------------------------------------------------------------------------


def _wav(samples: np.ndarray, rate: int) -> bytes:
    """Samples (frames, channels) between -1 and 1 as a WAV file of 16 bits."""
    # roundf: halves go away from zero
    scaled = samples.astype(np.float32) * np.float32(1 << 15)
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
    data = np.clip(np.nan_to_num(rounded), -(1 << 15), (1 << 15) - 1).astype("<i2").tobytes()
    channels = samples.shape[1]
    frame = 2 * channels
    head = struct.pack("<4sI4s", b"RIFF", 36 + len(data), b"WAVE")
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, channels, rate, rate * frame, frame, 16)
    return head + form + struct.pack("<4sI", b"data", len(data)) + data


def _audio(tag: Any, tensor: Any, sample_rate: float, max_outputs: int) -> np.ndarray:
    sound = np.asarray(tensor)
    text = tag_of(tag)
    if sound.ndim not in (2, 3):
        raise ValueError(f"Tensor must be 3-D or 2-D, got: {list(sound.shape)}")
    if sound.ndim == 2:
        sound = sound[:, :, None]
    rate = int(sample_rate)
    if not 0 < rate < 1 << 32:
        raise ValueError(f"sample_rate must be > 0 and fit 32 bits, got: {sample_rate:g}")
    if not sound.shape[2]:
        raise ValueError(f"the tensor must have channels, got: {list(np.shape(tensor))}")
    summary = summary_pb2.Summary()
    for i, samples in enumerate(sound[:max_outputs]):
        message = summary.value.add(tag=series_tag(text, "audio", i, max_outputs)).audio
        message.sample_rate = sample_rate
        message.length_frames, message.num_channels = samples.shape
        message.content_type = "audio/wav"
        message.encoded_audio_string = _wav(samples, rate)
    return serialized(summary)


def _audio_kernel(tag: Any, tensor: Any, *, sample_rate: float, max_outputs: int) -> np.ndarray:
    return _audio(tag, tensor, sample_rate, max_outputs)


def _audio_v2_kernel(tag: Any, tensor: Any, sample_rate: Any, *, max_outputs: int) -> np.ndarray:
    if np.ndim(sample_rate):
        raise ValueError(f"sample_rate must be a scalar, got shape {list(np.shape(sample_rate))}")
    return _audio(tag, tensor, float(sample_rate), max_outputs)


def _audio_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank_at_least(1, 2)
    return [()]


define_op(
    "AudioSummary",
    inputs="tag: string, tensor: float",
    outputs="summary: string",
    attrs="sample_rate: float, max_outputs: int >= 1 = 3",
    shape=_audio_shape,
    kernel=host(_audio_kernel, foldable=False),
    gradient=NotDifferentiable("it is text"),
    doc="AudioSummaryV2 with a sample rate that is part of the node.",
)

define_op(
    "AudioSummaryV2",
    inputs="tag: string, tensor: float, sample_rate: float",
    outputs="summary: string",
    attrs="max_outputs: int >= 1 = 3",
    shape=_audio_shape,
    kernel=host(_audio_v2_kernel, foldable=False),
    gradient=NotDifferentiable("it is text"),
    doc="A Summary message with the first sounds of a batch as WAV files.",
)
