"""Gradients of what enters a loop, leaves it, goes round it; the sums over iterations of loop invariants.

Source: TensorFlow's control_flow_grad.py, AddBackpropAccumulator of control_flow_ops.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.autodiff import nodes
from thalweg.autodiff.loops import GradLoopState
from thalweg.autodiff.nodes import Grad, inside
from thalweg.autodiff.zeros import constant, is_known, shape_node, zeros
from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.graph import control_flow
from thalweg.graph.composite import IndexedSlices, vector_slice
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import Emitter, emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import register_gradient
from thalweg.graph.while_context import WhileContext


def _exit_gradient(_: Emitter, op: Operation, grad: Grad) -> Grad | None:
    """A gradient that comes to an Exit enters the gradient's loop."""
    context = get_default_graph()._get_control_flow_context()
    if context is None or not context.back_prop:
        return None
    if op._control_flow_context.grad_state is not None:
        raise TypeError("Second-order gradient for while loops not supported.")
    for part in nodes.parts(grad):
        context.AddName(part)
    with inside(context._graph, context):
        result = nodes.on_parts(
            control_flow.enter, grad, context.name, False, context.parallel_iterations, name="b_exit"
        )
        context.loop_enters.append(result)
    return result


def _next_iteration_gradient(_: Emitter, op: Operation, grad: Grad) -> Grad:
    """The gradient's own NextIteration is made with the gradient of the Switch."""
    return grad


def _enter_gradient(_: Emitter, op: Operation, grad: Grad) -> Grad:
    """The gradient of a loop variable leaves the loop; that of an invariant is a sum over iterations."""
    context = get_default_graph()._get_control_flow_context()
    if context is None or not context.back_prop or context.grad_state is None:
        return grad
    if op._attrs["is_constant"]:
        if isinstance(grad, IndexedSlices):
            return _add_up_slices(context, op, grad)
        return _add_up(context, op, grad)
    result = nodes.exit(grad)
    context.loop_exits.append(result)
    context.ExitResult(nodes.parts(result))
    return result


for _prefix in ("", "Ref"):
    register_gradient(f"{_prefix}Exit", _exit_gradient)
    register_gradient(f"{_prefix}NextIteration", _next_iteration_gradient)
    register_gradient(f"{_prefix}Enter", _enter_gradient)


# ---- sums over iterations --------------------------------------------------------------------------------


def _add_up(context: WhileContext, op: Operation, grad: Tensor) -> Tensor:
    """Adds `acc = 0; while ...: acc += grad` to the gradient's loop. op: the Enter of the invariant."""
    start = _nothing_yet(context.grad_state, op._inputs[0], grad)
    with inside(context._graph, context):
        merged, false, true = _variable(context, start)
        following = control_flow.next_iteration(emit("AddV2", true, grad, name="Add"))
        merged._op._update_input(1, following)
        return _leave(context, false)


def _nothing_yet(state: GradLoopState, value: Tensor, grad: Tensor) -> Tensor:
    """Zeros of the shape of an invariant: its gradient where the loop doesn't run."""
    graph = get_default_graph()
    dtype = grad._dtype.base_dtype
    if is_known(grad._shape):
        with inside(graph, state.outside):
            return constant(grad._shape, dtype, "b_acc")
    if state.outer is None:
        with inside(graph, state.outside):
            return zeros(shape_node(value), dtype)
    with inside(graph, state.forward_context.outer_context):
        shape = shape_node(value)
    stack = state.outer.keep(shape)
    with inside(graph, state.outside):
        return zeros(state.outer.kept(stack, shape), dtype)


def _add_up_slices(context: WhileContext, op: Operation, grad: IndexedSlices) -> IndexedSlices:
    """The same for slices: they are put one after the other; the first is an empty row 0."""
    starts = _no_slices_yet(context.grad_state, op._inputs[0], grad)
    following: list[Any] = [grad.indices, grad.values]
    with inside(context._graph, context):
        entered = [_entered(context, t, growing=True) for t in starts]
        entered[0].set_shape((None,))
        if starts[1]._shape is not None:
            entered[1].set_shape((None, *starts[1]._shape[1:]))
        merges = [control_flow.merge([t, t], name="b_acc")[0] for t in entered]
        assert context.pivot is not None
        switches = [control_flow.switch(t, context.pivot) for t in merges]
        sums = [
            emit("ConcatV2", [true, new], 0, name="concat")
            for (_, true), new in zip(switches[:2], following, strict=True)
        ]
        if grad.dense_shape is not None:
            sums.append(emit("Maximum", grad.dense_shape, switches[2][1]))
        for merged, new in zip(merges, [control_flow.next_iteration(t) for t in sums], strict=True):
            merged._op._update_input(1, new)
        indices, values, *dense_shape = [_leave(context, false) for false, _ in switches]
    return IndexedSlices(values, indices, dense_shape[0] if dense_shape else None)


def _no_slices_yet(state: GradLoopState, value: Tensor, grad: IndexedSlices) -> list[Tensor]:
    """Indices, values and (where there is one) dense shape of one row of zeros."""
    values, shape = grad.values, grad.dense_shape
    with inside(get_default_graph(), state.outside):
        if is_known(values._shape):
            rows = constant((1, *values._shape[1:]), values._dtype, "b_acc")
        else:
            known = value._handle[1] if value._handle is not None else None
            rest: Any = list(known[1:]) if known is not None and None not in known[1:] else None
            if rest is None:
                rest = vector_slice(shape_node(value), 1, 0, end_mask=1)
            rows = zeros(emit("ConcatV2", [[1], rest], 0, name="concat"), values._dtype)
        result = [emit.constant([0], grad.indices._dtype), rows]
        if shape is not None:
            result.append(_dense_shape(value, shape._dtype))
    return result


def _dense_shape(value: Tensor, dtype: DType) -> Tensor:
    """The shape of an invariant, right also where the loop doesn't run (TensorFlow starts from zeros)."""
    handle = value._handle[1] if value._dtype == dtypes.resource and value._handle is not None else None
    known = value._shape if value._dtype != dtypes.resource else handle
    if is_known(known):
        return emit.constant(np.array(known), dtype)
    return shape_node(value, dtype)


def _variable(context: WhileContext, start: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A new loop variable of a gradient's loop: its Merge, and the two sides of its Switch."""
    entered = _entered(context, start)
    merged, _ = control_flow.merge([entered, entered], name="b_acc")
    assert context.pivot is not None
    return (merged, *control_flow.switch(merged, context.pivot))


def _entered(context: WhileContext, start: Tensor, growing: bool = False) -> Tensor:
    context.AddName(start)
    result = control_flow.enter(
        start, context.name, False, context.parallel_iterations, use_input_shape=not growing, name="b_acc"
    )
    context.loop_enters.append(result)
    return result


def _leave(context: WhileContext, last: Tensor) -> Tensor:
    result = control_flow.exit(last, name="b_acc")
    context.loop_exits.append(result)
    context.ExitResult([result])
    return result
