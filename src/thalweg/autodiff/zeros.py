"""Which tensors have gradients, and the zeros that stand for gradients that nothing arrived for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.base.shape import Shape
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor

_TRAINABLE = frozenset(
    (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)
)
_SMALL = 1000  # zeros of fewer elements are a constant, as tf.zeros makes them


def is_trainable(tensor: Tensor) -> bool:
    """Whether gradients flow through a tensor: floating and complex types, and handles to them."""
    dtype = tensor._dtype.base_dtype
    if dtype == dtypes.resource:
        return tensor._handle is None or tensor._handle[0].base_dtype in _TRAINABLE
    return dtype in _TRAINABLE or dtype == dtypes.variant


def has_zeros(tensor: Tensor) -> bool:
    """Whether there are zeros for a tensor: not for handles of what isn't a variable."""
    return tensor._dtype != dtypes.resource or tensor._handle is not None


def dtype_of(tensor: Tensor) -> DType:
    """The type that gradients of a tensor have: for a handle, its variable's."""
    if tensor._dtype == dtypes.resource:
        return tensor._handle[0].base_dtype if tensor._handle is not None else dtypes.float32
    return tensor._dtype.base_dtype


def is_known(shape: Shape) -> TypeGuard[tuple[int, ...]]:
    """Whether a static shape is fully known."""
    return shape is not None and None not in shape


def shape_node(tensor: Tensor, out_type: DType = dtypes.int32) -> Tensor:
    """The shape of a tensor, or of the variable behind a handle, always by a node that runs."""
    op = "VariableShape" if tensor._dtype == dtypes.resource else "Shape"
    result: Tensor = emit(op, tensor, out_type=out_type)
    return result


def constant(shape: Sequence[int], dtype: DType, name: str = "Const") -> Tensor:
    """Zeros of a known shape, as a constant of any size."""
    return emit.constant(np.zeros(shape, dtype.as_numpy_dtype), dtype, name)


def zeros(shape: Tensor | Sequence[int], dtype: DType, name: str = "zeros") -> Tensor:
    """Zeros of a shape that is known, or is a tensor; the nodes that tf.zeros makes."""
    zero = np.zeros((), dtype.as_numpy_dtype)
    with get_default_graph().name_scope(name) as scope:
        if not isinstance(shape, Tensor):
            count = shapes.num_elements(tuple(shape))
            if count is not None and count < _SMALL:
                return constant(shape, dtype, scope)
            shape = emit.constant(np.array(shape, np.int32), dtypes.int32, "shape_as_tensor")
        elif not shape._shape:
            shape = emit("Reshape", shape, [-1])
        result: Tensor = emit("Fill", shape, emit.constant(zero, dtype), name=scope)
        return result


def variable_shape(handle: Tensor) -> Tensor:
    """The shape of the variable behind a handle: a constant where it is known."""
    known = None if handle._handle is None else handle._handle[1]
    if not is_known(known):
        return shape_node(handle)
    return emit.constant(np.array(known, np.int32))


def zeros_like(tensor: Tensor, optimize: bool = False) -> Tensor:
    """Zeros of a tensor's shape, or of the shape of the variable behind a handle.

    optimize: a constant where the shape is known.
    """
    if tensor._dtype == dtypes.resource:
        return zeros(shape_node(tensor), dtype_of(tensor))
    if optimize and is_known(tensor._shape):
        return zeros(tensor._shape, dtype_of(tensor), "zeros_like")
    result: Tensor = emit("ZerosLike", tensor, name="zeros_like")
    return result
