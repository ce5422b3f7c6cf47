"""Loops and branches: nodes that only say where and when a value is there give way to control edges."""

from __future__ import annotations

from thalweg.graph import registry
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import raw_node
from thalweg.plan.places import is_control


def read_references(graph: Graph) -> int:
    """Control flow over values takes the value of a variable, not the variable.

    Law: between a reference and a Switch, Merge, Enter ... that isn't one of references stands an Identity.
    Returns how many were added.
    """
    identity = registry.lookup("Identity")
    count = 0
    for op in list(graph._ops):
        if not is_control(op) or op.type.startswith("Ref"):
            continue
        for tensor in dict.fromkeys(t for t in op._inputs if t._dtype.is_ref_dtype):
            base, source = tensor._dtype.base_dtype, tensor._op
            name = f"_read_{source._name}"
            read = raw_node(graph, identity, name, [tensor], {"T": base}, [base], (), source)
            read._outputs[0]._shape = tensor._shape
            _take(op, tensor, read._outputs[0])
            count += 1
    return count


def free_constants(graph: Graph) -> int:
    """What uses a constant of a loop or branch waits in its place for what the constant waited for.

    Law: a node that takes the value of such a constant gets the constant's control inputs, and a copy of the
    constant that waits for nothing: there when the step starts, so a cluster can hold it. Nodes of control
    flow keep the constant itself: for them it is a token. Returns how many constants were freed.
    """
    count = 0
    for op in list(graph._ops):
        if op.type != "Const" or not op._control_inputs or op._control_flow_context is None:
            continue
        takers = dict.fromkeys(op._outputs[0]._consumers)
        users = [u for u in takers if not is_control(u) and u.type != "_Retval"]
        if not users:
            continue
        free = _free_copy(graph, op)
        for user in users:
            _take(user, op._outputs[0], free._outputs[0])
            for control in op._control_inputs:
                if control not in user._control_inputs:
                    user._control_inputs.append(control)
                    control._control_outputs.append(user)
        count += 1
    return count


def bypass_identities(graph: Graph) -> int:
    """What takes a value from an Identity in a loop or branch takes it from the Identity's input.

    Law: both are alive together. The Identity stays for those that wait for it by control edges: a control
    edge can't say which side of a Switch it comes from. Returns how many were bypassed.
    """
    count = 0
    for op in graph._ops:
        if op.type != "Identity" or op._control_flow_context is None or op._control_inputs:
            continue
        source = op._inputs[0]
        if source._dtype.is_ref_dtype or not op._outputs[0]._consumers:
            continue
        if source._shape is None:
            source._shape = op._outputs[0]._shape
        for user in dict.fromkeys(op._outputs[0]._consumers):
            _take(user, op._outputs[0], source)
        count += 1
    return count


def _take(user: Operation, old: Tensor, new: Tensor) -> None:
    for i, t in enumerate(user._inputs):
        if t is old:
            user._inputs[i] = new
            new._consumers.append(user)
            old._consumers.remove(user)


def _free_copy(graph: Graph, op: Operation) -> Operation:
    free = raw_node(graph, op._record, op._name, [], dict(op._attrs), [op._outputs[0]._dtype], (), op)
    free._outputs[0]._shape = op._outputs[0]._shape
    free._control_flow_context = None
    return free
