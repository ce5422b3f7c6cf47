"""The cells of sparse tensors in order. Source: TensorFlow's sparse_reorder_op.cc."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.checks import require
from thalweg.kernel.convention import host


def _reorder(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> list[np.ndarray]:
    require(
        indices.ndim == 2 and values.ndim == 1 and shape.ndim == 1 and len(indices) == len(values),
        lambda: f"{len(values)} values need as many rows of indices, got {list(indices.shape)}",
    )
    require(
        indices.shape[1] == len(shape),
        lambda: f"indices of rank {indices.shape[1]} in a shape of rank {len(shape)}",
    )
    outside = ((indices < 0) | (indices >= shape)).any(1)
    require(
        not outside.any(),
        lambda: (
            f"indices {indices[outside][0].tolist()} are out of bounds: need 0 <= index < {shape.tolist()}"
        ),
    )
    order = np.lexsort(indices.T[::-1]) if len(shape) else np.arange(len(indices))
    return [indices[order], values[order]]


def _reorder_shape(c: ShapeContext) -> list[Shape]:
    indices, values = c.with_rank(0, 2), c.with_rank(1, 1)
    c.with_rank(2, 1)
    return [indices, values]


def _reorder_gradient(emit: Emitter, op: Operation, d_indices: Any, dy: Tensor) -> list[Any]:
    indices, _, shape = op.inputs
    size = emit("StridedSlice", emit.shape(indices), [0], [1], [1], shrink_axis_mask=1)
    entries = emit("Range", 0, size, 1)
    _, order = emit("SparseReorder", indices, entries, shape)
    return [None, emit("GatherV2", dy, emit("InvertPermutation", order), 0, name="GatherV2"), None]


define_op(
    "SparseReorder",
    inputs="input_indices: int64, input_values: T, input_shape: int64",
    outputs="output_indices: int64, output_values: T",
    attrs="T: type",
    shape=_reorder_shape,
    kernel=host(_reorder),
    gradient=_reorder_gradient,
    doc="The cells of a sparse tensor, sorted by their indices.",
)
