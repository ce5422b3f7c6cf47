"""VariableScope: the defaults that get_variable takes from the scopes around; and where a thread is."""

from __future__ import annotations

import threading
from typing import Any

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.graph import convert
from thalweg.graph.convert import get_default_graph
from thalweg.graph.graph import Graph
from thalweg.library import framework
from thalweg.library.framework import name_scope
from thalweg.library.graph_keys import GraphKeys


class _AutoReuse:
    """The value of AUTO_REUSE."""

    def __repr__(self) -> str:
        return "AUTO_REUSE"


#: get_variable makes the variable where it doesn't exist, and returns it where it does
AUTO_REUSE = _AutoReuse()


class VariableScope:
    """A prefix for names, and defaults for the arguments of get_variable."""

    def __init__(
        self,
        reuse: Any,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        name_scope: str | None = "",
        dtype: Any = dtypes.float32,
        use_resource: bool | None = None,
        constraint: Any = None,
    ) -> None:
        self._reuse = reuse
        self._name = name
        self._initializer = initializer
        self._regularizer = regularizer
        self._caching_device = caching_device
        self._partitioner = partitioner
        self._custom_getter = custom_getter
        self._name_scope = name_scope
        self._dtype = dtype
        self._use_resource = use_resource
        self._constraint = constraint

    @property
    def name(self) -> str:
        """The prefix of variables' names, without its "/"."""
        return self._name

    @property
    def original_name_scope(self) -> str | None:
        """The name scope that was opened with the variable scope, with its "/"."""
        return self._name_scope

    @property
    def reuse(self) -> Any:
        """True: variables must exist; False or None: must not; AUTO_REUSE: may."""
        return self._reuse

    @property
    def initializer(self) -> Any:
        """The default initializer."""
        return self._initializer

    @property
    def dtype(self) -> DType:
        """The default element type."""
        return self._dtype

    @property
    def use_resource(self) -> bool | None:
        """Which kind of variable; None: as elsewhere."""
        return self._use_resource

    @property
    def regularizer(self) -> Any:
        """The default regularizer."""
        return self._regularizer

    @property
    def caching_device(self) -> Any:
        """The default caching device."""
        return self._caching_device

    @property
    def partitioner(self) -> Any:
        """The default partitioner."""
        return self._partitioner

    @property
    def custom_getter(self) -> Any:
        """The default custom getter."""
        return self._custom_getter

    @property
    def constraint(self) -> Any:
        """The default constraint."""
        return self._constraint

    def reuse_variables(self) -> None:
        """From here on the variables asked for must exist."""
        self._reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Sets the default initializer."""
        self._initializer = initializer

    def set_dtype(self, dtype: Any) -> None:
        """Sets the default element type."""
        self._dtype = dtype

    def set_use_resource(self, use_resource: bool | None) -> None:
        """Sets which kind of variable is made."""
        self._use_resource = use_resource

    def set_regularizer(self, regularizer: Any) -> None:
        """Sets the default regularizer."""
        self._regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        """Sets the default caching device."""
        self._caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        """Sets the default partitioner."""
        self._partitioner = partitioner

    def set_custom_getter(self, custom_getter: Any) -> None:
        """Sets the default custom getter."""
        self._custom_getter = custom_getter

    def get_collection(self, name: Any) -> list[Any]:
        """What of a collection is in this scope."""
        return framework.get_collection(name, self._name + "/" if self._name else "")

    def trainable_variables(self) -> list[Any]:
        """This scope's trainable variables."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        """This scope's global variables."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        """This scope's local variables."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(self, var_store: Any, name: str, **arguments: Any) -> Any:
        """The variable `name` of this scope in a store (see variable_store), by tf.get_variable's arguments.

        ValueError where an initializer that is a value has another type than `dtype`.
        """
        self._take_defaults(arguments)
        if arguments.get("custom_getter") is None:
            arguments["custom_getter"] = self._custom_getter
        if arguments.get("reuse") is None:
            arguments["reuse"] = self._reuse
        dtype, initializer = arguments.get("dtype"), arguments.get("initializer")
        with name_scope(None):  # a variable's nodes go under its own name only
            if dtype is not None and initializer is not None and not callable(initializer):
                found = convert.convert_to_tensor(initializer).dtype.base_dtype
                if found != dtypes.as_dtype(dtype).base_dtype:
                    raise ValueError(
                        f"Initializer type '{found.name}' and explicit dtype "
                        f"'{dtypes.as_dtype(dtype).name}' don't match."
                    )
            self._take_late_defaults(arguments)
            return var_store.get_variable(self._full_name(name), **arguments)

    def get_partitioned(self, var_store: Any, name: str | None, **arguments: Any) -> Any:
        """The partitioned variable `name` of this scope in a store. ValueError without a partitioner."""
        if self._custom_getter is not None:
            raise ValueError(
                "create_partitioned_variables can't be used where a custom getter is set "
                f"({self._custom_getter}): use get_variable with a partitioner instead"
            )
        self._take_defaults(arguments)
        self._take_late_defaults(arguments)
        if arguments["partitioner"] is None:
            raise ValueError("No partitioner was specified")
        full_name = self._full_name(name).rstrip("/")
        with name_scope(None):
            return var_store.get_partitioned(full_name, reuse=self._reuse, **arguments)

    def _take_defaults(self, arguments: dict[str, Any]) -> None:
        for key in ("regularizer", "caching_device", "partitioner", "use_resource"):
            if arguments.get(key) is None:
                arguments[key] = getattr(self, "_" + key)

    def _take_late_defaults(self, arguments: dict[str, Any]) -> None:
        for key in ("initializer", "constraint", "dtype"):
            if arguments.get(key) is None:
                arguments[key] = getattr(self, "_" + key)

    def _full_name(self, name: str | None) -> str:
        # an empty name gives "scope/": the variable takes the scope's own name, as slots do
        return f"{self._name}/{name or ''}" if self._name else name or ""


class ScopeStore(threading.local):
    """Where a thread is among a graph's variable scopes, and how often each name was opened."""

    def __init__(self) -> None:
        self.current = VariableScope(False)
        self.counts: dict[str, int] = {}

    def open(self, name: str) -> None:
        """Counts an entry into a scope."""
        self.counts[name] = self.counts.get(name, 0) + 1

    def close_subscopes(self, name: str) -> None:
        """Forgets the scopes inside `name`: when it is opened again they get the same names."""
        for key in self.counts:
            if key.startswith(name + "/"):
                self.counts[key] = 0

    def unique(self, prefix: str) -> str:
        """`prefix`, with "_1", "_2" ... where the current scope has opened it."""
        base = f"{self.current.name}/{prefix}" if self.current.name else prefix
        if not self.counts.get(base):
            return prefix
        i = 1
        while self.counts.get(f"{base}_{i}"):
            i += 1
        return f"{prefix}_{i}"


def scope_store(graph: Graph | None = None) -> ScopeStore:
    """The scopes of a graph, in this thread."""
    state = (get_default_graph() if graph is None else graph)._library_state
    store = state.get("variable_scopes")
    return state.setdefault("variable_scopes", ScopeStore()) if store is None else store


def get_variable_scope() -> VariableScope:
    """The variable scope in force."""
    return scope_store().current
