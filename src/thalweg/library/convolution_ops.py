"""Convolutions and their transposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import renamed, scope
from thalweg.library.array_ops import (
    batch_to_space_nd,
    required_space_to_batch_paddings,
    shape,
    space_to_batch_nd,
)


def _spatial(value: Any, n: int, data_format: str | None, what: str) -> list[int]:
    """strides or dilations with their ones for batch and channels: given as one number, n or n + 2 of
    them."""
    if value is None:
        value = [1]
    values = [int(v) for v in value] if isinstance(value, Sequence | np.ndarray) else [int(value)]
    if len(values) == n + 2:
        return values
    if len(values) == 1:
        values = values * n
    if len(values) != n:
        raise ValueError(f"{what} should be of length 1, {n} or {n + 2} but was {len(values)}")
    return [1, 1, *values] if _channels_first(data_format) else [1, *values, 1]


def _channels_first(data_format: str | None) -> bool:
    return data_format is not None and data_format.startswith("NC")


def _padding(padding: Any) -> dict[str, Any]:
    """padding as attributes: "SAME", "VALID", or explicit [[before, after] for each axis]."""
    if isinstance(padding, list | tuple):
        explicit: list[int] = []
        for i, pair in enumerate(padding):
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise ValueError(f"Explicit paddings are pairs for each axis; at {i}: {pair!r}")
            explicit.extend(int(p) for p in pair)
        if len(padding) != 4:
            raise ValueError(f"Explicit paddings are for 4 axes, got {len(padding)}")
        return {"padding": "EXPLICIT", "explicit_paddings": explicit}
    if padding == "EXPLICIT":
        raise ValueError('"EXPLICIT" is not a padding; give the list of pairs itself')
    return {"padding": padding}


def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The convolution of images [batch, height, width, channels] with filters [height, width, in, out].

    strides, dilations: a number, two, or four (one for each axis of the input). padding: "SAME", "VALID"
    or a pair
    for each axis. data_format: "NHWC" or "NCHW".
    """
    filter = renamed("filters", filters, "filter", filter)
    return emit(
        "Conv2D",
        input,
        filter,
        strides=_spatial(strides, 2, data_format, "strides"),
        **_padding(padding),
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=_spatial(dilations, 2, data_format, "dilations"),
        name=name,
    )


def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of conv2d with respect to its filters, whose shape is filter_sizes."""
    return emit(
        "Conv2DBackpropFilter",
        input,
        filter_sizes,
        out_backprop,
        strides=_spatial(strides, 2, data_format, "strides"),
        **_padding(padding),
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=_spatial(dilations, 2, data_format, "dilations"),
        name=name,
    )


def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The gradient of conv2d with respect to its input, whose shape is input_sizes."""
    filter = renamed("filters", filters, "filter", filter)
    return emit(
        "Conv2DBackpropInput",
        input_sizes,
        filter,
        out_backprop,
        strides=_spatial(strides, 2, data_format, "strides"),
        **_padding(padding),
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=_spatial(dilations, 2, data_format, "dilations"),
        name=name,
    )


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose ("deconvolution") of conv2d: what conv2d's gradient does. filter: [height, width, out,
    in]."""
    value = renamed("input", input, "value", value)
    filter = renamed("filters", filters, "filter", filter)
    with scope(name, "conv2d_transpose") as named:
        return conv2d_backprop_input(
            output_shape,
            filter,
            value,
            strides,
            padding,
            data_format=data_format or "NHWC",
            dilations=dilations,
            name=named,
        )


# ---- one and three dimensions --------------------------------------------------------------------------


def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The convolution of sequences [batch, width, channels] with filters [width, in, out]."""
    value = renamed("input", input, "value", value)
    with scope(name, "conv1d") as named:
        if data_format in (None, "NHWC", "NWC"):
            two, axis, channel = "NHWC", -3, 2
        elif data_format in ("NCHW", "NCW"):
            two, axis, channel = "NCHW", -2, 1
        else:
            raise ValueError(f'data_format must be "NWC" or "NCW", got {data_format!r}')
        wide = emit("ExpandDims", value, axis)
        kernel = emit("ExpandDims", filters, 0)
        result = conv2d(
            wide,
            kernel,
            [1, *_along_sequence(stride, channel)],
            padding,
            use_cudnn_on_gpu=use_cudnn_on_gpu is not False,
            data_format=two,
            dilations=[1, *_along_sequence(dilations, channel)],
            name=named,
        )
        return emit("Squeeze", result, squeeze_dims=[axis])


def _along_sequence(value: Any, channel: int) -> list[int]:
    values = [1] if value is None else list(value) if isinstance(value, Sequence | np.ndarray) else [value]
    if len(values) == 3:
        return values
    if len(values) != 1:
        raise ValueError(f"stride should be of length 1 or 3 but was {len(values)}")
    return [1, 1, *values] if channel == 1 else [1, *values, 1]


def conv3d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The convolution of volumes [batch, depth, height, width, channels] with filters [d, h, w, in, out]."""
    filter = renamed("filters", filters, "filter", filter)
    return emit(
        "Conv3D",
        input,
        filter,
        strides=_spatial(strides, 3, data_format, "strides"),
        padding=padding,
        data_format=data_format,
        dilations=_spatial(dilations, 3, data_format, "dilations"),
        name=name,
    )


def conv3d_backprop_filter_v2(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: str,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of conv3d with respect to its filters, whose shape is filter_sizes."""
    return emit(
        "Conv3DBackpropFilterV2",
        input,
        filter_sizes,
        out_backprop,
        strides=_spatial(strides, 3, data_format, "strides"),
        padding=padding,
        data_format=data_format,
        dilations=_spatial(dilations, 3, data_format, "dilations"),
        name=name,
    )


conv3d_backprop_filter = conv3d_backprop_filter_v2


def conv3d_transpose(
    value: Any,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: str = "SAME",
    data_format: str = "NDHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of conv3d: what conv3d's gradient does. filter: [d, h, w, out, in]."""
    value = renamed("input", input, "value", value)
    filter = renamed("filters", filters, "filter", filter)
    with scope(name, "conv3d_transpose") as named:
        data_format = data_format or "NDHWC"
        return emit(
            "Conv3DBackpropInputV2",
            output_shape,
            filter,
            value,
            strides=_spatial(strides, 3, data_format, "strides"),
            padding=padding,
            data_format=data_format,
            dilations=_spatial(dilations, 3, data_format, "dilations"),
            name=named,
        )


# ---- any number of dimensions, dilated -----------------------------------------------------------------


def convolution(
    input: Any,
    filter: Any,
    padding: Any,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The convolution over one, two or three axes, as the rank of the filter says; dilated by dilation_rate.

    Errors: ValueError where both strides and dilations are greater than 1, or the rank is unknown.
    """
    filter = renamed("filters", filters, "filter", filter)
    rates = renamed("dilations", dilations, "dilation_rate", dilation_rate)
    with scope(name, "convolution") as named:
        input = convert_to_tensor(input, name="input")
        filter = convert_to_tensor(filter, name="filter")
        known = filter._shape if filter._shape is not None else input._shape
        if known is None:
            raise ValueError("convolution needs a filter or an input of known rank")
        n = len(known) - 2
        if n not in (1, 2, 3):
            raise ValueError(f"convolution is over 1, 2 or 3 axes; the filter has {n} of them")
        rate = _numbers(rates, n, "dilation_rate")
        step = _numbers(strides, n, "strides")
        if max(rate) > 1 and max(step) > 1:
            raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")

        def one(x: Tensor, how: Any, label: str | None) -> Tensor:
            if n == 1:
                return conv1d(x, filter, step, how, data_format=data_format, name=label)
            if n == 2:
                return conv2d(x, filter, step, how, data_format=data_format or "NHWC", name=label)
            return conv3d(x, filter, step, how, data_format=data_format or "NDHWC", name=label)

        return with_space_to_batch(input, rate, padding, one, filter, data_format, named)


def _numbers(value: Any, n: int, what: str) -> list[int]:
    values = [1] * n if value is None else [int(v) for v in np.atleast_1d(value)]
    values = values * n if len(values) == 1 else values
    if len(values) == n + 2:
        values = values[1:-1]
    if len(values) != n or min(values) < 1:
        raise ValueError(f"{what} must be {n} positive numbers, got {value}")
    return values


def with_space_to_batch(
    input: Tensor,
    rates: Sequence[int],
    padding: Any,
    op: Callable[[Tensor, Any, str | None], Tensor],
    filter: Any,
    data_format: str | None,
    name: str | None,
) -> Tensor:
    """op(input, padding, name) with its window spread by `rates`: on interleaved grids stacked into the
    batch.

    op: works over the axes after the batch (after the channels where data_format starts with "NC").
    filter: whose leading dimensions are the window; for padding "SAME".
    """
    if max(rates) == 1:
        return op(input, padding, name)
    n = len(rates)
    rate = np.array(rates, np.int32)
    if padding == "SAME":
        base = convert_to_tensor(_same_paddings(filter, rate), dtypes.int32, name="stack")
    elif padding == "VALID":
        base = emit.constant(np.zeros((n, 2), np.int32), name="base_paddings")
    else:
        raise ValueError(f"dilated windows need padding SAME or VALID, got {padding!r}")
    start = 2 if _channels_first(data_format) else 1
    known = None if input._shape is None else input._shape[start : start + n]
    space: Any = known
    if known is None or None in known:
        dims = shape(input)
        space = [dims[start + i] if known is None or known[i] is None else known[i] for i in range(n)]
    paddings, crops = (_whole(t, start - 1) for t in required_space_to_batch_paddings(space, rate, base))
    block = np.concatenate([np.ones(start - 1, np.int32), rate])
    spread = space_to_batch_nd(input, block, paddings)
    return batch_to_space_nd(op(spread, "VALID", name), block, crops)


def _whole(pads: Tensor, channels: int) -> Any:
    """Paddings of the spatial axes, with none for channels that come before them; values where they are
    known."""
    value = emit.known_value(pads)
    none = np.zeros((channels, 2), np.int32)
    if value is not None:
        return np.concatenate([none, value])
    return emit("ConcatV2", [none, pads], 0, name="concat") if channels else pads


def _same_paddings(filter: Any, rate: np.ndarray) -> list[list[Any]]:
    """What padding "SAME" puts before and after each axis for a window spread by `rate`."""
    filter = convert_to_tensor(filter)
    n = len(rate)
    sizes: Any
    if filter._shape is not None and None not in filter._shape[:n]:
        sizes = np.array(filter._shape[:n], np.int32)
    else:
        sizes = shape(filter)[:n]
    extra = (sizes - 1) * rate
    before = extra // 2
    after = extra - before
    return [[before[i], after[i]] for i in range(n)]


def atrous_conv2d(value: Any, filters: Any, rate: Any, padding: Any, name: str | None = None) -> Tensor:
    """conv2d with its filter spread by `rate`."""
    return convolution(value, filters, padding, dilation_rate=np.broadcast_to(rate, (2,)), name=name)


# ---- a filter for each channel -------------------------------------------------------------------------


def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Each channel convolved with filters of its own: filter [height, width, channels, multiplier]."""
    return emit(
        "DepthwiseConv2dNative",
        input,
        filter,
        strides=list(strides),
        **_padding(padding),
        data_format=data_format or "NHWC",
        dilations=list(dilations),
        name=name,
    )


def depthwise_conv2d_native_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of depthwise_conv2d_native with respect to its input, whose shape is input_sizes."""
    return emit(
        "DepthwiseConv2dNativeBackpropInput",
        input_sizes,
        filter,
        out_backprop,
        strides=list(strides),
        **_padding(padding),
        data_format=data_format,
        dilations=list(dilations),
        name=name,
    )


def depthwise_conv2d_native_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of depthwise_conv2d_native with respect to its filters, whose shape is filter_sizes."""
    return emit(
        "DepthwiseConv2dNativeBackpropFilter",
        input,
        filter_sizes,
        out_backprop,
        strides=list(strides),
        **_padding(padding),
        data_format=data_format,
        dilations=list(dilations),
        name=name,
    )


depthwise_conv2d_backprop_input = depthwise_conv2d_native_backprop_input
depthwise_conv2d_backprop_filter = depthwise_conv2d_native_backprop_filter


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Each channel convolved with filters of its own, spread by `rate`: filter [h, w, channels,
    multiplier]."""
    rates = _numbers(renamed("dilations", dilations, "rate", rate), 2, "rate")
    with scope(name, "depthwise") as named:
        input = convert_to_tensor(input, name="tensor_in")
        filter = convert_to_tensor(filter, name="filter_in")

        def one(x: Tensor, how: Any, label: str | None) -> Tensor:
            return depthwise_conv2d_native(x, filter, strides, how, data_format=data_format, name=named)

        return with_space_to_batch(input, rates, padding, one, filter, data_format, None)


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """depthwise_conv2d, and then a convolution with a 1x1 filter [1, 1, channels * multiplier, out]."""
    rates = _numbers(renamed("dilations", dilations, "rate", rate), 2, "rate")
    with scope(name, "separable_conv2d") as named:
        input = convert_to_tensor(input, name="tensor_in")
        depthwise_filter = convert_to_tensor(depthwise_filter, name="depthwise_filter")
        pointwise_filter = convert_to_tensor(pointwise_filter, name="pointwise_filter")
        size = pointwise_filter._shape
        if size is not None and (len(size) != 4 or size[0] not in (1, None) or size[1] not in (1, None)):
            raise ValueError(f"pointwise_filter must be [1, 1, in, out], got {size}")

        def one(x: Tensor, how: Any, label: str | None) -> Tensor:
            return depthwise_conv2d_native(
                x, depthwise_filter, strides, how, data_format=data_format, name="depthwise"
            )

        middle = with_space_to_batch(input, rates, padding, one, depthwise_filter, data_format, None)
        return conv2d(
            middle, pointwise_filter, [1, 1, 1, 1], "VALID", data_format=data_format or "NHWC", name=named
        )
