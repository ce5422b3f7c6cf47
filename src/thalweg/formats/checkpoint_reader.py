"""Reads a checkpoint of either version, and says what of it doesn't fit."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.base.errors import InvalidArgumentError, NotFoundError
from thalweg.formats.bundle_reader import BundleReader, index_path
from thalweg.formats.checkpoint_v1 import CheckpointV1Reader
from thalweg.formats.tensor_bytes import element_count
from thalweg.formats.tensor_slices import parse_slice_spec, slice_shape

CheckpointFile = BundleReader | CheckpointV1Reader


def open_checkpoint(prefix: str) -> CheckpointFile:
    """The checkpoint of that name: of version 2 where there is an index, else of version 1.

    Errors: NotFoundError where there is neither; as BundleReader and CheckpointV1Reader.
    """
    if os.path.exists(index_path(prefix)):
        return BundleReader(prefix)
    return CheckpointV1Reader(prefix)


@dataclass(frozen=True)
class Wanted:
    """A tensor that somebody wants from a checkpoint, or a slice of one (slice_spec, "" for all of it)."""

    name: str
    slice_spec: str
    dtype: DType
    #: the shape of what takes it, as far as it is known; None: any
    shape: tuple[int | None, ...] | None = None
    #: how many elements it must have, where it is reshaped; None: any
    elements: int | None = None


def check_fit(reader: CheckpointFile, wanted: Sequence[Wanted]) -> None:
    """Raises one error that names everything that the checkpoint can't give, with names that come near.

    NotFoundError where names are missing, else InvalidArgumentError for types, shapes and slices.
    """
    missing = list(dict.fromkeys(w.name for w in wanted if not reader.has(w.name)))
    problems = [text for w in wanted if reader.has(w.name) for text in _misfit(reader, w)]
    if not missing and not problems:
        return
    lines = [_missing_text(name, reader if i < _NEAR else None) for i, name in enumerate(missing)]
    kind = NotFoundError if missing else InvalidArgumentError
    head = f"{len(lines) + len(problems)} tensors don't fit checkpoint {reader.prefix}; nothing is restored"
    if len(lines) + len(problems) == 1:
        head = f"{(lines + problems)[0]} (checkpoint {reader.prefix}; nothing is restored)"
        raise kind(None, None, head)
    raise kind(None, None, "\n  ".join([f"{head}:", *lines, *problems]))


#: how many of the missing names get names that come near: finding them takes time
_NEAR = 20


def _missing_text(name: str, reader: CheckpointFile | None) -> str:
    near = _near(name, reader.names()) if reader is not None else []
    hint = f"; there are {', '.join(near)}" if near else ""
    return f"Key {name} not found in checkpoint{hint}"


def _near(name: str, names: list[str]) -> list[str]:
    """Names that come near: with the same last part, or alike."""
    last = name.rpartition("/")[2]
    same = [n for n in names if n.rpartition("/")[2] == last]
    alike = difflib.get_close_matches(name, same if len(names) > 5000 else names, 3, 0.6)
    return list(dict.fromkeys([*alike, *same]))[:3]


def _misfit(reader: CheckpointFile, wanted: Wanted) -> list[str]:
    problems = []
    name, stored, shape = wanted.name, reader.dtype(wanted.name), reader.shape(wanted.name)
    if stored is not wanted.dtype.base_dtype:
        problems.append(
            f"tensor_name = {name}; expected dtype {wanted.dtype.base_dtype.name} does not equal original "
            f"dtype {stored.name}"
        )
    if wanted.slice_spec:
        full, extents = parse_slice_spec(wanted.slice_spec)
        if full != shape:
            problems.append(
                f"tensor_name = {name}; shape in shape_and_slice spec {shapes.format_shape(full)} does not "
                f"match the shape stored in checkpoint: {shapes.format_shape(shape)}"
            )
            return problems
        shape = slice_shape(full, extents, name)
    if not shapes.is_compatible(shape, wanted.shape):
        problems.append(
            f"tensor_name = {name}; shape {shapes.format_shape(wanted.shape)} in the graph does not match "
            f"shape {shapes.format_shape(shape)} in the checkpoint"
        )
    if wanted.elements is not None and element_count(shape) != wanted.elements:
        problems.append(
            f"tensor_name = {name}; shape {shapes.format_shape(shape)} in the checkpoint can't be "
            f"reshaped to {wanted.elements} elements"
        )
    return problems
