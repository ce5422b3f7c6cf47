"""What beside variables needs initialising: resources and tables. Source: TensorFlow's resources.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base import dtypes
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework
from thalweg.library.framework import name_scope
from thalweg.library.gathering_ops import boolean_mask
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.grouping import group, no_op


def shared_resources() -> list[Any]:
    """The resources that workers share."""
    return framework.get_collection(GraphKeys.RESOURCES)


def local_resources() -> list[Any]:
    """The resources of a session alone."""
    return framework.get_collection(GraphKeys.LOCAL_RESOURCES)


def report_uninitialized_resources(
    resource_list: Sequence[Any] | None = None, name: str = "report_uninitialized_resources"
) -> Tensor:
    """A vector of the names (bytes) of the resources that don't exist yet."""
    if resource_list is None:
        resource_list = shared_resources() + local_resources()
    with name_scope(name), framework.device("/cpu:0"):
        if not resource_list:
            return emit.constant([], dtypes.string)
        missing = emit("LogicalNot", emit("Pack", [r.is_initialized for r in resource_list], name="stack"))
        return boolean_mask(emit.constant([r.handle.name for r in resource_list]), missing)


def initialize_resources(resource_list: Sequence[Any], name: str = "init") -> Operation:
    """An operation that makes the resources."""
    return group(*[r.create for r in resource_list], name=name) if resource_list else no_op(name=name)


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """An operation that fills all tables of the graph."""
    initializers = framework.get_collection(GraphKeys.TABLE_INITIALIZERS)
    return group(*initializers, name=name) if initializers else no_op(name=name)


def initialize_all_tables(name: str = "init_all_tables") -> Operation:
    """The name of tables_initializer before TensorFlow 1.0."""
    return tables_initializer(name)
