"""What an operation that may block hands back, and how its waiting ends.

A *resource* here is a state machine under one lock: a call changes its state and collects the waits that can
end now; they are told after the lock is released, so nothing foreign runs inside it. No thread waits in here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from thalweg.base.errors import CancelledError, OpError


class Done:
    """A future that is there already."""

    __slots__ = ("_result",)

    def __init__(self, result: Any = None) -> None:
        self._result = result

    def done(self) -> bool:
        """True."""
        return True

    def result(self) -> Any:
        """The result."""
        return self._result

    def cancel(self) -> bool:
        """Too late."""
        return False

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Calls it now."""
        callback(self)


class Wait:
    """The future of one operation on a resource; the part of concurrent.futures.Future that executors use.

    Its state belongs to the resource and changes under the resource's lock only.
    """

    __slots__ = ("_callbacks", "_error", "_is_done", "_result", "op", "resource")

    def __init__(self, resource: Resource, op: Any) -> None:
        self.resource = resource
        self.op = op
        self._is_done = False
        self._error: OpError | None = None
        self._result: Any = None
        self._callbacks: list[Callable[[Any], Any]] = []

    def done(self) -> bool:
        """Whether it has ended: with a result, an error or by cancel."""
        return self._is_done

    def result(self) -> Any:
        """The result of a wait that is done, or its error raised."""
        assert self._is_done
        if self._error is not None:
            raise self._error
        return self._result

    def has_result(self) -> bool:
        """Whether it has ended well."""
        return self._is_done and self._error is None

    def cancel(self) -> bool:
        """Ends the wait and leaves nothing behind; False where it had ended before.

        A result that nobody has looked at goes back to the resource, where it can.
        """
        return self.resource.cancel(self)

    def withdraw(self) -> bool:
        """As cancel, but leaves a result where it is."""
        return self.resource.cancel(self, take_back=False)

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Calls callback(self) when the wait ends; at once where it has."""
        with self.resource.lock:
            if not self._is_done:
                self._callbacks.append(callback)
                return
        callback(self)

    def describe(self) -> str:
        """What it waits for: `queue 'q' to have 3 more elements`."""
        return self.resource.describe(self)

    def end(self, result: Any = None, error: OpError | None = None) -> None:
        """Called by the resource, with its lock; `tell` must follow without it."""
        self._result = result
        self._error = error
        self._is_done = True

    def fail(self, kind: type[OpError], message: str) -> None:
        """`end` with an error that names the operation."""
        self.end(error=kind(None, self.op, message))

    def tell(self) -> None:
        """Calls the callbacks. Without the lock."""
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


class Resource:
    """What queues, accumulators, staging areas and mutexes share. Abstract."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = threading.Lock()

    def cancel(self, wait: Wait, take_back: bool = True) -> bool:
        """See Wait.cancel and Wait.withdraw."""
        ended: list[Wait] = []
        with self.lock:
            if wait.done():
                if take_back:
                    self.take_back(wait, ended)
                was_waiting = False
            else:
                self.forget(wait)
                wait.fail(CancelledError, f"{wait.op.type} '{wait.op.name}': the operation was cancelled")
                ended.append(wait)
                self.advance(ended)
                was_waiting = True
        tell_all(ended)
        return was_waiting

    def forget(self, wait: Wait) -> None:
        """Takes an unfinished wait out of the state. With the lock."""
        raise NotImplementedError

    def take_back(self, wait: Wait, ended: list[Wait]) -> None:
        """Puts the result of a finished wait back, where nobody has looked at it. With the lock."""

    def advance(self, ended: list[Wait]) -> None:
        """Ends what can end now, adding to `ended`. With the lock."""
        raise NotImplementedError

    def describe(self, wait: Wait) -> str:
        """See Wait.describe."""
        raise NotImplementedError


def tell_all(waits: list[Wait]) -> None:
    """Tells every wait that it has ended. Without a lock."""
    for wait in waits:
        wait.tell()


def withdrawn(futures: list[Any]) -> bool:
    """Ends what still waits among the futures; whether there was any. What has just ended stays as it is."""
    stuck = False
    for future in futures:
        withdraw = getattr(future, "withdraw", future.cancel)
        stuck |= withdraw() or not future.done()
    return stuck


def waited_for(pairs: list[tuple[Any, Any]]) -> str:
    """What (future, operation) pairs wait for, for an error's message."""
    parts = []
    for future, op in pairs:
        describe = getattr(future, "describe", None)
        node = f"{op.type} '{op.name}'"
        parts.append(node if describe is None else f"{describe()} ({node})")
    return "; ".join(parts)
