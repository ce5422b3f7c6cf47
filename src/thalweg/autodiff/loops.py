"""The gradient of one loop: a loop that runs as often, backwards over what the forward loop kept.

Source: TensorFlow's control_flow_state.py, and the counters of control_flow_ops.py.
"""

from __future__ import annotations

from thalweg.autodiff.nodes import Grad, inside
from thalweg.base import dtypes
from thalweg.graph.cond_context import CondContext
from thalweg.graph.control_flow import (
    ControlFlowContext,
    enter,
    exit,
    loop_cond,
    merge,
    next_iteration,
    switch,
    switch_ref_or_tensor,
)
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.where import loop_constant_enter, output_context
from thalweg.graph.while_context import WhileContext


class GradLoopState:
    """A loop and its gradient, while one call of `gradients` builds it.

    Making it adds a counter of iterations to the forward loop, and the gradient's loop with a counter that
    goes down. outer: the same of the loop round it, where that is part of the gradient too.
    """

    def __init__(self, forward: WhileContext, outer: GradLoopState | None) -> None:
        graph = forward._graph
        self._graph = graph
        #: where `gradients` was called: stacks are made there
        self._calling: ControlFlowContext | None = graph._get_control_flow_context()
        self.forward_context = forward
        self.outer = outer
        self.forward_exits = list(forward.loop_exits)
        #: how many of the exits are still to be met
        self.pending_exits = len(self.forward_exits)
        self.unused_exits: list[Tensor] = []
        self.deferred_exits: list[Tensor] = []
        #: for tensors of the forward loop: what stands for them in the gradient's
        self.history: dict[Tensor, Tensor] = {}
        #: for the Switch of each loop variable: the Merge of its gradient
        self.switch_map: dict[Operation, Grad] = {}
        self._forward_sync: Operation | None = None
        self._grad_sync: Operation | None = None
        outside = (forward.outer_context if outer is None else outer.forward_context) or self._calling
        with inside(graph, outside):
            count, self.forward_index = _count_up(forward, outer)
        if outer is None:
            with inside(graph, outside):
                self.grad_context = self._grad_loop()
                self.grad_index = _count_down(self.grad_context, count, None)
        else:
            outer.forward_context.AddName(count)
            stack = outer.keep(count)
            with inside(graph, outer.grad_context):
                self.grad_context = self._grad_loop()
                self.grad_index = _count_down(self.grad_context, outer.kept(stack, count), outer)

    def _grad_loop(self) -> WhileContext:
        forward = self.forward_context
        return WhileContext(
            forward.maximum_iterations,
            forward.parallel_iterations,
            forward.back_prop,
            forward.swap_memory,
            forward.name,
            grad_state=self,
        )

    @property
    def outside(self) -> ControlFlowContext | None:
        """The context round the gradient's loop."""
        return self.grad_context.outer_context or self._calling

    # ---- what puts pushes and pops in the order of iterations ------------------------------------------

    @property
    def forward_add(self) -> Operation:
        """The node that counts the forward loop's iterations."""
        return self.forward_index._op._inputs[0]._op

    @property
    def forward_sync(self) -> Operation:
        """In the forward loop: the next iteration waits for it, and it for pushes that may be dead."""
        if self._forward_sync is None:
            self._forward_sync = self._trigger("f_sync", self.forward_context, self.forward_index)
        return self._forward_sync

    @property
    def grad_sync(self) -> Operation:
        """In the gradient's loop: the next iteration waits for it, and it for all pops."""
        if self._grad_sync is None:
            self._grad_sync = self._trigger("b_sync", self.grad_context, self.grad_index)
            if self.grad_context.outer_context is not None:
                self.grad_context.outer_context.AddInnerOp(self._grad_sync)
        return self._grad_sync

    def _trigger(self, name: str, context: WhileContext, index: Tensor) -> Operation:
        with self._graph.control_dependencies(None):
            op = emit.operation("ControlTrigger", name=name)
        op._set_control_flow_context(context)
        index._op._add_control_input(op)
        return op

    # ---- values of the forward loop --------------------------------------------------------------------

    def keep(self, value: Tensor, dead_branch: bool = False) -> Tensor:
        """A stack on which the forward loop puts `value` in each iteration.

        dead_branch: value is made in the branch that is *not* that of its context.
        """
        forward = self.forward_context
        graph = self._graph
        with graph.control_dependencies(None):
            with inside(graph, self._calling), graph.colocate_with(value._op):
                limit = emit.constant(-1, dtypes.int32)
                stack: Tensor = emit("StackV2", limit, elem_type=value._dtype.base_dtype, name="f_acc")
            handle = forward.AddValue(stack)
            context = output_context(value._op)
            if context is not forward and not isinstance(context, CondContext):
                raise TypeError(f"{value.name} is kept for a gradient, but is not in {forward.name}")
            within = context.outer_context if dead_branch else context
            with inside(graph, within):
                push: Operation = emit(
                    "StackPushV2", handle, value, swap_memory=forward.swap_memory
                )._op
        if context is forward:
            self.forward_index._op._add_control_input(push)
        else:
            if dead_branch:
                push._set_control_flow_context(context)
            self.forward_sync._add_control_input(push)
        push._add_control_input(self.forward_add)
        return stack

    def kept(self, stack: Tensor, value: Tensor, dead_branch: bool = False) -> Tensor:
        """In the gradient's loop: what `keep` put on the stack, the last first."""
        branch = _branch_round(value._op._control_flow_context, stack._op._control_flow_context)
        with self._graph.control_dependencies(None), inside(self._graph, self.grad_context):
            if branch is not None:  # nothing was put there where the branch wasn't taken
                taken = 1 - branch.branch if dead_branch else branch.branch
                stack = switch_ref_or_tensor(stack, self.pred_of(branch))[taken]
            pop: Tensor = emit("StackPopV2", stack, elem_type=value._dtype.base_dtype)
            pop.set_shape(value._shape)
        if self.grad_context.parallel_iterations > 1:
            self.grad_sync._add_control_input(pop._op)
        return pop

    def pred_of(self, branch: CondContext) -> Tensor:
        """What decided about a branch, as known in the gradient's loop."""
        state: GradLoopState | None = self
        while state is not None:
            pred = state.history.get(branch.pred)
            if pred is not None:
                return pred
            state = state.outer
        return branch.pred

    def keep_pred(self, pred: Tensor) -> Tensor:
        """What stands in the gradient's loop for the predicate of a conditional in the forward loop."""
        real = self.history.get(pred)
        if real is None:
            real = self.history[pred] = self.kept(self.keep(pred), pred)
        return real

    def GetRealValue(self, value: Tensor) -> Tensor:
        """What stands in the gradient's loop for a tensor of the forward loop."""
        real = self.history.get(value)
        if real is None:
            real = self.history[value] = self._real_value(value)
        return real

    def _real_value(self, value: Tensor) -> Tensor:
        state: GradLoopState = self
        while True:
            invariant = loop_constant_enter(value)
            if invariant is None:
                break
            value = invariant._inputs[0]
            if state.outer is None:  # outside of all loops: enters the gradient's loop just as well
                return self.grad_context.AddValue(value)
            state = state.outer
        if value._op.type == "Const":
            return emit.constant(value._op._attrs["value"], value._dtype)
        real = state.kept(state.keep(value), value)
        return real if state is self else self.grad_context.AddValue(real)


def _branch_round(
    context: ControlFlowContext | None, stop: ControlFlowContext | None
) -> CondContext | None:
    """The innermost branch from a context outwards, inside `stop`."""
    while context is not None and context is not stop:
        if isinstance(context, CondContext):
            return context
        context = context.outer_context
    return None


def _count_up(forward: WhileContext, outer: GradLoopState | None) -> tuple[Tensor, Tensor]:
    """Adds `n = 0; while ...: n += 1` to a loop. Returns (how often it ran, its NextIteration)."""
    start = emit.constant(0, dtypes.int32, "f_count")
    if outer is not None:  # pushes of one run of this loop come before those of the next
        start._op._add_control_input(outer.forward_add)
    with inside(forward._graph, forward):
        forward.AddName(start)
        entered = enter(start, forward.name, False, forward.parallel_iterations, name="f_count")
        forward.loop_enters.append(entered)
        merged, _ = merge([entered, entered])
        assert forward.pivot is not None
        false, true = switch(merged, forward.pivot)
        following = next_iteration(emit("AddV2", true, 1, name="Add"))
        merged._op._update_input(1, following)
        total = exit(false, name="f_count")
        forward.loop_exits.append(total)
        forward.ExitResult([total])
    return total, following


def _count_down(context: WhileContext, count: Tensor, outer: GradLoopState | None) -> Tensor:
    """Makes the loop `n = count; while n >= 1: n -= 1`. Returns its NextIteration."""
    one = emit.constant(1, dtypes.int32, "b_count")
    with inside(context._graph, context):
        context.AddName(count)
        entered = enter(count, context.name, False, context.parallel_iterations, name="b_count")
        context.loop_enters.append(entered)
        merged, _ = merge([entered, entered])
        context.set_pivots(pred=merged)
        pivot = loop_cond(emit("GreaterEqual", merged, one), name="b_count")
        context.set_pivots(cond=pivot)
        false, true = switch(merged, pivot)
        index = emit("Sub", true, one)
        context.set_pivots(body=index)
        following = next_iteration(index)
        merged._op._update_input(1, following)
        zero = exit(false, name="b_count")
        context.loop_exits.append(zero)
        if outer is not None:  # pops of one run of this loop come before those of the next
            outer.grad_sync._add_control_input(zero._op)
        context.ExitResult([zero])
    return following
