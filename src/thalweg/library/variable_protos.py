"""Variables as VariableDef messages, and back.

Source: TensorFlow's variables.py, resource_variable_ops.py.
"""

from __future__ import annotations

from typing import Any

from tensorboard.compat.proto import variable_pb2

from thalweg.base import shape as shapes
from thalweg.graph.convert import get_default_graph
from thalweg.graph.operation import Tensor
from thalweg.library import variable_base
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.initial_values import remember
from thalweg.library.proto_functions import (
    in_scope,
    prepend_name_scope,
    register_proto_function,
    strip_name_scope,
)
from thalweg.library.ref_variable import RefVariable
from thalweg.library.resource_variable import ResourceVariable
from thalweg.library.variable_base import SaveSliceInfo, Variable


def variable_to_proto(variable: Any, export_scope: str | None = None) -> Any:
    """The VariableDef of a variable; None for one outside of export_scope."""
    resource = isinstance(variable, ResourceVariable)
    state = variable.handle if resource else variable._variable
    if not in_scope(state.name, export_scope):
        return None
    name = lambda element: strip_name_scope(element.name, export_scope)
    proto = variable_pb2.VariableDef(
        variable_name=name(state),
        initializer_name=name(variable.initializer),
        trainable=bool(variable.trainable),
        synchronization=variable.synchronization.value,
        aggregation=variable.aggregation.value,
        is_resource=resource,
    )
    if variable.initial_value is not None:
        proto.initial_value_name = name(variable.initial_value)
    if not resource:
        proto.snapshot_name = name(variable._snapshot)
    else:
        cached = variable._cached_value
        proto.snapshot_name = name(variable._graph_element if cached is None else cached)
    info = variable._get_save_slice_info()
    if info is not None:
        proto.save_slice_info_def.CopyFrom(info.to_proto(export_scope))
    return proto


def variable_from_proto(proto: Any, import_scope: str | None = None) -> Variable:
    """The variable that a VariableDef describes, over nodes of the default graph.

    KeyError where one of them isn't there; TypeError for what is no VariableDef.
    """
    if not isinstance(proto, variable_pb2.VariableDef):
        raise TypeError(f"a variable comes from a VariableDef, not {type(proto).__name__}")
    graph = get_default_graph()
    find = lambda name: graph.as_graph_element(prepend_name_scope(name, import_scope))
    variable: Any = (ResourceVariable if proto.is_resource else RefVariable).__new__(
        ResourceVariable if proto.is_resource else RefVariable
    )
    modes = variable_base.checked_modes(
        proto.synchronization, proto.aggregation, proto.trainable, proto.variable_name
    )
    variable._synchronization, variable._aggregation, variable._trainable = modes
    variable._initializer_op = _operation(find(proto.initializer_name))
    initial = find(proto.initial_value_name) if proto.initial_value_name else None
    variable._initial_value = variable._safe_initial_value = initial
    variable._constraint = variable._caching_device = None
    _attach(variable, find(proto.variable_name), proto, import_scope)
    if proto.HasField("save_slice_info_def"):
        variable._save_slice_info = SaveSliceInfo(
            save_slice_info_def=proto.save_slice_info_def, import_scope=import_scope
        )
    remember(variable)
    return variable


def _attach(variable: Any, state: Any, proto: Any, import_scope: str | None) -> None:
    """The state and the read of a variable."""
    if not isinstance(state, Tensor):
        raise ValueError(f"'{proto.variable_name}' of a VariableDef is not a tensor")
    graph = state.graph
    snapshot: Any = None
    if proto.snapshot_name:
        snapshot = graph.as_graph_element(prepend_name_scope(proto.snapshot_name, import_scope))
    if not proto.is_resource:
        if not isinstance(snapshot, Tensor):
            raise ValueError(f"the VariableDef of '{proto.variable_name}' names no snapshot")
        variable._variable, variable._snapshot = state, snapshot
        return
    attrs = state.op._attrs
    if "dtype" not in attrs or "shape" not in attrs:
        raise ValueError(f"'{state.name}' is no variable: {state.op.type}")
    variable._handle, variable._dtype = state, attrs["dtype"]
    variable._shape = shapes.as_shape(attrs["shape"])
    variable._validate_shape = True
    if snapshot is None:
        snapshot = graph.get_tensor_by_name(f"{state.op.name}/Read/ReadVariableOp:0")
    variable._graph_element = snapshot
    variable._cached_value = None if snapshot.op.type == "ReadVariableOp" else snapshot


def _operation(element: Any) -> Any:
    return element.op if isinstance(element, Tensor) else element


variable_base._proto_functions[:] = [variable_to_proto, variable_from_proto]

for _collection in GraphKeys._VARIABLE_COLLECTIONS:
    register_proto_function(_collection, variable_pb2.VariableDef, variable_to_proto, variable_from_proto)
register_proto_function(
    GraphKeys.GLOBAL_STEP, variable_pb2.VariableDef, variable_to_proto, variable_from_proto
)
