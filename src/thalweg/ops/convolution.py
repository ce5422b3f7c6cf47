"""Convolutions and their gradients: dense in two and three dimensions, and depthwise.

Source: TensorFlow's nn_ops.cc, conv_ops, conv_grad_ops, depthwise_conv_op, nn_grad.py. The arithmetic is in
_convolution.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import GradientFn, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import traceable
from thalweg.ops import _convolution as formulas
from thalweg.ops._types import FLOATS
from thalweg.ops._windows import conv_output_shape, layout

_PLANE = (
    "padding: {'SAME', 'VALID', 'EXPLICIT'}, explicit_paddings: list(int) = [], "
    "data_format: {'NHWC', 'NCHW'} = 'NHWC', dilations: list(int) = [1, 1, 1, 1]"
)
_DENSE_ATTRS = f"strides: list(int), use_cudnn_on_gpu: bool = True, {_PLANE}"
_DEPTHWISE_ATTRS = f"T: {FLOATS}, strides: list(int), {_PLANE}"
_VOLUME_ATTRS = (
    f"T: {FLOATS}, strides: list(int) >= 5, padding: {{'SAME', 'VALID'}}, "
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC', dilations: list(int) = [1, 1, 1, 1, 1]"
)

Kernel = Callable[..., Any]


# -- kernels ------------------------------------------------------------------------------------------------


def _sizes(known: np.ndarray) -> tuple[int, ...]:
    return tuple(int(n) for n in np.asarray(known).reshape(-1))


def _plane_kernel(formula: Kernel) -> Kernel:
    """A convolution of two arrays."""

    def kernel(
        x: Any,
        filter: Any,
        *,
        strides: Any,
        padding: Any,
        explicit_paddings: Any,
        data_format: Any,
        dilations: Any,
    ) -> Any:
        how = {"explicit_paddings": explicit_paddings, "data_format": data_format, "dilations": dilations}
        return formula(x, filter, strides=strides, padding=padding, **how)

    return kernel


def _plane_input_kernel(formula: Kernel) -> Kernel:
    """The gradient of a convolution's input, whose sizes are the first argument; the spatial ones will do."""

    def kernel(
        input_sizes: Any,
        filter: Any,
        dy: Any,
        *,
        strides: Any,
        padding: Any,
        explicit_paddings: Any,
        data_format: Any,
        dilations: Any,
    ) -> Any:
        sizes = _sizes(input_sizes)
        if len(sizes) == len(data_format) - 2:
            sizes = _whole_shape(sizes, dy.shape[0], filter.shape[-2], data_format)
        how = {"explicit_paddings": explicit_paddings, "data_format": data_format, "dilations": dilations}
        return formula(sizes, filter, dy, strides=strides, padding=padding, **how)

    return kernel


def _plane_filter_kernel(formula: Kernel) -> Kernel:
    """The gradient of a convolution's filter, whose sizes are the second argument."""

    def kernel(
        x: Any,
        filter_sizes: Any,
        dy: Any,
        *,
        strides: Any,
        padding: Any,
        explicit_paddings: Any,
        data_format: Any,
        dilations: Any,
    ) -> Any:
        how = {"explicit_paddings": explicit_paddings, "data_format": data_format, "dilations": dilations}
        return formula(x, _sizes(filter_sizes), dy, strides=strides, padding=padding, **how)

    return kernel


def _volume(x: Any, filter: Any, *, strides: Any, padding: Any, data_format: Any, dilations: Any) -> Any:
    how = {"data_format": data_format, "dilations": dilations}
    return formulas.conv2d(x, filter, strides=strides, padding=padding, **how)


def _volume_input(
    input_sizes: Any, filter: Any, dy: Any, *, strides: Any, padding: Any, data_format: Any, dilations: Any
) -> Any:
    how = {"data_format": data_format, "dilations": dilations}
    return formulas.conv2d_backprop_input(
        _sizes(input_sizes), filter, dy, strides=strides, padding=padding, **how
    )


def _volume_filter(
    x: Any, filter_sizes: Any, dy: Any, *, strides: Any, padding: Any, data_format: Any, dilations: Any
) -> Any:
    how = {"data_format": data_format, "dilations": dilations}
    sizes = _sizes(filter_sizes)
    return formulas.conv2d_backprop_filter(x, sizes, dy, strides=strides, padding=padding, **how)


# -- shapes -------------------------------------------------------------------------------------------------


def _whole_shape(spatial: Any, batch: Any, channels: Any, data_format: str) -> Any:
    """A tensor's shape from its parts."""
    if data_format[1] == "C":
        return (batch, channels, *spatial)
    return (batch, *spatial, channels)


def _conv_shape(depthwise: bool) -> Callable[[ShapeContext], list[Shape]]:
    def shape(c: ShapeContext) -> list[Shape]:
        attrs = c.op._attrs
        data_format = c.text("data_format")
        rank = len(data_format)
        return [
            conv_output_shape(
                c.with_rank(0, rank),
                c.with_rank(1, rank),
                strides=attrs["strides"],
                padding=c.text("padding"),
                explicit_paddings=attrs.get("explicit_paddings", ()),
                data_format=data_format,
                dilations=attrs["dilations"],
                depthwise=depthwise,
            )
        ]

    return shape


def _input_shape(c: ShapeContext) -> list[Shape]:
    """What input_sizes say, and what the other inputs say of batch and channels."""
    data_format = c.text("data_format")
    rank = len(data_format)
    filter, dy = c.with_rank(1, rank), c.with_rank(2, rank)
    assert filter is not None and dy is not None
    _require_channels(c, filter, dy, data_format)
    known = c.value_as_shape(0)
    if known is not None and len(known) == rank - 2:
        return [_whole_shape(known, dy[0], filter[-2], data_format)]
    merged = shapes.merge(known, (None,) * rank)
    assert merged is not None
    batch = shapes.merge((merged[0],), (dy[0],))
    return [(*(batch or (None,)), *merged[1:])]


def _require_channels(c: ShapeContext, filter: Any, dy: Any, data_format: str) -> None:
    made = filter[-1]
    if c.op.type.startswith("Depthwise"):
        made = None if made is None or filter[-2] is None else made * filter[-2]
    given = dy[1] if data_format[1] == "C" else dy[-1]
    if None not in (made, given) and made != given:
        raise ValueError(f"the filter makes {made} channels, but the gradient of its output has {given}")


def _filter_shape(c: ShapeContext) -> list[Shape]:
    rank = len(c.text("data_format"))
    x, dy = c.with_rank(0, rank), c.with_rank(2, rank)
    assert x is not None and dy is not None
    layout(c.text("data_format"))
    return [shapes.merge(c.value_as_shape(1), (None,) * rank)]


# -- gradients ----------------------------------------------------------------------------------------------


def _how(op: Operation) -> dict[str, Any]:
    """The attributes that a convolution and its gradients share."""
    names = ("dilations", "strides", "padding", "explicit_paddings", "use_cudnn_on_gpu", "data_format")
    return {name: op._attrs[name] for name in names if name in op._attrs}


def _conv_gradient(family: tuple[str, str, str], together: bool) -> GradientFn:
    """together: TensorFlow asks for both shapes with one node, which makes other names."""
    _, of_input, of_filter = family

    def gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
        x, filter = op._inputs
        how = _how(op)
        if together:
            shape_0, shape_1 = emit("ShapeN", [x, filter])
            first = emit(of_input, shape_0, filter, dy, **how)
            return [first, emit(of_filter, x, shape_1, dy, **how)]
        first = emit(of_input, emit.shape(x), filter, dy, **how)
        return [first, emit(of_filter, x, emit.shape(filter), dy, **how)]

    return gradient


def _input_gradient(family: tuple[str, str, str]) -> GradientFn:
    forward, _, of_filter = family

    def gradient(emit: Emitter, op: Operation, ddx: Tensor) -> list[Any]:
        _, filter, dy = op._inputs
        first = emit(of_filter, ddx, emit.shape(filter), dy, **_how(op))
        return [None, first, emit(forward, ddx, filter, **_how(op))]

    return gradient


def _filter_gradient(family: tuple[str, str, str]) -> GradientFn:
    forward, of_input, _ = family

    def gradient(emit: Emitter, op: Operation, ddw: Tensor) -> list[Any]:
        x, _, dy = op._inputs
        first = emit(of_input, emit.shape(x), ddw, dy, **_how(op))
        return [first, None, emit(forward, x, ddw, **_how(op))]

    return gradient


# -- definitions --------------------------------------------------------------------------------------------

_DENSE = ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")
_DEPTHWISE = (
    "DepthwiseConv2dNative",
    "DepthwiseConv2dNativeBackpropInput",
    "DepthwiseConv2dNativeBackpropFilter",
)
_VOLUMES = ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")


def _define_family(
    family: tuple[str, str, str],
    attrs: tuple[str, str, str],
    kernels: tuple[Kernel, Kernel, Kernel],
    doc: str,
    *,
    depthwise: bool = False,
    together: bool = True,
    sizes: str = "int32",
) -> None:
    """A convolution and the gradients of its input and its filter."""
    forward, of_input, of_filter = family
    define_op(
        forward,
        inputs="input: T, filter: T",
        outputs="output: T",
        attrs=attrs[0],
        shape=_conv_shape(depthwise),
        kernel=traceable(kernels[0]),
        gradient=_conv_gradient(family, together),
        doc=doc,
    )
    define_op(
        of_input,
        inputs=f"input_sizes: {sizes}, filter: T, out_backprop: T",
        outputs="output: T",
        attrs=attrs[1],
        shape=_input_shape,
        kernel=traceable(kernels[1], static=("input_sizes",)),
        gradient=_input_gradient(family),
        doc=f"The gradient of {forward} with respect to its input, of shape input_sizes.",
    )
    define_op(
        of_filter,
        inputs="input: T, filter_sizes: int32, out_backprop: T",
        outputs="output: T",
        attrs=attrs[2],
        shape=_filter_shape,
        kernel=traceable(kernels[2], static=("filter_sizes",)),
        gradient=_filter_gradient(family),
        doc=f"The gradient of {forward} with respect to its filter, of shape filter_sizes.",
    )


_WITH_INT32 = f"T: {FLOATS[:-1]}, int32}}, {_DENSE_ATTRS}"

_define_family(
    _DENSE,
    (_WITH_INT32, _WITH_INT32, f"T: {FLOATS}, {_DENSE_ATTRS}"),
    (
        _plane_kernel(formulas.conv2d),
        _plane_input_kernel(formulas.conv2d_backprop_input),
        _plane_filter_kernel(formulas.conv2d_backprop_filter),
    ),
    "The 2-D convolution of input with filter [height, width, in channels of a group, out channels].",
)

_define_family(
    _DEPTHWISE,
    (_DEPTHWISE_ATTRS, _DEPTHWISE_ATTRS, _DEPTHWISE_ATTRS),
    (
        _plane_kernel(formulas.depthwise_conv2d),
        _plane_input_kernel(formulas.depthwise_conv2d_backprop_input),
        _plane_filter_kernel(formulas.depthwise_conv2d_backprop_filter),
    ),
    "A convolution of each channel by itself, with filter [height, width, channels, multiplier].",
    depthwise=True,
    together=False,
)

_define_family(
    _VOLUMES,
    (_VOLUME_ATTRS, f"{_VOLUME_ATTRS}, Tshape: {{int32, int64}} = int32", _VOLUME_ATTRS),
    (_volume, _volume_input, _volume_filter),
    "The 3-D convolution of input with filter [depth, height, width, in channels, out channels].",
    sizes="Tshape",
)
