"""Building a node from Python arguments: conversion, type inference, attribute checks.

`emit("MatMul", a, b, transpose_b=True)` is the one door through which library code and gradient functions
make nodes; `tf.raw_ops` is the same door by keyword.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.base.errors import InvalidArgumentError
from thalweg.graph import registry
from thalweg.graph.convert import constant_node, convert_to_tensor, get_default_graph, to_array
from thalweg.graph.graph import Graph
from thalweg.graph.opdef import ArgDef, AttrDef, OpDef
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.shape_context import constant_value


class Emitter:
    """Makes nodes in the default graph, under the scopes in force."""

    def __call__(self, op_type: str, *inputs: Any, name: str | None = None, **keywords: Any) -> Any:
        """Adds a node of `op_type`; inputs by position or by keyword, attributes by keyword.

        Returns the output tensor; a list for a list output; a named tuple for several outputs; the
        Operation where there is none. Errors: TypeError (dtypes), ValueError (shapes, attribute values).
        """
        return pack_outputs(self.operation(op_type, *inputs, name=name, **keywords))

    def operation(
        self, op_type: str, *inputs: Any, name: str | None = None, **keywords: Any
    ) -> Operation:
        """The same; returns the Operation itself."""
        record = registry.lookup(op_type)
        definition = record.definition
        args = definition.inputs
        if len(inputs) > len(args):
            raise TypeError(f"{op_type} takes {len(args)} inputs, got {len(inputs)}")
        values = list(inputs)
        for arg in args[len(inputs) :]:
            if arg.name not in keywords:
                raise TypeError(f"{op_type} is missing its input '{arg.name}'")
            values.append(keywords.pop(arg.name))
        graph = _graph_of(values)
        base = name or op_type
        if all(type(v) is Tensor for v in values):
            attrs: dict[str, Any] = {}
            tensors = _take_tensors(definition, values, attrs)
            refs = [t for a, t in zip(args, tensors, strict=True) if a.is_ref]
        else:
            attrs = {k: keywords[k] for k in definition.inferred_attrs if k in keywords}
            inside = nullcontext() if graph is get_default_graph() else graph.as_default()
            with inside, graph.name_scope(base) as scope:
                tensors, refs = _convert_inputs(definition, values, attrs)
            base = scope
        _complete_attrs(definition, attrs, keywords, base)
        if not refs:
            return graph.add_node(record, tensors, attrs, base)
        # a node that takes a reference lives with the variable
        scopes = graph._scopes.get()
        old, old_devices = scopes.colocation, scopes.devices
        scopes.devices = ()
        scopes.colocation = (*old, *(t._op for t in refs))
        try:
            return graph.add_node(record, tensors, attrs, base)
        finally:
            scopes.colocation, scopes.devices = old, old_devices

    def constant(self, value: Any, dtype: Any = None, name: str = "Const") -> Tensor:
        """A Const node of a NumPy or Python value."""
        wanted = None if dtype is None else dtypes.as_dtype(dtype)
        return constant_node(to_array(value, wanted), wanted, name)

    def shape(self, x: Tensor, out_type: DType = dtypes.int32, name: str | None = None) -> Tensor:
        """x's shape as a tensor: a constant where it is known, else a Shape node (as tf.shape does)."""
        known = x._shape
        if known is not None and None not in known:
            return constant_node(np.array(known, out_type.as_numpy_dtype), out_type, name or "Shape")
        result: Tensor = self("Shape", x, out_type=out_type, name=name)
        return result

    def size(self, x: Tensor, out_type: DType = dtypes.int32, name: str | None = None) -> Tensor:
        """x's number of elements: a constant where it is known, else a Size node."""
        known = x._shape
        if known is not None and None not in known:
            count = np.array(shapes.num_elements(known), out_type.as_numpy_dtype)
            return constant_node(count, out_type, name or "Size")
        result: Tensor = self("Size", x, out_type=out_type, name=name)
        return result

    def rank(self, x: Tensor, name: str | None = None) -> Tensor:
        """x's rank: a constant where it is known, else a Rank node."""
        if x._shape is not None:
            return constant_node(np.array(len(x._shape), np.int32), dtypes.int32, name or "Rank")
        result: Tensor = self("Rank", x, name=name)
        return result

    def known_value(self, x: Tensor) -> np.ndarray | None:
        """The value of x where it is known without running."""
        return constant_value(x)


emit = Emitter()


def _graph_of(values: list[Any]) -> Graph:
    """The graph of the first input that has one, else the default graph, as TensorFlow 1.x."""
    for value in values:
        if type(value) is Tensor:
            return value._op._graph
        if isinstance(value, list | tuple):
            for item in value:
                if type(item) is Tensor:
                    return item._op._graph
        elif isinstance(getattr(value, "graph", None), Graph):
            graph: Graph = value.graph
            return graph
    return get_default_graph()


def pack_outputs(op: Operation) -> Any:
    """An operation's outputs in the form that TensorFlow's Python functions return."""
    args = op._record.definition.outputs
    if not op._outputs:
        return op  # also where a list of outputs is empty
    if len(args) == 1 and not args[0].is_list:
        return op._outputs[0]
    packed: list[Any] = []
    at = 0
    for arg in args:
        if arg.is_list:
            number = op._attrs.get(arg.number_attr or "")
            n = len(op._attrs[arg.type_list_attr or ""]) if number is None else number
            packed.append(list(op._outputs[at : at + n]))
            at += n
        else:
            packed.append(op._outputs[at])
            at += 1
    return packed[0] if len(packed) == 1 else _output_tuple(op._record.definition)(*packed)


def _output_tuple(definition: OpDef) -> type[tuple[Any, ...]]:
    """The named tuple of an op's outputs: `tf.unique(x).idx`."""
    found = _OUTPUT_TUPLES.get(definition.name)
    if found is None:
        name, fields = definition.name.lstrip("_"), [a.name for a in definition.outputs]
        found = _OUTPUT_TUPLES[definition.name] = namedtuple(name, fields)
    return found


_OUTPUT_TUPLES: dict[str, type[tuple[Any, ...]]] = {}


def _take_tensors(definition: OpDef, values: list[Tensor], attrs: dict[str, Any]) -> list[Tensor]:
    """The fast path: every argument is a Tensor already."""
    for arg, tensor in zip(definition.inputs, values, strict=True):
        if arg.is_list:
            raise TypeError(
                f"Expected list for '{arg.name}' argument to '{definition.name}' Op, not {tensor!r}."
            )
        _check_type(definition, arg, tensor, attrs)
    return values


def _check_type(definition: OpDef, arg: ArgDef, tensor: Tensor, attrs: dict[str, Any]) -> None:
    dtype = tensor._dtype
    if arg.is_ref and not dtype.is_ref_dtype:
        raise TypeError(
            f"'{definition.name}' Op requires that input '{arg.name}' be a mutable tensor "
            f"(e.g.: a tf.Variable), got {tensor!r}"
        )
    base = dtype.base_dtype
    if arg.type_attr is None:
        if base is not arg.dtype and arg.dtype is not None and base != arg.dtype:
            raise TypeError(
                f"Input '{arg.name}' of '{definition.name}' Op has type {base.name} that does not match "
                f"expected type of {arg.dtype.name}."
            )
        return
    known = attrs.get(arg.type_attr)
    if known is None:
        allowed = definition.attr_by_name[arg.type_attr].allowed
        if allowed is not None and base not in allowed:
            names = ", ".join(d.name for d in definition.attr_by_name[arg.type_attr].allowed_list)
            raise TypeError(
                f"Value passed to parameter '{arg.name}' has DataType {base.name} not in list of allowed "
                f"values: {names}"
            )
        attrs[arg.type_attr] = base
    elif known is not base and known != base:
        other = next(a.name for a in definition.inputs if a.type_attr == arg.type_attr)
        raise TypeError(
            f"Input '{arg.name}' of '{definition.name}' Op has type {base.name} that does not match type "
            f"{known.name} of argument '{other}'."
        )


def _convert_inputs(
    definition: OpDef, values: list[Any], attrs: dict[str, Any]
) -> tuple[list[Tensor], list[Tensor]]:
    tensors: list[Tensor] = []
    refs: list[Tensor] = []
    for k in list(attrs):
        attrs[k] = canonical_attr(definition.attr_by_name[k], attrs[k], definition.name)
    for arg, value in zip(definition.inputs, values, strict=True):
        if arg.is_list:
            if not isinstance(value, list | tuple):
                raise TypeError(
                    f"Expected list for '{arg.name}' argument to '{definition.name}' Op, not {value!r}."
                )
            new = _convert_list(definition, arg, list(value), attrs)
        else:
            new = [_convert_one(definition, arg, value, attrs, arg.name)]
        tensors.extend(new)
        if arg.is_ref:
            refs.extend(new)
    return tensors, refs


def _convert_one(
    definition: OpDef, arg: ArgDef, value: Any, attrs: dict[str, Any], name: str
) -> Tensor:
    if type(value) is not Tensor:
        wanted = arg.dtype if arg.type_attr is None else attrs.get(arg.type_attr)
        preferred = None
        if wanted is None and arg.type_attr is not None:
            attr = definition.attr_by_name[arg.type_attr]
            preferred = attr.default if attr.has_default else None
        try:
            value = convert_to_tensor(value, wanted, name, arg.is_ref, preferred)
        except (TypeError, ValueError) as e:
            if wanted is None or isinstance(e, InvalidArgumentError):
                raise
            try:  # a tensor of another type gets the clearer message of _check_type
                value = convert_to_tensor(value, None, name, arg.is_ref)
            except (TypeError, ValueError):
                raise e from None
            if not isinstance(value, Tensor) or value._dtype.base_dtype == wanted:
                raise
            if value._op.type == "Const":
                raise TypeError(
                    f"Input '{arg.name}' of '{definition.name}' Op: {e}"
                ) from None
    _check_type(definition, arg, value, attrs)
    tensor: Tensor = value
    return tensor


def _convert_list(
    definition: OpDef, arg: ArgDef, values: list[Any], attrs: dict[str, Any]
) -> list[Tensor]:
    if arg.type_list_attr is not None:
        given = attrs.get(arg.type_list_attr)
        result = [
            convert_to_tensor(v, given[i] if given else None, f"{arg.name}_{i}", arg.is_ref)
            for i, v in enumerate(values)
        ]
        types = tuple(t._dtype.base_dtype for t in result)
        _check_allowed(definition.attr_by_name[arg.type_list_attr], types, definition.name)
        attrs[arg.type_list_attr] = types
        return result
    if arg.type_attr is not None and arg.type_attr not in attrs:
        for v in values:
            if isinstance(v, Tensor):
                attrs[arg.type_attr] = v._dtype.base_dtype
                break
    result = [
        _convert_one(definition, arg, v, attrs, f"{arg.name}_{i}" if len(values) > 1 else arg.name + "_0")
        for i, v in enumerate(values)
    ]
    assert arg.number_attr is not None
    n = len(result)
    known = attrs.get(arg.number_attr)
    if known is not None and known != n:
        raise ValueError(
            f"List argument '{arg.name}' to '{definition.name}' Op with length {n} must match length "
            f"{known} of the other list arguments."
        )
    minimum = definition.attr_by_name[arg.number_attr].minimum
    if minimum is not None and n < minimum:
        raise ValueError(
            f"List argument '{arg.name}' to '{definition.name}' Op with length {n} shorter than minimum "
            f"length {minimum}."
        )
    attrs[arg.number_attr] = n
    return result


def _complete_attrs(
    definition: OpDef, attrs: dict[str, Any], given: dict[str, Any], name: str
) -> None:
    """Adds given and default values, checked, in the definition's order of names."""
    for attr in definition.attrs:
        key = attr.name
        if key in attrs:
            given.pop(key, None)
            continue
        if key in given and (given[key] is not None or not attr.has_default):
            attrs[key] = canonical_attr(attr, given.pop(key), definition.name)
        elif attr.has_default:
            given.pop(key, None)
            attrs[key] = attr.default
        else:
            raise TypeError(f"{definition.name} '{name.rstrip('/')}': no value for attr '{key}'")
    if given:
        if all(k.startswith("_") for k in given):
            attrs.update(given)
            return
        raise TypeError(
            f"{definition.name} '{name.rstrip('/')}' got unexpected arguments: {', '.join(given)}; it has "
            f"inputs {[a.name for a in definition.inputs]} and attrs {[a.name for a in definition.attrs]}"
        )


def canonical_attr(attr: AttrDef, value: Any, op: str) -> Any:
    """A Python value in the canonical form of an attribute (see Operation), checked against its definition.

    TypeError for a value of another kind, ValueError for one that is not allowed.
    """
    kind = attr.type
    if kind.startswith("list("):
        if not isinstance(value, list | tuple | np.ndarray):
            raise TypeError(
                f"Expected list for attr {attr.name} of '{op}' Op, obtained {type(value).__name__} instead."
            )
        inner = kind[5:-1]
        result: Any = tuple(_canonical(inner, v, attr, op) for v in value)
        if attr.minimum is not None and len(result) < attr.minimum:
            raise ValueError(
                f"Attr '{attr.name}' of '{op}' Op passed list of length {len(result)} less than minimum "
                f"{attr.minimum}."
            )
        _check_allowed(attr, result, op)
        return result
    result = _canonical(kind, value, attr, op)
    if kind == "int" and attr.minimum is not None and result < attr.minimum:
        raise ValueError(
            f"Attr '{attr.name}' of '{op}' Op passed {result} less than minimum {attr.minimum}."
        )
    _check_allowed(attr, (result,), op)
    return result


def _check_allowed(attr: AttrDef, values: tuple[Any, ...], op: str) -> None:
    if attr.allowed is None:
        return
    for value in values:
        if value not in attr.allowed:
            shown = [v.decode() if isinstance(v, bytes) else v.name for v in attr.allowed_list]
            got = value.decode() if isinstance(value, bytes) else value.name
            if attr.type.endswith("string") or attr.type.endswith("string)"):
                raise ValueError(
                    f"Value for attr '{attr.name}' of '{op}' Op must be one of {shown}, got \"{got}\"."
                )
            raise TypeError(
                f"Value passed to attr '{attr.name}' of '{op}' Op has DataType {got} not in list of "
                f"allowed values: {', '.join(shown)}"
            )


def _canonical(kind: str, value: Any, attr: AttrDef, op: str) -> Any:
    try:
        return _CANONICAL[kind](value)
    except (TypeError, ValueError, OverflowError) as e:
        # a shape with a bad dimension is a shape all the same
        error = ValueError if kind == "shape" and isinstance(e, ValueError) else TypeError
        raise error(
            f"Expected {kind} for attr '{attr.name}' of '{op}' Op, got {value!r} of type "
            f"'{type(value).__name__}'. {e}"
        ) from None


def _int(value: Any) -> int:
    if isinstance(value, str | bytes) or int(value) != value:
        raise TypeError("not an integer")
    return int(value)


def _float(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise TypeError("not a number")
    return float(value)


def _bool(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError("not a boolean")
    return bool(value)


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise TypeError("not a string")


def _tensor(value: Any) -> np.ndarray:
    return value if isinstance(value, np.ndarray) else to_array(value)


_CANONICAL: dict[str, Callable[[Any], Any]] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "string": _bytes,
    "type": lambda v: dtypes.as_dtype(v).base_dtype,
    "shape": shapes.as_shape,
    "tensor": _tensor,
    "func": lambda v: v,
}
