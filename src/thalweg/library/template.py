"""make_template: a function that makes its variables the first time and shares them after."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from thalweg.base import origin
from thalweg.graph.convert import get_default_graph
from thalweg.library import framework
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.scope_store import VariableScope, scope_store
from thalweg.library.variable_scope import pure_variable_scope, variable_scope


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> Template:
    """func_, with the variables that get_variable makes in it shared between all calls.

    name_: the variable scope, made unique where the template is first called (or here, with
    create_scope_now_); unique_name_: the scope as it is. kwargs are bound to func_. Each call makes nodes.
    ValueError for a call after the first that makes a trainable variable.
    """
    if kwargs:
        func_ = functools.partial(func_, **kwargs)
    return Template(name_, func_, create_scope_now_, unique_name_, custom_getter_)


class Template:
    """See make_template."""

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        create_scope_now: bool = False,
        unique_name: str | None = None,
        custom_getter: Callable[..., Any] | None = None,
    ) -> None:
        if name is None:
            raise ValueError("name cannot be None.")
        self._func = func
        self._name = name
        self._unique_name = unique_name
        self._custom_getter = custom_getter
        self._made_at = origin.describe(origin.capture())
        self._variable_scope: VariableScope | None = None
        self._variables_created = False
        self._first_call = True
        if create_scope_now:
            scope = unique_name or scope_store().unique(name)
            with pure_variable_scope(scope, custom_getter=custom_getter) as entered:
                self._variable_scope = entered

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function inside the template's variable scope."""
        if self._variable_scope is not None:
            with variable_scope(self._variable_scope, reuse=not self._first_call):
                return self._call(args, kwargs)
        with variable_scope(self._unique_name, self._name, custom_getter=self._custom_getter) as scope:
            self._variable_scope = scope
            return self._call(args, kwargs)

    def _call(self, args: Any, kwargs: Any) -> Any:
        first, self._first_call = self._first_call, False
        try:
            if self._variables_created:
                return self._call_again(args, kwargs)
            result = self._func(*args, **kwargs)
            self._variables_created = True
            return result
        except Exception as e:
            if first:
                self._first_call = True
            text = str(e.args[0]) if e.args else ""
            e.args = (f"{text}\n\noriginally defined at:\n{self._made_at}", *e.args[1:])
            raise

    def _call_again(self, args: Any, kwargs: Any) -> Any:
        trainable = get_default_graph().get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)
        before = len(trainable)
        result = self._func(*args, **kwargs)
        if len(trainable) != before:
            raise ValueError(
                "Trainable variable created when calling a template after the first time, perhaps you used "
                f"tf.Variable when you meant tf.get_variable: {trainable[before:]}"
            )
        return result

    @property
    def name(self) -> str:
        """The name given."""
        return self._name

    @property
    def func(self) -> Callable[..., Any]:
        """The function."""
        return self._func

    @property
    def variable_scope(self) -> VariableScope | None:
        """The scope of its variables, once there is one."""
        return self._variable_scope

    var_scope = variable_scope

    @property
    def variable_scope_name(self) -> str | None:
        """The name of the scope, with its "/"."""
        if self._variable_scope is None:
            return None
        name = self._variable_scope.name
        return name if not name or name.endswith("/") else name + "/"

    def _collection(self, key: str) -> list[Any]:
        return framework.get_collection(key, self.variable_scope_name) if self._variables_created else []

    @property
    def variables(self) -> list[Any]:
        """Its global and local variables."""
        return self.global_variables + self.local_variables

    @property
    def global_variables(self) -> list[Any]:
        """Its global variables."""
        return self._collection(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Any]:
        """Its local variables."""
        return self._collection(GraphKeys.LOCAL_VARIABLES)

    @property
    def trainable_variables(self) -> list[Any]:
        """Its variables that optimizers move."""
        return self._collection(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def non_trainable_variables(self) -> list[Any]:
        """Its global variables that optimizers leave alone."""
        trainable = {id(v) for v in self.trainable_variables}
        return [v for v in self.global_variables if id(v) not in trainable]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables
