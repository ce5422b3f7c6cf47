"""Graphs as text, for tests and for people.

    x = Placeholder[dtype=float32]()
    c = Const[value=2]()
    y = Mul(x, c) after(z) on(/device:CPU:0)

One statement a line or between semicolons. `name = Op[attr=value, ...](inputs) after(controls) on(device)`.
An input is a node's name, `name:index`, or a number (a constant, named after its consumer). Attributes
at their defaults and those that follow from inputs are left out. What `format_graph` writes, `parse` reads
(but for large constants, and strings with semicolons).
"""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.graph.convert import to_array
from thalweg.graph.emitter import canonical_attr, emit
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import lookup

_STATEMENT = re.compile(
    r"(?P<name>[\w./>-]+)\s*=\s*(?P<op>\w+)(?:\[(?P<attrs>.*?)\])?\((?P<inputs>[^()]*)\)"
    r"(?:\s*after\((?P<after>[^()]*)\))?(?:\s*on\((?P<device>[^()]*)\))?\s*"
)


def parse(text: str) -> Graph:
    """The graph that a text describes. ValueError on bad text."""
    graph = Graph()
    with graph.as_default():
        for line in re.split(r"[;\n]", text):
            if line.strip():
                _statement(graph, line.strip())
    return graph


def _statement(graph: Graph, text: str) -> None:
    match = _STATEMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"cannot read {text!r}")
    record = lookup(match["op"])
    args = record.definition.inputs
    given = [i.strip() for i in match["inputs"].split(",") if i.strip()]
    values: list[Any] = []
    many = next((a for a in args if a.is_list), None)
    for arg in args:
        if arg is many:
            count = len(given) - (len(args) - args.index(arg) - 1)
            values.append([_input(graph, g) for g in given[:count]])
            given = given[count:]
        elif given:
            values.append(_input(graph, given.pop(0)))
    if given:
        raise ValueError(f"{text!r}: {record.name} takes {len(args)} inputs, not also {', '.join(given)}")
    attrs = {}
    for part in _attrs(match["attrs"] or ""):
        key, _, value = part.partition("=")
        attrs[key.strip()] = _attr_value(record, key.strip(), value.strip())
    if record.name == "Const":
        array = to_array(attrs["value"], attrs.get("dtype"))
        attrs = {"value": array, "dtype": dtypes.as_dtype(array.dtype)}
    after = [graph.get_operation_by_name(c.strip()) for c in (match["after"] or "").split(",") if c.strip()]
    with graph.device(match["device"]):
        emit.operation(record.name, *values, name=match["name"], **attrs)._add_control_inputs(after)


def _attrs(text: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for c in text:
        depth += (c in "[(") - (c in "])")
        if c == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += c
    return [p for p in [*parts, current] if p.strip()]


def _attr_value(record: Any, key: str, text: str) -> Any:
    attr = record.definition.attr_by_name.get(key)
    kind = attr.type if attr is not None else ""
    if kind == "type":
        return _dtype(text)
    if kind == "list(type)":
        return [_dtype(t.strip()) for t in text.strip("[]").split(",") if t.strip()]
    if kind == "shape":
        return shapes.parse(text)
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text
    return canonical_attr(attr, value, record.name) if attr is not None and kind != "tensor" else value


def _dtype(text: str) -> DType:
    try:
        return dtypes.as_dtype(text)
    except TypeError:
        raise ValueError(f"{text!r} is no element type") from None


def _input(graph: Graph, text: str) -> Any:
    if re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", text):
        return ast.literal_eval(text)
    return graph.get_tensor_by_name(text if ":" in text else text + ":0")


def format_graph(graph: Graph) -> str:
    """A graph as text, one node a line, in order of creation; small constants in place."""
    small = {op for op in graph._ops if _is_small_constant(op)}
    return "\n".join(format_op(op, small) for op in graph._ops if op not in small)


def _is_small_constant(op: Operation) -> bool:
    if op.type != "Const" or op._control_inputs or op._control_outputs:
        return False
    value = op._attrs["value"]
    plain = value.ndim == 0 and value.dtype in (np.int32, np.float32) and bool(np.isfinite(value))
    return plain and bool(op._outputs[0]._consumers)


#: the element types that constants get where none is written
_DEFAULTS = frozenset((dtypes.int32, dtypes.float32, dtypes.bool, dtypes.string))


def format_op(op: Operation, inline: set[Operation] | None = None) -> str:
    """One node as a statement. inline: constants written as numbers in their consumers."""
    definition = op._record.definition
    shown = []
    for attr in definition.attrs:
        value = op._attrs.get(attr.name)
        if attr.name in definition.inferred_attrs or (attr.has_default and value == attr.default):
            continue
        if op.type == "Const" and attr.name == "dtype" and value in _DEFAULTS:
            continue
        shown.append(f"{attr.name}={_show(attr.type, value)}")
    attrs = f"[{', '.join(shown)}]" if shown else ""
    inputs = ", ".join(_show_input(t, inline or set()) for t in op._inputs)
    after = f" after({', '.join(sorted(c._name for c in op._control_inputs))})" if op._control_inputs else ""
    device = f" on({op._device})" if op._device else ""
    return f"{op._name} = {op.type}{attrs}({inputs}){after}{device}"


def _show_input(tensor: Tensor, inline: set[Operation]) -> str:
    op = tensor._op
    if op in inline:
        return str(op._attrs["value"][()])
    return op._name if tensor._index == 0 else f"{op._name}:{tensor._index}"


def _show(kind: str, value: Any) -> str:
    if isinstance(value, DType):
        return value.name
    if kind == "shape":
        return shapes.format_shape(value)
    if isinstance(value, bytes):
        return repr(value.decode("utf-8", "replace"))
    if isinstance(value, np.ndarray):
        return str(value.tolist()) if value.size <= 8 else f"<{value.dtype}{list(value.shape)}>"
    if isinstance(value, tuple):
        return "[" + ", ".join(_show("", v) for v in value) + "]"
    return str(value)
