"""tf.Variable's default creator, the lists of variables, and what initialises and checks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base import dtypes
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework, grouping, variable_base
from thalweg.library.framework import name_scope
from thalweg.library.gathering_ops import boolean_mask
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.partitioned_variable import PartitionedVariable
from thalweg.library.ref_variable import RefVariable
from thalweg.library.resource_variable import ResourceVariable
from thalweg.library.scope_store import get_variable_scope
from thalweg.library.variable_base import (
    Variable,
    VariableAggregation,
    VariableSynchronization,
    variable_creator_scope,
)

__all__ = [
    "PartitionedVariable",
    "RefVariable",
    "ResourceVariable",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "all_variables",
    "assert_variables_initialized",
    "disable_resource_variables",
    "enable_resource_variables",
    "global_variables",
    "global_variables_initializer",
    "initialize_all_variables",
    "initialize_local_variables",
    "initialize_variables",
    "is_variable_initialized",
    "local_variables",
    "local_variables_initializer",
    "model_variables",
    "moving_average_variables",
    "report_uninitialized_variables",
    "resource_variables_enabled",
    "saveable_objects",
    "trainable_variables",
    "variable_creator_scope",
    "variables_initializer",
]

# ---- which kind ------------------------------------------------------------------------------------------

_use_resource = False


def enable_resource_variables() -> None:
    """From here on tf.Variable and get_variable make resource variables, where nothing says otherwise."""
    global _use_resource
    _use_resource = True


def disable_resource_variables() -> None:
    """From here on tf.Variable and get_variable make reference variables (the default)."""
    global _use_resource
    _use_resource = False


def resource_variables_enabled() -> bool:
    """Whether resource variables are the default."""
    return _use_resource


def _create(use_resource: bool | None = None, expected_shape: Any = None, **kwargs: Any) -> Variable:
    """The variable of the kind asked for: by the argument, the variable scope, or the process."""
    if use_resource is None:
        use_resource = get_variable_scope().use_resource
    if use_resource is None:
        use_resource = _use_resource
    return ResourceVariable(**kwargs) if use_resource else RefVariable(**kwargs)


variable_base._default_creator[:] = [_create]


# ---- lists -----------------------------------------------------------------------------------------------


def global_variables(scope: str | None = None) -> list[Any]:
    """The variables that a program shares and saves; scope: whose name matches."""
    return framework.get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def all_variables() -> list[Any]:
    """The name of global_variables() before TensorFlow 0.12."""
    return global_variables()


def local_variables(scope: str | None = None) -> list[Any]:
    """The variables of this process alone, such as metrics' and epoch counters."""
    return framework.get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """The variables that inference needs, as layers declare them."""
    return framework.get_collection(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables that optimizers move."""
    return framework.get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables of which moving averages are kept."""
    return framework.get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def saveable_objects(scope: str | None = None) -> list[Any]:
    """What a Saver saves when it isn't told: global variables and other saveable objects."""
    return global_variables(scope) + framework.get_collection(GraphKeys.SAVEABLE_OBJECTS, scope)


# ---- initialisation --------------------------------------------------------------------------------------


def variables_initializer(var_list: Sequence[Any], name: str = "init") -> Operation:
    """An operation that gives each variable its initial value; does nothing for an empty list."""
    if var_list:
        return grouping.group(*[v.initializer for v in var_list], name=name)
    return grouping.no_op(name=name)


def initialize_variables(var_list: Sequence[Any], name: str = "init") -> Operation:
    """The name of variables_initializer before TensorFlow 0.12."""
    return variables_initializer(var_list, name)


def global_variables_initializer() -> Operation:
    """An operation that initialises every global variable made so far."""
    return variables_initializer(global_variables())


def initialize_all_variables() -> Operation:
    """The name of global_variables_initializer before TensorFlow 0.12."""
    return global_variables_initializer()


def local_variables_initializer() -> Operation:
    """An operation that initialises every local variable made so far."""
    return variables_initializer(local_variables())


def initialize_local_variables() -> Operation:
    """The name of local_variables_initializer before TensorFlow 0.12."""
    return local_variables_initializer()


# ---- checks ----------------------------------------------------------------------------------------------


def is_variable_initialized(variable: Any) -> Tensor:
    """A scalar: whether the variable (or reference tensor) has a value."""
    if isinstance(variable, Variable):
        return variable.is_initialized()
    return emit("IsVariableInitialized", variable)


def _listed_or_found(var_list: Sequence[Any] | None) -> Sequence[Any]:
    """The list given; else the global and local variables; else the graph's reference variables."""
    if var_list is not None:
        return var_list
    listed = global_variables() + local_variables()
    if listed:
        return listed
    nodes = get_default_graph().get_operations()
    return [op.outputs[0] for op in nodes if op.type in ("Variable", "VariableV2")]


def assert_variables_initialized(var_list: Sequence[Any] | None = None) -> Tensor | None:
    """A tensor that fails when it is run before the variables are initialised; None without variables."""
    variables = _listed_or_found(var_list)
    if not variables:
        return None
    ranks = []
    for variable in variables:
        with framework.colocate_with(variable.op):
            value = variable.op.outputs[0]
            ranks.append(emit("Rank", value if value.dtype.is_ref_dtype else variable))
    return ranks[0] if len(ranks) == 1 else emit("Pack", ranks, name="stack")


def report_uninitialized_variables(
    var_list: Sequence[Any] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """A vector of the names (bytes) of the variables that have no value yet, computed on the CPU."""
    variables = _listed_or_found(var_list)
    with name_scope(name):
        initialized = [is_variable_initialized(v) for v in variables]
        with framework.device("/cpu:0"):
            if not variables:
                return emit.constant([], dtypes.string)
            missing = emit("LogicalNot", emit("Pack", initialized, name="stack"))
            names = emit.constant([v.op.name for v in variables])
            return boolean_mask(names, missing)
