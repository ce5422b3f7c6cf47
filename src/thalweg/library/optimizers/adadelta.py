"""Adadelta: steps in the proportion of past steps to past gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base.dtypes import DType
from thalweg.graph.operation import Operation, Tensor
from thalweg.library.optimizers.kernel_optimizer import KernelOptimizer, cast_all


class AdadeltaOptimizer(KernelOptimizer):
    """http://arxiv.org/abs/1212.5701. rho: how slowly past gradients are forgotten."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._rho = rho
        self._epsilon = epsilon

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._zeros_slot(v, "accum", self._name)
            self._zeros_slot(v, "accum_update", self._name)

    def _prepare(self) -> None:
        self._lr_t = self._hyper(self._lr, "lr")
        self._rho_t = self._hyper(self._rho, "rho")
        self._epsilon_t = self._hyper(self._epsilon, "epsilon")

    def _update(self, var: Any, gradient: list[Tensor], dtype: DType) -> Operation:
        hypers = cast_all((self._lr_t, self._rho_t, self._epsilon_t), dtype)
        return self._rule(
            "Adadelta", var, ["accum", "accum_update"], [*hypers, *gradient], sparse=len(gradient) == 2
        )
