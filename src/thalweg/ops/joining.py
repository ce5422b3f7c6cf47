"""Joining tensors and taking them apart again: Concat, Pack, Split and their kin.

Source: TensorFlow's array_ops.cc, array_grad.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.shape import Dim, Shape
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import (
    ShapeContext,
    constant_value,
    constant_value_as_shape,
    shape_value_of_scalar,
)
from thalweg.graph.where import output_context
from thalweg.kernel.convention import traceable
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, ints, normal_axis, shape_text
from thalweg.ops._emitting import concat, stack
from thalweg.ops._types import INDEX

# ---- Concat -------------------------------------------------------------------------------------------


def _concat_shape(c: ShapeContext, parts: list[Shape], axis_value: np.ndarray | None) -> list[Shape]:
    if axis_value is not None and axis_value.ndim:
        raise ValueError(f"the axis must be a scalar, but has shape {shapes.format_shape(axis_value.shape)}")
    rank = next((len(s) for s in parts if s is not None), None)
    if rank is None:
        return [None]
    if rank == 0:
        raise ValueError("Can't concatenate scalars (use tf.stack instead)")
    for s in parts:
        if s is not None and len(s) != rank:
            raise ValueError(
                f"Shape must be rank {rank} but is rank {len(s)}: all inputs of a concatenation have one rank"
            )
    if axis_value is None:
        return [(None,) * rank]
    axis = int(np.asarray(axis_value).reshape(()))
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is not in [-{rank}, {rank}) for inputs of rank {rank}")
    axis %= rank
    rest: Shape = None
    total: Dim = 0
    for s in parts:
        total = None if s is None or total is None or s[axis] is None else total + s[axis]  # type: ignore[operator]
        if s is not None:
            rest = shapes.merge(rest, (*s[:axis], None, *s[axis + 1 :]))
    assert rest is not None
    return [(*rest[:axis], total, *rest[axis + 1 :])]


def _concat_kernel(values: Sequence[Any], axis: Any) -> Any:
    first = np.shape(values[0])
    at = normal_axis(int(np.asarray(axis).reshape(())), len(first), "ConcatOp : concatenation axis")
    for i, v in enumerate(values):
        s = np.shape(v)
        fits = len(s) == len(first) and s[:at] == first[:at] and s[at + 1 :] == first[at + 1 :]
        fail_unless(
            fits,
            lambda i=i, s=s: "ConcatOp : Dimension of inputs should match: shape[0] = "
            f"{shape_text(first)} vs. shape[{i}] = {shape_text(s)}",
        )
    return arrays.concatenate(values, at)


def _concat_value(op: Operation, parts: Sequence[Tensor], axis: Tensor) -> Shape:
    known_axis = constant_value(axis)
    if known_axis is None or int(known_axis) not in (0, -1):
        return None
    known: list[Dim] = []
    for t in parts:
        part = constant_value_as_shape(t)
        if part is None:
            return None
        known.extend(part)
    return tuple(known)


def _input_shapes(emit: Emitter, values: list[Tensor]) -> list[Tensor]:
    """The shapes of tensors: constants up to the first that isn't known, which makes it one ShapeN."""
    sizes: list[Tensor] = []
    for v in values:
        sizes.append(emit.shape(v))
        if sizes[-1]._op.type != "Const":
            return list(emit("ShapeN", values))
    return sizes


def _concat_gradient(
    emit: Emitter, values: list[Tensor], axis: Tensor, grad: Any
) -> list[Tensor | IndexedSlices | None]:
    if len(values) == 1:
        return [grad]
    if axis._op.type == "Const" and output_context(axis._op) is not output_context(grad.op):
        axis = emit.constant(axis._op._attrs["value"], axis._dtype)  # the gradient's own, not a loop's
    if isinstance(grad, IndexedSlices):
        return _concat_sparse_gradient(emit, values, axis, grad)
    if axis._dtype.base_dtype != dtypes.int32:
        axis = emit("Cast", axis, DstT=dtypes.int32)
    dim = emit("FloorMod", axis, emit.rank(values[0]), name="mod")
    sizes = _input_shapes(emit, values)
    if len(sizes) > 16:  # where one Split is quicker than many slices
        rows = emit("Slice", stack(emit, sizes, axis=1), [dim, 0], [1, -1])
        return list(emit("SplitV", grad, emit("Squeeze", rows), dim, num_split=len(sizes), name="split"))
    offsets = emit("ConcatOffset", dim, sizes)
    return [emit("Slice", grad, begin, size) for begin, size in zip(offsets, sizes, strict=True)]


def _concat_sparse_gradient(
    emit: Emitter, values: list[Tensor], axis: Tensor, grad: IndexedSlices
) -> list[Tensor | IndexedSlices | None]:
    """Rows of a concatenation: of all inputs along another axis, of one input each along the first."""
    known = emit.known_value(axis)
    rank = None if values[0]._shape is None else len(values[0]._shape)
    if known is None or (known < 0 and rank is None):
        raise ValueError("Can only compute IndexedSlices gradient with statically-known concat_dim")
    at = int(known) % rank if rank is not None else int(known)
    sizes = [emit.shape(v) for v in values]
    result: list[Tensor | IndexedSlices | None] = []
    if at > 0:
        begin: Any = [0] * len(values[0].shape)
        offsets = emit("ConcatOffset", at, sizes)
        for size, begin in zip(sizes, offsets, strict=True):
            extent = concat(emit, [[-1], emit("Slice", size, [1], [-1])], 0)
            result.append(IndexedSlices(emit("Slice", grad.values, begin, extent), grad.indices, size))
        return result
    start: Any = emit.constant(0, grad.indices.dtype)
    for size in sizes:
        rows = emit("GatherV2", size, 0, 0)
        if rows.dtype != grad.indices.dtype:
            rows = emit("Cast", rows, DstT=grad.indices.dtype)
        end = emit("AddV2", start, rows, name="add")
        inside = emit(
            "LogicalAnd", emit("GreaterEqual", grad.indices, start), emit("Less", grad.indices, end)
        )
        chosen = emit("Squeeze", emit("Where", inside), squeeze_dims=[1])
        indices = emit("Sub", emit("GatherV2", grad.indices, chosen, 0), start, name="sub")
        result.append(IndexedSlices(emit("GatherV2", grad.values, chosen, 0), indices, size))
        start = end
    return result


define_op(
    "Concat",
    inputs="concat_dim: int32, values: N * T",
    outputs="output: T",
    attrs="N: int >= 2, T: type",
    shape=lambda c: _concat_shape(c, c.shapes()[1:], c.value(0)),
    kernel=traceable(
        lambda axis, values: _concat_kernel(values, axis),
        host=lambda axis, values: _concat_kernel(values, axis),
        static=("concat_dim",),
    ),
    gradient=lambda emit, op, dy: [
        None,
        *_concat_gradient(emit, list(op.inputs)[1:], op.inputs[0], dy),
    ],
    shape_value=lambda op: _concat_value(op, op._inputs[1:], op._inputs[0]),
    doc="Tensors joined along a dimension (the axis comes first).",
)

define_op(
    "ConcatV2",
    inputs="values: N * T, axis: Tidx",
    outputs="output: T",
    attrs=f"N: int >= 2, T: type, Tidx: {INDEX} = int32",
    shape=lambda c: _concat_shape(c, c.shapes()[:-1], c.value(len(c) - 1)),
    kernel=traceable(_concat_kernel, host=_concat_kernel, static=("axis",)),
    gradient=lambda emit, op, dy: [
        *_concat_gradient(emit, list(op.inputs)[:-1], op.inputs[len(op.inputs) - 1], dy),
        None,
    ],
    shape_value=lambda op: _concat_value(op, op._inputs[:-1], op._inputs[-1]),
    doc="Tensors joined along a dimension.",
)


def _concat_offset_kernel(concat_dim: Any, shape: Sequence[Any]) -> list[Any]:
    rank = np.shape(shape[0])[0]
    axis = normal_axis(int(concat_dim), rank, "Concat dim")
    mask = (np.arange(rank) == axis).astype(shape[0].dtype)
    at: Any = np.zeros((), shape[0].dtype)
    result = []
    for s in shape:
        result.append(mask * at)
        at = at + s[axis]
    return result


define_op(
    "ConcatOffset",
    inputs="concat_dim: int32, shape: N * shape_type",
    outputs="offset: N * shape_type",
    attrs=f"N: int >= 2, shape_type: {INDEX} = int32",
    shape=lambda c: c.shapes()[1:],
    kernel=traceable(_concat_offset_kernel, host=_concat_offset_kernel, static=("concat_dim",)),
    gradient=NotDifferentiable("offsets are integers"),
    doc="Where each input of a concatenation begins in its result.",
)

# ---- Pack ---------------------------------------------------------------------------------------------


def _new_axis(axis: int, rank: int) -> int:
    if not -rank - 1 <= axis <= rank:
        raise ValueError(f"Invalid axis {axis}: must be in [{-rank - 1}, {rank}] for inputs of rank {rank}")
    return axis % (rank + 1)


def _pack_shape(c: ShapeContext) -> list[Shape]:
    merged: Shape = None
    for s in c.shapes():
        merged = shapes.merge(merged, s)
    if merged is None:
        return [None]
    axis = _new_axis(c.attr("axis"), len(merged))
    return [(*merged[:axis], len(c), *merged[axis:])]


def _pack_kernel(values: Sequence[Any], *, axis: int) -> Any:
    first = tuple(np.shape(values[0]))
    for i, v in enumerate(values):
        fail_unless(
            tuple(np.shape(v)) == first,
            lambda i=i, v=v: f"Shapes of all inputs must match: values[0].shape = {shape_text(first)} != "
            f"values[{i}].shape = {shape_text(np.shape(v))}",
        )
    axis %= len(first) + 1
    shape = (*first[:axis], 1, *first[axis:])
    return arrays.concatenate([arrays.reshape(v, shape) for v in values], axis)


def _pack_value(op: Operation) -> Shape:
    if any(t._shape != () for t in op._inputs):
        return None
    return tuple(shape_value_of_scalar(t) for t in op._inputs)


def _pack_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor]:
    return list(emit("Unpack", dy, num=op._attrs["N"], axis=op._attrs["axis"], name="unstack"))


define_op(
    "Pack",
    inputs="values: N * T",
    outputs="output: T",
    attrs="N: int >= 1, T: type, axis: int = 0",
    shape=_pack_shape,
    kernel=traceable(_pack_kernel, host=_pack_kernel),
    gradient=_pack_gradient,
    shape_value=_pack_value,
    doc="Tensors of one shape stacked along a new dimension.",
)


def _unpack_shape(c: ShapeContext) -> list[Shape]:
    s, num = c.shape(0), c.attr("num")
    if s is None:
        return [None] * num
    axis = c.attr("axis")
    if not -len(s) <= axis < len(s):
        raise ValueError(
            f"Invalid axis {axis}: must be in [{-len(s)}, {len(s)}) for an input of rank {len(s)}"
        )
    axis %= len(s)
    if s[axis] not in (None, num):
        raise ValueError(f"Dimension must be {num} but is {s[axis]}: axis {axis} of the input")
    return [(*s[:axis], *s[axis + 1 :])] * num


def _unpack_kernel(value: Any, *, num: int, axis: int) -> list[Any]:
    shape = tuple(np.shape(value))
    axis = normal_axis(axis, len(shape))
    fail_unless(
        shape[axis] == num,
        lambda: f"Input shape axis {axis} must equal {num}, got shape {shape_text(shape)}",
    )
    rest = (*shape[:axis], *shape[axis + 1 :])
    return [arrays.reshape(arrays.along(value, axis, i, i + 1), rest) for i in range(num)]


def _unpack_value(op: Operation) -> Any:
    known = constant_value_as_shape(op._inputs[0])
    return [None if known is None or i >= len(known) else (known[i],) for i in range(len(op._outputs))]


define_op(
    "Unpack",
    inputs="value: T",
    outputs="output: num * T",
    attrs="num: int >= 0, T: type, axis: int = 0",
    shape=_unpack_shape,
    kernel=traceable(_unpack_kernel, host=_unpack_kernel),
    gradient=lambda emit, op, *dys: [stack(emit, list(dys), axis=op._attrs["axis"])],
    shape_value=_unpack_value,
    doc="The slices of a tensor along a dimension, without it.",
)

# ---- Split --------------------------------------------------------------------------------------------


def _split_shape(c: ShapeContext) -> list[Shape]:
    s, axis, num = c.shape(1), c.value(0), c.attr("num_split")
    if s is None:
        return [None] * num
    if axis is None:
        return [(None,) * len(s)] * num
    at = int(axis)
    if not -len(s) <= at < len(s):
        raise ValueError(f"split_dim {at} is not in [-{len(s)}, {len(s)}) for an input of rank {len(s)}")
    at %= len(s)
    n = s[at]
    if n is not None and n % num:
        raise ValueError(f"Dimension size must be evenly divisible by {num} but is {n}")
    return [(*s[:at], None if n is None else n // num, *s[at + 1 :])] * num


def _split_kernel(split_dim: Any, value: Any, *, num_split: int) -> list[Any]:
    shape = np.shape(value)
    axis = normal_axis(int(split_dim), len(shape), "split_dim")
    n = shape[axis]
    fail_unless(
        n % num_split == 0,
        lambda: "Number of ways to split should evenly divide the split dimension, but got split_dim "
        f"{axis} (size = {n}) and num_split {num_split}",
    )
    step = n // num_split
    return [arrays.along(value, axis, i * step, (i + 1) * step) for i in range(num_split)]


define_op(
    "Split",
    inputs="split_dim: int32, value: T",
    outputs="output: num_split * T",
    attrs="num_split: int >= 1, T: type",
    shape=_split_shape,
    kernel=traceable(_split_kernel, host=_split_kernel, static=("split_dim",)),
    gradient=lambda emit, op, *dys: [None, _rejoin(emit, list(dys), op.inputs[0])],
    doc="Equal parts of a tensor along a dimension.",
)


def _rejoin(emit: Emitter, parts: list[Tensor], axis: Tensor) -> Tensor:
    if len(parts) == 1:  # a concatenation takes two
        result: Tensor = emit("Identity", parts[0], name="concat")
        return result
    return concat(emit, parts, axis)


def _split_v_shape(c: ShapeContext) -> list[Shape]:
    s, sizes, axis = c.shape(0), c.value(1), c.value(2)
    num = c.attr("num_split")
    if s is None:
        return [None] * num
    if axis is None:
        return [(None,) * len(s)] * num
    at = int(np.asarray(axis).reshape(()))
    if not -len(s) <= at < len(s):
        raise ValueError(f"split_dim {at} is not in [-{len(s)}, {len(s)}) for an input of rank {len(s)}")
    at %= len(s)
    if sizes is None:
        return [(*s[:at], s[at] if num == 1 else None, *s[at + 1 :])] * num
    parts: list[Dim] = [None if n < 0 else int(n) for n in sizes.reshape(-1)]
    if len(parts) != num:
        raise ValueError(f"Length of size_splits should be equal to num_outputs, got {len(parts)} and {num}")
    whole, known = s[at], sum(n for n in parts if n is not None)
    if whole is not None and (known > whole or (None not in parts and known != whole)):
        raise ValueError(
            f"can't split axis of size {whole} into pieces of size {shapes.format_shape(tuple(parts))}"
        )
    if whole is not None and parts.count(None) == 1:
        parts[parts.index(None)] = whole - known
    return [(*s[:at], n, *s[at + 1 :]) for n in parts]


def _split_v_kernel(value: Any, size_splits: Any, split_dim: Any, *, num_split: int) -> list[Any]:
    shape = np.shape(value)
    axis = normal_axis(int(np.asarray(split_dim).reshape(())), len(shape), "split_dim")
    sizes, whole = ints(size_splits), shape[axis]
    known = sum(n for n in sizes if n != -1)
    open_sizes = sizes.count(-1)
    fail_unless(
        len(sizes) == num_split and open_sizes <= 1 and all(n >= -1 for n in sizes)
        and (known <= whole if open_sizes else known == whole),
        lambda: f"size_splits {shape_text(sizes)} must be {num_split} sizes (one may be -1) that sum to the "
        f"dimension of Tensor of size {whole} along dimension {axis}",
    )
    result, at = [], 0
    for n in sizes:
        n = whole - known if n == -1 else n
        result.append(arrays.along(value, axis, at, at + n))
        at += n
    return result


define_op(
    "SplitV",
    inputs="value: T, size_splits: Tlen, split_dim: int32",
    outputs="output: num_split * T",
    attrs="num_split: int >= 1, T: type, Tlen: {int8, int32, int64} = int64",
    shape=_split_v_shape,
    kernel=traceable(_split_v_kernel, host=_split_v_kernel, static=("size_splits", "split_dim")),
    gradient=lambda emit, op, *dys: [_rejoin(emit, list(dys), op.inputs[2]), None, None],
    doc="Parts of given sizes of a tensor along a dimension; one size may be -1: what is left.",
)

