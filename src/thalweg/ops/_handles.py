"""What op families know and require of the variables behind references and resource handles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base.dtypes import DType
from thalweg.base.shape import Shape
from thalweg.graph.operation import Tensor
from thalweg.graph.registry import NotDifferentiable
from thalweg.graph.shape_context import ShapeContext
from thalweg.ops._arrays import fail_unless, shape_text

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


def require_same_shape(names: Sequence[str], values: Sequence[Any]) -> None:
    """InvalidArgumentError where a value hasn't the shape of the first one, the variable."""
    shape = np.shape(values[0])
    for name, value in zip(names, values, strict=True):
        given = np.shape(value)
        text = f"{names[0]} and {name} do not have the same shape{shape_text(shape)} {shape_text(given)}"
        fail_unless(given == shape, lambda text=text: text)


def require_scalars(names: Sequence[str], values: Sequence[Any]) -> None:
    """InvalidArgumentError where one of the values is no scalar."""
    for name, value in zip(names, values, strict=True):
        text = f"{name} is not a scalar: {shape_text(np.shape(value))}"
        fail_unless(np.shape(value) == (), lambda text=text: text)
