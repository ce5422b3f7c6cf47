"""get_variable and the scopes around it: sharing variables by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from thalweg.base import dtypes
from thalweg.graph.convert import get_default_graph
from thalweg.library import framework
from thalweg.library.framework import name_scope
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.scope_store import AUTO_REUSE, VariableScope, get_variable_scope, scope_store
from thalweg.library.variable_base import Variable, VariableAggregation, VariableSynchronization
from thalweg.library.variable_store import variable_store

__all__ = [
    "AUTO_REUSE",
    "VariableScope",
    "create_partitioned_variables",
    "get_local_variable",
    "get_variable",
    "get_variable_scope",
    "no_regularizer",
    "pure_variable_scope",
    "variable_op_scope",
    "variable_scope",
]

# ---- getting variables -----------------------------------------------------------------------------------


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Callable[[Any], Any] | None = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Callable[..., Any] | None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Callable[[Any], Any] | None = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Any:
    """The variable `name` under the variable scope in force: made, or found where the scope says reuse.

    shape: needed to make it, unless the initializer is a value.
    initializer: a function of (shape, dtype), a class of such, a function without arguments, or a value.
        Default: the scope's, else glorot_uniform for floats and zeros for integers, booleans and strings.
    regularizer: a function of the variable, whose result goes into REGULARIZATION_LOSSES.
    partitioner: a function of (shape, dtype) that says into how many slices to cut each axis; a
        PartitionedVariable is returned.
    custom_getter: called as custom_getter(getter, name, **arguments) instead, and may call getter.
    The other arguments are those of Variable.
    Errors: ValueError where it exists and may not, does not and must, or differs in shape or dtype.
    """
    return get_variable_scope().get_variable(
        variable_store(),
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        partitioner=partitioner,
        validate_shape=validate_shape,
        use_resource=use_resource,
        custom_getter=custom_getter,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
        reuse=None,
    )


def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Callable[[Any], Any] | None = None,
    trainable: bool | None = False,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Callable[..., Any] | None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Callable[[Any], Any] | None = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Any:
    """As get_variable, for a variable in LOCAL_VARIABLES that no optimizer moves and no Saver saves."""
    return get_variable(
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=False,
        collections=[*(collections or ()), GraphKeys.LOCAL_VARIABLES],
        caching_device=caching_device,
        partitioner=partitioner,
        validate_shape=validate_shape,
        use_resource=use_resource,
        custom_getter=custom_getter,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def no_regularizer(_: Any) -> None:
    """A regularizer that turns the scope's off for one variable."""
    return None


def create_partitioned_variables(
    shape: Sequence[int],
    slicing: Sequence[int],
    initializer: Any,
    dtype: Any = dtypes.float32,
    trainable: bool = True,
    collections: Any = None,
    name: str | None = None,
    reuse: Any = None,
) -> list[Variable]:
    """The slices of a variable of `shape` that `slicing` cuts (number of slices per axis), as a list."""
    if len(shape) != len(slicing):
        raise ValueError(
            "The 'shape' and 'slicing' of a partitioned Variable must have the length: shape: "
            f"{shape}, slicing: {slicing}"
        )
    if not shape:
        raise ValueError(f"A partitioned Variable must have rank at least 1: shape: {shape}")
    with variable_scope(name, "PartitionedVariable", reuse=reuse):
        whole = get_variable_scope().get_partitioned(
            variable_store(),
            None,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            trainable=trainable,
            collections=collections,
            partitioner=lambda **_: list(slicing),
        )
    return list(whole)


# ---- scopes ----------------------------------------------------------------------------------------------

_SETTINGS = ("initializer", "regularizer", "caching_device", "partitioner", "dtype", "use_resource")


class pure_variable_scope:
    """A variable scope without a name scope. Arguments as variable_scope's; yields the VariableScope.

    old_name_scope: the name scope that belongs to it.
    """

    def __init__(
        self,
        name_or_scope: str | VariableScope,
        reuse: Any = None,
        custom_getter: Callable[..., Any] | None = None,
        old_name_scope: str | None = None,
        constraint: Any = None,
        **settings: Any,
    ) -> None:
        self._name_or_scope = name_or_scope
        self._reuse = reuse
        self._custom_getter = custom_getter
        self._old_name_scope = old_name_scope
        self._constraint = constraint
        self._settings = settings
        self._store = scope_store()
        # for a scope object: one and the same scope each time this is entered
        self._reopened = (
            self._derived(
                name_or_scope, name_or_scope.name, reuse or name_or_scope.reuse, name_or_scope._name_scope
            )
            if isinstance(name_or_scope, VariableScope)
            else None
        )

    def _derived(
        self, base: VariableScope, name: str, reuse: Any, name_scope: str | None
    ) -> VariableScope:
        """A scope with the settings of `base` where this one has none of its own."""
        given = {k: self._settings.get(k) for k in _SETTINGS}
        settings = {k: getattr(base, k) if v is None else v for k, v in given.items()}
        getter = base.custom_getter
        if self._custom_getter is not None:
            getter = _nested_getter(self._custom_getter, getter)
        constraint = base.constraint if self._constraint is None else self._constraint
        return VariableScope(
            reuse, name=name, name_scope=name_scope, custom_getter=getter, constraint=constraint, **settings
        )

    def __enter__(self) -> VariableScope:
        store = self._store
        self._old = old = store.current
        if self._reopened is not None:
            self._name = self._reopened.name
            store.open(self._name)
            self._old_counts = dict(store.counts)
            store.current = self._reopened
        else:
            prefix = self._name_or_scope
            assert isinstance(prefix, str)
            self._name = f"{old.name}/{prefix}" if old.name else prefix
            scope = prefix if self._old_name_scope is None else self._old_name_scope
            store.current = self._derived(old, self._name, self._reuse or old.reuse, scope)
            store.open(self._name)
        self._entered = store.current
        return store.current

    def __exit__(self, *_: Any) -> None:
        store = self._store
        if store.current is not self._entered:
            raise RuntimeError("Improper nesting of variable_scope.")
        if self._reopened is not None:
            store.counts = self._old_counts
        else:
            store.close_subscopes(self._name)
        store.current = self._old


def _nested_getter(inner: Callable[..., Any], outer: Callable[..., Any] | None) -> Callable[..., Any]:
    """A custom getter whose `getter` is the one of the scope around."""
    if outer is None:
        return inner

    def getter(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return inner(functools.partial(outer, getter), *args, **kwargs)

    return getter


class variable_scope:
    """A context manager: variables that get_variable makes inside are named "scope/name", nodes too.

    name_or_scope: a name under the scope in force, or a VariableScope to go back into (whatever scope is in
        force). None: default_name, made unique.
    values: tensors whose graph becomes the default graph.
    reuse: True: variables must exist; AUTO_REUSE: may; None or False: as the scope around.
    auxiliary_name_scope: False: nodes' names stay in the name scope around.
    The other arguments are defaults for get_variable's. Yields the VariableScope. May be entered again: it
    is then the same scope.
    Errors: TypeError without any name, ValueError for reuse=True without name_or_scope.
    """

    def __init__(
        self,
        name_or_scope: str | VariableScope | None,
        default_name: str | None = None,
        values: Sequence[Any] | None = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: bool | None = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if name_or_scope is None and default_name is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if not isinstance(name_or_scope, str | VariableScope | None):
            raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
        if not (isinstance(reuse, bool) or reuse is None or reuse is AUTO_REUSE):
            raise ValueError("The reuse parameter must be True or False or None.")
        if not isinstance(auxiliary_name_scope, bool):
            raise TypeError(
                f"The auxiliary_name_scope must be `True` or `False`, while get {auxiliary_name_scope}"
            )
        if name_or_scope is None and reuse:
            raise ValueError("reuse=True cannot be used without a name_or_scope")
        self._name_or_scope = name_or_scope
        self._default_name = default_name
        self._reuse = reuse or None
        self._auxiliary_name_scope = auxiliary_name_scope
        self._settings = dict(
            initializer=initializer,
            regularizer=regularizer,
            caching_device=caching_device,
            partitioner=partitioner,
            custom_getter=custom_getter,
            dtype=dtype,
            use_resource=use_resource,
            constraint=constraint,
        )
        self._graph = framework.graph_of(values or ())
        self._scope: pure_variable_scope | None = None
        self._name_scope: AbstractContextManager[str] | None = None
        self._exits: list[ExitStack] = []

    def __enter__(self) -> VariableScope:
        with ExitStack() as stack:  # undoes what was entered where a later step fails
            if self._graph is not get_default_graph():
                stack.enter_context(self._graph.as_default())
            if self._scope is None:
                entered = self._first_enter(stack)
            else:
                if self._name_scope is not None:
                    stack.enter_context(self._name_scope)
                entered = stack.enter_context(self._scope)
            self._exits.append(stack.pop_all())
            return entered

    def _first_enter(self, stack: ExitStack) -> VariableScope:
        target = self._name_or_scope
        self._name_scope = self._opened_name_scope()
        opened = None if self._name_scope is None else stack.enter_context(self._name_scope)
        if target is None:
            assert self._default_name is not None
            target = scope_store().unique(self._default_name)
        scope = pure_variable_scope(target, reuse=self._reuse, old_name_scope=opened, **self._settings)
        entered = stack.enter_context(scope)
        self._scope = scope
        return entered

    def _opened_name_scope(self) -> name_scope | None:
        """The name scope that goes with the variable scope; None where there is nothing to open."""
        if not self._auxiliary_name_scope:
            around = get_default_graph().get_name_scope()
            return name_scope(around + "/" if around else around)
        if self._name_or_scope is None:
            return name_scope(self._default_name)
        if isinstance(self._name_or_scope, str):
            return name_scope(self._name_or_scope) if self._name_or_scope else None
        tail = self._name_or_scope.name.split("/")[-1]
        return name_scope(tail) if tail else None

    def __exit__(self, *exception: Any) -> None:
        self._exits.pop().__exit__(*exception)


@contextmanager
def variable_op_scope(
    values: Sequence[Any],
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    **arguments: Any,
) -> Iterator[VariableScope]:
    """variable_scope with another order of arguments, as programs of 2016 write it."""
    with variable_scope(name_or_scope, default_name, values, **arguments) as scope:
        yield scope
