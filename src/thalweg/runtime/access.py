"""Who may touch which variables now: shared to read, exclusive to write, all of a launch at once.

A launch asks for its whole set and gets it whole, so there is no deadlock; requests that conflict are
served in order of arrival, so there is no starvation. Where nothing else runs, asking costs one lock.
"""

from __future__ import annotations

import threading

from thalweg.base.errors import CancelledError, DeadlineExceededError
from thalweg.runtime.resources import Variable
from thalweg.runtime.step import Step


class Access:
    """One launch's set of variables: what it reads and what it writes."""

    __slots__ = ("all", "writes")

    def __init__(self, reads: list[Variable], writes: list[Variable]) -> None:
        self.writes = frozenset(writes)
        self.all = self.writes.union(reads)

    def conflicts(self, other: Access) -> bool:
        """Whether the two may not hold at once."""
        return not (self.writes.isdisjoint(other.all) and other.writes.isdisjoint(self.all))


class AccessManager:
    """Grants accesses. Thread-safe; waiting ends with the step's deadline or cancellation."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._held: list[Access] = []
        self._waiting: list[tuple[Access, threading.Event]] = []

    def acquire(self, access: Access, step: Step) -> None:
        """Returns when the access is held. DeadlineExceededError or CancelledError where it can't wait."""
        if not access.all:
            return
        with self._mutex:
            if not self._held and not self._waiting:
                self._held.append(access)
                return
            if not any(access.conflicts(a) for a in (*self._held, *(w for w, _ in self._waiting))):
                self._held.append(access)
                return
            event = threading.Event()
            entry = (access, event)
            self._waiting.append(entry)
        self._wait(entry, step)

    def _wait(self, entry: tuple[Access, threading.Event], step: Step) -> None:
        access, event = entry
        remove = step.on_cancel(event.set)
        try:
            woken = event.wait(step.remaining())
        except BaseException:  # an interrupt: nobody would release what is granted later, or was meanwhile
            if not self._withdraw(entry):
                self.release(access)
            raise
        finally:
            remove()
        if not self._withdraw(entry):
            return
        names = ", ".join(sorted(v.name for v in access.all)[:5])
        if woken:
            raise CancelledError(None, None, f"Step was cancelled while it waited for {names}")
        raise DeadlineExceededError(
            None, None, f"Timed out waiting for other steps to finish with the variables {names}"
        )

    def _withdraw(self, entry: tuple[Access, threading.Event]) -> bool:
        """Takes a request back and lets through whom it held up. False where it was granted meanwhile."""
        with self._mutex:
            if entry not in self._waiting:
                return False
            self._waiting.remove(entry)
            self._grant()
            return True

    def release(self, access: Access) -> None:
        """Gives an access back."""
        if not access.all:
            return
        with self._mutex:
            self._held.remove(access)
            if self._waiting:
                self._grant()

    def _grant(self) -> None:
        """Grants what can be granted, in order of arrival. Called with the mutex."""
        blocked: list[Access] = []
        still: list[tuple[Access, threading.Event]] = []
        for entry in self._waiting:
            access = entry[0]
            if any(access.conflicts(h) for h in self._held) or any(access.conflicts(b) for b in blocked):
                blocked.append(access)
                still.append(entry)
            else:
                self._held.append(access)
                entry[1].set()
        self._waiting = still

    def __repr__(self) -> str:
        return f"<AccessManager held={len(self._held)} waiting={len(self._waiting)}>"


