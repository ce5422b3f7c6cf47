"""Convolutions and their two gradients as array formulas, for TensorFlow's Conv2D, Conv3D and depthwise
families.

Pure and traceable; shapes, strides, paddings are static. float16 and bfloat16 are computed in float32 and
rounded once at the end (XLA's CPU has fast kernels for float32 only, and the sums are better).
Filters are [spatial..., input channels of one group, output channels]; depthwise ones [spatial...,
channels, multiplier].

Figures in comments: 2 cores of an EPYC (Zen 5), jax 0.10.2, executables compiled with
`xla_cpu_experimental_ynn_fusion_type=LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT`: dots go to YNN, convolutions to
Eigen.
(YNN's convolution runs on one thread; Eigen's product with a transposed right side takes 10 ms where YNN's
takes 2.)
"""

import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.ops._windows import conv_spans, layout

_SPATIAL = "DHW"
_UNROLL = 25  # most filter taps written out one by one; compile time grows with them


def _wide(formula):
    """Runs `formula` in float32 for 16-bit floats."""

    @functools.wraps(formula)
    def run(*args: Any, **attributes: Any) -> Any:
        arrays = [a for a in args if hasattr(a, "dtype")]
        dtype = arrays[0].dtype
        if jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize == 2:
            args = tuple(lax.convert_element_type(a, np.float32) if hasattr(a, "dtype") else a for a in args)
            return lax.convert_element_type(formula(*args, **attributes), dtype)
        return formula(*args, **attributes)

    return run


def _spec(data_format):
    """(activation, filter) letters for lax, e.g. ("NHWC", "HWIO")."""
    return data_format, _SPATIAL[-(len(data_format) - 2) :] + "IO"


def _swap(letters, **to):
    return "".join(to.get(c, c) for c in letters)


def _defaults(strides, dilations):
    return tuple(strides), (1,) * len(strides) if dilations is None else tuple(dilations)


def _zero(x):
    return np.zeros((), x.dtype)


def _groups(depth, per_group):
    if per_group == 0 or depth % per_group:
        raise ValueError(f"Depth of input ({depth}) is not a multiple of input depth of filter ({per_group})")
    return depth // per_group


# ---- the choice of formulation ----


def _is_dot(spans, groups, data_format):
    """A 1x1 convolution is a matrix product. 16x28x28x256->64: 1.1 ms (386 GF/s) as a dot, 1.2 Eigen, 3.1
    YNN's convolution; its filter gradient 3.0 as a dot, 10.0 as a convolution."""
    return groups == 1 and data_format[-1] == "C" and all(s.trivial for s in spans)


def _wants_patches(spans, depth, filters, data_format):
    """One input channel leaves Eigen's packing nothing to vectorise. 128x28x28x1, 5x5x32: 1.6 ms as patches
    and a dot, 2.5 as Eigen's convolution (1.0 as YNN's, which can't be chosen for one convolution alone).
    The patches are taken in two stages: all 25 slices in one fusion cost 0.75 s of compile time, 5 + 5 cost
    0.05."""
    return (
        depth == 1
        and filters >= 8
        and data_format == "NHWC"
        and sum(s.window for s in spans) <= 14
        and min(s.window for s in spans) > 1
    )


def _by_shifts(spans):
    """Depthwise as a sum of shifted products, one elementwise fusion. 16x56x56x64, 3x3: 1.4 ms; as a
    convolution with 64 groups 61 ms."""
    return math.prod(s.window for s in spans) <= _UNROLL


# ---- dense convolution ----


@_wide
def conv2d(x, filter, *, strides, padding, explicit_paddings=(), data_format="NHWC", dilations=None):
    """Conv2D (and, with a five-letter data_format, Conv3D); groups where the filter has fewer channels than
    x."""
    strides, dilations = _defaults(strides, dilations)
    channel = layout(data_format)[2]
    spans = conv_spans(
        x.shape, filter.shape[:-2], strides, padding, explicit_paddings, data_format, dilations
    )
    groups = _groups(x.shape[channel], filter.shape[-2])
    if _is_dot(spans, groups, data_format):
        return _matmul(x, lax.reshape(filter, filter.shape[-2:]))
    if _wants_patches(spans, x.shape[channel], filter.shape[-1], data_format):
        return _patches_conv(x, filter, spans)
    act, kernel = _spec(data_format)
    return lax.conv_general_dilated(
        x,
        filter,
        [s.stride for s in spans],
        [(s.low, s.high) for s in spans],
        rhs_dilation=[s.dilation for s in spans],
        dimension_numbers=(act, kernel, act),
        feature_group_count=groups,
    )


def _matmul(x, w, transpose_w=False):
    """x's last axis with w."""
    flat = lax.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
    out = lax.dot_general(flat, w, (((1,), (1 if transpose_w else 0,)), ((), ())))
    return lax.reshape(out, (*x.shape[:-1], out.shape[-1]))


def _patches_conv(x, filter, spans):
    rows, cols = spans
    p = lax.pad(x, _zero(x), ((0, 0, 0), (rows.low, rows.high, 0), (cols.low, cols.high, 0), (0, 0, 0)))
    p = lax.concatenate([_shifted(p, 2, cols, j) for j in range(cols.window)], 3)
    p = lax.optimization_barrier(p)
    p = lax.concatenate([_shifted(p, 1, rows, i) for i in range(rows.window)], 3)
    return _matmul(p, lax.reshape(filter, (rows.window * cols.window, filter.shape[-1])))


def _shifted(padded, axis, span, tap):
    """What tap number `tap` of every window along `axis` sees."""
    start = tap * span.dilation
    return lax.slice_in_dim(padded, start, start + (span.out - 1) * span.stride + 1, span.stride, axis)


@_wide
def conv2d_backprop_input(
    input_sizes, filter, dy, *, strides, padding, explicit_paddings=(), data_format="NHWC", dilations=None
):
    """Gradient with respect to the input, whose static shape is `input_sizes`.

    A convolution of dy, spread by the strides, with the filter turned round.
    """
    strides, dilations = _defaults(strides, dilations)
    channel = layout(data_format)[2]
    spans = conv_spans(
        input_sizes, filter.shape[:-2], strides, padding, explicit_paddings, data_format, dilations
    )
    _check_dy(dy, input_sizes[0], spans, filter.shape[-1], data_format)
    groups = _groups(input_sizes[channel], filter.shape[-2])
    if _is_dot(spans, groups, data_format):
        return _matmul(dy, lax.reshape(filter, filter.shape[-2:]), transpose_w=True)
    if groups > 1:  # [..., I/g, O] -> [..., I, O/g], the groups of inputs one after the other
        *window, per, last = filter.shape
        n = len(window)
        filter = lax.reshape(filter, (*window, per, groups, last // groups))
        filter = lax.transpose(filter, (*range(n), n + 1, n, n + 2))
        filter = lax.reshape(filter, (*window, groups * per, last // groups))
    act, kernel = _spec(data_format)
    pads = []
    for s in spans:
        low = (s.window - 1) * s.dilation - s.low
        pads.append((low, s.size - (s.out - 1) * s.stride - 1 + s.low))
    return lax.conv_general_dilated(
        dy,
        lax.rev(filter, tuple(range(len(spans)))),
        (1,) * len(spans),
        pads,
        lhs_dilation=[s.stride for s in spans],
        rhs_dilation=[s.dilation for s in spans],
        dimension_numbers=(act, _swap(kernel, I="O", O="I"), act),
        feature_group_count=groups,
    )


@_wide
def conv2d_backprop_filter(
    x, filter_sizes, dy, *, strides, padding, explicit_paddings=(), data_format="NHWC", dilations=None
):
    """Gradient with respect to the filter, whose static shape is `filter_sizes`.

    A convolution of x with dy in which batch and channels change places.
    """
    strides, dilations = _defaults(strides, dilations)
    channel = layout(data_format)[2]
    spans = conv_spans(
        x.shape, filter_sizes[:-2], strides, padding, explicit_paddings, data_format, dilations
    )
    _check_dy(dy, x.shape[0], spans, filter_sizes[-1], data_format)
    groups = _groups(x.shape[channel], filter_sizes[-2])
    if _is_dot(spans, groups, data_format):
        rows = math.prod(x.shape[:-1])
        dw = lax.dot_general(
            lax.reshape(x, (rows, x.shape[-1])),
            lax.reshape(dy, (rows, dy.shape[-1])),
            (((0,), (0,)), ((), ())),
        )
        return lax.reshape(dw, tuple(filter_sizes))
    act, kernel = _spec(data_format)
    pads = [(s.low, (s.window - 1) * s.dilation + (s.out - 1) * s.stride + 1 - s.size - s.low) for s in spans]
    return lax.conv_general_dilated(
        x,
        dy,
        [s.dilation for s in spans],
        pads,
        rhs_dilation=[s.stride for s in spans],
        dimension_numbers=(_swap(act, N="C", C="N"), _swap(act, N="I", C="O"), _swap(kernel, I="N", O="C")),
        batch_group_count=groups,
    )


def _check_dy(dy, batch, spans, filters, data_format):
    first, spatial, channel = layout(data_format)
    want = [0] * len(data_format)
    want[first], want[channel] = batch, filters
    for axis, s in zip(spatial, spans, strict=True):
        want[axis] = s.out
    if tuple(want) != tuple(dy.shape):
        raise ValueError(f"out_backprop must have shape {want} for these sizes, got {list(dy.shape)}")


# ---- depthwise convolution ----


def _to_nhwc(x, data_format):
    return lax.transpose(x, (0, 2, 3, 1)) if data_format == "NCHW" else x


def _from_nhwc(x, data_format):
    return lax.transpose(x, (0, 3, 1, 2)) if data_format == "NCHW" else x


def _taps(spans):
    return [(i, j) for i in range(spans[0].window) for j in range(spans[1].window)]


def _padded(x, spans):
    """x [N,H,W,...] with the windows' padding."""
    rows, cols = spans
    rest = ((0, 0, 0),) * (x.ndim - 3)
    return lax.pad(x, _zero(x), ((0, 0, 0), (rows.low, rows.high, 0), (cols.low, cols.high, 0), *rest))


@_wide
def depthwise_conv2d(
    x, filter, *, strides, padding, explicit_paddings=(), data_format="NHWC", dilations=None
):
    """DepthwiseConv2dNative: output channel c*multiplier + m is input channel c with filter[..., c, m]."""
    strides, dilations = _defaults(strides, dilations)
    spans = conv_spans(x.shape, filter.shape[:2], strides, padding, explicit_paddings, data_format, dilations)
    channels, multiplier = filter.shape[2:]
    _check_depth(x.shape[layout(data_format)[2]], channels)
    if not _by_shifts(spans):
        return conv2d(
            x,
            lax.reshape(filter, (*filter.shape[:2], 1, channels * multiplier)),
            strides=strides,
            padding=padding,
            explicit_paddings=explicit_paddings,
            data_format=data_format,
            dilations=dilations,
        )
    rows, cols = spans
    p = _padded(_to_nhwc(x, data_format), spans)
    total: Any = None
    for i, j in _taps(spans):
        seen = _shifted(_shifted(p, 1, rows, i), 2, cols, j)
        tap = seen[..., None] * filter[i, j] if multiplier > 1 else seen * filter[i, j, :, 0]
        total = tap if total is None else total + tap
    return _from_nhwc(lax.reshape(total, (*total.shape[:3], channels * multiplier)), data_format)


@_wide
def depthwise_conv2d_backprop_input(
    input_sizes, filter, dy, *, strides, padding, explicit_paddings=(), data_format="NHWC", dilations=None
):
    """Gradient of depthwise_conv2d with respect to its input, of static shape `input_sizes`."""
    strides, dilations = _defaults(strides, dilations)
    spans = conv_spans(
        input_sizes, filter.shape[:2], strides, padding, explicit_paddings, data_format, dilations
    )
    channels, multiplier = filter.shape[2:]
    _check_depth(input_sizes[layout(data_format)[2]], channels)
    _check_dy(dy, input_sizes[0], spans, channels * multiplier, data_format)
    if not _by_shifts(spans):
        return conv2d_backprop_input(
            input_sizes,
            lax.reshape(filter, (*filter.shape[:2], 1, channels * multiplier)),
            dy,
            strides=strides,
            padding=padding,
            explicit_paddings=explicit_paddings,
            data_format=data_format,
            dilations=dilations,
        )
    rows, cols = spans
    dy = _to_nhwc(dy, data_format)
    if multiplier > 1:
        dy = lax.reshape(dy, (*dy.shape[:3], channels, multiplier))
    # dy with gaps, and enough zeros around that each tap is one slice of it.
    pads = [
        ((s.window - 1) * s.dilation - s.low, s.size - 1 - (s.out - 1) * s.stride + s.low, s.stride - 1)
        for s in spans
    ]
    p = lax.pad(dy, _zero(dy), ((0, 0, 0), *pads, *((0, 0, 0),) * (dy.ndim - 3)))
    total = None
    for i, j in _taps(spans):
        a, b = (rows.window - 1 - i) * rows.dilation, (cols.window - 1 - j) * cols.dilation
        seen = lax.slice_in_dim(lax.slice_in_dim(p, a, a + rows.size, axis=1), b, b + cols.size, axis=2)
        tap = jnp.sum(seen * filter[i, j], -1) if multiplier > 1 else seen * filter[i, j, :, 0]
        total = tap if total is None else total + tap
    return _from_nhwc(total, data_format)


@_wide
def depthwise_conv2d_backprop_filter(
    x, filter_sizes, dy, *, strides, padding, explicit_paddings=(), data_format="NHWC", dilations=None
):
    """Gradient of depthwise_conv2d with respect to its filter, of static shape `filter_sizes`."""
    strides, dilations = _defaults(strides, dilations)
    spans = conv_spans(x.shape, filter_sizes[:2], strides, padding, explicit_paddings, data_format, dilations)
    channels, multiplier = filter_sizes[2:]
    _check_depth(x.shape[layout(data_format)[2]], channels)
    _check_dy(dy, x.shape[0], spans, channels * multiplier, data_format)
    # A grouped convolution: 16x56x56x64, 3x3: 27 ms; shifted products summed by reductions 40, by dots 52.
    dw = conv2d_backprop_filter(
        x,
        (*filter_sizes[:2], 1, channels * multiplier),
        dy,
        strides=strides,
        padding=padding,
        explicit_paddings=explicit_paddings,
        data_format=data_format,
        dilations=dilations,
    )
    return lax.reshape(dw, tuple(filter_sizes))


def _check_depth(depth, channels):
    if depth != channels:
        raise ValueError(f"a depthwise filter must have the input's {depth} channels, got {channels}")
