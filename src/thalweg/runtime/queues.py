"""Queues as state machines: an enqueue, a dequeue, a close come in; waits that can end go out.

Enqueues and dequeues are served in order of arrival, each at its own end; a request for many elements moves
them as they come, and nothing that came later overtakes it. Source: TensorFlow's queue_base.cc,
fifo_queue.cc, random_shuffle_queue.cc, padding_fifo_queue.cc, priority_queue.cc.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.base.errors import CancelledError, InvalidArgumentError, OpError, OutOfRangeError
from thalweg.base.shape import Shape
from thalweg.runtime.queue_elements import components_of, padded, stacked
from thalweg.runtime.queue_stores import Element, Store
from thalweg.runtime.waiting import Done, Resource, Wait, tell_all

_UNBOUNDED = 1 << 62


class _Enqueue(Wait):
    """Elements on their way in; with `closes`, a close that waits for the enqueues before it."""

    __slots__ = ("at", "closes", "elements")

    def __init__(self, queue: Queue, op: Any, elements: list[Element], closes: bool = False) -> None:
        super().__init__(queue, op)
        self.elements = elements
        self.at = 0
        self.closes = closes


class _Dequeue(Wait):
    """A request for `wanted` more elements, and what it has so far. n: -1 for one element, not a batch."""

    __slots__ = ("is_used", "n", "small", "taken", "wanted")

    def __init__(self, queue: Queue, op: Any, n: int, small: bool) -> None:
        super().__init__(queue, op)
        self.n = n
        self.wanted = 1 if n < 0 else n
        self.small = small
        self.taken: list[Any] = []
        self.is_used = False

    def result(self) -> Any:
        """The components; put together in the thread that asks."""
        super().result()
        self.is_used = True
        queue: Queue = self.resource  # type: ignore[assignment]
        return queue.outputs(self.taken, self.n)


class Queue(Resource):
    """A queue of any kind; the store decides the order. Thread-safe.

    kind: what error texts call it. held_back: elements that stay until the queue is closed.
    component_shapes: empty where they aren't fixed; partial ones only with pads.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        store: Store,
        dtypes: Sequence[DType],
        component_shapes: Sequence[Shape],
        capacity: int,
        held_back: int = 0,
        pads: bool = False,
    ) -> None:
        super().__init__(name)
        self.kind = kind
        self.dtypes = tuple(dtypes)
        self.component_shapes = tuple(component_shapes)
        self.capacity = capacity if capacity >= 0 else _UNBOUNDED
        self.held_back = held_back
        self.closed = False
        self._pads = pads
        self._numpy = [np.dtype(d.as_numpy_dtype) for d in self.dtypes]
        self._store = store
        self._enqueues: deque[_Enqueue] = deque()
        self._dequeues: deque[_Dequeue] = deque()

    # --- events ---

    def enqueue(self, op: Any, components: Sequence[np.ndarray]) -> Wait | Done:
        """Adds one element: now, or when there is room. CancelledError where the queue is closed."""
        element = (tuple(components), -1)
        self._check_shapes(op, components, self.component_shapes)
        with self.lock:
            if not self._enqueues and not self.closed and len(self._store) < self.capacity:
                self._store.extend((element,))
                if not self._dequeues:
                    return _NOTHING
                wait: Wait | Done = _NOTHING
            else:
                wait = _Enqueue(self, op, [element])
                self._enqueues.append(wait)
            ended: list[Wait] = []
            self.advance(ended)
        tell_all(ended)
        return wait

    def enqueue_many(self, op: Any, components: Sequence[np.ndarray]) -> Wait | Done:
        """Adds the slices of the components, in order, as there is room for them."""
        n = self._check_batch(op, components)
        if n == 0:
            return _NOTHING
        with self.lock:
            wait = _Enqueue(self, op, list(zip(repeat(tuple(components), n), range(n), strict=True)))
            self._enqueues.append(wait)
            ended: list[Wait] = []
            self.advance(ended)
        tell_all(ended)
        return wait

    def dequeue(self, op: Any) -> Wait | Done:
        """Takes one element. OutOfRangeError where the queue is closed and empty."""
        ended: list[Wait] = []
        with self.lock:
            wait: Wait | Done
            if not self._dequeues and len(self._store) > (0 if self.closed else self.held_back):
                (element,) = self._store.elements(self._store.take(1))
                wait = Done(components_of(element))
                if not self._enqueues:
                    return wait
            else:
                wait = _Dequeue(self, op, -1, small=False)
                self._dequeues.append(wait)
            self.advance(ended)
        tell_all(ended)
        return wait

    def dequeue_many(self, op: Any, n: int, small: bool = False) -> Wait | Done:
        """Takes n elements as one batch. small: fewer (but one) where the queue is closed and has no more."""
        if not self.component_shapes and self.dtypes:
            raise InvalidArgumentError(
                None,
                op,
                f"{self.kind}'s DequeueMany and DequeueUpTo require the components to have specified shapes.",
            )
        if n == 0:
            return Done(self.outputs([], 0))
        with self.lock:
            wait = _Dequeue(self, op, n, small)
            self._dequeues.append(wait)
            ended: list[Wait] = []
            self.advance(ended)
        tell_all(ended)
        return wait

    def close(self, op: Any, cancel_pending_enqueues: bool = False) -> Wait | Done:
        """No more elements: after the enqueues that wait, or in their place."""
        ended: list[Wait] = []
        wait: Wait | Done = _NOTHING
        with self.lock:
            if cancel_pending_enqueues:
                self.closed = True
                for pending in self._enqueues:
                    pending.fail(CancelledError, "Enqueue operation was cancelled")
                    ended.append(pending)
                self._enqueues.clear()
            else:
                wait = _Enqueue(self, op, [], closes=True)
                self._enqueues.append(wait)
            self.advance(ended)
        tell_all(ended)
        return wait

    # --- elements moved without waiting (runtime.repeated) ---

    @property
    def gives_batches(self) -> bool:
        """Whether elements are all of one shape."""
        return bool(self.component_shapes) and not self._pads

    @property
    def in_order(self) -> bool:
        """Whether elements leave in the order in which they came."""
        return self._store.in_order

    def takes(self, component_shapes: Sequence[tuple[int, ...]]) -> bool:
        """Whether an element of these shapes may be put in."""
        wanted = self.component_shapes
        return not wanted or (not self._pads and tuple(component_shapes) == wanted)

    def take_now(self, n: int) -> list[Any]:
        """Takes up to n elements, of those that nobody waits for; `outputs` makes a batch of them."""
        ended: list[Wait] = []
        with self.lock:
            n = min(n, len(self._store) - (0 if self.closed else self.held_back))
            if self._dequeues or n <= 0:
                return []
            taken = self._store.take(n)
            if self._enqueues:
                self.advance(ended)
        tell_all(ended)
        return taken

    def give_back(self, taken: list[Any]) -> None:
        """Undoes `take_now` for elements that nobody used."""
        ended: list[Wait] = []
        with self.lock:
            self._store.put_back(taken)
            self.advance(ended)
        tell_all(ended)

    def put_now(self, elements: list[Element]) -> int:
        """Adds as many as there is room for, none where others wait or the queue is closed; how many."""
        ended: list[Wait] = []
        with self.lock:
            if self._enqueues or self.closed:
                return 0
            moved = elements[: max(0, self.capacity - len(self._store))]
            self._store.extend(moved)
            if self._dequeues:
                self.advance(ended)
        tell_all(ended)
        return len(moved)

    def size(self) -> int:
        """How many elements there are now."""
        return len(self._store)

    # --- the machine: with the lock ---

    def advance(self, ended: list[Wait]) -> None:
        while self._advance_enqueues(ended) | self._advance_dequeues(ended):
            pass

    def _advance_enqueues(self, ended: list[Wait]) -> bool:
        progress = False
        while self._enqueues:
            wait = self._enqueues[0]
            if wait.closes:
                if self.closed:
                    wait.fail(CancelledError, f"Queue '{self.name}' is already closed.")
                else:
                    self.closed = True
                    wait.end()
            elif self.closed:
                wait.fail(CancelledError, f"{self.kind} '{self.name}' is closed.")
            else:
                room = self.capacity - len(self._store)
                if room <= 0:
                    break
                moved = wait.elements
                if wait.at or len(moved) > room:
                    moved = moved[wait.at : wait.at + room]
                self._store.extend(moved)
                wait.at += len(moved)
                progress = True
                if wait.at < len(wait.elements):
                    break
                wait.end()
            self._enqueues.popleft()
            ended.append(wait)
            progress = True
        return progress

    def _advance_dequeues(self, ended: list[Wait]) -> bool:
        progress = False
        while self._dequeues:
            wait = self._dequeues[0]
            size = len(self._store)
            if self.closed and size < wait.wanted:
                self._last(wait, size)
            else:
                n = min(size - (0 if self.closed else self.held_back), wait.wanted)
                if n <= 0:
                    break
                wait.taken += self._store.take(n)
                wait.wanted -= n
                progress = True
                if wait.wanted:
                    break
                wait.end()
            self._dequeues.popleft()
            ended.append(wait)
            progress = True
        return progress

    def _last(self, wait: _Dequeue, size: int) -> None:
        """Ends a request for more than a closed queue has."""
        if wait.taken:
            self._store.put_back(wait.taken)
            wait.taken = []
        left = len(self._store)
        if wait.small and left:
            wait.taken = self._store.take(left)
            wait.end()
        else:
            wait.fail(
                OutOfRangeError,
                f"{self.kind} '{self.name}' is closed and has insufficient elements "
                f"(requested {wait.wanted}, current size {size})",
            )

    def forget(self, wait: Wait) -> None:
        if isinstance(wait, _Dequeue):
            self._dequeues.remove(wait)
            self._store.put_back(wait.taken)
            wait.taken = []
        else:
            self._enqueues.remove(wait)  # type: ignore[arg-type]

    def take_back(self, wait: Wait, ended: list[Wait]) -> None:
        if isinstance(wait, _Dequeue) and not wait.is_used and wait.taken:
            self._store.put_back(wait.taken)
            wait.taken = []
            wait.is_used = True
            self.advance(ended)

    def describe(self, wait: Wait) -> str:
        size = len(self._store)
        if isinstance(wait, _Dequeue):
            held = 0 if self.closed else self.held_back
            n = max(1, wait.wanted + held - size)
            return f"queue '{self.name}' to have {n} more element{'s' * (n > 1)}"
        assert isinstance(wait, _Enqueue)
        if wait.closes:
            return f"the enqueues before it to finish in queue '{self.name}'"
        n = len(wait.elements) - wait.at
        return f"queue '{self.name}' to have room for {n} more element{'s' * (n > 1)}"

    # --- checks, and what is made of elements ---

    def outputs(self, taken: list[Any], n: int) -> list[np.ndarray]:
        """The components of one element (n = -1), or of a batch."""
        elements = self._store.elements(taken)
        if n < 0:
            return components_of(elements[0])
        make = padded if self._pads else stacked
        kinds = zip(self.component_shapes, self._numpy, strict=True)
        return [make(elements, i, shape, dtype) for i, (shape, dtype) in enumerate(kinds)]

    def _check_shapes(self, op: Any, components: Sequence[np.ndarray], wanted: Sequence[Shape]) -> None:
        for i, (array, shape) in enumerate(zip(components, wanted, strict=bool(wanted))):
            if array.shape != shape and not (self._pads and shapes.is_compatible(array.shape, shape)):
                raise self._mismatch(op, i, shape, array.shape)

    def _check_batch(self, op: Any, components: Sequence[np.ndarray]) -> int:
        for i, array in enumerate(components):
            if array.ndim == 0:
                raise InvalidArgumentError(
                    None, op, f"Component {i} must have a dimension to be sliced along, but is a scalar"
                )
        n = len(components[0])
        for i, array in enumerate(components):
            if self.component_shapes:
                shape = self.component_shapes[i]
                assert shape is not None
                wanted: Shape = (n, *shape)
            else:
                wanted = (n, *array.shape[1:])
            if array.shape != wanted and not (self._pads and shapes.is_compatible(array.shape, wanted)):
                raise self._mismatch(op, i, wanted, array.shape)
        return n

    def _mismatch(self, op: Any, i: int, wanted: Shape, got: Shape) -> OpError:
        return InvalidArgumentError(
            None, op, f"Shape mismatch in tuple component {i}. Expected {text(wanted)}, got {text(got)}"
        )

    def __repr__(self) -> str:
        return f"<{self.kind} '{self.name}' of {len(self._store)}>"


_NOTHING = Done()


def text(shape: Shape) -> str:
    """A shape as TensorFlow's kernels write it."""
    if shape is None:
        return "<unknown>"
    return f"[{','.join('?' if d is None else str(d) for d in shape)}]"
