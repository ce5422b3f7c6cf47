"""The decision that an op has no gradient because TensorFlow gives it none. Private to the op families."""

from __future__ import annotations

from typing import Any

from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation


def undefined(emit: Emitter, op: Operation, *grads: Any) -> list[Any]:
    """The gradient of an op that depends on its inputs, and that nobody has differentiated.

    Raises LookupError, as TensorFlow does: to stop the gradient silently would be wrong.
    """
    raise LookupError(f"No gradient defined for operation '{op._name}' (op type: {op.type})")
