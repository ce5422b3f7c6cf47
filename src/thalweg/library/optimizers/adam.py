"""Adam: momentum and RMSProp with their bias at the start corrected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thalweg.base.dtypes import DType
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework, grouping
from thalweg.library.optimizers.kernel_optimizer import KernelOptimizer, cast_all


class AdamOptimizer(KernelOptimizer):
    """http://arxiv.org/abs/1412.6980, with epsilon as in the algorithm just before its section 2.1.

    A sparse gradient moves every row of the variable: the momenta of rows without a gradient decay and apply.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        """The variables beta1 ** t and beta2 ** t."""
        graph = get_default_graph()
        powers = [self._get_non_slot_variable(name, graph) for name in ("beta1_power", "beta2_power")]
        return powers[0], powers[1]

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        # the first variable by name: programs that list the variables in another order place them the same
        first = min(var_list, key=lambda v: v.name)
        self._create_non_slot_variable(self._beta1, "beta1_power", first)
        self._create_non_slot_variable(self._beta2, "beta2_power", first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _prepare(self) -> None:
        self._lr_t = self._hyper(self._lr, "learning_rate")
        self._beta1_t = self._hyper(self._beta1, "beta1")
        self._beta2_t = self._hyper(self._beta2, "beta2")
        self._epsilon_t = self._hyper(self._epsilon, "epsilon")

    def _inputs(self, dtype: DType) -> list[Any]:
        """beta1 ** t, beta2 ** t, learning rate, beta1, beta2, epsilon."""
        hypers = (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        return cast_all((*self._get_beta_accumulators(), *hypers), dtype)

    def _update(self, var: Any, gradient: list[Tensor], dtype: DType) -> Operation:
        return self._rule("Adam", var, ["m", "v"], [*self._inputs(dtype), *gradient], sparse=False)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        def scatter_add(v: Any, indices: Tensor, rows: Tensor) -> Tensor:
            return emit("ScatterAdd", v, indices, rows, use_locking=self._use_locking)

        return self._apply_sparse_shared(grad.values, var, grad.indices, scatter_add)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        def scatter_add(v: Any, indices: Tensor, rows: Tensor) -> Tensor:
            with framework.control_dependencies([emit("ResourceScatterAdd", v.handle, indices, rows)]):
                return v.value()

        return self._apply_sparse_shared(grad, handle, indices, scatter_add)

    def _apply_sparse_shared(
        self, grad: Any, var: Any, indices: Tensor, scatter_add: Callable[[Any, Tensor, Tensor], Tensor]
    ) -> Operation:
        """The update in plain operations: no op has Adam's meaning for rows."""
        beta1_power, beta2_power, lr_t, beta1, beta2, epsilon = self._inputs(var.dtype.base_dtype)
        lr = lr_t * emit("Sqrt", 1 - beta2_power) / (1 - beta1_power)
        # m = beta1 * m + (1 - beta1) * gradient
        m = self.get_slot(var, "m")
        rows = grad * (1 - beta1)
        decayed = m.assign(m * beta1, use_locking=self._use_locking)
        with framework.control_dependencies([decayed]):
            m_t: Any = scatter_add(m, indices, rows)
        # v = beta2 * v + (1 - beta2) * gradient^2
        v = self.get_slot(var, "v")
        rows = grad * grad * (1 - beta2)
        decayed = v.assign(v * beta2, use_locking=self._use_locking)
        with framework.control_dependencies([decayed]):
            v_t = scatter_add(v, indices, rows)
        root = emit("Sqrt", v_t)
        update = var.assign_sub(lr * m_t / (root + epsilon), use_locking=self._use_locking)
        return grouping.group(update, m_t, v_t)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        with framework.control_dependencies(update_ops):
            beta1_power, beta2_power = self._get_beta_accumulators()
            with framework.colocate_with(beta1_power):
                powers = [
                    power.assign(power * beta, use_locking=self._use_locking)
                    for power, beta in ((beta1_power, self._beta1_t), (beta2_power, self._beta2_t))
                ]
        return grouping.group(*update_ops, *powers, name=name_scope)
