"""Sums of many tensors of one shape. Source: TensorFlow's math_ops.cc, aggregate_ops.cc."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from jax import lax

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext, same
from thalweg.kernel import checks
from thalweg.kernel.convention import traceable
from thalweg.ops._types import NUMBER


def _add_n_shape(c: ShapeContext) -> list[Shape]:
    return [same(c.shapes())]


def _require_one_shape(inputs: list[Any]) -> None:
    for i, x in enumerate(inputs):
        checks.require(
            x.shape == inputs[0].shape,
            lambda i=i, x=x: (
                "Inputs to operation must have the same size and shape. "
                f"Input 0: {shapes.format_shape(tuple(inputs[0].shape))} != "
                f"input {i}: {shapes.format_shape(tuple(x.shape))}"
            ),
        )


#: from this many terms on, sums of a few are added up: XLA's compiler overflows its stack on long chains
_LONG_SUM = 512
_FEW = 8


def _add_n(inputs: list[Any]) -> Any:
    _require_one_shape(inputs)
    while len(inputs) > _LONG_SUM:
        inputs = [reduce(lax.add, inputs[i : i + _FEW]) for i in range(0, len(inputs), _FEW)]
    return reduce(lax.add, inputs)


def _add_n_host(inputs: list[np.ndarray]) -> np.ndarray:
    _require_one_shape(inputs)
    with np.errstate(all="ignore"):
        return np.asarray(reduce(np.add, inputs))


def _add_n_gradient(emit: Emitter, op: Operation, dy: Any) -> list[Any]:
    return [dy] * len(op._inputs)


add_n = define_op(
    "AddN",
    inputs="inputs: N * T",
    outputs="sum: T",
    attrs=f"N: int >= 1, T: {NUMBER[:-1]}, variant}}",
    shape=_add_n_shape,
    kernel=traceable(_add_n, host=_add_n_host),
    gradient=_add_n_gradient,
    commutative=True,
    doc="The sum of all inputs, which have one shape.",
)


def _accumulate_shape(c: ShapeContext) -> list[Shape]:
    return [same([c.attr("shape"), *c.shapes()])]


accumulate_n = define_op(
    "AccumulateNV2",
    inputs="inputs: N * T",
    outputs="sum: T",
    attrs=f"N: int >= 1, T: {NUMBER}, shape: shape",
    shape=_accumulate_shape,
    kernel=traceable(_add_n, host=_add_n_host),
    gradient=_add_n_gradient,
    commutative=True,
    doc="The sum of all inputs, which have the shape `shape`.",
)
