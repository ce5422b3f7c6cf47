"""The value of a variable that may have none yet: what initial values that depend on variables read.

TensorFlow builds a cond on IsVariableInitialized for this; one node does it here, since a read of the other
branch would fail. Both kinds of variable have one.
"""

from __future__ import annotations

from typing import Any

from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import stateful


def _shape(c: ShapeContext) -> list[Shape]:
    return [c.shape(1)]


def _kernel(context: Any, variable: Any, initial: Any) -> Any:
    """variable: the runtime's storage, whose value is None before initialisation."""
    if variable.value is None:
        return initial
    variable.escaped = True  # we hand out its array: nobody may reuse the buffer
    return variable.value


initialized_value = define_op(
    "_InitializedValue",
    inputs="ref: Ref(T), initial: T",
    outputs="output: T",
    attrs="T: type",
    shape=_shape,
    kernel=stateful(_kernel),
    stateful=True,
    allows_uninitialized_input=True,
    gradient=NotDifferentiable("which of the two it is depends on the session's state"),
    doc="The value of a reference variable, or `initial` where it has none.",
)

initialized_resource_value = define_op(
    "_InitializedResourceValue",
    inputs="resource: resource, initial: T",
    outputs="output: T",
    attrs="T: type",
    shape=_shape,
    kernel=stateful(_kernel),
    stateful=True,
    allows_uninitialized_input=True,
    gradient=NotDifferentiable("which of the two it is depends on the session's state"),
    doc="The value of a resource variable, or `initial` where it has none.",
)
