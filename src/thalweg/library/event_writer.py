"""A thread that writes events to a file. Source: TensorFlow's event_file_writer.py."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from typing import Any

from thalweg.formats.event_files import EventsWriter
from thalweg.formats.file_system import as_path, make_directories
from thalweg.library import tf_logging


class EventFileWriter:
    """Writes Event messages into a new file of the folder `logdir`, in a thread of its own.

    max_queue: how many events may wait before add_event does; any number where it is 0.
    flush_secs: how long an event may wait to be flushed. filename_suffix: put at the end of the file's name.

    What was added is written when the program ends, also without close.
    """

    def __init__(
        self,
        logdir: Any,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str | None = None,
    ) -> None:
        self._logdir = as_path(logdir)
        if self._logdir:
            make_directories(self._logdir)
        self._file = EventsWriter(os.path.join(self._logdir, "events"), filename_suffix or "")
        self._max_queue = max_queue
        self._flush_secs = flush_secs
        self._start()

    def _start(self) -> None:
        self._log = _EventLog(self._file, self._max_queue, self._flush_secs)
        # the log doesn't know this object: it lives, and is ended, with the program or with this object
        self._end = weakref.finalize(self, self._log.stop)

    def get_logdir(self) -> str:
        """The folder."""
        return self._logdir

    def add_event(self, event: Any) -> None:
        """Adds an Event. Nothing happens on a closed writer. Errors: what writing an earlier one raised."""
        if self._end.alive:
            self._log.put(event.SerializeToString())

    def flush(self) -> None:
        """Waits until everything added is in the file."""
        if self._end.alive:
            self._log.flush()

    def close(self) -> None:
        """Flushes and closes the file. Errors: what writing raised."""
        if self._end.alive:
            try:
                self._log.flush()
            finally:
                self._end()

    def reopen(self) -> None:
        """Makes a closed writer go on, in a new file."""
        if not self._end.alive:
            self._start()


class _EventLog:
    """A queue of serialised events, and the thread that writes them."""

    def __init__(self, file: EventsWriter, max_queue: int, flush_secs: float) -> None:
        self._file = file
        self._max_queue = max_queue
        self._flush_secs = flush_secs
        self._changed = threading.Condition()
        self._queue: deque[bytes] = deque()
        self._added = 0  # events so far; the first _flushed of them are in the file
        self._flushed = 0
        self._flush_wanted = 0
        self._file_wanted = False  # a flush of no events makes the file
        self._stopping = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="EventLoggerThread", daemon=True)
        self._thread.start()

    def put(self, event: bytes) -> None:
        with self._changed:
            while 0 < self._max_queue <= len(self._queue) and self._error is None:
                self._changed.wait()
            self._raise_error()
            self._queue.append(event)
            self._added += 1
            self._changed.notify_all()

    def flush(self) -> None:
        with self._changed:
            self._flush_wanted = wanted = self._added
            self._file_wanted = True
            self._changed.notify_all()
            while (self._flushed < wanted or self._file_wanted) and self._error is None:
                self._changed.wait()
            self._raise_error()

    def stop(self) -> None:
        """Writes what waits, ends the thread, closes the file."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._write_until_stopped()
            self._file.close()
        except Exception as e:  # kept for whoever adds or flushes next
            tf_logging.error("EventFileWriter writer thread error: %s", e)
            with self._changed:
                self._error = e
                self._changed.notify_all()

    def _write_until_stopped(self) -> None:
        written = flushed = 0
        due = 0.0  # the first event is flushed at once: TensorBoard then sees the run
        while True:
            with self._changed:
                while not (self._queue or self._stopping or self._file_wanted):
                    left = due - time.monotonic() if written > flushed else None
                    if left is not None and left <= 0:
                        break
                    self._changed.wait(left)
                events = list(self._queue)
                self._queue.clear()
                asked, stopping = self._file_wanted, self._stopping
                self._changed.notify_all()
            for event in events:
                self._file.write(event)
            written += len(events)
            if asked or (written > flushed and time.monotonic() >= due):
                self._file.flush()
                flushed = written
                due = time.monotonic() + self._flush_secs
                with self._changed:
                    self._flushed = flushed
                    self._file_wanted = self._file_wanted and self._flush_wanted > flushed
                    self._changed.notify_all()
            if stopping and not events:
                return
