"""Branches and loops as messages, and back: so that gradients can be taken of an imported graph.

Source: TensorFlow's control_flow_ops.py, control_flow.proto.
"""

from __future__ import annotations

from typing import Any

from thalweg.formats.protos import saved_model_pb2 as messages
from thalweg.graph.cond_context import CondContext
from thalweg.graph.control_flow import ControlFlowContext
from thalweg.graph.convert import get_default_graph
from thalweg.graph.operation import Tensor
from thalweg.graph.where import is_loop_enter
from thalweg.graph.while_context import WhileContext
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.proto_functions import (
    in_scope,
    prepend_name_scope,
    register_proto_function,
    strip_name_scope,
)


def context_to_proto(context: ControlFlowContext, export_scope: str | None = None) -> Any:
    """A CondContextDef or WhileContextDef; None for a context outside of export_scope."""
    if not in_scope(context.name, export_scope):
        return None

    def name(tensor: Tensor | None) -> str:
        return "" if tensor is None else strip_name_scope(tensor.name, export_scope)

    proto: Any
    if isinstance(context, CondContext):
        proto = messages.CondContextDef(
            pred_name=name(context.pred), pivot_name=name(context.pivot), branch=context.branch
        )
    elif isinstance(context, WhileContext):
        proto = messages.WhileContextDef(
            parallel_iterations=context.parallel_iterations,
            back_prop=context.back_prop,
            swap_memory=context.swap_memory,
            pivot_name=name(context.pivot),
            pivot_for_pred_name=name(context.pivot_for_pred),
            pivot_for_body_name=name(context.pivot_for_body),
            loop_exit_names=[name(t) for t in context.loop_exits],
            loop_enter_names=[name(t) for t in context.loop_enters],
            maximum_iterations_name=name(context.maximum_iterations),
        )
    else:
        raise TypeError(f"{type(context).__name__} has no message")
    proto.context_name = strip_name_scope(context.name, export_scope)
    proto.values_def.values.extend(sorted(name(t) for t in context._values))
    for outside, inside in context._external_values.items():
        proto.values_def.external_values[name(outside)] = name(inside)
    for nested in context._nested_contexts:
        inner = context_to_proto(nested, export_scope)
        if inner is not None:
            holder = proto.nested_contexts.add()
            (holder.cond_ctxt if isinstance(nested, CondContext) else holder.while_ctxt).CopyFrom(inner)
    return proto


def cond_context_from_proto(proto: Any, import_scope: str | None = None) -> CondContext:
    """The branch that a CondContextDef describes, over nodes of the default graph."""
    names = _Names(import_scope)
    pred, pivot = names.tensor(proto.pred_name), names.tensor(proto.pivot_name)
    if proto.branch not in (0, 1):
        raise ValueError(f"the branch of a CondContextDef is 0 or 1, not {proto.branch}")
    context = CondContext.__new__(CondContext)
    _begin(context, names.name(proto.context_name))
    context._pred, context._pivot, context._branch = pred, pivot, proto.branch
    _fill(context, proto, names)
    return context


def while_context_from_proto(proto: Any, import_scope: str | None = None) -> WhileContext:
    """The loop that a WhileContextDef describes, over nodes of the default graph."""
    names = _Names(import_scope)
    context = WhileContext(
        names.maybe(proto.maximum_iterations_name),
        proto.parallel_iterations,
        proto.back_prop,
        proto.swap_memory,
        proto.context_name,
    )
    context._name = names.name(proto.context_name)
    context.set_pivots(
        names.maybe(proto.pivot_for_pred_name),
        names.maybe(proto.pivot_name),
        names.maybe(proto.pivot_for_body_name),
    )
    context._loop_enters = [names.tensor(n) for n in proto.loop_enter_names]
    context._loop_exits = [names.tensor(n) for n in proto.loop_exit_names]
    _fill(context, proto, names)
    if import_scope:  # frames have the name of their context
        for tensor in context._values:
            if is_loop_enter(tensor.op) and tensor.op._attrs["frame_name"].decode() == proto.context_name:
                tensor.op._set_attr("frame_name", context._name.encode())
    return context


class _Names:
    """Tensors of the default graph by the names that they were exported under."""

    def __init__(self, import_scope: str | None) -> None:
        self.graph = get_default_graph()
        self.scope = import_scope

    def name(self, text: str) -> str:
        return prepend_name_scope(text, self.scope)

    def tensor(self, text: str) -> Tensor:
        found: Tensor = self.graph.as_graph_element(self.name(text), allow_operation=False)
        return found

    def maybe(self, text: str) -> Tensor | None:
        return self.tensor(text) if text else None


def _begin(context: ControlFlowContext, name: str) -> None:
    """What the base class's constructor does, with a name that is taken already."""
    ControlFlowContext.__init__(context, "imported_context")
    context._name = name


def _fill(context: Any, proto: Any, names: _Names) -> None:
    """The values that a context knows, its nodes, and the contexts inside it."""
    values = proto.values_def
    context._external_values = {
        names.tensor(outside): names.tensor(inside) for outside, inside in values.external_values.items()
    }
    context._values = {names.tensor(v) for v in values.values}
    for tensor in context._values - context._external_values.keys():
        tensor.op._set_control_flow_context(context)
    context.Enter()
    try:
        for nested in proto.nested_contexts:
            kind = nested.WhichOneof("ctxt")
            if kind == "cond_ctxt":
                cond_context_from_proto(nested.cond_ctxt, names.scope)
            elif kind == "while_ctxt":
                while_context_from_proto(nested.while_ctxt, names.scope)
    finally:
        context.Exit()


register_proto_function(
    GraphKeys.COND_CONTEXT, messages.CondContextDef, context_to_proto, cond_context_from_proto
)
register_proto_function(
    GraphKeys.WHILE_CONTEXT, messages.WhileContextDef, context_to_proto, while_context_from_proto
)
