"""What ops make of columns of examples: dense tensors, sparse tensors, ragged ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.formats.examples import BYTES, FLOAT, INT64, KIND_NAMES, Column, ExampleError
from thalweg.kernel import checks
from thalweg.ops._arrays import shape_text


def kind_of(dtype: np.dtype) -> int:
    """The kind of list that holds a type."""
    return BYTES if dtype.kind == "O" else FLOAT if dtype == np.float32 else INT64


@dataclass(frozen=True)
class Dense:
    """A feature with a value for every example, of a known shape; or of any number of rows."""

    key: bytes
    kind: int
    shape: tuple[Any, ...]

    @property
    def is_variable(self) -> bool:
        """Whether examples may have different numbers of rows."""
        return bool(self.shape) and self.shape[0] is None

    @property
    def stride(self) -> int:
        """The elements of one example, or of one row."""
        return math.prod(d or 0 for d in (self.shape[1:] if self.is_variable else self.shape))

    def text(self) -> str:
        """The shape as TensorFlow writes it."""
        return known_text(self.shape)


def known_text(shape: Sequence[int | None]) -> str:
    """A shape as TensorFlow's kernels write it: [?,2]."""
    return f"[{','.join('?' if d is None else str(d) for d in shape)}]"


class Names:
    """What the examples of a batch are called in errors. names: one per example, or none."""

    def __init__(self, names: Sequence[bytes], is_batch: bool = True) -> None:
        self._names = names
        self._is_batch = is_batch

    def fail(self, index: int, key: bytes | None, message: str) -> InvalidArgumentError:
        """The error of one example, to be raised."""
        if key is None:
            return failure(message)
        name = f"Name: {self.name(index)}, " if self._is_batch else ""
        where = f", Index: {index}" if self._is_batch else ""
        return failure(f"{name}Key: {_text(key)}{where}.  {message}")

    def missing(self, index: int, key: bytes, kind: int) -> InvalidArgumentError:
        """The error of a feature that an example lacks."""
        name = f"Name: {self.name(index)}, " if self._is_batch else ""
        return failure(
            f"{name}Feature: {_text(key)} (data type: {KIND_NAMES[kind]}) is required but could not be found."
        )

    def of(self, error: ExampleError) -> InvalidArgumentError:
        """The error of a damaged example."""
        return self.fail(error.index, error.key, str(error))

    def name(self, index: int) -> str:
        """What an example is called."""
        return _text(self._names[index]) if index < len(self._names) else "<unknown>"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def failure(message: str) -> InvalidArgumentError:
    """An InvalidArgumentError of the node whose kernel runs."""
    op = checks.current_op()
    return InvalidArgumentError(None, op, message if op is None else f"{op.type} '{op.name}': {message}")


def dense(column: Column, feature: Dense, default: np.ndarray, names: Names) -> np.ndarray:
    """[examples, *shape]. default: the value where the key is missing; an empty one stands for none."""
    if feature.is_variable:
        return _padded(column, feature, default, names)
    stride = feature.stride
    if column.each == stride:
        return column.values.reshape((len(column.counts), *feature.shape))
    wrong = column.present & (column.counts != stride)
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise names.fail(
            i,
            feature.key,
            f"Number of {KIND_NAMES[feature.kind]} values != expected.  Values size: {column.counts[i]} but "
            f"output shape: {feature.text()}",
        )
    n = len(column.counts)
    if column.present.all():
        return column.values.reshape((n, *feature.shape))
    if default.size != stride or (stride == 0 and default.shape != feature.shape):
        raise names.missing(int(np.flatnonzero(~column.present)[0]), feature.key, feature.kind)
    result = np.empty((n, stride), column.values.dtype)
    result[column.present] = column.values.reshape(-1, stride)
    result[~column.present] = default.reshape(-1)
    return result.reshape((n, *feature.shape))


def _padded(column: Column, feature: Dense, default: np.ndarray, names: Names) -> np.ndarray:
    stride, counts = feature.stride, column.counts
    wrong = counts % stride if stride else counts
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise names.fail(
            i,
            feature.key,
            f"Number of {KIND_NAMES[feature.kind]} values is not a multiple of stride length. Saw "
            f"{counts[i]} values but output shape is: {feature.text()}",
        )
    n = len(counts)
    longest = int(counts.max()) if n else 0
    rows = longest // stride if stride else 0
    shape = (n, rows, *feature.shape[1:])
    if longest * n == len(column.values):
        return column.values.reshape(shape)
    result = np.full((n, longest), default.reshape(()), column.values.dtype)
    result[np.arange(longest) < counts[:, None]] = column.values
    return result.reshape(shape)


def sparse(column: Column) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The indices, values and shape of a matrix with a row for each example."""
    counts = column.counts
    n, total = len(counts), len(column.values)
    indices = np.empty((total, 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(n), counts)
    indices[:, 1] = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = np.array([n, counts.max() if n else 0], np.int64)
    return indices, column.values, shape


def sparse_single(column: Column) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The indices, values and shape of the vector of one example."""
    total = len(column.values)
    return np.arange(total).reshape(-1, 1), column.values, np.array([total], np.int64)


def ragged(column: Column, split_type: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """The values, and where each example's start and end."""
    splits = np.zeros(len(column.counts) + 1, split_type)
    np.cumsum(column.counts, out=splits[1:])
    return column.values, splits


def check_default(i: int, default: np.ndarray, shape: Shape) -> None:
    """InvalidArgumentError where a default value can't stand for a feature of that shape."""
    assert shape is not None
    if shape and shape[0] is None:
        if default.size != 1:
            raise failure(
                f"dense_shape[{i}] is a variable length shape: {known_text(shape)}, therefore "
                f"def_value[{i}] must contain a single element (the padding element).  But its shape is: "
                f"{shape_text(default.shape)}"
            )
    elif default.size > 0 and default.shape != tuple(shape):
        raise failure(
            f"def_value[{i}].shape() == {shape_text(default.shape)} is not compatible with "
            f"dense_shapes_[{i}] == {known_text(shape)}"
        )


def flat_bytes(value: Any) -> list[bytes]:
    """A string tensor's elements."""
    return np.asarray(value, object).reshape(-1).tolist()


class Plan:
    """What is wanted of the features of each example: keys, kinds, shapes."""

    def __init__(
        self,
        sparse: Sequence[tuple[bytes, np.dtype]],
        dense: Sequence[tuple[bytes, np.dtype, Any]],
        ragged: Sequence[tuple[bytes, np.dtype, np.dtype]] = (),
    ) -> None:
        self.sparse = [key for key, _ in sparse]
        self.dense = [Dense(key, kind_of(dtype), tuple(shape)) for key, dtype, shape in dense]
        self.ragged = [(key, splits) for key, _, splits in ragged]
        asked: list[tuple[Any, ...]] = [*sparse, *dense, *ragged]
        self.kinds: dict[bytes, int] = {key: kind_of(dtype) for key, dtype, *_ in asked}
        keys = [*self.sparse, *(d.key for d in self.dense), *(key for key, _ in self.ragged)]
        if len(self.kinds) != len(keys):
            twice = sorted({_text(k) for k in keys if keys.count(k) > 1})
            raise failure(f"these keys are asked for more than once: {', '.join(twice)}")

    def outputs(
        self, found: Mapping[bytes, Column], defaults: Sequence[np.ndarray], names: Names
    ) -> list[Any]:
        """Of a batch: indices, values, shapes of sparse keys; dense tensors; values, splits of ragged."""
        return _flat(
            [sparse(found[key]) for key in self.sparse],
            self._dense(found, defaults, names),
            [ragged(found[key], splits) for key, splits in self.ragged],
        )

    def single_outputs(
        self, found: Mapping[bytes, Column], defaults: Sequence[np.ndarray], names: Names
    ) -> list[Any]:
        """The same of one example, without the batch's dimension; ragged keys have no splits."""
        return _flat(
            [sparse_single(found[key]) for key in self.sparse],
            [tensor.reshape(tensor.shape[1:]) for tensor in self._dense(found, defaults, names)],
            [(found[key].values, np.empty(0, splits)) for key, splits in self.ragged],
        )

    def _dense(
        self, found: Mapping[bytes, Column], defaults: Sequence[np.ndarray], names: Names
    ) -> list[np.ndarray]:
        for i, (feature, default) in enumerate(zip(self.dense, defaults, strict=True)):
            check_default(i, default, feature.shape)
        return [
            dense(found[feature.key], feature, default, names)
            for feature, default in zip(self.dense, defaults, strict=True)
        ]


def _flat(sparse: list[Any], dense: list[Any], ragged: list[Any]) -> list[Any]:
    """(a, b), (c, d) as a, c, b, d: outputs come by kind, not by key."""
    result = [part for parts in zip(*sparse, strict=True) for part in parts]
    result += dense
    return result + [part for parts in zip(*ragged, strict=True) for part in parts]


#: plans are made once for the keys and types of a node
plan_of = functools.lru_cache(maxsize=1024)(Plan)


def names_of(names: Any, n: int) -> Names:
    """The names of the n examples of a batch: as many or none."""
    given = flat_bytes(names)
    if given and len(given) != n:
        raise failure(f"Expected len(names) == len(serialized), but got: {len(given)} vs. {n}")
    return Names(given)


def check_keys(what: str, keys: Sequence[bytes], types: Sequence[Any]) -> None:
    """InvalidArgumentError unless there are as many keys as types."""
    if len(keys) != len(types):
        raise failure(f"there are {len(keys)} {what} keys, but {len(types)} {what} types")
