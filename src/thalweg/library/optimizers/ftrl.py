"""FTRL: follow the regularised leader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base.dtypes import DType
from thalweg.graph.convert import constant
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework
from thalweg.library.optimizers.kernel_optimizer import KernelOptimizer, cast_all


class FtrlOptimizer(KernelOptimizer):
    """https://www.eecs.tufts.edu/~dsculley/papers/ad-click-prediction.pdf, with L2 and shrinkage L2 terms.

    accum_name, linear_name: names of the two slots, instead of the optimizer's.
    ValueError for a positive learning_rate_power and for other negative numbers.
    """

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        super().__init__(use_locking, name)
        for argument, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0.0:
                raise ValueError(f"{argument} {value:f} needs to be positive or zero")
        if learning_rate_power > 0.0:
            raise ValueError(f"learning_rate_power {learning_rate_power:f} needs to be negative or zero")
        self._learning_rate = learning_rate
        self._learning_rate_power = learning_rate_power
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self._accum_name = accum_name
        self._linear_name = linear_name

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            with framework.colocate_with(v):
                value = constant(self._initial_accumulator_value, v.dtype.base_dtype, v.shape)
                self._get_or_make_slot(v, value, "accum", self._accum_name or self._name)
                self._zeros_slot(v, "linear", self._linear_name or self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyper(self._learning_rate, "learning_rate")
        self._l1_tensor = self._hyper(self._l1_regularization_strength, "l1_regularization_strength")
        self._l2_tensor = self._hyper(self._l2_regularization_strength, "l2_regularization_strength")
        self._l2_shrinkage_tensor = self._hyper(
            self._l2_shrinkage_regularization_strength, "l2_shrinkage_regularization_strength"
        )
        self._learning_rate_power_tensor = self._hyper(self._learning_rate_power, "learning_rate_power")

    def _update(self, var: Any, gradient: list[Tensor], dtype: DType) -> Operation:
        rule, hypers = "Ftrl", [self._learning_rate_tensor, self._l1_tensor, self._l2_tensor]
        if self._l2_shrinkage_regularization_strength > 0.0:
            rule, hypers = "FtrlV2", [*hypers, self._l2_shrinkage_tensor]
        inputs = cast_all([*hypers, self._learning_rate_power_tensor], dtype)
        return self._rule(rule, var, ["accum", "linear"], [*gradient, *inputs], sparse=len(gradient) == 2)
