"""Gradient descent."""

from __future__ import annotations

from typing import Any

from thalweg.base.dtypes import DType
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library.casting import cast
from thalweg.library.optimizers.kernel_optimizer import KernelOptimizer


class GradientDescentOptimizer(KernelOptimizer):
    """variable -= learning_rate * gradient.

    learning_rate: a number, a tensor, or a function that returns one.
    """

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._learning_rate_tensor: Tensor | None = None

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._hyper(self._learning_rate, "learning_rate")

    def _rate(self, dtype: DType) -> Any:
        return cast(self._learning_rate_tensor, dtype)

    def _update(self, var: Any, gradient: list[Tensor], dtype: DType) -> Operation:
        return self._rule("GradientDescent", var, [], [self._rate(dtype), *gradient], sparse=False)

    # rows that repeat may be subtracted one by one: no need to sum them up first

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        values: Any = grad.values
        delta = IndexedSlices(values * self._rate(var.dtype.base_dtype), grad.indices, grad.dense_shape)
        return var.scatter_sub(delta, use_locking=self._use_locking)

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        rows: Any = grad
        return emit("ResourceScatterAdd", handle.handle, indices, -rows * self._rate(grad.dtype.base_dtype))
