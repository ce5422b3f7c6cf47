"""Event files, which TensorBoard reads: Event messages as TFRecords, one file per writer.

Source: TensorFlow's events_writer.cc.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError
from tensorboard.compat.proto import event_pb2

from thalweg.base.errors import AlreadyExistsError, DataLossError
from thalweg.formats.file_system import as_path, exists, open_file, split_scheme
from thalweg.formats.records import RecordWriter, read_records

#: what the first event of a file says of the format
FILE_VERSION = "brain.Event:2"


class EventsWriter:
    """Writes events to <prefix>.out.tfevents.<seconds>.<host><suffix>. Not for several threads.

    The file is made when the first event comes, or a flush. After close, or after somebody deleted it, the
    next event starts a new one. An existing file is never overwritten: ".1", ".2" ... is put after the name.
    """

    def __init__(self, prefix: str, suffix: str = "") -> None:
        self._prefix = prefix
        self._suffix = suffix
        self._is_local = not split_scheme(prefix)[0]
        self._file: RecordWriter | None = None

    @property
    def path(self) -> str:
        """The file written to; empty where none is open."""
        return "" if self._file is None else self._file.path

    def write(self, event: bytes) -> None:
        """Adds an Event message, as bytes."""
        self._opened().write(event)

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        self._opened().flush()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def _opened(self) -> RecordWriter:
        # to ask a remote file system each time would cost more than the event does
        if self._file is not None and (not self._is_local or exists(self._file.path)):
            return self._file
        self.close()
        now = time.time()
        name = f"{self._prefix}.out.tfevents.{int(now):010d}.{socket.gethostname()}{self._suffix}"
        file = self._file = RecordWriter(self._new_path(name))
        file.write(event_pb2.Event(wall_time=now, file_version=FILE_VERSION).SerializeToString())
        return file

    def _new_path(self, name: str) -> str:
        """A path that no file had. A number goes to its end: TensorBoard reads files by their names."""
        path, count = name, 0
        while not self._is_free(path):
            count += 1
            path = f"{name}.{count}"
        return path

    def _is_free(self, path: str) -> bool:
        """Whether there was no such file; a local one is made, so that nobody else takes it."""
        if not self._is_local:
            return not exists(path)
        try:
            open_file(path, "xb").close()
        except AlreadyExistsError:
            return False
        return True


def read_events(path: Any) -> Iterator[Any]:
    """The Event messages of a file, in order. DataLossError where it is damaged or holds others."""
    for i, record in enumerate(read_records(path)):
        try:
            event = event_pb2.Event.FromString(record)
        except DecodeError as e:
            raise DataLossError(None, None, f"{as_path(path)}: record {i} is no Event message") from e
        yield event
