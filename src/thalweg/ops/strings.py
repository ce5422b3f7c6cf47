"""Strings put together and tested. Source: TensorFlow's string_ops.cc."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel import checks
from thalweg.kernel.convention import host

NO_GRADIENT = NotDifferentiable("strings have no gradient")


def _join_shape(c: ShapeContext) -> list[Shape]:
    known: Shape = ()
    for shape in c.shapes():
        if shape is None:
            known = None if known == () else known
        elif shape:
            known = shapes.merge(None if known == () else known, shape)
    return [known]


def _join(inputs: list[Any], *, separator: str) -> np.ndarray:
    arrays = [np.asarray(x, object) for x in inputs]
    shape = next((a.shape for a in arrays if a.ndim), ())
    for a in arrays:
        if a.ndim and a.shape != shape:
            raise InvalidArgumentError(
                None, None, f"Input shapes do not match: {list(shape)} vs. {list(a.shape)}"
            )
    result = np.empty(shape, object)
    between = separator.encode()
    flat = [a.ravel() if a.ndim else None for a in arrays]
    out = result.reshape(-1)
    for i in range(out.size):
        out[i] = between.join(a.item() if f is None else f[i] for a, f in zip(arrays, flat, strict=True))
    return result


define_op(
    "StringJoin",
    inputs="inputs: N * string",
    outputs="output: string",
    attrs="N: int >= 0, separator: string = ''",
    shape=_join_shape,
    kernel=host(_join),
    gradient=NO_GRADIENT,
    doc="The strings of several tensors joined element by element; scalars go with every element.",
)


@functools.lru_cache(maxsize=256)
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    try:
        return re.compile(pattern)
    except re.error as e:
        raise InvalidArgumentError(None, None, f"Invalid pattern: {pattern.decode()}, error: {e}") from None


def _full_match(x: Any, pattern: bytes) -> np.ndarray:
    compiled = _compiled(pattern)
    x = np.asarray(x, object)
    matches = [compiled.fullmatch(v) is not None for v in x.ravel()]
    return np.array(matches, bool).reshape(x.shape)


define_op(
    "StaticRegexFullMatch",
    inputs="input: string",
    outputs="output: bool",
    attrs="pattern: string",
    shape=lambda c: [c.shape(0)],
    kernel=host(lambda x, *, pattern: _full_match(x, pattern.encode())),
    gradient=NO_GRADIENT,
    doc="Whether each whole string matches a regular expression.",
)

define_op(
    "RegexFullMatch",
    inputs="input: string, pattern: string",
    outputs="output: bool",
    shape=lambda c: (c.with_rank(1, 0), [c.shape(0)])[1],
    kernel=host(lambda x, pattern: _full_match(x, np.asarray(pattern).item())),
    gradient=NO_GRADIENT,
    doc="Whether each whole string matches a regular expression.",
)


def _substring(text: bytes, pos: int, size: int, index: int, unit: str) -> bytes:
    units: Any = text if unit == "BYTE" else text.decode("utf-8", "surrogateescape")
    start = pos if pos >= 0 else pos + len(units)
    message = f"pos {pos} out of range for string {units!r} at index {index}"
    checks.require(0 <= start <= len(units), lambda: message)
    part = units[start : start + max(size, 0)]
    return part if unit == "BYTE" else part.encode("utf-8", "surrogateescape")


def _substr(x: Any, pos: Any, size: Any, *, unit: str) -> np.ndarray:
    checks.require(
        np.shape(pos) == np.shape(size),
        lambda: f"pos and len should have the same shape, got: {np.shape(pos)} vs. {np.shape(size)}",
    )
    x = np.asarray(x, object)
    try:
        texts, starts, sizes = np.broadcast_arrays(x, pos, size)
    except ValueError as e:
        raise InvalidArgumentError(None, None, str(e)) from None
    result = np.empty(texts.shape, object)
    out = result.reshape(-1)
    for i, (text, start, n) in enumerate(zip(texts.flat, starts.flat, sizes.flat, strict=True)):
        out[i] = _substring(text, int(start), int(n), i, unit)
    return result


def _substr_shape(c: ShapeContext) -> list[Shape]:
    pos, size = c.shape(1), c.shape(2)
    if pos is not None and size is not None and len(pos) != len(size):
        raise ValueError(f"pos and len must have the same rank, but have {len(pos)} and {len(size)}")
    return [shapes.broadcast(c.shape(0), pos)]


define_op(
    "Substr",
    inputs="input: string, pos: T, len: T",
    outputs="output: string",
    attrs="T: {int32, int64}, unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
    shape=_substr_shape,
    kernel=host(_substr),
    gradient=NO_GRADIENT,
    doc="Parts of strings: from pos on (from the end, where it is negative), len bytes or characters.",
)
