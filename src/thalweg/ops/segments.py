"""Reductions of rows that share an id, and counts. Source: TensorFlow's segment_reduction_ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import GradientFn, NotDifferentiable, OpRecord, define_op
from thalweg.graph.shape_context import ShapeContext, constant_value
from thalweg.kernel import checks
from thalweg.kernel.convention import host, traceable
from thalweg.ops._broadcast import is_integer
from thalweg.ops._gradient_nodes import cast, mul, ones, ones_like, truediv, zeros_like
from thalweg.ops._types import NUMBER, REAL

# -- sorted ids: how many segments there are depends on their values, so these run on the host ---------------


def _segment_shape(c: ShapeContext) -> list[Shape]:
    data = c.with_rank_at_least(0, 1)
    ids = c.with_rank(1, 1)
    assert ids is not None
    if data is None:
        return [None]
    shapes.merge(data[:1], ids)
    return [(None, *data[1:])]  # TensorFlow doesn't look at the ids, where they are known either


def _starts(data: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each segment that has rows starts, and its id. InvalidArgumentError for bad ids."""
    checks.require(
        ids.ndim == 1 and data.ndim >= 1 and ids.shape[0] == data.shape[0],
        lambda: "segment_ids should be the same size as dimension 0 of input.",
    )
    checks.require(ids.size == 0 or int(ids[0]) >= 0, lambda: "segment ids must be >= 0")
    checks.require(bool(np.all(ids[1:] >= ids[:-1])), lambda: "segment ids are not increasing")
    starts = (
        np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]])) if ids.size else np.zeros(0, np.intp)
    )
    return starts, ids[starts]


def _segmented(ufunc: np.ufunc, empty: float) -> Callable[..., np.ndarray]:
    """The kernel that joins the rows of each segment by `ufunc`; segments without rows get `empty`."""

    def kernel(data: np.ndarray, segment_ids: np.ndarray) -> np.ndarray:
        starts, present = _starts(data, segment_ids)
        count = int(segment_ids[-1]) + 1 if segment_ids.size else 0
        out = np.full((count, *data.shape[1:]), empty, data.dtype)
        if starts.size:
            with np.errstate(all="ignore"):
                out[present] = ufunc.reduceat(data, starts, axis=0, dtype=data.dtype)
        return out

    return kernel


def _segment_mean(data: np.ndarray, segment_ids: np.ndarray) -> np.ndarray:
    total = _segmented(np.add, 0)(data, segment_ids)
    counts = np.bincount(segment_ids, minlength=total.shape[0])[: total.shape[0]]
    counts = np.maximum(counts, 1).reshape((-1,) + (1,) * (data.ndim - 1))
    if is_integer(data):
        quotient = np.abs(total) // counts
        return np.where(total < 0, -quotient, quotient).astype(data.dtype)
    return (total / counts.astype(data.dtype)).astype(data.dtype)


def _gather(emit: Emitter, x: Tensor, ids: Tensor) -> Tensor:
    return emit("GatherV2", x, ids, 0)


def _segment_sum_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [_gather(emit, dy, op._inputs[1]), None]


def _segment_mean_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    data, ids = op._inputs
    rank = emit.rank(data)
    ids_shape = emit.shape(ids)
    trailing = emit("ExpandDims", emit("Sub", rank, 1, name="sub"), 0)
    column = emit("ConcatV2", [ids_shape, ones(emit, trailing, dtypes.int32)], 0, name="concat")
    counts = emit("SegmentSum", ones(emit, column, dy._dtype.base_dtype), ids)
    return [_gather(emit, truediv(emit, dy, counts), ids), None]


def _segment_extreme_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    data, ids = op._inputs
    zeros = zeros_like(emit, data)
    chosen = emit("Equal", data, _gather(emit, op._outputs[0], ids))
    counts = emit("SegmentSum", cast(emit, chosen, dy._dtype), ids)
    shared = _gather(emit, truediv(emit, dy, counts), ids)
    return [emit("SelectV2", chosen, shared, zeros), None]


def _segment_prod_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    """By cases: a segment may have no zero, one (its own derivative alone isn't 0) or more (all are 0)."""
    data, ids = op._inputs
    is_zero = emit("Equal", data, 0)
    zeros = emit("SegmentSum", cast(emit, is_zero, dtypes.int32), ids)
    dy = emit("SelectV2", emit("Greater", zeros, 1), zeros_like(emit, dy), dy)
    others = emit("SelectV2", is_zero, ones_like(emit, data), data)
    product = _gather(emit, op._outputs[0], ids)
    product_of_others = _gather(emit, emit("SegmentProd", others, ids), ids)
    partial = emit("SelectV2", is_zero, product_of_others, truediv(emit, product, others))
    return [mul(emit, _gather(emit, dy, ids), partial), None]


def _define_segment(
    name: str, types: str, fn: Callable[..., Any], gradient: GradientFn, doc: str
) -> OpRecord:
    return define_op(
        name,
        inputs="data: T, segment_ids: Tindices",
        outputs="output: T",
        attrs=f"T: {types}, Tindices: {{int32, int64}}",
        shape=_segment_shape,
        kernel=host(fn),
        gradient=gradient,
        doc=doc,
    )


_define_segment(
    "SegmentSum", NUMBER, _segmented(np.add, 0), _segment_sum_gradient, "Sums of rows by sorted id."
)
_define_segment("SegmentMean", NUMBER, _segment_mean, _segment_mean_gradient, "Means of rows by sorted id.")
_define_segment(
    "SegmentProd",
    NUMBER,
    _segmented(np.multiply, 1),
    _segment_prod_gradient,
    "Products of rows by sorted id.",
)
_define_segment(
    "SegmentMax",
    REAL,
    _segmented(np.maximum, 0),
    _segment_extreme_gradient,
    "The largest by sorted id; else 0.",
)
_define_segment(
    "SegmentMin",
    REAL,
    _segmented(np.minimum, 0),
    _segment_extreme_gradient,
    "The smallest by sorted id; else 0.",
)


# -- any ids, a given number of segments ---------------------------------------------------------------------


def _unsorted_shape(c: ShapeContext) -> list[Shape]:
    data, ids = c.shape(0), c.shape(1)
    count = c.value(2)
    if count is not None and int(count) < 0:
        raise ValueError(f"Dimension size, given by scalar input 2, must be non-negative but is {int(count)}")
    if data is None or ids is None:
        return [None]
    if len(data) < len(ids):
        raise ValueError(
            f"Shape must be at least rank {len(ids)} but is rank {len(data)}: data starts with its shape"
        )
    shapes.merge(data[: len(ids)], ids)
    return [(None if count is None else int(count), *data[len(ids) :])]


def _bad_id(ids: np.ndarray, count: np.ndarray) -> str:
    at = tuple(int(i) for i in np.argwhere(ids >= count)[0])
    where = ",".join(str(i) for i in at)
    return f"segment_ids[{where}] = {ids[at]} is out of range [0, {int(count)})"


def _may_have_bad_id(op: Operation) -> bool:
    ids, count = constant_value(op._inputs[1]), constant_value(op._inputs[2])
    return ids is None or count is None or bool((ids >= count).any())


def _unsorted(scatter: Callable[..., Any], empty: Callable[[np.dtype], Any]) -> Callable[..., Any]:
    """The kernel that joins rows by `scatter`. Negative ids are left out; ids past the end are an error."""

    def kernel(data: Any, segment_ids: Any, num_segments: np.ndarray) -> Any:
        n = int(num_segments)
        checks.require(n >= 0, lambda: f"num_segments = {n} must not be negative")
        checks.require(
            data.shape[: segment_ids.ndim] == segment_ids.shape,
            lambda: (
                f"data.shape = {shapes.format_shape(tuple(data.shape))} does not start with "
                f"segment_ids.shape = {shapes.format_shape(tuple(segment_ids.shape))}"
            ),
        )
        _require_ids(segment_ids, n)
        row = tuple(data.shape[segment_ids.ndim :])
        ids = lax.reshape(segment_ids, (segment_ids.size, 1))
        # scatter takes indices from the end where negative: send them past it, where rows are dropped
        ids = lax.convert_element_type(ids, np.int64)
        ids = lax.select(lax.lt(ids, lax.full_like(ids, 0)), lax.full_like(ids, n), ids)
        start = lax.full((n, *row), np.array(empty(data.dtype), data.dtype), data.dtype)
        rows = lax.reshape(data, (segment_ids.size, *row))
        numbers = lax.ScatterDimensionNumbers(
            update_window_dims=tuple(range(1, rows.ndim)),
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
        )
        return scatter(start, ids, rows, numbers, mode=lax.GatherScatterMode.FILL_OR_DROP)

    return kernel


def _require_ids(ids: Any, n: int) -> None:
    count = np.array(n, ids.dtype)
    if isinstance(ids, np.ndarray):
        checks.require(bool(np.all(ids < count)), lambda: _bad_id(ids, count))
        return
    ok = lax.reduce_and(lax.lt(ids, lax.full_like(ids, count)), tuple(range(ids.ndim)))
    checks.require(ok, _bad_id, ids, count)


def _lowest(dtype: np.dtype) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else jnp.finfo(dtype).min


def _highest(dtype: np.dtype) -> Any:
    return np.iinfo(dtype).max if dtype.kind in "iu" else jnp.finfo(dtype).max


class _DropNegatives:
    """Gathers rows by ids, zeros for negative ids; what it needs of the ids is made once."""

    def __init__(self, emit: Emitter, ids: Tensor, clipped: Tensor | None = None) -> None:
        self.emit = emit
        self.ids = ids
        self.clipped = emit("Maximum", ids, zeros_like(emit, ids)) if clipped is None else clipped
        self.positive: Tensor | None = None

    def __call__(self, params: Tensor) -> Tensor:
        emit = self.emit
        gathered = _gather(emit, params, self.clipped)
        if self.positive is None:
            self.positive = self._positive(gathered)
        return emit("SelectV2", self.positive, gathered, zeros_like(emit, gathered))

    def _positive(self, gathered: Tensor) -> Tensor:
        """Whether the id of each element of `gathered` is not negative."""
        emit = self.emit
        positive = emit("GreaterEqual", self.ids, 0)
        dims = emit.shape(positive)
        more = emit("Sub", emit.rank(gathered), emit.rank(positive), name="sub")
        trailing = ones(emit, [more], dtypes.int32)
        column = emit("Reshape", positive, emit("ConcatV2", [dims, trailing], 0, name="concat"))
        return emit("LogicalAnd", column, ones_like(emit, gathered, dtypes.bool), name="and")


def _unsorted_sum_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [_DropNegatives(emit, op._inputs[1])(dy), None, None]


def _unsorted_extreme_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    data, ids, count = op._inputs
    gather = _DropNegatives(emit, ids)
    chosen = emit("Equal", data, gather(op._outputs[0]))
    chosen = emit("LogicalAnd", chosen, gather.positive)
    counts = emit("UnsortedSegmentSum", cast(emit, chosen, dy._dtype), ids, count)
    shared = gather(truediv(emit, dy, counts))
    return [emit("SelectV2", chosen, shared, zeros_like(emit, shared)), None, None]


def _unsorted_prod_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    """By cases, as for SegmentProd."""
    data, ids, count = op._inputs
    is_zero = emit("Equal", data, 0)
    zeros = emit("UnsortedSegmentSum", cast(emit, is_zero, dtypes.int32), ids, count)
    dy = emit("SelectV2", emit("Greater", zeros, 1), zeros_like(emit, dy), dy)
    others = emit("SelectV2", is_zero, ones_like(emit, data), data)
    product_of_others = emit("UnsortedSegmentProd", others, ids, count)
    clipped = emit("Maximum", ids, zeros_like(emit, ids))
    product = _gather(emit, op._outputs[0], clipped)
    product_of_others = _gather(emit, product_of_others, clipped)
    # divided by the data without its zeros: TensorFlow divides by the data and drops the NaN after
    partial = emit("SelectV2", is_zero, product_of_others, truediv(emit, product, others))
    return [mul(emit, _DropNegatives(emit, ids, clipped)(dy), partial), None, None]


def _define_unsorted(
    name: str, types: str, fn: Callable[..., Any], gradient: GradientFn, doc: str
) -> OpRecord:
    ids = "{int16, int32, int64}" if name == "UnsortedSegmentSum" else "{int32, int64}"
    return define_op(
        name,
        inputs="data: T, segment_ids: Tindices, num_segments: Tnumsegments",
        outputs="output: T",
        attrs=f"T: {types}, Tindices: {ids}, Tnumsegments: {{int32, int64}} = int32",
        shape=_unsorted_shape,
        kernel=traceable(fn, static=("num_segments",), may_fail=_may_have_bad_id),
        gradient=gradient,
        doc=doc,
    )


_define_unsorted(
    "UnsortedSegmentSum",
    NUMBER,
    _unsorted(lax.scatter_add, lambda dtype: 0),
    _unsorted_sum_gradient,
    "Sums of rows by id; rows with a negative id are left out.",
)
_define_unsorted(
    "UnsortedSegmentProd",
    NUMBER,
    _unsorted(lax.scatter_mul, lambda dtype: 1),
    _unsorted_prod_gradient,
    "Products of rows by id; rows with a negative id are left out.",
)
_define_unsorted(
    "UnsortedSegmentMax",
    REAL,
    _unsorted(lax.scatter_max, _lowest),
    _unsorted_extreme_gradient,
    "The largest by id; the lowest number where there is none.",
)
_define_unsorted(
    "UnsortedSegmentMin",
    REAL,
    _unsorted(lax.scatter_min, _highest),
    _unsorted_extreme_gradient,
    "The smallest by id; the highest number where there is none.",
)


# -- counting ------------------------------------------------------------------------------------------------


def _bincount_shape(c: ShapeContext) -> list[Shape]:
    size = c.value(1)
    if size is None:
        return [(None,)]
    if np.size(size) != 1 or int(size) < 0:
        raise ValueError(f"size ({size}) must be non-negative")
    return [(int(size),)]


def _bincount(arr: Any, size: np.ndarray, weights: Any) -> Any:
    n = int(size)
    checks.require(n >= 0, lambda: f"size ({n}) must be non-negative")
    checks.require(
        weights.size == 0 or weights.shape == arr.shape,
        lambda: (
            "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it "
            f"acts as all weights equal to 1. Received {shapes.format_shape(tuple(weights.shape))}"
        ),
    )
    flat = lax.reshape(arr, (arr.size,))
    least = lax.reduce(flat, np.array(0, arr.dtype), lax.min, (0,))
    checks.require(lax.ge(least, lax.full_like(least, 0)), lambda: "Input arr must be non-negative!")
    ones = weights.size == 0
    amounts = lax.full((arr.size,), 1, weights.dtype) if ones else lax.reshape(weights, (arr.size,))
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    return lax.scatter_add(
        lax.full((n,), 0, weights.dtype),
        lax.reshape(flat, (arr.size, 1)),
        amounts,
        numbers,
        mode=lax.GatherScatterMode.FILL_OR_DROP,
    )


def _may_have_negative(op: Operation) -> bool:
    arr = constant_value(op._inputs[0])
    return arr is None or bool((arr < 0).any())


bincount = define_op(
    "Bincount",
    inputs="arr: int32, size: int32, weights: T",
    outputs="bins: T",
    attrs="T: {int32, int64, float, double}",
    shape=_bincount_shape,
    kernel=traceable(_bincount, static=("size",), may_fail=_may_have_negative),
    gradient=NotDifferentiable("TensorFlow has none"),
    doc="How often each of 0 ... size - 1 is in arr, or the sum of its weights; larger ones are left out.",
)
