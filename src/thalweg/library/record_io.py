"""TFRecord files outside of graphs: tf.python_io. Source: TensorFlow's lib/io/tf_record.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thalweg.formats.file_system import as_path
from thalweg.formats.records import Deflate, RecordReader, RecordWriter


class TFRecordCompressionType:
    """How the records of a file are compressed: all of them as one stream."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """How a TFRecord file is compressed.

    compression_type: "", "ZLIB", "GZIP" or a TFRecordCompressionType; ValueError for anything else. The rest
    are zlib's parameters, None for its defaults. Buffer sizes make no difference here.
    """

    compression_type_map = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.get_compression_type_string(compression_type)
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """ "", "ZLIB" or "GZIP" for options, a TFRecordCompressionType or one of these strings."""
        if not options:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        found = cls.compression_type_map.get(options, options)
        if found not in cls.compression_type_map.values():
            raise ValueError(f'Not a valid compression_type: "{options}"')
        return str(found)

    def _deflate(self) -> Deflate:
        given = {
            "flush_mode": self.flush_mode,
            "window_bits": self.window_bits,
            "level": self.compression_level,
            "method": self.compression_method,
            "memory_level": self.mem_level,
            "strategy": self.compression_strategy,
        }
        return Deflate(**{k: v for k, v in given.items() if v is not None})


class TFRecordWriter:
    """Writes records to a file, which it makes or replaces.

    options: a TFRecordOptions, a TFRecordCompressionType or a string.
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        if not isinstance(options, TFRecordOptions):
            options = TFRecordOptions(compression_type=options)
        compression = TFRecordOptions.get_compression_type_string(options)
        self._writer = RecordWriter(as_path(path), compression, options._deflate())

    def write(self, record: bytes) -> None:
        """Adds a record (a serialised Example, say)."""
        if not isinstance(record, bytes | bytearray | memoryview):
            raise TypeError(f"a record is bytes, not {type(record).__name__}")
        self._writer.write(bytes(record))

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        self._writer.flush()

    def close(self) -> None:
        """Writes out what is left and closes the file."""
        self._writer.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """The records of a file, one by one. NotFoundError at once, DataLossError when a damaged one comes."""
    reader = RecordReader(as_path(path), TFRecordOptions.get_compression_type_string(options))
    return _all(reader)


def _all(reader: RecordReader) -> Iterator[bytes]:
    with reader:
        yield from reader
