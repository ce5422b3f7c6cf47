"""import_graph_def: nodes of a GraphDef as nodes of the default graph."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from tensorboard.compat.proto import graph_pb2

from thalweg.base import dtypes
from thalweg.graph import registry
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import canonical_attr
from thalweg.graph.graph import Graph
from thalweg.graph.graphdef import attr_from_proto
from thalweg.graph.opdef import REQUIRED, AttrDef
from thalweg.graph.operation import Operation, Tensor

_log = logging.getLogger("thalweg")


def import_graph_def(
    graph_def: Any,
    input_map: dict[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> list[Any] | None:
    """Adds the nodes of a GraphDef to the default graph, under the scope `name` ("import" by default).

    input_map: tensors of this graph in place of "node:index" (or "^node", or "node" for its first output)
    of graph_def; control inputs on a node that is mapped away go to what it was mapped to.
    return_elements: names of tensors and operations of graph_def to return.
    Errors: TypeError for a wrong kind of argument; ValueError for nodes that don't fit together, unknown
    ops (all named at once), keys of input_map and return_elements that name nothing. The graph is then as
    before.
    """
    del op_dict, producer_op_list
    if not isinstance(graph_def, graph_pb2.GraphDef):
        raise TypeError("Argument `graph_def` must be a GraphDef proto.")
    mapping = dict(input_map or {})
    if not all(isinstance(k, str | bytes) for k in mapping):
        raise TypeError("Argument `input_map` must be a dictionary mapping strings to Tensor objects.")
    graph = get_default_graph()
    prefix = "import" if name is None else name
    with graph.name_scope(prefix) as scope:
        return _Import(graph, graph_def, mapping, scope).run(return_elements)


class _Import:
    """One import: the nodes by name, what replaces which, and what has been added."""

    def __init__(self, graph: Graph, graph_def: Any, mapping: dict[Any, Any], scope: str) -> None:
        self.graph = graph
        self.nodes = list(graph_def.node)
        self.by_name = {n.name: n for n in self.nodes}
        self.scope = scope
        self.mapping: dict[tuple[str, int], Tensor] = {}
        self.mapped_controls: dict[str, Operation] = {}
        self.ops: dict[str, Operation] = {}
        self.later: list[tuple[Operation, int, str, int]] = []
        for function in graph_def.library.function:
            graph._functions.setdefault(function.signature.name, function)
        self._check()
        self._map(mapping)

    def _check(self) -> None:
        for name, count in Counter(n.name for n in self.nodes).items():
            if count > 1:
                raise ValueError(f"Node '{name}' is not unique in the GraphDef")
            if not name:
                raise ValueError("Node '': a node must have a name")
        unknown = sorted({n.op for n in self.nodes if registry.find(n.op) is None})
        if unknown:
            raise ValueError(
                f"Op type not registered: {', '.join(unknown)}: the graph uses ops that are not built"
            )

    def _map(self, mapping: dict[Any, Any]) -> None:
        for key, value in mapping.items():
            key = key.decode() if isinstance(key, bytes) else key
            if key.startswith("^"):
                op = getattr(value, "op", value)
                self._known(key[1:], key)
                self.mapped_controls[key[1:]] = op
                continue
            node, index = _split(key)
            definition = self._known(node, key)
            if not isinstance(value, Tensor):
                value = self.graph.as_graph_element(value, allow_operation=False)
            count = _output_count(definition)
            if index >= count:
                raise ValueError(
                    f"Attempted to map inputs that were not found in graph_def: [{key}]: '{node}' has "
                    f"{count} outputs"
                )
            self.mapping[node, index] = value
            if count == 1:
                self.mapped_controls.setdefault(node, value.op)

    def _known(self, node: str, key: str) -> Any:
        if node not in self.by_name:
            raise ValueError(f"Attempted to map inputs that were not found in graph_def: [{key}]")
        return self.by_name[node]

    def run(self, return_elements: Sequence[str] | None) -> list[Any] | None:
        """Adds the nodes and returns what is asked for; or takes them all back where something is wrong."""
        try:
            for node in self._sorted():
                self._add(node)
            for op, i, source, index in self.later:
                op._update_input(i, self.ops[source]._outputs[index])
            return None if return_elements is None else [self._element(e) for e in return_elements]
        except Exception:
            self.graph._take_back(list(self.ops.values()))
            raise

    def _sorted(self) -> list[Any]:
        """Nodes after their inputs; the back edges of loops (NextIteration into Merge) aside."""
        order: list[Any] = []
        state: dict[str, int] = {}
        for root in self.nodes:
            stack = [(root, False)]
            while stack:
                node, done = stack.pop()
                if done:
                    state[node.name] = 2
                    order.append(node)
                    continue
                if state.get(node.name):
                    continue
                state[node.name] = 1
                stack.append((node, True))
                for text in reversed(node.input):
                    source = text.lstrip("^").partition(":")[0]
                    if source not in self.by_name:
                        raise ValueError(f"Node '{node.name}': Unknown input node '{text}'")
                    other = self.by_name[source]
                    if state.get(source) == 1:
                        if other.op == "NextIteration" or node.op == "NextIteration":
                            continue
                        raise ValueError(f"The GraphDef has a cycle through '{node.name}' and '{source}'")
                    if not state.get(source) and not (node.op == "Merge" and other.op == "NextIteration"):
                        stack.append((other, False))
        return order

    def _add(self, node: Any) -> None:
        record = registry.lookup(node.op)
        attrs = self._attrs(node, record)
        expected = record.definition.input_dtypes(attrs)
        names = [i for i in node.input if not i.startswith("^")]
        if len(names) != len(expected):
            raise ValueError(
                f"NodeDef '{node.name}' ({node.op}) expects {len(expected)} inputs, has {len(names)}: {names}"
            )
        inputs: list[Tensor] = []
        back: list[tuple[int, str, int]] = []
        for i, text in enumerate(names):
            source, index = _split(text)
            tensor = self._input(node, text, source, index, expected[i])
            if tensor is None:
                back.append((i, source, index))
                tensor = inputs[0]
            inputs.append(tensor)
        controls = [self._control(i[1:]) for i in node.input if i.startswith("^")]
        name = self.scope + node.name
        name = node.name if name in self.graph._by_name else name + "/"  # made unique only where it is taken
        with self.graph.device(node.device) if node.device else nullcontext():
            op = self.graph.add_node(record, inputs, attrs, name, control_inputs=controls)
        if back:
            op._outputs[0]._shape = None  # the shape may change from iteration to iteration
        self.ops[node.name] = op
        self.later.extend((op, *b) for b in back)

    def _input(self, node: Any, text: str, source: str, index: int, wanted: dtypes.DType) -> Tensor | None:
        mapped = self.mapping.get((source, index))
        if mapped is None:
            op = self.ops.get(source)
            if op is None:
                return None
            if index >= len(op._outputs):
                raise ValueError(
                    f"Node '{node.name}': Connecting to invalid output {index} of source node {source} which "
                    f"has {len(op._outputs)} outputs"
                )
            mapped = op._outputs[index]
        if wanted.base_dtype != mapped._dtype.base_dtype or (
            wanted.is_ref_dtype and not mapped._dtype.is_ref_dtype
        ):
            raise ValueError(
                f"Input '{text}' of node '{node.name}' was passed {mapped._dtype.name} from {mapped.name}, "
                f"incompatible with expected {wanted.name}"
            )
        return mapped

    def _control(self, name: str) -> Operation:
        mapped = self.mapped_controls.get(name)
        return mapped if mapped is not None else self.ops[name]

    def _attrs(self, node: Any, record: registry.OpRecord) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        given = node.attr
        for attr in record.definition.attrs:
            if attr.name in given:
                attrs[attr.name] = _attr_value(node, attr, given[attr.name])
            elif attr.default is not REQUIRED:
                attrs[attr.name] = attr.default
            else:
                raise ValueError(f"NodeDef '{node.name}' ({node.op}) is missing attr '{attr.name}'")
        for key in given:
            if key.startswith("_") and key != "_output_shapes":
                attrs[key] = self._rename(node, key, attr_from_proto(given[key]))
            elif key not in record.definition.attr_by_name and key != "_output_shapes":
                _log.warning(
                    "NodeDef '%s' has the attr '%s', which the definition of %s hasn't: it is ignored. The "
                    "program that wrote the graph may be newer.", node.name, key, node.op,
                )  # fmt: skip
        return attrs

    def _rename(self, node: Any, key: str, value: Any) -> Any:
        """Colocation groups name nodes: those of the import get its prefix."""
        if key != "_class":
            return value
        names = [v[5:].decode() for v in value if v.startswith(b"loc:@")]
        kept = [v for v in value if not v.startswith(b"loc:@")]
        for name in names:
            if name not in self.by_name:
                raise ValueError(f"Node '{node.name}' expects to be colocated with unknown node '{name}'")
        return tuple([*kept, *(b"loc:@" + (self.scope + n).encode() for n in names)])

    def _element(self, text: str) -> Any:
        text = text.decode() if isinstance(text, bytes) else text
        node, index = _split(text)
        if node not in self.ops:
            raise ValueError(f"Requested return_element '{text}' not found in graph_def.")
        if ":" not in text:
            return self.ops[node]
        if (node, index) in self.mapping:
            return self.mapping[node, index]
        outputs = self.ops[node]._outputs
        if index >= len(outputs):
            raise ValueError(
                f"Requested return_element '{text}' not found in graph_def: {len(outputs)} outputs."
            )
        return outputs[index]


#: the field of AttrValue that holds an attribute of each type
_FIELDS = {
    "int": "i", "float": "f", "bool": "b", "string": "s",
    "type": "type", "shape": "shape", "tensor": "tensor", "func": "func",
}  # fmt: skip


def _attr_value(node: Any, attr: AttrDef, proto: Any) -> Any:
    """The canonical value of an attribute, checked against its definition."""
    is_list = attr.type.startswith("list(")
    field = _FIELDS[attr.type[5:-1] if is_list else attr.type]
    found = proto.WhichOneof("value")
    held = [f.name for f, _ in proto.list.ListFields()] if found == "list" else []
    if found != ("list" if is_list else field) or any(name != field for name in held):
        what = f"list of '{held[0]}'" if held else f"'{found}'"
        raise ValueError(
            f"NodeDef '{node.name}' ({node.op}): attr '{attr.name}' of type {attr.type} holds a {what}"
        )
    try:
        return canonical_attr(attr, attr_from_proto(proto), node.op)
    except (TypeError, ValueError) as e:
        raise ValueError(f"NodeDef '{node.name}' ({node.op}): {e}") from None


def _split(text: str) -> tuple[str, int]:
    node, colon, index = text.partition(":")
    if colon and not index.isdigit():
        raise ValueError(f"'{text}' is not a valid tensor name")
    return node, int(index) if colon else 0


def _output_count(node: Any) -> int:
    record = registry.lookup(node.op)
    attrs = {k: attr_from_proto(v) for k, v in node.attr.items() if v.WhichOneof("value")}
    for attr in record.definition.attrs:
        if attr.name not in attrs and attr.default is not REQUIRED:
            attrs[attr.name] = attr.default
    return len(record.definition.output_dtypes(attrs))
