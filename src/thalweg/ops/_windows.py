"""Where windows fall: padding and output sizes of convolutions and pools, without arrays.

Everything here is plain Python over static sizes (an int, or None for unknown), so shape functions
and kernels share one arithmetic and one set of error messages.
"""

from dataclasses import dataclass


def layout(data_format):
    """(batch axis, spatial axes, channel axis) of "NHWC", "NCHW", "NDHWC" or "NCDHW"."""
    if data_format not in ("NHWC", "NCHW", "NDHWC", "NCDHW", "NWC", "NCW"):
        raise ValueError(f"data_format must be NHWC, NCHW, NDHWC or NCDHW, not {data_format!r}")
    channel = data_format.index("C")
    return 0, tuple(a for a in range(1, len(data_format)) if a != channel), channel


@dataclass(frozen=True)
class Span:
    """How windows lie along one axis. `size` is the input's extent, `out` the number of windows."""

    size: int
    window: int
    stride: int
    dilation: int
    low: int
    high: int
    out: int

    @property
    def trivial(self):
        """Every element is a window by itself."""
        return self.window == self.stride == 1 and self.low == self.high == 0


def output_size(size, window, stride, padding, low=0, high=0, dilation=1, what="window"):
    """Number of windows along an axis; None where `size` or `window` is None (unknown)."""
    if stride < 1 or dilation < 1:
        raise ValueError(
            f"strides and dilations must be at least 1, got stride {stride}, dilation {dilation}"
        )
    if window is not None and window < 1:
        raise ValueError(f"{what} sizes must be at least 1, got {window}")
    if size is None or (window is None and padding != "SAME"):
        return None
    if padding == "SAME":
        return -(-size // stride)
    reach = (window - 1) * dilation + 1
    out = (size + low + high - reach) // stride + 1
    if out < 0 or size + low + high < reach:
        raise ValueError(
            f"Computed output size would be negative: the {what} reaches over {reach} elements"
            + (f" ({window}, dilation {dilation})" if dilation > 1 else "")
            + f", the input has {size}"
            + (f" + {low + high} of padding" if low or high else "")
        )
    return out


def pads_of(rank, padding, explicit_paddings, axes):
    """((low, high), ...) for `axes` as EXPLICIT padding gives them; zeros otherwise."""
    if padding not in ("SAME", "VALID", "EXPLICIT"):
        raise ValueError(f"padding must be SAME, VALID or EXPLICIT, not {padding!r}")
    pads = tuple(explicit_paddings)
    if padding != "EXPLICIT":
        if pads:
            raise ValueError(f"explicit_paddings must be empty with padding {padding}, got {list(pads)}")
        return tuple((0, 0) for _ in axes)
    if len(pads) != 2 * rank or any(p < 0 for p in pads):
        raise ValueError(f"explicit_paddings must be {2 * rank} numbers, none negative, got {list(pads)}")
    if any(pads[2 * a] or pads[2 * a + 1] for a in range(rank) if a not in axes):
        raise ValueError(f"explicit_paddings must be 0 for batch and channels, got {list(pads)}")
    return tuple((pads[2 * a], pads[2 * a + 1]) for a in axes)


def span(size, window, stride, padding, pad=(0, 0), dilation=1, what="window"):
    """The Span of one axis of known size; SAME puts the odd element of padding at the end."""
    out = output_size(size, window, stride, padding, pad[0], pad[1], dilation, what)
    low, high = pad
    if padding == "SAME":
        total = max((out - 1) * stride + (window - 1) * dilation + 1 - size, 0)
        low, high = total // 2, total - total // 2
    return Span(size, window, stride, dilation, low, high, out)


def conv_spans(sizes, windows, strides, padding, explicit_paddings, data_format, dilations):
    """Spans of the spatial axes. `sizes` is the whole input shape, `windows` the filter's spatial sizes."""
    _, spatial, _ = layout(data_format)
    check_per_axis(len(sizes), data_format, strides=strides, dilations=dilations)
    pads = pads_of(len(sizes), padding, explicit_paddings, spatial)
    return tuple(
        span(sizes[a], k, strides[a], padding, pad, dilations[a], "filter")
        for a, k, pad in zip(spatial, windows, pads, strict=True)
    )


def check_per_axis(rank, data_format, **lists):
    batch, _, channel = layout(data_format)
    for name, values in lists.items():
        if rank != len(data_format) or len(values) != rank:
            raise ValueError(
                f"{name} must give {rank} numbers for data_format {data_format}, got {list(values)}"
            )
        if values[batch] != 1 or values[channel] != 1:
            raise ValueError(f"{name} must be 1 for batch and channels in {data_format}, got {list(values)}")


def conv_output_shape(
    input_shape,
    filter_shape,
    *,
    strides,
    padding,
    explicit_paddings=(),
    data_format="NHWC",
    dilations=None,
    depthwise=False,
):
    """Static shape of a convolution's output; entries of both shapes may be None.

    filter_shape is [spatial..., channels of one group, output channels], or for depthwise
    [spatial..., input channels, multiplier]. Raises ValueError for sizes that can't be.
    """
    rank = len(data_format)
    dilations = (1,) * rank if dilations is None else tuple(dilations)
    batch, spatial, channel = layout(data_format)
    for name, shape in (("input", input_shape), ("filter", filter_shape)):
        if len(shape) != rank:
            raise ValueError(
                f"the {name} must have {rank} dimensions for data_format {data_format}, got {list(shape)}"
            )
    check_per_axis(rank, data_format, strides=strides, dilations=dilations)
    depth, (per_group, last) = input_shape[channel], filter_shape[-2:]
    if depthwise:
        if None not in (depth, per_group) and depth != per_group:
            raise ValueError(f"a depthwise filter must have the input's {depth} channels, got {per_group}")
        depth = per_group if depth is None else depth
        channels = None if None in (depth, last) else depth * last
    else:
        channels = last
        if None not in (depth, per_group):
            if per_group == 0 or depth % per_group:
                raise ValueError(
                    f"Depth of input ({depth}) is not a multiple of input depth of filter ({per_group})"
                )
            if last is not None and depth and last % (depth // per_group):
                raise ValueError(
                    f"Depth of output ({last}) is not a multiple of the number of groups "
                    f"({depth // per_group})"
                )
    out = [None] * rank
    out[batch], out[channel] = input_shape[batch], channels
    pads = pads_of(rank, padding, explicit_paddings, spatial)
    for axis, window, pad in zip(spatial, filter_shape[:-2], pads, strict=True):
        out[axis] = output_size(
            input_shape[axis], window, strides[axis], padding, pad[0], pad[1], dilations[axis], "filter"
        )
    return tuple(out)


def _pool_pads(ksize, strides, padding, explicit_paddings, data_format):
    rank = len(data_format)
    layout(data_format)
    for name, values in (("ksize", ksize), ("strides", strides)):
        if len(values) != rank:
            raise ValueError(
                f"{name} must give {rank} numbers for data_format {data_format}, got {list(values)}"
            )
    if ksize[0] != 1 or strides[0] != 1:
        raise ValueError(
            f"pooling over the batch is not possible: ksize {list(ksize)}, strides {list(strides)}"
        )
    _, spatial, _ = layout(data_format)
    pads = dict(zip(spatial, pads_of(rank, padding, explicit_paddings, spatial), strict=True))
    for axis, pad in pads.items():
        if max(pad) >= ksize[axis] and max(pad):
            raise ValueError(
                f"padding must be less than the window: ksize {list(ksize)}, "
                f"paddings {list(explicit_paddings)}"
            )
    return [pads.get(axis, (0, 0)) for axis in range(rank)]


def pool_output_shape(input_shape, *, ksize, strides, padding, explicit_paddings=(), data_format="NHWC"):
    """Static shape of a pool's output; entries of input_shape may be None. Raises ValueError."""
    pads = _pool_pads(ksize, strides, padding, explicit_paddings, data_format)
    if len(input_shape) != len(pads):
        raise ValueError(
            f"the input must have {len(pads)} dimensions for data_format {data_format}, "
            f"got {list(input_shape)}"
        )
    return tuple(
        output_size(n, k, s, padding, *pad)
        for n, k, s, pad in zip(input_shape, ksize, strides, pads, strict=True)
    )


def pool_spans(input_shape, ksize, strides, padding, explicit_paddings, data_format):
    """Spans of *all* axes of a pool's input."""
    pads = _pool_pads(ksize, strides, padding, explicit_paddings, data_format)
    return tuple(
        span(n, k, s, padding, pad) for n, k, s, pad in zip(input_shape, ksize, strides, pads, strict=True)
    )
