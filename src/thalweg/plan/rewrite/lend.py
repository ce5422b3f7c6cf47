"""Nodes that look at variables in place take them, not what was read from them."""

from __future__ import annotations

from thalweg.base import dtypes
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import remove_op, sweep
from thalweg.plan.state import root_variable


def lend_variables(graph: Graph) -> int:
    """A node whose kernel borrows variables (SaveV2) takes the handle or reference instead of a read of it.

    So a checkpoint is written without a copy of all variables.
    Law: only where nothing but that node takes the value or waits for the read, on the same device: then the
    read may come as late as the node. Its control inputs become the node's. Returns how many reads went.
    """
    count = 0
    for op in list(graph._ops):
        kernel = op._record.kernel
        if kernel is None or not kernel.lends or op._control_flow_context is not None:
            continue
        argument = op._record.definition.inputs[-1]
        assert argument.type_list_attr is not None
        types = list(op._attrs[argument.type_list_attr])
        first = len(op._inputs) - len(types)
        for i in range(len(types)):
            tensor = op._inputs[first + i]
            if _only_read_for(op, tensor) and tensor._op not in graph._targets:
                _take_source(op, first + i, tensor._op)
                if tensor._op.type == "ReadVariableOp":
                    types[i] = dtypes.resource
                remove_op(tensor._op)
                count += 1
        op._attrs = {**op._attrs, argument.type_list_attr: tuple(types)}  # the caller's graph has the old one
    sweep(graph)
    return count


def _only_read_for(op: Operation, tensor: Tensor) -> bool:
    read = tensor._op
    return (
        (read.type == "ReadVariableOp" or (read.type == "Identity" and read._inputs[0]._dtype.is_ref_dtype))
        and tensor._consumers == [op]
        and not read._control_outputs
        and read._device == op._device
        and read._control_flow_context is None
        and root_variable(read._inputs[0]) is not None
    )


def _take_source(op: Operation, i: int, read: Operation) -> None:
    source = read._inputs[0]
    op._inputs[i]._consumers.remove(op)
    op._inputs[i] = source
    source._consumers.append(op)
    for control in read._control_inputs:
        if control not in op._control_inputs:
            op._control_inputs.append(control)
            control._control_outputs.append(op)
