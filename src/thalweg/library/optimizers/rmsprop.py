"""RMSProp: gradients divided by a running average of their size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base.dtypes import DType
from thalweg.graph.operation import Operation, Tensor
from thalweg.library.fill_ops import ones_like
from thalweg.library.initializers import ones_initializer
from thalweg.library.optimizers.kernel_optimizer import KernelOptimizer, cast_all


class RMSPropOptimizer(KernelOptimizer):
    """http://www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf

    decay: how slowly past gradients are forgotten. centered: divides by their estimated deviation, not by
    their size.
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._decay = decay
        self._momentum = momentum
        self._epsilon = epsilon
        self._centered = centered

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            dtype = v.dtype.base_dtype
            if v.shape.is_fully_defined():
                ones: Any = ones_initializer(dtype=dtype)
            else:
                ones = ones_like(v.initialized_value())
            self._get_or_make_slot_with_initializer(v, ones, v.shape, dtype, "rms", self._name)
            if self._centered:
                self._zeros_slot(v, "mg", self._name)
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyper(self._learning_rate, "learning_rate")
        self._decay_tensor = self._hyper(self._decay, "decay")
        self._momentum_tensor = self._hyper(self._momentum, "momentum")
        self._epsilon_tensor = self._hyper(self._epsilon, "epsilon")

    def _update(self, var: Any, gradient: list[Tensor], dtype: DType) -> Operation:
        hypers = cast_all(
            (self._learning_rate_tensor, self._decay_tensor, self._momentum_tensor, self._epsilon_tensor),
            dtype,
        )
        rule, slots = "RMSProp", ["rms", "momentum"]
        if self._centered:
            rule, slots = "CenteredRMSProp", ["mg", *slots]
        return self._rule(rule, var, slots, [*hypers, *gradient], sparse=len(gradient) == 2)
