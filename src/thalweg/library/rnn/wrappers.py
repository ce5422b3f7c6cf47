"""Cells made of cells: one after the other, with dropout, with a shortcut, on a device."""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Callable, Sequence
from typing import Any

from thalweg.base import nest
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.operation import Tensor
from thalweg.graph.shape_context import constant_value
from thalweg.library import framework, tf_logging
from thalweg.library.dropout_ops import dropout
from thalweg.library.elementwise_ops import floor
from thalweg.library.framework import name_scope
from thalweg.library.joining_ops import concat
from thalweg.library.layer import Layer
from thalweg.library.math_ops import divide
from thalweg.library.random_ops import random_uniform
from thalweg.library.rnn.cell_base import RNNCell, assert_like_rnncell
from thalweg.library.rnn.cells import LSTMStateTuple
from thalweg.library.slicing import slice
from thalweg.library.tensor_array import TensorArray
from thalweg.library.variable_scope import variable_scope


class MultiRNNCell(RNNCell):
    """Cells one after the other: each one's output is the next one's input.

    state_is_tuple: the state is a tuple of the cells' states, else they stand side by side in one matrix.
    The variables of cell i are under "cell_i". ValueError without cells, TypeError for something that is no
    list or tuple of them.
    """

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not nest.is_nested(cells):
            raise TypeError(f"cells must be a list or tuple, but saw: {cells}.")
        if len({id(cell) for cell in cells}) < len(cells):
            tf_logging.log_first_n(
                tf_logging.WARN,
                "At least two cells provided to MultiRNNCell are the same object and will share weights.",
                1,
            )
        self._cells = cells
        self._state_is_tuple = state_is_tuple
        sizes = [cell.state_size for cell in cells]
        if not state_is_tuple and any(nest.is_nested(size) for size in sizes):
            raise ValueError(
                "Some cells return tuples of states, but the flag state_is_tuple is not set. "
                f"State sizes are: {sizes}"
            )

    @property
    def state_size(self) -> Any:
        """The tuple of the cells' sizes, or their sum."""
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """The last cell's."""
        return self._cells[-1].output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The cells' zero states."""
        with name_scope(type(self).__name__ + "ZeroState"):
            if self._state_is_tuple:
                return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)
            return super().zero_state(batch_size, dtype)

    @property
    def trainable_weights(self) -> list[Any]:
        """The cells' variables that an optimizer moves."""
        return self._weights_of_cells("trainable_weights") if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The cells' other variables."""
        others = self._weights_of_cells("non_trainable_weights")
        return others if self.trainable else self._weights_of_cells("trainable_weights") + others

    def _weights_of_cells(self, which: str) -> list[Any]:
        return [w for cell in self._cells if isinstance(cell, Layer) for w in getattr(cell, which)]

    def call(self, inputs: Any, state: Any) -> Any:
        """One step of every cell: (the last one's output, the states)."""
        if self._state_is_tuple and not nest.is_nested(state):
            raise ValueError(
                f"Expected state to be a tuple of length {len(self.state_size)}, but received: {state}"
            )
        start = 0
        states = []
        for i, cell in enumerate(self._cells):
            with variable_scope(f"cell_{i}"):
                if self._state_is_tuple:
                    own = state[i]
                else:
                    own = slice(state, [0, start], [-1, cell.state_size])
                    start += cell.state_size
                inputs, following = cell(inputs, own)
                states.append(following)
        return inputs, tuple(states) if self._state_is_tuple else concat(states, 1)


class _Wrapper(RNNCell):
    """A cell around another. It opens no scope of its own: names are those of the cell inside."""

    def __init__(self, cell: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        assert_like_rnncell("cell", cell)
        self.cell = cell

    @property
    def wrapped_cell(self) -> Any:
        """The cell inside."""
        return self.cell

    @property
    def state_size(self) -> Any:
        """The inner cell's."""
        return self.cell.state_size

    @property
    def output_size(self) -> Any:
        """The inner cell's."""
        return self.cell.output_size

    @property
    def trainable_weights(self) -> list[Any]:
        """The inner cell's."""
        return self.cell.trainable_weights if isinstance(self.cell, Layer) else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The inner cell's."""
        return self.cell.non_trainable_weights if isinstance(self.cell, Layer) else []

    def build(self, input_shape: Any) -> None:
        """Builds the inner cell."""
        self.cell.build(input_shape)
        self.built = True

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The inner cell's zero state."""
        with name_scope(type(self).__name__ + "ZeroState"):
            return self.cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step: (output, next state)."""
        return self._around(inputs, state, lambda i, s: self.cell(i, s, scope=scope))

    def call(self, inputs: Any, state: Any, **kwargs: Any) -> Any:
        """One step, by the inner cell's `call`."""
        return self._around(inputs, state, lambda i, s: self.cell.call(i, s, **kwargs))

    def _around(self, inputs: Any, state: Any, step: Callable[[Any, Any], Any]) -> Any:
        raise NotImplementedError


class ResidualWrapper(_Wrapper):
    """A cell whose inputs are added to its outputs.

    residual_fn: what to make of (inputs, outputs) instead of their sum.
    Errors: those of nest.assert_same_structure, and ValueError where shapes differ.
    """

    def __init__(
        self, cell: Any, residual_fn: Callable[[Any, Any], Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(cell, **kwargs)
        self._residual_fn = residual_fn

    def _around(self, inputs: Any, state: Any, step: Callable[[Any, Any], Any]) -> Any:
        outputs, state = step(inputs, state)
        return (self._residual_fn or _sums)(inputs, outputs), state


def _sums(inputs: Any, outputs: Any) -> Any:
    nest.assert_same_structure(inputs, outputs)
    nest.map_structure(lambda i, o: i.shape.assert_is_compatible_with(o.shape), inputs, outputs)
    return nest.map_structure(lambda i, o: i + o, inputs, outputs)


class DeviceWrapper(_Wrapper):
    """A cell whose nodes go on a device. device: what tf.device takes."""

    def __init__(self, cell: Any, device: Any, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The inner cell's zero state, on the device."""
        with name_scope(type(self).__name__ + "ZeroState"), framework.device(self._device):
            return self.cell.zero_state(batch_size, dtype)

    def _around(self, inputs: Any, state: Any, step: Callable[[Any, Any], Any]) -> Any:
        with framework.device(self._device):
            return step(inputs, state)


# ---- dropout ---------------------------------------------------------------------------------------------


class DropoutWrapper(_Wrapper):
    """A cell with dropout of its inputs, outputs and state (not of an LSTM's c).

    input_keep_prob, output_keep_prob, state_keep_prob: the shares that are kept: numbers or scalars.
    variational_recurrent: drop the same elements at every step of a run, for all rows of the batch; needs
        dtype, and input_size (a TensorShape or a nest) where inputs are dropped. Source: Gal and Ghahramani,
        A theoretically grounded application of dropout in recurrent neural networks (2016).
    seed: of the random choices. dropout_state_filter_visitor: says of each part of the state whether to drop
        it (see nest.get_traverse_shallow_structure).
    Errors: ValueError for shares outside [0, 1] and where variational_recurrent lacks something, TypeError
        for a filter that can't be called.
    """

    def __init__(
        self,
        cell: Any,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(cell, dtype=dtype, **kwargs)
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise TypeError("dropout_state_filter_visitor must be callable")
        self._state_filter = dropout_state_filter_visitor or _all_but_memory
        with name_scope("DropoutWrapperInit"):
            self._input_keep_prob = _share("input_keep_prob", input_keep_prob)
            self._state_keep_prob = _share("state_keep_prob", state_keep_prob)
            self._output_keep_prob = _share("output_keep_prob", output_keep_prob)
        self._variational = variational_recurrent
        self._seed = seed
        self._input_noise = self._state_noise = self._output_noise = None
        if variational_recurrent:
            self._make_noise(input_size, dtype)

    def _make_noise(self, input_size: Any, dtype: Any) -> None:
        if dtype is None:
            raise ValueError("When variational_recurrent=True, dtype must be provided")

        def noise(size: Any, salt: str) -> Any:
            def of_part(i: int, s: Any) -> Tensor:
                shape = concat(([1], TensorShape(s).as_list()), 0)  # one choice for the whole batch
                return random_uniform(shape, seed=self._seed_of(salt, i), dtype=dtype)

            return _numbered_map(of_part, size, size)

        if _drops(self._input_keep_prob):
            if input_size is None:
                raise ValueError(
                    "When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, input_size "
                    "must be provided"
                )
            self._input_noise = noise(input_size, "input")
        self._state_noise = noise(self.cell.state_size, "state")
        self._output_noise = noise(self.cell.output_size, "output")

    def _seed_of(self, salt: str, index: int) -> int | None:
        """A seed for each tensor that is dropped from; TensorFlow's, so that programs repeat theirs."""
        if self._seed is None:
            return None
        text = f"{self._seed}{salt}_{index}".encode()
        return int(hashlib.md5(text, usedforsecurity=False).hexdigest()[:8], 16) & 0x7FFFFFFF

    def _around(self, inputs: Any, state: Any, step: Callable[[Any, Any], Any]) -> Any:
        if _drops(self._input_keep_prob):
            inputs = self._dropped(inputs, "input", self._input_noise, self._input_keep_prob)
        output, state = step(inputs, state)
        if _drops(self._state_keep_prob):
            which = nest.get_traverse_shallow_structure(self._state_filter, state)
            state = self._dropped(state, "state", self._state_noise, self._state_keep_prob, which)
        if _drops(self._output_keep_prob):
            output = self._dropped(output, "output", self._output_noise, self._output_keep_prob)
        return output, state

    def _dropped(self, values: Any, salt: str, noise: Any, keep_prob: Any, which: Any = None) -> Any:
        """values with dropout, where `which` says so: a nest like their upper part."""
        which = values if which is None else which
        if self._variational:

            def vary(_: int, wanted: Any, value: Any, chance: Any) -> Any:
                return value if wanted is False else _masked(value, chance, keep_prob)

            return _numbered_map(vary, which, which, values, noise)

        def drop(i: int, wanted: Any, value: Any) -> Any:
            if wanted is False:
                return value
            return dropout(value, rate=1.0 - keep_prob, seed=self._seed_of(salt, i))

        return _numbered_map(drop, which, which, values)


def _share(name: str, value: Any) -> Any:
    """A number in [0, 1], or the tensor of one that isn't known yet."""
    tensor = convert_to_tensor(value)
    known = constant_value(tensor)
    if known is None:
        return tensor
    if not 0 <= known <= 1:
        raise ValueError(f"Parameter {name} must be between 0 and 1: {known}")
    return float(known)


def _drops(keep_prob: Any) -> bool:
    return not isinstance(keep_prob, numbers.Real) or keep_prob < 1


def _masked(value: Tensor, noise: Tensor, keep_prob: Any) -> Tensor:
    """value / keep_prob where noise >= 1 - keep_prob, else 0."""
    kept = floor(keep_prob + noise)
    result = divide(value, keep_prob) * kept
    result.set_shape(value.shape)
    return result


def _all_but_memory(part: Any) -> Any:
    if isinstance(part, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return not isinstance(part, TensorArray)


def _numbered_map(function: Callable[..., Any], shallow: Any, *nests: Any) -> Any:
    """nest.map_structure_up_to, with the number of each part as the first argument."""
    numbers_of_parts = nest.pack_sequence_as(shallow, list(range(len(nest.flatten(shallow)))))
    return nest.map_structure_up_to(shallow, function, numbers_of_parts, *nests)
