"""A few threads that help with steps of several partitions."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable

#: threads of one pool at most. A step always goes on in its caller's thread, so this only bounds the help
LIMIT = 16
#: seconds after which a thread without work ends
IDLE_SECONDS = 10.0

_Tasks = queue.SimpleQueue[Callable[[], object] | None]


class _State:
    """What the threads of a pool share; they don't hold the pool itself."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tasks: _Tasks = queue.SimpleQueue()
        self.idle = 0
        self.count = 0
        self.closed = False


class Threads:
    """Threads started when there is work for them, which end when there is none for a while. Thread-safe."""

    def __init__(self, name: str = "thalweg-step", limit: int = LIMIT) -> None:
        self._name = name
        self._limit = limit
        self._state = _State()
        weakref.finalize(self, _close, self._state)

    @property
    def count(self) -> int:
        """How many there are."""
        return self._state.count

    def submit(self, task: Callable[[], object]) -> bool:
        """Lets a thread call task(), which must not raise; False where none will: closed, or all are busy."""
        state = self._state
        with state.lock:
            if state.closed:
                return False
            if state.idle > 0:
                state.idle -= 1  # that thread is taken
                state.tasks.put(task)
                return True
            if state.count >= self._limit:
                return False
            state.count += 1
        threading.Thread(target=_work, args=(state, task), name=self._name, daemon=True).start()
        return True

    def close(self) -> None:
        """Ends the threads, each when it has done what it does. No others start."""
        _close(self._state)


def _work(state: _State, task: Callable[[], object] | None) -> None:
    while task is not None:
        task()
        del task
        with state.lock:
            if state.closed:
                break
            state.idle += 1
        task = _next(state)
    with state.lock:
        state.count -= 1


def _next(state: _State) -> Callable[[], object] | None:
    """The next task; None when it is time to end."""
    try:
        return state.tasks.get(timeout=IDLE_SECONDS)
    except queue.Empty:
        pass
    with state.lock:
        if state.idle > 0:  # nobody has counted on this thread
            state.idle -= 1
            return None
    return state.tasks.get()


def _close(state: _State) -> None:
    with state.lock:
        state.closed = True
        idle, state.idle = state.idle, 0
    for _ in range(idle):
        state.tasks.put(None)
