"""What op families know of the variable behind a reference or a resource handle."""

from __future__ import annotations

from thalweg.base.dtypes import DType
from thalweg.base.shape import Shape
from thalweg.graph.operation import Tensor
from thalweg.graph.registry import NotDifferentiable
from thalweg.graph.shape_context import ShapeContext

NO_GRADIENT = NotDifferentiable("it changes or looks at state")


def behind(c: ShapeContext, i: int) -> tuple[DType | None, Shape]:
    """The dtype and static shape of the variable that input i stands for; None for what isn't known."""
    return _behind(c.op._inputs[i])


def variable_shape(tensor: Tensor) -> Shape:
    """The static shape of the variable that a tensor stands for."""
    return _behind(tensor)[1]


def _behind(tensor: Tensor) -> tuple[DType | None, Shape]:
    if tensor._dtype.is_ref_dtype:
        return tensor._dtype.base_dtype, tensor._shape
    return tensor._handle or (None, None)
