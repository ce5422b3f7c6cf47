"""The loop: what comes from outside passes an Enter, loop variables go round Merge, Switch, NextIteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thalweg.base import shape as shapes
from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.graph.control_flow import (
    ControlFlowContext,
    enter,
    exit,
    identity,
    loop_cond,
    merge,
    next_iteration,
    switch_ref_or_tensor,
)
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.where import is_loop_constant_enter, is_loop_exit, output_context, while_context_of

#: these go with their input into the forward loop, where a gradient asks for them: what is kept for the way
#: back is then a shape, not the tensor
_OF_SHAPE = ("Shape", "Size", "Rank")


class WhileContext(ControlFlowContext):
    """A loop; its frames have its name.

    grad_state: for the loop of a gradient, what autodiff keeps of it: an object with `forward_context` (the
    WhileContext of the loop that it is the gradient of) and GetRealValue(tensor), which returns what stands
    in the gradient for a tensor of the forward loop.
    """

    def __init__(
        self,
        maximum_iterations: Tensor | None = None,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str = "while_context",
        grad_state: Any = None,
    ) -> None:
        if not isinstance(parallel_iterations, int) or parallel_iterations <= 0:
            raise ValueError(f"'parallel_iterations' must be a positive integer: {parallel_iterations}")
        super().__init__(name)
        self._maximum_iterations = maximum_iterations
        self._parallel_iterations = parallel_iterations
        self._back_prop = back_prop
        self._swap_memory = swap_memory
        self._grad_state = grad_state
        self._pivot_for_pred: Tensor | None = None
        self._pivot_for_body: Tensor | None = None
        self._pivot: Tensor | None = None
        self._loop_exits: list[Tensor] = []
        self._loop_enters: list[Tensor] = []

    @property
    def maximum_iterations(self) -> Tensor | None:
        """The bound on the number of iterations, where one was given."""
        return self._maximum_iterations

    @property
    def parallel_iterations(self) -> int:
        """How many iterations may run at once."""
        return self._parallel_iterations

    @property
    def back_prop(self) -> bool:
        return self._back_prop

    @property
    def swap_memory(self) -> bool:
        """Whether what is kept for the gradient may leave the device's memory."""
        return self._swap_memory

    @property
    def pivot(self) -> Tensor | None:
        """The LoopCond: whether the loop goes on."""
        return self._pivot

    @property
    def pivot_for_pred(self) -> Tensor | None:
        """What nodes without inputs in the condition wait for."""
        return self._pivot_for_pred

    @property
    def pivot_for_body(self) -> Tensor | None:
        """What nodes without inputs in the body wait for."""
        return self._pivot_for_body

    @property
    def loop_enters(self) -> list[Tensor]:
        """The Enter of each loop variable. Gradients append theirs."""
        return self._loop_enters

    @property
    def loop_exits(self) -> list[Tensor]:
        """The Exit of each loop variable. Gradients append theirs."""
        return self._loop_exits

    @property
    def grad_state(self) -> Any:
        return self._grad_state

    def set_pivots(
        self, pred: Tensor | None = None, cond: Tensor | None = None, body: Tensor | None = None
    ) -> None:
        """Sets the pivots of the condition and the body, and the LoopCond, for who builds a loop by hand."""
        self._pivot_for_pred = self._pivot_for_pred if pred is None else pred
        self._pivot = self._pivot if cond is None else cond
        self._pivot_for_body = self._pivot_for_body if body is None else body

    def GetWhileContext(self) -> WhileContext:
        return self

    def GetControlPivot(self) -> Tensor | None:
        return self._pivot_for_pred if self._pivot_for_body is None else self._pivot_for_body

    def IsWhileContext(self) -> bool:
        return True

    # ---- values and nodes ------------------------------------------------------------------------------

    def AddValue(self, val: Tensor) -> Tensor:
        # a node of this context that is being imported may not be among the known values yet
        if val in self._values or val._op._control_flow_context is self:
            return self._external_values.get(val, val)
        self._values.add(val)
        kept = self._kept_for_gradient(val)
        if kept is not None:
            self._external_values[val] = kept
            return kept
        result = val if self._outer_context is None else self._outer_context.AddValue(val)
        with self._graph.control_dependencies(None):
            inside = enter(result, self._name, True, self._parallel_iterations)
            self._graph.prevent_feeding(inside)
            if self._outer_context is not None:
                self._outer_context.AddInnerOp(inside._op)
        self._adopt_enters([inside])
        self._values.add(inside)
        self._external_values[val] = inside
        return inside

    def _kept_for_gradient(self, val: Tensor) -> Tensor | None:
        """Where a gradient is being built and val is from its forward loop: what was kept of it."""
        current = self._graph._get_control_flow_context()
        loop = None if current is None else current.GetWhileContext()
        if loop is None or loop.grad_state is None:
            return None
        forward: Any = while_context_of(val._op)
        if forward is not None and is_loop_exit(val._op):
            forward = forward.outer_context
            forward = None if forward is None else forward.GetWhileContext()
        if forward is not loop.grad_state.forward_context:
            return None
        kept: Tensor = loop.grad_state.GetRealValue(val)
        return kept

    def AddOp(self, op: Operation) -> None:
        if op.type in _OF_SHAPE:
            current = self._graph._get_control_flow_context()
            loop = None if current is None else current.GetWhileContext()
            if loop is not None and loop.grad_state is not None:
                source = op._inputs[0]._op
                if while_context_of(source) is loop.grad_state.forward_context:
                    there = source._control_flow_context
                    op._set_control_flow_context(there)
                    there._add_op(op)
                    return
        self._add_op(op)

    def _add_op(self, op: Operation) -> None:
        if op._inputs:
            for i, tensor in enumerate(list(op._inputs)):
                real = self.AddValue(tensor)
                if real is not tensor:
                    op._update_input(i, real)
            _, external = self._remove_external_control_edges(op)
            if self._depends_on_constants_only(op):
                op._add_control_input(self._control_pivot_op())
        else:
            internal, external = self._remove_external_control_edges(op)
            if not internal:
                op._add_control_input(self._control_pivot_op())
        self._values.update(op._outputs)
        if external:
            op._add_control_inputs(self._brought_in(external))
        if self._outer_context is not None or not is_loop_exit(op):
            self._graph.prevent_fetching(op)
            for tensor in op._outputs:
                self._graph.prevent_feeding(tensor)
        if self._outer_context is not None:
            self._outer_context.AddInnerOp(op)

    def _control_pivot_op(self) -> Operation:
        pivot = self.GetControlPivot()
        assert pivot is not None, "the loop has no pivot yet"
        return pivot._op

    def _depends_on_constants_only(self, op: Operation) -> bool:
        """Whether op takes nothing but what never changes: it must wait for its iteration by itself."""
        return not op._control_inputs and all(is_loop_constant_enter(t._op) for t in op._inputs)

    def _brought_in(self, external: Sequence[Operation]) -> list[Operation]:
        """Control inputs from outside, as nodes inside that take their first output (if they have any)."""
        with self._graph.control_dependencies(None):
            self.Enter()
            try:
                return [emit("Identity", other._outputs[0])._op for other in external if other._outputs]
            finally:
                self.Exit()

    def _adopt_enters(self, enters: Sequence[Tensor]) -> None:
        """Makes Enter nodes part of this context, with the control inputs that hold outside of it."""
        scopes = self._graph._scopes.get()
        for tensor in enters:
            op = tensor._op
            controls = [
                other
                for other in self._graph._control_inputs_for([op._inputs[0]], scopes)
                if self._holds_outside(other)
            ]
            op._set_control_flow_context(self)
            op._add_control_inputs(controls)
            self._graph._record_control(op)

    def _holds_outside(self, op: Operation) -> bool:
        """Whether op is in a context round this one, inside the next loop outwards."""
        there = output_context(op)
        context = self._outer_context
        loop = None if context is None else context.GetWhileContext()
        while context is not there:
            if context is None or context is loop:
                return False
            context = context.outer_context
        return True

    # ---- building a loop -------------------------------------------------------------------------------

    def BuildLoop(
        self,
        pred: Callable[[list[Tensor]], Tensor],
        body: Callable[[list[Tensor]], list[Tensor]],
        loop_vars: Sequence[Tensor],
        shape_invariants: Sequence[Shape],
    ) -> list[Tensor]:
        """Makes the loop; the context must be entered. Returns the Exit of each loop variable.

        pred and body get the loop variables inside; pred returns the condition, body the next values.
        Errors: ValueError where shapes don't fit the invariants.
        """
        enters = self._enter_variables(loop_vars, shape_invariants)
        self._values = set(enters)
        self._loop_enters = enters
        merges = [merge([t, t])[0] for t in enters]
        self._pivot_for_pred = merges[0]
        self._pivot = loop_cond(pred(merges), name="LoopCond")
        switches = [switch_ref_or_tensor(t, self._pivot) for t in merges]
        inside = [identity(true) for _, true in switches]
        self._pivot_for_body = inside[0]
        results = body(inside)
        for merged, result in zip(merges, results, strict=True):
            self.add_back_edge(merged, result)
        self._loop_exits = [exit(false) for false, _ in switches]
        self.ExitResult(self._loop_exits)
        return self._loop_exits

    def add_back_edge(self, merged: Tensor, result: Tensor) -> Tensor:
        """Closes the cycle of one loop variable: `result` becomes `merged` in the next iteration.

        Returns the NextIteration. ValueError where result's shape is vaguer than merged's.
        """
        following = next_iteration(result)
        _check_invariant(merged, following)
        _check_type(merged, following)
        merged._op._update_input(1, following)
        return following

    def _enter_variables(self, loop_vars: Sequence[Tensor], invariants: Sequence[Shape]) -> list[Tensor]:
        self._values = set(loop_vars)
        outer = self._outer_context
        outside = [t if outer is None else outer.AddValue(t) for t in loop_vars]
        enters: list[Tensor] = []
        with self._graph.control_dependencies(None):
            for tensor, invariant in zip(outside, invariants, strict=True):
                inside = enter(tensor, self._name, False, self._parallel_iterations, use_input_shape=False)
                if not _at_least_as_known(tensor._shape, invariant):
                    raise ValueError(
                        f"The shape invariant specified for {tensor.name} is not compatible with the initial "
                        "shape of the loop variable. It enters the loop with shape "
                        f"{shapes.format_shape(tensor._shape)}, but the specified shape invariant is "
                        f"{shapes.format_shape(invariant)}."
                    )
                inside._shape = invariant
                self._graph.prevent_feeding(inside)
                if outer is not None:
                    outer.AddInnerOp(inside._op)
                enters.append(inside)
        pivot = self._outer_pivot()
        if pivot is not None:
            for tensor in enters:
                if is_loop_constant_enter(tensor._op._inputs[0]._op):
                    tensor._op._add_control_input(pivot._op)
        self._adopt_enters(enters)
        return enters

    def _outer_pivot(self) -> Tensor | None:
        """The control pivot of the nearest context outwards that has one."""
        context = self._outer_context
        while context is not None:
            pivot = context.GetControlPivot()
            if pivot is not None:
                return pivot
            context = context.outer_context
        return None


def _at_least_as_known(known: Shape, vaguer: Shape) -> bool:
    """Whether a tensor of shape `known` always has shape `vaguer`."""
    if vaguer is None:
        return True
    if known is None or len(known) != len(vaguer):
        return False
    return all(v is None or k == v for k, v in zip(known, vaguer, strict=True))


def _check_invariant(merged: Tensor, following: Tensor) -> None:
    if _at_least_as_known(following._shape, merged._shape):
        return
    source = merged._op._inputs[0]._op._inputs[0]
    raise ValueError(
        f"Input tensor '{source.name}' enters the loop with shape {shapes.format_shape(source._shape)}, but "
        f"has shape {shapes.format_shape(following._shape)} after one iteration. To allow the shape to vary "
        "across iterations, use the `shape_invariants` argument of tf.while_loop to specify a less-specific "
        "shape."
    )


def _check_type(merged: Tensor, following: Tensor) -> None:
    same = following._dtype.base_dtype == merged._dtype.base_dtype
    if same and (following._dtype.is_ref_dtype or not merged._dtype.is_ref_dtype):
        return
    source = merged._op._inputs[0]._op._inputs[0]
    raise InvalidArgumentError(
        None,
        merged._op,
        f"Input tensor '{source.name}' enters the loop with type {merged._dtype.name}, but has type "
        f"{following._dtype.name} after one iteration.",
    )
