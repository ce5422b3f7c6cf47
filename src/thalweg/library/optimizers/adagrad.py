"""Adagrad: a learning rate for each element, by the gradients it has seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base.dtypes import DType
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library.casting import cast
from thalweg.library.initializers import constant_initializer
from thalweg.library.optimizers.kernel_optimizer import KernelOptimizer


class AdagradOptimizer(KernelOptimizer):
    """accumulator += gradient^2; variable -= learning_rate * gradient / sqrt(accumulator).

    http://www.jmlr.org/papers/volume12/duchi11a/duchi11a.pdf
    ValueError for an initial_accumulator_value that isn't positive.
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            dtype = v.dtype.base_dtype
            self._get_or_make_slot_with_initializer(
                v, self._initializer(v, dtype), v.shape, dtype, "accumulator", self._name
            )

    def _initializer(self, v: Any, dtype: DType) -> Any:
        if v.shape.is_fully_defined():
            return constant_initializer(self._initial_accumulator_value, dtype=dtype)
        start = self._initial_accumulator_value
        return lambda: cast(emit("Fill", emit.shape(v.initialized_value()), start), dtype)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyper(self._learning_rate, "learning_rate")

    def _update(self, var: Any, gradient: list[Tensor], dtype: DType) -> Operation:
        rate = cast(self._learning_rate_tensor, dtype)
        return self._rule("Adagrad", var, ["accumulator"], [rate, *gradient], sparse=len(gradient) == 2)
