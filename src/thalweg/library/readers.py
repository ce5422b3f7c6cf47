"""Readers: objects over a reader's node, fed with file names by a queue. Source: TensorFlow's io_ops.py."""

from __future__ import annotations

from typing import Any

from thalweg.base import dtypes
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library.record_io import TFRecordOptions


class ReaderBase:
    """Reads records from files, whose names come from a queue. Its state lives across steps.

    reader_ref: the reader's node, as the tensor that it puts out.
    """

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    @property
    def reader_ref(self) -> Tensor:
        """The reader's node, as the tensor that it puts out."""
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        """Whether the reader's state can be saved."""
        return self._supports_serialize

    def read(self, queue: Any, name: str | None = None) -> Any:
        """(key, value) of the next record. The queue gives a file name when one is needed.

        OutOfRangeError where the queue is closed and empty.
        """
        return self._emit("ReaderRead", _handle(queue), name=name)

    def read_up_to(self, queue: Any, num_records: Any, name: str | None = None) -> Any:
        """(keys, values) of up to num_records records; they are of one file, so there may be fewer."""
        return self._emit("ReaderReadUpTo", _handle(queue), num_records, name=name)

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records the reader has given."""
        return self._emit("ReaderNumRecordsProduced", name=name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files the reader has read to their end."""
        return self._emit("ReaderNumWorkUnitsCompleted", name=name)

    def serialize_state(self, name: str | None = None) -> Tensor:
        """The state as a string. UnimplementedError when run, where supports_serialize is False."""
        return self._emit("ReaderSerializeState", name=name)

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """The operation that goes on from a state."""
        return self._emit("ReaderRestoreState", state, name=name)

    def reset(self, name: str | None = None) -> Operation:
        """The operation that goes back to the start."""
        return self._emit("ReaderReset", name=name)

    def _emit(self, op: str, *arguments: Any, name: str | None) -> Any:
        version = "V2" if self._reader_ref.dtype == dtypes.resource else ""
        return emit(op + version, self._reader_ref, *arguments, name=name)


def _handle(queue: Any) -> Tensor:
    return queue if isinstance(queue, Tensor) else queue.queue_ref


class WholeFileReader(ReaderBase):
    """Gives whole files: the key is the name, the value the contents."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(emit("WholeFileReaderV2", name=name), supports_serialize=True)


class TextLineReader(ReaderBase):
    """Gives the lines of files, without their ends. skip_header_lines: left out at the start of each file."""

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        skip = 0 if skip_header_lines is None else skip_header_lines
        super().__init__(emit("TextLineReaderV2", skip_header_lines=skip, name=name))


class FixedLengthRecordReader(ReaderBase):
    """Gives pieces of record_bytes bytes, each hop_bytes after the one before (record_bytes where that is 0).

    header_bytes, footer_bytes: left out at the ends of each file. encoding: "", "ZLIB" or "GZIP".
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        super().__init__(
            emit(
                "FixedLengthRecordReaderV2",
                record_bytes=record_bytes,
                header_bytes=header_bytes or 0,
                footer_bytes=footer_bytes or 0,
                hop_bytes=hop_bytes or 0,
                encoding=encoding or "",
                name=name,
            )
        )


class TFRecordReader(ReaderBase):
    """Gives the records of TFRecord files. options: how they are compressed."""

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        compression = TFRecordOptions.get_compression_type_string(options)
        super().__init__(emit("TFRecordReaderV2", compression_type=compression, name=name))


class IdentityReader(ReaderBase):
    """Gives the names themselves, as keys and values."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(emit("IdentityReaderV2", name=name), supports_serialize=True)
