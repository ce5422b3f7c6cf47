"""Arithmetic on scalars as Python code over NumPy scalars.

A loop's counter and condition are a few such nodes: an operator on NumPy scalars costs some 50 ns, a call of
compiled code some microseconds. Only what NumPy computes to the last bit as XLA does is here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from thalweg.base.dtypes import DType
from thalweg.graph import registry
from thalweg.graph.operation import Operation, Tensor

#: op -> its value, in terms of its inputs {0}, {1}, {2}
_NUMERIC = {
    "Add": "{0} + {1}",
    "AddV2": "{0} + {1}",
    "Mul": "{0} * {1}",
    "Neg": "-{0}",
    "Square": "{0} * {0}",
    "Sub": "{0} - {1}",
}
_FLOATING = {"Div": "{0} / {1}", "RealDiv": "{0} / {1}"}
_INTEGER = {
    "FloorDiv": "{0} // {1}",
    "FloorMod": "{0} % {1}",
    "Maximum": "{0} if {0} >= {1} else {1}",
    "Minimum": "{0} if {0} <= {1} else {1}",
}
_COMPARISON = {
    "Equal": "{0} == {1}",
    "Greater": "{0} > {1}",
    "GreaterEqual": "{0} >= {1}",
    "Less": "{0} < {1}",
    "LessEqual": "{0} <= {1}",
    "NotEqual": "{0} != {1}",
}
_LOGICAL = {"LogicalAnd": "{0} & {1}", "LogicalNot": "~{0}", "LogicalOr": "{0} | {1}"}
_ANY = {"Identity": "{0}", "Select": "{1} if {0} else {2}", "Snapshot": "{0}", "StopGradient": "{0}"}

_FLOATS = frozenset((np.dtype(np.float32), np.dtype(np.float64)))

ScalarFunction = Callable[[list[Any], Any], None]


def is_scalar(op: Operation) -> bool:
    """Whether a node is arithmetic on scalars that can be written as Python code."""
    if not op._inputs or any(t._shape != () or t._dtype.is_ref_dtype for t in (*op._inputs, *op._outputs)):
        return False
    if any(_numpy(t._dtype) is None for t in (*op._inputs, *op._outputs)):
        return False
    return _expression(op) is not None and not registry.is_variant(op)


def _numpy(dtype: DType) -> np.dtype[Any] | None:
    """The NumPy type of a dtype whose scalars NumPy computes with: booleans, integers, float32, float64."""
    if not (dtype.is_integer or dtype.is_floating or dtype.is_bool) or dtype.is_quantized:
        return None
    found = np.dtype(dtype.as_numpy_dtype)
    return found if found.kind in "biu" or found in _FLOATS else None


def _expression(op: Operation) -> str | None:
    kind = op.type
    if kind in _ANY:
        return _ANY[kind]
    dtype = op._inputs[0]._dtype
    if kind == "Cast":
        return _cast(op)
    if dtype.is_bool:
        return _LOGICAL.get(kind) or ({"Equal": "{0} == {1}", "NotEqual": "{0} != {1}"}.get(kind))
    if kind in _INTEGER:
        return _INTEGER[kind] if dtype.is_integer else None
    if kind in _FLOATING:
        return _FLOATING[kind] if dtype.is_floating else None
    return _NUMERIC.get(kind) or _COMPARISON.get(kind)


def _cast(op: Operation) -> str | None:
    """A cast that loses no number out of the target's range."""
    source, target = _numpy(op._inputs[0]._dtype), _numpy(op._outputs[0]._dtype)
    assert source is not None and target is not None
    if target.kind == "f" or np.can_cast(source, target):
        return f"{target.name}({{0}})"
    return "{0} != 0" if target.kind == "b" and source.kind != "f" else None


def scalar_function(
    nodes: Sequence[Operation],
    constants: Sequence[Operation],
    inputs: Sequence[tuple[Tensor, int]],
    outputs: Sequence[tuple[Tensor, int]],
) -> ScalarFunction:
    """function(values, step) that computes the nodes, in order, from and to slots of `values`.

    inputs: what comes from outside and the slot of each; outputs: the same for what leaves. Floating-point
    flags must be ignored while it runs (np.errstate).
    """
    scope: dict[str, Any] = {name: np.dtype(name).type for name in _CAST_TARGETS}
    names: dict[Tensor, str] = {}
    lines = []
    for i, op in enumerate(constants):
        names[op._outputs[0]] = f"c{i}"
        scope[f"c{i}"] = op._attrs["value"][()]
    for i, (tensor, slot) in enumerate(inputs):
        names[tensor] = f"a{i}"
        lines += [f" a{i} = values[{slot}]", f" if a{i}.__class__ not in ready: a{i} = scalar(a{i})"]
    for i, op in enumerate(nodes):
        if not op._outputs:
            continue
        names[op._outputs[0]] = f"n{i}"
        expression = _expression(op)
        assert expression is not None
        lines.append(f" n{i} = {expression.format(*(names[t] for t in op._inputs))}")
    lines += [f" values[{slot}] = {names[tensor]}" for tensor, slot in outputs]
    source = "\n".join(["def function(values, step):", *(lines or [" pass"])])
    scope.update(ready=_READY, scalar=_scalar)
    exec(compile(source, "<scalars>", "exec"), scope)  # of names and numbers made above only
    function: ScalarFunction = scope["function"]
    return function


_CAST_TARGETS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
)  # fmt: skip
_READY = frozenset(np.dtype(name).type for name in _CAST_TARGETS)


def _scalar(value: Any) -> Any:
    """An array without dimensions as a NumPy scalar."""
    return np.asarray(value)[()]
