"""Staging areas and mutexes. Source: TensorFlow's stage_op.cc, mutex_ops.cc."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base.errors import FailedPreconditionError, ResourceExhaustedError
from thalweg.runtime.waiting import Resource, Wait, tell_all


class _Put(Wait):
    __slots__ = ("nbytes", "values")

    def __init__(self, area: StagingArea, op: Any, values: Sequence[np.ndarray], nbytes: int) -> None:
        super().__init__(area, op)
        self.values = list(values)
        self.nbytes = nbytes


class _Get(Wait):
    """peek: the index of the element to look at, or -1 to take the first."""

    __slots__ = ("is_used", "peek")

    def __init__(self, area: StagingArea, op: Any, peek: int) -> None:
        super().__init__(area, op)
        self.peek = peek
        self.is_used = False

    def result(self) -> Any:
        """The values."""
        result = super().result()
        self.is_used = True
        return result


class StagingArea(Resource):
    """Tuples of arrays between steps, first in, first out. 0 means no limit. Thread-safe."""

    def __init__(self, name: str, capacity: int, memory_limit: int) -> None:
        super().__init__(name)
        self.capacity = capacity
        self.memory_limit = memory_limit
        self._items: deque[tuple[list[np.ndarray], int]] = deque()
        self._bytes = 0
        self._puts: deque[_Put] = deque()
        self._gets: list[_Get] = []

    def put(self, op: Any, values: Sequence[np.ndarray]) -> Wait:
        """Adds a tuple when there is room. ResourceExhaustedError where there never will be."""
        nbytes = sum(v.nbytes for v in values)
        if self.memory_limit and nbytes > self.memory_limit:
            raise ResourceExhaustedError(
                None,
                op,
                f"Attempted to insert tensors with combined size of '{nbytes}' bytes into Staging Area with "
                f"a memory limit of '{self.memory_limit}'.",
            )
        wait = _Put(self, op, values, nbytes)
        return self._start(self._puts, wait)

    def get(self, op: Any) -> Wait:
        """Takes the first tuple."""
        return self._start(self._gets, _Get(self, op, -1))

    def peek(self, op: Any, index: int) -> Wait:
        """The tuple at an index, when there are as many; it stays."""
        return self._start(self._gets, _Get(self, op, index))

    def _start(self, waits: Any, wait: Wait) -> Wait:
        ended: list[Wait] = []
        with self.lock:
            waits.append(wait)
            self.advance(ended)
        tell_all(ended)
        return wait

    def clear(self) -> None:
        """Drops all tuples."""
        ended: list[Wait] = []
        with self.lock:
            self._items.clear()
            self._bytes = 0
            self.advance(ended)
        tell_all(ended)

    def size(self) -> int:
        """How many tuples there are."""
        return len(self._items)

    def advance(self, ended: list[Wait]) -> None:
        while self._advance_puts(ended) or self._advance_gets(ended):
            pass

    def _advance_puts(self, ended: list[Wait]) -> bool:
        if not self._puts:
            return False
        put = self._puts[0]
        if self.capacity and len(self._items) >= self.capacity:
            return False
        if self.memory_limit and self._bytes + put.nbytes > self.memory_limit:
            return False
        self._puts.popleft()
        self._items.append((put.values, put.nbytes))
        self._bytes += put.nbytes
        put.end()
        ended.append(put)
        return True

    def _advance_gets(self, ended: list[Wait]) -> bool:
        for get in self._gets:
            if len(self._items) <= max(get.peek, 0):
                continue
            if get.peek < 0:
                values, nbytes = self._items.popleft()
                self._bytes -= nbytes
            else:
                values = self._items[get.peek][0]
            self._gets.remove(get)
            get.end(values)
            ended.append(get)
            return True
        return False

    def forget(self, wait: Wait) -> None:
        (self._gets if isinstance(wait, _Get) else self._puts).remove(wait)  # type: ignore[arg-type]

    def take_back(self, wait: Wait, ended: list[Wait]) -> None:
        if isinstance(wait, _Get) and wait.peek < 0 and not wait.is_used and wait.has_result():
            values = wait.result()
            nbytes = sum(v.nbytes for v in values)
            self._items.appendleft((values, nbytes))
            self._bytes += nbytes
            self.advance(ended)

    def describe(self, wait: Wait) -> str:
        if isinstance(wait, _Put):
            return f"staging area '{self.name}' to have room"
        assert isinstance(wait, _Get)
        n = max(wait.peek, 0) + 1 - len(self._items)
        return f"staging area '{self.name}' to have {n} more element{'s' * (n != 1)}"


class Mutex(Resource):
    """Mutual exclusion between nodes. Thread-safe."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._held = False
        self._waiting: deque[Wait] = deque()

    def acquire(self, op: Any) -> Wait:
        """The lock, when nobody else has it."""
        wait = Wait(self, op)
        ended: list[Wait] = []
        with self.lock:
            self._waiting.append(wait)
            self.advance(ended)
        tell_all(ended)
        return wait

    def release(self) -> None:
        """Called by the lock."""
        ended: list[Wait] = []
        with self.lock:
            self._held = False
            self.advance(ended)
        tell_all(ended)

    def advance(self, ended: list[Wait]) -> None:
        if self._waiting and not self._held:
            self._held = True
            wait = self._waiting.popleft()
            box = np.empty((), object)
            box[()] = MutexLock(self)
            wait.end([box])
            ended.append(wait)

    def forget(self, wait: Wait) -> None:
        self._waiting.remove(wait)

    def describe(self, wait: Wait) -> str:
        return f"mutex '{self.name}'"


class MutexLock:
    """A mutex that is held: until `consume`, or until nobody holds this any more."""

    __slots__ = ("_mutex",)

    def __init__(self, mutex: Mutex) -> None:
        self._mutex: Mutex | None = mutex

    def consume(self, op: Any) -> None:
        """Gives the mutex back. FailedPreconditionError the second time."""
        mutex, self._mutex = self._mutex, None
        if mutex is None:
            raise FailedPreconditionError(None, op, "the mutex lock was consumed before")
        mutex.release()

    def __del__(self) -> None:
        if self._mutex is not None:
            self._mutex.release()


