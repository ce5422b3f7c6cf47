"""Stage checks: the grammar that a plan's graph keeps between passes.

Used by the tests and, where a program asks for it, between all passes: a pass that breaks the graph is
found where it happens, with the graph round the fault.
"""

from __future__ import annotations

from thalweg.base.errors import InternalError
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation
from thalweg.graph.text import format_op


def check(graph: Graph, stage: str) -> None:
    """InternalError, which names the stage, where the graph breaks a rule.

    Names are unique; inputs and controls are nodes of this graph; consumers and control outputs mirror them;
    dtypes agree with the definition; _Arg nodes of a device have distinct indices; targets are nodes of this
    graph.
    """
    members = set(graph._ops)
    names = {op._name for op in graph._ops}
    if len(names) != len(graph._ops):
        _broken(graph, stage, None, "two nodes share a name")
    for op in graph._ops:
        _check_links(graph, stage, op, members)
        _check_types(graph, stage, op)
    indices = [(op._device, op._attrs["index"]) for op in graph._ops if op.type == "_Arg"]
    if len(set(indices)) != len(indices):
        _broken(graph, stage, None, "two _Arg nodes share an index")
    for target in graph._targets:
        if target not in members:
            _broken(graph, stage, target, "it is a target, but not in the graph")


def _check_links(graph: Graph, stage: str, op: Operation, members: set[Operation]) -> None:
    if graph._by_name.get(op._name) is not op:
        _broken(graph, stage, op, "it is not the node of its name")
    for tensor in op._inputs:
        if tensor._op not in members:
            _broken(graph, stage, op, f"its input {tensor.name} is not in the graph")
        if op not in tensor._consumers:
            _broken(graph, stage, op, f"its input {tensor.name} doesn't know it")
    for control in op._control_inputs:
        if control not in members:
            _broken(graph, stage, op, f"its control input {control._name} is not in the graph")
        if op not in control._control_outputs:
            _broken(graph, stage, op, f"its control input {control._name} doesn't know it")
    for tensor in op._outputs:
        for user in tensor._consumers:
            if user not in members or all(t is not tensor for t in user._inputs):
                _broken(graph, stage, op, f"its consumer {user._name} doesn't take it")
    for user in op._control_outputs:
        if user not in members or op not in user._control_inputs:
            _broken(graph, stage, op, f"its control output {user._name} doesn't wait for it")


def _check_types(graph: Graph, stage: str, op: Operation) -> None:
    expected = op._record.definition.input_dtypes(op._attrs)
    if len(expected) != len(op._inputs):
        _broken(graph, stage, op, f"it has {len(op._inputs)} inputs, its definition says {len(expected)}")
    for tensor, dtype in zip(op._inputs, expected, strict=True):
        if tensor._dtype.base_dtype != dtype.base_dtype:
            _broken(graph, stage, op, f"its input {tensor.name} is {tensor._dtype.name}, not {dtype.name}")


def _broken(graph: Graph, stage: str, op: Operation | None, what: str) -> None:
    lines = [f"after '{stage}' the graph is broken: {what}"]
    if op is not None:
        near = dict.fromkeys(
            [*(t._op for t in op._inputs), op, *(c for t in op._outputs for c in t._consumers)]
        )
        lines += ["  " + format_op(o) for o in list(near)[:8]]
    raise InternalError(None, op, "\n".join(lines))
