"""The operation that is run once a model is loaded."""

from __future__ import annotations

from typing import Any

from thalweg.graph.operation import Operation
from thalweg.library import framework, grouping
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.variables import global_variables_initializer, local_variables_initializer


def main_op() -> Operation:
    """An operation that initialises all variables and tables."""
    tables = framework.get_collection(GraphKeys.TABLE_INITIALIZERS)
    with framework.name_scope(None):
        return grouping.group(global_variables_initializer(), local_variables_initializer(), *tables)


def main_op_with_restore(restore_op_name: Any) -> Operation:
    """The same, with an operation of the graph that runs after it."""
    with framework.control_dependencies([main_op()]):
        return grouping.group(restore_op_name)
