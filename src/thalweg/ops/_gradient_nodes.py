"""What TensorFlow's gradient functions are written with, node for node and name for name. Private to ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Tensor

#: constants of more elements are made by a node, as in TensorFlow (_constant_if_small)
SMALL = 1000


def _binary(emit: Emitter, op_type: str, name: str, a: Any, b: Any) -> Tensor:
    """As Python's operators on tensors: a number takes the type of the tensor beside it."""
    if isinstance(a, Tensor | IndexedSlices):
        return emit(op_type, a, b, name=name)
    return emit(op_type, a, b, name=name, T=b._dtype.base_dtype)


def mul(emit: Emitter, a: Any, b: Any) -> Tensor:
    """a * b."""
    return _binary(emit, "Mul", "mul", a, b)


def add(emit: Emitter, a: Any, b: Any) -> Tensor:
    """a + b."""
    return _binary(emit, "AddV2", "add", a, b)


def sub(emit: Emitter, a: Any, b: Any) -> Tensor:
    """a - b."""
    return _binary(emit, "Sub", "sub", a, b)


def truediv(emit: Emitter, a: Any, b: Any) -> Tensor:
    """a / b of floating numbers."""
    return _binary(emit, "RealDiv", "truediv", a, b)


def neg(emit: Emitter, x: Any) -> Any:
    """-x; of IndexedSlices, which stay sparse, too."""
    if isinstance(x, IndexedSlices):
        return IndexedSlices(emit("Neg", x.values), x.indices, x.dense_shape)
    return emit("Neg", x)


def conj(emit: Emitter, x: Tensor) -> Tensor:
    """The complex conjugate; x itself where it is real."""
    return emit("Conj", x) if x._dtype.is_complex else x


def zeros_like(emit: Emitter, x: Tensor) -> Tensor:
    """Zeros of x's type and shape: a constant where the shape is known and small."""
    count = shapes.num_elements(x._shape)
    if count is not None and count < SMALL:
        return emit.constant(np.zeros(_known(x._shape), x._dtype.as_numpy_dtype), name="zeros_like")
    return emit("ZerosLike", x, name="zeros_like")


def ones_like(emit: Emitter, x: Tensor, dtype: Any = None) -> Tensor:
    """Ones of x's shape and of x's type, or another."""
    wanted = x._dtype.base_dtype if dtype is None else dtype
    with get_default_graph().name_scope("ones_like") as scope:
        known = shapes.is_fully_defined(x._shape)
        dims = emit.shape(x, name="Shape/shape_as_tensor" if known else None)
        return _fill(emit, dims, np.ones((), wanted.as_numpy_dtype), scope)


def ones(emit: Emitter, dims: Any, dtype: Any) -> Tensor:
    """Ones of a shape that is a tensor, or a list with a tensor in it."""
    with get_default_graph().name_scope("ones") as scope:
        if isinstance(dims, list):
            dims = emit("Pack", dims, name="packed")
        return _fill(emit, dims, np.ones((), dtype.as_numpy_dtype), scope)


def zeros(emit: Emitter, dims: Tensor, dtype: Any) -> Tensor:
    """Zeros of a shape that is a tensor."""
    with get_default_graph().name_scope("zeros") as scope:
        return _fill(emit, dims, np.zeros((), dtype.as_numpy_dtype), scope)


def _fill(emit: Emitter, dims: Tensor, value: np.ndarray, name: str) -> Tensor:
    constant = emit.constant(value)
    return emit("Fill", dims, constant, name=name)


def cast(emit: Emitter, x: Tensor, dtype: Any) -> Tensor:
    """x as another type; x itself where it has that type."""
    if x._dtype.base_dtype == dtype.base_dtype:
        return x
    return emit("Cast", x, DstT=dtype.base_dtype)


def _known(shape: Shape) -> tuple[int, ...]:
    return tuple(d for d in shape or () if d is not None)


def same_known_shapes(*tensors: Any) -> bool:
    """Whether all are tensors with one fully known static shape."""
    if any(not isinstance(t, Tensor) for t in tensors):
        return False
    first = tensors[0]._shape
    return shapes.is_fully_defined(first) and all(t._shape == first for t in tensors)


def broadcast_axes(x: Shape, y: Shape) -> tuple[list[int], list[int]] | None:
    """The axes that broadcasting added to or stretched in x and in y; None where that depends on values."""
    if x is None or y is None:
        return None
    rank = max(len(x), len(y))
    x_axes, y_axes = [], []
    for axis in range(rank):
        x_dim = 1 if axis < rank - len(x) else x[axis - (rank - len(x))]
        y_dim = 1 if axis < rank - len(y) else y[axis - (rank - len(y))]
        if x_dim == 1 and y_dim != 1:
            x_axes.append(axis)
        elif y_dim == 1 and x_dim != 1:
            y_axes.append(axis)
        elif x_dim is None or y_dim is None:
            return None
    return x_axes, y_axes


def reduce_to_inputs(emit: Emitter, x: Tensor, y: Tensor, gx: Any, gy: Any) -> list[Any]:
    """Gradients of a broadcasting op's result, summed down to the shapes of its inputs."""
    if gx is None and gy is None:
        return [gx, gy]
    x_shape, y_shape = emit.shape(x), emit.shape(y)
    axes = broadcast_axes(x._shape, y._shape)
    if axes is None:
        x_axes, y_axes = emit("BroadcastGradientArgs", x_shape, y_shape)
        return [_sum_to(emit, gx, x_axes, x_shape), _sum_to(emit, gy, y_axes, y_shape)]
    assert x._shape is not None and y._shape is not None
    if axes[0] or len(x._shape) < len(y._shape):
        gx = _sum_to(emit, gx, axes[0], x_shape)
    if axes[1] or len(y._shape) < len(x._shape):
        gy = _sum_to(emit, gy, axes[1], y_shape)
    return [gx, gy]


def _sum_to(emit: Emitter, grad: Any, axes: Tensor | Sequence[int], shape: Tensor) -> Any:
    if grad is None:
        return None
    # the axes are kept so that the gradient of this sum needs no nodes to find them again
    return emit("Reshape", emit("Sum", grad, axes, keep_dims=True), shape)


def sum_over(emit: Emitter, grad: Tensor, axes: Tensor, shape: Tensor) -> Tensor:
    """grad summed over `axes` (of BroadcastGradientArgs) and given `shape`."""
    return emit("Reshape", emit("Sum", grad, axes), shape)


def reduced_shape(emit: Emitter, input_shape: Tensor, axes: Tensor) -> Any:
    """The shape of a reduction's result, reduced axes kept as 1: an array, or nodes that compute it."""
    known, known_axes = emit.known_value(input_shape), emit.known_value(axes)
    if known is not None and known_axes is not None:
        result = known.astype(np.int32)
        result[known_axes.astype(np.int32)] = 1
        return result
    index = axes._dtype.base_dtype
    rank = emit.size(input_shape, out_type=index)
    axes = emit("FloorMod", emit("AddV2", axes, rank, name="add"), rank, name="mod")
    axes_shape = emit.shape(axes)
    every = emit("Range", 0, rank, 1, name="range", Tidx=index)
    kept = ones(emit, axes_shape, dtypes.int32)
    if index == dtypes.int64:  # TensorFlow's DynamicStitch takes int32 positions only
        every, axes = emit("Cast", every, DstT=dtypes.int32), emit("Cast", axes, DstT=dtypes.int32)
    return emit("DynamicStitch", [every, axes], [input_shape, kept])
