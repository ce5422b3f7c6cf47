"""Every op defined agrees with TensorFlow's definition: names, order, types, attributes, defaults."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

import thalweg.autodiff.calls
import thalweg.autodiff.gradients
import thalweg.ops  # noqa: F401
from thalweg.graph.opdef import REQUIRED, ArgDef, AttrDef
from thalweg.graph.registry import NotDifferentiable, all_records, gradient_function

#: TensorFlow's definitions of the ops that thalweg has (tests/golden/record_opdefs.py)
DEFINITIONS = json.loads((pathlib.Path(__file__).parents[1] / "golden" / "data" / "opdefs.json").read_text())

#: ops of thalweg's own, with the reason for each
OURS = {
    **dict.fromkeys(
        (
            "_ArrayAccumulate", "_ArrayAccumulateRows", "_ArrayGather", "_ArrayNew", "_ArrayNothing", "_ArrayRead",
            "_ArrayScatter", "_ArraySize", "_ArrayWrite",
        ),
        "a TensorArray of a compiled loop, as a plain tensor",
    ),
    "_Cluster": "a slice of the graph that runs as one executable",
    "_CompiledCond": "a whole conditional inside a cluster",
    "_CompiledLoop": "a whole loop inside a cluster",
    "_InitializedValue": "a variable's value, or its initial value where it has none: no control flow needed",
    "_InitializedResourceValue": "the same for resource variables",
    "_LinearRecurrence": "the gradient of a running product without dividing",
    "_Shift": "the gradient of a running product without dividing",
    **{
        f"_Array{what}": "a TensorArray or stack inside a compiled loop, as one array"
        for what in ("Accumulate", "AccumulateRows", "Gather", "New", "Nothing", "Read", "Scatter", "Size", "Write")
    },
}
RECORDS = all_records()


def plain_arg(arg: ArgDef) -> dict[str, Any]:
    result: dict[str, Any] = {"name": arg.name}
    if arg.dtype is not None:
        result["type"] = arg.dtype.name
    for key in ("type_attr", "number_attr", "type_list_attr"):
        if getattr(arg, key):
            result[key] = getattr(arg, key)
    if arg.is_ref:
        result["is_ref"] = True
    return result


def plain_value(kind: str, value: Any) -> Any:
    if kind.startswith("list("):
        return [plain_value(kind[5:-1], v) for v in value]
    if kind == "type":
        return value.name
    if kind == "string":
        return value.decode()
    if kind == "tensor":
        return {"dtype": value.dtype.name, "value": value.tolist()}
    if kind == "shape":
        return {"unknown_rank": True} if value is None else {"dim": [-1 if d is None else d for d in value]}
    return value


def plain_attr(attr: AttrDef) -> dict[str, Any]:
    result: dict[str, Any] = {"name": attr.name, "type": attr.type}
    if attr.default is not REQUIRED:
        result["default"] = plain_value(attr.type, attr.default)
    if attr.minimum is not None:
        result["minimum"] = attr.minimum
    if attr.allowed is not None:
        kind = attr.type.removeprefix("list(").rstrip(")")
        result["allowed"] = sorted(plain_value(kind, v) for v in attr.allowed)
    return result


def normal(attr: dict[str, Any]) -> dict[str, Any]:
    attr = {k: v for k, v in attr.items() if k in ("name", "type", "default", "minimum", "allowed")}
    if "allowed" in attr:
        attr["allowed"] = sorted(set(attr["allowed"]))
    if attr["type"] == "shape" and "default" in attr:
        shape = attr["default"]
        known = isinstance(shape, list) or (isinstance(shape, dict) and not shape.get("unknown_rank"))
        dims = shape if isinstance(shape, list) else (shape or {}).get("dim", []) if known else None
        attr["default"] = {"dim": dims} if known else {"unknown_rank": True}
    if attr["type"] == "float" and "default" in attr:
        attr["default"] = pytest.approx(attr["default"], rel=1e-6)
    return attr


@pytest.mark.parametrize("name", sorted(n for n in RECORDS if n not in OURS))
def test_definition(name: str) -> None:
    definition = RECORDS[name].definition
    expected = DEFINITIONS[name]
    keys = ("name", "type", "type_attr", "number_attr", "type_list_attr", "is_ref")
    for ours, theirs in ((definition.inputs, expected["inputs"]), (definition.outputs, expected["outputs"])):
        assert [plain_arg(a) for a in ours] == [{k: v for k, v in a.items() if k in keys} for a in theirs]
    assert [plain_attr(a) for a in definition.attrs] == [normal(a) for a in expected["attrs"]]
    assert definition.is_stateful == expected.get("is_stateful", False)
    assert definition.is_commutative == expected.get("is_commutative", False)
    allows = expected.get("allows_uninitialized_input", False)
    assert definition.allows_uninitialized_input == allows


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_every_op_is_whole(name: str) -> None:
    record = RECORDS[name]
    assert record.definition.summary, "no docstring"
    assert record.kernel is not None, "no kernel"
    gradient = gradient_function(name)  # LookupError: no gradient, and no decision that there is none
    if isinstance(gradient, NotDifferentiable):
        assert gradient.reason


def test_the_list_of_our_own_ops_is_true() -> None:
    assert set(OURS) == {n for n in RECORDS if n not in DEFINITIONS}
