"""Reductions along axes, running sums, and the positions of extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.graph.composite import SparseTensor
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import renamed, scope
from thalweg.library.casting import cast
from thalweg.library.sequence_ops import range


def _axes(x: Any, axis: Any) -> Any:
    """The axes to reduce: `axis`, or all of x's."""
    if axis is not None:
        return axis
    if isinstance(x, Tensor) or hasattr(x, "get_shape"):
        rank = x.get_shape().ndims
        if rank:
            return emit.constant(np.arange(rank, dtype=np.int32))
    if isinstance(x, SparseTensor):
        return range(0, emit("Size", x.dense_shape, name="Rank"))
    return range(0, _rank(x))


def _rank(x: Any) -> Tensor:
    with scope(None, "Rank") as named:
        return emit.rank(convert_to_tensor(x), name=named)


def _reduce(op: str, x: Any, axis: Any, keepdims: Any, name: str | None) -> Tensor:
    result: Tensor = emit(op, x, _axes(x, axis), keep_dims=bool(keepdims), name=name)
    if axis is None and not keepdims and not shapes.is_fully_defined(result._shape):
        result.set_shape(())
    return result


def reduce_sum(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The sum along `axis` (an int or several; all where None); keepdims keeps those axes with length 1."""
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    return _reduce("Sum", input_tensor, axis, renamed("keepdims", keepdims, "keep_dims", keep_dims), name)


def reduce_mean(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The mean along `axis`; of integers, rounded down. NaN over nothing. Arguments as reduce_sum's."""
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    return _reduce("Mean", input_tensor, axis, renamed("keepdims", keepdims, "keep_dims", keep_dims), name)


def reduce_prod(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The product along `axis`. Arguments as reduce_sum's."""
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    return _reduce("Prod", input_tensor, axis, renamed("keepdims", keepdims, "keep_dims", keep_dims), name)


def reduce_max(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The maximum along `axis`. Arguments as reduce_sum's."""
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    return _reduce("Max", input_tensor, axis, renamed("keepdims", keepdims, "keep_dims", keep_dims), name)


def reduce_min(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The minimum along `axis`. Arguments as reduce_sum's."""
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    return _reduce("Min", input_tensor, axis, renamed("keepdims", keepdims, "keep_dims", keep_dims), name)


def reduce_all(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Whether all are true along `axis`. Arguments as reduce_sum's."""
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    return _reduce("All", input_tensor, axis, renamed("keepdims", keepdims, "keep_dims", keep_dims), name)


def reduce_any(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Whether any is true along `axis`. Arguments as reduce_sum's."""
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    return _reduce("Any", input_tensor, axis, renamed("keepdims", keepdims, "keep_dims", keep_dims), name)


def reduce_logsumexp(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """log(sum(exp(x))) along `axis`, without overflow. Arguments as reduce_sum's."""
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    keepdims = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    with scope(name, "ReduceLogSumExp") as named:
        highest = _reduce("Max", input_tensor, axis, True, None)
        finite = emit("IsFinite", highest)
        highest = emit("StopGradient", emit("SelectV2", finite, highest, 0))
        shifted = emit("Exp", emit("Sub", input_tensor, highest))
        result = emit("Log", _reduce("Sum", shifted, axis, keepdims, None))
        if not keepdims:
            highest = emit("Reshape", highest, emit("Shape", result))
        result = emit("AddV2", result, highest, name=named)
        if axis is None and not keepdims and not shapes.is_fully_defined(result._shape):
            result.set_shape(())
        return result


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool | None = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squares along `axis`."""
    return _reduce("EuclideanNorm", input_tensor, axis, keepdims, name)


def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool | None = False, name: str | None = None
) -> Tensor:
    """The mean squared distance from the mean along `axis`. TypeError for integers."""
    with scope(name or None, "reduce_variance"):
        x = convert_to_tensor(input_tensor)
        means = reduce_mean(x, axis, True)
        if means.dtype.is_integer:
            raise TypeError(f"Input must be either real or complex, got {means.dtype.name}")
        deviation = x - means
        if deviation.dtype.is_complex:
            kind = deviation.dtype.real_dtype
            squares = emit("Real", emit("Mul", emit("Conj", deviation), deviation), Tout=kind)
        else:
            squares = emit("Square", deviation)
        return reduce_mean(squares, axis, keepdims)


def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool | None = False, name: str | None = None
) -> Tensor:
    """The standard deviation along `axis`: the square root of reduce_variance."""
    with scope(name or None, "reduce_std"):
        x = convert_to_tensor(input_tensor)
        return emit("Sqrt", reduce_variance(x, axis, keepdims))


def count_nonzero(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = dtypes.int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
    input: Any = None,
) -> Tensor:
    """How many elements along `axis` are not zero (false, ""), as `dtype`."""
    keepdims = renamed("keepdims", keepdims, "keep_dims", keep_dims)
    x = renamed("input", input, "input_tensor", input_tensor)
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    with scope(name, "count_nonzero"):
        x = convert_to_tensor(x, name="input")
        kind = x.dtype.base_dtype
        if kind != dtypes.bool:
            zero = emit.constant(b"" if kind == dtypes.string else 0, kind, "zeros")
            x = emit("NotEqual", x, zero)
        return cast(reduce_sum(cast(x, dtypes.int64), axis, keepdims), dtype)


# ---- positions -----------------------------------------------------------------------------------------


def _position(op: str, input: Any, axis: Any, output_type: Any, name: str | None) -> Tensor:
    return emit(op, input, 0 if axis is None else axis, output_type=dtypes.as_dtype(output_type), name=name)


def argmax(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:
    """Where the maximum along `axis` (0 where not given) is: the first such place."""
    return _position("ArgMax", input, renamed("axis", axis, "dimension", dimension), output_type, name)


def argmin(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:
    """Where the minimum along `axis` (0 where not given) is: the first such place."""
    return _position("ArgMin", input, renamed("axis", axis, "dimension", dimension), output_type, name)


def arg_max(input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """Where the maximum along `dimension` is: the first such place."""
    return _position("ArgMax", input, dimension, output_type, name)


def arg_min(input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """Where the minimum along `dimension` is: the first such place."""
    return _position("ArgMin", input, dimension, output_type, name)


# ---- running sums --------------------------------------------------------------------------------------


def cumsum(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The sums of the elements so far along `axis`; exclusive leaves the element itself out; reverse: from
    the end."""
    with scope(name, "Cumsum") as named:
        x = convert_to_tensor(x, name="x")
        return emit("Cumsum", x, axis, exclusive=exclusive, reverse=reverse, name=named)


def cumprod(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The products of the elements so far along `axis`. Arguments as cumsum's."""
    with scope(name, "Cumprod") as named:
        x = convert_to_tensor(x, name="x")
        return emit("Cumprod", x, axis, exclusive=exclusive, reverse=reverse, name=named)


def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """log(sum(exp)) of the elements so far along `axis`. Arguments as cumsum's."""
    with scope(name, "CumulativeLogsumexp") as named:
        x = convert_to_tensor(x, name="x")
        return emit("CumulativeLogsumexp", x, axis, exclusive=exclusive, reverse=reverse, name=named)
