"""Layer: an object that makes its variables under a scope of its own, the first time it is called."""

from __future__ import annotations

import inspect
import re
from typing import Any, Self

import numpy as np

from thalweg.base import dtypes, nest
from thalweg.base.dtypes import DType
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.library import framework
from thalweg.library.framework import name_scope
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.scope_store import VariableScope
from thalweg.library.variable_scope import get_variable, variable_scope


class Layer:
    """A function with variables. Subclasses make them in `build` (once) and nodes in `call` (at each call).

    The first call opens the layer's variable scope: the `scope` it is given, else the layer's name made
    unique, under the scope in force. From then on its variables are reused, wherever it is called.

    trainable: whether its variables are. name: of the scope; default: the class's name in snake case.
    dtype: of the variables; default: that of the first input. _reuse: take variables that exist already
        under the scope `name`. _scope: the scope, opened at once.
    """

    input_ndim: int | None = None  #: the rank that inputs must have, where the layer says so

    _trainable_weights: list[Any]
    _non_trainable_weights: list[Any]
    # what holds for subclasses that don't call __init__, as programs of 2016 wrote them
    trainable: bool = True
    built: bool = False
    _name: str | None = None
    _base_name: str = ""
    _dtype: DType | None = None
    _reuse: Any = None
    _scope: VariableScope | None = None
    _current_scope: VariableScope | None = None
    _final_scope: variable_scope | None = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Makes the lists of weights, which every layer has."""
        layer = super().__new__(cls)
        layer._trainable_weights = []
        layer._non_trainable_weights = []
        return layer

    def __init__(self, trainable: bool = True, name: Any = None, dtype: Any = None, **kwargs: Any) -> None:
        self._reuse = kwargs.pop("_reuse", None)
        scope = kwargs.pop("_scope", None)
        for unknown in kwargs:
            raise TypeError(f"{type(self).__name__}: keyword argument not understood: {unknown!r}")
        self.trainable = trainable
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
        self._set_name(name)
        if scope:
            with variable_scope(scope) as opened:
                self._scope = opened

    def _set_name(self, name: Any) -> None:
        default = _snake_case(type(self).__name__)
        self._base_name = name.name if isinstance(name, VariableScope) else name or default
        self._name = name if name and isinstance(name, str) else _unique_name(default)

    # ---- what it is --------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The layer's name; the scope's may differ."""
        if self._name is None:
            self._set_name(None)
        assert self._name is not None
        return self._name

    @property
    def dtype(self) -> DType | None:
        """The element type of its variables; None before the first call says."""
        return self._dtype

    @property
    def scope_name(self) -> str:
        """The name of its variable scope. ValueError before the first call."""
        if self._scope is None:
            raise ValueError(
                f'No name available for layer scope because the layer "{self.name}" has not been used yet: '
                "its scope is opened the first time it is called"
            )
        return self._scope.name

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that an optimizer moves, in the order they were made."""
        return list(self._trainable_weights) if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The other variables."""
        if self.trainable:
            return list(self._non_trainable_weights)
        return self._trainable_weights + self._non_trainable_weights

    @property
    def weights(self) -> list[Any]:
        """All variables, those that are trained first."""
        return self.trainable_weights + self.non_trainable_weights

    @property
    def trainable_variables(self) -> list[Any]:
        """trainable_weights."""
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Any]:
        """non_trainable_weights."""
        return self.non_trainable_weights

    @property
    def variables(self) -> list[Any]:
        """weights."""
        return self.weights

    # ---- what subclasses give -----------------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Makes the variables, by add_weight. input_shape: a TensorShape, or a nest of such as inputs are."""
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Makes the nodes of one call, and returns what the call returns."""
        return inputs

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool = True,
        constraint: Any = None,
        use_resource: bool | None = None,
        partitioner: Any = None,
    ) -> Any:
        """A variable of the layer's scope: made, or found where it is built already or reuses.

        The arguments are get_variable's; dtype: the layer's.
        """
        self._open_scope(None)
        assert self._scope is not None
        reuse = self.built or self._reuse
        with variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope:
            self._current_scope = scope
            variable = get_variable(
                name,
                shape=shape,
                dtype=dtypes.as_dtype(dtype or self._dtype or dtypes.float32),
                initializer=initializer,
                regularizer=regularizer,
                trainable=trainable and self.trainable,
                constraint=constraint,
                use_resource=use_resource,
                partitioner=partitioner,
            )
        self._keep(variable)
        return variable

    add_variable = add_weight

    def _keep(self, variable: Any) -> None:
        """Notes a variable as the layer's: trained where the graph says so, whoever decided."""
        trained = {id(v) for v in framework.get_collection(GraphKeys.TRAINABLE_VARIABLES)}
        for part in variable if hasattr(variable, "_get_variable_list") else (variable,):
            weights = self._trainable_weights if id(part) in trained else self._non_trainable_weights
            if all(part is not w for w in weights):
                weights.append(part)

    # ---- calls ---------------------------------------------------------------------------------------------

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer on inputs, building it first where this is the first call.

        scope=: the variable scope to open for the first call. Other arguments go to `call`.
        ValueError for inputs of another rank than the layer takes, and where `call` returns None.
        """
        self._open_scope(kwargs.pop("scope", None))
        with self._scope_of_call() as scope:
            self._current_scope = scope
            if "scope" in inspect.signature(self.call).parameters:
                kwargs["scope"] = scope
            inputs = nest.map_structure(_as_tensor, inputs)
            self._check_rank(inputs)
            with name_scope(scope.original_name_scope):
                self._build_once(inputs)
                outputs = self.call(inputs, *args, **kwargs)
        if outputs is None:
            raise ValueError(
                "A layer's `call` method should return a Tensor or a list of Tensors, not None "
                f"(layer: {self.name})."
            )
        return outputs

    def _open_scope(self, scope: Any) -> None:
        if self._scope is not None:
            return
        base = self._base_name or _snake_case(type(self).__name__)
        if self._reuse:
            entering = variable_scope(base if scope is None else scope)
        else:
            entering = variable_scope(scope, default_name=base)
        with entering as opened:
            self._scope = opened

    def _scope_of_call(self) -> variable_scope:
        assert self._scope is not None
        if not self.built:
            return variable_scope(self._scope, reuse=self._reuse, auxiliary_name_scope=False)
        if self._final_scope is None:
            self._final_scope = variable_scope(self._scope, reuse=True, auxiliary_name_scope=False)
        return self._final_scope

    def _build_once(self, inputs: Any) -> None:
        if self.built:
            return
        if self._dtype is None:
            first = nest.flatten(inputs)[:1]
            self._dtype = first[0].dtype.base_dtype if first else None
        self.build(nest.map_structure(lambda x: x.shape, inputs))
        self.built = True

    def _check_rank(self, inputs: Any) -> None:
        if self.input_ndim is None:
            return
        for i, x in enumerate(nest.flatten(inputs)):
            if x.shape.ndims not in (None, self.input_ndim):
                raise ValueError(
                    f"Input {i} of layer {self.name} is incompatible with the layer: expected "
                    f"ndim={self.input_ndim}, found ndim={x.shape.ndims}. "
                    f"Full shape received: {x.shape.as_list()}"
                )


def _as_tensor(value: Any) -> Any:
    return convert_to_tensor(value) if isinstance(value, np.ndarray | float | int) else value


def _snake_case(name: str) -> str:
    """BasicLSTMCell as basic_lstm_cell; a private class's starts with private."""
    spaced = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    snake = re.sub("([a-z])([A-Z])", r"\1_\2", spaced).lower()
    return "private" + snake if snake.startswith("_") else snake


def _unique_name(base: str) -> str:
    """base_1, base_2 ...: the next name for a layer of the default graph."""
    counts = get_default_graph()._library_state.setdefault("layer_names", {})
    counts[base] = counts.get(base, 0) + 1
    return f"{base}_{counts[base]}"
