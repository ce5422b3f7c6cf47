"""Elements picked by index or condition, and put somewhere by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import scope
from thalweg.library.array_ops import broadcast_to
from thalweg.library.casting import cast


def gather(
    params: Any,
    indices: Any,
    validate_indices: bool | None = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """The slices of params along `axis` (batch_dims, so 0, where None) at these indices.

    batch_dims: how many leading axes params and indices share. A variable is read sparsely.
    """
    if axis is None:
        axis = batch_dims
    known = axis if not isinstance(axis, Tensor) else emit.known_value(axis)
    if known is not None and np.ndim(known) == 0 and int(known) == 0 and hasattr(params, "sparse_read"):
        return params.sparse_read(indices, name=name)
    return emit("GatherV2", params, indices, axis, batch_dims=batch_dims, name=name)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """gather along the last axis of indices; the axes before it are shared."""
    with scope(name, "BatchGather"):
        indices = convert_to_tensor(indices, name="indices")
        params = convert_to_tensor(params, name="params")
        if indices._shape is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        axis = len(indices._shape) - 1
        return emit("GatherV2", params, indices, axis, batch_dims=axis)


def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Tensor:
    """The slices of params at the index vectors along the last axis of indices.

    batch_dims: how many leading axes params and indices share.
    """
    if batch_dims == 0:
        if hasattr(params, "gather_nd"):
            return params.gather_nd(indices, name=name)
        return emit("GatherNd", params, indices, name=name)
    with scope(name, "BatchGatherNd") as named:
        params = convert_to_tensor(params, name="params")
        indices = convert_to_tensor(indices, name="indices")
        index_rank = None if indices._shape is None else len(indices._shape)
        if index_rank is None:
            raise ValueError("gather_nd with batch_dims needs indices of known rank")
        if not 0 < batch_dims < index_rank:
            raise ValueError(f"batch_dims = {batch_dims} must be less than rank(indices) = {index_rank}")
        # the shared axes become leading elements of every index vector
        shape = emit("Shape", indices)
        place: Any = [shape[i] for i in range(batch_dims)]
        grids = []
        for i in range(batch_dims):
            column = emit("Range", 0, place[i], 1)
            around = (1,) * i + (-1,) + (1,) * (index_rank - i - 1)
            grid = cast(emit("Reshape", column, around), indices.dtype)
            one = emit("ConcatV2", [shape[: index_rank - 1], [1]], 0, name="concat")
            grids.append(broadcast_to(grid, one))
        full = emit("ConcatV2", [*grids, indices], -1, name="concat")
        return emit("GatherNd", params, full, name=named)


def boolean_mask(tensor: Any, mask: Any, name: str | None = "boolean_mask", axis: Any = None) -> Tensor:
    """The slices of tensor where mask is true, in order.

    mask: a boolean tensor of known rank K, at least 1; it covers K axes of tensor, from `axis` (0) on.
    """
    with scope(name, "boolean_mask"):
        x = convert_to_tensor(tensor, name="tensor")
        mask = convert_to_tensor(mask, name="mask")
        covered = mask._shape
        if covered is None:
            raise ValueError(
                "Number of mask dimensions must be specified, even if some dimensions are None.  E.g. "
                "shape=[None] is ok, but shape=None is not."
            )
        k = len(covered)
        if k == 0:
            raise ValueError("mask cannot be scalar.")
        axis = 0 if axis is None else axis
        known = emit.known_value(axis) if isinstance(axis, Tensor) else np.asarray(axis)
        if known is not None:
            axis = int(known)
            if x._shape is not None:
                _require_covers(x, covered, axis)
        shape_name = "Shape"
        leading = emit("Prod", emit.shape(x, name=shape_name)[axis : axis + k], [0])
        before, after = emit.shape(x)[:axis], emit.shape(x)[axis + k :]
        flat = emit("Reshape", x, emit("ConcatV2", [before, [leading], after], 0, name="concat"))
        if known is not None and x._shape is not None:
            first = shapes.num_elements(x._shape[axis : axis + k])
            flat.set_shape((*x._shape[:axis], first, *x._shape[axis + k :]))
        places = emit("Where", emit("Reshape", mask, [-1]))
        return emit("GatherV2", flat, emit("Squeeze", places, squeeze_dims=[1]), axis)


def _require_covers(x: Tensor, covered: tuple[int | None, ...], axis: int) -> None:
    part = x._shape[axis : axis + len(covered)]  # type: ignore[index]
    if not shapes.is_compatible(part, covered):
        raise ValueError(
            f"Shapes {shapes.format_shape(part)} and {shapes.format_shape(covered)} are incompatible: a "
            "mask must "
            f"have the shape of the axes of '{x.name}' that it covers"
        )


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """x where condition is true and y elsewhere; without x and y, the indices of the true elements [n, rank].

    condition: of x's shape, or a vector that picks whole rows.
    """
    if x is None and y is None:
        return _places(condition, name)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return emit("Select", condition, x, y, name=name)


def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """x where condition is true and y elsewhere, all three broadcast; without x and y, as `where`."""
    if x is None and y is None:
        return _places(condition, name)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return emit("SelectV2", condition, x, y, name=name)


def _places(condition: Any, name: str | None) -> Tensor:
    with scope(name, "Where") as named:
        condition = convert_to_tensor(condition, name="condition", preferred_dtype=dtypes.bool)
        return emit("Where", condition, name=named)


# ---- elements sorted out and put together --------------------------------------------------------------


def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """(y, idx): the different elements of a vector in order of appearance, and where each element is among
    them."""
    return emit("Unique", x, out_idx=dtypes.as_dtype(out_idx), name=name)


def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """(y, idx, count): as unique, and how often each occurs."""
    return emit("UniqueWithCounts", x, out_idx=dtypes.as_dtype(out_idx), name=name)


def setdiff1d(x: Any, y: Any, index_dtype: Any = dtypes.int32, name: str | None = None) -> Any:
    """(out, idx): the elements of x that are not in y, and where in x they were."""
    return emit("ListDiff", x, y, out_idx=dtypes.as_dtype(index_dtype), name=name)


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """data's slices sorted into num_partitions tensors by their partition numbers."""
    return emit("DynamicPartition", data, partitions, num_partitions=num_partitions, name=name)


def dynamic_stitch(indices: list[Any], data: list[Any], name: str | None = None) -> Tensor:
    """One tensor with data[m][i] at indices[m][i]; the last wins where indices repeat."""
    return emit("DynamicStitch", indices, data, name=name)


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The permutation that undoes x."""
    return emit("InvertPermutation", x, name=name)


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """Flat indices as index vectors of an array of shape dims, one column each."""
    return emit("UnravelIndex", indices, dims, name=name)


def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Where values would be inserted into sorted sequences (along the last axis) to keep them sorted."""
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left'.  Saw: {side}.")
    sequence = convert_to_tensor(sorted_sequence)
    x = convert_to_tensor(values)
    sequence_2d = emit("Reshape", sequence, [-1, emit.shape(sequence)[-1]])
    values_2d = emit("Reshape", x, [-1, emit.shape(x)[-1]])
    op = "UpperBound" if side == "right" else "LowerBound"
    output = emit(op, sequence_2d, values_2d, out_type=dtypes.as_dtype(out_type), name=name)
    return emit("Reshape", output, emit.shape(x))


# ---- scattering ----------------------------------------------------------------------------------------


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Zeros of this shape with updates added at the index vectors."""
    return emit("ScatterNd", indices, updates, shape, name=name)


def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """tensor with updates in place of its slices at the index vectors."""
    return emit("TensorScatterUpdate", tensor, indices, updates, name=name)


def tensor_scatter_nd_add(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """tensor with updates added to its slices at the index vectors."""
    return emit("TensorScatterAdd", tensor, indices, updates, name=name)


def tensor_scatter_nd_sub(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """tensor with updates subtracted from its slices at the index vectors."""
    return emit("TensorScatterSub", tensor, indices, updates, name=name)


tensor_scatter_update = tensor_scatter_nd_update
tensor_scatter_add = tensor_scatter_nd_add
tensor_scatter_sub = tensor_scatter_nd_sub


# ---- sorting -------------------------------------------------------------------------------------------


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """values in order along `axis`."""
    with scope(name, "sort"):
        return _sorted(values, axis, direction, places=False)


def argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """The indices (int32) that would put values in order along `axis`; equal ones keep their order."""
    with scope(name, "argsort"):
        return _sorted(values, axis, direction, places=True)


def _sorted(values: Any, axis: int, direction: str, places: bool) -> Tensor:
    """Through TopKV2 on the last axis; ascending order is the top of the negated values."""
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"Argument `direction` should be one of ASCENDING, DESCENDING, got {direction!r}")
    x = convert_to_tensor(values, name="values")
    shape = x._shape
    last = axis == -1 or (shape is not None and axis % max(len(shape), 1) == len(shape) - 1)
    perm: Any = None
    if not last:
        if shape is None:
            raise ValueError("sort along an axis that is not the last needs a known rank")
        axes = list(range(len(shape)))
        axes[axis], axes[-1] = axes[-1], axes[axis]
        perm = axes
        x = emit("Transpose", x, perm, name="transpose")
    ascending = direction == "ASCENDING"
    kind = x.dtype.base_dtype
    unsigned = kind.is_unsigned
    k = emit.shape(x)[-1]
    if ascending:
        # an unsigned maximum minus x keeps the order that negation would turn round
        x = emit("Sub", emit.constant(kind.max, kind), x) if unsigned else emit("Neg", x)
    top, index = emit("TopKV2", x, k, sorted=True)
    result = index if places else top
    if ascending and not places:
        result = emit("Sub", emit.constant(kind.max, kind), top) if unsigned else emit("Neg", top)
    return result if perm is None else emit("Transpose", result, perm, name="transpose")
