"""Pools over windows and their gradients.

Source: TensorFlow's nn_ops.cc, maxpooling_op, avgpooling_op, nn_grad.py. The arithmetic, ties and NaNs
included, is in _pooling.py.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import GradientFn, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import traceable
from thalweg.ops import _pooling as formulas
from thalweg.ops._gradient_nodes import zeros_like
from thalweg.ops._types import FLOATS, REAL
from thalweg.ops._windows import layout, pool_output_shape

_MAX_TYPES = "{half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float"
_PADDING = "padding: {'SAME', 'VALID'}"
_ANY_PADDING = "padding: {'SAME', 'VALID', 'EXPLICIT'}, explicit_paddings: list(int) = []"
_PLANE = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
_PLANE_OR_VECTORS = "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"
_VOLUME = "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'"
_WINDOW = "ksize: list(int) >= 4, strides: list(int) >= 4"
_WINDOW_3D = "ksize: list(int) >= 5, strides: list(int) >= 5"
_FLOATS_3D = "{half, bfloat16, float}"

Kernel = Callable[..., Any]


# -- kernels ------------------------------------------------------------------------------------------------


def _attributed(formula: Kernel, *attrs: str) -> Kernel:
    """The formula as a kernel that takes just these attributes."""

    def kernel(*arrays: Any, **given: Any) -> Any:
        return formula(*arrays, **given)

    keywords = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in attrs]
    arrays = inspect.Parameter("arrays", inspect.Parameter.VAR_POSITIONAL)
    kernel.__signature__ = inspect.Signature([arrays, *keywords])  # type: ignore[attr-defined]
    return kernel


_COMMON = ("ksize", "strides", "padding", "data_format")


def _ints(known: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in np.asarray(known).reshape(-1))


def _max_pool_v2(x: Any, ksize: Any, strides: Any, *, padding: str, data_format: str) -> Any:
    return formulas.max_pool(
        x, ksize=_ints(ksize), strides=_ints(strides), padding=padding, data_format=data_format
    )


def _grad_v2(formula: Kernel) -> Kernel:
    def kernel(x: Any, y: Any, grad: Any, ksize: Any, strides: Any, *, padding: str, data_format: str) -> Any:
        window = {"ksize": _ints(ksize), "strides": _ints(strides)}
        return formula(x, y, grad, **window, padding=padding, data_format=data_format)

    return kernel


def _max_pool_with_argmax(
    x: Any, *, ksize: Any, strides: Any, Targmax: Any, padding: str, include_batch_in_index: bool
) -> Any:
    return formulas.max_pool_with_argmax(
        x,
        ksize=ksize,
        strides=strides,
        padding=padding,
        include_batch_in_index=include_batch_in_index,
        index_dtype=Targmax,
    )


def _positions(argmax: Any, size: int, include_batch_in_index: bool) -> Any:
    """argmax as positions in the whole input, of `size` elements; flat."""
    flat = lax.convert_element_type(argmax, np.int64)
    if not include_batch_in_index and argmax.shape[0]:
        each = size // argmax.shape[0]
        flat = lax.add(flat, lax.mul(lax.broadcasted_iota(np.int64, argmax.shape, 0), np.int64(each)))
    return lax.reshape(flat, (math.prod(argmax.shape),))


def _max_pool_grad_with_argmax(x: Any, grad: Any, argmax: Any, *, include_batch_in_index: bool) -> Any:
    if argmax.shape != grad.shape:
        raise ValueError(f"grad and argmax must have the same shape, got {grad.shape} and {argmax.shape}")
    size = math.prod(x.shape)
    at = _positions(argmax, size, include_batch_in_index)
    zeros = lax.full((size,), 0, grad.dtype)
    total = jnp.asarray(zeros).at[at].add(lax.reshape(grad, at.shape), mode="drop")
    return lax.reshape(total, x.shape)


def _max_pool_grad_grad_with_argmax(x: Any, grad: Any, argmax: Any, *, include_batch_in_index: bool) -> Any:
    if x.shape != grad.shape:
        raise ValueError(f"grad must have the input's shape {x.shape}, got {grad.shape}")
    size = math.prod(x.shape)
    at = _positions(argmax, size, include_batch_in_index)
    flat = jnp.asarray(lax.reshape(grad, (size,)))
    return lax.reshape(flat.at[at].get(mode="fill", fill_value=0), argmax.shape)


def _avg_pool_grad(
    orig_input_shape: Any, grad: Any, *, ksize: Any, strides: Any, padding: str, data_format: str
) -> Any:
    window = {"ksize": ksize, "strides": strides, "padding": padding, "data_format": data_format}
    return formulas.avg_pool_grad(_ints(orig_input_shape), grad, **window)


# -- shapes -------------------------------------------------------------------------------------------------


def _window_attrs(c: ShapeContext) -> dict[str, Any]:
    attrs = c.op._attrs
    return {
        "ksize": attrs["ksize"],
        "strides": attrs["strides"],
        "padding": c.text("padding"),
        "explicit_paddings": attrs.get("explicit_paddings", ()),
        "data_format": c.text("data_format") if "data_format" in attrs else "NHWC",
    }


def _pool_shape(c: ShapeContext) -> list[Shape]:
    how = _window_attrs(c)
    if how["data_format"] == "NCHW_VECT_C":
        raise ValueError("data_format NCHW_VECT_C is for quantized tensors, which have no kernel here")
    return [pool_output_shape(c.with_rank(0, len(how["data_format"])), **how)]


def _pool_v2_shape(c: ShapeContext) -> list[Shape]:
    data_format = c.text("data_format")
    ksize, strides = c.value(1), c.value(2)
    x = c.with_rank(0, 4)
    layout(data_format)
    if ksize is None or strides is None:
        return [(None,) * 4]
    window = {"ksize": _ints(ksize), "strides": _ints(strides)}
    return [pool_output_shape(x, **window, padding=c.text("padding"), data_format=data_format)]


def _with_argmax_shape(c: ShapeContext) -> list[Shape]:
    return _pool_shape(c) * 2


def _like_input(c: ShapeContext) -> list[Shape]:
    """Of a gradient: the shape of what was pooled."""
    return [c.with_rank(0, len(c.text("data_format")))]


def _like_output(c: ShapeContext) -> list[Shape]:
    """Of a gradient's gradient: the shape of the pool's result."""
    return [c.with_rank(1, len(c.text("data_format")))]


def _avg_grad_shape(c: ShapeContext) -> list[Shape]:
    rank = len(c.text("data_format"))
    c.with_rank(1, rank)
    return [shapes.merge(c.value_as_shape(0), (None,) * rank)]


# -- gradients ----------------------------------------------------------------------------------------------


def _how(op: Operation, *more: str) -> dict[str, Any]:
    return {name: op._attrs[name] for name in (*_COMMON, *more) if name in op._attrs}


def _max_gradient(grad_op: str) -> GradientFn:
    def gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
        how = _how(op, "explicit_paddings")
        return [emit(grad_op, op._inputs[0], op._outputs[0], dy, **how)]

    return gradient


def _max_v2_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    x, ksize, strides = op._inputs
    return [emit("MaxPoolGradV2", x, op._outputs[0], dy, ksize, strides, **_how(op)), None, None]


def _max_grad_gradient(other: str) -> GradientFn:
    """Of MaxPoolGrad and MaxPoolGradGrad, each of which is the other's transpose in its third input."""

    def gradient(emit: Emitter, op: Operation, grad: Tensor) -> list[Any]:
        x, y, _, *window = op._inputs
        zeros = [zeros_like(emit, x), zeros_like(emit, y)]
        return [*zeros, emit(other, x, y, grad, *window, **_how(op)), *(None for _ in window)]

    return gradient


def _with_argmax_gradient(emit: Emitter, op: Operation, dy: Tensor, _: Any) -> list[Any]:
    how = {name: op._attrs[name] for name in ("ksize", "strides", "padding", "include_batch_in_index")}
    return [emit("MaxPoolGradWithArgmax", op._inputs[0], dy, op._outputs[1], **how)]


def _argmax_transpose(other: str) -> GradientFn:
    """Of MaxPoolGradWithArgmax and MaxPoolGradGradWithArgmax. TensorFlow has no gradient here."""

    def gradient(emit: Emitter, op: Operation, grad: Tensor) -> list[Any]:
        x, _, argmax = op._inputs
        how = {name: op._attrs[name] for name in ("ksize", "strides", "padding", "include_batch_in_index")}
        return [zeros_like(emit, x), emit(other, x, grad, argmax, **how), None]

    return gradient


def _avg_gradient(grad_op: str) -> GradientFn:
    return lambda emit, op, dy: [emit(grad_op, emit.shape(op._inputs[0]), dy, **_how(op))]


def _avg_grad_gradient(forward: str) -> GradientFn:
    def gradient(emit: Emitter, op: Operation, grad: Tensor) -> list[Any]:
        return [emit("StopGradient", op._inputs[0]), emit(forward, grad, **_how(op))]

    return gradient


# -- maximum ------------------------------------------------------------------------------------------------

_MAX_INPUTS = "orig_input: T, orig_output: T, grad: T"
_V2_INPUTS = f"{_MAX_INPUTS}, ksize: int32, strides: int32"
_MAX_GRAD_DOC = "The gradient of a max-pool: each window's goes to its first maximum."
_MAX_GRAD_GRAD_DOC = "The gradient of MaxPoolGrad: what grad holds at each window's first maximum."

define_op(
    "MaxPool",
    inputs="input: T",
    outputs="output: T",
    attrs=f"T: {_MAX_TYPES}, {_WINDOW}, {_ANY_PADDING}, {_PLANE_OR_VECTORS}",
    shape=_pool_shape,
    kernel=traceable(_attributed(formulas.max_pool, *_COMMON, "explicit_paddings")),
    gradient=_max_gradient("MaxPoolGrad"),
    doc="The greatest element of each window.",
)

define_op(
    "MaxPoolGrad",
    inputs=_MAX_INPUTS,
    outputs="output: T",
    attrs=f"{_WINDOW}, {_ANY_PADDING}, {_PLANE}, T: {REAL} = float",
    shape=_like_input,
    kernel=traceable(_attributed(formulas.max_pool_grad, *_COMMON, "explicit_paddings")),
    gradient=_max_grad_gradient("MaxPoolGradGrad"),
    doc=_MAX_GRAD_DOC,
)

define_op(
    "MaxPoolGradGrad",
    inputs=_MAX_INPUTS,
    outputs="output: T",
    attrs=f"{_WINDOW}, {_PADDING}, {_PLANE}, T: {REAL}",
    shape=_like_output,
    kernel=traceable(_attributed(formulas.max_pool_grad_grad, *_COMMON)),
    gradient=_max_grad_gradient("MaxPoolGrad"),
    doc=_MAX_GRAD_GRAD_DOC,
)

define_op(
    "MaxPoolV2",
    inputs="input: T, ksize: int32, strides: int32",
    outputs="output: T",
    attrs=f"T: {_MAX_TYPES}, {_PADDING}, {_PLANE_OR_VECTORS}",
    shape=_pool_v2_shape,
    kernel=traceable(_max_pool_v2, static=("ksize", "strides")),
    gradient=_max_v2_gradient,
    doc="MaxPool whose window is an input.",
)

define_op(
    "MaxPoolGradV2",
    inputs=_V2_INPUTS,
    outputs="output: T",
    attrs=f"{_PADDING}, {_PLANE}, T: {REAL} = float",
    shape=_like_input,
    kernel=traceable(_grad_v2(formulas.max_pool_grad), static=("ksize", "strides")),
    gradient=_max_grad_gradient("MaxPoolGradGradV2"),
    doc=_MAX_GRAD_DOC,
)

define_op(
    "MaxPoolGradGradV2",
    inputs=_V2_INPUTS,
    outputs="output: T",
    attrs=f"{_PADDING}, {_PLANE}, T: {REAL}",
    shape=_like_output,
    kernel=traceable(_grad_v2(formulas.max_pool_grad_grad), static=("ksize", "strides")),
    gradient=_max_grad_gradient("MaxPoolGradV2"),
    doc=_MAX_GRAD_GRAD_DOC,
)

define_op(
    "MaxPoolWithArgmax",
    inputs="input: T",
    outputs="output: T, argmax: Targmax",
    attrs=f"{_WINDOW}, Targmax: {{int32, int64}} = int64, {_PADDING}, include_batch_in_index: bool = False, "
    f"T: {REAL}",
    shape=_with_argmax_shape,
    kernel=traceable(_max_pool_with_argmax),
    gradient=_with_argmax_gradient,
    doc="The greatest element of each window and its flat position in the input.",
)

_ARGMAX_ATTRS = (
    f"{_WINDOW}, {_PADDING}, include_batch_in_index: bool = False, Targmax: {{int32, int64}}, T: {REAL}"
)

define_op(
    "MaxPoolGradWithArgmax",
    inputs="input: T, grad: T, argmax: Targmax",
    outputs="output: T",
    attrs=_ARGMAX_ATTRS,
    shape=lambda c: [c.with_rank(0, 4)],
    kernel=traceable(_max_pool_grad_with_argmax),
    gradient=_argmax_transpose("MaxPoolGradGradWithArgmax"),
    doc="The gradient of MaxPoolWithArgmax: grad summed at the positions in argmax.",
)

define_op(
    "MaxPoolGradGradWithArgmax",
    inputs="input: T, grad: T, argmax: Targmax",
    outputs="output: T",
    attrs=_ARGMAX_ATTRS,
    shape=lambda c: [c.with_rank(2, 4)],
    kernel=traceable(_max_pool_grad_grad_with_argmax),
    gradient=_argmax_transpose("MaxPoolGradWithArgmax"),
    doc="The gradient of MaxPoolGradWithArgmax: what grad holds at the positions in argmax.",
)

define_op(
    "MaxPool3D",
    inputs="input: T",
    outputs="output: T",
    attrs=f"{_WINDOW_3D}, {_PADDING}, {_VOLUME}, T: {_FLOATS_3D}",
    shape=_pool_shape,
    kernel=traceable(_attributed(formulas.max_pool, *_COMMON)),
    gradient=_max_gradient("MaxPool3DGrad"),
    doc="The greatest element of each window of a volume.",
)

define_op(
    "MaxPool3DGrad",
    inputs="orig_input: TInput, orig_output: TInput, grad: T",
    outputs="output: T",
    attrs=f"{_WINDOW_3D}, {_PADDING}, {_VOLUME}, T: {_FLOATS_3D} = float, TInput: {_FLOATS_3D} = float",
    shape=_like_input,
    kernel=traceable(_attributed(formulas.max_pool_grad, *_COMMON)),
    gradient=_max_grad_gradient("MaxPool3DGradGrad"),
    doc=_MAX_GRAD_DOC,
)

define_op(
    "MaxPool3DGradGrad",
    inputs=_MAX_INPUTS,
    outputs="output: T",
    attrs=f"{_WINDOW_3D}, {_PADDING}, {_VOLUME}, T: {REAL}",
    shape=_like_output,
    kernel=traceable(_attributed(formulas.max_pool_grad_grad, *_COMMON)),
    gradient=_max_grad_gradient("MaxPool3DGrad"),
    doc=_MAX_GRAD_GRAD_DOC,
)


# -- average ------------------------------------------------------------------------------------------------


def _define_average(name: str, argument: str, window: str, data_format: str) -> None:
    """An average pool and its gradient."""
    attrs = f"{window}, {_PADDING}, {data_format}, T: {FLOATS}"
    define_op(
        name,
        inputs=f"{argument}: T",
        outputs="output: T",
        attrs=attrs,
        shape=_pool_shape,
        kernel=traceable(_attributed(formulas.avg_pool, *_COMMON)),
        gradient=_avg_gradient(f"{name}Grad"),
        doc="The mean of each window's elements, padding not counted.",
    )
    define_op(
        f"{name}Grad",
        inputs="orig_input_shape: int32, grad: T",
        outputs="output: T",
        attrs=attrs,
        shape=_avg_grad_shape,
        kernel=traceable(_avg_pool_grad, static=("orig_input_shape",)),
        gradient=_avg_grad_gradient(name),
        doc=f"The gradient of {name} for an input of this shape.",
    )


_define_average("AvgPool", "value", _WINDOW, _PLANE)
_define_average("AvgPool3D", "input", _WINDOW_3D, _VOLUME)
