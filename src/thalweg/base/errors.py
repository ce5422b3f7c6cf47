"""The errors a step can end with: TensorFlow's classes and codes.

    Exception
      OpError                      node_def, op, message, error_code
        CancelledError          1  the step was cancelled: session closed, queue closed, another node failed
        UnknownError            2  an error without a better class
        InvalidArgumentError    3  an input's value, shape or type is wrong
        DeadlineExceededError   4  a wait took longer than its time limit
        NotFoundError           5  a file, tensor or resource does not exist
        AlreadyExistsError      6  something to be created exists
        PermissionDeniedError   7  the caller may not do this
        ResourceExhaustedError  8  out of memory or disk
        FailedPreconditionError 9  the system is not in the state needed: an uninitialised variable
        AbortedError           10  the step lost a race or a peer: try again
        OutOfRangeError        11  the end of an input: an epoch's end, a closed and empty queue
        UnimplementedError     12  no kernel, or a kernel without this case
        InternalError          13  thalweg broke one of its own rules
        UnavailableError       14  a task can't be reached: try again
        DataLossError          15  a file is damaged
        UnauthenticatedError   16  the caller did not prove who it is

Wrong use found while a graph is built raises Python's ValueError or TypeError instead, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from thalweg.base.origin import Origin, describe

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class Node(Protocol):
    """What an error asks of the operation it blames. `graph.Operation` is one.

    An operation without an `origin` is accepted too (synthesised nodes and tests have none).
    """

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def origin(self) -> Origin | str: ...


class OpError(Exception):
    """An operation failed while a graph ran. `str()` gives the message and where the operation was made."""

    _class_code = UNKNOWN

    def __init__(self, node_def: Any, op: Node | None, message: str, error_code: int | None = None) -> None:
        """Keeps its arguments.

        Args:
          node_def: the NodeDef proto of the operation that failed, or None.
          op: the operation that failed, or None (nodes synthesised at run time have none).
          message: what was required, what was received, what to do.
          error_code: one of this module's codes; None for the code of the class.
        """
        super().__init__()
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = self._class_code if error_code is None else error_code

    @property
    def node_def(self) -> Any:
        """The NodeDef proto of the operation that failed, or None."""
        return self._node_def

    @property
    def op(self) -> Node | None:
        """The operation that failed, or None."""
        return self._op

    @property
    def message(self) -> str:
        """What went wrong, without the place."""
        return self._message

    @property
    def error_code(self) -> int:
        """The code that stands for the error's class on the wire."""
        return self._error_code

    def __str__(self) -> str:
        place = describe(getattr(self._op, "origin", ())) if self._op is not None else ""
        return f"{self._message}\n  made at {place}" if place else self._message

    def __reduce__(self) -> tuple[Any, ...]:
        # Operations belong to a process: a copy that travels keeps the place as text.
        return type(self), (self._node_def, None, str(self), self._error_code)


class CancelledError(OpError):
    """The step, or the part of it that was waited for, was cancelled."""

    _class_code = CANCELLED


class UnknownError(OpError):
    """An error of unknown kind, for example from a peer with a newer protocol."""

    _class_code = UNKNOWN


class InvalidArgumentError(OpError):
    """An operation received an argument it can't take."""

    _class_code = INVALID_ARGUMENT


class DeadlineExceededError(OpError):
    """A time limit passed before the step was done."""

    _class_code = DEADLINE_EXCEEDED


class NotFoundError(OpError):
    """Something asked for (a file, a tensor, a resource) does not exist."""

    _class_code = NOT_FOUND


class AlreadyExistsError(OpError):
    """Something that was to be created exists."""

    _class_code = ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """The caller may not do this."""

    _class_code = PERMISSION_DENIED


class UnauthenticatedError(OpError):
    """The caller did not prove who it is."""

    _class_code = UNAUTHENTICATED


class ResourceExhaustedError(OpError):
    """Memory, disk or a quota ran out."""

    _class_code = RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    """The system is not in the state that the operation needs, for example: a variable is uninitialised."""

    _class_code = FAILED_PRECONDITION


class AbortedError(OpError):
    """The operation was aborted by something concurrent; trying again may help."""

    _class_code = ABORTED


class OutOfRangeError(OpError):
    """An input came to its end."""

    _class_code = OUT_OF_RANGE


class UnimplementedError(OpError):
    """No kernel does this."""

    _class_code = UNIMPLEMENTED


class InternalError(OpError):
    """One of thalweg's own rules was broken."""

    _class_code = INTERNAL


class UnavailableError(OpError):
    """A task can't be reached now; trying again may help."""

    _class_code = UNAVAILABLE


class DataLossError(OpError):
    """Data is damaged beyond repair."""

    _class_code = DATA_LOSS


_CODE_TO_CLASS = {cls._class_code: cls for cls in OpError.__subclasses__()}


def some(names: Sequence[str], most: int = 8) -> str:
    """A list in a message: the first few, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """Returns the class for a code. Raises KeyError for `OK` and for numbers that are no code."""
    return _CODE_TO_CLASS[error_code]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """Returns the code of one of this module's classes or of a subclass of one; else KeyError."""
    if cls is not OpError and issubclass(cls, OpError):
        return cls._class_code
    raise KeyError(f"{cls.__name__} is not one of the classes in tf.errors")
