"""The partitions of a plan as GraphDefs: what ran on each device, after all passes."""

from __future__ import annotations

from typing import Any

from tensorboard.compat.proto import graph_pb2

from thalweg.graph.graph import Graph
from thalweg.graph.graphdef import node_def
from thalweg.graph.operation import Operation, Tensor
from thalweg.kernel.body import Body
from thalweg.plan.pipeline import Plan


def partition_graphs(plan: Plan) -> list[Any]:
    """One GraphDef for each device.

    The members of a cluster are nodes, with its name as attribute `_cluster`; inputs name their real
    producers, those from other devices the _Recv. What waits for a cluster waits for its last nodes.
    """
    return [_Written(part.graph, part.device).message for part in plan.partitions]


class _Written:
    """A partition as a message."""

    def __init__(self, graph: Graph, device: str) -> None:
        self.message = graph_pb2.GraphDef()
        self._graph = graph
        self._device = device
        self._written: set[str] = set()
        for op in graph._ops:
            if op.type == "_Cluster":
                self._cluster(op)
            else:
                self._node(op, [_source(t) for t in op._inputs], _ends(op._control_inputs))
        for node in self.message.node:
            self._forget_others(node)

    def _cluster(self, op: Operation) -> None:
        body: Body = op._attrs["body"]
        inside = set(body.nodes)
        outside = dict(zip([*body.args, *body.static_args], op._inputs, strict=False))
        waits = _ends(op._control_inputs)
        for constant in body.constants:
            if constant._name not in self._graph._by_name and constant._name not in self._written:
                self._node(constant, [], [], self._device)  # from another device: copied in
        for member in body.nodes:
            inputs = [_source(outside.get(t, t)) for t in member._inputs]
            controls = [c._name for c in member._control_inputs if c in inside]
            if not any(t._op in inside for t in member._inputs):
                controls += waits
            self._node(member, inputs, controls).attr["_cluster"].s = op._name.encode()

    def _node(self, op: Operation, inputs: list[Tensor], controls: list[str], device: str = "") -> Any:
        node = node_def(op)
        del node.input[:]
        node.input.extend(t._op._name if t._index == 0 else f"{t._op._name}:{t._index}" for t in inputs)
        node.input.extend(f"^{name}" for name in sorted(set(controls)))
        if device:
            node.device = device
        inner = [m for value in op._attrs.values() if isinstance(value, Body) for m in value.walk()]
        if inner:  # a compiled loop or branch: what is in it
            node.attr["_nodes"].list.s.extend(m._name.encode() for m in inner)
        self._written.add(op._name)
        self.message.node.append(node)
        return self.message.node[-1]

    def _forget_others(self, node: Any) -> None:
        """Drops what a node is colocated with where that isn't in the partition: placement has heeded it."""
        if "_class" in node.attr:
            names = [name for name in node.attr["_class"].list.s if name[5:].decode() in self._written]
            del node.attr["_class"].list.s[:]
            node.attr["_class"].list.s.extend(names)
            if not names:
                del node.attr["_class"]


def _source(tensor: Tensor) -> Tensor:
    """What a cluster's result is inside it."""
    if tensor._op.type != "_Cluster":
        return tensor
    body: Body = tensor._op._attrs["body"]
    return body.results[tensor._index]


def _ends(controls: list[Operation]) -> list[str]:
    """The names of what a node waits for; of a cluster, those of the nodes that no other node of it takes."""
    names: list[str] = []
    for op in controls:
        if op.type != "_Cluster":
            names.append(op._name)
            continue
        body: Body = op._attrs["body"]
        used = {t._op for member in body.nodes for t in member._inputs}
        used.update(c for member in body.nodes for c in member._control_inputs)
        names += [member._name for member in body.nodes if member not in used]
    return names
