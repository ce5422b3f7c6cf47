"""RNNCell, the base of recurrent cells: one step of a recurrent net, and the zero state to start from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thalweg.base import dtypes, nest
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.convert import constant, convert_to_tensor
from thalweg.graph.operation import Tensor
from thalweg.graph.shape_context import constant_value
from thalweg.library import array_ops
from thalweg.library.fill_ops import zeros
from thalweg.library.framework import name_scope
from thalweg.library.joining_ops import concat
from thalweg.library.layer import Layer
from thalweg.library.variable_scope import get_variable_scope, variable_scope


class RNNCell(Layer):
    """One step of a recurrent net: `output, next_state = cell(inputs, state)`.

    Subclasses give `state_size`, `output_size` and `call(inputs, state)`, which may make variables by
    get_variable. inputs: [batch, input size], or a nest of such. A size is an integer, a TensorShape or a
    nest of them; the states and outputs are then nests of tensors [batch, size...].
    """

    _opened_around: variable_scope | None = None

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step: (output, next state). scope: the variable scope to open for the first call."""
        if scope is not None:
            with variable_scope(scope, custom_getter=self._keeping_getter) as opened:
                return super().__call__(inputs, state, scope=opened)
        if self._opened_around is None:
            self._opened_around = variable_scope(get_variable_scope(), custom_getter=self._keeping_getter)
        with self._opened_around:
            return super().__call__(inputs, state)

    def _keeping_getter(self, getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        variable = getter(*args, **kwargs)
        self._keep(variable)
        return variable

    @property
    def state_size(self) -> Any:
        """The size of the state: an integer, a TensorShape, or a nest of them."""
        raise NotImplementedError(f"{type(self).__name__} must give state_size")

    @property
    def output_size(self) -> Any:
        """The size of the output: an integer, a TensorShape, or a nest of them."""
        raise NotImplementedError(f"{type(self).__name__} must give output_size")

    def build(self, input_shape: Any) -> None:
        """Nothing: `call` makes the variables, unless a subclass says otherwise."""

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The state to start from: zeros, in the structure of state_size. batch_size: an int or a scalar."""
        with name_scope(type(self).__name__ + "ZeroState"):
            return zero_states(self.state_size, batch_size, dtype)

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """zero_state, of the batch size and element type of inputs where those are given.

        ValueError where they contradict the other arguments, and where nothing says them.
        """
        if inputs is not None:
            inputs = convert_to_tensor(inputs, name="inputs")
            known = inputs.shape.as_list()[0]
            if batch_size is not None:
                given = constant_value(batch_size) if isinstance(batch_size, Tensor) else batch_size
                if known != given:
                    raise ValueError(
                        "batch size from input tensor is different from the input param. "
                        f"Input tensor batch: {known}, batch_size: {given}"
                    )
            if dtype is not None and inputs.dtype != dtype:
                raise ValueError(
                    "dtype from input tensor is different from the input param. "
                    f"Input tensor dtype: {inputs.dtype}, dtype: {dtype}"
                )
            batch_size = array_ops.shape(inputs)[0] if known is None else known
            dtype = inputs.dtype
        if batch_size is None or dtype is None:
            raise ValueError(
                "batch_size and dtype cannot be None while constructing initial state: "
                f"batch_size={batch_size}, dtype={dtype}"
            )
        return self.zero_state(batch_size, dtype)


class LayerRNNCell(RNNCell):
    """A cell that makes its variables in `build`, by add_weight, as layers do."""

    def __call__(self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kwargs: Any) -> Any:
        """One step: (output, next state). scope: the variable scope to open for the first call."""
        return Layer.__call__(self, inputs, state, *args, scope=scope, **kwargs)


def assert_like_rnncell(name: str, cell: Any) -> None:
    """TypeError for an object that has not what a cell has. name: of the argument."""
    faults = []
    if not hasattr(cell, "output_size"):
        faults.append("'output_size' property is missing")
    if not hasattr(cell, "state_size"):
        faults.append("'state_size' property is missing")
    if not hasattr(cell, "zero_state") and not hasattr(cell, "get_initial_state"):
        faults.append("either 'zero_state' or 'get_initial_state' method is required")
    if not callable(cell):
        faults.append("is not callable")
    if faults:
        raise TypeError(f"The argument {name!r} ({cell}) is not an RNNCell: {', '.join(faults)}.")


# ---- shapes of states ------------------------------------------------------------------------------------


def zero_states(state_size: Any, batch_size: Any, dtype: Any) -> Any:
    """Zeros of shape [batch_size, size...], for each size of a nest."""

    def zeros_of(size: Any) -> Tensor:
        result = zeros(batch_shape(batch_size, size), dtype)
        result.set_shape(static_batch_shape(batch_size, size))
        return result

    return nest.map_structure(zeros_of, state_size)


def batch_shape(prefix: Any, suffix: Any) -> Tensor:
    """[prefix..., suffix...] as an integer vector; each an int, a TensorShape or an integer tensor.

    ValueError where one is a shape that isn't fully known, or a tensor of rank 2 and more.
    """
    p, s = _vector("prefix", prefix), _vector("suffix", suffix)
    if p is None or s is None:
        raise ValueError(f"Provided a prefix or suffix of None: {prefix} and {suffix}")
    return concat((p, s), 0)


def static_batch_shape(prefix: Any, suffix: Any) -> TensorShape:
    """What is known of batch_shape(prefix, suffix) without running it. None in a prefix: unknown."""
    # the nodes of batch_shape, which nobody uses: TensorFlow makes them, and default seeds count nodes
    _vector("prefix", prefix)
    _vector("suffix", suffix)
    return _static(prefix).concatenate(_static(suffix))


def _vector(what: str, part: Any) -> Tensor | None:
    if isinstance(part, Tensor):
        if part.shape.ndims == 0:
            return array_ops.expand_dims(part, 0)
        if part.shape.ndims != 1:
            raise ValueError(f"{what} tensor must be either a scalar or vector, but saw tensor: {part}")
        return part
    shape = TensorShape(part)
    return constant(shape.as_list(), dtypes.int32) if shape.is_fully_defined() else None


def _static(part: Any) -> TensorShape:
    if not isinstance(part, Tensor):
        return TensorShape(part)
    value = constant_value(part)
    if value is not None:
        return TensorShape(value.tolist())
    # a scalar is one dimension; of a vector the length says how many
    rank = 1 if part.shape.ndims == 0 else part.shape.as_list()[0]
    return TensorShape(None if rank is None else [None] * rank)
