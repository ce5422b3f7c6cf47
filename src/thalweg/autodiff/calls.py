"""The gradient of a function's call: of its body, which is put into the graph for it.

The body is computed again there, so it must be one that gives the same again and changes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tensorboard.compat.proto import attr_value_pb2

from thalweg.autodiff.gradients import UnconnectedGradients, gradients
from thalweg.autodiff.zeros import is_trainable
from thalweg.base.errors import UnimplementedError
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import Emitter, emit
from thalweg.graph.functions import BodyReader, differentiators, function_gradients, function_records
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import register_gradient
from thalweg.kernel.convention import Kind


def _call_gradient(emit: Emitter, op: Operation, *grads: Any) -> list[Any]:
    """The gradients of a call's inputs.

    UnimplementedError where the body changes something, draws random numbers, or is a branch or a loop.
    """
    name = op._attrs["f"].name if "f" in op._attrs else op.type
    own = function_gradients(op._graph).get(name)
    if own is not None:
        return _own_gradient(op, own, grads)
    with _inside(op, name):
        results = _body(op)
        wanted = [(y, g) for y, g in zip(results, grads, strict=True) if g is not None]
        if not wanted:
            return [None] * len(op._inputs)
        ys, given = zip(*wanted, strict=True)
        return list(gradients(list(ys), list(op._inputs), list(given), name="grad"))


def _own_gradient(op: Operation, name: str, grads: Sequence[Any]) -> list[Any]:
    """A call of the function that is the gradient of the one that op calls: of its arguments and dys."""
    given = zip(op._outputs, grads, strict=True)
    dys = [emit("ZerosLike", t) if g is None else convert_to_tensor(g) for t, g in given]
    types = [t._dtype.base_dtype for t in op._inputs]
    result = emit.operation(
        "PartitionedCall", [*op._inputs, *dys], Tout=types, f=attr_value_pb2.NameAttrList(name=name)
    )
    return list(result._outputs)


class _Calls(threading.local):
    def __init__(self) -> None:
        self.names: list[str] = []


_calls = _Calls()

#: gradients of calls inside calls; Python's stack is finite
MAX_DEPTH = 16


@contextmanager
def _inside(op: Operation, name: str) -> Iterator[None]:
    """While the gradient of a function's body is built. UnimplementedError where it would have no end."""
    if name in _calls.names:
        raise _not_built(op, f"'{name}' calls itself")
    if len(_calls.names) >= MAX_DEPTH:
        raise _not_built(op, f"calls are nested more than {MAX_DEPTH} deep")
    _calls.names.append(name)
    try:
        yield
    finally:
        _calls.names.pop()


def _body(op: Operation) -> list[Tensor]:
    """Adds the body of a call to the graph, over the call's inputs; returns its results."""
    graph = op._graph
    named = "f" in op._attrs
    name, attrs = (op._attrs["f"].name, op._attrs["f"].attr) if named else (op.type, op.node_def.attr)
    reader = BodyReader(graph._functions, function_records(graph))
    return _add_body(graph, reader, name, attrs, list(op._inputs), op)


def _add_body(
    graph: Graph, reader: BodyReader, name: str, attrs: Mapping[str, Any], args: list[Tensor], op: Operation
) -> list[Tensor]:
    """Adds the body of a function to a graph, for the gradient of `op`; returns its results."""
    if reader.changes(name):
        raise _not_built(op, f"'{name}' changes something when it runs")
    body = reader.read(name, attrs)
    if body.later:
        raise _not_built(op, f"'{name}' holds a loop")
    if len(body.inputs) != len(args):
        raise _not_built(op, f"'{name}' takes {len(body.inputs)} arguments, {len(args)} are given")
    made: dict[str, Operation] = {}
    with graph.name_scope("body"):
        for node in body.nodes:
            kernel = node.record.kernel
            if kernel is not None and (kernel.own_state is not None or kernel.kind is Kind.CONTROL):
                raise _not_built(op, f"its node {node.record.name} '{node.name}' can't be computed again")
            inputs = [made[s]._outputs[i] if s else args[i] for s, i in node.inputs]
            controls = [made[c] for c in node.controls]
            made[node.name] = graph.add_node(
                node.record, inputs, dict(node.attrs), node.name, control_inputs=controls
            )
    return [made[s]._outputs[i] if s else args[i] for s, i in body.results]


def _symbolic_gradient(op: Operation, source: Graph) -> tuple[Graph, list[Tensor], list[Tensor]]:
    """What a SymbolicGradient node computes: a graph, what stands in it for the node's inputs, the results.

    Its inputs are the arguments of a function, and the gradients of the function's results.
    """
    function = op._attrs["f"]
    graph = Graph()
    graph._functions.update(source._functions)
    graph._library_state["function_records"] = function_records(source)
    function_gradients(graph).update(function_gradients(source))
    with graph.as_default(), _inside(op, function.name):
        given = [emit("Placeholder", dtype=t._dtype.base_dtype, shape=t._shape) for t in op._inputs]
        args = given[: len(op._outputs)]
        reader = BodyReader(graph._functions, function_records(graph))
        results = _add_body(graph, reader, function.name, function.attr, args, op)
        if len(results) + len(args) != len(given):
            raise _not_built(op, f"it has {len(given)} inputs, not one for each argument and result")
        pairs = [(y, dy) for y, dy in zip(results, given[len(args) :], strict=True) if is_trainable(y)]
        ys, dys = ([p[i] for p in pairs] for i in (0, 1))
        grads = gradients(ys, args, dys, unconnected_gradients=UnconnectedGradients.ZERO)
        return graph, given, [convert_to_tensor(g) for g in grads]


def _not_built(op: Operation, why: str) -> UnimplementedError:
    return UnimplementedError(
        None, op, f"the gradient of {op.type} '{op._name}' is not built in thalweg: {why}"
    )


def _branch_gradient(emit: Emitter, op: Operation, *grads: Any) -> list[Any]:
    raise _not_built(
        op, "a branch or loop whose bodies are functions. tf.cond and tf.while_loop of thalweg have gradients"
    )


register_gradient("PartitionedCall", _call_gradient)
register_gradient("StatefulPartitionedCall", _call_gradient)
for _name in ("If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile", "SymbolicGradient"):
    register_gradient(_name, _branch_gradient)

differentiators[:] = [_symbolic_gradient]
