"""Reading rows and slices of a resource variable without reading all of it.

Source: TensorFlow's resource_variable_ops.cc and resource_variable_ops.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import traceable
from thalweg.ops._arrays import fail_unless
from thalweg.ops._emitting import concat, dense, tail
from thalweg.ops._handles import behind
from thalweg.ops._points import gather_nd
from thalweg.ops._rows import gather
from thalweg.ops._types import INDEX


def _batch_dims(batch: int, indices_rank: int) -> int:
    return batch + indices_rank if batch < 0 else batch


def _gather_shape(c: ShapeContext) -> list[Shape]:
    table, indices = behind(c, 0)[1], c.shape(1)
    if table is None or indices is None:
        return [None]
    batch = _batch_dims(c.attr("batch_dims"), len(indices))
    if not 0 <= batch <= len(indices):
        raise ValueError(f"batch_dims ({batch}) must be between 0 and rank(indices) ({len(indices)})")
    if batch >= len(table):
        raise ValueError(f"batch_dims ({batch}) must be less than rank(params) ({len(table)})")
    outer = shapes.merge(table[:batch], indices[:batch])
    assert outer is not None
    return [(*outer, *indices[batch:], *table[batch + 1 :])]


def _gather_kernel(table: Any, indices: Any, *, batch_dims: int) -> Any:
    batch = _batch_dims(batch_dims, np.ndim(indices))
    fail_unless(
        0 <= batch <= np.ndim(indices) and batch < np.ndim(table),
        lambda: f"batch_dims ({batch}) must be at most rank(indices) ({np.ndim(indices)}) and less than "
        f"rank(params) ({np.ndim(table)})",
    )
    return gather(table, indices, batch, batch)


def _shape_of_variable(emit: Emitter, handle: Tensor, out_type: Any = dtypes.int32) -> Tensor:
    """A constant where the shape is known, else a VariableShape node."""
    shape = None if handle._handle is None else handle._handle[1]
    if shape is not None and None not in shape:
        return emit.constant(list(shape), out_type)
    result: Tensor = emit("VariableShape", handle, out_type=out_type)
    return result


def _gather_gradient(emit: Emitter, op: Operation, grad: Any) -> list[IndexedSlices | None]:
    handle, indices = op.inputs
    shape = _shape_of_variable(emit, handle)
    size = emit("ExpandDims", emit.size(indices), 0)
    values = emit("Reshape", dense(emit, grad), concat(emit, [size, tail(emit, shape, 1)], 0))
    return [IndexedSlices(values, emit("Reshape", indices, size), shape), None]


define_op(
    "ResourceGather",
    inputs="resource: resource, indices: Tindices",
    outputs="output: dtype",
    attrs=f"batch_dims: int = 0, validate_indices: bool = True, dtype: type, Tindices: {INDEX}",
    shape=_gather_shape,
    kernel=traceable(_gather_kernel, reads=("resource",), may_fail=True),
    stateful=True,
    gradient=_gather_gradient,
    doc="Rows of a resource variable by index. An index out of range is an error.",
)


def _gather_nd_shape(c: ShapeContext) -> list[Shape]:
    table, indices = behind(c, 0)[1], c.with_rank_at_least(1, 1)
    if table is None or indices is None or indices[-1] is None:
        return [None]
    depth = indices[-1]
    if depth > len(table):
        raise ValueError(
            "indices.shape[-1] must be <= params.rank, but saw indices shape: "
            f"{shapes.format_shape(indices)} and params shape: {shapes.format_shape(table)}"
        )
    return [(*indices[:-1], *table[depth:])]


def _gather_nd_gradient(emit: Emitter, op: Operation, grad: Tensor) -> list[Any]:
    handle, indices = op.inputs
    shape = _shape_of_variable(emit, handle, indices._dtype.base_dtype)
    known = indices._shape
    if known is not None and len(known) == 2 and known[-1] == 1:
        return [IndexedSlices(grad, emit("Squeeze", indices, squeeze_dims=[-1]), shape), None]
    return [emit("ScatterNd", indices, grad, shape), None]


define_op(
    "ResourceGatherNd",
    inputs="resource: resource, indices: Tindices",
    outputs="output: dtype",
    attrs=f"dtype: type, Tindices: {INDEX}",
    shape=_gather_nd_shape,
    kernel=traceable(gather_nd, reads=("resource",), may_fail=True),
    stateful=True,
    gradient=_gather_nd_gradient,
    doc="Slices of a resource variable at the places that the rows of indices name.",
)
