"""Whole files in one op: ReadFile, WriteFile, MatchingFiles. Source: TensorFlow's whole_file_read_ops.cc,
matching_files_op.cc."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import errors
from thalweg.base.shape import Shape
from thalweg.formats import file_system
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import stateful

_NO_GRADIENT = NotDifferentiable("files have no gradient")


def _path(context: Any, value: Any, what: str) -> bytes:
    if np.ndim(value):
        raise context.fail(
            errors.InvalidArgumentError, f"{what} must be a scalar, but has shape {np.shape(value)}"
        )
    path: bytes = np.asarray(value, object).item()
    return path


def _named(context: Any, error: errors.OpError) -> errors.OpError:
    return context.fail(type(error), error.message)


def _read_kernel(context: Any, filename: Any) -> np.ndarray:
    path = _path(context, filename, "Input filename tensor")
    try:
        return np.array(file_system.read_whole(path), object)
    except errors.OpError as e:
        raise _named(context, e) from e


def _write_kernel(context: Any, filename: Any, contents: Any) -> None:
    path, data = (
        _path(context, filename, "Input filename tensor"),
        _path(context, contents, "Contents tensor"),
    )
    try:
        folder = file_system.as_path(path).rpartition("/")[0]
        if folder and not file_system.is_directory(folder):
            file_system.make_directories(folder)
        file_system.write_whole(path, data)
    except errors.OpError as e:
        raise _named(context, e) from e


def _matching_kernel(context: Any, pattern: Any) -> np.ndarray:
    found: list[str] = []
    try:
        for one in np.asarray(pattern, object).ravel():
            found += file_system.matching(one)
    except errors.OpError as e:
        raise _named(context, e) from e
    result = np.empty(len(found), object)
    result[:] = sorted(path.encode(errors="surrogateescape") for path in found)
    return result


def _scalar_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    return [()]


def _write_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    c.with_rank(1, 0)
    return []


def _matching_shape(c: ShapeContext) -> list[Shape]:
    shape = c.shape(0)
    if shape is not None and len(shape) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {len(shape)}")
    return [(None,)]


define_op(
    "ReadFile",
    inputs="filename: string",
    outputs="contents: string",
    shape=_scalar_shape,
    kernel=stateful(_read_kernel),
    gradient=_NO_GRADIENT,
    doc="All of a file.",
)

define_op(
    "WriteFile",
    inputs="filename: string, contents: string",
    shape=_write_shape,
    kernel=stateful(_write_kernel),
    stateful=True,
    gradient=_NO_GRADIENT,
    doc="Makes or replaces a file, and the folders above it.",
)

define_op(
    "MatchingFiles",
    inputs="pattern: string",
    outputs="filenames: string",
    shape=_matching_shape,
    kernel=stateful(_matching_kernel),
    gradient=_NO_GRADIENT,
    doc="The paths that match a pattern, or any of several, sorted.",
)
