"""What one call of `gradients` knows of loops: which it goes through, and what of them it has seen.

Source: TensorFlow's control_flow_state.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from thalweg.autodiff import conds, invariants, nodes  # the last two register gradients too
from thalweg.autodiff.loops import GradLoopState
from thalweg.autodiff.nodes import inside
from thalweg.autodiff.zeros import (
    constant,
    dtype_of,
    has_zeros,
    is_known,
    is_trainable,
    shape_node,
    variable_shape,
    zeros,
    zeros_like,
)
from thalweg.base import dtypes
from thalweg.graph.control_flow import enter, next_iteration, switch_ref_or_tensor
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.where import is_loop_exit, is_loop_switch, is_switch, while_context_of
from thalweg.graph.while_context import WhileContext

__all__ = ["ControlFlowState", "invariants"]


class ControlFlowState:
    """The loops between xs and ys, each with its gradient's loop."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._states: dict[WhileContext, GradLoopState] = {}

    def __bool__(self) -> bool:
        return bool(self._states)

    def add(self, exit_op: Operation) -> list[Operation]:
        """Adds the loop of an Exit, where it is new: makes the gradient's loop. Returns the loop's Exits."""
        forward = while_context_of(exit_op)
        if forward is None:
            raise ValueError(f"'{exit_op.name}' leaves a loop that nothing is known about")
        if forward in self._states:
            return []
        outer = None if forward.outer_context is None else forward.outer_context.GetWhileContext()
        state = GradLoopState(forward, None if outer is None else self._states.get(outer))
        self._states[forward] = state
        return [t._op for t in state.forward_exits]

    def state_of(self, op: Operation, outside_exit: bool = False) -> GradLoopState | None:
        """The state of the loop that op is in; outside_exit: of an Exit, the loop round its own."""
        forward = while_context_of(op)
        if outside_exit and forward is not None and is_loop_exit(op):
            forward = None if forward.outer_context is None else forward.outer_context.GetWhileContext()
        return None if forward is None else self._states.get(forward)

    @contextmanager
    def grad_context(self, op: Operation, outside_exit: bool = False) -> Iterator[None]:
        """Puts the gradient's loop in force that belongs to the loop that op is in."""
        state = self.state_of(op, outside_exit)
        if state is None:
            yield
            return
        with inside(self._graph, state.grad_context):
            yield

    # ---- exits -----------------------------------------------------------------------------------------

    def unused_exits(self, pending: dict[Operation, int], starts: Iterable[Operation]) -> list[Tensor]:
        """The exits that no y depends on, of loops all of whose other exits are ys: zeros come from them.

        The walk must come to the Enter of each loop variable too: `pending` says so afterwards.
        """
        starts = set(starts)
        result: list[Tensor] = []
        for state in self._states.values():
            for tensor in state.forward_exits:
                if not pending.get(tensor._op):
                    state.pending_exits -= 1
                    if tensor._op not in starts:
                        state.unused_exits.append(tensor)
                    if state.pending_exits == 0:
                        result.extend(state.unused_exits)
            for entered in state.forward_context.loop_enters:
                if not pending.get(entered.op):
                    pending[entered.op] = 1
        return result

    def defer(self, exited: Tensor, arrived: Mapping[Tensor, Any]) -> tuple[list[Operation], list[Tensor]]:
        """Meets an exit. Once all of the loop are met: (the exits to go on from, those that get zeros)."""
        state = self.state_of(exited._op)
        assert state is not None
        state.deferred_exits.append(exited)
        state.pending_exits -= 1
        if state.pending_exits:
            return [], []
        used = []
        for tensor in state.deferred_exits:
            if arrived.get(tensor):
                used.append(tensor._op)
            else:
                state.unused_exits.append(tensor)
        zero = [t for t in state.unused_exits if is_trainable(t)] if used else []
        return used + [t._op for t in state.unused_exits], zero

    def zeros_for_exit(self, exited: Tensor) -> Tensor:
        """Zeros, where gradients of other exits need one for this exit too."""
        around = exited._op._control_flow_context.outer_context
        outer = None if around is None else around.GetWhileContext()
        state = None if outer is None else self._states.get(outer)
        dtype = dtype_of(exited)
        if state is None:
            return zeros(exited._shape, dtype) if is_known(exited._shape) else zeros_like(exited)
        if is_known(exited._shape):
            with inside(self._graph, state.grad_context):
                return zeros(exited._shape, dtype)
        with inside(self._graph, around):
            shape = shape_node(exited)
        stack = state.keep(shape)
        with inside(self._graph, state.grad_context):
            return zeros(state.kept(stack, shape), dtype)

    # ---- zeros -----------------------------------------------------------------------------------------

    def zeros_of(self, op: Operation, index: int) -> Tensor | None:
        """Zeros for an output of op that no gradient comes from, made in the context of op's gradient."""
        tensor = op._outputs[index]
        if is_loop_switch(op) or not has_zeros(tensor):
            return None
        state = self.state_of(op)
        if state is None:
            return conds.zeros_of(op, index)
        dead = is_switch(op)
        if is_known(tensor._shape):
            if tensor._dtype == dtypes.resource:
                result = zeros(variable_shape(tensor), dtype_of(tensor))
            else:
                result = constant(tensor._shape, tensor._dtype.base_dtype)
            if dead:
                context = op._control_flow_context
                result = switch_ref_or_tensor(result, state.pred_of(context))[1 - context.branch]
            return result
        shape = self._forward_shape(op, index, dead)
        stack = state.keep(shape, dead)
        return zeros(state.kept(stack, shape, dead), dtype_of(tensor))

    def _forward_shape(self, op: Operation, index: int, dead: bool) -> Tensor:
        """In the forward loop: the shape of an output of op; of a branch's Switch, on the other side."""
        context = op._control_flow_context
        if not dead:
            with inside(self._graph, context):
                return shape_node(op._outputs[index])
        with inside(self._graph, context.outer_context):
            other = switch_ref_or_tensor(op._inputs[0], context.pred)[1 - context.branch]
            shape = shape_node(other)
        for tensor in (other, shape):
            tensor._op._set_control_flow_context(context)
        return shape

    # ---- the end ---------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Closes the loops of gradients that didn't come round: of loop variables that the body replaces."""
        for state in self._states.values():
            for merged in state.switch_map.values():
                for part in nodes.parts(merged):
                    if part._op._inputs[0] is part._op._inputs[1]:
                        self._close_with_zeros(state, part)

    def _close_with_zeros(self, state: GradLoopState, merged: Tensor) -> None:
        dtype = merged._dtype.base_dtype
        entered = merged._op._inputs[0]
        if dtype.is_integer:  # of slices: rows and dense shape stay as they came
            context = state.grad_context
            with inside(self._graph, context):
                again = enter(entered._op._inputs[0], context.name, True, context.parallel_iterations)
                following = next_iteration(again)
        elif is_known(entered._shape):
            with inside(self._graph, state.grad_context):
                following = next_iteration(constant(entered._shape, dtype))
        else:
            with inside(self._graph, state.outside):
                zero = zeros(shape_node(entered._op._inputs[0]), dtype)
            with inside(self._graph, state.grad_context):
                following = next_iteration(zero)
        merged._op._update_input(1, following)
