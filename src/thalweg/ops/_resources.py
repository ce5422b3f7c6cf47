"""What the families of queues, barriers, accumulators and staging areas share."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable
from thalweg.graph.shape_context import ShapeContext

NO_GRADIENT = NotDifferentiable("its state has no gradient")

CONTAINER = "container: string = '', shared_name: string = ''"


def handle_shape(c: ShapeContext) -> list[Shape]:
    """A resource handle is a scalar; a reference to a resource of old is a vector of two strings."""
    return [(2,) if c.op._outputs[0]._dtype.is_ref_dtype else ()]


def unknown_shapes(c: ShapeContext) -> list[Shape]:
    """Nothing is known."""
    return [None] * len(c.op._outputs)


def scalar_shape(c: ShapeContext) -> list[Shape]:
    """One scalar."""
    return [()]


def no_shapes(c: ShapeContext) -> list[Shape]:
    """No outputs."""
    return []


def kept(array: Any) -> np.ndarray:
    """An array that nobody will change: a copy of one that somebody may (a fed array is the caller's)."""
    array = np.asarray(array)
    return array.copy() if array.flags.writeable else array


def handle_argument(resource: bool) -> str:
    """The definition of a handle as an input or output."""
    return "handle: resource" if resource else "handle: Ref(string)"
