"""Constant folding."""

from __future__ import annotations

from thalweg.graph import registry
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation
from thalweg.graph.shape_context import constant_value
from thalweg.graph.subgraph import (
    bypass_control,
    raw_node,
    relink,
    remove_op,
    rename,
    replace_uses,
    sweep,
    topological_order,
)
from thalweg.kernel.convention import Kind


def fold_constants(graph: Graph) -> int:
    """Nodes that follow from constants and static shapes become Const nodes of the same name and origin.

    Law: values are those of the op's own host kernel; nothing is regrouped; what had an effect on the way to
    a folded node still runs before it; in a loop or a branch the constant stays there, by its control
    inputs. Returns how many.
    """
    const = registry.lookup("Const")
    targets = set(graph._targets)
    effects = _with_effects(graph)
    count = 0
    for op in list(graph._ops):
        if op.type == "Const" or op in targets or not op._outputs or not op._inputs:
            continue
        if op._record.definition.is_stateful or any(t._dtype.is_ref_dtype for t in op._inputs):
            continue
        values = [constant_value(t) for t in op._outputs]
        if any(v is None for v in values):
            continue
        controls = [*op._control_inputs, *(t._op for t in op._inputs if t._op in effects)]
        if op._control_flow_context is not None:
            if any(t._op.type != "Const" for t in op._inputs):
                continue  # a control edge can't say which side of a Switch it comes from
            controls += (c for t in op._inputs for c in t._op._control_inputs)
        new_ops: list[Operation] = []
        for tensor, value in zip(op._outputs, values, strict=True):
            attrs = {"value": value, "dtype": tensor._dtype}
            name = op._name if tensor._index == 0 else f"{op._name}_output_{tensor._index}"
            new = raw_node(graph, const, name, [], attrs, [tensor._dtype], controls, op)
            new._outputs[0]._shape = value.shape  # type: ignore[union-attr]
            replace_uses(tensor, new._outputs[0])
            new_ops.append(new)
            if op in effects:
                effects.add(new)
        bypass_control(op, new_ops)
        remove_op(op)
        rename(new_ops[0], op._name)
        count += 1
    sweep(graph)
    return count


def _with_effects(graph: Graph) -> set[Operation]:
    """The nodes that change something when they run, or may find a variable without a value, and those that
    wait for such a node."""
    found: set[Operation] = set()
    for op in topological_order(graph):
        kernel = op._record.kernel
        stateful = op._record.definition.is_stateful or (kernel is not None and bool(kernel.writes))
        own = stateful and kernel is not None and kernel.kind is not Kind.SOURCE
        own = own or any(t._dtype.is_ref_dtype for t in op._inputs)
        if own or any(t._op in found for t in op._inputs) or any(c in found for c in op._control_inputs):
            found.add(op)
    return found


def remove_unused(graph: Graph) -> int:
    """Drops nodes that neither a _Retval nor a target needs. Returns how many."""
    needed: set[Operation] = set()
    stack = [op for op in graph._ops if op.type == "_Retval"] + list(graph._targets)
    while stack:
        op = stack.pop()
        if op in needed:
            continue
        needed.add(op)
        stack.extend(t._op for t in op._inputs)
        stack.extend(op._control_inputs)
    dead = [op for op in graph._ops if op not in needed and op.type != "_Arg"]
    for op in dead:
        del graph._by_name[op._name]
    graph._removed.update(dead)
    sweep(graph)
    relink(graph)
    return len(dead)


