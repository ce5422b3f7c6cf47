"""One step: its deadline, its cancellation, what it waits for; and what a stateful kernel sees of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from thalweg.base.errors import CancelledError, DeadlineExceededError, OpError
from thalweg.runtime.arrays import as_lent
from thalweg.runtime.resources import Variable

if TYPE_CHECKING:
    from thalweg.graph.operation import Operation
    from thalweg.runtime.worker import Worker


class Step:
    """One run of a plan: its deadline (timeout_ms from now, 0 for none) and its cancellation. Thread-safe."""

    __slots__ = ("_callbacks", "_cancelled", "_lock", "deadline", "parts", "rendezvous", "stats")

    def __init__(self, timeout_ms: int = 0) -> None:
        self.deadline = time.monotonic() + timeout_ms / 1000.0 if timeout_ms > 0 else None
        #: a StepRecorder, where the step is traced
        self.stats: Any = None
        #: of a step in several partitions: where they meet, and the run of all of them (runtime.partitions)
        self.rendezvous: Any = None
        self.parts: Any = None
        self._cancelled: OpError | None = None
        self._callbacks: list[Callable[[], Any]] = []
        self._lock = threading.Lock()

    def remaining(self) -> float | None:
        """Seconds to the deadline (0 once it has passed), or None where there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def cancel(self, error: OpError | None = None) -> None:
        """Ends every wait of the step. The first error is kept."""
        with self._lock:
            if self._cancelled is None:
                self._cancelled = error or CancelledError(None, None, "Step was cancelled by close()")
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], Any]) -> Callable[[], None]:
        """Calls `callback` on cancellation (at once where it has happened). Returns what takes it back."""
        with self._lock:
            late = self._cancelled is not None
            if not late:
                self._callbacks.append(callback)
        if late:
            callback()

        def remove() -> None:
            with self._lock:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)

        return remove

    @property
    def cancelled(self) -> bool:
        """Whether the step was cancelled."""
        return self._cancelled is not None

    def check(self) -> None:
        """Raises where the step was cancelled or its deadline has passed."""
        if self._cancelled is not None:
            raise self._cancelled
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlineExceededError(None, None, "Timed out waiting for the step to finish")


class KernelContext:
    """What a stateful kernel sees: its node, the step, and the worker that keeps the state."""

    __slots__ = ("op", "step", "worker")

    def __init__(self, op: Operation, step: Step, worker: Worker) -> None:
        self.op = op
        self.step = step
        self.worker = worker

    @property
    def resources(self) -> Any:
        """The session's (or server's) ResourceManager."""
        return self.worker.resources

    def resource(self, handle: Any) -> Any:
        """The queue, barrier, accumulator or mutex behind a handle."""
        return self.worker.resource(handle)

    def own_resource(self) -> Any:
        """The resource that the node itself names (a staging area)."""
        return self.worker.own_resource(self.op)

    def lent(self, value: Any) -> Any:
        """The array behind a variable that the kernel was lent, or the array that it got.

        It is the variable's own memory where that is the CPU's: to be read before the kernel returns.
        """
        if isinstance(value, Variable):
            value = value.value
        return as_lent(value)

    def fail(self, error: type[OpError], message: str) -> OpError:
        """An error that names the node, to be raised."""
        return error(None, self.op, f"{self.op.type} '{self.op.name}': {message}")
