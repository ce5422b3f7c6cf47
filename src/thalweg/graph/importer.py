"""import_graph_def: nodes of a GraphDef as nodes of the default graph."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from tensorboard.compat.proto import graph_pb2

from thalweg.base import dtypes, origin
from thalweg.base import shape as shapes
from thalweg.graph.convert import get_default_graph
from thalweg.graph.functions import add_functions, find_record, function_gradients, function_records
from thalweg.graph.graph import PRODUCER_VERSION, Graph
from thalweg.graph.graphdef import attr_from_proto, shape_from_proto
from thalweg.graph.node_attrs import SHAPES, node_attrs
from thalweg.graph.opdef import REQUIRED
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import OpRecord
from thalweg.graph.subgraph import NEXT_ITERATION

MERGE = ("Merge", "RefMerge")


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
    producer_op_list: the OpList of the program that wrote graph_def: attributes that it knows and thalweg
        doesn't are dropped where they have its default.
    Where a node's name is taken, it gets another. Functions go into the graph's library.
    Errors: TypeError for a wrong kind of argument; ValueError for nodes that don't fit together, unknown
    ops (all named at once), keys of input_map and return_elements that name nothing, a graph that needs a
    newer program. The graph is then as before.
    """
    del op_dict
    if not isinstance(graph_def, graph_pb2.GraphDef):
        raise TypeError("Argument `graph_def` must be a GraphDef proto.")
    mapping = dict(input_map or {})
    if not all(isinstance(k, str | bytes) for k in mapping):
        raise TypeError("Argument `input_map` must be a dictionary mapping strings to Tensor objects.")
    graph = get_default_graph()
    prefix = "import" if name is None else name
    with graph.name_scope(prefix) as scope, _no_collection():
        return _Import(graph, graph_def, mapping, scope, _defaults(producer_op_list)).run(return_elements)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without the garbage collector: it would look through all nodes again and again, and find none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _defaults(producer_op_list: Any) -> dict[str, dict[str, Any]]:
    """The defaults of attributes that a producer knows, by op."""
    if producer_op_list is None:
        return {}
    return {
        op.name: {a.name: a.default_value for a in op.attr if a.HasField("default_value")}
        for op in producer_op_list.op
    }


class _Import:
    """One import: the nodes by name, what replaces which, and what has been added."""

    def __init__(
        self,
        graph: Graph,
        graph_def: Any,
        mapping: dict[Any, Any],
        scope: str,
        defaults: dict[str, dict[str, Any]],
    ) -> None:
        self.graph = graph
        self.defaults = defaults
        self.nodes = list(graph_def.node)
        self.by_name = {n.name: n for n in self.nodes}
        self.scope = scope
        self.mapping: dict[tuple[str, int], Tensor] = {}
        self.mapped_controls: dict[str, Operation] = {}
        self.ops: dict[str, Operation] = {}
        self.later: list[tuple[Operation, int, str, int]] = []
        self.colocated: list[Operation] = []
        self.functions: list[Any] = list(graph_def.library.function)
        self.gradients = {g.function_name: g.gradient_func for g in graph_def.library.gradient}
        self.library = {**graph._functions, **{f.signature.name: f for f in self.functions}}
        self.function_records: dict[str, OpRecord] = {}
        self.versions = graph_def.versions
        self.frames = origin.capture()
        self._check()
        self._map(mapping)

    def _record(self, op: str) -> OpRecord:
        record = find_record(self.library, self.function_records, op)
        assert record is not None  # _check has looked
        return record

    def _check(self) -> None:
        if self.versions.min_consumer > PRODUCER_VERSION:
            raise ValueError(
                f"GraphDef min consumer version {self.versions.min_consumer} above current version "
                f"{PRODUCER_VERSION}: the graph needs a newer program"
            )
        if PRODUCER_VERSION in self.versions.bad_consumers:
            raise ValueError(f"GraphDef disallows consumer version {PRODUCER_VERSION}")
        for name, count in Counter(n.name for n in self.nodes).items():
            if count > 1:
                raise ValueError(f"Node '{name}' is not unique in the GraphDef")
            if not name:
                raise ValueError("Node '': a node must have a name")
        used = {n.op for n in self.nodes}
        unknown = sorted(op for op in used if find_record(self.library, self.function_records, op) is None)
        if unknown:
            raise ValueError(
                f"Op type not registered: {', '.join(unknown)}: the graph uses ops that are not built"
            )

    def _map(self, mapping: dict[Any, Any]) -> None:
        for key, value in mapping.items():
            key = key.decode() if isinstance(key, bytes) else key
            if key.startswith("^"):
                op = getattr(value, "op", value)
                if not any(key in n.input for n in self.nodes):
                    self._known(key[1:], key)
                self.mapped_controls[key[1:]] = op
                continue
            node, index = _split(key)
            if not isinstance(value, Tensor):
                value = self.graph.as_graph_element(value, allow_operation=False)
            if node not in self.by_name and self._is_input(node, index):
                self.mapping[node, index] = value  # an input that the graph doesn't hold itself
                continue
            definition = self._known(node, key)
            count = _output_count(definition, self._record(definition.op))
            if index >= count:
                raise ValueError(
                    f"Attempted to map inputs that were not found in graph_def: [{key}]: '{node}' has "
                    f"{count} outputs"
                )
            self.mapping[node, index] = value
            if count == 1:
                self.mapped_controls.setdefault(node, value.op)

    def _is_input(self, node: str, index: int) -> bool:
        """Whether a node of the GraphDef takes this tensor."""
        names = {f"{node}:{index}", node} if index == 0 else {f"{node}:{index}"}
        return any(text in names for n in self.nodes for text in n.input)

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
                self._close(op, i, source, index)
            for op in self.colocated:
                op._attrs["_class"] = self._rename(op, op._attrs["_class"])
            elements = None if return_elements is None else [self._element(e) for e in return_elements]
            add_functions(self.graph, self.functions)
            function_gradients(self.graph).update(self.gradients)
        except Exception:
            self.graph._take_back(list(self.ops.values()))
            raise
        known = function_records(self.graph)
        for name, record in self.function_records.items():
            known.setdefault(name, record)
        producer, consumer = self.graph._graph_def_versions
        self.graph._graph_def_versions = (
            min(producer, self.versions.producer),
            max(consumer, self.versions.min_consumer),
        )
        return elements

    def _close(self, op: Operation, i: int, source: str, index: int) -> None:
        """Connects the back edge of a loop."""
        outputs = self.ops[source]._outputs
        if index >= len(outputs):
            raise ValueError(
                f"Node '{op._name}': Connecting to invalid output {index} of source node {source} which has "
                f"{len(outputs)} outputs"
            )
        wanted = op._inputs[i]._dtype.base_dtype
        if outputs[index]._dtype.base_dtype != wanted:
            raise ValueError(
                f"Input {i} of node '{op._name}' was passed {outputs[index]._dtype.name} from "
                f"{outputs[index].name}, incompatible with expected {wanted.name}"
            )
        op._update_input(i, outputs[index])

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
                    if source not in self.by_name and self._is_mapped(text):
                        continue
                    if source not in self.by_name:
                        raise ValueError(f"Node '{node.name}': Unknown input node '{text}'")
                    other = self.by_name[source]
                    if node.op in MERGE and other.op in NEXT_ITERATION and not text.startswith("^"):
                        continue
                    if state.get(source) == 1:
                        raise ValueError(f"The GraphDef has a cycle through '{node.name}' and '{source}'")
                    if not state.get(source):
                        stack.append((other, False))
        return order

    def _is_mapped(self, text: str) -> bool:
        return text[1:] in self.mapped_controls if text.startswith("^") else _split(text) in self.mapping

    def _add(self, node: Any) -> None:
        record = self._record(node.op)
        attrs = node_attrs(node, record.definition, self._given(node, record))
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
            else:
                inputs.append(tensor)
        if back:
            if not inputs:
                raise ValueError(f"Node '{node.name}' ({node.op}) takes next iterations only")
            for i, _, _ in back:  # each holds the place of a back edge until its node is there
                inputs.insert(i, inputs[0])
        controls = [self._control(i[1:]) for i in node.input if i.startswith("^")]
        name = self.scope + node.name
        name = node.name if name in self.graph._by_name else name + "/"  # made unique only where it is taken
        with self.graph.device(node.device) if node.device else nullcontext():
            op = self.graph.add_node(record, inputs, attrs, name, None, controls, self.frames)
        self.ops[node.name] = op
        if back:
            op._outputs[0]._shape = None  # the shape may change from iteration to iteration
            self.later.extend((op, *b) for b in back)
        if SHAPES in node.attr:
            self._take_shapes(op, node.attr[SHAPES].list.shape)
        if "_class" in attrs:
            self.colocated.append(op)

    def _given(self, node: Any, record: OpRecord) -> Mapping[str, Any]:
        """The attributes of a node, without those that only its producer knows and left at their default."""
        given: Mapping[str, Any] = node.attr
        defaults = self.defaults.get(node.op)
        if not defaults:
            return given
        known = record.definition.attr_by_name
        return {k: v for k, v in given.items() if k in known or k not in defaults or v != defaults[k]}

    def _take_shapes(self, op: Operation, told: Sequence[Any]) -> None:
        """Merges shapes that the producer wrote down for a node's outputs."""
        if len(told) > len(op._outputs):
            raise ValueError(
                f"Node '{op._name}' has {len(op._outputs)} outputs but the _output_shapes attribute has "
                f"shapes for {len(told)} outputs"
            )
        for i, (tensor, proto) in enumerate(zip(op._outputs, told, strict=False)):
            try:
                tensor._shape = shapes.merge(tensor._shape, shape_from_proto(proto))
            except ValueError as e:
                raise ValueError(
                    f"Node '{op._name}' has an _output_shapes attribute inconsistent with the GraphDef for "
                    f"output #{i}: {e}"
                ) from None

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

    def _rename(self, op: Operation, value: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Colocation groups name nodes: those of the import go by the names that they got."""
        names = [v[5:].decode(errors="replace") for v in value if v.startswith(b"loc:@")]
        kept = [v for v in value if not v.startswith(b"loc:@")]
        for name in names:
            if name not in self.ops:
                raise ValueError(f"Node '{op._name}' expects to be colocated with unknown node '{name}'")
        return tuple([*kept, *(b"loc:@" + self.ops[n]._name.encode() for n in names)])

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


def _split(text: str) -> tuple[str, int]:
    node, colon, index = text.partition(":")
    if colon and not index.isdigit():
        raise ValueError(f"'{text}' is not a valid tensor name")
    return node, int(index) if colon else 0


def _output_count(node: Any, record: OpRecord) -> int:
    attrs = {k: attr_from_proto(v) for k, v in node.attr.items() if v.WhichOneof("value")}
    for attr in record.definition.attrs:
        if attr.name not in attrs and attr.default is not REQUIRED:
            attrs[attr.name] = attr.default
    return len(record.definition.output_dtypes(attrs))
