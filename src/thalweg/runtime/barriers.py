"""Barriers: values put together by key, component by component. Source: TensorFlow's barrier_ops.cc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.base.errors import CancelledError, InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.runtime.queue_stores import PriorityStore
from thalweg.runtime.queues import Queue, text
from thalweg.runtime.waiting import Done, Wait

_FIRST = -(1 << 63)


class Barrier:
    """Incomplete values by key, and a queue of complete ones, in the order of their first components.

    Thread-safe: its state has the lock of the queue, which is never held across a call to it.
    """

    def __init__(self, name: str, types: Sequence[DType], shapes: Sequence[Shape]) -> None:
        self.name = name
        self.types = tuple(types)
        self.shapes = tuple(shapes)
        scalars: list[Shape] = [(), ()]
        self.ready = Queue(
            "Barrier",
            name,
            PriorityStore(),
            [dtypes.int64, dtypes.string, *types],
            [*scalars, *shapes] if shapes else [],
            capacity=-1,
        )
        self._incomplete: dict[bytes, tuple[int, list[Any]]] = {}
        self._index = _FIRST
        self._closed = False
        self._cancelled = False

    def insert_many(self, op: Any, component: int, keys: np.ndarray, values: np.ndarray) -> Wait | Done:
        """Gives each key its component; values whose last component this is become ready."""
        self._check(op, component, keys, values)
        with self.ready.lock:
            ready = self._insert(op, component, keys, values)
        last = self._closed and not self._incomplete
        for index, key, parts in ready:
            self.ready.enqueue(op, [np.asarray(index, np.int64), _scalar(key), *parts])
        if last and not self.ready.closed:
            self.ready.close(op, cancel_pending_enqueues=True)
        return Done()

    def _check(self, op: Any, component: int, keys: np.ndarray, values: np.ndarray) -> None:
        def bad(message: str) -> InvalidArgumentError:
            return InvalidArgumentError(None, op, message)

        if not 0 <= component < len(self.types):
            raise bad(
                f"The component ID is out of range {component} > num_components (= {len(self.types)})"
            )
        if keys.ndim != 1 or values.ndim == 0 or len(keys) != len(values):
            raise bad(
                "keys must be a vector and values have as many rows, but they have the shapes "
                f"{text(keys.shape)} and {text(values.shape)}"
            )
        if len(keys) and not values.size:
            raise bad(
                f"Tensors with no elements are not supported {self.name}: received shape {text(values.shape)}"
            )
        if self.shapes and values.shape[1:] != self.shapes[component]:
            wanted = self.shapes[component]
            assert wanted is not None
            raise bad(
                f"Shape mismatch in tuple component {component}. "
                f"Expected {text((len(keys), *wanted))}, got {text(values.shape)}"
            )

    def _insert(self, op: Any, component: int, keys: np.ndarray, values: np.ndarray) -> list[Any]:
        state = f"Pending enqueues cancelled: {int(self._cancelled)}."
        left = f"Number of incomplete keys: {len(self._incomplete)}."
        if self._closed and (self._cancelled or (len(keys) and not self._incomplete)):
            raise CancelledError(
                None,
                op,
                f"Barrier {self.name} is closed.  {state}  Number of new insertions: {len(keys)}.  {left}",
            )
        for i, key in enumerate(keys):
            known = self._incomplete.get(key)
            if known is None and self._closed:
                raise CancelledError(
                    None,
                    op,
                    f"Barrier {self.name} is closed, but attempted to insert a brand new key: "
                    f"{key.decode(errors='replace')}.  {state}  Insertion index: {i}.  {left}",
                )
            if known is not None and known[1][component] is not None:
                raise InvalidArgumentError(
                    None,
                    op,
                    f"Key {key.decode(errors='replace')} already has a value for component {component} "
                    f"in barrier {self.name}",
                )
        ready = []
        is_new = False
        for key, value in zip(keys, values, strict=True):
            if key not in self._incomplete:
                self._incomplete[key] = (self._index, [None] * len(self.types))
                is_new = True
            index, parts = self._incomplete[key]
            parts[component] = np.array(value)
            if all(p is not None for p in parts):
                del self._incomplete[key]
                ready.append((index, key, parts))
        self._index += is_new
        return ready

    def take_many(self, op: Any, n: int, small: bool) -> Wait | Done:
        """n complete values: indices, keys, components. small: fewer where it is closed and has no more."""
        return self.ready.dequeue_many(op, n, small)

    def close(self, op: Any, cancel_pending_enqueues: bool) -> Wait | Done:
        """No new keys; with cancel_pending_enqueues no more components either."""
        with self.ready.lock:
            if self._closed and (self._cancelled or not cancel_pending_enqueues):
                raise CancelledError(None, op, f"Barrier '{self.name}' is already closed.")
            self._closed = True
            self._cancelled = cancel_pending_enqueues
            if cancel_pending_enqueues:
                self._incomplete.clear()
            done = not self._incomplete
        if done:
            self.ready.close(op, cancel_pending_enqueues=True)
        return Done()

    def ready_size(self) -> int:
        """How many values are complete."""
        return self.ready.size()

    def incomplete_size(self) -> int:
        """How many values lack components."""
        return len(self._incomplete)


def _scalar(key: bytes) -> np.ndarray:
    array = np.empty((), object)
    array[()] = key
    return array
