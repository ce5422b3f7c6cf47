"""Pooling: the maximum or mean under a window that moves over the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import renamed, scope
from thalweg.library.convolution_ops import with_space_to_batch


def _window(value: Any, n: int, data_format: str) -> list[int]:
    """ksize or strides with their ones for batch and channels: given as one number, n or n + 2 of them."""
    values = [int(v) for v in value] if isinstance(value, Sequence | np.ndarray) else [int(value)]
    if len(values) == n + 2:
        return values
    if len(values) == 1:
        values = values * n
    if len(values) != n:
        raise ValueError(f"ksize and strides should be of length 1, {n} or {n + 2} but one was {len(values)}")
    return [1, 1, *values] if data_format.startswith("NC") else [1, *values, 1]


def max_pool(
    value: Any,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """The maxima under a window that moves over images."""
    value = renamed("input", input, "value", value)
    data_format = data_format or "NHWC"
    with scope(name, "MaxPool") as named:
        size = _window(ksize, 2, data_format)
        if 0 in size:
            raise ValueError("ksize cannot be zero.")
        return emit(
            "MaxPool",
            value,
            ksize=size,
            strides=_window(strides, 2, data_format),
            padding=padding,
            data_format=data_format,
            name=named,
        )


def avg_pool(
    value: Any,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """The means under a window that moves over images; what lies outside doesn't count."""
    value = renamed("input", input, "value", value)
    data_format = data_format or "NHWC"
    with scope(name, "AvgPool") as named:
        return emit(
            "AvgPool",
            value,
            ksize=_window(ksize, 2, data_format),
            strides=_window(strides, 2, data_format),
            padding=padding,
            data_format=data_format,
            name=named,
        )


avg_pool2d = avg_pool


def max_pool2d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The maxima under a window that moves over images."""
    return max_pool(input, ksize, strides, padding, data_format, name or "MaxPool2d")


def _pool3d(
    op: str, input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None, name: str | None
) -> Tensor:
    data_format = data_format or "NDHWC"
    with scope(name, op) as named:
        return emit(
            op,
            input,
            ksize=_window(ksize, 3, data_format),
            strides=_window(strides, 3, data_format),
            padding=padding,
            data_format=data_format,
            name=named,
        )


def max_pool3d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """The maxima under a window that moves over volumes."""
    return _pool3d("MaxPool3D", input, ksize, strides, padding, data_format, name)


def avg_pool3d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """The means under a window that moves over volumes; what lies outside doesn't count."""
    return _pool3d("AvgPool3D", input, ksize, strides, padding, data_format, name)


def _pool1d(
    function: Any,
    default: str,
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str,
    name: Any,
) -> Tensor:
    """A pool of sequences, as one of images of height 1."""
    with scope(name, default) as named:
        if data_format not in ("NWC", "NCW"):
            raise ValueError(f'data_format must be "NWC" or "NCW", got {data_format!r}')
        axis = 2 if data_format == "NCW" else 1
        two = "NCHW" if data_format == "NCW" else "NHWC"
        sizes = []
        for value in (ksize, strides):
            n = int(np.ravel(value)[0 if np.size(value) == 1 else axis])
            sizes.append([1, 1, 1, n] if two == "NCHW" else [1, 1, n, 1])
        wide = emit("ExpandDims", input, axis)
        result = function(wide, sizes[0], sizes[1], padding, two, name=named)
        return emit("Squeeze", result, squeeze_dims=[axis])


def max_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """The maxima under a window that moves over sequences."""
    return _pool1d(max_pool, "MaxPool1d", input, ksize, strides, padding, data_format, name)


def avg_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """The means under a window that moves over sequences."""
    return _pool1d(avg_pool, "AvgPool1D", input, ksize, strides, padding, data_format, name)


def _by_rank(
    kind: str, input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any, name: Any
) -> Tensor:
    if data_format is not None:
        n = len(data_format) - 2
    else:
        shape = convert_to_tensor(input)._shape
        if shape is None:
            raise ValueError("pooling without data_format needs an input of known rank")
        n = len(shape) - 2
    if n not in (1, 2, 3):
        raise ValueError(f"Input tensor must be of rank 3, 4 or 5 but was {n + 2}.")
    functions = {"MAX": (max_pool1d, max_pool, max_pool3d), "AVG": (avg_pool1d, avg_pool, avg_pool3d)}
    function = functions[kind][n - 1]
    return function(input, ksize, strides, padding, data_format or ("NWC", "NHWC", "NDHWC")[n - 1], name=name)


def max_pool_v2(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The maxima under a window, over one, two or three axes as the input's rank says."""
    return _by_rank("MAX", input, ksize, strides, padding, data_format, name)


def avg_pool_v2(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The means under a window, over one, two or three axes as the input's rank says."""
    return _by_rank("AVG", input, ksize, strides, padding, data_format, name)


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    Targmax: Any = None,
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> Any:
    """(output, argmax): the maxima under a window, and the flat index of each within its image."""
    if data_format != "NHWC":
        raise ValueError("Data formats other than 'NHWC' are not yet supported")
    kind = renamed("output_dtype", output_dtype, "Targmax", Targmax)
    return emit(
        "MaxPoolWithArgmax",
        input,
        ksize=list(ksize),
        strides=list(strides),
        padding=padding,
        Targmax=dtypes.int64 if kind is None else dtypes.as_dtype(kind),
        include_batch_in_index=include_batch_in_index,
        name=name,
    )


def pool(
    input: Any,
    window_shape: Sequence[int],
    pooling_type: str,
    padding: str,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """The maxima ("MAX") or means ("AVG") under a window over one, two or three axes, spread by
    dilation_rate."""
    rates = renamed("dilations", dilations, "dilation_rate", dilation_rate)
    n = len(window_shape)
    rates = [1] * n if rates is None else [int(r) for r in rates]
    steps = [1] * n if strides is None else [int(s) for s in strides]
    with scope(name, f"{pooling_type.lower()}_pool") as named:
        input = convert_to_tensor(input, name="input")
        if n not in (1, 2, 3):
            raise ValueError("window_shape must have 1, 2 or 3 elements.")
        if len(rates) != n or len(steps) != n:
            raise ValueError(f"strides and dilation_rate must have {n} elements")
        if padding == "SAME" and max(rates) > 1:
            raise ValueError("pooling with SAME padding is not implemented for dilation_rate > 1")
        if any(s > w for s, w in zip(steps, window_shape, strict=True)):
            raise ValueError("strides > window_shape not supported")
        if max(steps) > 1 and max(rates) > 1:
            raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")
        if pooling_type not in ("MAX", "AVG"):
            raise ValueError(f"{n}-D {pooling_type} pooling is not supported.")

        def one(x: Tensor, how: Any, label: str | None) -> Tensor:
            return _by_rank(pooling_type, x, list(window_shape), steps, how, data_format, named)

        window = np.zeros((*window_shape, 1, 1), np.int8)
        return with_space_to_batch(input, rates, padding, one, window, data_format, None)
