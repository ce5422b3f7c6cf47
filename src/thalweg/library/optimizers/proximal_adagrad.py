"""Adagrad, then a step towards a regulariser's minimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base.dtypes import DType
from thalweg.graph.convert import constant
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework
from thalweg.library.optimizers.kernel_optimizer import KernelOptimizer, cast_all


class ProximalAdagradOptimizer(KernelOptimizer):
    """http://papers.nips.cc/paper/3793-efficient-learning-using-forward-backward-splitting.pdf

    ValueError for an initial_accumulator_value that isn't positive.
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            with framework.colocate_with(v):
                value = constant(self._initial_accumulator_value, v.dtype.base_dtype, v.shape)
            self._get_or_make_slot(v, value, "accumulator", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyper(self._learning_rate, "learning_rate")
        self._l1_tensor = self._hyper(self._l1_regularization_strength, "l1_regularization_strength")
        self._l2_tensor = self._hyper(self._l2_regularization_strength, "l2_regularization_strength")

    def _update(self, var: Any, gradient: list[Tensor], dtype: DType) -> Operation:
        hypers = cast_all((self._learning_rate_tensor, self._l1_tensor, self._l2_tensor), dtype)
        return self._rule(
            "ProximalAdagrad", var, ["accumulator"], [*hypers, *gradient], sparse=len(gradient) == 2
        )
