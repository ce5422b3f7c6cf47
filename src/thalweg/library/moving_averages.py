"""Moving averages of variables and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base import dtypes
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework, grouping
from thalweg.library.casting import cast
from thalweg.library.framework import name_scope
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.initializers import zeros_initializer
from thalweg.library.optimizers.slot_creator import create_slot, create_zeros_slot
from thalweg.library.ref_variable import RefVariable
from thalweg.library.variable_scope import get_variable, get_variable_scope, variable_scope
from thalweg.library.variables import (
    Variable,
    global_variables,
    moving_average_variables,
    trainable_variables,
)

__all__ = ["ExponentialMovingAverage", "assign_moving_average", "weighted_moving_average"]

_FLOATING = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """A node that does variable -= (1 - decay) * (variable - value); returns the variable's new value.

    zero_debias: corrects for a variable that started as zeros, as Adam does: its first average is the first
    value. That takes two further variables, "<variable>/biased" and "<variable>/local_step".
    """
    with name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope:
        rate = cast(convert_to_tensor(1.0 - decay, name="decay"), variable.dtype.base_dtype)
        if isinstance(value, RefVariable):
            # the read that was made with it is under no control dependencies, such as on a training step
            value = value.read_value()
        if zero_debias:
            return _zero_debias(variable, value, rate)
        return variable.assign_sub((variable - value) * rate, name=scope)


def _zero_debias(variable: Any, value: Any, rate: Any) -> Any:
    dtype = variable.dtype.base_dtype
    with variable_scope(variable.op.name, values=[variable, value, rate]):
        zeros = zeros_initializer()
        with framework.colocate_with(variable):
            biased = get_variable(
                _unused("biased"), variable.shape, dtype, initializer=zeros, trainable=False
            )
            step = get_variable(_unused("local_step"), [], dtype, initializer=zeros, trainable=False)
    update = biased.assign_sub((biased - value) * rate)
    updated_step = step.assign_add(1)
    factor = 1 - emit("Pow", 1.0 - rate, updated_step)
    name = f"{get_default_graph().get_name_scope()}/"
    return variable.assign(update / factor, use_locking=True, name=name)


def _unused(name: str) -> str:
    """`name`, with "_1", "_2" ... where the scope has a variable of that name already."""
    scope = get_variable_scope()
    if scope.reuse:
        return name
    taken = {v.op.name for v in scope.global_variables()}
    candidate, i = name, 0
    while f"{scope.name}/{candidate}" in taken:
        i += 1
        candidate = f"{name}_{i}"
    return candidate


def weighted_moving_average(
    value: Tensor,
    decay: Any,
    weight: Tensor,
    truediv: bool = True,
    collections: Sequence[Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """The moving average of value * weight divided by that of weight; makes the variables for both."""
    if collections is None:
        collections = [GraphKeys.GLOBAL_VARIABLES]
    with variable_scope(name, "WeightedMovingAvg", [value, weight, decay]) as scope:
        arguments: dict[str, Any] = {
            "initializer": zeros_initializer(),
            "trainable": False,
            "collections": collections,
        }
        product = get_variable("value_x_weight", value.shape, value.dtype, **arguments)
        weights = get_variable("weight", weight.shape, weight.dtype, **arguments)
        numerator: Any = assign_moving_average(product, value * weight, decay, zero_debias=False)
        denominator = assign_moving_average(weights, weight, decay, zero_debias=False)
        return emit("RealDiv" if truediv else "Div", numerator, denominator, name=scope.name)


class ExponentialMovingAverage:
    """Keeps "shadow" variables that follow others: shadow = decay * shadow + (1 - decay) * value.

    decay: close to 1, such as 0.999.
    num_updates: a count of steps; while it is small the decay is (1 + num_updates) / (10 + num_updates), so
        that averages move faster at the start.
    zero_debias: corrects the averages of tensors (which start at zero).
    name: names the shadow variables: "<variable>/<name>".
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Any, Any] = {}

    @property
    def name(self) -> str:
        """The name of the shadow variables within the names of what they follow."""
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> Operation:
        """An operation that moves the averages of var_list; makes the shadow variables on the first call.

        var_list: variables and tensors of floating types; None: the trainable variables. The average of a
        variable starts at its initial value, that of a tensor at zero.
        Errors: TypeError for other types.
        """
        if var_list is None:
            var_list = trainable_variables()
        for var in var_list:
            if var.dtype.base_dtype not in _FLOATING:
                raise TypeError(f"The variables must be half, float, or double: {var.name}")
            if var.ref() not in self._averages:
                with framework.init_scope():
                    self._averages[var.ref()] = self._shadow(var)
        with name_scope(self._name) as scope:
            decay = convert_to_tensor(self._decay, dtypes.float32, name="decay")
            if self._num_updates is not None:
                n = cast(self._num_updates, dtypes.float32, name="num_updates")
                decay = emit("Minimum", decay, (1.0 + n) / (10.0 + n))
            updates = [
                assign_moving_average(self._averages[v.ref()], v, decay, self._debiased(v)) for v in var_list
            ]
            return grouping.group(*updates, name=scope)

    def _shadow(self, var: Any) -> Any:
        if isinstance(var, Variable):
            framework.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
            with framework.device(var.device):
                value = var.initialized_value()
            return create_slot(var, value, self._name)
        together = var.op.type in ("Variable", "VariableV2", "VarHandleOp")
        return create_zeros_slot(var, self._name, colocate_with_primary=together)

    def _debiased(self, var: Any) -> bool:
        return self._zero_debias and not isinstance(var, Variable)

    def average(self, var: Any) -> Any:
        """The shadow variable of a variable or tensor; None where there is none."""
        return self._averages.get(var.ref())

    def average_name(self, var: Any) -> str:
        """The name (without ":0") of the shadow variable that `var` has, or would have."""
        shadow = self.average(var)
        if shadow is not None:
            return shadow.op.name
        return get_default_graph().unique_name(f"{var.op.name}/{self._name}", mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables: Sequence[Any] | None = None) -> dict[str, Any]:
        """For a Saver: names in a checkpoint to variables; averaged variables restore from their averages.

        moving_avg_variables: which have averages; None: trainable variables and those `apply` was given.
        """
        if moving_avg_variables is None:
            moving_avg_variables = trainable_variables() + moving_average_variables()
        averaged = {v.ref(): v for v in moving_avg_variables}
        names = {self.average_name(v): v for v in averaged.values()}
        own_names = {v.name for v in averaged.values()}
        for v in dict.fromkeys(global_variables()):
            if v.name not in own_names and v.op.name not in names:
                names[v.op.name] = v
        return names
