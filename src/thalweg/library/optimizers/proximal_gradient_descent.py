"""Gradient descent, then a step towards a regulariser's minimum."""

from __future__ import annotations

from typing import Any

from thalweg.base.dtypes import DType
from thalweg.graph.operation import Operation, Tensor
from thalweg.library.optimizers.kernel_optimizer import KernelOptimizer, cast_all


class ProximalGradientDescentOptimizer(KernelOptimizer):
    """http://papers.nips.cc/paper/3793-efficient-learning-using-forward-backward-splitting.pdf"""

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyper(self._learning_rate, "learning_rate")
        self._l1_tensor = self._hyper(self._l1_regularization_strength, "l1_regularization_strength")
        self._l2_tensor = self._hyper(self._l2_regularization_strength, "l2_regularization_strength")

    def _update(self, var: Any, gradient: list[Tensor], dtype: DType) -> Operation:
        hypers = cast_all((self._learning_rate_tensor, self._l1_tensor, self._l2_tensor), dtype)
        return self._rule("ProximalGradientDescent", var, [], [*hypers, *gradient], sparse=len(gradient) == 2)
