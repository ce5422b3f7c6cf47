"""Op definitions, in TensorFlow's terms, and the small language they are written in.

An op definition names typed inputs and outputs and typed attributes. In source they are text:

    inputs  = "values: N * T, axis: Tidx"          N inputs of type T, then one of type Tidx
    outputs = "output_ref: Ref(T)"                  a reference to a variable
    attrs   = "N: int >= 2, T: type, Tidx: {int32, int64} = int32, padding: {'SAME', 'VALID'}"

A type on the right of an input is an attribute's name (of type `type` or `list(type)`) or a dtype's name.
Source: TensorFlow's OpDef (tensorflow/core/framework/op_def.proto) and the white paper, section 2.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base.dtypes import DType

REQUIRED = type("Required", (), {"__repr__": lambda self: "REQUIRED"})()


@dataclass(frozen=True, slots=True)
class ArgDef:
    """One input or output of an op. Exactly one of dtype, type_attr and type_list_attr is set."""

    name: str
    dtype: DType | None = None
    type_attr: str | None = None
    number_attr: str | None = None
    type_list_attr: str | None = None
    is_ref: bool = False

    @property
    def is_list(self) -> bool:
        """Whether this argument stands for a list of tensors."""
        return self.number_attr is not None or self.type_list_attr is not None


@dataclass(frozen=True, slots=True)
class AttrDef:
    """One attribute: its type ("int", "list(shape)", ...), default, allowed values, minimum."""

    name: str
    type: str
    default: Any = REQUIRED
    allowed: frozenset[Any] | None = None
    minimum: int | None = None
    allowed_list: tuple[Any, ...] = ()

    @property
    def has_default(self) -> bool:
        return self.default is not REQUIRED


class OpDef:
    """The definition of one type of operation."""

    __slots__ = (
        "_input_names",
        "allows_uninitialized_input",
        "attr_by_name",
        "attrs",
        "inferred_attrs",
        "inputs",
        "is_commutative",
        "is_stateful",
        "name",
        "outputs",
        "summary",
    )

    def __init__(
        self,
        name: str,
        inputs: tuple[ArgDef, ...],
        outputs: tuple[ArgDef, ...],
        attrs: tuple[AttrDef, ...],
        *,
        is_stateful: bool = False,
        is_commutative: bool = False,
        allows_uninitialized_input: bool = False,
        summary: str = "",
    ) -> None:
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self.attrs = attrs
        self.attr_by_name = {a.name: a for a in attrs}
        self.is_stateful = is_stateful
        self.is_commutative = is_commutative
        self.allows_uninitialized_input = allows_uninitialized_input
        self.summary = summary
        inferred: set[str] = set()
        for arg in inputs:
            inferred.update(a for a in (arg.type_attr, arg.number_attr, arg.type_list_attr) if a)
        #: attributes whose values follow from the inputs
        self.inferred_attrs = frozenset(inferred)
        self._input_names = None if any(a.is_list for a in inputs) else [a.name for a in inputs]

    def __repr__(self) -> str:
        return f"<OpDef {self.name}>"

    def output_dtypes(self, attrs: dict[str, Any]) -> list[DType]:
        """The dtype of every output tensor, for these attribute values."""
        return expand_dtypes(self.outputs, attrs)

    def input_dtypes(self, attrs: dict[str, Any]) -> list[DType]:
        """The dtype of every input tensor, for these attribute values."""
        return expand_dtypes(self.inputs, attrs)

    def input_names(self, attrs: dict[str, Any]) -> list[str]:
        """The argument's name for every input tensor, numbered ("values.0") in lists. Not to be changed."""
        if self._input_names is not None:
            return self._input_names
        names: list[str] = []
        for arg in self.inputs:
            if arg.number_attr is not None:
                names.extend(f"{arg.name}.{i}" for i in range(attrs[arg.number_attr]))
            elif arg.type_list_attr is not None:
                names.extend(f"{arg.name}.{i}" for i in range(len(attrs[arg.type_list_attr])))
            else:
                names.append(arg.name)
        return names


def expand_dtypes(args: tuple[ArgDef, ...], attrs: dict[str, Any]) -> list[DType]:
    """One dtype a tensor, lists expanded."""
    result: list[Any] = []
    for arg in args:
        if arg.type_list_attr is not None:
            result.extend(attrs[arg.type_list_attr])
            continue
        dtype: Any = arg.dtype if arg.type_attr is None else attrs[arg.type_attr]
        if arg.is_ref:
            dtype = dtype._as_ref
        if arg.number_attr is not None:
            result.extend([dtype] * attrs[arg.number_attr])
        else:
            result.append(dtype)
    return result


def parse(
    name: str,
    inputs: str = "",
    outputs: str = "",
    attrs: str = "",
    *,
    is_stateful: bool = False,
    is_commutative: bool = False,
    allows_uninitialized_input: bool = False,
    summary: str = "",
) -> OpDef:
    """The definition that the texts describe (see the head of this file). ValueError on bad text."""
    attr_defs = tuple(_parse_attr(name, part) for part in _split(attrs))
    types = {a.name: a.type for a in attr_defs}
    return OpDef(
        name,
        tuple(_parse_arg(name, part, types) for part in _split(inputs)),
        tuple(_parse_arg(name, part, types) for part in _split(outputs)),
        attr_defs,
        is_stateful=is_stateful,
        is_commutative=is_commutative,
        allows_uninitialized_input=allows_uninitialized_input,
        summary=summary,
    )


def _split(text: str) -> list[str]:
    """The comma-separated parts of text, commas inside brackets and quotes aside."""
    parts, depth, quote, current = [], 0, "", ""
    for c in text:
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "{[(":
            depth += 1
        elif c in "}])":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(current.strip())
            current = ""
            continue
        current += c
    if current.strip():
        parts.append(current.strip())
    return parts


def _parse_arg(op: str, text: str, attr_types: dict[str, str]) -> ArgDef:
    match = re.fullmatch(r"(\w+)\s*:\s*(?:(\w+)\s*\*\s*)?(Ref\()?(\w+)\)?", text)
    if not match:
        raise ValueError(f"op {op}: cannot read the argument {text!r}")
    name, number, ref, kind = match.groups()
    is_ref = ref is not None
    if attr_types.get(kind) == "list(type)":
        return ArgDef(name, type_list_attr=kind, is_ref=is_ref)
    if attr_types.get(kind) == "type":
        return ArgDef(name, type_attr=kind, number_attr=number, is_ref=is_ref)
    return ArgDef(name, dtype=dtypes.from_def_name(kind), number_attr=number, is_ref=is_ref)


def _parse_attr(op: str, text: str) -> AttrDef:
    match = re.fullmatch(
        r"(?P<name>\w+)\s*:\s*"
        r"(?:(?P<list>list\()?(?P<set>\{[^}]*\})|(?P<type>list\(\w+\)|\w+))\)?"
        r"(?:\s*>=\s*(?P<min>-?\d+))?(?:\s*=\s*(?P<default>.+))?",
        text,
        re.DOTALL,
    )
    if not match:
        raise ValueError(f"op {op}: cannot read the attribute {text!r}")
    name, kind, allowed = match["name"], match["type"], None
    allowed_list: tuple[Any, ...] = ()
    if match["set"]:
        items = [i.strip() for i in match["set"][1:-1].split(",") if i.strip()]
        strings = items[0][0] in "'\""
        allowed_list = tuple(
            ast.literal_eval(i).encode() if strings else dtypes.from_def_name(i) for i in items
        )
        allowed = frozenset(allowed_list)
        kind = "string" if strings else "type"
        if match["list"]:
            kind = f"list({kind})"
    default = REQUIRED if match["default"] is None else _parse_default(kind, match["default"].strip())
    minimum = int(match["min"]) if match["min"] else None
    return AttrDef(name, kind, default, allowed, minimum, allowed_list)


def _parse_default(kind: str, text: str) -> Any:
    if kind == "type":
        return dtypes.from_def_name(text)
    if kind == "list(type)":
        return tuple(dtypes.from_def_name(t) for t in text.strip("[]").split(",") if t.strip())
    value = ast.literal_eval(text)
    if kind == "tensor":
        ((element_type, elements),) = value.items()  # {"uint8": [255, 0]}
        return np.array(elements, element_type)
    if kind == "string":
        return value.encode()
    if kind == "list(string)":
        return tuple(v.encode() for v in value)
    if kind == "float":
        return float(value)
    if kind.startswith("list("):
        return tuple(value)
    return value
