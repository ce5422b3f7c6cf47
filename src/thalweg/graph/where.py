"""Where a node is: in which branch or loop; and what part of one a Switch, Merge, Enter or Exit is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thalweg.graph.operation import Operation, Tensor

if TYPE_CHECKING:
    from thalweg.graph.control_flow import ControlFlowContext
    from thalweg.graph.while_context import WhileContext

# ---- what a node is --------------------------------------------------------------------------------------


def is_switch(op: Operation) -> bool:
    """Whether op is a Switch."""
    return op.type in ("Switch", "RefSwitch")


def is_merge(op: Operation) -> bool:
    """Whether op is a Merge."""
    return op.type in ("Merge", "RefMerge")


def is_loop_enter(op: Operation) -> bool:
    """Whether op is an Enter."""
    return op.type in ("Enter", "RefEnter")


def is_loop_exit(op: Operation) -> bool:
    """Whether op is an Exit."""
    return op.type in ("Exit", "RefExit")


def is_loop_constant_enter(op: Operation) -> bool:
    """Whether op brings a value that doesn't change into a loop."""
    return is_loop_enter(op) and bool(op._attrs["is_constant"])


def loop_constant_enter(value: Tensor) -> Operation | None:
    """The Enter node behind a value that doesn't change in its loop, or None."""
    op = value._op
    while op.type in ("Switch", "RefSwitch", "Identity", "RefIdentity"):
        op = op._inputs[0]._op
    return op if is_loop_constant_enter(op) else None


def is_cond_switch(op: Operation) -> bool:
    """Whether op is the Switch of a conditional: all that take its outputs are in branches."""
    if not is_switch(op):
        return False
    for tensor in op._outputs:
        for user in tensor._consumers:
            context = user._control_flow_context
            if is_loop_enter(user) and context is not None:
                context = context.outer_context
            if context is None or not context.IsCondContext():
                return False
    return True


def is_cond_merge(op: Operation) -> bool:
    """Whether op is the Merge of a conditional: all that it takes comes from branches."""
    if not is_merge(op) or not op._inputs:
        return False
    contexts = [output_context(t._op) for t in op._inputs]
    return all(c is not None and c.IsCondContext() for c in contexts)


def is_loop_switch(op: Operation) -> bool:
    """Whether op is the Switch of a loop variable."""
    context = op._control_flow_context
    return is_switch(op) and context is not None and context.IsWhileContext() and not is_cond_switch(op)


def is_loop_merge(op: Operation) -> bool:
    """Whether op is the Merge of a loop variable."""
    context = op._control_flow_context
    return is_merge(op) and context is not None and context.IsWhileContext() and not is_cond_merge(op)


# ---- where a node is -------------------------------------------------------------------------------------


def output_context(op: Operation) -> ControlFlowContext | None:
    """The context that op's outputs are in: the outer one, for an Exit."""
    context: ControlFlowContext | None = op._control_flow_context
    return context.outer_context if context is not None and is_loop_exit(op) else context


def while_context_of(op: Operation) -> WhileContext | None:
    """The innermost loop that op is in."""
    context: ControlFlowContext | None = op._control_flow_context
    return None if context is None else context.GetWhileContext()


def containing_while_context(
    context: ControlFlowContext | None, stop: ControlFlowContext | None = None
) -> ControlFlowContext | None:
    """The innermost loop from `context` outwards, or `stop` where that comes first."""
    while context is not None and not context.IsWhileContext() and context is not stop:
        context = context.outer_context
    return context


def containing_cond_context(context: ControlFlowContext | None) -> ControlFlowContext | None:
    """The innermost branch from `context` outwards."""
    while context is not None and not context.IsCondContext():
        context = context.outer_context
    return context


def is_containing_context(inner: ControlFlowContext | None, outer: ControlFlowContext | None) -> bool:
    """Whether `outer` is `inner` or round it. None is round everything."""
    while inner is not outer:
        if inner is None:
            return False
        inner = inner.outer_context
    return True


def op_in_context(op: Operation, context: ControlFlowContext) -> bool:
    """Whether op is in the context, or one inside it."""
    return is_containing_context(op._control_flow_context, context)


def check_input_contexts(op: Operation) -> None:
    """ValueError where an input of op is inside a loop that op is not in.

    op's context must be set already. Nodes of a loop's gradient may take tensors of the loop.
    """
    for tensor in op._inputs:
        if tensor._op._control_flow_context is not None:
            _check_input_context(op, tensor._op)


def _check_input_context(op: Operation, source: Operation) -> None:
    inner, there = op._control_flow_context, output_context(source)
    if there is None or inner is there:
        return
    loop: Any = containing_while_context(inner)
    source_loop: Any = containing_while_context(there)
    if loop is None:
        if source_loop is None or is_loop_enter(op) or is_switch(op):
            return  # between branches: fails when it runs, where the branch isn't taken; as TensorFlow
        raise ValueError(
            f"Cannot use '{source.name}' as input to '{op.name}' because '{source.name}' is in a while loop "
            f"({source_loop.name}). Return it from the body of the loop to use it outside."
        )
    if is_containing_context(loop, source_loop) or _is_gradient_of(loop, source_loop):
        return
    raise ValueError(
        f"Cannot use '{source.name}' as input to '{op.name}' because they are in different while loops "
        f"({source_loop.name} and {loop.name}). Return it from the body of its loop to use it outside."
    )


def _is_gradient_of(loop: Any, source_loop: Any) -> bool:
    """Whether one of two loops belongs to the gradient of the other (or to the gradient's gradient)."""
    state, source_state = loop.grad_state, source_loop.grad_state
    if state is not None:
        forward = state.forward_context
        if is_containing_context(forward, source_loop) or forward is source_loop.outer_context:
            return True
    if source_state is None:
        return False
    forward = source_state.forward_context
    return forward is loop or (forward.grad_state is not None and forward.grad_state.forward_context is loop)
