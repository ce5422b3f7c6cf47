"""Control flow in the graph: the nodes that it is made of, and what contexts have in common.

A *context* is a scope on the graph: the branch of a conditional (graph.cond_context) or the body of a loop
(graph.while_context). While it is in force every new node passes through its `AddOp`, which reroutes inputs
from outside through Switch or Enter nodes, so that a node only ever takes tensors of its own context.
Method names are TensorFlow 1.x's. Source: the white paper, section 4.4; TensorFlow's control_flow_ops.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.where import output_context

if TYPE_CHECKING:
    from thalweg.graph.while_context import WhileContext

# ---- nodes -----------------------------------------------------------------------------------------------


def identity(x: Tensor, name: str | None = None) -> Tensor:
    """x by another node; a reference stays one."""
    result: Tensor = emit("RefIdentity" if x._dtype.is_ref_dtype else "Identity", x, name=name)
    return result


def enter(
    x: Tensor,
    frame_name: str,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    use_ref: bool = True,
    use_input_shape: bool = True,
    name: str | None = None,
) -> Tensor:
    """x in iteration 0 of the child frame `frame_name`; with is_constant, in every iteration.

    use_ref: a reference stays one. use_input_shape: False leaves the static shape unknown, for the caller
    to set: a loop variable whose shape may change.
    """
    result: Tensor = emit(
        "RefEnter" if x._dtype.is_ref_dtype and use_ref else "Enter",
        x,
        frame_name=frame_name,
        is_constant=is_constant,
        parallel_iterations=parallel_iterations,
        name=name,
    )
    if not use_input_shape:
        result._shape = None
    return result


def exit(x: Tensor, name: str | None = None) -> Tensor:
    """x in the parent frame."""
    result: Tensor = emit("RefExit" if x._dtype.is_ref_dtype else "Exit", x, name=name)
    return result


def next_iteration(x: Tensor, name: str | None = None) -> Tensor:
    """x in the next iteration."""
    result: Tensor = emit("RefNextIteration" if x._dtype.is_ref_dtype else "NextIteration", x, name=name)
    return result


def switch(x: Tensor, pred: Tensor, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(x where pred is false, x where it is true); the other of the two is dead."""
    with get_default_graph().name_scope(name or "Switch") as scope:
        false, true = emit("Switch", x, pred, name=scope)
    return false, true


def switch_ref_or_tensor(x: Tensor, pred: Tensor, name: str = "Switch") -> tuple[Tensor, Tensor]:
    """`switch` beside x, whatever colocation is in force; a reference stays one."""
    with x.graph.colocate_with(x, ignore_existing=True):
        if x._dtype.is_ref_dtype:
            false, true = emit("RefSwitch", x, pred, name=name)
            return false, true
        return switch(x, pred, name)


def merge(inputs: Sequence[Tensor], name: str | None = None) -> tuple[Tensor, Tensor]:
    """(the input that is alive, its index)."""
    with get_default_graph().name_scope(name or "Merge") as scope:
        refs = all(t._dtype.is_ref_dtype for t in inputs)
        output, index = emit("RefMerge" if refs else "Merge", list(inputs), name=scope)
    return output, index


def loop_cond(pred: Tensor, name: str | None = None) -> Tensor:
    """pred, which decides whether the loop goes on."""
    result: Tensor = emit("LoopCond", pred, name=name)
    return result


# ---- contexts --------------------------------------------------------------------------------------------


class ControlFlowContext:
    """A branch or a loop, while its nodes are being made: Enter(), make nodes, Exit(), ExitResult(results).

    Used by one thread. Contexts nest: the outer one is the one in force when this one is made.
    """

    def __init__(self, name: str) -> None:
        self._graph = get_default_graph()
        self._name = self._graph.unique_name(name)
        self._outer_context: ControlFlowContext | None = self._graph._get_control_flow_context()
        self._nested_contexts: list[ControlFlowContext] = []
        if self._outer_context is not None:
            self._outer_context._nested_contexts.append(self)
        self._context_stack: list[ControlFlowContext | None] = []
        #: tensors that are known in this context: made in it, or brought in
        self._values: set[Tensor] = set()
        #: for tensors from outside: what stands for them in here
        self._external_values: dict[Tensor, Tensor] = {}

    @property
    def name(self) -> str:
        """The name; a loop's frames are called by it."""
        return self._name

    @property
    def outer_context(self) -> ControlFlowContext | None:
        """The context round this one."""
        return self._outer_context

    @property
    def grad_state(self) -> Any:
        """What the gradient of the loop round this context keeps; None outside of gradients."""
        raise NotImplementedError

    @property
    def back_prop(self) -> bool:
        """Whether the loop round this context has a gradient."""
        raise NotImplementedError

    def AddValue(self, val: Tensor) -> Tensor:
        """What stands for `val` in this context; brought in from outside where it must be."""
        raise NotImplementedError

    def AddOp(self, op: Operation) -> None:
        """Makes a new node part of this context: reroutes its inputs, adds control inputs."""
        raise NotImplementedError

    def _add_op(self, op: Operation) -> None:
        """The same, without asking whether the node belongs elsewhere."""
        raise NotImplementedError

    def AddName(self, value: Tensor) -> None:
        """Makes a tensor known, so that it is not brought in from outside."""
        self._values.add(value)

    def Enter(self) -> None:
        """Puts the context in force."""
        self._context_stack.append(self._graph._get_control_flow_context())
        self._graph._set_control_flow_context(self)

    def Exit(self) -> None:
        """Puts the context in force that was so before Enter."""
        self._graph._set_control_flow_context(self._context_stack.pop())

    def ExitResult(self, result: Iterable[Tensor]) -> None:
        """Makes tensors known in the outer context."""
        if self._outer_context is not None:
            for tensor in result:
                self._outer_context.AddName(tensor)

    def GetWhileContext(self) -> WhileContext | None:
        """The innermost loop from here outwards."""
        return None if self._outer_context is None else self._outer_context.GetWhileContext()

    def GetControlPivot(self) -> Tensor | None:
        """What nodes without inputs wait for, so that they run only where this context does."""
        return None

    def AddInnerOp(self, op: Operation) -> None:
        """Tells the outer contexts of a node made in an inner one."""
        if self._outer_context is not None:
            self._outer_context.AddInnerOp(op)

    def IsWhileContext(self) -> bool:
        """Whether this is a loop."""
        return False

    def IsCondContext(self) -> bool:
        """Whether this is a branch."""
        return False

    def _remove_external_control_edges(self, op: Operation) -> tuple[list[Operation], list[Operation]]:
        """Takes away control inputs from outside the loop round this context.

        Returns (those that stay, those taken away).
        """
        loop = self.GetWhileContext()
        if loop is None:
            return list(op._control_inputs), []
        internal: list[Operation] = []
        external: list[Operation] = []
        for other in op._control_inputs:
            there = output_context(other)
            inside = there is not None and there.GetWhileContext() is loop
            (internal if inside else external).append(other)
        for other in external:
            op._remove_control_input(other)
        return internal, external

    def _mark_outputs(self, outputs: Iterable[Tensor]) -> None:
        """Makes tensors known here and in all outer contexts."""
        outputs = list(outputs)
        context: ControlFlowContext | None = self
        while context is not None:
            context._values.update(outputs)
            context = context._outer_context

    def __str__(self) -> str:
        return self._name
