"""GraphDef: a graph as TensorFlow's message, and one node, one attribute, one op definition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from tensorboard.compat.proto import attr_value_pb2, graph_pb2, node_def_pb2, op_def_pb2, versions_pb2

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph import operation
from thalweg.graph.graph import Graph
from thalweg.graph.opdef import REQUIRED, OpDef
from thalweg.graph.operation import Operation
from thalweg.graph.tensor_proto import MAX_BYTES, array_to_proto, proto_to_array


def attr_to_proto(kind: str, value: Any) -> Any:
    """A canonical attribute value (see Operation) as an AttrValue. kind: the attribute's type, or ""."""
    proto = attr_value_pb2.AttrValue()
    if kind.startswith("list(") or (not kind and isinstance(value, tuple)):
        proto.list.SetInParent()
        for v in value:
            _append(proto.list, kind[5:-1] if kind else _guess(v), v)
        return proto
    kind = kind or _guess(value)
    if kind == "type":
        proto.type = value.as_datatype_enum
    elif kind == "int":
        proto.i = value
    elif kind == "float":
        proto.f = value
    elif kind == "bool":
        proto.b = value
    elif kind == "string":
        proto.s = value
    elif kind == "shape":
        proto.shape.CopyFrom(TensorShape.of(value).as_proto())
    elif kind == "tensor":
        proto.tensor.CopyFrom(array_to_proto(value))
    elif kind == "func":
        if isinstance(value, str):
            proto.func.name = value
        elif hasattr(value, "DESCRIPTOR"):
            proto.func.CopyFrom(value)
        else:
            proto.func.name = type(value).__name__
    else:
        raise TypeError(f"attribute of type {kind!r} has no message form")
    return proto


def _guess(value: Any) -> str:
    """The type of an attribute that the op definition doesn't know ("_class", "_output_shapes" ...)."""
    if isinstance(value, bool):
        return "bool"
    for kind, python in (
        ("type", DType),
        ("int", int),
        ("float", float),
        ("string", bytes),
        ("tensor", np.ndarray),
    ):
        if isinstance(value, python):
            return kind
    if value is None or isinstance(value, tuple):
        return "shape"
    return "func"


def _append(target: Any, kind: str, value: Any) -> None:
    if kind == "type":
        target.type.append(value.as_datatype_enum)
    elif kind == "int":
        target.i.append(value)
    elif kind == "float":
        target.f.append(value)
    elif kind == "bool":
        target.b.append(value)
    elif kind == "string":
        target.s.append(value)
    elif kind == "shape":
        target.shape.append(TensorShape.of(value).as_proto())
    elif kind == "tensor":
        target.tensor.append(array_to_proto(value))
    elif kind == "func":
        target.func.append(value)
    else:
        raise TypeError(f"list attribute of type {kind!r} has no message form")


def shape_from_proto(proto: Any) -> Any:
    """A TensorShapeProto as a static shape."""
    if proto.unknown_rank:
        return None
    return tuple(None if d.size < 0 else d.size for d in proto.dim)


def attr_from_proto(proto: Any) -> Any:
    """The canonical value of an AttrValue."""
    kind = proto.WhichOneof("value")
    if kind == "list":
        for field in ("s", "i", "f", "b", "type", "shape", "tensor", "func"):
            items = getattr(proto.list, field)
            if items:
                return tuple(_from_field(field, v) for v in items)
        return ()
    if kind is None:
        raise ValueError("an attribute has no value")
    return _from_field(kind, getattr(proto, kind))


def _from_field(field: str, value: Any) -> Any:
    if field == "type":
        return dtypes.as_dtype(value)
    if field == "shape":
        return shape_from_proto(value)
    if field == "tensor":
        array = proto_to_array(value)
        array.flags.writeable = False
        return array
    return value


def node_def(op: Operation) -> Any:
    """An operation as a NodeDef. Control inputs are sorted by name, as TensorFlow writes them."""
    definition = op._record.definition
    proto = node_def_pb2.NodeDef(name=op._name, op=definition.name, device=op._device)
    proto.input.extend(t._op._name if t._index == 0 else f"{t._op._name}:{t._index}" for t in op._inputs)
    proto.input.extend(sorted(f"^{c._name}" for c in op._control_inputs))
    for name, value in op._attrs.items():
        attr = definition.attr_by_name.get(name)
        proto.attr[name].CopyFrom(attr_to_proto(attr.type if attr is not None else "", value))
    return proto


def check_size(nodes: Iterable[Operation]) -> None:
    """ValueError where the values of constants alone are more than a message can hold."""
    total = 0
    for op in nodes:
        for value in op._attrs.values():
            if isinstance(value, np.ndarray):
                total += value.nbytes
        if total >= MAX_BYTES:
            raise ValueError(
                f"GraphDef cannot be larger than 2GB. The constants up to '{op._name}' hold {total} bytes: "
                "feed large arrays, or keep them in variables"
            )


def graph_def(graph: Graph, from_version: int | None = None, add_shapes: bool = False) -> Any:
    """A graph as a GraphDef. from_version: only nodes added after that version of the graph.

    ValueError for a graph of 2 GB or more.
    """
    check_size(graph._ops)
    message = graph_pb2.GraphDef()
    message.versions.CopyFrom(versions(graph))
    for op in list(graph._ops):
        if from_version is not None and op._id < from_version:
            continue
        node = node_def(op)
        if add_shapes and op._outputs:
            shapes = node.attr["_output_shapes"].list
            for t in op._outputs:
                shapes.shape.append(TensorShape.of(t._shape).as_proto())
        message.node.append(node)
    for function in graph._functions.values():
        message.library.function.append(function)
    for name, gradient in graph._library_state.get("function_gradients", {}).items():
        message.library.gradient.add(function_name=name, gradient_func=gradient)
    return message


def op_def_proto(definition: OpDef) -> Any:
    """An op's definition as an OpDef message."""
    proto = op_def_pb2.OpDef(
        name=definition.name,
        is_stateful=definition.is_stateful,
        is_commutative=definition.is_commutative,
        allows_uninitialized_input=definition.allows_uninitialized_input,
        summary=definition.summary,
    )
    for args, target in ((definition.inputs, proto.input_arg), (definition.outputs, proto.output_arg)):
        for arg in args:
            message = target.add(name=arg.name, is_ref=arg.is_ref)
            if arg.dtype is not None:
                message.type = arg.dtype.as_datatype_enum
            message.type_attr = arg.type_attr or ""
            message.number_attr = arg.number_attr or ""
            message.type_list_attr = arg.type_list_attr or ""
    for attr in definition.attrs:
        message = proto.attr.add(name=attr.name, type=attr.type)
        if attr.default is not REQUIRED:
            message.default_value.CopyFrom(attr_to_proto(attr.type, attr.default))
        if attr.minimum is not None:
            message.has_minimum, message.minimum = True, attr.minimum
        for v in attr.allowed_list:
            _append(message.allowed_values.list, attr.type.removeprefix("list(").rstrip(")"), v)
    return proto


def public_attr(op: Operation, name: str) -> Any:
    """An attribute in the form that TensorFlow's Operation.get_attr returns."""
    value = op._attrs[name]
    attr = op._record.definition.attr_by_name.get(name)
    kind = attr.type if attr is not None else _guess(value)
    if kind == "shape":
        return TensorShape.of(value).as_proto()
    if kind == "tensor":
        return array_to_proto(value)
    if kind == "list(shape)":
        return [TensorShape.of(v).as_proto() for v in value]
    if isinstance(value, tuple):
        return list(value)
    return value


def versions(graph: Graph) -> Any:
    """A graph's VersionDef."""
    producer, min_consumer = graph._graph_def_versions
    return versions_pb2.VersionDef(producer=producer, min_consumer=min_consumer)


operation._hooks["graph_def"] = graph_def
operation._hooks["versions"] = versions
operation._hooks["node_def"] = node_def
operation._hooks["op_def"] = op_def_proto
operation._hooks["get_attr"] = public_attr
operation._hooks["attr_from_proto"] = attr_from_proto
