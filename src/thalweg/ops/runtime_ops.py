"""Nodes that the runtime itself knows: arguments, results, clusters, constants, NoOp, placeholders."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import Kernel, Kind, nothing, source, stateful, traceable


def _unknown_shapes(c: ShapeContext) -> list[Shape]:
    return [None] * len(c.op._outputs)


arg = define_op(
    "_Arg",
    outputs="output: T",
    attrs="T: type, index: int >= 0",
    shape=_unknown_shapes,
    kernel=source(),
    stateful=True,
    gradient=NotDifferentiable("an argument of a plan"),
    doc="Argument `index` of a plan: what was fed.",
)

retval = define_op(
    "_Retval",
    inputs="input: T",
    attrs="T: type, index: int >= 0",
    shape=lambda c: [],
    kernel=Kernel(Kind.SOURCE, lambda: None),
    stateful=True,
    gradient=NotDifferentiable("a result of a plan"),
    doc="Result `index` of a plan: what is fetched.",
)

cluster = define_op(
    "_Cluster",
    inputs="args: Tin",
    outputs="results: Tout",
    attrs="Tin: list(type), Tout: list(type), body: func",
    shape=_unknown_shapes,
    kernel=Kernel(Kind.CLUSTER, lambda: None),
    stateful=True,
    gradient=NotDifferentiable("made by the plan"),
    doc="A slice of the graph that runs as one XLA executable.",
)


def _const_shape(c: ShapeContext) -> list[Shape]:
    return [c.attr("value").shape]


const = define_op(
    "Const",
    outputs="output: dtype",
    attrs="value: tensor, dtype: type",
    shape=_const_shape,
    kernel=source(),
    gradient=NotDifferentiable("a constant depends on nothing"),
    doc="A constant tensor.",
)

no_op = define_op(
    "NoOp",
    shape=lambda c: [],
    kernel=nothing(),
    gradient=NotDifferentiable("no inputs"),
    doc="Does nothing; a place for control edges to meet.",
)


def _placeholder_shape(c: ShapeContext) -> list[Shape]:
    return [c.attr("shape")]


def _placeholder_kernel(context: Any, *, dtype: np.dtype, shape: Shape) -> None:
    name = context.op.name
    raise InvalidArgumentError(
        None,
        context.op,
        f"You must feed a value for placeholder tensor '{name}' with dtype "
        f"{context.op._outputs[0].dtype.name} and shape {shapes.format_shape(shape)}: "
        f"pass feed_dict={{'{name}:0': ...}} to run",
    )


placeholder = define_op(
    "Placeholder",
    outputs="output: dtype",
    attrs="dtype: type, shape: shape = None",
    shape=_placeholder_shape,
    kernel=stateful(_placeholder_kernel),
    gradient=NotDifferentiable("no inputs"),
    doc="A tensor that must be fed.",
)


def _default_shape(c: ShapeContext) -> list[Shape]:
    declared: Shape = c.attr("shape")
    shapes.merge(c.shape(0), declared)
    return [declared]  # not the merged shape: what is fed may differ from the default


placeholder_with_default = define_op(
    "PlaceholderWithDefault",
    inputs="input: dtype",
    outputs="output: dtype",
    attrs="dtype: type, shape: shape",
    shape=_default_shape,
    kernel=traceable(lambda x: x),
    gradient=lambda emit, op, dy: [dy],
    doc="A tensor that may be fed; its input where it is not.",
)
