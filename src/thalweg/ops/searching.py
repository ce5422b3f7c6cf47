"""Finding elements: Where, Unique, ListDiff, TopK, InTopK.

Source: TensorFlow's where_op.cc, unique_op.cc, topk_op.cc, in_topk_op.cc, nn_grad.py.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.base import dtypes
from thalweg.base.shape import Shape
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import host, traceable
from thalweg.ops._arrays import fail_unless, is_host
from thalweg.ops._emitting import element, stack
from thalweg.ops._top import top
from thalweg.ops._types import INDEX, REAL

_POSITIONS = NotDifferentiable("positions are integers")


def _where_shape(c: ShapeContext) -> list[Shape]:
    s = c.shape(0)
    return [(None, None if s is None else len(s))]


define_op(
    "Where",
    inputs="input: T",
    outputs="index: int64",
    attrs="T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
    "qint16, quint16, uint16, complex128, half, uint32, uint64, bool} = bool",
    shape=_where_shape,
    kernel=host(lambda x: np.argwhere(x).astype(np.int64).reshape(-1, np.ndim(x))),
    gradient=_POSITIONS,
    doc="The positions of what is true (not zero), in row-major order.",
)


def _first_places(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct elements in order of their first place, the number of each element, and the counts.

    NaN differs from NaN.
    """
    fail_unless(x.ndim == 1, lambda: f"unique expects a 1D vector, got rank {x.ndim}")
    options = {} if x.dtype == object else {"equal_nan": False}
    _, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, **options
    )
    order = np.argsort(first, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return x[first[order]], number[inverse.reshape(-1)], counts[order]


def _unique_kernel(x: Any, *, out_idx: np.dtype) -> list[np.ndarray]:
    values, places, _ = _first_places(x)
    return [values, places.astype(out_idx)]


def _unique_with_counts_kernel(x: Any, *, out_idx: np.dtype) -> list[np.ndarray]:
    values, places, counts = _first_places(x)
    return [values, places.astype(out_idx), counts.astype(out_idx)]


define_op(
    "Unique",
    inputs="x: T",
    outputs="y: T, idx: out_idx",
    attrs=f"T: type, out_idx: {INDEX} = int32",
    shape=lambda c: [(None,), c.with_rank(0, 1)],
    kernel=host(_unique_kernel),
    gradient=NotDifferentiable("as TensorFlow has it"),
    doc="The distinct elements of a vector in order of first occurrence, and for each element which it is.",
)

define_op(
    "UniqueWithCounts",
    inputs="x: T",
    outputs="y: T, idx: out_idx, count: out_idx",
    attrs=f"T: type, out_idx: {INDEX} = int32",
    shape=lambda c: [(None,), c.with_rank(0, 1), (None,)],
    kernel=host(_unique_with_counts_kernel),
    gradient=NotDifferentiable("as TensorFlow has it"),
    doc="As Unique, and how often each distinct element occurs.",
)


def _list_diff_kernel(x: Any, y: Any, *, out_idx: np.dtype) -> list[np.ndarray]:
    for name, v in (("x", x), ("y", y)):
        fail_unless(v.ndim == 1, lambda name=name: f"{name} should be a 1D vector.")
    gone = set(y.tolist())
    kept = np.array([i for i, v in enumerate(x.tolist()) if v not in gone], np.int64)
    return [x[kept], kept.astype(out_idx)]


define_op(
    "ListDiff",
    inputs="x: T, y: T",
    outputs="out: T, idx: out_idx",
    attrs=f"T: type, out_idx: {INDEX} = int32",
    shape=lambda c: [(None,), (None,)],
    kernel=host(_list_diff_kernel),
    gradient=_POSITIONS,
    doc="The elements of x that are not in y, and their places.",
)

# ---- TopK ---------------------------------------------------------------------------------------------


def _top_shape(c: ShapeContext, k: int | None) -> list[Shape]:
    s = c.with_rank_at_least(0, 1)
    if k is not None and k < 0:
        raise ValueError(f"Need k >= 0, got {k}")
    if s is None:
        return [None, None]
    if k is not None and s[-1] is not None and s[-1] < k:
        raise ValueError(f"input must have last dimension >= k = {k} but is {s[-1]}")
    return [(*s[:-1], k)] * 2


def _top(x: Any, k: int, index_type: Any = np.int32) -> list[Any]:
    """The k largest elements of each row, in descending order, equal ones in order of place."""
    fail_unless(np.ndim(x) >= 1, lambda: "input must be >= 1-D")
    n = np.shape(x)[-1]
    fail_unless(k >= 0, lambda: f"Need k >= 0, got {k}")
    fail_unless(n >= k, lambda: f"input must have at least k columns. Had {n}, needed {k}")
    if is_host(x):
        backwards = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
        places = n - 1 - backwards[..., :k]
        return [np.take_along_axis(x, places, -1), places.astype(index_type)]
    values, places = top(x, k)
    return [values, lax.convert_element_type(places, index_type)]


def _top_k_v2_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(1, 0)
    k = c.value(1)
    return _top_shape(c, None if k is None else int(k))


def _top_gradient(emit: Emitter, op: Operation, dy: Tensor, _: Any) -> list[Tensor | None]:
    """The gradient scattered to where the values came from, with places as one flat index."""
    in_shape, ind_shape = emit.shape(op.inputs[0]), emit.shape(op.outputs[1])

    def last(shape: Tensor) -> Tensor:
        wide = emit("Cast", shape, DstT=dtypes.int64)
        at = emit("Sub", emit.size(shape), 1, name="sub")
        result: Tensor = emit("GatherV2", wide, at, 0)
        return result

    width = last(ind_shape)
    places = emit("Reshape", op.outputs[1], stack(emit, [-1, width]))
    columns = last(in_shape)
    rows = element(emit, emit.shape(places), 0)
    total = emit("Mul", emit("Cast", rows, DstT=dtypes.int64), columns, name="mul")
    with get_default_graph().name_scope("range") as scope:
        zero = emit("Cast", emit.constant(0, dtypes.int32, name="start"), DstT=dtypes.int64)
        starts = emit("Range", zero, total, columns, name=scope)
    offsets = emit("Cast", emit("ExpandDims", starts, -1), DstT=op.outputs[1]._dtype)
    flat = emit("Reshape", emit("AddV2", places, offsets, name="add"), [-1])
    size = emit("Prod", in_shape, emit.constant([0], dtypes.int32))
    if op.outputs[1]._dtype != dtypes.int32:
        size = emit("Cast", size, DstT=op.outputs[1]._dtype)
    sum_ = emit("ScatterNd", emit("ExpandDims", flat, -1), emit("Reshape", dy, [-1]), [size])
    return [emit("Reshape", sum_, in_shape), *[None] * (len(op.inputs) - 1)]


define_op(
    "TopK",
    inputs="input: T",
    outputs="values: T, indices: int32",
    attrs=f"k: int >= 0, sorted: bool = True, T: {REAL}",
    shape=lambda c: _top_shape(c, c.attr("k")),
    kernel=traceable(lambda x, *, k: _top(x, k), host=lambda x, *, k: _top(x, k)),
    gradient=_top_gradient,
    doc="The k largest elements of each row and their places; of equal ones the first comes first.",
)


def _top_k_v2_kernel(x: Any, k: Any, *, index_type: np.dtype) -> list[Any]:
    return _top(x, int(k), index_type)


define_op(
    "TopKV2",
    inputs="input: T, k: Tk",
    outputs="values: T, indices: index_type",
    attrs=f"sorted: bool = True, T: {REAL}, Tk: {{int16, int32, int64}} = int32, "
    "index_type: {int16, int32, int64} = int32",
    shape=_top_k_v2_shape,
    kernel=traceable(_top_k_v2_kernel, host=_top_k_v2_kernel, static=("k",)),
    gradient=_top_gradient,
    doc="The k largest elements of each row and their places; of equal ones the first comes first.",
)


def _in_top_k_shape(c: ShapeContext) -> list[Shape]:
    predictions, targets = c.with_rank(0, 2), c.with_rank(1, 1)
    assert predictions is not None and targets is not None
    a, b = predictions[0], targets[0]
    if a is not None and b is not None and a != b:
        raise ValueError(f"Dimensions must be equal, but are {a} and {b}: predictions and targets")
    return [(b if a is None else a,)]


def _in_top(predictions: Any, targets: Any, k: Any) -> Any:
    rows, classes = np.shape(predictions)
    fail_unless(
        np.shape(targets) == (rows,),
        lambda: f"First dimension of predictions {rows} must match length of targets {np.shape(targets)}",
    )
    xp: Any = np if is_host(predictions, targets, k) else jnp
    if not classes:
        return xp.zeros((rows,), bool)
    inside = (targets >= 0) & (targets < classes)
    at = xp.clip(targets, 0, classes - 1)
    own = xp.take_along_axis(predictions, at[:, None], 1)
    higher = xp.sum(predictions > own, axis=1)
    # nothing can be said of a row with a NaN or an infinity
    finite = xp.all(xp.isfinite(predictions), axis=1)
    return inside & finite & (higher < k)


define_op(
    "InTopK",
    inputs="predictions: float, targets: T",
    outputs="precision: bool",
    attrs=f"k: int, T: {INDEX} = int32",
    shape=_in_top_k_shape,
    kernel=traceable(
        lambda predictions, targets, *, k: _in_top(predictions, targets, np.int64(k)),
        host=lambda predictions, targets, *, k: _in_top(predictions, targets, np.int64(k)),
    ),
    gradient=NotDifferentiable("the result is true or false"),
    doc="Whether the target of each row is among its k highest predictions; ties count as in.",
)

define_op(
    "InTopKV2",
    inputs="predictions: float, targets: T, k: T",
    outputs="precision: bool",
    attrs=f"T: {INDEX} = int32",
    shape=_in_top_k_shape,
    kernel=traceable(_in_top, host=_in_top),
    gradient=NotDifferentiable("the result is true or false"),
    doc="Whether the target of each row is among its k highest predictions; ties count as in.",
)
