"""Means, variances and normalisation by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import renamed, scope
from thalweg.library.array_ops import rank, shape, squeeze
from thalweg.library.casting import cast
from thalweg.library.fill_ops import zeros_like
from thalweg.library.math_ops import div_no_nan
from thalweg.library.reduction_ops import reduce_mean, reduce_prod, reduce_sum


def moments(
    x: Any,
    axes: Any,
    shift: Any = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """(mean, variance) along axes. shift: not used (TensorFlow keeps it for old programs)."""
    keep = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    with scope(name, "moments"):
        half = x.dtype.base_dtype == dtypes.float16
        y = cast(x, dtypes.float32) if half else x
        mean = reduce_mean(y, axes, keepdims=True, name="mean")
        distance = emit("SquaredDifference", y, emit("StopGradient", mean))
        variance = reduce_mean(distance, axes, keepdims=True, name="variance")
        if not keep:
            mean, variance = squeeze(mean, axes), squeeze(variance, axes)
        if half:
            return cast(mean, dtypes.float16), cast(variance, dtypes.float16)
        return mean, variance


def weighted_moments(
    x: Any,
    axes: Any,
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """(mean, variance) along axes, where each element counts frequency_weights times (broadcast)."""
    keep = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    with scope(name, "weighted_moments"):
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(frequency_weights, name="frequency_weights")
        half = x.dtype.base_dtype == dtypes.float16
        x = cast(x, dtypes.float32) if half else x
        weights = cast(weights, x.dtype.base_dtype)
        total = reduce_sum(weights * x, axes, name="weighted_input_sum", keepdims=True)
        full = weights + zeros_like(x)
        sum_of_weights = reduce_sum(full, axes, name="sum_of_weights", keepdims=True)
        mean = div_no_nan(total, sum_of_weights)
        distance = weights * emit("SquaredDifference", x, mean)
        spread = reduce_sum(distance, axes, name="weighted_distsq", keepdims=True)
        variance = div_no_nan(spread, sum_of_weights)
        if not keep:
            mean, variance = squeeze(mean, axes), squeeze(variance, axes)
        if half:
            return cast(mean, dtypes.float16), cast(variance, dtypes.float16)
        return mean, variance


def sufficient_statistics(
    x: Any,
    axes: Sequence[int],
    shift: Any = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """(count, sum of x - shift, sum of its squares, shift) along axes: what normalize_moments takes."""
    keep = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    axes = sorted(set(axes))
    with scope(name, "sufficient_statistics"):
        x = convert_to_tensor(x, name="x")
        static = x._shape
        if static is not None and all(static[d] is not None for d in axes):
            count = emit.constant(int(np.prod([static[d] for d in axes])), x.dtype.base_dtype)
        else:
            n = rank(x)
            positive = [a + n if a < 0 else a for a in axes]
            dims = emit("GatherV2", cast(shape(x), x.dtype.base_dtype), positive, 0)
            count = reduce_prod(dims, name="count")
        if shift is None:
            sums, squares = x, emit("Square", x)
        else:
            shift = convert_to_tensor(shift, name="shift")
            sums, squares = emit("Sub", x, shift), emit("SquaredDifference", x, shift)
        sums = reduce_sum(sums, axes, keepdims=keep, name="mean_ss")
        squares = reduce_sum(squares, axes, keepdims=keep, name="var_ss")
        return count, sums, squares, shift


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """(mean, variance) from sufficient statistics."""
    with scope(name, "normalize"):
        divisor = emit("Reciprocal", counts, name="divisor")
        if shift is None:
            shifted = mean = emit("Mul", mean_ss, divisor, name="mean")
        else:
            shifted = emit("Mul", mean_ss, divisor, name="shifted_mean")
            mean = emit("AddV2", shifted, shift, name="mean")
        variance = emit("Sub", emit("Mul", variance_ss, divisor), emit("Square", shifted), name="variance")
        return mean, variance


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: Any,
    name: str | None = None,
) -> Tensor:
    """scale (x - mean) / sqrt(variance + variance_epsilon) + offset, broadcast; None leaves scale or
    offset out."""
    with scope(name, "batchnorm"):
        inverse = emit("Rsqrt", variance + variance_epsilon)
        if scale is not None:
            inverse = inverse * scale
        scaled = x * cast(inverse, x.dtype.base_dtype)
        if offset is not None:
            rest = offset - mean * inverse
        else:
            rest = emit("Neg", mean) * inverse
        return scaled + cast(rest, x.dtype.base_dtype)


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """(y, mean, variance): images normalised per channel, and the statistics of the batch (or those given).

    Errors: ValueError without mean and variance where they are needed: not training, or with a running
    average.
    """
    if (not is_training or exponential_avg_factor != 1.0) and (mean is None or variance is None):
        raise ValueError(
            "Both 'mean' and 'variance' must be a 1D tensor when is_training is False or "
            "exponential_avg_factor != "
            f"1.0, got {mean!r} and {variance!r}"
        )
    x = convert_to_tensor(x, name="input")
    scale = convert_to_tensor(scale, name="scale")
    offset = convert_to_tensor(offset, name="offset")
    if mean is None:
        mean = emit.constant(np.zeros(0, np.float32))
    if variance is None:
        variance = emit.constant(np.zeros(0, np.float32))
    # the GPU's libraries take no smaller number
    epsilon = max(epsilon, 1.001e-5)
    y, batch_mean, batch_variance, *_ = emit(
        "FusedBatchNormV3",
        x,
        scale,
        offset,
        mean,
        variance,
        epsilon=epsilon,
        exponential_avg_factor=exponential_avg_factor,
        data_format=data_format,
        is_training=is_training,
        name=name,
    )
    return y, batch_mean, batch_variance


def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: bool | None = None,
    name: str | None = None,
    input: Any = None,
    mean: Any = None,
    variance: Any = None,
) -> Tensor:
    """batch_normalization with older names; gamma counts where scale_after_normalization says so."""
    t = renamed("input", input, "t", t)
    m = renamed("mean", mean, "m", m)
    v = renamed("variance", variance, "v", v)
    return batch_normalization(
        t, m, v, beta, gamma if scale_after_normalization else None, variance_epsilon, name
    )


def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """input / (bias + alpha * the sum of squares of the channels within depth_radius) ** beta."""
    return emit("LRN", input, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta, name=name)


lrn = local_response_normalization
