"""Functions of a graph's library: their signatures as ops, and their bodies as nodes to put into a graph.

A FunctionDef names its arguments and results; its nodes take "argument" (or "argument:i" of a list) and
"node:output:i". Source: TensorFlow's function.proto.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from thalweg.base import dtypes
from thalweg.base.errors import InvalidArgumentError, UnimplementedError
from thalweg.base.shape import Shape
from thalweg.graph import registry
from thalweg.graph.emitter import canonical_attr
from thalweg.graph.graph import Graph
from thalweg.graph.graphdef import attr_from_proto
from thalweg.graph.node_attrs import MAX_OUTPUTS, SHAPES, node_attrs
from thalweg.graph.opdef import REQUIRED, ArgDef, AttrDef, OpDef, expand_dtypes
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import NotDifferentiable, OpRecord
from thalweg.graph.shape_context import ShapeContext

#: what makes a graph of a SymbolicGradient node: set by thalweg.autodiff.calls
differentiators: list[Callable[..., tuple[Graph, list[Tensor], list[Tensor]]]] = []

#: an output of a node of the body: (its name, which); of an argument: ("", which)
Source = tuple[str, int]


_CONTROL = frozenset(("Switch", "RefSwitch", "Merge", "RefMerge", "Enter", "RefEnter"))

_ATTR_TYPES = frozenset(
    f"list({kind})" if is_list else kind
    for kind in ("int", "float", "bool", "string", "type", "shape", "tensor", "func")
    for is_list in (False, True)
)


def op_def_from_proto(proto: Any) -> OpDef:
    """An OpDef message as a definition. ValueError for a malformed one."""
    types = {a.name: a.type for a in proto.attr}

    def arg(message: Any) -> ArgDef:
        for name, wanted in (
            (message.type_attr, "type"),
            (message.type_list_attr, "list(type)"),
            (message.number_attr, "int"),
        ):
            if name and types.get(name) != wanted:
                raise ValueError(
                    f"argument '{message.name}' of '{proto.name}': no attr '{name}' of type {wanted}"
                )
        if bool(message.type) + bool(message.type_attr) + bool(message.type_list_attr) != 1:
            raise ValueError(f"argument '{message.name}' of '{proto.name}' must have one type")
        return ArgDef(
            message.name,
            dtype=dtypes.as_dtype(message.type).base_dtype if message.type else None,
            type_attr=message.type_attr or None,
            number_attr=message.number_attr or None,
            type_list_attr=message.type_list_attr or None,
            is_ref=message.is_ref,
        )

    def attr(message: Any) -> AttrDef:
        if message.type not in _ATTR_TYPES:
            raise ValueError(f"attr '{message.name}' of '{proto.name}' has the unknown type '{message.type}'")
        minimum = message.minimum if message.has_minimum else None
        result = AttrDef(message.name, message.type, minimum=minimum)
        if not message.HasField("default_value"):
            return result
        default = canonical_attr(result, attr_from_proto(message.default_value), proto.name)
        return AttrDef(message.name, message.type, default, minimum=minimum)

    return OpDef(
        proto.name,
        tuple(arg(m) for m in proto.input_arg),
        tuple(arg(m) for m in proto.output_arg),
        tuple(attr(m) for m in proto.attr),
        is_stateful=proto.is_stateful,
        summary=proto.summary,
    )


def find_record(functions: Mapping[str, Any], records: dict[str, OpRecord], op: str) -> OpRecord | None:
    """The record of an op type: a registered op, or a function of the library, called by its name.

    records: those made of functions before.
    """
    found = registry.find(op) or records.get(op)
    if found is None and op in functions:
        try:
            definition = op_def_from_proto(functions[op].signature)
        except (TypeError, ValueError) as e:
            raise ValueError(f"the signature of function '{op}' is malformed: {e}") from None
        found = records[op] = OpRecord(definition, _unknown_shapes, gradient=_gradient)
    return found


def function_records(graph: Graph) -> dict[str, OpRecord]:
    """The records made of a graph's functions."""
    records: dict[str, OpRecord] = graph._library_state.setdefault("function_records", {})
    return records


def function_gradients(graph: Graph) -> dict[str, str]:
    """For functions of a graph that have a gradient of their own: the function that it is."""
    gradients: dict[str, str] = graph._library_state.setdefault("function_gradients", {})
    return gradients


def add_functions(graph: Graph, functions: Iterable[Any]) -> None:
    """Adds FunctionDefs to a graph's library. ValueError for another function under a name that it has."""
    new: dict[str, Any] = {}
    for function in functions:
        name = function.signature.name
        known = graph._functions.get(name, new.get(name))
        if known is None:
            new[name] = function
        elif known != function:
            raise ValueError(
                f"Cannot add function '{name}' because a different function with the same name already "
                "exists."
            )
    graph._functions.update(new)


def _gradient(emit: Any, op: Operation, *grads: Any) -> Any:
    """The gradient of a call by name is that of any call."""
    function = registry.gradient_function("PartitionedCall")
    assert not isinstance(function, NotDifferentiable)
    return function(emit, op, *grads)


def _unknown_shapes(c: ShapeContext) -> list[Shape]:
    return [None] * len(c.op._outputs)


@dataclass(slots=True)
class BodyNode:
    """One node of a body, its attributes filled in."""

    name: str
    record: OpRecord
    attrs: dict[str, Any]
    device: str
    inputs: list[Source]
    controls: list[str]


@dataclass(slots=True)
class Body:
    """What a function does for certain attributes: nodes after their inputs, and what comes out."""

    name: str
    inputs: list[dtypes.DType]
    nodes: list[BodyNode]
    #: inputs from nodes that come later (the back edges of loops): (node, which input, source)
    later: list[tuple[str, int, Source]]
    results: list[Source]
    #: nodes that run whether or not their results are asked for
    effects: list[str]
    #: whether it holds nodes of control flow, so that its nodes aren't all alive together
    dynamic: bool = False
    #: for results that are an argument as it came in: which
    passed_on: dict[int, int] = field(default_factory=dict)


def bad_function(name: str, what: str) -> InvalidArgumentError:
    """The error for a function that can't be used."""
    return InvalidArgumentError(None, None, f"function '{name}': {what}")


class BodyReader:
    """Reads the bodies of a library's functions."""

    def __init__(self, functions: Mapping[str, Any], records: dict[str, OpRecord]) -> None:
        self._functions = functions
        self._records = records
        self._known: dict[tuple[str, bytes], Body] = {}
        self._changes: dict[str, bool] = {}

    def record(self, op: str) -> OpRecord | None:
        """The record of an op type or function, or None."""
        return find_record(self._functions, self._records, op)

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def read(self, name: str, attrs: Mapping[str, Any]) -> Body:
        """The body of a function; attrs: AttrValue messages, for the attributes of its signature.

        Errors: InvalidArgumentError for a malformed function; UnimplementedError names all its unknown ops.
        """
        parts = [f"{k}\0".encode() + attrs[k].SerializeToString(deterministic=True) for k in sorted(attrs)]
        key = name, b"\0".join(parts)
        body = self._known.get(key)
        if body is None:
            function = self._functions.get(name)
            if function is None:
                raise InvalidArgumentError(None, None, f"the graph's library has no function '{name}'")
            try:
                body = _Reading(function, attrs, self).body()
            except (KeyError, TypeError, ValueError) as e:
                raise bad_function(name, str(e)) from None
            self._known[key] = body
        return body

    def may_change(self, node: Any) -> bool:
        """Whether a node (a NodeDef) may change something outside of itself when it runs."""
        called = self._called(node)
        if called:
            return any(self.changes(name) for name in called)
        record = self.record(node.op)
        if record is None or record.kernel is None:
            return True
        return bool(record.kernel.writes) or record.kernel.kind.value in ("stateful", "async")

    def changes(self, name: str) -> bool:
        """Whether a function may change something when it is called."""
        if name not in self._changes:
            stack, seen, found = [name], {name}, False
            while stack:  # all that it calls, directly or not
                function = self._functions.get(stack.pop())
                for node in () if function is None else function.node_def:
                    called = self._called(node)
                    found = found or (not called and self.may_change(node))
                    stack += [c for c in called if c not in seen]
                    seen.update(called)
            self._changes[name] = found
        return self._changes[name]

    def _called(self, node: Any) -> list[str]:
        """The functions that a node calls."""
        names = [v.func.name for v in node.attr.values() if v.WhichOneof("value") == "func"]
        names += [f.name for v in node.attr.values() for f in v.list.func]
        return [*names, node.op] if node.op in self._functions else names


class _Reading:
    """One function for certain attributes."""

    def __init__(self, function: Any, attrs: Mapping[str, Any], reader: BodyReader) -> None:
        self.reader = reader
        self.function = function
        self.name = function.signature.name
        self.attrs = attrs
        self.definition = op_def_from_proto(function.signature)
        self.values = self._signature_values()
        self.protos = {n.name: n for n in function.node_def}
        if len(self.protos) != len(function.node_def):
            raise ValueError("two nodes share a name")
        self.nodes: dict[str, BodyNode] = {}
        self.arguments = self._argument_names()

    def _signature_values(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for attr in self.definition.attrs:
            if attr.name in self.attrs:
                value = attr_from_proto(self.attrs[attr.name])
                values[attr.name] = canonical_attr(attr, value, self.name)
            elif attr.default is not REQUIRED:
                values[attr.name] = attr.default
        for arg in (*self.definition.inputs, *self.definition.outputs):
            if arg.number_attr and not 0 <= values[arg.number_attr] <= MAX_OUTPUTS:
                raise ValueError(f"{values[arg.number_attr]} tensors '{arg.name}' are too many")
        return values

    def _argument_names(self) -> dict[str, int]:
        """The first position of each argument, by name; of elements of lists by "name:i"."""
        names: dict[str, int] = {}
        at = 0
        for arg in self.definition.inputs:
            n = len(expand_dtypes((arg,), self.values))
            names[arg.name] = at
            names.update((f"{arg.name}:{i}", at + i) for i in range(n))
            at += n
        return names

    def body(self) -> Body:
        """The body, cut down to what its results and effects need."""
        self._check_ops()
        roots = [self.function.ret[a.name] for a in self.definition.outputs if a.name in self.function.ret]
        if len(roots) != len(self.definition.outputs):
            missing = [a.name for a in self.definition.outputs if a.name not in self.function.ret]
            raise ValueError(f"no result is given for {', '.join(missing)}")
        effects = self._effects()
        order, later = self._sorted([_node_name(r) for r in roots] + effects)
        result = Body(self.name, self.definition.input_dtypes(self.values), [], [], [], effects)
        for name in order:
            result.nodes.append(self._node(self.protos[name]))
        for name, i, text in later:
            self.nodes[name].inputs[i] = self._source(text)
            result.later.append((name, i, self.nodes[name].inputs[i]))
        for arg, text in zip(self.definition.outputs, roots, strict=True):
            result.results.extend(self._result(arg, text))
        expected = len(self.definition.output_dtypes(self.values))
        if len(result.results) != expected:
            raise ValueError(f"{expected} results are expected, {len(result.results)} given")
        result.dynamic = any(n.record.name in _CONTROL for n in result.nodes)
        result.passed_on = {i: s[1] for i, s in enumerate(result.results) if not s[0]}
        return result

    def _check_ops(self) -> None:
        unknown = sorted({n.op for n in self.function.node_def if self.reader.record(n.op) is None})
        if unknown:
            raise UnimplementedError(
                None,
                None,
                f"function '{self.name}' uses ops that are not built in thalweg: {', '.join(unknown)}",
            )

    def _effects(self) -> list[str]:
        """The nodes that must run: those that the function names, or all that may change something."""
        if self.function.control_ret:
            named = list(self.function.control_ret.values())
            for name in named:
                if name not in self.protos:
                    raise ValueError(f"its control output '{name}' is not a node")
            return [n for n in named if self.reader.may_change(self.protos[n])]
        return [n.name for n in self.function.node_def if self.reader.may_change(n)]

    def _sorted(self, roots: list[str]) -> tuple[list[str], list[tuple[str, int, str]]]:
        """The nodes that the roots need, each after its inputs; and back edges (into a Merge)."""
        order: list[str] = []
        later: list[tuple[str, int, str]] = []
        state: dict[str, int] = {}
        for root in roots:  # grows: the rest of a loop hangs on its back edges
            stack = [(root, False)]
            while stack:
                name, done = stack.pop()
                if done:
                    state[name] = 2
                    order.append(name)
                    continue
                if name not in self.protos or state.get(name):
                    continue  # an argument, or seen
                state[name] = 1
                stack.append((name, True))
                node = self.protos[name]
                for i, text in enumerate(node.input):
                    source = self._known_name(node, text)
                    closes = source and self.protos[source].op == "NextIteration" and not text.startswith("^")
                    if node.op == "Merge" and closes:
                        later.append((name, i, text))
                        roots.append(source)
                    elif source and state.get(source) == 1:
                        raise ValueError(f"it has a cycle through '{name}' and '{source}'")
                    elif source and not state.get(source):
                        stack.append((source, False))
        return order, later

    def _known_name(self, node: Any, text: str) -> str:
        """The node that an input names; "" for an argument. ValueError where it names nothing."""
        source = _node_name(text)
        if source in self.protos and not (text in self.arguments and ":" not in text):
            return source
        if text.lstrip("^") in self.arguments or source in self.arguments:
            return ""
        raise ValueError(f"node '{node.name}': Unknown input node '{text}'")

    def _node(self, proto: Any) -> BodyNode:
        record = self.reader.record(proto.op)
        assert record is not None
        attrs = node_attrs(proto, record.definition, self._filled_in(proto))
        data = [t for t in proto.input if not t.startswith("^")]
        expected = record.definition.input_dtypes(attrs)
        if len(data) != len(expected):
            raise ValueError(
                f"NodeDef '{proto.name}' ({proto.op}) expects {len(expected)} inputs, has {len(data)}: {data}"
            )
        waiting = [t[1:] for t in proto.input if t.startswith("^") and t[1:] in self.protos]
        node = BodyNode(proto.name, record, attrs, proto.device, [], waiting)
        self.nodes[proto.name] = node
        for text in data:
            source = _node_name(text)
            later = text not in self.arguments and source in self.protos and source not in self.nodes
            node.inputs.append(("", -1) if later else self._source(text))
        return node

    def _filled_in(self, proto: Any) -> dict[str, Any]:
        """A node's attributes, with those of the call in place of placeholders."""
        given = {}
        for key, value in proto.attr.items():
            if key in (SHAPES, "_class"):
                continue
            if value.WhichOneof("value") == "placeholder":
                if value.placeholder not in self.attrs:
                    raise ValueError(f"node '{proto.name}': the call gives no attr '{value.placeholder}'")
                value = self.attrs[value.placeholder]
            elif value.WhichOneof("value") == "func" and any(
                v.WhichOneof("value") == "placeholder" for v in value.func.attr.values()
            ):
                value = type(value).FromString(value.SerializeToString())
                for k, v in list(value.func.attr.items()):
                    if v.WhichOneof("value") == "placeholder" and v.placeholder in self.attrs:
                        value.func.attr[k].CopyFrom(self.attrs[v.placeholder])
            given[key] = value
        return given

    def _source(self, text: str) -> Source:
        """The tensor that "argument", "argument:i" or "node:output:i" names."""
        if text in self.arguments:
            return "", self.arguments[text]
        name, _, rest = text.partition(":")
        node = self.nodes.get(name)
        if node is None:
            raise ValueError(f"'{text}' names neither an argument nor an output of a node")
        output, _, index = rest.partition(":")
        at = 0
        for arg in node.record.definition.outputs:
            n = len(expand_dtypes((arg,), node.attrs))
            if arg.name == output:
                i = int(index or "0")
                if not 0 <= i < n:
                    raise ValueError(f"'{text}': the output '{output}' has {n} tensors")
                return name, at + i
            at += n
        if not rest or rest.isdigit():  # as in a GraphDef
            i = int(rest or "0")
            if i < at:
                return name, i
        raise ValueError(f"'{text}': {node.record.name} '{name}' has no such output")

    def _result(self, arg: ArgDef, text: str) -> list[Source]:
        count = len(expand_dtypes((arg,), self.values))
        first = self._source(text)
        return [(first[0], first[1] + i) for i in range(count)] if arg.is_list else [first]


def _node_name(text: str) -> str:
    return text.lstrip("^").partition(":")[0]
