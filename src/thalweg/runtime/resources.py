"""State that outlives a step: variables (and later queues, readers ...) by name, in containers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from thalweg.graph.operation import Operation
from thalweg.kernel.body import StateKey


class Variable:
    """A variable's storage. `value` is a jax.Array or a read-only np.ndarray, or None before initialisation.

    The array is never changed in place: an update puts another in its place. A cluster may donate the old
    buffer to the executable that makes the new one, unless it has `escaped`: then somebody else may hold
    the same array, and the cluster works on a copy. Accesses are ordered by runtime.access.
    """

    __slots__ = ("escaped", "key", "value")

    def __init__(self, key: StateKey, value: Any = None) -> None:
        self.key = key
        self.value = value
        self.escaped = False

    @property
    def name(self) -> str:
        """The name the program gave it."""
        return self.key[2]

    def __repr__(self) -> str:
        return f"<runtime.Variable {self.name}>"


class ResourceManager:
    """Resources of one session or server, by container, kind and name. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._containers: dict[str, dict[tuple[str, str], Any]] = {}
        #: rises when resources are removed: who holds one looks it up again
        self.generation = 0

    def variable(self, key: StateKey, initial: Any = None) -> Variable:
        """The variable of that key, made where it doesn't exist: with that value, else uninitialised."""
        return self.get_or_create(key, lambda: Variable(key, initial))  # type: ignore[no-any-return]

    def get_or_create(self, key: StateKey, make: Callable[[], Any]) -> Any:
        """The resource of that key; `make()` where it doesn't exist."""
        kind, container, name = key
        with self._lock:
            resources = self._containers.setdefault(container, {})
            found = resources.get((kind, name))
            if found is None:
                found = resources[kind, name] = make()
            return found

    def find(self, key: StateKey) -> Any:
        """The resource of that key, or None."""
        kind, container, name = key
        with self._lock:
            return self._containers.get(container, {}).get((kind, name))

    def remove(self, key: StateKey) -> bool:
        """Forgets a resource; whether it was there."""
        kind, container, name = key
        with self._lock:
            removed = self._containers.get(container, {}).pop((kind, name), None) is not None
            self.generation += removed
            return removed

    def clear(self, containers: Iterable[str] = ()) -> None:
        """Empties the named containers ("" is the default one), or all of them."""
        names = list(containers)
        with self._lock:
            self.generation += 1
            for name in names or list(self._containers):
                self._containers.pop(name, None)


class Handle:
    """What a reference or a resource handle is while a step runs: the node that stands for the resource.

    found, generation: what runtime.stateful found behind it, and the manager's generation then.
    """

    __slots__ = ("found", "generation", "op")

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.found: Any = None
        self.generation = -1
