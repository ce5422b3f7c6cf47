"""Writes tensor bundles, so that a checkpoint is there whole or not at all.

Bytes go to a file under another name, which is flushed to the disk and renamed; the index comes last, and it
is the index that makes a checkpoint. A checkpoint of the same name is replaced at one moment too: where the
new data files would take the place of those that the old index speaks of, they get other numbers first
(`data-00001-of-00002`), the new index is put in place, and then both get the usual names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.base.errors import InvalidArgumentError, OpError
from thalweg.formats.abandoned import remove_abandoned
from thalweg.formats.atomic import EarlyWriter, remove_quietly, sync_folder, temporary_name
from thalweg.formats.bundle_reader import VERSION, BundleReader, data_path, index_path
from thalweg.formats.crc32c import mask
from thalweg.formats.file_errors import file_errors
from thalweg.formats.protos.checkpoint_pb2 import BundleEntryProto, BundleHeaderProto
from thalweg.formats.sstable import TableWriter
from thalweg.formats.tensor_bytes import StringBytes, byte_view, dtype_of, number_checksum
from thalweg.formats.tensor_slices import (
    Slice,
    format_slice,
    slice_from_proto,
    slice_key,
    slice_shape,
    slice_to_proto,
)

_BUFFER = 1 << 20


class BundleWriter:
    """Writes one shard: `add` and `add_slice`, then `finish`. A context manager: an error leaves nothing.

    An array is written when it is added, and not kept. Until `finish` has returned, a checkpoint that was
    there under the prefix is whole. Errors: InvalidArgumentError for a name given twice; the file's errors,
    such as ResourceExhaustedError for a full disk.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._entries: dict[bytes, Any] = {}
        self._offset = 0
        folder = os.path.dirname(prefix)
        if folder and not os.path.isdir(folder):
            with file_errors(folder):
                os.mkdir(folder)  # the last one only, as in TensorFlow
        remove_abandoned(folder or ".")
        self._path = temporary_name(data_path(prefix, 0, 1))
        with file_errors(self._path):
            self._file: IO[bytes] = open(self._path, "xb", buffering=_BUFFER)  # noqa: SIM115 - closed by finish
        self._early = EarlyWriter(self._file.fileno())

    def add(self, name: str, value: np.ndarray, dtype: DType | None = None) -> None:
        """Writes a tensor."""
        key = name.encode("utf-8", "surrogateescape")
        if not key or key[0] == 0:
            raise InvalidArgumentError(None, None, f"{name!r} can't be the name of a tensor in a checkpoint")
        self._add(key, name, value, dtype)

    def add_slice(
        self,
        name: str,
        full_shape: Sequence[int],
        extents: Slice,
        value: np.ndarray,
        dtype: DType | None = None,
    ) -> None:
        """Writes a slice of a tensor."""
        where = f"slice of '{name}'"
        if slice_shape(tuple(full_shape), extents, where) != value.shape:
            raise InvalidArgumentError(
                None,
                None,
                f"{where}: {format_slice(extents)} of shape {list(full_shape)} has another shape than the "
                f"value: {list(value.shape)}",
            )
        if value.shape == tuple(full_shape):
            self.add(name, value, dtype)
            return
        dtype = dtype or dtypes.as_dtype(value.dtype)
        key = name.encode("utf-8", "surrogateescape")
        whole = BundleEntryProto(dtype=dtype.base_dtype.as_datatype_enum)
        for d in full_shape:
            whole.shape.dim.add(size=d)
        whole = self._entries.setdefault(key, whole)
        _check_same(whole, dtype, tuple(full_shape), name)
        slice_to_proto(extents, whole.slices.add())
        self._add(slice_key(key, extents), f"{name} {format_slice(extents)}", value, dtype)

    def _add(self, key: bytes, name: str, value: np.ndarray, dtype: DType | None) -> None:
        if key in self._entries:
            raise InvalidArgumentError(None, None, f"Adding duplicate key: {name}")
        dtype = dtype or dtypes.as_dtype(value.dtype)
        entry = BundleEntryProto(dtype=dtype.base_dtype.as_datatype_enum, offset=self._offset)
        dtype_of(entry.dtype, f"tensor '{name}'")
        entry.shape.SetInParent()
        for d in value.shape:
            entry.shape.dim.add(size=d)
        with file_errors(self._path):
            if dtype.size:
                data = byte_view(value)
                entry.size, crc = data.size, number_checksum(data)
                self._file.write(data.data)
            else:
                strings = StringBytes(value)
                self._file.writelines(strings.pieces())
                entry.size, crc = strings.size, strings.crc
        self._early.wrote(entry.size)
        entry.crc32c = mask(crc)
        self._offset += entry.size
        self._entries[key] = entry

    def finish(self) -> None:
        """Puts the checkpoint in its place. Returns when it is on the disk."""
        try:
            with file_errors(self._path):
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
            publish(self.prefix, [self._path], self._entries)
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Removes what was written."""
        try:
            self._file.close()
        except OSError:
            pass  # a full disk: what is buffered can't be written
        remove_quietly(self._path)

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.finish()
        else:
            self.abort()


def _check_same(entry: Any, dtype: DType, shape: tuple[int, ...], name: str) -> None:
    """All slices of a tensor say the same of the whole."""
    has = tuple(d.size for d in entry.shape.dim)
    if entry.dtype != dtype.base_dtype.as_datatype_enum or has != shape:
        raise InvalidArgumentError(
            None,
            None,
            f"slices of '{name}' don't agree: type {entry.dtype} and shape {list(has)}, "
            f"type {dtype.base_dtype.as_datatype_enum} and shape {list(shape)}",
        )


# ---- merging ---------------------------------------------------------------------------------------------


def merge_bundles(prefixes: Sequence[str], destination: str, allow_missing: bool = False) -> None:
    """Makes one checkpoint of several: their data files become its shards, under its name.

    allow_missing: those that don't exist are passed over. Errors: as reading; InvalidArgumentError where two
    have a tensor of the same name that isn't in slices, or disagree about one that is.
    """
    entries: dict[bytes, Any] = {}
    paths: list[str] = []
    for prefix in prefixes:
        if allow_missing and not os.path.exists(index_path(prefix)):
            continue
        with BundleReader(prefix) as reader:
            first = len(paths)
            paths += [data_path(prefix, i, reader.shards) for i in range(reader.shards)]
            for name, entry in reader.entries.items():
                _merge_entry(entries, name.encode("utf-8", "surrogateescape"), name, entry, first)
            for key, entry in reader._slice_entries.items():
                _merge_entry(entries, key, repr(key), entry, first)
    publish(destination, paths, entries)
    remove_abandoned(os.path.dirname(destination) or ".")
    for prefix in prefixes:
        remove_quietly(index_path(prefix))


def _merge_entry(entries: dict[bytes, Any], key: bytes, name: str, entry: Any, first_shard: int) -> None:
    entry.shard_id += first_shard
    if not entry.slices:
        if key in entries:
            raise InvalidArgumentError(
                None, None, f"Duplicate tensor in the checkpoints to be merged: {name}"
            )
        entries[key] = entry
        return
    merged = entries.setdefault(key, entry)
    if merged is not entry:
        shape = tuple(d.size for d in entry.shape.dim)
        _check_same(merged, dtype_of(entry.dtype, name), shape, name)
        known = {slice_from_proto(s) for s in merged.slices}
        merged.slices.extend(s for s in entry.slices if slice_from_proto(s) not in known)


# ---- putting in place ------------------------------------------------------------------------------------


def publish(prefix: str, paths: Sequence[str], entries: dict[bytes, Any]) -> None:
    """Makes a checkpoint of data files under other names (shard i is paths[i]) and of entries by key.

    Law: at each moment the index that is there, old or new, speaks of data files that are there. Where it
    fails, the old one stays.
    """
    shards = len(paths)
    usual = [data_path(prefix, i, shards) for i in range(shards)]
    taken = os.path.exists(index_path(prefix)) and any(os.path.exists(p) for p in usual)
    count, first = _free_numbers(prefix, shards) if taken else (shards, 0)
    new = [data_path(prefix, first + i, count) for i in range(shards)]
    try:
        for path, final in zip(paths, new, strict=True):
            _rename(path, final)
        sync_folder(os.path.dirname(prefix))
        _write_index(prefix, entries, count, first)
    except OpError:
        for path in new:
            remove_quietly(path)
        raise
    _remove_left_over(prefix, usual if taken and _give_usual_names(prefix, entries, new, usual) else new)


def _free_numbers(prefix: str, shards: int) -> tuple[int, int]:
    """(number of shards, first shard) of data files that aren't there yet, past the usual numbers."""
    count = shards * 2
    while any(os.path.exists(data_path(prefix, count - 1 - i, count)) for i in range(shards)):
        count += 1
    return count, count - shards


def _give_usual_names(prefix: str, entries: dict[bytes, Any], other: list[str], usual: list[str]) -> bool:
    """Both names for a moment, an index that speaks of the usual ones, then only these.

    False where that doesn't work, as on file systems without second names for a file: the checkpoint is as
    good under its unusual ones.
    """
    links = [temporary_name(path) for path in usual]
    try:
        for path, link, final in zip(other, links, usual, strict=True):
            os.link(path, link)
            _rename(link, final)
        sync_folder(os.path.dirname(prefix))
        _write_index(prefix, entries, len(usual), 0)
    except (OSError, OpError):
        for link in links:
            remove_quietly(link)
        return False
    return True


def _write_index(prefix: str, entries: dict[bytes, Any], shards: int, first_shard: int) -> None:
    header = BundleHeaderProto(num_shards=shards)
    header.version.producer = VERSION
    path = temporary_name(index_path(prefix))
    try:
        with file_errors(path), open(path, "xb") as file:
            table = TableWriter(file)
            table.add(b"", header.SerializeToString())
            for key in sorted(entries):
                entry = entries[key]
                if first_shard and not entry.slices:
                    moved = BundleEntryProto()
                    moved.CopyFrom(entry)
                    moved.shard_id += first_shard
                    entry = moved
                table.add(key, entry.SerializeToString(deterministic=True))
            table.finish()
            file.flush()
            os.fsync(file.fileno())
        _rename(path, index_path(prefix))
    except OpError:
        remove_quietly(path)
        raise
    sync_folder(os.path.dirname(prefix))


def _remove_left_over(prefix: str, kept: Sequence[str]) -> None:
    """Removes data files of a checkpoint that was replaced, and of tries that were cut off."""
    pattern = re.compile(re.escape(os.path.basename(prefix)) + r"\.data-\d{5,}-of-\d{5,}")
    folder = os.path.dirname(prefix) or "."
    names = {os.path.basename(path) for path in kept}
    for name in os.listdir(folder):
        if name not in names and pattern.fullmatch(name):
            remove_quietly(os.path.join(folder, name))


def _rename(path: str, final: str) -> None:
    with file_errors(final):
        os.replace(path, final)
