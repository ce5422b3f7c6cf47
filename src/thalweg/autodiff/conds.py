"""Gradients through branches: a Switch's is a Merge, a Merge's a Switch; zeros for the branch not taken.

Source: TensorFlow's control_flow_grad.py and control_flow_state.py.
"""

from __future__ import annotations

from typing import Any

from thalweg.autodiff import nodes
from thalweg.autodiff.nodes import Grad
from thalweg.autodiff.zeros import dtype_of, shape_node, zeros, zeros_like
from thalweg.base import dtypes
from thalweg.graph.cond_context import CondContext
from thalweg.graph.control_flow import switch
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.graph.emitter import Emitter, emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import register_gradient
from thalweg.graph.where import is_switch, output_context


def _switch_gradient(emit: Emitter, op: Operation, *grads: Grad | None) -> list[Grad | None]:
    """The gradient of the side that is taken.

    The Switch of a loop variable is visited twice: first the gradient comes from the Exit, then from the
    body, by the gradient's NextIteration.
    """
    context = op._control_flow_context
    if context is not None and context.IsWhileContext():
        return [_loop_switch_gradient(op, *grads), None]
    if isinstance(context, CondContext):
        return [_cond_switch_gradient(op, context, grads), None]
    pred = op._inputs[1]
    sides = [
        nodes.switch(g, pred, colocate=False)[i] for i, g in enumerate(grads) if g is not None
    ]
    return [nodes.merge(sides) if len(sides) == 2 else None, None]


def _loop_switch_gradient(op: Operation, false: Grad | None, true: Grad | None) -> Grad | None:
    switch_map = get_default_graph()._get_control_flow_context().grad_state.switch_map
    merged = switch_map.get(op)
    if merged is not None:
        if true is not None:
            _close(merged, true)
        return None
    if false is None:
        return None  # comes from the body alone: the loop variable isn't differentiable
    merged = nodes.merge([false, false], name="b_switch")
    # what comes round may have another shape than what comes from the Exit
    if isinstance(merged, Tensor):
        merged._shape = op._outputs[0]._shape
    else:
        rows = merged.values._shape
        merged.values._shape = None if rows is None else (None, *rows[1:])
        merged.indices._shape = (None,)
    switch_map[op] = merged
    return merged


def _close(merged: Grad, grad: Grad) -> None:
    """The back edge of a gradient's loop variable."""
    grad = convert_to_tensor(grad) if isinstance(merged, Tensor) else nodes.as_slices(grad)
    following = nodes.parts(nodes.next_iteration(grad))
    for part, new in zip(nodes.parts(merged), following, strict=False):
        part._op._update_input(1, new)


def _cond_switch_gradient(op: Operation, context: CondContext, grads: Any) -> Grad | None:
    if grads[1 - context.branch] is not None:
        return nodes.merge(grads, name="cond_grad")
    if op._inputs[0]._dtype == dtypes.resource and grads[context.branch] is not None:
        return nodes.merge([grads[context.branch]] * 2, name="cond_resource_grad")
    return None


def _merge_gradient(emit: Emitter, op: Operation, grad: Grad, _: Any) -> list[Grad]:
    """The gradient goes to the input that was alive."""
    current = get_default_graph()._get_control_flow_context()
    context = output_context(op._inputs[0]._op)
    if context is not None and context.IsWhileContext():
        return list(nodes.switch(grad, current.pivot))
    if isinstance(context, CondContext):
        pred = context.pred
        if current is not None and current.grad_state is not None:
            pred = current.grad_state.keep_pred(pred)
        return list(nodes.switch(grad, pred, "cond_grad"))
    chosen = [emit("Equal", op._outputs[1], i) for i in range(len(op._inputs))]
    return [nodes.switch(grad, c)[1] for c in chosen]


for _prefix in ("", "Ref"):
    register_gradient(f"{_prefix}Switch", _switch_gradient)
    register_gradient(f"{_prefix}Merge", _merge_gradient)


def zeros_of(op: Operation, index: int) -> Tensor:
    """Zeros for an output that no gradient comes from, outside of loops.

    For a branch's Switch that is the side not taken: they are made only there.
    """
    tensor = op._outputs[index]
    context = op._control_flow_context
    if not is_switch(op) or not isinstance(context, CondContext):
        return zeros_like(tensor)
    other = switch(op._inputs[0], context.pred)[1 - context.branch]
    pivot = emit("Identity", other)
    if tensor._dtype == dtypes.resource:
        with get_default_graph().control_dependencies([pivot]):
            return zeros(shape_node(other), dtype_of(tensor))
    shape = shape_node(other)
    with get_default_graph().control_dependencies([pivot]):
        return zeros(shape, tensor._dtype.base_dtype)
