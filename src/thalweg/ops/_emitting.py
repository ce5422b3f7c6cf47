"""The spelling of slices and stacks in gradients: TensorFlow's Python sugar, node for node."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from thalweg.base import dtypes
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Tensor


def beside(tensor: Tensor) -> AbstractContextManager[Any]:
    """Nodes made inside are placed with the tensor's operation."""
    scope: AbstractContextManager[Any] = get_default_graph().colocate_with(tensor)
    return scope


def _slice_node(emit: Emitter, x: Tensor, begin: Any, end: Any, **masks: int) -> Tensor:
    with get_default_graph().name_scope("strided_slice") as scope:
        if end is None:
            end = emit("AddV2", begin, 1, name="add")
        kind = next((v._dtype.base_dtype for v in (begin, end) if isinstance(v, Tensor)), dtypes.int32)
        bounds = [
            emit("Pack", [v], name=name) if isinstance(v, Tensor) else emit.constant([v], kind, name=name)
            for v, name in ((begin, "stack"), (end, "stack_1"), (1, "stack_2"))
        ]
        result: Tensor = emit("StridedSlice", x, *bounds, name=scope, **masks)
    return result


def element(emit: Emitter, x: Tensor, i: Any) -> Tensor:
    """x[i] along the first axis."""
    return _slice_node(emit, x, i, None if isinstance(i, Tensor) else i + 1, shrink_axis_mask=1)


def head(emit: Emitter, x: Tensor, n: Any) -> Tensor:
    """x[:n] along the first axis."""
    return _slice_node(emit, x, 0, n, begin_mask=1)


def tail(emit: Emitter, x: Tensor, n: Any) -> Tensor:
    """x[n:] along the first axis."""
    return _slice_node(emit, x, n, 0, end_mask=1)


def column(emit: Emitter, x: Tensor, i: int) -> Tensor:
    """x[:, i]."""
    with get_default_graph().name_scope("strided_slice") as scope:
        bounds = [
            emit.constant(v, dtypes.int32, name=n)
            for v, n in (([0, i], "stack"), ([0, i + 1], "stack_1"), ([1, 1], "stack_2"))
        ]
        result: Tensor = emit(
            "StridedSlice", x, *bounds, begin_mask=1, end_mask=1, shrink_axis_mask=2, name=scope
        )
    return result


def concat(emit: Emitter, values: list[Any], axis: Any) -> Tensor:
    """tf.concat."""
    result: Tensor = emit("ConcatV2", values, axis, name="concat")
    return result


def stack(emit: Emitter, values: list[Any], axis: int = 0) -> Tensor:
    """tf.stack; constants among the values are called "stack/1" and so on."""
    with get_default_graph().name_scope("stack") as scope:
        wanted = next((v.dtype for v in values if isinstance(v, Tensor)), dtypes.int32)
        items = [
            v if isinstance(v, Tensor) else emit.constant(v, wanted, name=str(i))
            for i, v in enumerate(values)
        ]
        result: Tensor = emit("Pack", items, axis=axis, name=scope)
    return result


def dense(emit: Emitter, grad: Any) -> Tensor:
    """A gradient as a dense tensor."""
    if not isinstance(grad, IndexedSlices):
        tensor: Tensor = grad
        return tensor
    if grad.dense_shape is None:
        raise ValueError(f"Tensor conversion requested for IndexedSlices without dense_shape: {grad}")
    rows = element(emit, grad.dense_shape, 0)
    result: Tensor = emit("UnsortedSegmentSum", grad.values, grad.indices, rows)
    return result


def like_input(emit: Emitter, x: Tensor, grad: Any) -> Tensor:
    """The gradient in the shape of the input x."""
    result: Tensor = emit("Reshape", dense(emit, grad), emit.shape(x))
    return result
