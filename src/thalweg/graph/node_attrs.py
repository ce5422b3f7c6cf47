"""The attributes of a NodeDef as canonical values (see Operation), checked against the op's definition."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.graph.emitter import canonical_attr
from thalweg.graph.graphdef import attr_from_proto
from thalweg.graph.opdef import REQUIRED, AttrDef, OpDef

_log = logging.getLogger("thalweg")

#: the field of AttrValue that holds an attribute of each type
_FIELDS = {
    "int": "i", "float": "f", "bool": "b", "string": "s",
    "type": "type", "shape": "shape", "tensor": "tensor", "func": "func",
}  # fmt: skip

#: attributes that say nothing to the node: what a producer knew of its outputs
SHAPES = "_output_shapes"


def node_attrs(node: Any, definition: OpDef, given: Mapping[str, Any]) -> dict[str, Any]:
    """All attributes of a node: those given, and defaults for those that are not. ValueError names the node.

    given: AttrValue messages by name. Those that the definition doesn't have come from a newer producer: they
    are ignored with a warning. Private ones ("_class") are kept.
    """
    attrs: dict[str, Any] = {}
    for attr in definition.attrs:
        if attr.name in given:
            attrs[attr.name] = _value(node, attr, given[attr.name])
        elif attr.default is not REQUIRED:
            attrs[attr.name] = attr.default
        else:
            raise ValueError(f"NodeDef '{node.name}' ({node.op}) is missing attr '{attr.name}'")
    _check_numbers(node, definition, attrs)
    if node.op == "Const" and given["value"].tensor.dtype != given["dtype"].type:
        raise ValueError(
            f"NodeDef '{node.name}' (Const): its value is not of type {attrs['dtype'].name}, as its attr "
            "'dtype' says"
        )
    if len(given) == len(attrs):
        if all(key in attrs for key in given):
            return attrs
    for key in sorted(given):
        if key in attrs or key == SHAPES:
            continue
        if key.startswith("_"):
            attrs[key] = _private(node, key, given[key])
        else:
            _log.warning(
                "NodeDef '%s' has the attr '%s', which the definition of %s hasn't: it is ignored. The "
                "program that wrote the graph may be newer.", node.name, key, node.op,
            )  # fmt: skip
    return attrs


#: outputs of one node; a number in a file must not make more objects than its bytes could
MAX_OUTPUTS = 1 << 20


def _check_numbers(node: Any, definition: OpDef, attrs: dict[str, Any]) -> None:
    """ValueError where a list of inputs or outputs would be longer than can be."""
    for arg in definition.inputs:
        if arg.number_attr is not None and not 0 <= attrs[arg.number_attr] <= len(node.input):
            raise ValueError(
                f"NodeDef '{node.name}' ({node.op}) expects {attrs[arg.number_attr]} tensors for "
                f"'{arg.name}', but has {len(node.input)} inputs"
            )
    for arg in definition.outputs:
        if arg.number_attr is not None and not 0 <= attrs[arg.number_attr] <= MAX_OUTPUTS:
            raise ValueError(
                f"NodeDef '{node.name}' ({node.op}): {attrs[arg.number_attr]} outputs '{arg.name}' are too "
                "many"
            )


def _private(node: Any, key: str, proto: Any) -> Any:
    try:
        return attr_from_proto(proto)
    except (TypeError, ValueError) as e:
        raise ValueError(f"NodeDef '{node.name}' ({node.op}): attr '{key}': {e}") from None


#: types by their numbers in files; references aside
_dtypes = {
    d.as_datatype_enum: d for d in vars(dtypes).values() if isinstance(d, DType) and not d.is_ref_dtype
}


def _value(node: Any, attr: AttrDef, proto: Any) -> Any:
    """The canonical value of an attribute, checked against its definition."""
    if attr.type == "type" and proto.WhichOneof("value") == "type":  # most of them
        dtype = _dtypes.get(proto.type)
        if dtype is not None and (attr.allowed is None or dtype in attr.allowed):
            return dtype
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
