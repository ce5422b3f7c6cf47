"""Calls of functions, and branches and loops whose bodies are functions.

None of them runs: a plan has the bodies in their place (plan.inline). Source: TensorFlow's functional_ops.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import call, host, traceable

NO_GRADIENT = NotDifferentiable("not a number")


def _unknown(c: ShapeContext) -> list[Shape]:
    return [None] * len(c.op._outputs)


def _as_told(c: ShapeContext) -> list[Shape]:
    """What the attribute says, where it says anything."""
    told = c.attr("output_shapes")
    return list(told) if len(told) == len(c.op._outputs) else _unknown(c)


def _loop_shapes(c: ShapeContext) -> list[Shape]:
    for i in range(len(c)):
        handle = c.handle(i)
        if handle is not None:
            c.handles[i] = handle
    return _as_told(c)


_CALL = "Tin: list(type) >= 0, Tout: list(type) >= 0"
_OPTIONS = "config: string = '', config_proto: string = '', executor_type: string = ''"
_SHAPES = "output_shapes: list(shape) = []"


def _define(
    name: str,
    inputs: str,
    attrs: str,
    shape: Any,
    doc: str,
    outputs: str = "output: Tout",
    stateful: bool = False,
) -> None:
    # gradients: autodiff.calls
    define_op(
        name,
        inputs=inputs,
        outputs=outputs,
        attrs=attrs,
        shape=shape,
        kernel=call(),
        doc=doc,
        stateful=stateful,
    )


for _name, _stateful in (("PartitionedCall", False), ("StatefulPartitionedCall", True)):
    _define(
        _name,
        "args: Tin",
        f"{_CALL}, f: func, {_OPTIONS}",
        _unknown,
        "What the function f returns.",
        stateful=_stateful,
    )

for _name, _stateful in (("If", True), ("StatelessIf", False)):
    _define(
        _name,
        "cond: Tcond, input: Tin",
        f"Tcond: type, {_CALL}, then_branch: func, else_branch: func, {_SHAPES}",
        _as_told,
        "What one of two functions returns, as cond says.",
        stateful=_stateful,
    )

for _name, _stateful in (("Case", True), ("StatelessCase", False)):
    _define(
        _name,
        "branch_index: int32, input: Tin",
        f"{_CALL}, branches: list(func) >= 1, {_SHAPES}",
        _as_told,
        "What the function at branch_index returns; the last one where the index is out of range.",
        stateful=_stateful,
    )

for _name, _stateful in (("While", True), ("StatelessWhile", False)):
    _define(
        _name,
        "input: T",
        f"T: list(type) >= 0, cond: func, body: func, {_SHAPES}, parallel_iterations: int = 10",
        _loop_shapes,
        "What body makes of its input, over and over while cond holds.",
        outputs="output: T",
        stateful=_stateful,
    )

_define(
    "SymbolicGradient",
    "input: Tin",
    "Tin: list(type) >= 1, Tout: list(type) >= 1, f: func",
    _unknown,
    "The gradients of the function f, given its arguments and the gradients of its results.",
)


def _to_bool_on_host(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return np.asarray(x.size > 0 if x.ndim else bool(x.item()))


define_op(
    "ToBool",
    inputs="input: T",
    outputs="output: bool",
    attrs="T: type",
    shape=lambda c: [()],
    kernel=host(_to_bool_on_host),
    gradient=NO_GRADIENT,
    doc="Whether a scalar isn't zero or empty, or a larger tensor has elements.",
)

define_op(
    "FakeParam",
    outputs="output: dtype",
    attrs="dtype: type, shape: shape",
    shape=lambda c: [c.attr("shape")],
    kernel=traceable(
        lambda *, dtype, shape: np.zeros([d or 0 for d in shape or ()], dtype),
        host=lambda *, dtype, shape: np.zeros([d or 0 for d in shape or ()], dtype),
    ),
    gradient=NO_GRADIENT,
    doc="A value that nobody uses: the result of a branch that has none.",
)
