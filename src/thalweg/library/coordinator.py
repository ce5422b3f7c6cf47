"""Threads that stop together, and report the first error. Source: TensorFlow's coordinator.py."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from thalweg.base.errors import OutOfRangeError
from thalweg.library import tf_logging


class Coordinator:
    """Asks threads to stop, waits for them, and raises what the first of them reported. Thread-safe.

    clean_stop_exception_types: errors that end the work well: OutOfRangeError by default.
    """

    def __init__(self, clean_stop_exception_types: Iterable[type[BaseException]] | None = None) -> None:
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (OutOfRangeError,)
        self._clean_stop_exception_types = tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop_event = threading.Event()
        self._error: BaseException | None = None
        self._joined = False
        self._registered_threads: set[threading.Thread] = set()

    def request_stop(self, ex: Any = None) -> None:
        """Asks the threads to stop. ex: an exception or sys.exc_info(): the first one is raised by join.

        After join it is raised here.
        """
        with self._lock:
            error = ex[1] if isinstance(ex, tuple) else ex
            if isinstance(error, self._clean_stop_exception_types):
                ex = error = None
            if self._joined and ex is not None:
                raise error if isinstance(ex, tuple) else sys.exc_info()[1] or error
            if not self._stop_event.is_set():
                if ex and self._error is None:
                    tf_logging.info("Error reported to Coordinator: %s, %s", type(error), error)
                    self._error = error if isinstance(error, BaseException) else _not_an_error(ex)
                self._stop_event.set()

    def clear_stop(self) -> None:
        """Forgets that a stop was asked for, and the error."""
        with self._lock:
            self._joined = False
            self._error = None
            self._stop_event.clear()

    def should_stop(self) -> bool:
        """Whether a stop was asked for."""
        return self._stop_event.is_set()

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A context that reports exceptions raised inside, and goes on."""
        try:
            yield
        except BaseException:  # a thread's last words, whatever they are
            self.request_stop(sys.exc_info())

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until a stop is asked for; False where that takes longer than timeout (seconds)."""
        return self._stop_event.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread for join to wait for."""
        with self._lock:
            self._registered_threads.add(thread)

    def join(
        self,
        threads: Sequence[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits for `threads` and the registered ones to end, then raises the error that was reported.

        Once a stop was asked for they have stop_grace_period_secs. RuntimeError where some still live then
        and no error was reported, unless ignore_live_threads.
        """
        with self._lock:
            waited = list(self._registered_threads.union(threads or ()))
        while any(t.is_alive() for t in waited) and not self.wait_for_stop(1.0):
            pass
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in waited:
            while thread.is_alive() and (left := deadline - time.monotonic()) > 0:
                thread.join(left)
        stragglers = [t.name for t in waited if t.is_alive()]
        with self._lock:
            self._joined = True
            self._registered_threads = set()
            if self._error is not None:
                raise self._error
            if not stragglers:
                return
            text = f"Coordinator stopped with threads still running: {' '.join(stragglers)}"
            if not ignore_live_threads:
                raise RuntimeError(text)
            tf_logging.info(text)

    @property
    def joined(self) -> bool:
        """Whether join has finished."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raises the error that was reported, if there is one."""
        with self._lock:
            if self._error is not None:
                raise self._error


def _not_an_error(ex: Any) -> ValueError:
    return ValueError(f"ex must be a tuple or sys.exc_info must return the current exception: {ex}")


class LooperThread(threading.Thread):
    """A daemon thread that calls `target` (or run_loop) again and again until its coordinator stops.

    timer_interval_secs: from one call to the next; None for back to back.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise ValueError(f"'coord' argument must be a Coordinator: {coord}")
        super().__init__(daemon=True)
        if not target and (args or kwargs):
            raise ValueError("'args' and 'kwargs' argument require that you also pass 'target'")
        self._coord = coord
        self._timer_interval_secs = timer_interval_secs
        self._call = (target, args or (), kwargs or {})
        self._coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> LooperThread:
        """A LooperThread, started."""
        looper = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        """The thread's work."""
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._timer_interval_secs is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                due = time.time()
                while not self._coord.wait_for_stop(due - time.time()):
                    due += self._timer_interval_secs
                    self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called when the thread starts."""

    def stop_loop(self) -> None:
        """Called when the thread stops."""

    def run_loop(self) -> None:
        """Called at every interval."""
        target, args, kwargs = self._call
        if target:
            target(*args, **kwargs)
