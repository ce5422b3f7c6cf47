"""Conditions that a kernel requires of its input values, in compiled code and on the host alike.

On the host, `require` raises at once. While a cluster is traced it cannot: the condition becomes an extra
output of the executable, which the runtime looks at before anything downstream is committed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from thalweg.base.errors import InvalidArgumentError, OpError
from thalweg.graph.operation import Operation

Message = Callable[..., str]


class Check:
    """A traced condition: ok (a boolean scalar), what to say, and the values that the text needs."""

    __slots__ = ("error", "message", "ok", "op", "values")

    def __init__(
        self, op: Operation, ok: Any, message: Message, values: tuple[Any, ...], error: type[OpError]
    ) -> None:
        self.op = op
        self.ok = ok
        self.message = message
        self.values = values
        self.error = error

    def raise_with(self, values: list[np.ndarray]) -> None:
        """Raises the error, its text made from the values of the failed run."""
        raise self.error(None, self.op, f"{self.op.type} '{self.op.name}': {self.message(*values)}")


class _Current(threading.local):
    collector: list[Check] | None = None
    op: Operation | None = None


_current = _Current()


class collecting:
    """While entered, traced conditions are gathered in `checks`; `op` is set by the tracer per node."""

    def __init__(self) -> None:
        self.checks: list[Check] = []

    def __enter__(self) -> list[Check]:
        self._old = _current.collector, _current.op
        _current.collector = self.checks
        return self.checks

    def __exit__(self, *_: Any) -> None:
        _current.collector, _current.op = self._old


def set_op(op: Operation | None) -> None:
    """Says which node's kernel runs in this thread now."""
    _current.op = op


def current_op() -> Operation | None:
    """The node whose kernel runs in this thread."""
    return _current.op


def require(
    ok: Any, message: Message, *values: Any, error: type[OpError] = InvalidArgumentError
) -> None:
    """Raises `error` with message(*values) unless ok (a boolean scalar) holds, now or when the step has run.

    message: gets the values as NumPy arrays and returns the text.
    """
    op = _current.op
    if isinstance(ok, bool | np.bool_ | np.ndarray):
        if not bool(ok):
            text = message(*(np.asarray(v) for v in values))
            where = f"{op.type} '{op.name}': " if op is not None else ""
            raise error(None, op, where + text)
        return
    if _current.collector is None or op is None:
        raise RuntimeError("a traced condition outside of a trace")
    _current.collector.append(Check(op, ok, message, values, error))
