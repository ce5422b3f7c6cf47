"""Common-subexpression elimination."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation
from thalweg.graph.subgraph import bypass_control, remove_op, replace_uses, sweep, topological_order

_NEVER = frozenset(("_Arg", "_Retval", "Placeholder", "NoOp"))
_LARGE = 1 << 16


def merge_common(graph: Graph) -> int:
    """Nodes with the same op, attributes, inputs, control inputs and device become one.

    Law: never merges stateful nodes, nodes that see references or resources, loop nodes, or nodes bound to
    different devices. Returns how many went.
    """
    seen: dict[Any, Operation] = {}
    targets = set(graph._targets)
    count = 0
    for op in topological_order(graph):
        if not _mergeable(op):
            continue
        key = _key(op)
        if key is None:
            continue
        first = seen.setdefault(key, op)
        if first is op:
            continue
        for old, new in zip(op._outputs, first._outputs, strict=True):
            replace_uses(old, new)
        if op in targets:
            continue
        bypass_control(op, [first])
        remove_op(op)
        count += 1
    sweep(graph)
    return count


def _mergeable(op: Operation) -> bool:
    if op.type in _NEVER or op._record.definition.is_stateful or not op._outputs:
        return False
    if op._control_flow_context is not None:
        return False
    return not any(t._dtype.is_ref_dtype or t._dtype.name == "resource" for t in op._inputs)


def _key(op: Operation) -> Any:
    attrs = []
    for name, value in sorted(op._attrs.items()):
        if name == "_class" or name.startswith("_output_shapes"):
            continue
        if isinstance(value, np.ndarray):
            if value.size > _LARGE or value.dtype == object:
                return None
            value = (value.dtype.str, value.shape, value.tobytes())
        attrs.append((name, value))
    inputs = tuple((id(t._op), t._index) for t in op._inputs)
    if op._record.definition.is_commutative:
        inputs = tuple(sorted(inputs))
    controls = frozenset(id(c) for c in op._control_inputs)
    key = (op.type, op._device, tuple(attrs), inputs, controls)
    try:
        hash(key)
    except TypeError:
        return None
    return key
