"""Shapes: asking for them, changing them. Source: TensorFlow's array_ops.cc, array_grad.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.shape import Dim, Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import (
    ShapeContext,
    constant_value,
    constant_value_as_shape,
    shape_value_of_scalar,
)
from thalweg.kernel.convention import traceable
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, ints, shape_text
from thalweg.ops._emitting import dense, like_input
from thalweg.ops._types import INDEX

_INTEGER_RESULT = NotDifferentiable("the result is an integer that no element of the input moves")


def _shape_kernel(x: Any, *, out_type: np.dtype) -> np.ndarray:
    return np.array(np.shape(x), out_type)


def _shape_shape(c: ShapeContext) -> list[Shape]:
    s = c.shape(0)
    return [(None if s is None else len(s),)]


define_op(
    "Shape",
    inputs="input: T",
    outputs="output: out_type",
    attrs=f"T: type, out_type: {INDEX} = int32",
    shape=_shape_shape,
    kernel=traceable(_shape_kernel, host=_shape_kernel, shape_only=True),
    gradient=_INTEGER_RESULT,
    shape_value=lambda op: op._inputs[0]._shape,
    doc="The shape of a tensor, as a vector.",
)


def _shape_n_shape(c: ShapeContext) -> list[Shape]:
    return [(None if s is None else len(s),) for s in c.shapes()]


def _shape_n_kernel(values: list[Any], *, out_type: np.dtype) -> list[np.ndarray]:
    return [np.array(np.shape(v), out_type) for v in values]


define_op(
    "ShapeN",
    inputs="input: N * T",
    outputs="output: N * out_type",
    attrs=f"N: int >= 1, T: type, out_type: {INDEX} = int32",
    shape=_shape_n_shape,
    kernel=traceable(_shape_n_kernel, host=_shape_n_kernel, shape_only=True),
    gradient=_INTEGER_RESULT,
    shape_value=lambda op: [t._shape for t in op._inputs],
    doc="The shapes of several tensors.",
)


def _size_kernel(x: Any, *, out_type: np.dtype) -> np.ndarray:
    return np.array(math.prod(np.shape(x)), out_type)


def _size_value(op: Operation) -> Shape:
    return (shapes.num_elements(op._inputs[0]._shape),)


define_op(
    "Size",
    inputs="input: T",
    outputs="output: out_type",
    attrs=f"T: type, out_type: {INDEX} = int32",
    shape=lambda c: [()],
    kernel=traceable(_size_kernel, host=_size_kernel, shape_only=True),
    gradient=_INTEGER_RESULT,
    shape_value=_size_value,
    doc="The number of elements of a tensor.",
)


def _rank_kernel(x: Any) -> np.ndarray:
    return np.array(np.ndim(x), np.int32)


def _rank_value(op: Operation) -> Shape:
    known = op._inputs[0]._shape
    return None if known is None else (len(known),)


define_op(
    "Rank",
    inputs="input: T",
    outputs="output: int32",
    attrs="T: type",
    shape=lambda c: [()],
    kernel=traceable(_rank_kernel, host=_rank_kernel, shape_only=True),
    gradient=_INTEGER_RESULT,
    shape_value=_rank_value,
    doc="The number of dimensions of a tensor.",
)


def _known_product(shape: tuple[Dim, ...]) -> tuple[int, list[int]]:
    """The product of the known dimensions, and the positions of the unknown ones."""
    return math.prod(d for d in shape if d is not None), [i for i, d in enumerate(shape) if d is None]


def _reshape_shape(c: ShapeContext) -> list[Shape]:
    source, target = c.shape(0), c.value_as_shape(1)
    wanted, value = c.shape(1), c.value(1)
    if wanted is not None and len(wanted) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(wanted)}")
    if value is not None and (value < -1).any():
        raise ValueError(f"Sizes must be at least -1, but the shape to take is {value.tolist()}")
    if source is None or target is None:
        return [target]
    known_in, open_in = _known_product(source)
    known_out, open_out = _known_product(target)
    if len(open_in) > 1 or len(open_out) > 1:
        return [target]
    if not open_in and not open_out:
        if known_in != known_out:
            raise ValueError(
                f"Cannot reshape a tensor with {known_in} elements to shape {shapes.format_shape(target)} "
                f"({known_out} elements)"
            )
    elif not open_in and known_out > 0:
        _check_divides(known_in, known_out)
        return [tuple(known_in // known_out if d is None else d for d in target)]
    elif not open_out and known_in > 0:
        _check_divides(known_out, known_in)
    return [target]


def _check_divides(n: int, by: int) -> None:
    if n % by:
        raise ValueError(f"Dimension size must be evenly divisible by {by} but is {n}")


def reshape_target(source: Sequence[int], target: list[int]) -> tuple[int, ...]:
    """The shape that `target` (with at most one -1) means for a tensor of shape `source`.

    With no elements, -1 becomes 0; where `target` asks for a zero itself, -1 holds what the other dimensions
    leave when zeros are struck out on both sides. Errors: InvalidArgumentError.
    """
    wild = [i for i, d in enumerate(target) if d == -1]
    fail_unless(len(wild) <= 1, lambda: f"Only one input size may be -1, not both {wild[0]} and {wild[1]}")
    for i, d in enumerate(target):
        fail_unless(d >= -1, lambda i=i, d=d: f"Size {i} must be non-negative, not {d}")
    elements = math.prod(source)
    result = list(target)
    if wild:
        struck = 0 in target
        rest = math.prod(d for d in target if d > 0)
        count = math.prod(d for d in source if d) if struck else elements
        fail_unless(
            count % rest == 0 or (struck and not elements),
            lambda: f"Input to reshape is a tensor with {elements} values, but the requested shape requires "
            f"a multiple of {rest}",
        )
        result[wild[0]] = count // rest
    total = math.prod(result)
    fail_unless(
        total == elements,
        lambda: f"Input to reshape is a tensor with {elements} values, but the requested shape has {total}",
    )
    return tuple(result)


def _reshape_kernel(x: Any, shape: Any) -> Any:
    return arrays.reshape(x, reshape_target(np.shape(x), ints(shape)))


def _reshape_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    known = op.inputs[0]._shape
    if known is not None and known.count(None) == 1 and 0 not in known:
        # a wildcard spares the run a Shape node
        target = [-1 if d is None else d for d in known]
        return [emit("Reshape", dense(emit, dy), target), None]
    return [like_input(emit, op.inputs[0], dy), None]


def _reshape_value(op: Operation) -> Shape:
    known = constant_value_as_shape(op._inputs[0])
    wanted = op._outputs[0]._shape
    if wanted == ():
        return (shape_value_of_scalar(op._inputs[0]),)
    if wanted is not None and len(wanted) == 1:
        if op._inputs[0]._shape == ():
            return (shape_value_of_scalar(op._inputs[0]),)
        return known
    return None


define_op(
    "Reshape",
    inputs="tensor: T, shape: Tshape",
    outputs="output: T",
    attrs=f"T: type, Tshape: {INDEX} = int32",
    shape=_reshape_shape,
    kernel=traceable(_reshape_kernel, host=_reshape_kernel, static=("shape",)),
    gradient=_reshape_gradient,
    shape_value=_reshape_value,
    doc="The same elements in another shape; one size may be -1: what is left.",
)


def _expand_dims_shape(c: ShapeContext) -> list[Shape]:
    s, dim = c.shape(0), c.value(1)
    if dim is not None and dim.size != 1:
        raise ValueError(f"'dim' input must be a tensor with a single value, got {dim.size}")
    if s is None:
        return [None]
    if dim is None:
        return [(None,) * (len(s) + 1)]
    d = int(dim.reshape(()))
    if not -len(s) - 1 <= d <= len(s):
        raise ValueError(f"dim {d} not in the interval [{-len(s) - 1}, {len(s)}].")
    d = d % (len(s) + 1)
    return [(*s[:d], 1, *s[d:])]


def _expand_dims_kernel(x: Any, dim: Any) -> Any:
    shape = np.shape(x)
    d = int(np.asarray(dim).reshape(()))
    rank = len(shape)
    fail_unless(
        -rank - 1 <= d <= rank,
        lambda: f"Tried to expand dim index {d} for tensor with {rank} dimensions.",
    )
    d %= rank + 1
    return arrays.reshape(x, (*shape[:d], 1, *shape[d:]))


def _scalar_as_vector(op: Operation) -> Shape:
    return (shape_value_of_scalar(op._inputs[0]),) if op._inputs[0]._shape == () else None


define_op(
    "ExpandDims",
    inputs="input: T, dim: Tdim",
    outputs="output: T",
    attrs=f"T: type, Tdim: {INDEX} = int32",
    shape=_expand_dims_shape,
    kernel=traceable(_expand_dims_kernel, host=_expand_dims_kernel, static=("dim",)),
    gradient=lambda emit, op, dy: [like_input(emit, op.inputs[0], dy), None],
    shape_value=_scalar_as_vector,
    doc="A dimension of size 1 more, at position dim.",
)


def _squeeze_shape(c: ShapeContext) -> list[Shape]:
    s, dims = c.shape(0), c.attr("squeeze_dims")
    if s is None:
        return [None]
    if not dims:
        return [tuple(d for d in s if d != 1) if None not in s else None]
    for d in dims:
        if not -len(s) <= d < len(s):
            raise ValueError(f"Tried to squeeze dim index {d} for tensor with {len(s)} dimensions.")
        if s[d] not in (1, None):
            raise ValueError(f"Can not squeeze dim[{d}], expected a dimension of 1, got {s[d]}")
    gone = {d % len(s) for d in dims}
    return [tuple(n for i, n in enumerate(s) if i not in gone)]


def _squeeze_kernel(x: Any, *, squeeze_dims: tuple[int, ...]) -> Any:
    shape = np.shape(x)
    rank = len(shape)
    for d in squeeze_dims:
        fail_unless(
            -rank <= d < rank,
            lambda d=d: f"Tried to squeeze dim index {d} for tensor with {rank} dimensions.",
        )
        fail_unless(
            shape[d] == 1,
            lambda d=d: f"Can not squeeze dim[{d}], expected a dimension of 1, got {shape[d]}",
        )
    gone = {d % rank for d in squeeze_dims} if squeeze_dims else {i for i, n in enumerate(shape) if n == 1}
    return arrays.reshape(x, tuple(n for i, n in enumerate(shape) if i not in gone))


def _squeeze_value(op: Operation) -> Shape:
    if op._outputs[0]._shape is None or len(op._outputs[0]._shape) > 1:
        return None
    return constant_value_as_shape(op._inputs[0])


define_op(
    "Squeeze",
    inputs="input: T",
    outputs="output: T",
    attrs="T: type, squeeze_dims: list(int) >= 0 = []",
    shape=_squeeze_shape,
    kernel=traceable(_squeeze_kernel, host=_squeeze_kernel),
    gradient=lambda emit, op, dy: [like_input(emit, op.inputs[0], dy)],
    shape_value=_squeeze_value,
    doc="Without the dimensions of size 1 that squeeze_dims names, or without all of them.",
)


def _ensure_shape_kernel(x: Any, *, shape: Shape) -> Any:
    got = tuple(np.shape(x))
    fail_unless(
        shapes.is_compatible(got, shape),
        lambda: f"Shape of tensor {shape_text(got)} is not compatible with expected shape "
        f"{shapes.format_shape(shape)}.",
    )
    return x


define_op(
    "EnsureShape",
    inputs="input: T",
    outputs="output: T",
    attrs="shape: shape, T: type",
    shape=lambda c: [shapes.merge(c.shape(0), c.attr("shape"))],
    kernel=traceable(_ensure_shape_kernel, host=_ensure_shape_kernel),
    gradient=lambda emit, op, dy: [dy],
    doc="Its input, whose shape must fit the given one.",
)


def _broadcast_to_shape(c: ShapeContext) -> list[Shape]:
    s, target = c.shape(0), c.value_as_shape(1)
    if s is not None and target is not None:
        if len(s) > len(target):
            raise ValueError(
                f"Rank of input ({len(s)}) must be no greater than rank of output shape ({len(target)})."
            )
        for d, n in zip(reversed(s), reversed(target), strict=False):
            if None not in (d, n) and d not in (1, n):
                raise ValueError(
                    f"Incompatible shapes for broadcasting: {shapes.format_shape(s)} and "
                    f"{shapes.format_shape(target)}"
                )
        # a dimension that isn't 1 stays what it is
        lead = len(target) - len(s)
        kept = tuple(d if n is None and d != 1 else n for d, n in zip(s, target[lead:], strict=True))
        return [target[:lead] + kept]
    return [target]


def _broadcast_to_kernel(x: Any, shape: Any) -> Any:
    target = ints(shape)
    s = np.shape(x)
    fits = len(s) <= len(target) and all(
        d in (1, n) for d, n in zip(reversed(s), reversed(target), strict=False)
    )
    fail_unless(
        fits, lambda: f"Incompatible shapes: {shape_text(s)} vs. {shape_text(target)}"
    )
    return arrays.broadcast_to(x, target)


def _broadcast_to_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    x, target = op.inputs
    kind = target._dtype.base_dtype
    x_shape = emit.shape(x, out_type=kind)
    known = emit.known_value(target)
    if known is not None:
        target = emit.constant(known, kind)
    _, axes = emit("BroadcastGradientArgs", target, x_shape)
    return [emit("Reshape", emit("Sum", dy, axes, keep_dims=True), x_shape), None]


define_op(
    "BroadcastTo",
    inputs="input: T, shape: Tidx",
    outputs="output: T",
    attrs=f"T: type, Tidx: {INDEX} = int32",
    shape=_broadcast_to_shape,
    kernel=traceable(_broadcast_to_kernel, host=_broadcast_to_kernel, static=("shape",)),
    gradient=_broadcast_to_gradient,
    doc="Its input repeated along dimensions of size 1 and new leading ones.",
)


def _broadcast_args_shape(c: ShapeContext) -> list[Shape]:
    lengths = [s[0] for s in (c.with_rank(0, 1), c.with_rank(1, 1)) if s is not None]
    return [(None if None in lengths else max(n for n in lengths if n is not None),)]


def _broadcast_args_kernel(s0: Any, s1: Any) -> np.ndarray:
    a, b = ints(s0), ints(s1)
    try:
        result = shapes.broadcast(tuple(a), tuple(b))
    except ValueError:
        result = None
    fail_unless(
        result is not None,
        lambda: f"Incompatible shapes: {shape_text(a)} and {shape_text(b)} do not broadcast",
    )
    return np.array(result, np.asarray(s0).dtype)


def _broadcast_args_value(op: Operation) -> Shape:
    a, b = (constant_value_as_shape(t) for t in op._inputs)
    try:
        return shapes.broadcast(a, b)
    except ValueError:
        return None  # said when the node runs


define_op(
    "BroadcastArgs",
    inputs="s0: T, s1: T",
    outputs="r0: T",
    attrs=f"T: {INDEX} = int32",
    shape=_broadcast_args_shape,
    kernel=traceable(_broadcast_args_kernel, host=_broadcast_args_kernel, static=("s0", "s1")),
    gradient=_INTEGER_RESULT,
    shape_value=_broadcast_args_value,
    doc="The shape to which two shapes broadcast.",
)

