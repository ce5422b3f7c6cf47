"""Writes checkpoints of version 1, for programs that ask for them: one table file (see checkpoint_v1).

All of it goes to a file under another name, which is flushed to the disk and renamed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.base.errors import InvalidArgumentError, OpError
from thalweg.formats.abandoned import remove_abandoned
from thalweg.formats.atomic import remove_quietly, sync_folder, temporary_name
from thalweg.formats.checkpoint_v1 import FIELDS, VERSION
from thalweg.formats.file_errors import file_errors
from thalweg.formats.protos.checkpoint_pb2 import SavedTensorSlices
from thalweg.formats.sstable import TableWriter
from thalweg.formats.table_blocks import put_varint
from thalweg.formats.tensor_bytes import byte_view
from thalweg.formats.tensor_slices import Shape, Slice, format_slice, slice_key, slice_shape, slice_to_proto

#: bytes of a tensor at most: it is one message
_LIMIT = (1 << 31) - (1 << 20)
#: the fields of TensorProto that are packed as the memory of their values, by number
_PACKED = {"float_val": 5, "double_val": 6, "scomplex_val": 9, "dcomplex_val": 12, "bool_val": 11}


class SliceToSave(NamedTuple):
    """A tensor, or a slice of one. value gives it when it is written: one at a time is in memory."""

    name: str
    full_shape: Shape
    extents: Slice
    value: Callable[[], np.ndarray]


def write_checkpoint_v1(path: str, slices: Sequence[SliceToSave]) -> None:
    """Writes a checkpoint. On return it is on the disk; where it fails, what was there stays.

    Errors: InvalidArgumentError for a type that version 1 doesn't have, a slice given twice, or a tensor of
    2 GB; the file's errors.
    """
    by_key = {slice_key(s.name.encode("utf-8", "surrogateescape"), s.extents): s for s in slices}
    if len(by_key) < len(slices):
        raise InvalidArgumentError(None, None, f"{path}: a tensor or slice is there twice")
    meta = SavedTensorSlices()
    meta.meta.versions.producer = VERSION
    by_name: dict[str, Any] = {}
    for s in sorted(slices, key=lambda s: s.name.encode("utf-8", "surrogateescape")):
        _add_meta(meta.meta, by_name, s)
    remove_abandoned(os.path.dirname(path) or ".")
    temporary = temporary_name(path)
    try:
        with file_errors(temporary), open(temporary, "xb") as file:
            table = TableWriter(file)
            table.add(b"", meta.SerializeToString())
            for key in sorted(by_key):
                table.add(key, _entry(by_key[key]))
            table.finish()
            file.flush()
            os.fsync(file.fileno())
        with file_errors(path):
            os.replace(temporary, path)
    except OpError:
        remove_quietly(temporary)
        raise
    sync_folder(os.path.dirname(path))


def _add_meta(meta: Any, by_name: dict[str, Any], s: SliceToSave) -> None:
    value = s.value()
    dtype = dtypes.as_dtype(value.dtype)
    where = f"slice of '{s.name}'"
    if slice_shape(s.full_shape, s.extents, where) != value.shape:
        raise InvalidArgumentError(
            None, None, f"{where}: {format_slice(s.extents)} has another shape than {list(value.shape)}"
        )
    if dtype.name not in FIELDS:
        raise InvalidArgumentError(
            None,
            None,
            f"Unhandled data type {dtype.name} of '{s.name}': version 1 of checkpoints has no such",
        )
    if value.nbytes > _LIMIT:
        raise InvalidArgumentError(
            None,
            None,
            f"Tensor slice '{s.name}' of {value.nbytes} bytes is too large to serialize: use version 2",
        )
    saved = by_name.get(s.name)
    if saved is None:
        saved = by_name[s.name] = meta.tensor.add(name=s.name, type=dtype.as_datatype_enum)
        saved.shape.SetInParent()
        for d in s.full_shape:
            saved.shape.dim.add(size=d)
    elif saved.type != dtype.as_datatype_enum or tuple(d.size for d in saved.shape.dim) != s.full_shape:
        raise InvalidArgumentError(None, None, f"slices of '{s.name}' don't agree on type and shape")
    slice_to_proto(s.extents, saved.slice.add())


def _entry(s: SliceToSave) -> bytes:
    value = s.value()
    message = SavedTensorSlices()
    message.data.name = s.name
    message.data.slice.SetInParent()
    slice_to_proto(s.extents, message.data.slice)
    message.data.data.SetInParent()
    _put_values(message.data.data, value, dtypes.as_dtype(value.dtype))
    return message.SerializeToString()


def _put_values(proto: Any, value: np.ndarray, dtype: DType) -> None:
    """Fills in the field of a TensorProto for values of that type."""
    field, _ = FIELDS[dtype.name]
    if value.size == 0:
        return
    if field in _PACKED:
        data = byte_view(value)
        packed = bytearray()
        put_varint(packed, _PACKED[field] << 3 | 2)
        put_varint(packed, data.size)
        proto.MergeFromString(bytes(packed) + data.tobytes())
        return
    flat = value.ravel()
    if dtype.name == "float16":
        flat = flat.view(np.uint16)
    elif dtype.is_quantized:
        flat = flat.view(flat.dtype[0])
    getattr(proto, field).extend(flat.tolist())
