"""How the elements of a queue are kept, and in which order they leave it.

An element is (components, i): i is its place in a batch that was enqueued whole, or -1 where the components
are its own. Stores aren't thread-safe: the queue's lock guards them.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from thalweg.kernel.philox import group_words, initial_state

Element = tuple[tuple[np.ndarray, ...], int]


class Store(Protocol):
    """What a queue asks of its store."""

    #: whether elements leave in the order in which they came
    in_order: bool

    def __len__(self) -> int: ...

    def extend(self, elements: Iterable[Element]) -> None:
        """Adds elements, in order."""

    def take(self, n: int) -> list[Any]:
        """Removes and returns n elements (there are that many), in the order in which they leave."""

    def put_back(self, taken: list[Any]) -> None:
        """Undoes a `take`."""

    def elements(self, taken: list[Any]) -> list[Element]:
        """What was taken, as elements."""


class FifoStore:
    """First in, first out."""

    in_order = True

    def __init__(self) -> None:
        self._items: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def extend(self, elements: Iterable[Element]) -> None:
        self._items.extend(elements)

    def take(self, n: int) -> list[Any]:
        pop = self._items.popleft
        return [pop() for _ in range(n)]

    def put_back(self, taken: list[Any]) -> None:
        self._items.extendleft(reversed(taken))

    def elements(self, taken: list[Any]) -> list[Element]:
        return taken


class ShuffleStore:
    """In random order: the numbers are TensorFlow's for the same seeds."""

    in_order = False
    _GROUPS = 64  # drawn at a time

    def __init__(self, seed: int, seed2: int) -> None:
        self._items: list[Element] = []
        self._state = initial_state(seed, seed2)
        self._group = 0
        self._words: list[int] = []

    def __len__(self) -> int:
        return len(self._items)

    def extend(self, elements: Iterable[Element]) -> None:
        self._items.extend(elements)

    def take(self, n: int) -> list[Any]:
        items = self._items
        taken = []
        for _ in range(n):
            if not self._words:
                self._draw()
            at = self._words.pop() % len(items)
            taken.append(items[at])
            last = items.pop()
            if at < len(items):
                items[at] = last
        return taken

    def _draw(self) -> None:
        groups = np.arange(self._group, self._group + self._GROUPS, dtype=np.uint64)
        self._group += self._GROUPS
        words = np.stack(group_words(self._state, groups), axis=-1).reshape(-1)
        self._words = words[::-1].tolist()

    def put_back(self, taken: list[Any]) -> None:
        self._items.extend(reversed(taken))

    def elements(self, taken: list[Any]) -> list[Element]:
        return taken


class PriorityStore:
    """The smallest first component first; among equal ones, first in, first out."""

    in_order = False

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Element]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def extend(self, elements: Iterable[Element]) -> None:
        for element in elements:
            (priorities, *_), i = element
            priority = int(priorities if i < 0 else priorities[i])
            heapq.heappush(self._heap, (priority, self._count, element))
            self._count += 1

    def take(self, n: int) -> list[Any]:
        return [heapq.heappop(self._heap) for _ in range(n)]

    def put_back(self, taken: list[Any]) -> None:
        for item in taken:
            heapq.heappush(self._heap, item)

    def elements(self, taken: list[Any]) -> list[Element]:
        return [item[2] for item in taken]
