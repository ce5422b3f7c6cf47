"""Reads tensor bundles: checkpoints of version 2, a prefix.index and prefix.data-?????-of-????? files."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from thalweg.base.dtypes import DType
from thalweg.base.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from thalweg.formats.crc32c import unmask
from thalweg.formats.file_errors import RandomAccessFile
from thalweg.formats.protos.checkpoint_pb2 import BundleEntryProto, BundleHeaderProto
from thalweg.formats.sstable import TableReader
from thalweg.formats.tensor_bytes import (
    dtype_of,
    element_count,
    empty_array,
    number_checksum,
    read_strings,
    shape_from_proto,
)
from thalweg.formats.tensor_slices import (
    FULL,
    Extent,
    Shape,
    Slice,
    assemble,
    format_slice,
    index_of,
    slice_from_proto,
    slice_key,
    slice_shape,
)

#: what of the format is written and read (tensor_bundle.h)
VERSION = 1


def index_path(prefix: str) -> str:
    """The file that says what is in a bundle."""
    return f"{prefix}.index"


def data_path(prefix: str, shard: int, shards: int) -> str:
    """The file of a shard's bytes."""
    return f"{prefix}.data-{shard:05d}-of-{shards:05d}"


class BundleReader:
    """The tensors of a checkpoint of version 2. Any thread may read.

    Opening it reads the whole index; data files are opened when they are needed. Errors: NotFoundError
    without an index or for a name that isn't there; DataLossError for damage, with path and offset;
    InvalidArgumentError, UnimplementedError for what a newer version wrote.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._files: dict[int, RandomAccessFile] = {}
        self._lock = threading.Lock()
        self._cut: tuple[str | None, Any] = (None, None)
        self.entries: dict[str, Any] = {}
        self._slice_entries: dict[bytes, Any] = {}
        path = index_path(prefix)
        file = RandomAccessFile(path)
        try:
            table = TableReader(file)
            header = table.get(b"")
            if header is None:
                raise DataLossError(None, None, f"{path}: a table, but no tensor bundle: it has no header")
            self.shards = self._check_header(header, path)
            for key, value in table.items():
                self._add_entry(key, value, path)
        finally:
            file.close()

    def _check_header(self, data: bytes, path: str) -> int:
        header = BundleHeaderProto()
        try:
            header.ParseFromString(data)
        except DecodeError as e:
            raise DataLossError(None, None, f"{path}: the header is damaged") from e
        version = header.version
        if version.min_consumer > VERSION or VERSION in version.bad_consumers:
            raise InvalidArgumentError(
                None,
                None,
                f"{path}: written for readers of version {version.min_consumer} on; this one has {VERSION}",
            )
        if header.num_shards < 1:
            raise DataLossError(None, None, f"{path}: {header.num_shards} shards")
        self._big_endian = header.endianness == BundleHeaderProto.BIG
        return header.num_shards

    def _add_entry(self, key: bytes, value: bytes, path: str) -> None:
        if not key:
            return
        entry = BundleEntryProto()
        try:
            entry.ParseFromString(value)
            if key[0] == 0:
                self._slice_entries[key] = entry
            else:
                self.entries[key.decode("utf-8", "surrogateescape")] = entry
        except DecodeError as e:
            raise DataLossError(None, None, f"{path}: the entry of {key!r} is damaged") from e

    # ---- what there is ---------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The names of all tensors, sorted."""
        return list(self.entries)

    def has(self, name: str) -> bool:
        """Whether there is a tensor of that name."""
        return name in self.entries

    def _entry(self, name: str) -> Any:
        entry = self.entries.get(name)
        if entry is None:
            raise NotFoundError(None, None, f"Key {name} not found in checkpoint {self.prefix}")
        return entry

    def _where(self, name: str) -> str:
        return f"{index_path(self.prefix)}: tensor '{name}'"

    def dtype(self, name: str) -> DType:
        """The type of a tensor."""
        return dtype_of(self._entry(name).dtype, self._where(name))

    def shape(self, name: str) -> Shape:
        """The shape of a tensor; of the whole, where it is in slices."""
        return shape_from_proto(self._entry(name).shape, self._where(name))

    def slices(self, name: str) -> list[Slice]:
        """The slices that a tensor is stored in; none for one stored whole."""
        return [slice_from_proto(s) for s in self._entry(name).slices]

    # ---- values ----------------------------------------------------------------------------------------

    def read(self, name: str, extents: Slice | None = None) -> np.ndarray:
        """The value of a tensor or of a slice of it. The caller owns the array."""
        entry = self._entry(name)
        if not entry.slices:
            if extents is None:
                return self._read_entry(entry, self._where(name))
            cut = self._cut  # the slices of a partitioned variable are asked for one after the other
            whole = cut[1] if cut[0] == name else self._read_entry(entry, self._where(name))
            self._cut = (name, whole)
            slice_shape(whole.shape, extents, self._where(name))
            return whole[index_of(whole.shape, extents)].copy()
        shape, where = self.shape(name), self._where(name)
        if extents is None:
            extents = tuple(Extent(0, FULL) for _ in shape)
        wanted = slice_shape(shape, extents, where)
        stored = self.slices(name)
        if extents in stored:
            return self._read_slice(name, shape, extents)
        for part in stored:
            slice_shape(shape, part, where)
        known = sum(
            self._slice_entries[k].size for s in stored if (k := self._key(name, s)) in self._slice_entries
        )
        if self.dtype(name).size * element_count(wanted) > known:
            raise DataLossError(None, None, f"{where}: its slices don't hold shape {list(wanted)}")
        result = empty_array(wanted, self.dtype(name), where)
        parts = [(index_of(shape, s), lambda s=s: self._read_slice(name, shape, s)) for s in stored]
        assemble(result, index_of(shape, extents), parts, where)
        return result

    def _key(self, name: str, extents: Slice) -> bytes:
        return slice_key(name.encode("utf-8", "surrogateescape"), extents)

    def _read_slice(self, name: str, shape: Shape, extents: Slice) -> np.ndarray:
        where = f"{self._where(name)}, slice {format_slice(extents)}"
        entry = self._slice_entries.get(self._key(name, extents))
        if entry is None:
            raise DataLossError(None, None, f"{where}: its entry is missing")
        value = self._read_entry(entry, where)
        if value.shape != slice_shape(shape, extents, where) or entry.dtype != self._entry(name).dtype:
            raise DataLossError(None, None, f"{where}: its entry has another shape or type")
        return value

    def _read_entry(self, entry: Any, where: str) -> np.ndarray:
        dtype, shape = dtype_of(entry.dtype, where), shape_from_proto(entry.shape, where)
        count = element_count(shape)
        if dtype.size and count * dtype.size != entry.size:
            raise DataLossError(
                None,
                None,
                f"{where}: shape {list(shape)} of {dtype.name} needs {count * dtype.size} bytes, "
                f"its entry has {entry.size}",
            )
        file = self._file(entry.shard_id, where)
        what = f"tensor{where.rpartition(': tensor')[2]}"
        if dtype.size:
            file.check(entry.offset, entry.size, what)
            value = empty_array(shape, dtype, where)
            file.read_into(value, entry.offset, what)
            crc = number_checksum(value.reshape(-1).view(np.uint8))
        else:
            data = file.read(entry.offset, entry.size, what)
            value, crc = read_strings(data, count, f"{file.path}: {what} at offset {entry.offset}")
            value = value.reshape(shape)
        if crc != unmask(entry.crc32c):
            raise DataLossError(
                None,
                None,
                f"{file.path}: wrong checksum of {what} at offset {entry.offset} with {entry.size} bytes: "
                f"stored {unmask(entry.crc32c):#010x}, calculated {crc:#010x}",
            )
        return _native(value) if self._big_endian and dtype.size > 1 else value

    def _file(self, shard: int, where: str) -> RandomAccessFile:
        if not 0 <= shard < self.shards:
            raise DataLossError(None, None, f"{where}: in shard {shard} of {self.shards}")
        with self._lock:
            file = self._files.get(shard)
            if file is None:
                file = self._files[shard] = RandomAccessFile(data_path(self.prefix, shard, self.shards))
            return file

    def close(self) -> None:
        """Closes the data files."""
        with self._lock:
            for file in self._files.values():
                file.close()
            self._files.clear()
        self._cut = (None, None)

    def __enter__(self) -> BundleReader:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _native(value: np.ndarray) -> np.ndarray:
    """A value that a big-endian machine wrote."""
    if value.dtype.kind not in "iufcV":
        raise UnimplementedError(None, None, f"big-endian values of type {value.dtype}")
    size = value.dtype.itemsize // (2 if value.dtype.kind == "c" else 1)
    swapped = value.reshape(-1).view(f"u{size}").byteswap()
    return swapped.view(value.dtype).reshape(value.shape)
