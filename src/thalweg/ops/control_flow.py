"""Control flow: the nodes by which branches and loops are dataflow too.

What they do is the executor's: values are *dead* on the side that a Switch doesn't choose, a Merge takes
whichever input is alive, Enter and Exit move values between frames, NextIteration to the next iteration.
Their gradients are autodiff's. Source: the white paper, section 4.4; TensorFlow's control_flow_ops.cc.
"""

from __future__ import annotations

from typing import Any

from thalweg.base.errors import AbortedError
from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import control, stateful

_LOOP_ATTRS = "T: type, frame_name: string, is_constant: bool = False, parallel_iterations: int = 10"


def _same(c: ShapeContext) -> list[Shape]:
    handle = c.handle(0)
    if handle is not None:
        c.handles[0] = handle
    return [c.shape(0)]


def _switch_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(1, 0)
    handle = c.handle(0)
    if handle is not None:
        c.handles[0] = c.handles[1] = handle
    return [c.shape(0), c.shape(0)]


def _merge_shape(c: ShapeContext) -> list[Shape]:
    """What all inputs have in common: the back edge of a loop comes later, and is checked there."""
    handle = c.handle(0)
    if handle is not None and all(c.handle(i) == handle for i in range(len(c))):
        c.handles[0] = handle
    return [_common(c.shapes()), ()]


def _common(found: list[Shape]) -> Shape:
    first = found[0]
    if first is None or any(s is None or len(s) != len(first) for s in found):
        return None
    return tuple(d if all(s[i] == d for s in found if s is not None) else None for i, d in enumerate(first))


def _loop_cond_shape(c: ShapeContext) -> list[Shape]:
    return [c.with_rank(0, 0)]


def _define_both(
    name: str, outputs: str, attrs: str, shape: Any, doc: str, inputs: str = "data: {T}"
) -> None:
    """The op for values, and with "Ref" before its name the one for references."""
    for prefix, arg in (("", "T"), ("Ref", "Ref(T)")):
        define_op(
            prefix + name,
            inputs=inputs.format(T=arg),
            outputs=outputs.format(T=arg),
            attrs=attrs,
            shape=shape,
            kernel=control(),
            allows_uninitialized_input=prefix + name == "RefSwitch",
            doc=doc,
        )


_define_both(
    "Switch",
    "output_false: {T}, output_true: {T}",
    "T: type",
    _switch_shape,
    "Its data, alive on the output that pred chooses and dead on the other.",
    inputs="data: {T}, pred: bool",
)

_define_both("Enter", "output: {T}", _LOOP_ATTRS, _same, "Its data, in iteration 0 of a child frame.")
_define_both("Exit", "output: {T}", "T: type", _same, "Its data, in the parent frame.")
_define_both("NextIteration", "output: {T}", "T: type", _same, "Its data, in the next iteration.")

for _name, _arg in (("Merge", "T"), ("RefMerge", "Ref(T)")):
    define_op(
        _name,
        inputs=f"inputs: N * {_arg}",
        outputs=f"output: {_arg}, value_index: int32",
        attrs="T: type, N: int >= 1",
        shape=_merge_shape,
        kernel=control(),
        doc="The input that is alive, and which it is.",
    )

define_op(
    "LoopCond",
    inputs="input: bool",
    outputs="output: bool",
    shape=_loop_cond_shape,
    kernel=control(),
    gradient=NotDifferentiable("a boolean"),
    doc="Its input: whether the loop goes on.",
)

define_op(
    "ControlTrigger",
    shape=lambda c: [],
    kernel=control(),
    gradient=NotDifferentiable("no inputs"),
    doc="Runs whether or not its control inputs are dead.",
)


def _abort_kernel(context: Any, *, error_msg: str, exit_without_error: bool) -> None:
    raise context.fail(AbortedError, error_msg or "Abort was run")


define_op(
    "Abort",
    attrs="error_msg: string = '', exit_without_error: bool = False",
    shape=lambda c: [],
    kernel=stateful(_abort_kernel),
    gradient=NotDifferentiable("no inputs"),
    doc="AbortedError; TensorFlow ends the process.",
)
