"""Saving and restoring tensors.

Source: TensorFlow's save_restore_v2_ops.cc, save_op.cc, restore_op.cc, io_ops.cc.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from thalweg.base.dtypes import DType, as_dtype
from thalweg.base.errors import InvalidArgumentError, OpError
from thalweg.base.shape import Shape
from thalweg.formats.bundle_writer import BundleWriter, merge_bundles
from thalweg.formats.checkpoint_reader import CheckpointFile, Wanted, check_fit, open_checkpoint
from thalweg.formats.checkpoint_v1 import CheckpointV1Reader
from thalweg.formats.checkpoint_v1_writer import SliceToSave, write_checkpoint_v1
from thalweg.formats.tensor_slices import FULL, Extent, parse_slice_spec, slice_shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import host, stateful

_NO_GRADIENT = NotDifferentiable("files have no gradients")


def _text(value: Any) -> str:
    return np.asarray(value).item().decode("utf-8", "surrogateescape")


def _texts(values: np.ndarray) -> list[str]:
    return [v.decode("utf-8", "surrogateescape") for v in values.ravel().tolist()]


@contextmanager
def _naming(context: Any) -> Iterator[None]:
    """Errors of files name the node too."""
    try:
        yield
    except OpError as e:
        if e.op is not None:
            raise
        raise context.fail(type(e), e.message) from e


# ---- saving ----------------------------------------------------------------------------------------------


def _save_v2_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    for i in (1, 2):
        rows = c.with_rank(i, 1)
        if rows is not None and rows[0] is not None and rows[0] != len(c) - 3:
            raise ValueError(f"{len(c) - 3} tensors to save, but {rows[0]} {('names', 'slices')[i - 1]}")
    return []


def _save_v2(
    context: Any, prefix: Any, tensor_names: np.ndarray, shape_and_slices: np.ndarray, tensors: Sequence[Any]
) -> None:
    names, slices = _texts(tensor_names), _texts(shape_and_slices)
    if not len(names) == len(slices) == len(tensors):
        raise context.fail(
            InvalidArgumentError,
            f"got {len(names)} names and {len(slices)} slices for {len(tensors)} tensors",
        )
    with _naming(context), BundleWriter(_text(prefix)) as writer:
        for name, spec, tensor in zip(names, slices, tensors, strict=True):
            context.step.check()  # a cancelled step leaves no checkpoint
            value = np.asarray(context.lent(tensor))
            if spec:
                writer.add_slice(name, *parse_slice_spec(spec), value)
            else:
                writer.add(name, value)


define_op(
    "SaveV2",
    inputs="prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes",
    attrs="dtypes: list(type) >= 1",
    shape=_save_v2_shape,
    kernel=stateful(_save_v2, lends=True),
    stateful=True,
    gradient=_NO_GRADIENT,
    doc="Writes a checkpoint (version 2). When it has run, it is on the disk, whole; else it isn't there.",
)


def _merge_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 1)
    c.with_rank(1, 0)
    return []


def _merge(
    context: Any,
    checkpoint_prefixes: np.ndarray,
    destination_prefix: Any,
    *,
    delete_old_dirs: bool,
    allow_missing_files: bool,
) -> None:
    prefixes, destination = _texts(checkpoint_prefixes), _text(destination_prefix)
    with _naming(context):
        merge_bundles(prefixes, destination, allow_missing_files)
    if delete_old_dirs:
        kept = os.path.dirname(destination)
        for folder in dict.fromkeys(os.path.dirname(p) for p in prefixes):
            if folder != kept:
                try:
                    os.rmdir(folder)
                except OSError:
                    pass  # something else is in it


define_op(
    "MergeV2Checkpoints",
    inputs="checkpoint_prefixes: string, destination_prefix: string",
    attrs="delete_old_dirs: bool = True, allow_missing_files: bool = False",
    shape=_merge_shape,
    kernel=stateful(_merge),
    stateful=True,
    gradient=_NO_GRADIENT,
    doc="Makes one sharded checkpoint of several, whose data files move to it.",
)


def _save_v1(
    context: Any, filename: Any, tensor_names: np.ndarray, specs: Sequence[str], tensors: Sequence[Any]
) -> None:
    names = _texts(tensor_names)
    if not len(names) == len(specs) == len(tensors):
        raise context.fail(
            InvalidArgumentError,
            f"got {len(names)} names and {len(specs)} slices for {len(tensors)} tensors",
        )
    with _naming(context):
        slices = []
        for name, spec, tensor in zip(names, specs, tensors, strict=True):
            shape = np.asarray(context.lent(tensor)).shape
            full, extents = parse_slice_spec(spec) if spec else (shape, (Extent(0, FULL),) * len(shape))
            slices.append(SliceToSave(name, full, extents, functools.partial(_lent, context, tensor)))
        write_checkpoint_v1(_text(filename), slices)


def _lent(context: Any, tensor: Any) -> np.ndarray:
    context.step.check()
    return np.asarray(context.lent(tensor))


def _save(context: Any, filename: Any, tensor_names: np.ndarray, data: Sequence[Any]) -> None:
    _save_v1(context, filename, tensor_names, [""] * len(data), data)


def _save_slices(
    context: Any, filename: Any, tensor_names: np.ndarray, shapes_and_slices: np.ndarray, data: Sequence[Any]
) -> None:
    _save_v1(context, filename, tensor_names, _texts(shapes_and_slices), data)


def _save_v1_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    c.with_rank(1, 1)
    return []


define_op(
    "Save",
    inputs="filename: string, tensor_names: string, data: T",
    attrs="T: list(type) >= 1",
    shape=_save_v1_shape,
    kernel=stateful(_save, lends=True),
    stateful=True,
    gradient=_NO_GRADIENT,
    doc="Writes a checkpoint of version 1: one file, there whole or not at all.",
)

define_op(
    "SaveSlices",
    inputs="filename: string, tensor_names: string, shapes_and_slices: string, data: T",
    attrs="T: list(type) >= 1",
    shape=_save_v1_shape,
    kernel=stateful(_save_slices, lends=True),
    stateful=True,
    gradient=_NO_GRADIENT,
    doc="Writes tensors, and slices of tensors, as a checkpoint of version 1.",
)


# ---- restoring -------------------------------------------------------------------------------------------


def _spec_shape(spec: str) -> Shape:
    """The static shape that a slice spec says."""
    try:
        return slice_shape(*parse_slice_spec(spec), spec) if spec else None
    except InvalidArgumentError as e:
        raise ValueError(e.message) from e


def _restore_v2_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    c.with_rank(1, 1)
    c.with_rank(2, 1)
    n, specs = len(c.attr("dtypes")), c.value(2)
    if specs is None:
        return [None] * n
    if specs.size != n:
        raise ValueError(f"{n} tensors to restore, but {specs.size} slices")
    return [_spec_shape(s) for s in _texts(specs)]


def _read(reader: CheckpointFile, name: str, spec: str) -> np.ndarray:
    return reader.read(name, parse_slice_spec(spec)[1] if spec else None)


def _restore_v2(
    context: Any,
    prefix: Any,
    tensor_names: np.ndarray,
    shape_and_slices: np.ndarray,
    *,
    dtypes: Sequence[Any],
) -> list[np.ndarray]:
    names, slices = _texts(tensor_names), _texts(shape_and_slices)
    if not len(names) == len(slices) == len(dtypes):
        raise context.fail(
            InvalidArgumentError, f"got {len(names)} names and {len(slices)} slices for {len(dtypes)} tensors"
        )
    wanted = [Wanted(n, s, _dtype(d)) for n, s, d in zip(names, slices, dtypes, strict=True)]
    with _naming(context), open_checkpoint(_text(prefix)) as reader:
        check_fit(reader, wanted)
        result = []
        for w in wanted:
            context.step.check()
            result.append(_read(reader, w.name, w.slice_spec))
        return result


def _dtype(dtype: Any) -> DType:
    return as_dtype(dtype)


define_op(
    "RestoreV2",
    inputs="prefix: string, tensor_names: string, shape_and_slices: string",
    outputs="tensors: dtypes",
    attrs="dtypes: list(type) >= 1",
    shape=_restore_v2_shape,
    kernel=stateful(_restore_v2),
    stateful=True,
    gradient=_NO_GRADIENT,
    doc="Tensors from a checkpoint of either version; all of them or an error that names all that don't fit.",
)


def _restore_v1(context: Any, pattern: Any, name: Any, spec: str, dtype: Any) -> np.ndarray:
    with _naming(context), CheckpointV1Reader(_text(pattern)) as reader:
        check_fit(reader, [Wanted(_text(name), spec, _dtype(dtype))])
        return _read(reader, _text(name), spec)


def _restore(context: Any, file_pattern: Any, tensor_name: Any, *, dt: Any) -> np.ndarray:
    return _restore_v1(context, file_pattern, tensor_name, "", dt)


def _restore_slice(
    context: Any, file_pattern: Any, tensor_name: Any, shape_and_slice: Any, *, dt: Any
) -> np.ndarray:
    return _restore_v1(context, file_pattern, tensor_name, _text(shape_and_slice), dt)


def _restore_shape(c: ShapeContext) -> list[Shape]:
    for i in range(len(c)):
        c.with_rank(i, 0)
    spec = c.value(2) if len(c) == 3 else None
    return [None if spec is None else _spec_shape(_text(spec))]


define_op(
    "Restore",
    inputs="file_pattern: string, tensor_name: string",
    outputs="tensor: dt",
    attrs="dt: type, preferred_shard: int = -1",
    shape=_restore_shape,
    kernel=stateful(_restore),
    stateful=True,
    gradient=_NO_GRADIENT,
    doc="A tensor from the files of a checkpoint of version 1.",
)

define_op(
    "RestoreSlice",
    inputs="file_pattern: string, tensor_name: string, shape_and_slice: string",
    outputs="tensor: dt",
    attrs="dt: type, preferred_shard: int = -1",
    shape=_restore_shape,
    kernel=stateful(_restore_slice),
    stateful=True,
    gradient=_NO_GRADIENT,
    doc="A slice of a tensor from the files of a checkpoint of version 1.",
)


# ---- file names ------------------------------------------------------------------------------------------


def _sharded_shape(c: ShapeContext) -> list[Shape]:
    for i in range(len(c)):
        c.with_rank(i, 0)
    return [()]


def _bytes(text: str) -> np.ndarray:
    return np.array(text.encode("utf-8", "surrogateescape"), object)


define_op(
    "ShardedFilename",
    inputs="basename: string, shard: int32, num_shards: int32",
    outputs="filename: string",
    shape=_sharded_shape,
    kernel=host(
        lambda basename, shard, num_shards: _bytes(
            f"{_text(basename)}-{int(shard):05d}-of-{int(num_shards):05d}"
        )
    ),
    gradient=_NO_GRADIENT,
    doc="The name of a shard's file: base-00001-of-00005.",
)

define_op(
    "ShardedFilespec",
    inputs="basename: string, num_shards: int32",
    outputs="filename: string",
    shape=_sharded_shape,
    kernel=host(lambda basename, num_shards: _bytes(f"{_text(basename)}-?????-of-{int(num_shards):05d}")),
    gradient=_NO_GRADIENT,
    doc="A pattern of the names of all shards' files.",
)
