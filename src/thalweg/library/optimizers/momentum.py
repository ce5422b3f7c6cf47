"""Momentum, with or without Nesterov's look ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base.dtypes import DType
from thalweg.graph.operation import Operation, Tensor
from thalweg.library.optimizers.kernel_optimizer import KernelOptimizer, cast_all


class MomentumOptimizer(KernelOptimizer):
    """accumulation = momentum * accumulation + gradient; variable -= learning_rate * accumulation.

    use_nesterov: takes the gradient where the momentum leads to (http://jmlr.org/proceedings/papers/v28/sutskever13.pdf).
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyper(self._learning_rate, "learning_rate")
        self._momentum_tensor = self._hyper(self._momentum, "momentum")

    def _update(self, var: Any, gradient: list[Tensor], dtype: DType) -> Operation:
        rate, momentum = cast_all((self._learning_rate_tensor, self._momentum_tensor), dtype)
        return self._rule(
            "Momentum",
            var,
            ["momentum"],
            [rate, *gradient, momentum],
            sparse=len(gradient) == 2,
            use_nesterov=self._use_nesterov,
        )
