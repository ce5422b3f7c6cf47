"""Embeddings: rows of tables, which may be cut into parts, by id."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.graph.composite import SparseTensor
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import scope
from thalweg.library.array_ops import rank, shape, size
from thalweg.library.casting import cast
from thalweg.library.clip_ops import clip_by_norm
from thalweg.library.fill_ops import ones, zeros_like
from thalweg.library.gathering_ops import gather
from thalweg.library.math_ops import div_no_nan
from thalweg.library.partitioned_variable import PartitionedVariable
from thalweg.library.reduction_ops import reduce_prod, reduce_sum
from thalweg.library.segment_ops import (
    segment_sum,
    sparse_segment_mean,
    sparse_segment_sqrt_n,
    sparse_segment_sum,
)
from thalweg.library.sequence_ops import range as range_op


def _as_parts(params: Any) -> list[Any]:
    if params is None:
        raise ValueError("params must be specified")
    if isinstance(params, PartitionedVariable | list | tuple):
        parts = list(params)
        if not parts:
            raise ValueError("Need at least one param")
        return parts
    return [params]


def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: Any = None,
) -> Tensor:
    """The rows of a table at `ids`: the shape of ids + the shape of a row.

    params: a tensor or variable; or a list of them (a PartitionedVariable), the parts of the table: with
    "mod", id i
    is in part i % n; with "div", the parts are consecutive blocks, the first ones longer by one row where
    they don't
    divide evenly. Each part is read where it lives. max_norm: rows with a greater norm are scaled down to it.
    """
    parts = _as_parts(params)
    with scope(name, "embedding_lookup") as named:
        if not any(hasattr(p, "handle") for p in parts):
            parts = [convert_to_tensor(p, name=f"params_{i}") for i, p in enumerate(parts)]
        ids = convert_to_tensor(ids, name="ids")
        if len(parts) == 1:
            with get_default_graph().colocate_with(_where(parts[0]), ignore_existing=True):
                result = _clipped(gather(parts[0], ids, name=named), ids, max_norm)
            return emit("Identity", result)
        return _clipped(_from_parts(parts, ids, partition_strategy, named), ids, max_norm)


def _where(part: Any) -> Any:
    return part if isinstance(part, Tensor) else part.op


def _clipped(rows: Tensor, ids: Tensor, max_norm: Any) -> Tensor:
    if max_norm is None:
        return rows
    i, r = ids._shape, rows._shape
    if i and r is not None:
        axes: Any = list(range(len(i), len(r)))
    else:
        axes = range_op(len(i) if i else rank(ids), len(r) if r else rank(rows))
    return clip_by_norm(rows, max_norm, axes=axes)


def _from_parts(parts: list[Any], ids: Tensor, strategy: str, name: str) -> Tensor:
    """Ids sorted by part, looked up in each, and the rows put back into the order of the ids."""
    n = len(parts)
    flat = emit("Reshape", ids, [-1])
    order = range_op(size(flat))
    if strategy == "mod":
        part_of, new_ids = flat % n, flat // n
    elif strategy == "div":
        part_of, new_ids = _blocks(parts, flat)
    else:
        raise ValueError(f"Unrecognized partition strategy: {strategy}")
    part_of = cast(part_of, dtypes.int32)
    ids_by_part = emit("DynamicPartition", new_ids, part_of, num_partitions=n)
    places = emit("DynamicPartition", order, part_of, num_partitions=n)
    graph = get_default_graph()
    rows = []
    for part, its_ids in zip(parts, ids_by_part, strict=True):
        with graph.device(None), graph.colocate_with(_where(part), ignore_existing=True):
            rows.append(gather(part, its_ids))
    result = emit("ParallelDynamicStitch", places, rows, name=name)
    element: shapes.Shape = None
    for part in parts:
        static = part.get_shape().as_list() if part.get_shape().ndims is not None else None
        element = shapes.merge(element, None if static is None else tuple(static[1:]))
    if element is not None and shapes.is_fully_defined(element):
        inner: Any = np.array(element, np.int32)
    else:
        with graph.colocate_with(_where(parts[0]), ignore_existing=True):
            whole = shape(parts[0])
        inner = whole[1:]
    result = emit("Reshape", result, emit("ConcatV2", [shape(ids), inner], 0, name="concat"))
    if ids._shape is not None and element is not None:
        result.set_shape((*ids._shape, *element))
    return result


def _blocks(parts: list[Any], flat: Tensor) -> tuple[Tensor, Tensor]:
    """(the part, the row within it) of each id where parts are consecutive blocks."""
    n = len(parts)
    kind = flat.dtype.base_dtype
    lengths = [None if p.get_shape().ndims is None else p.get_shape().as_list()[0] for p in parts]
    if None not in lengths:
        total = emit.constant(sum(lengths), kind)
    else:
        graph = get_default_graph()
        sizes: list[Any] = []
        for part, length in zip(parts, lengths, strict=True):
            if length is not None:
                sizes.append(length)
                continue
            with graph.colocate_with(_where(part), ignore_existing=True):
                sizes.append(shape(part)[0])
        total = reduce_sum(cast(convert_to_tensor(sizes, name="stack"), kind))
    short = total // n
    longer = total % n  # so many parts have one row more
    part_of = emit("Maximum", flat // (short + 1), (flat - longer) // short)
    row = emit("Select", part_of < longer, flat % (short + 1), (flat - longer) % short)
    return part_of, row


# ---- bags of ids ---------------------------------------------------------------------------------------


def embedding_lookup_sparse(
    params: Any,
    sp_ids: SparseTensor,
    sp_weights: SparseTensor | None,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: Any = None,
) -> Tensor:
    """For each row of a SparseTensor of ids, its embeddings combined: "sum", "mean" or "sqrtn", by weights
    if given.

    Rows in the middle without ids give zeros; use safe_embedding_lookup_sparse for trailing ones and bad ids.
    """
    combiner = combiner or "mean"
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError("combiner must be one of 'mean', 'sqrtn' or 'sum'")
    parts = _as_parts(params)
    if not isinstance(sp_ids, SparseTensor):
        raise TypeError("sp_ids must be SparseTensor")
    if sp_weights is not None and not isinstance(sp_weights, SparseTensor):
        raise TypeError("sp_weights must be either None or SparseTensor")
    with scope(name, "embedding_lookup_sparse") as named:
        segments = cast(sp_ids.indices[:, 0], dtypes.int32)
        ids, places = emit("Unique", sp_ids.values)
        rows = embedding_lookup(parts, ids, partition_strategy=partition_strategy, max_norm=max_norm)
        if sp_weights is None:
            combine = {"sum": sparse_segment_sum, "mean": sparse_segment_mean, "sqrtn": sparse_segment_sqrt_n}
            return combine[combiner](rows, places, segments, name=named)
        return _weighted(gather(rows, places), sp_weights.values, segments, combiner, named)


def _weighted(rows: Tensor, weights: Tensor, segments: Tensor, combiner: str, name: str) -> Tensor:
    kind = rows.dtype.base_dtype
    if kind in (dtypes.float16, dtypes.bfloat16):
        rows = cast(rows, dtypes.float32)
    weights = cast(weights, rows.dtype.base_dtype)
    inner = ones(emit("ExpandDims", rank(rows) - 1, 0), dtypes.int32)
    static = weights._shape
    weights = emit("Reshape", weights, emit("ConcatV2", [shape(weights), inner], 0, name="concat"))
    if rows._shape is not None and static is not None:
        weights.set_shape((*static, *(1 for _ in rows._shape[1:])))
    rows = rows * weights
    if combiner == "sum":
        result = segment_sum(rows, segments, name=name)
    else:
        total = segment_sum(rows, segments)
        if combiner == "mean":
            divisor = segment_sum(weights, segments)
        else:
            divisor = emit("Sqrt", segment_sum(emit("Pow", weights, 2.0, name="Pow"), segments))
        result = div_no_nan(total, divisor, name=name)
    return cast(result, kind)


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: SparseTensor,
    sparse_weights: SparseTensor | None = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
) -> Tensor:
    """embedding_lookup_sparse that leaves out negative ids and weights that aren't positive.

    A row without ids gives the embedding of default_id, or zeros. sparse_ids may have more than two axes:
    the last
    is the bag.
    """
    parts = _as_parts(embedding_weights)
    with scope(name, "embedding_lookup") as named:
        original = sparse_ids.dense_shape
        static_rank = original._shape[0] if original._shape else None
        n: Any = static_rank if static_rank is not None else size(original)
        outer = reduce_prod(emit("Slice", original, [0], [n - 1]))
        flat_shape = convert_to_tensor([outer, gather(original, n - 1)], name="stack")
        indices, dense_shape = emit("SparseReshape", sparse_ids.indices, original, flat_shape)
        ids = SparseTensor(indices, sparse_ids.values, dense_shape)
        weights = (
            None if sparse_weights is None else SparseTensor(indices, sparse_weights.values, dense_shape)
        )
        ids, weights = _kept(ids, weights, emit("GreaterEqual", ids.values, 0))
        if weights is not None and combiner != "sum":
            ids, weights = _kept(ids, weights, emit("Greater", weights.values, 0.0))
        ids, empty = _filled(ids, default_id or 0)
        if weights is not None:
            weights, _ = _filled(weights, 1.0)
        result = embedding_lookup_sparse(
            parts,
            ids,
            weights,
            combiner=combiner,
            partition_strategy=partition_strategy,
            name=None if default_id is None else named,
            max_norm=max_norm,
        )
        if default_id is None:
            column = emit("Reshape", empty, [-1, 1])
            width = convert_to_tensor([1, shape(result)[1]], name="stack")
            mask = emit("Tile", column, width)
            result = emit("Select", mask, zeros_like(result), result, name=named)
        first = emit("Slice", cast(original, dtypes.int32), [0], [n - 1])
        last = emit("Slice", shape(result), [1], [-1])
        final = emit("Reshape", result, emit("ConcatV2", [first, last], 0, name="concat"))
        if static_rank is not None and result._shape is not None:
            final.set_shape((*([None] * (static_rank - 1)), *result._shape[1:]))
        return final


def _kept(
    ids: SparseTensor, weights: SparseTensor | None, condition: Tensor
) -> tuple[SparseTensor, SparseTensor | None]:
    """The cells where condition is true."""
    where = emit("Reshape", emit("Where", condition), [-1])
    kept = [
        None if t is None else SparseTensor(gather(t.indices, where), gather(t.values, where), t.dense_shape)
        for t in (ids, weights)
    ]
    return kept[0], kept[1]  # type: ignore[return-value]


def _filled(x: SparseTensor, default: Any) -> tuple[SparseTensor, Tensor]:
    """x with a cell in every row, and which rows had none."""
    value = convert_to_tensor(default, x.values.dtype.base_dtype)
    indices, values, empty, _ = emit("SparseFillEmptyRows", x.indices, x.values, x.dense_shape, value)
    return SparseTensor(indices, values, x.dense_shape), empty
