"""What goes wrong in a kernel, a compilation or an executable, as the errors that a step ends with."""

from __future__ import annotations

import jax

from thalweg.base import errors
from thalweg.graph.operation import Operation

_CLASSES: tuple[tuple[tuple[type[Exception], ...], type[errors.OpError]], ...] = (
    ((NotImplementedError,), errors.UnimplementedError),
    ((MemoryError,), errors.ResourceExhaustedError),
    ((ValueError, TypeError, IndexError, OverflowError, AssertionError), errors.InvalidArgumentError),
)


def op_error(error: Exception, op: Operation, also: str = "") -> errors.OpError:
    """An exception that isn't an OpError as the step's error, which names the node. also: further text.

    XLA's errors keep the class that their text begins with; what nobody has foreseen is an InternalError.
    """
    if isinstance(error, jax.errors.JaxRuntimeError):
        kind = _class_of_status(str(error))
    else:
        kind = next((to for of, to in _CLASSES if isinstance(error, of)), errors.InternalError)
    text = str(error) if kind is not errors.InternalError else f"{type(error).__name__}: {error}"
    return kind(None, op, f"{op.type} '{op._name}': {text}{also}")


def _class_of_status(text: str) -> type[errors.OpError]:
    """The class of a status that is written "RESOURCE_EXHAUSTED: Out of memory ..."."""
    code = vars(errors).get(text.partition(":")[0])
    if not isinstance(code, int) or code == errors.OK:
        return errors.InternalError
    return errors.exception_type_from_error_code(code)
