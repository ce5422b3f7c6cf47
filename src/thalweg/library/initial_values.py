"""Initial values that depend on other variables: made safe to compute before those are initialised.

`w = tf.Variable(v * 2)` reads v, and nothing orders v's initializer before w's. So the nodes between are
made once more, with each read of a variable replaced by its value if it has one, else its own initial value;
w's initializer takes that copy. The order then follows from data alone.
"""

from __future__ import annotations

from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.library.variable_base import Variable

_VARIABLES = "variables_by_op"
_NODES_OF_STATE = frozenset(("VariableV2", "Variable", "VarHandleOp"))
# nodes that look at a variable without needing a value
_HARMLESS = frozenset(
    ("IsVariableInitialized", "VarIsInitializedOp", "_InitializedValue", "_InitializedResourceValue")
)


def remember(variable: Variable) -> None:
    """Notes which variable a stateful node belongs to."""
    variable.graph._library_state.setdefault(_VARIABLES, {})[variable.op] = variable


def variable_of(op: Operation) -> Variable | None:
    """The variable that a stateful node belongs to, where a Python object was made for it."""
    return op.graph._library_state.get(_VARIABLES, {}).get(op)


def safe_initial_value(initial_value: Tensor, scope: str) -> Tensor:
    """`initial_value`, or a copy of it that reads no uninitialised variable.

    scope: the name scope of the variable to be, with its "/". Copies are named "<original>_<scope>".
    Where the value comes out of a loop it is left as it is: a loop can't be copied node by node.
    """
    order = _ancestors_in_order(initial_value.op)
    if order is None:
        return initial_value
    with initial_value.graph.control_dependencies(None):
        return _Copies(initial_value.graph, scope).of_tensors(order, initial_value)


def _reads_variable(op: Operation) -> Variable | None:
    """The variable whose value this node hands out, if it is a plain read through a handle."""
    return variable_of(op._inputs[0]._op) if op.type == "ReadVariableOp" else None


def _ancestors_in_order(root: Operation) -> list[Operation] | None:
    """The nodes that `root` depends on, itself last, inputs first; None where they form a cycle.

    Not recursive: an initial value may hang on a long chain.
    """
    order: list[Operation] = []
    finished: dict[Operation, bool] = {}
    stack = [root]
    while stack:
        op = stack[-1]
        state = finished.get(op)
        if state is not None:
            stack.pop()
            if not state:
                finished[op] = True
                order.append(op)
            continue
        finished[op] = False
        if op.type in _HARMLESS or op.type in _NODES_OF_STATE or _reads_variable(op) is not None:
            continue
        for tensor in reversed(op._inputs):
            state = finished.get(tensor._op)
            if state is None:
                stack.append(tensor._op)
            elif not state:  # on the way here already
                return None
    return order


class _Copies:
    """Replacements for the outputs of nodes that depend on variables."""

    def __init__(self, graph: Graph, scope: str) -> None:
        self._graph = graph
        self._scope = scope
        self._replaced: dict[Tensor, Tensor] = {}

    def of_tensors(self, order: list[Operation], wanted: Tensor) -> Tensor:
        for op in order:
            if op.type in _HARMLESS:
                continue
            if op.type in _NODES_OF_STATE or op.type == "ReadVariableOp":
                self._replace_read(op)
            elif any(t in self._replaced for t in op._inputs):
                self._copy(op)
        return self._replaced.get(wanted, wanted)

    def _replace_read(self, op: Operation) -> None:
        variable = variable_of(op) if op.type in ("VariableV2", "Variable") else _reads_variable(op)
        if variable is not None and variable._safe_initial_value is not None:
            self._replaced[op._outputs[0]] = variable._initialized_value_node(
                variable._safe_initial_value, "initialized_value"
            )

    def _copy(self, op: Operation) -> None:
        inputs = [self._replaced.get(t, t) for t in op._inputs]
        # what was a reference is a value now
        dtypes = [t._dtype.base_dtype for t in op._outputs]
        name = f"{op._name}_{self._scope}"
        copy = self._graph.add_node(op._record, inputs, dict(op._attrs), name, dtypes, op._control_inputs)
        self._replaced.update(zip(op._outputs, copy._outputs, strict=True))
