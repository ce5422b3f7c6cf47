"""Graphs cut, frozen and tidied, as GraphDefs. Source: TensorFlow's graph_util_impl.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from tensorboard.compat.proto import graph_pb2, node_def_pb2

from thalweg.base import dtypes
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation
from thalweg.graph.tensor_proto import array_to_proto
from thalweg.library import tf_logging

_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")
#: nodes that hand a resource on
_PASS_ON = ("Enter", "Exit", "Identity", "NextIteration", "Switch", "Merge")


def _name(text: str) -> str:
    """The node that an input comes from."""
    return text.lstrip("^").partition(":")[0]


def _require_nodes(known: Iterable[str], names: Iterable[str]) -> None:
    known = set(known)
    for name in names:
        assert name in known, f"{name} is not in graph"


def extract_sub_graph(graph_def: Any, dest_nodes: Sequence[str]) -> Any:
    """The part of a GraphDef that the named nodes need.

    TypeError for one string instead of several; AssertionError names what is missing.
    """
    if not isinstance(graph_def, graph_pb2.GraphDef):
        raise TypeError(f"graph_def must be a graph_pb2.GraphDef proto, but got type {type(graph_def)}.")
    if isinstance(dest_nodes, str):
        raise TypeError(f"dest_nodes must be an iterable of strings, but got type {type(dest_nodes)}.")
    by_name = {n.name: n for n in graph_def.node}
    _require_nodes(by_name, dest_nodes)
    needed: set[str] = set()
    stack = list(dest_nodes)
    while stack:
        name = stack.pop()
        if name in needed:
            continue
        needed.add(name)
        inputs = [_name(i) for i in by_name[name].input]
        _require_nodes(by_name, inputs)
        stack += inputs
    result = graph_pb2.GraphDef()
    result.node.extend(n for n in graph_def.node if n.name in needed)
    result.library.CopyFrom(graph_def.library)
    result.versions.CopyFrom(graph_def.versions)
    return result


def convert_variables_to_constants(
    sess: Any,
    input_graph_def: Any,
    output_node_names: Sequence[str],
    variable_names_whitelist: Iterable[str] | None = None,
    variable_names_blacklist: Iterable[str] | None = None,
) -> Any:
    """A GraphDef of what the outputs need, with the session's values in place of variables: frozen.

    variable_names_whitelist: only these become constants; variable_names_blacklist: these don't.
    Errors: AssertionError for outputs that are not in the graph; ValueError where a variable is not just
    read; FailedPreconditionError where it has no value.
    """
    return _Freezing(sess, extract_sub_graph(input_graph_def, output_node_names)).run(
        variable_names_whitelist, variable_names_blacklist
    )


class _Freezing:
    """One graph and the variables that become constants."""

    def __init__(self, sess: Any, graph_def: Any) -> None:
        self.sess = sess
        self.graph_def = graph_def
        self.by_name = {n.name: n for n in graph_def.node}
        #: nodes that hand a handle on: the variable's type
        self.carriers: dict[str, Any] = {}

    def run(self, only: Iterable[str] | None, without: Iterable[str] | None) -> Any:
        names = [n.name for n in self.graph_def.node if n.op in _VARIABLES]
        if only is not None:
            only = set(only)
            names = [n for n in names if n in only]
        if without is not None:
            without = set(without)
            names = [n for n in names if n not in without]
        frozen = set(names)
        self._find_carriers(frozen)
        values = dict(zip(names, self._values(names), strict=True))
        tf_logging.info("Froze %d variables.", len(values))
        result = graph_pb2.GraphDef()
        for node in self.graph_def.node:
            result.node.extend(self._converted(node, values))
        result.library.CopyFrom(self.graph_def.library)
        result.versions.CopyFrom(self.graph_def.versions)
        tf_logging.info("Converted %d variables to const ops.", len(values))
        return result

    def _find_carriers(self, frozen: set[str]) -> None:
        """Follows handles from the variables to what reads them."""
        users: dict[str, list[Any]] = {}
        for node in self.graph_def.node:
            for text in node.input:
                if not text.startswith("^"):
                    users.setdefault(_name(text), []).append(node)
        for name in frozen:
            variable = self.by_name[name]
            if variable.op != "VarHandleOp":
                continue
            stack = [name]
            while stack:
                for user in users.get(stack.pop(), ()):
                    if user.op in _PASS_ON:
                        if user.name not in self.carriers:
                            self.carriers[user.name] = variable.attr["dtype"]
                            stack.append(user.name)
                    elif user.op not in ("ReadVariableOp", "ResourceGather", "VarIsInitializedOp"):
                        raise ValueError(
                            f"the variable '{name}' can't become a constant: {user.op} '{user.name}' "
                            "doesn't just read it"
                        )

    def _values(self, names: list[str]) -> list[np.ndarray]:
        """The values of the variables, in one run."""
        if not names:
            return []
        graph = self.sess.graph
        fetches = []
        for name in names:
            state = graph.get_operation_by_name(name).outputs[0]
            fetches.append(state if state.dtype.is_ref_dtype else self._read(state))
        result: list[np.ndarray] = self.sess.run(fetches)
        return result

    def _read(self, handle: Any) -> Any:
        """A node of the session's graph that reads the variable."""
        for user in handle.consumers():
            if (
                user.type == "ReadVariableOp"
                and user._control_flow_context is None
                and not user.control_inputs
            ):
                return user.outputs[0]
        with handle.graph.as_default(), handle.graph.control_dependencies(None):
            return emit("ReadVariableOp", handle, dtype=handle.op.get_attr("dtype"))

    def _converted(self, node: Any, values: dict[str, np.ndarray]) -> list[Any]:
        """The nodes in place of one."""
        if node.name in values:
            return [_const(node.name, values[node.name])]
        source = _name(node.input[0]) if node.input else ""
        reads_constant = source in values or source in self.carriers
        if node.op == "ReadVariableOp" and reads_constant:
            result = node_def_pb2.NodeDef(name=node.name, op="Identity", device=node.device, input=node.input)
            result.attr["T"].CopyFrom(node.attr["dtype"])
            if "_class" in node.attr:
                result.attr["_class"].CopyFrom(node.attr["_class"])
            return [result]
        if node.op == "ResourceGather" and reads_constant:
            return self._gather(node)
        if node.op == "VarIsInitializedOp" and reads_constant:
            result = _const(node.name, np.array(True))
            result.input.extend(i for i in node.input if i.startswith("^"))
            return [result]
        result = node_def_pb2.NodeDef()
        result.CopyFrom(node)
        if node.name in self.carriers:
            result.attr["T"].CopyFrom(self.carriers[node.name])
        return [result]

    def _gather(self, node: Any) -> list[Any]:
        if node.attr["batch_dims"].i:
            raise ValueError(f"batch_dims != 0 is not supported by freeze_graph: '{node.name}'")
        axis = _const(f"{node.name}/axis", np.array(0, np.int32))
        # in a loop the axis must be there in each iteration: it waits for what is gathered
        axis.input.append(f"^{_name(node.input[1])}")
        data = [i for i in node.input if not i.startswith("^")]
        controls = [i for i in node.input if i.startswith("^")]
        result = node_def_pb2.NodeDef(
            name=node.name, op="GatherV2", device=node.device, input=[*data, axis.name, *controls]
        )
        result.attr["Tparams"].CopyFrom(node.attr["dtype"])
        result.attr["Tindices"].CopyFrom(node.attr["Tindices"])
        result.attr["Taxis"].type = dtypes.int32.as_datatype_enum
        if "_class" in node.attr:
            result.attr["_class"].CopyFrom(node.attr["_class"])
        return [axis, result]


def _const(name: str, value: Any) -> Any:
    array = np.asarray(value)
    node = node_def_pb2.NodeDef(name=name, op="Const")
    tensor = array_to_proto(array)
    node.attr["dtype"].type = tensor.dtype
    node.attr["value"].tensor.CopyFrom(tensor)
    return node


def remove_training_nodes(input_graph: Any, protected_nodes: Iterable[str] | None = None) -> Any:
    """A GraphDef without nodes that inference doesn't need: CheckNumerics and Identity.

    Identities with control inputs, or that others wait for, stay, and so do protected nodes.
    """
    protected = set(protected_nodes or ())
    removed = {n.name for n in input_graph.node if n.op == "CheckNumerics" and n.name not in protected}
    passes = {n.name: n.input[0] for n in input_graph.node if n.name in removed and n.input}
    waited_for = {_name(i) for n in input_graph.node for i in n.input if i.startswith("^")}
    for node in input_graph.node:
        if node.op != "Identity" or node.name in protected or node.name in waited_for:
            continue
        if not any(i.startswith("^") and _name(i) not in removed for i in node.input):
            passes[node.name] = node.input[0]
    result = graph_pb2.GraphDef()
    for node in input_graph.node:
        if node.name in passes:
            continue
        copy = result.node.add()
        copy.CopyFrom(node)
        del copy.input[:]
        for text in node.input:
            if text.startswith("^") and _name(text) in removed:
                continue
            while _name(text) in passes and not text.startswith("^"):
                text = passes[_name(text)]
            copy.input.append(text)
    result.library.CopyFrom(input_graph.library)
    result.versions.CopyFrom(input_graph.versions)
    return result


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """Whether a node (an Operation or NodeDef) can only run on the CPU in TensorFlow."""
    node_def = node.node_def if isinstance(node, Operation) else node
    if not isinstance(node_def, node_def_pb2.NodeDef):
        raise TypeError(f"node must be an Operation or a NodeDef, not {type(node).__name__}")
    if pin_variables_on_cpu and node_def.op in _VARIABLES:
        return True
    attr = {"Const": "dtype", "DynamicStitch": "T", "ParallelDynamicStitch": "T", "Cast": "SrcT"}.get(
        node_def.op
    )
    if attr is None:
        return False
    dtype = dtypes.as_dtype(node_def.attr[attr].type or 1)
    return dtype == dtypes.int32 or (node_def.op == "Const" and dtype == dtypes.string)


def tensor_shape_from_node_def_name(graph: Any, input_name: str) -> TensorShape:
    """The static shape of "node" or "node:index"."""
    name = input_name if ":" in input_name else f"{input_name}:0"
    shape: TensorShape = graph.get_tensor_by_name(name).get_shape()
    return shape
