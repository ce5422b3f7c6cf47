"""Accumulators: gradients of one step added up, taken when there are enough, later ones dropped.

Source: TensorFlow's conditional_accumulator*.h.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.runtime.queues import text
from thalweg.runtime.waiting import Done, Resource, Wait, tell_all


class _Take(Wait):
    """A request for the mean of at least n gradients."""

    __slots__ = ("n",)

    def __init__(self, accumulator: Accumulator, op: Any, n: int) -> None:
        super().__init__(accumulator, op)
        self.n = n


class Accumulator(Resource):
    """What dense and sparse accumulators share. Abstract: `check`, `add`, `total`. Thread-safe."""

    def __init__(self, kind: str, name: str, dtype: DType, shape: Shape, mean: bool) -> None:
        super().__init__(name)
        self.kind = kind
        self.dtype = dtype
        self.shape = shape
        self.mean = mean
        self.step = 0
        self.count = 0
        self._takes: deque[_Take] = deque()

    def apply(self, op: Any, local_step: int, gradient: Sequence[np.ndarray]) -> Done:
        """Adds a gradient, unless it is older than the accumulator's step."""
        ended: list[Wait] = []
        with self.lock:
            if local_step < self.step:
                return Done()
            problem = self.check(*gradient)
            if problem is not None:
                raise InvalidArgumentError(None, op, problem)
            self.add(*gradient)
            self.count += 1
            self.advance(ended)
        tell_all(ended)
        return Done()

    def take(self, op: Any, n: int) -> Wait:
        """The mean (or sum) once there are n gradients; starts over, one step later."""
        if n <= 0:
            raise InvalidArgumentError(None, op, f"Argument num_required must be positive, but was {n}")
        ended: list[Wait] = []
        wait = _Take(self, op, n)
        with self.lock:
            self._takes.append(wait)
            self.advance(ended)
        tell_all(ended)
        return wait

    def set_step(self, step: int) -> int:
        """Sets the step below which gradients are dropped; returns the old one."""
        with self.lock:
            old, self.step = self.step, step
        return old

    def advance(self, ended: list[Wait]) -> None:
        while self._takes and self.count >= self._takes[0].n:
            wait = self._takes.popleft()
            wait.end(self.total())
            self.count = 0
            self.step += 1
            ended.append(wait)

    def forget(self, wait: Wait) -> None:
        self._takes.remove(wait)  # type: ignore[arg-type]

    def describe(self, wait: Wait) -> str:
        n = wait.n - self.count  # type: ignore[attr-defined]
        return f"accumulator '{self.name}' to have {n} more gradient{'s' * (n != 1)}"

    def check(self, *gradient: Any) -> str | None:
        """What is wrong with a gradient, or None."""
        raise NotImplementedError

    def add(self, *gradient: Any) -> None:
        """Adds a gradient that was checked; the first one (count = 0) replaces what there was."""
        raise NotImplementedError

    def total(self) -> list[np.ndarray]:
        """The mean or sum."""
        raise NotImplementedError


class DenseAccumulator(Accumulator):
    """Gradients of one shape."""

    _sum: Any = None

    def check(self, gradient: np.ndarray) -> str | None:
        wanted = self._sum.shape if self.count else self.shape
        if not shapes.is_compatible(wanted, gradient.shape):
            return f"Shape mismatch: expected {text(wanted)}, got {text(gradient.shape)}"
        return None

    def add(self, gradient: np.ndarray) -> None:
        if self.count:
            self._sum += gradient
        else:
            self._sum = np.array(gradient)

    def total(self) -> list[np.ndarray]:
        result = self._sum
        self._sum = None
        if self.mean:
            with np.errstate(over="ignore"):
                result = _divided(result, self.count)
        return [result]


class SparseAccumulator(Accumulator):
    """Gradients as rows with indices. The mean of a row counts the gradients that have it."""

    def __init__(self, kind: str, name: str, dtype: DType, shape: Shape, mean: bool) -> None:
        super().__init__(kind, name, dtype, shape, mean)
        self._rows: dict[int, list[Any]] = {}
        self._row_shape: tuple[int, ...] = ()

    def check(self, indices: np.ndarray, values: np.ndarray, shape: np.ndarray | None) -> str | None:
        if indices.ndim != 1:
            return f"Input indices should be vector but received shape: {text(indices.shape)}"
        if values.ndim == 0 or len(values) != len(indices):
            n = len(values) if values.ndim else 0
            return f"Expected {len(indices)} non-empty input values, got {n}"
        declared = self.shape
        if shape is not None and declared is not None:
            for i, (wanted, got) in enumerate(zip(declared, shape.tolist(), strict=False)):
                if wanted is not None and wanted != got:
                    return f"Shape mismatch: expected shape dim {i} to be {wanted}, got {got}"
        rows = declared[0] if declared else None
        if rows is not None and len(indices) and int(indices.max()) >= rows:
            at = int(np.argmax(indices >= rows))
            return (
                f"Shape mismatch: index of slice {at} exceeded limits of shape; index is {indices[at]} "
                f"exceeded {rows}"
            )
        wanted_shape = (None, *self._row_shape) if self.count else declared
        if wanted_shape is not None and len(wanted_shape) > values.ndim:
            return f"Shape mismatch: expected values rank at least {len(wanted_shape)}, got {values.ndim}"
        for i, wanted in enumerate(wanted_shape or ()):
            if i and wanted is not None and values.shape[i] != wanted:
                return f"Shape mismatch: expected values dim {i} to be {wanted}, got {values.shape[i]}"
        return None

    def add(self, indices: np.ndarray, values: np.ndarray, shape: np.ndarray | None) -> None:
        if not self.count:
            self._rows = {}
            self._row_shape = values.shape[1:]
        seen = set()
        for index, row in zip(indices.tolist(), values, strict=True):
            found = self._rows.get(index)
            if found is None:
                self._rows[index] = [np.array(row), 1]
            else:
                found[0] = found[0] + row
                found[1] += index not in seen
            seen.add(index)

    def total(self) -> list[np.ndarray]:
        indices = sorted(self._rows)
        dtype = np.dtype(self.dtype.as_numpy_dtype)
        values = np.empty((len(indices), *self._row_shape), dtype)
        for i, index in enumerate(indices):
            total, n = self._rows[index]
            values[i] = _divided(total, n) if self.mean else total
        rows = self.shape[0] if self.shape else None
        shape = np.array([-1 if rows is None else rows, *self._row_shape], np.int64)
        self._rows = {}
        return [np.array(indices, np.int64), values, shape]


def _divided(total: Any, n: int) -> Any:
    total = np.asarray(total)
    if total.dtype.kind in "iu":
        return (total // total.dtype.type(n)).astype(total.dtype)
    return (total / total.dtype.type(n)).astype(total.dtype)
