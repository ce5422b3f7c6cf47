"""Tensors joined, cut, stacked, repeated, padded and reversed."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.tensor_shape import Dimension
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import renamed, scope


def concat(values: Any, axis: Any, name: str | None = "concat") -> Tensor:
    """The tensors one after the other along `axis`."""
    if not isinstance(values, list | tuple):
        values = [values]
    if not values:
        raise ValueError("concat takes at least one tensor, but got an empty list")
    if len(values) > 1:
        return emit("ConcatV2", list(values), axis, name=name or "concat")
    with scope(name, "concat"):
        axis = convert_to_tensor(axis, dtypes.int32, name="concat_dim")
        if axis._shape:
            raise ValueError(f"concat takes a scalar axis, got shape {shapes.format_shape(axis._shape)}")
        return emit("Identity", values[0], name=name)


def stack(values: Any, axis: int = 0, name: str | None = "stack") -> Tensor:
    """Tensors of one shape along a new axis: a constant where all are Python values and axis is 0."""
    if axis == 0:
        try:
            return convert_to_tensor(values, name=name)
        except (TypeError, ValueError):
            pass  # Pack says what is wrong in terms of the tensors
    shape = convert_to_tensor(values[0], name=name)._shape
    if shape is not None and not -len(shape) - 1 <= axis <= len(shape):
        raise ValueError(f"axis = {axis} not in [{-len(shape) - 1}, {len(shape) + 1})")
    return emit("Pack", list(values), axis=axis, name=name or "stack")


def parallel_stack(values: Sequence[Any], name: str | None = "parallel_stack") -> Tensor:
    """Tensors of one known shape along a new first axis, copied as each becomes ready."""
    with scope(name, "parallel_stack"):
        shape = convert_to_tensor(values[0])._shape
        if not shapes.is_fully_defined(shape):
            raise ValueError(f"parallel_stack needs a known shape, got {shapes.format_shape(shape)}")
        rows = [emit("ExpandDims", v, 0) for v in values]
        return emit("ParallelConcat", rows, shape=(len(values), *shape))  # type: ignore[misc]


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str | None = "unstack") -> list[Tensor]:
    """The slices along `axis`, a tensor each. num: how many, where the shape doesn't say."""
    if num is None:
        value = convert_to_tensor(value)
        shape = value._shape
        if shape is not None:
            if not -len(shape) <= axis < len(shape):
                raise ValueError(f"axis = {axis} not in [{-len(shape)}, {len(shape)})")
            num = shape[axis]
        if num is None:
            raise ValueError(f"Cannot infer num from shape {shapes.format_shape(shape)}")
    return emit("Unpack", value, num=num, axis=axis, name=name or "unstack")


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str | None = "split"
) -> list[Tensor]:
    """value cut along `axis` into that many equal parts, or into parts of these sizes (one may be -1)."""
    name = name or "split"
    if isinstance(num_or_size_splits, numbers.Integral | Dimension):
        return emit("Split", axis, value, num_split=int(num_or_size_splits), name=name)
    sizes = convert_to_tensor(num_or_size_splits)
    if sizes._shape == ():
        raise ValueError("Rank-0 tensors are not supported as the num_or_size_splits argument to split.")
    if num is None:
        num = sizes._shape[0] if sizes._shape else None
        if num is None:
            raise ValueError(f"Cannot infer num from shape {num_or_size_splits}")
    return emit("SplitV", value, sizes, axis, num_split=num, name=name)


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """input repeated along each axis so many times."""
    return emit("Tile", input, multiples, name=name)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0
) -> Tensor:
    """tensor with paddings [rank, 2] before and after each axis: of a constant, or mirrored.

    mode: "CONSTANT", "REFLECT" (without the edge) or "SYMMETRIC" (with it), in any case.
    """
    mode = mode.upper()
    if mode == "CONSTANT":
        if not isinstance(constant_values, Tensor) and np.ndim(constant_values) == 0 and constant_values == 0:
            return emit("Pad", tensor, paddings, name=name)
        return emit("PadV2", tensor, paddings, constant_values, name=name)
    if mode in ("REFLECT", "SYMMETRIC"):
        return emit("MirrorPad", tensor, paddings, mode=mode, name=name)
    raise ValueError(f"Unknown padding mode: {mode}; it is CONSTANT, REFLECT or SYMMETRIC")


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """tensor backwards along the axes (a vector)."""
    return emit("ReverseV2", tensor, axis, name=name)


reverse_v2 = reverse


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """input with elements moved along axes by `shift` places; those that leave come in at the other end."""
    return emit("Roll", input, shift, axis, name=name)


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """Each slice along batch_axis with its first seq_lengths[i] elements along seq_axis backwards."""
    seq_axis = renamed("seq_axis", seq_axis, "seq_dim", seq_dim)
    batch_axis = renamed("batch_axis", batch_axis, "batch_dim", batch_dim)
    if seq_axis is None:
        raise ValueError("reverse_sequence needs seq_axis")
    return emit("ReverseSequence", input, seq_lengths, seq_dim=seq_axis, batch_dim=batch_axis or 0, name=name)


def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Any = None,
) -> Tensor:
    """The patches under a window that moves over images, each laid out along the last axis."""
    ksizes = renamed("sizes", sizes, "ksizes", ksizes)
    return emit(
        "ExtractImagePatches", images, ksizes=ksizes, strides=strides, rates=rates, padding=padding, name=name
    )
