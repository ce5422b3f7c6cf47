"""Clean-ups: nodes that only pass their input on."""

from __future__ import annotations

from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation
from thalweg.graph.shape_context import constant_value
from thalweg.graph.subgraph import bypass_control, remove_op, replace_uses, sweep

_PASS_ON = frozenset(("Identity", "StopGradient", "PreventGradient", "Snapshot", "PlaceholderWithDefault"))


def remove_identities(graph: Graph) -> int:
    """Identities, reshapes to the same shape and casts to the same type give way to their input.

    Law: a node stays where it reads a variable, is a target, was made in a loop or cond, or would have to
    carry control edges to several consumers. Returns how many went.
    """
    targets = set(graph._targets)
    count = 0
    for op in graph._ops:
        if op in targets or not _passes_on(op):
            continue
        source = op._inputs[0]
        if op._control_inputs and (source._op.type == "_Arg" or op._outputs[0]._consumers):
            continue
        replace_uses(op._outputs[0], source)
        if source._shape is None:
            source._shape = op._outputs[0]._shape
        bypass_control(op, [source._op])
        remove_op(op)
        count += 1
    sweep(graph)
    return count


def _passes_on(op: Operation) -> bool:
    if op._control_flow_context is not None or not op._inputs:
        return False
    source = op._inputs[0]
    if source._dtype.is_ref_dtype or source._dtype.name == "resource":
        return False
    if op.type in _PASS_ON:
        return True
    if op.type == "Reshape":
        known = source._shape is not None and None not in source._shape
        return known and source._shape == op._outputs[0]._shape
    if op.type == "Cast":
        return bool(op._attrs["SrcT"] == op._attrs["DstT"])
    if op.type == "Transpose":
        perm = constant_value(op._inputs[1])
        return perm is not None and list(perm) == list(range(perm.size))
    return False
