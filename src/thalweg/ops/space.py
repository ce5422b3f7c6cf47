"""Blocks of space into depth or batch, and back.

Source: TensorFlow's spacetodepth_op.cc, spacetobatch_op.cc, array_grad.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from thalweg.base.shape import Dim, Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import traceable
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, ints, shape_text
from thalweg.ops._types import INDEX

_BLOCK_ATTRS = "T: type, block_size: int >= 2, data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"


def _image_axes(data_format: str) -> tuple[int, int, int]:
    """Height, width, channels."""
    if data_format == "NCHW_VECT_C":
        raise ValueError("data_format NCHW_VECT_C is for quantized GPU kernels only: use NHWC or NCHW")
    return (1, 2, 3) if data_format == "NHWC" else (2, 3, 1)


def _divided(n: Dim, by: int, what: str) -> Dim:
    if n is not None and n % by:
        raise ValueError(f"Dimension size must be evenly divisible by {by} but is {n}: {what}")
    return None if n is None else n // by


def _times(n: Dim, m: int) -> Dim:
    return None if n is None else n * m


def _space_to_depth_shape(c: ShapeContext) -> list[Shape]:
    s, b = list(c.with_rank(0, 4) or ()), c.attr("block_size")
    height, width, depth = _image_axes(c.text("data_format"))
    s[height] = _divided(s[height], b, "the height")
    s[width] = _divided(s[width], b, "the width")
    s[depth] = _times(s[depth], b * b)
    return [tuple(s)]


def _depth_to_space_shape(c: ShapeContext) -> list[Shape]:
    s, b = list(c.with_rank(0, 4) or ()), c.attr("block_size")
    height, width, depth = _image_axes(c.text("data_format"))
    s[height] = _times(s[height], b)
    s[width] = _times(s[width], b)
    s[depth] = _divided(s[depth], b * b, "the depth")
    return [tuple(s)]


def _space_to_depth_kernel(x: Any, *, block_size: int, data_format: str) -> Any:
    b, shape = block_size, np.shape(x)
    height, width, _ = _image_axes(data_format)
    fail_unless(
        shape[height] % b == 0 and shape[width] % b == 0,
        lambda: f"Image width {shape[width]} and height {shape[height]} should be divisible by block_size: "
        f"{b}",
    )
    if data_format == "NHWC":
        n, h, w, c = shape
        blocks = arrays.reshape(x, (n, h // b, b, w // b, b, c))
        return arrays.reshape(arrays.transpose(blocks, (0, 1, 3, 2, 4, 5)), (n, h // b, w // b, b * b * c))
    n, c, h, w = shape
    blocks = arrays.reshape(x, (n, c, h // b, b, w // b, b))
    return arrays.reshape(arrays.transpose(blocks, (0, 3, 5, 1, 2, 4)), (n, b * b * c, h // b, w // b))


def _depth_to_space_kernel(x: Any, *, block_size: int, data_format: str) -> Any:
    b, shape = block_size, np.shape(x)
    depth = _image_axes(data_format)[2]
    fail_unless(
        shape[depth] % (b * b) == 0,
        lambda: f"Input depth dimension {shape[depth]} should be divisible by: {b * b}",
    )
    if data_format == "NHWC":
        n, h, w, c = shape
        blocks = arrays.reshape(x, (n, h, w, b, b, c // (b * b)))
        return arrays.reshape(arrays.transpose(blocks, (0, 1, 3, 2, 4, 5)), (n, h * b, w * b, c // (b * b)))
    n, c, h, w = shape
    blocks = arrays.reshape(x, (n, b, b, c // (b * b), h, w))
    return arrays.reshape(arrays.transpose(blocks, (0, 3, 4, 1, 5, 2)), (n, c // (b * b), h * b, w * b))


def _inverse(op_type: str) -> Any:
    def gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor]:
        form = op._attrs["data_format"].decode()
        return [emit(op_type, dy, block_size=op._attrs["block_size"], data_format=form)]

    return gradient


define_op(
    "SpaceToDepth",
    inputs="input: T",
    outputs="output: T",
    attrs=_BLOCK_ATTRS,
    shape=_space_to_depth_shape,
    kernel=traceable(_space_to_depth_kernel, host=_space_to_depth_kernel),
    gradient=_inverse("DepthToSpace"),
    doc="Blocks of block_size x block_size pixels as one pixel with more channels.",
)

define_op(
    "DepthToSpace",
    inputs="input: T",
    outputs="output: T",
    attrs=_BLOCK_ATTRS,
    shape=_depth_to_space_shape,
    kernel=traceable(_depth_to_space_kernel, host=_depth_to_space_kernel),
    gradient=_inverse("SpaceToDepth"),
    doc="Channels spread over blocks of block_size x block_size pixels.",
)


def _block_count(c: ShapeContext) -> tuple[list[int] | None, list[list[int]] | None]:
    """Block sizes and paddings, where known; checked."""
    blocks, table = c.value(1), c.value(2)
    if blocks is not None and (blocks < 1).any():
        raise ValueError(f"block_shape must be positive, got {blocks.tolist()}")
    if table is not None and (table < 0).any():
        raise ValueError(f"paddings and crops cannot be negative, got {table.tolist()}")
    return (None if blocks is None else ints(blocks)), (None if table is None else table.tolist())


def _batch_shape(c: ShapeContext, to_batch: bool) -> list[Shape]:
    s = c.shape(0)
    blocks, table = _block_count(c)
    if s is None:
        return [None]
    length = (c.with_rank(1, 1) or (None,))[0]
    if length is None:
        return [(None,) * len(s)]
    if len(s) < length + 1:
        raise ValueError(f"Shape must be at least rank {length + 1} but is rank {len(s)}")
    space: list[Dim] = [None] * length
    batch: Dim = None
    if blocks is not None:
        volume = math.prod(blocks)
        batch = _times(s[0], volume) if to_batch else _divided(s[0], volume, "the batch")
        if table is not None:
            for i, (b, (before, behind)) in enumerate(zip(blocks, table, strict=True)):
                n = s[i + 1]
                if to_batch:
                    space[i] = _divided(None if n is None else n + before + behind, b, f"dimension {i + 1}")
                else:
                    space[i] = None if n is None else n * b - before - behind
                    if n is not None and n * b < before + behind:
                        raise ValueError(
                            f"crops {before}, {behind} exceed the size {n * b} of dimension {i + 1}"
                        )
    return [(batch, *space, *s[length + 1 :])]


def _space_to_batch_kernel(x: Any, block_shape: Any, paddings: Any) -> Any:
    blocks, table = ints(block_shape), np.asarray(paddings)
    m, rank = len(blocks), np.ndim(x)
    rest = [0] * (rank - 1 - m)
    x = arrays.pad(x, arrays.zero(x.dtype), [0, *ints(table[:, 0]), *rest], [0, *ints(table[:, 1]), *rest])
    shape = np.shape(x)
    for i, b in enumerate(blocks):
        fail_unless(
            shape[i + 1] % b == 0,
            lambda i=i, b=b: f"padded_shape[{i}]={shape[i + 1]} is not divisible by block_shape[{i}]={b}",
        )
    counts = [n // b for n, b in zip(shape[1 : m + 1], blocks, strict=True)]
    inner = [d for pair in zip(counts, blocks, strict=True) for d in pair]
    split = [shape[0], *inner, *shape[m + 1 :]]
    perm = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m + 1, 2), *range(2 * m + 1, len(split))]
    out = (shape[0] * math.prod(blocks), *counts, *shape[m + 1 :])
    return arrays.reshape(arrays.transpose(arrays.reshape(x, split), perm), out)


def _batch_to_space_kernel(x: Any, block_shape: Any, crops: Any) -> Any:
    blocks, table = ints(block_shape), np.asarray(crops)
    m, shape = len(blocks), np.shape(x)
    volume = math.prod(blocks)
    fail_unless(
        shape[0] % volume == 0,
        lambda: f"Input batch dimension ({shape[0]}) is not divisible by product of block sizes ({volume})",
    )
    split = [*blocks, shape[0] // volume, *shape[1:]]
    perm = [m, *[d for i in range(m) for d in (m + 1 + i, i)], *range(2 * m + 1, len(split))]
    wide = [n * b for n, b in zip(shape[1 : m + 1], blocks, strict=True)]
    x = arrays.reshape(
        arrays.transpose(arrays.reshape(x, split), perm), (shape[0] // volume, *wide, *shape[m + 1 :])
    )
    start, limit = [0] * len(shape), list(np.shape(x))
    for i, (before, behind) in enumerate(table.tolist()):
        fail_unless(
            before + behind <= wide[i],
            lambda i=i: f"cropped_shape[{i}] must be non-negative, got crops {table[i].tolist()} of "
            f"{wide[i]}",
        )
        start[i + 1], limit[i + 1] = before, wide[i] - behind
    return arrays.strided(x, start, limit)


define_op(
    "SpaceToBatchND",
    inputs="input: T, block_shape: Tblock_shape, paddings: Tpaddings",
    outputs="output: T",
    attrs=f"T: type, Tblock_shape: {INDEX} = int32, Tpaddings: {INDEX} = int32",
    shape=lambda c: _batch_shape(c, True),
    kernel=traceable(
        _space_to_batch_kernel, host=_space_to_batch_kernel, static=("block_shape", "paddings")
    ),
    gradient=lambda emit, op, dy: [
        emit("BatchToSpaceND", dy, op.inputs[1], op.inputs[2]),
        None,
        None,
    ],
    doc="Padded, with the places inside of each block moved into the batch.",
)

define_op(
    "BatchToSpaceND",
    inputs="input: T, block_shape: Tblock_shape, crops: Tcrops",
    outputs="output: T",
    attrs=f"T: type, Tblock_shape: {INDEX} = int32, Tcrops: {INDEX} = int32",
    shape=lambda c: _batch_shape(c, False),
    kernel=traceable(_batch_to_space_kernel, host=_batch_to_space_kernel, static=("block_shape", "crops")),
    gradient=lambda emit, op, dy: [
        emit("SpaceToBatchND", dy, op.inputs[1], op.inputs[2]),
        None,
        None,
    ],
    doc="The inverse of SpaceToBatchND: batches laid out as blocks, then cropped.",
)

