"""One branch of a conditional: what comes from outside passes a Switch."""

from __future__ import annotations

from typing import Any

from thalweg.graph.control_flow import (
    ControlFlowContext,
    switch_ref_or_tensor,
)
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.where import is_loop_exit, op_in_context


class CondContext(ControlFlowContext):
    """The branch of a conditional that runs where `pred` is `branch` (0 or 1).

    pivot: pred's Switch output on this side: alive exactly where the branch runs.
    """

    def __init__(self, pred: Tensor, pivot: Tensor, branch: int, name: str = "cond_text") -> None:
        super().__init__(name)
        self._pred = pred
        self._pivot = pivot
        self._branch = branch
        self._values.add(pred)
        self._external_values[pred] = pred
        self._values.add(pivot)
        pivot._op._set_control_flow_context(self)

    @property
    def pred(self) -> Tensor:
        """What decides."""
        return self._pred

    @property
    def pivot(self) -> Tensor:
        """Alive exactly where the branch runs."""
        return self._pivot

    @property
    def branch(self) -> int:
        """0 or 1."""
        return self._branch

    @property
    def grad_state(self) -> Any:
        loop = self.GetWhileContext()
        return None if loop is None else loop.grad_state

    @property
    def back_prop(self) -> bool:
        loop = self.GetWhileContext()
        return loop is not None and loop.back_prop

    def GetControlPivot(self) -> Tensor:
        return self._pivot

    def IsCondContext(self) -> bool:
        return True

    def AddValue(self, val: Tensor) -> Tensor:
        if val in self._values:
            return self._external_values.get(val, val)
        result = self._from_outer(val)
        with self._graph.control_dependencies(None):
            result = switch_ref_or_tensor(result, self._pred)[self._branch]
            if self._outer_context is not None:
                self._outer_context.AddInnerOp(result._op)
        self._graph.prevent_fetching(result._op)
        result._op._set_control_flow_context(self)
        self._mark_outputs([result])
        self._external_values[val] = result
        return result

    def _from_outer(self, val: Tensor) -> Tensor:
        """What stands for a new value in the outer context."""
        self._values.add(val)
        if self._outer_context is None:
            return val
        result = self._outer_context.AddValue(val)
        self._values.add(result)
        self._external_values[result] = result
        return result

    def AddOp(self, op: Operation) -> None:
        self._add_op(op)

    def _add_op(self, op: Operation) -> None:
        if op._inputs:
            for i, tensor in enumerate(list(op._inputs)):
                # the back edge of a loop that is being imported isn't known yet, but is from here
                imported = op.type == "Merge" and tensor._op.type == "NextIteration"
                real = tensor if imported else self.AddValue(tensor)
                if real is not tensor:
                    op._update_input(i, real)
            self._remove_external_control_edges(op)
        else:
            self._remove_external_control_edges(op)
            if not any(op_in_context(other, self) for other in op._control_inputs):
                op._add_control_input(self._pivot._op)
        self._mark_outputs(op._outputs)
        if self._outer_context is not None or not is_loop_exit(op):
            self._graph.prevent_fetching(op)
        if self._outer_context is not None:
            self._outer_context.AddInnerOp(op)

    def BuildResult(self, val: Tensor) -> Tensor:
        """A tensor that the branch returns, as one that is dead where the branch doesn't run.

        One from outside passes a Switch here.
        """
        if val in self._values:
            return self._external_values.get(val, val)
        result = switch_ref_or_tensor(self._from_outer(val), self._pred)[self._branch]
        self._external_values[val] = result
        return result
