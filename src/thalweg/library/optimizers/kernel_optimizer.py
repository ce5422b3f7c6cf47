"""KernelOptimizer: an optimizer whose update of a variable is one operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base.dtypes import DType
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library.casting import cast
from thalweg.library.optimizers.optimizer import Optimizer
from thalweg.library.resource_variable import BaseResourceVariable


class KernelOptimizer(Optimizer):
    """The base of the optimizers whose rule is an op, "Apply<Rule>".

    Such an op has four forms with the same inputs: "Resource..." takes handles where the plain one takes
    references, "Sparse..." takes rows of a gradient and their indices where the dense one takes a gradient.
    A derived class only says which rule, and which inputs.
    """

    def _update(self, var: Any, gradient: list[Tensor], dtype: DType) -> Operation:
        """Calls `_rule`. gradient: [gradient], or [rows, indices]. dtype: that of all floating inputs."""
        raise NotImplementedError

    def _rule(
        self, rule: str, var: Any, slots: Sequence[str], inputs: Sequence[Any], sparse: bool, **attrs: Any
    ) -> Operation:
        """The operation of `rule` on a variable and its slots; inputs: those that come after them."""
        state = [var, *(self.get_slot(var, name) for name in slots)]
        prefix = "Sparse" if sparse else ""
        if isinstance(var, BaseResourceVariable):
            prefix = "Resource" + prefix
            state = [v.handle for v in state]
        op_type = f"{prefix}Apply{rule}"
        return emit.operation(op_type, *state, *inputs, use_locking=self._use_locking, **attrs)

    def _hyper(self, value: Any, name: str) -> Tensor:
        """A hyperparameter (a number, tensor, or function that returns one) as a tensor."""
        return convert_to_tensor(self._call_if_callable(value), name=name)

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._update(var, [grad], var.dtype.base_dtype)

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._update(handle, [grad], grad.dtype.base_dtype)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        return self._update(var, [grad.values, grad.indices], var.dtype.base_dtype)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        return self._update(handle, [grad, indices], grad.dtype.base_dtype)


def cast_all(values: Sequence[Any], dtype: DType) -> list[Any]:
    """The values as tensors (or resource variables) of one type; a node each only where the type differs."""
    return [v if isinstance(v, BaseResourceVariable) and v.dtype == dtype else cast(v, dtype) for v in values]
