"""The scopes in force in one thread over one graph, and the thread's stack of default graphs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thalweg.graph.graph import Graph
    from thalweg.graph.operation import Operation


class ControlScope:
    """One control_dependencies scope: what it waits for, and which nodes were made inside it."""

    __slots__ = ("ops", "seen")

    def __init__(self, ops: Sequence[Operation]) -> None:
        self.ops = list(ops)
        self.seen: set[Operation] = set()


class Scopes:
    """The scopes of one thread. Values are replaced on entry and put back on exit, never changed in place."""

    __slots__ = (
        "attr_scope",
        "colocation",
        "container",
        "control_flow_context",
        "control_stack",
        "devices",
        "gradient_override",
        "kernel_labels",
        "name",
        "original_op",
    )

    def __init__(self) -> None:
        self.name = ""
        self.control_stack: list[ControlScope] = []
        self.devices: tuple[Any, ...] = ()
        self.colocation: tuple[Operation, ...] = ()
        self.container = ""
        self.gradient_override: dict[str, str] = {}
        self.kernel_labels: dict[str, str] = {}
        self.attr_scope: dict[str, Any] = {}
        self.original_op: Operation | None = None
        self.control_flow_context: Any = None


class ScopeState:
    """The Scopes of each thread that builds a graph."""

    def __init__(self) -> None:
        self._local = threading.local()

    def get(self) -> Scopes:
        """This thread's scopes."""
        try:
            scopes: Scopes = self._local.scopes
        except AttributeError:
            scopes = self._local.scopes = Scopes()
        return scopes

    @contextmanager
    def default_context(self, graph: Graph) -> Iterator[Graph]:
        """Makes `graph` the thread's default graph."""
        with default_stack.entered(graph):
            yield graph


class DefaultStack(threading.local):
    """A thread's stack of default graphs or sessions. Leaving out of order is an error."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.enforce_nesting = True

    def top(self) -> Any:
        """The innermost default, or None."""
        return self.stack[-1] if self.stack else None

    @contextmanager
    def entered(self, item: Any) -> Iterator[Any]:
        """Makes `item` the innermost default."""
        self.stack.append(item)
        try:
            yield item
        finally:
            if self.stack and self.stack[-1] is item:
                self.stack.pop()
            elif self.stack and self.enforce_nesting:
                raise AssertionError(f"Nesting violated for default stack of {type(item)} objects")
            elif item in self.stack:
                self.stack.remove(item)


default_stack = DefaultStack()
default_sessions = DefaultStack()
