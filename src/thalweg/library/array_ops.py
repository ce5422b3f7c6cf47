"""Shapes, and tensors seen in another shape or passed on as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.composite import IndexedSlices, SparseTensor, SparseTensorValue
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import map_values, renamed, scope
from thalweg.library.casting import cast

newaxis = None


# ---- what a tensor's shape is --------------------------------------------------------------------------


def shape(input: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The shape as a vector: a constant where it is known, else computed when run."""
    kind = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    with scope(name, "Shape") as named:
        if isinstance(input, SparseTensor | SparseTensorValue):
            return emit("Cast", input.dense_shape, DstT=kind)
        return emit.shape(convert_to_tensor(input), kind, name=named)


def shape_n(input: list[Any], out_type: Any = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """The shapes of several tensors."""
    return emit("ShapeN", input, out_type=dtypes.as_dtype(out_type), name=name)


def size(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The number of elements: a constant where it is known."""
    kind = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    with scope(name, "Size") as named:
        if isinstance(input, SparseTensor | SparseTensorValue):
            return emit("Prod", emit("Cast", input.dense_shape, DstT=kind), 0, name=named)
        x = convert_to_tensor(input)
        if x._shape and 0 in x._shape:
            return emit.constant(0, kind, named)
        return emit.size(x, kind, name=named)


def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of axes: a constant where it is known."""
    with scope(name, "Rank") as named:
        if isinstance(input, SparseTensor | SparseTensorValue):
            return emit("Size", input.dense_shape, name=named)
        return emit.rank(convert_to_tensor(input), name=named)


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape that two shapes (integer vectors) broadcast to."""
    return emit("BroadcastArgs", shape_x, shape_y)


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The static shape that two static shapes broadcast to. ValueError where they don't."""
    return TensorShape.of(shapes.broadcast(shapes.as_shape(shape_x), shapes.as_shape(shape_y)))


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """input repeated along axes of length 1 (and new ones in front) to have this shape."""
    return emit("BroadcastTo", input, shape, name=name)


# ---- the same values in another shape ------------------------------------------------------------------


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same elements in the same order with another shape; one -1 in it stands for what is left."""
    return emit("Reshape", tensor, shape, name=name)


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """input with a new axis of length 1 at `axis`."""
    axis = renamed("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return emit("ExpandDims", input, axis, name=name)


def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Tensor:
    """input without its axes of length 1 (or the named ones, which must be)."""
    axis = renamed("axis", axis, "squeeze_dims", squeeze_dims)
    if axis is None:
        axis = []
    elif np.isscalar(axis):
        axis = [axis]
    return emit("Squeeze", input, squeeze_dims=axis, name=name)


def transpose(a: Any, perm: Any = None, name: str | None = "transpose", conjugate: bool = False) -> Tensor:
    """a with its axes in the order `perm`, reversed where not given; complex numbers conjugated if asked."""
    with scope(name, "transpose") as named:
        if not isinstance(a, Tensor):
            a = convert_to_tensor(a, name="a")
        op = "ConjugateTranspose" if conjugate and a.dtype.is_complex else "Transpose"
        if perm is None:
            if a._shape is None:
                perm = emit("Range", emit("Rank", a) - 1, -1, -1)
            else:
                perm = np.arange(len(a._shape) - 1, -1, -1, dtype=np.int32)
        return emit(op, a, perm, name=named)


def matrix_transpose(a: Any, name: str | None = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """a with its last two axes swapped."""
    with scope(name, "matrix_transpose"):
        a = convert_to_tensor(a, name="a")
        perm: Any
        if a._shape is None:
            n = rank(a)
            perm = emit("ConcatV2", [emit("Range", 0, n - 2, 1), [n - 1, n - 2]], 0, name="concat")
        else:
            n_axes = len(a._shape)
            if n_axes < 2:
                raise ValueError(
                    f"matrix_transpose takes matrices, got '{a.name}' {shapes.format_shape(a._shape)}"
                )
            perm = [*range(n_axes - 2), n_axes - 1, n_axes - 2]
        return transpose(a, perm, conjugate=conjugate)


# ---- the same tensor -----------------------------------------------------------------------------------


def identity(input: Any, name: str | None = None) -> Any:
    """A node that passes a tensor on; of a SparseTensor or IndexedSlices, each of its tensors."""
    if isinstance(input, SparseTensor):
        return SparseTensor(*(emit("Identity", t, name=name) for t in _parts(input)))
    if isinstance(input, IndexedSlices):
        dense = input.dense_shape
        return IndexedSlices(
            emit("Identity", input.values, name=name),
            emit("Identity", input.indices, name=name),
            None if dense is None else emit("Identity", dense, name=name),
        )
    return emit("Identity", input, name=name)


def _parts(x: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    return x.indices, x.values, x.dense_shape


def identity_n(input: list[Any], name: str | None = None) -> list[Tensor]:
    """A node that passes several tensors on together."""
    return emit("IdentityN", input, name=name)


def stop_gradient(input: Any, name: str | None = None) -> Any:
    """input, which counts as a constant where gradients are taken."""
    return map_values(lambda values: emit("StopGradient", values, name=name), input)


def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """input, which the caller says never changes."""
    return emit("GuaranteeConst", input, name=name)


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """x, whose shape is checked when run and known from now on. Error when run: InvalidArgumentError."""
    with scope(name, "EnsureShape") as named:
        return emit("EnsureShape", x, shape=shapes.as_shape(shape), name=named)


# ---- space, batch and depth ----------------------------------------------------------------------------


def space_to_depth(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Blocks of an image's pixels, block_size wide, moved into its channels."""
    return emit("SpaceToDepth", input, block_size=block_size, data_format=data_format, name=name)


def depth_to_space(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """An image's channels moved into blocks of pixels, block_size wide: undoes space_to_depth."""
    return emit("DepthToSpace", input, block_size=block_size, data_format=data_format, name=name)


def space_to_batch_nd(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """Space (the axes after the first), padded, cut into interleaved grids that are stacked into the
    batch."""
    return emit("SpaceToBatchND", input, block_shape, paddings, name=name)


def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """Undoes space_to_batch_nd: interleaves, then crops."""
    return emit("BatchToSpaceND", input, block_shape, crops, name=name)


def space_to_batch(
    input: Any, paddings: Any, block_size: int | None = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """space_to_batch_nd for images [batch, height, width, depth], with square blocks."""
    block_size = renamed("block_shape", block_shape, "block_size", block_size)
    block = np.array([block_size, block_size], np.int64)
    result = space_to_batch_nd(input, block, paddings, name)
    result.set_shape((None,) * 4)
    return result


def batch_to_space(
    input: Any, crops: Any, block_size: int | None = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """batch_to_space_nd for images [batch, height, width, depth], with square blocks."""
    block_size = renamed("block_shape", block_shape, "block_size", block_size)
    block = np.array([block_size, block_size], np.int64)
    result = batch_to_space_nd(input, block, crops, name)
    result.set_shape((None,) * 4)
    return result


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """(paddings, crops) that make input_shape a multiple of block_shape, with base_paddings at least."""
    with scope(name, "required_space_to_batch_paddings"):
        space = convert_to_tensor(input_shape, dtypes.int32, name="input_shape")
        block = convert_to_tensor(block_shape, dtypes.int32, name="block_shape")
        if block._shape is None or len(block._shape) != 1 or block._shape[0] is None:
            raise ValueError(f"block_shape must be a vector of known length, got {block._shape}")
        n = block._shape[0]
        if base_paddings is None:
            base = emit.constant(np.zeros((n, 2), np.int32), name="zeros")
        else:
            base = convert_to_tensor(base_paddings, dtypes.int32, name="base_paddings")
        if n == 0:
            return base, base
        known: list[Any] = [emit.known_value(t) for t in (space, block, base)]
        s, b, p = [space, block, base] if any(k is None for k in known) else known
        start, end = p[:, 0], p[:, 1]
        extra = (b - (s + start + end) % b) % b
        total = end + extra
        paddings = convert_to_tensor([[start[i], total[i]] for i in range(n)], name="paddings")
        crops = convert_to_tensor([[0, extra[i]] for i in range(n)], name="crops")
        return cast(paddings, dtypes.int32), cast(crops, dtypes.int32)
