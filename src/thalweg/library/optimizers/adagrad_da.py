"""Adagrad dual averaging: sparse linear models whose unseen features stay at zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base.dtypes import DType
from thalweg.graph.convert import constant
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework
from thalweg.library.optimizers.kernel_optimizer import KernelOptimizer, cast_all


class AdagradDAOptimizer(KernelOptimizer):
    """http://www.jmlr.org/papers/volume12/duchi11a/duchi11a.pdf

    global_step: an int64 variable that counts the training steps.
    ValueError for an initial_gradient_squared_accumulator_value that isn't positive.
    """

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError(
                "initial_gradient_squared_accumulator_value must be positive: "
                f"{initial_gradient_squared_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._global_step = global_step
        self._initial_squared = initial_gradient_squared_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            dtype = v.dtype.base_dtype
            with framework.colocate_with(v):
                sums = constant(0.0, dtype, v.shape)
                squares = constant(self._initial_squared, dtype, v.shape)
            self._get_or_make_slot(v, sums, "gradient_accumulator", self._name)
            self._get_or_make_slot(v, squares, "gradient_squared_accumulator", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyper(self._learning_rate, "learning_rate")
        # the rule divides by the number of steps, this one included
        with framework.colocate_with(self._learning_rate_tensor):
            self._step: Any = emit("Identity", self._global_step) + 1

    def _update(self, var: Any, gradient: list[Tensor], dtype: DType) -> Operation:
        with framework.device(var.device):
            step = emit("Identity", self._step)
        hypers = (
            self._learning_rate_tensor,
            self._l1_regularization_strength,
            self._l2_regularization_strength,
        )
        return self._rule(
            "AdagradDA",
            var,
            ["gradient_accumulator", "gradient_squared_accumulator"],
            [*gradient, *cast_all(hypers, dtype), step],
            sparse=len(gradient) == 2,
        )
