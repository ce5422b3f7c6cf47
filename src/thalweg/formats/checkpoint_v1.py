"""Reads checkpoints of version 1: one or more table files whose values are SavedTensorSlices messages.

The entry under the empty key says which tensors and slices a file has; each slice's values are in an entry of
its own. A tensor may be in slices over several files.
"""

from __future__ import annotations

import glob
import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from thalweg.base.dtypes import DType
from thalweg.base.errors import DataLossError, InvalidArgumentError, NotFoundError
from thalweg.formats.file_errors import RandomAccessFile
from thalweg.formats.protos.checkpoint_pb2 import SavedTensorSlices
from thalweg.formats.sstable import TableReader
from thalweg.formats.tensor_bytes import dtype_of, element_count, empty_array, shape_from_proto
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

VERSION = 1
#: the field of TensorProto that holds values of each type, and the type of its elements
FIELDS: dict[str, tuple[str, Any]] = {
    "float32": ("float_val", np.float32),
    "float64": ("double_val", np.float64),
    "int32": ("int_val", np.int32),
    "uint8": ("int_val", np.int32),
    "int16": ("int_val", np.int32),
    "uint16": ("int_val", np.int32),
    "int8": ("int_val", np.int32),
    "qint8": ("int_val", np.int32),
    "quint8": ("int_val", np.int32),
    "qint32": ("int_val", np.int32),
    "int64": ("int64_val", np.int64),
    "bool": ("bool_val", np.bool_),
    "float16": ("half_val", np.int32),
    "complex64": ("scomplex_val", np.float32),
    "complex128": ("dcomplex_val", np.float64),
    "string": ("string_val", object),
}


@dataclass
class _Tensor:
    dtype: DType
    shape: Shape
    #: the slices and the table that each is in
    slices: dict[Slice, TableReader] = field(default_factory=dict)


class CheckpointV1Reader:
    """The tensors of a checkpoint of version 1: a file, or a pattern such as `model-?????-of-00002`.

    Any thread may read. Errors: as BundleReader.
    """

    def __init__(self, pattern: str) -> None:
        self.prefix = pattern
        self._lock = threading.Lock()
        self._tensors: dict[str, _Tensor] = {}
        self._files: list[RandomAccessFile] = []
        paths = matching_files(pattern)
        if not paths:
            raise NotFoundError(
                None,
                None,
                "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for "
                f"{pattern}",
            )
        try:
            for path in paths:
                self._open(path)
        except BaseException:
            self.close()
            raise

    def _open(self, path: str) -> None:
        file = RandomAccessFile(path)
        self._files.append(file)
        try:
            table = TableReader(file)
        except DataLossError as e:
            raise DataLossError(None, None, e.message + _hint(path)) from e
        data = table.get(b"")
        message = None if data is None else _parsed(data, f"{path}: the entry of what is in it")
        if message is None or not message.HasField("meta"):
            raise DataLossError(None, None, f"{path}: a table, but no checkpoint of version 1{_hint(path)}")
        meta = message.meta
        if meta.versions.min_consumer > VERSION or VERSION in meta.versions.bad_consumers:
            raise InvalidArgumentError(
                None,
                None,
                f"{path}: written for readers of version {meta.versions.min_consumer} on; this one has "
                f"{VERSION}",
            )
        for saved in meta.tensor:
            where = f"{path}: tensor '{saved.name}'"
            shape, dtype = shape_from_proto(saved.shape, where), dtype_of(saved.type, where)
            tensor = self._tensors.setdefault(saved.name, _Tensor(dtype, shape))
            if (tensor.dtype, tensor.shape) != (dtype, shape):
                raise DataLossError(None, None, f"{where}: another type or shape than in another file")
            for proto in saved.slice:
                extents = slice_from_proto(proto)
                slice_shape(shape, extents, where)
                tensor.slices[extents] = table

    def names(self) -> list[str]:
        """The names of all tensors, sorted."""
        return sorted(self._tensors)

    def has(self, name: str) -> bool:
        """Whether there is a tensor of that name."""
        return name in self._tensors

    def _tensor(self, name: str) -> _Tensor:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise NotFoundError(
                None, None, f'Tensor name "{name}" not found in checkpoint files {self.prefix}'
            )
        return tensor

    def dtype(self, name: str) -> DType:
        """The type of a tensor."""
        return self._tensor(name).dtype

    def shape(self, name: str) -> Shape:
        """The shape of a tensor; of the whole, where it is in slices."""
        return self._tensor(name).shape

    def slices(self, name: str) -> list[Slice]:
        """The slices that a tensor is stored in; none for one stored whole."""
        slices = list(self._tensor(name).slices)
        whole = len(slices) == 1 and all(e.length == FULL for e in slices[0])
        return [] if whole else slices

    def read(self, name: str, extents: Slice | None = None) -> np.ndarray:
        """The value of a tensor or of a slice of it. The caller owns the array."""
        tensor, where = self._tensor(name), f"{self.prefix}: tensor '{name}'"
        if extents is None:
            extents = tuple(Extent(0, FULL) for _ in tensor.shape)
        wanted = slice_shape(tensor.shape, extents, where)
        if extents in tensor.slices:
            return self._read_slice(name, tensor, extents)
        size = sum(file.size for file in self._files)
        if (
            element_count(wanted) > 2 * size
        ):  # a value takes a byte or more, two in a row at least half of one
            raise DataLossError(None, None, f"{where}: shape {list(wanted)} in files of {size} bytes")
        result = empty_array(wanted, tensor.dtype, where)
        parts = [
            (index_of(tensor.shape, s), lambda s=s: self._read_slice(name, tensor, s)) for s in tensor.slices
        ]
        assemble(result, index_of(tensor.shape, extents), parts, where)
        return result

    def _read_slice(self, name: str, tensor: _Tensor, extents: Slice) -> np.ndarray:
        table = tensor.slices[extents]
        where = f"{table.path}: tensor '{name}', slice {format_slice(extents)}"
        with self._lock:
            data = table.get(slice_key(name.encode(), extents))
        if data is None:
            raise DataLossError(None, None, f"{where}: its entry is missing")
        saved = _parsed(data, where).data
        shape = slice_shape(tensor.shape, extents, where)
        return _values(saved.data, tensor.dtype, element_count(shape), where).reshape(shape)

    def close(self) -> None:
        """Closes the files."""
        for file in self._files:
            file.close()

    def __enter__(self) -> CheckpointV1Reader:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _hint(path: str) -> str:
    """What to do where a file of a checkpoint of version 2 was named."""
    prefix = re.sub(r"\.(index|data-\d+-of-\d+)$", "", path)
    return "" if prefix == path else f": the name of a checkpoint of version 2 is its prefix, '{prefix}'"


def matching_files(pattern: str) -> Sequence[str]:
    """The files of a path or pattern, sorted."""
    if os.path.lexists(pattern):
        return [pattern]
    return sorted(glob.glob(pattern))


def _parsed(data: bytes, where: str) -> Any:
    message = SavedTensorSlices()
    try:
        message.ParseFromString(data)
    except DecodeError as e:
        raise DataLossError(None, None, f"{where}: damaged") from e
    return message


def _values(proto: Any, dtype: DType, count: int, where: str) -> np.ndarray:
    """The elements of a TensorProto. DataLossError, with `where`, unless there are as many as expected."""
    if dtype.name not in FIELDS:
        raise DataLossError(None, None, f"{where}: version 1 has no values of type {dtype.name}")
    name, element = FIELDS[dtype.name]
    values = getattr(proto, name)
    per_element = 2 if dtype.is_complex else 1
    if len(values) != count * per_element:
        raise DataLossError(None, None, f"{where}: {len(values)} values, expected {count * per_element}")
    if dtype.name == "string":
        strings = np.empty(count, object)
        strings[:] = list(values)
        return strings
    flat = np.fromiter(values, element, len(values))
    numpy_type = np.dtype(dtype.as_numpy_dtype)
    if dtype.is_complex:
        return flat.view(numpy_type)
    if dtype.name == "float16":
        return flat.astype(np.uint16).view(numpy_type)
    if dtype.is_quantized:
        return flat.astype(numpy_type[0]).view(numpy_type)
    return flat.astype(numpy_type, copy=False)
