"""Gather: rows of a tensor by index. Source: TensorFlow's gather_op.cc, array_grad.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.shape import Dim, Shape
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import (
    ShapeContext,
    constant_value,
    constant_value_as_shape,
)
from thalweg.kernel.convention import traceable
from thalweg.ops._arrays import fail_unless, normal_axis
from thalweg.ops._emitting import beside, concat, dense, element, head, tail
from thalweg.ops._rows import gather
from thalweg.ops._types import INDEX


def _gather_shape(c: ShapeContext) -> list[Shape]:
    params, indices = c.with_rank_at_least(0, 1), c.shape(1)
    if params is None or indices is None:
        return [None]
    return [(*indices, *params[1:])]


def _gather_v2_shape(c: ShapeContext) -> list[Shape]:
    params, indices, axis = c.with_rank_at_least(0, 1), c.shape(1), c.value(2)
    batch = c.attr("batch_dims")
    if params is None or indices is None:
        return [None]
    batch, rank = _batch_dims(batch, len(indices)), len(params)
    if axis is None:
        return [(None,) * (rank + len(indices) - 1 - batch)]
    at = int(np.asarray(axis).reshape(()))
    if not -rank <= at < rank:
        raise ValueError(f"Shape must be at least rank {at + 1 if at >= 0 else -at} but is rank {rank}")
    at %= rank
    if batch > at:
        raise ValueError(f"batch_dims ({batch}) must be less than or equal to axis ({at})")
    outer: list[Dim] = list(params[:at])
    for i in range(batch):
        merged = shapes.merge((params[i],), (indices[i],))
        assert merged is not None
        outer[i] = merged[0]
    return [(*outer, *indices[batch:], *params[at + 1 :])]


def _batch_dims(batch: int, indices_rank: int) -> int:
    if not -indices_rank <= batch <= indices_rank:
        raise ValueError(
            f"Expected batch_dims in the range [{-indices_rank}, {indices_rank}], but got {batch}"
        )
    return batch + indices_rank if batch < 0 else batch


def _gather_kernel(params: Any, indices: Any) -> Any:
    return gather(params, indices)


def _gather_v2_kernel(params: Any, indices: Any, axis: Any, *, batch_dims: int) -> Any:
    fail_unless(np.ndim(params) >= 1, lambda: "params must be at least 1 dimensional")
    at = normal_axis(int(np.asarray(axis).reshape(())), np.ndim(params))
    batch = batch_dims + np.ndim(indices) if batch_dims < 0 else batch_dims
    fail_unless(
        0 <= batch <= min(at, np.ndim(indices)),
        lambda: f"batch_dims ({batch}) must be less than or equal to axis ({at}) and to rank(indices)",
    )
    return gather(params, indices, at, batch)


def _may_fail(op: Operation) -> bool:
    """False where the indices are constants that fit a known dimension."""
    indices, params = constant_value(op._inputs[1]), op._inputs[0]._shape
    axis = constant_value(op._inputs[2]) if len(op._inputs) > 2 else np.array(0)
    if indices is None or params is None or axis is None or not -len(params) <= int(axis) < len(params):
        return True
    limit = params[int(axis)]
    return indices.size > 0 and (limit is None or bool((indices < 0).any() or (indices >= limit).any()))


def _gather_value(op: Operation) -> Shape:
    known, indices = constant_value_as_shape(op._inputs[0]), constant_value(op._inputs[1])
    if known is None or indices is None or indices.ndim > 1:
        return None
    flat = indices.reshape(-1)
    if any(not 0 <= i < len(known) for i in flat):
        return None
    return tuple(known[i] for i in flat)


def _params_shape(emit: Emitter, params: Tensor) -> Tensor:
    with beside(params):  # params can be large: don't move them for their shape
        return emit.shape(params)


def _rows_gradient(emit: Emitter, op: Operation, grad: Any, size: Tensor, shape: Tensor) -> IndexedSlices:
    values_shape = concat(emit, [size, tail(emit, shape, 1)], 0)
    values = emit("Reshape", dense(emit, grad), values_shape)
    return IndexedSlices(values, emit("Reshape", op.inputs[1], size), shape)


def _indices_size(emit: Emitter, indices: Tensor) -> Tensor:
    result: Tensor = emit("ExpandDims", emit.size(indices), 0)
    return result


def _gather_gradient(emit: Emitter, op: Operation, grad: Any) -> list[IndexedSlices | None]:
    shape = _params_shape(emit, op.inputs[0])
    return [_rows_gradient(emit, op, grad, _indices_size(emit, op.inputs[1]), shape), None]


def _gather_v2_gradient(emit: Emitter, op: Operation, grad: Any) -> list[IndexedSlices | Tensor | None]:
    params, indices, axis = op.inputs
    shape = _params_shape(emit, params)
    size = _indices_size(emit, indices)
    batch = op._attrs["batch_dims"]
    if batch < 0:
        if indices._shape is None:
            raise ValueError(
                f"the gradient of a gather with batch_dims {batch} needs the rank of indices: {indices!r}"
            )
        batch += len(indices._shape)
    if emit.known_value(axis) == 0:
        return [_rows_gradient(emit, op, grad, size, shape), None, None]
    return [_axis_gradient(emit, op, grad, shape, batch), None, None]


def _axis_gradient(emit: Emitter, op: Operation, grad: Any, shape: Tensor, batch: int) -> Tensor:
    """The axis is moved behind the batch dimensions, summed into, and moved back."""
    params, indices, axis = op.inputs
    outer = head(emit, shape, axis)
    inner = tail(emit, tail(emit, shape, axis), 1)
    values_shape = concat(emit, [outer, [-1], inner], 0)
    rank, at = emit.size(values_shape), emit.size(outer)
    outer_batch = emit("Range", 0, batch, 1, name="range")
    batch_axis = emit("Range", batch, at, 1, name="range")
    inner_axes = emit("Range", emit("AddV2", at, 1, name="add"), rank, 1, name="range")
    values = emit("Reshape", dense(emit, grad), values_shape)
    perm = concat(emit, [outer_batch, [at], batch_axis, inner_axes], 0)
    values = emit("Transpose", values, perm, name="transpose")
    moved_shape = emit("GatherV2", shape, perm, 0)
    result = _batch_gradient(emit, moved_shape, values, indices, batch, element(emit, shape, axis))
    back = concat(
        emit, [outer_batch, emit("AddV2", batch_axis, 1, name="add"), [batch], inner_axes], 0
    )
    result = emit("Transpose", result, back, name="transpose")
    # dimensions of size zero would leave a shape of its own
    reshaped: Tensor = emit("Reshape", result, emit.shape(params))
    return reshaped


def _batch_gradient(
    emit: Emitter, shape: Tensor, values: Tensor, indices: Tensor, batch: int, rows: Tensor
) -> Tensor:
    size = _indices_size(emit, indices)
    result: Tensor
    if not batch:
        indices = emit("Reshape", indices, size)
        result = emit("UnsortedSegmentSum", values, indices, rows)
        return result
    values_shape = emit.shape(values)
    outer = head(emit, values_shape, batch)
    inner = tail(emit, tail(emit, values_shape, batch), 1)
    count = emit("Prod", outer, [0])
    flat_shape = concat(emit, [[-1], inner], 0)
    rows = emit("Mul", rows, count, name="mul")
    indices = _batch_indices(emit, shape, indices, batch)
    values = emit("Reshape", values, flat_shape)
    result = emit("UnsortedSegmentSum", values, emit("Reshape", indices, size), rows)
    reshaped: Tensor = emit("Reshape", result, concat(emit, [outer, flat_shape], 0))
    return reshaped


def _batch_indices(emit: Emitter, shape: Tensor, indices: Tensor, batch: int) -> Tensor:
    """Indices into params with the batch dimensions and the axis as one."""
    kind = indices._dtype.base_dtype
    sizes = shape if kind == dtypes.int32 else emit("Cast", shape, DstT=kind)
    step: Any = emit.constant(1, kind, name="ones")
    for dim in range(batch, 0, -1):
        n = element(emit, sizes, dim - 1)
        step = emit("Mul", step, element(emit, sizes, dim), name="mul")
        start, one = emit.constant(0, kind, name="zeros"), emit.constant(1, kind, name="ones")
        offsets = emit("Mul", emit("Range", start, n, one, name="range"), step, name="mul")
        n32 = n if kind == dtypes.int32 else emit("Cast", n, DstT=dtypes.int32)
        behind = emit("Sub", emit.rank(indices), dim, name="sub")
        before, after = emit("Tile", [1], [dim - 1]), emit("Tile", [1], [behind])
        dim_shape = concat(emit, [before, [n32], after], 0)
        indices = emit("AddV2", indices, emit("Reshape", offsets, dim_shape), name="add")
    return indices


define_op(
    "Gather",
    inputs="params: Tparams, indices: Tindices",
    outputs="output: Tparams",
    attrs=f"validate_indices: bool = True, Tparams: type, Tindices: {INDEX}",
    shape=_gather_shape,
    kernel=traceable(_gather_kernel, host=_gather_kernel, may_fail=_may_fail),
    gradient=_gather_gradient,
    shape_value=_gather_value,
    doc="Slices of params along its first dimension, by index. An index out of range is an error.",
)

define_op(
    "GatherV2",
    inputs="params: Tparams, indices: Tindices, axis: Taxis",
    outputs="output: Tparams",
    attrs=f"batch_dims: int = 0, Tparams: type, Tindices: {{int16, int32, int64}}, Taxis: {INDEX}",
    shape=_gather_v2_shape,
    kernel=traceable(_gather_v2_kernel, host=_gather_v2_kernel, static=("axis",), may_fail=_may_fail),
    gradient=_gather_v2_gradient,
    shape_value=_gather_value,
    doc="Slices of params along `axis`, by index; the first batch_dims dimensions are common to both.",
)
