"""Rows sent to lists, and lists put together: DynamicPartition, DynamicStitch.

Source: TensorFlow's data_flow_ops.cc, data_flow_grad.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext, constant_value
from thalweg.kernel.convention import host, traceable
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, position_text, shape_text
from thalweg.ops._emitting import element


def _dynamic_partition_shape(c: ShapeContext) -> list[Shape]:
    data, partitions = c.shape(0), c.shape(1)
    n = c.attr("num_partitions")
    if data is None or partitions is None:
        return [None] * n
    if len(data) < len(partitions):
        raise ValueError(
            f"data {shapes.format_shape(data)} must start with partitions {shapes.format_shape(partitions)}"
        )
    shapes.merge(data[: len(partitions)], partitions)
    return [(None, *data[len(partitions) :])] * n


def _dynamic_partition_kernel(data: Any, partitions: Any, *, num_partitions: int) -> list[np.ndarray]:
    p = np.shape(partitions)
    fail_unless(
        np.shape(data)[: len(p)] == p,
        lambda: "data.shape must start with partitions.shape, got data.shape = "
        f"{shape_text(np.shape(data))}, partitions.shape = {shape_text(p)}",
    )
    flat = np.asarray(partitions).reshape(-1)
    bad = (flat < 0) | (flat >= num_partitions)
    at = int(np.argmax(bad)) if flat.size else 0
    fail_unless(
        not bad.any(),
        lambda: f"partitions{position_text(p, at)} = {flat[at]} is not in [0, {num_partitions})",
    )
    rows = np.asarray(data).reshape(flat.size, *np.shape(data)[len(p) :])
    return [rows[flat == i] for i in range(num_partitions)]


def _dynamic_partition_gradient(emit: Emitter, op: Operation, *dys: Tensor) -> list[Tensor | None]:
    data, partitions = op.inputs
    shape = emit.shape(partitions)
    count = emit("Prod", shape, emit.constant([0], dtypes.int32))
    places = emit("Reshape", emit("Range", 0, count, 1, name="range"), shape)
    lists = emit("DynamicPartition", places, partitions, num_partitions=op._attrs["num_partitions"])
    joined = emit("ParallelDynamicStitch", list(lists), list(dys))
    return [emit("Reshape", joined, emit.shape(data)), None]


define_op(
    "DynamicPartition",
    inputs="data: T, partitions: int32",
    outputs="outputs: num_partitions * T",
    attrs="num_partitions: int >= 1, T: type",
    shape=_dynamic_partition_shape,
    kernel=host(_dynamic_partition_kernel),
    gradient=_dynamic_partition_gradient,
    doc="The rows of data, each in the list that partitions names.",
)


def _stitch_shape(c: ShapeContext) -> list[Shape]:
    n = c.attr("N")
    rest: Shape = None
    limit: int | None = 0
    for i in range(n):
        indices, data, known = c.shape(i), c.shape(n + i), c.value(i)
        if known is None:
            limit = None
        elif limit is not None and known.size:
            limit = max(limit, int(known.max()) + 1)
        if indices is None or data is None:
            continue
        if len(data) < len(indices):
            raise ValueError(
                f"data[{i}] {shapes.format_shape(data)} must start with indices[{i}] "
                f"{shapes.format_shape(indices)}"
            )
        shapes.merge(data[: len(indices)], indices)
        rest = shapes.merge(rest, data[len(indices) :])
    return [None if rest is None else (limit, *rest)]


def _stitch_kernel(indices: Sequence[Any], data: Sequence[Any]) -> Any:
    """Later rows win. Where indices are known, the result takes its rows from one concatenation."""
    for i, (where, what) in enumerate(zip(indices, data, strict=True)):
        p = np.shape(where)
        fail_unless(
            np.shape(what)[: len(p)] == p,
            lambda i=i, p=p, what=what: f"data[{i}].shape = {shape_text(np.shape(what))} does not start with "
            f"indices[{i}].shape = {shape_text(p)}",
        )
    rest = np.shape(data[0])[np.ndim(indices[0]) :]
    flat = np.concatenate([np.asarray(i).reshape(-1) for i in indices])
    total = int(flat.max()) + 1 if flat.size else 0
    fail_unless(not (flat < 0).any(), lambda: f"indices must not be negative, got {flat.min()}")
    rows = arrays.concatenate(
        [arrays.reshape(d, (int(np.size(i)), *rest)) for i, d in zip(indices, data, strict=True)], 0
    )
    source = np.full(total, flat.size)
    source[flat] = np.arange(flat.size)
    # a row that nobody gives is zero
    rows = arrays.pad(rows, arrays.zero(rows.dtype), [0] * (1 + len(rest)), [1] + [0] * len(rest))
    return rows[source]


def _stitch_gradient(emit: Emitter, op: Operation, dy: Any) -> list[Tensor | None]:
    n = op._attrs["N"]
    if isinstance(dy, IndexedSlices):
        rows = element(emit, emit.shape(op.outputs[0]), 0)
        dy = emit("UnsortedSegmentSum", dy.values, dy.indices, rows)
    indices = list(op.inputs)[:n]
    return [*[None] * n, *[emit("GatherV2", dy, i, 0) for i in indices]]


def _stitch_compiles(op: Operation) -> bool:
    """Shape arithmetic and constant indices do. Others would mean an executable for each set of indices."""
    if op._attrs["T"] in (dtypes.int32, dtypes.int64):
        return True
    return all(constant_value(t) is not None for t in op._inputs[: op._attrs["N"]])


for _name in ("DynamicStitch", "ParallelDynamicStitch"):
    define_op(
        _name,
        inputs="indices: N * int32, data: N * T",
        outputs="merged: T",
        attrs="N: int >= 1, T: type",
        shape=_stitch_shape,
        kernel=traceable(_stitch_kernel, host=_stitch_kernel, static=("indices",), compiles=_stitch_compiles),
        gradient=_stitch_gradient,
        doc="The rows of all data, each at the place that its index names.",
    )
