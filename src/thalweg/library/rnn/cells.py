"""The plain recurrent cell, GRU and LSTM.

Variables are named and laid out as TensorFlow 1.15's, so that checkpoints fit: the input's rows of a kernel
come first, then the state's; an LSTM's columns are its input gate, new input, forget gate, output gate.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from thalweg.base import dtypes, nest
from thalweg.base.dtypes import DType
from thalweg.graph.convert import constant
from thalweg.graph.operation import Tensor
from thalweg.library import activations, math_ops, tf_logging
from thalweg.library.clip_ops import clip_by_value
from thalweg.library.initializers import constant_initializer, zeros_initializer
from thalweg.library.joining_ops import concat, split
from thalweg.library.math_ops import add, multiply, sigmoid
from thalweg.library.matrix_ops import matmul
from thalweg.library.nn_ops import bias_add
from thalweg.library.partitioners import fixed_size_partitioner
from thalweg.library.rnn.cell_base import LayerRNNCell
from thalweg.library.slicing import slice


class LSTMStateTuple(collections.namedtuple("LSTMStateTuple", ("c", "h"))):
    """An LSTM's state: the cells' values c and the output h."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        """The element type of both. TypeError where they differ."""
        if self.c.dtype != self.h.dtype:
            raise TypeError(f"Inconsistent internal state: {self.c.dtype} vs {self.h.dtype}")
        return self.c.dtype


class _GatedCell(LayerRNNCell):
    """What the cells of this file share: matrices of inputs, a number of units and an activation.

    num_units: the length of the state. activation: a function of a tensor, or its name in tf.nn; tanh.
    reuse, name, dtype, trainable: as Layer's.
    """

    input_ndim = 2

    def __init__(
        self, num_units: int, activation: Any, reuse: Any, name: Any, dtype: Any, **kwargs: Any
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        _check_type(self.dtype)
        self._num_units = num_units
        self._activation = _activation(activation)

    @property
    def state_size(self) -> Any:
        """num_units."""
        return self._num_units

    @property
    def output_size(self) -> Any:
        """num_units."""
        return self._num_units

    def _depth(self, input_shape: Any) -> int:
        """The length of inputs. ValueError where it isn't known."""
        depth = input_shape.as_list()[-1] if input_shape.ndims else None
        if depth is None:
            raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {input_shape}")
        _check_type(self.dtype)
        return depth


class BasicRNNCell(_GatedCell):
    """output = state = activation(inputs and state through one kernel, and a bias).

    Variables: kernel [inputs + units, units], bias [units].
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias."""
        units = self._num_units
        self._kernel = self.add_weight("kernel", [self._depth(input_shape) + units, units])
        self._bias = self.add_weight("bias", [units], initializer=zeros_initializer(self.dtype))

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: (output, output)."""
        _check_types([inputs, state])
        gates = bias_add(matmul(concat([inputs, state], 1), self._kernel), self._bias)
        output = self._activation(gates)
        return output, output


class GRUCell(_GatedCell):
    """Gated recurrent unit: the state moves towards a candidate, as far as the update gate lets it.

    kernel_initializer, bias_initializer: of the weights; default of the gates' bias: 1.
    Variables: gates/kernel, gates/bias (reset, update), candidate/kernel, candidate/bias.
    Source: Cho et al., Learning phrase representations using RNN encoder-decoder (2014).
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    def build(self, input_shape: Any) -> None:
        """Makes the kernels and biases of gates and candidate."""
        units, rows = self._num_units, self._depth(input_shape) + self._num_units
        weights, biases = self._kernel_initializer, self._bias_initializer
        ones = constant_initializer(1.0, dtype=self.dtype)
        zeros = zeros_initializer(self.dtype)
        self._gate_kernel = self.add_weight("gates/kernel", [rows, 2 * units], initializer=weights)
        self._gate_bias = self.add_weight("gates/bias", [2 * units], initializer=biases or ones)
        self._candidate_kernel = self.add_weight("candidate/kernel", [rows, units], initializer=weights)
        self._candidate_bias = self.add_weight("candidate/bias", [units], initializer=biases or zeros)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: (state, state)."""
        _check_types([inputs, state])
        gates = bias_add(matmul(concat([inputs, state], 1), self._gate_kernel), self._gate_bias)
        r, u = split(sigmoid(gates), num_or_size_splits=2, axis=1)
        candidate = matmul(concat([inputs, r * state], 1), self._candidate_kernel)
        c = self._activation(bias_add(candidate, self._candidate_bias))
        state = u * state + (1 - u) * c
        return state, state


class BasicLSTMCell(_GatedCell):
    """Long short-term memory, without peepholes, clipping or projection.

    forget_bias: added to the forget gate's. state_is_tuple: states are LSTMStateTuples, else c and h side by
        side in one matrix.
    Variables: kernel [inputs + units, 4 units], bias [4 units].
    Source: Zaremba et al., Recurrent neural network regularization (2014).
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        _warn_of_joined_state(self, state_is_tuple)

    @property
    def state_size(self) -> Any:
        """LSTMStateTuple(num_units, num_units), or 2 * num_units."""
        units = self._num_units
        return LSTMStateTuple(units, units) if self._state_is_tuple else 2 * units

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias."""
        units = self._num_units
        self._kernel = self.add_weight("kernel", [self._depth(input_shape) + units, 4 * units])
        self._bias = self.add_weight("bias", [4 * units], initializer=zeros_initializer(self.dtype))

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: (h, new state)."""
        _check_types([inputs, state])
        axis = constant(1, dtypes.int32)
        c, h = state if self._state_is_tuple else split(state, num_or_size_splits=2, axis=axis)
        gates = bias_add(matmul(concat([inputs, h], 1), self._kernel), self._bias)
        i, j, f, o = split(gates, num_or_size_splits=4, axis=axis)
        forget_bias = constant(self._forget_bias, f.dtype)
        new_c = add(multiply(c, sigmoid(add(f, forget_bias))), multiply(sigmoid(i), self._activation(j)))
        new_h = multiply(self._activation(new_c), sigmoid(o))
        return new_h, _state(self._state_is_tuple, new_c, new_h)


class LSTMCell(_GatedCell):
    """Long short-term memory with all its options.

    use_peepholes: the gates see c too, each through a vector of weights.
    cell_clip: c is kept in [-cell_clip, cell_clip]. initializer: of kernels and peepholes.
    num_proj: the output is projected to that many numbers, kept in [-proj_clip, proj_clip] if that is given.
    num_unit_shards, num_proj_shards: into how many slices to cut the kernels (a scope's partitioner
        does it too).
    forget_bias: added to the forget gate's. state_is_tuple: states are LSTMStateTuples, else c and the output
        side by side in one matrix.
    Variables: kernel, bias, w_f_diag, w_i_diag, w_o_diag, projection/kernel.
    Source: Sak et al., Long short-term memory recurrent neural network architectures (2014).
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._num_proj = num_proj or None
        self._proj_clip = proj_clip
        self._num_unit_shards = num_unit_shards
        self._num_proj_shards = num_proj_shards
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._output_length = num_proj or num_units
        _warn_of_joined_state(self, state_is_tuple)

    @property
    def state_size(self) -> Any:
        """LSTMStateTuple(num_units, output_size), or their sum."""
        units, outputs = self._num_units, self._output_length
        return LSTMStateTuple(units, outputs) if self._state_is_tuple else units + outputs

    @property
    def output_size(self) -> Any:
        """num_proj, else num_units."""
        return self._output_length

    def build(self, input_shape: Any) -> None:
        """Makes the variables that the options ask for."""
        units, rows = self._num_units, self._depth(input_shape) + self._output_length
        self._kernel = self.add_weight(
            "kernel",
            [rows, 4 * units],
            initializer=self._initializer,
            partitioner=_shards(self._num_unit_shards),
        )
        self._bias = self.add_weight("bias", [4 * units], initializer=zeros_initializer(self.dtype))
        if self._use_peepholes:
            self._w_f_diag = self.add_weight("w_f_diag", [units], initializer=self._initializer)
            self._w_i_diag = self.add_weight("w_i_diag", [units], initializer=self._initializer)
            self._w_o_diag = self.add_weight("w_o_diag", [units], initializer=self._initializer)
        if self._num_proj is not None:
            self._proj_kernel = self.add_weight(
                "projection/kernel",
                [units, self._num_proj],
                initializer=self._initializer,
                partitioner=_shards(self._num_proj_shards),
            )

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: (output, new state)."""
        _check_types([inputs, state])
        if self._state_is_tuple:
            c_prev, m_prev = state
        else:
            c_prev = slice(state, [0, 0], [-1, self._num_units])
            m_prev = slice(state, [0, self._num_units], [-1, self._output_length])
        gates = bias_add(matmul(concat([inputs, m_prev], 1), self._kernel), self._bias)
        i, j, f, o = split(gates, num_or_size_splits=4, axis=1)
        if self._use_peepholes:
            c = sigmoid(f + self._forget_bias + self._w_f_diag * c_prev) * c_prev + sigmoid(
                i + self._w_i_diag * c_prev
            ) * self._activation(j)
        else:
            c = sigmoid(f + self._forget_bias) * c_prev + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            c = clip_by_value(c, -self._cell_clip, self._cell_clip)
        gate = sigmoid(o + self._w_o_diag * c) if self._use_peepholes else sigmoid(o)
        m = gate * self._activation(c)
        if self._num_proj is not None:
            m = matmul(m, self._proj_kernel)
            if self._proj_clip is not None:
                m = clip_by_value(m, -self._proj_clip, self._proj_clip)
        return m, _state(self._state_is_tuple, c, m)


# ---- what they share --------------------------------------------------------------------------------------


def _state(as_tuple: bool, c: Tensor, h: Tensor) -> Any:
    return LSTMStateTuple(c, h) if as_tuple else concat([c, h], 1)


def _shards(count: int | None) -> Any:
    return None if count is None else fixed_size_partitioner(count)


def _warn_of_joined_state(cell: _GatedCell, state_is_tuple: bool) -> None:
    if not state_is_tuple:
        tf_logging.warning("%s: state_is_tuple=False is slower than state_is_tuple=True.", cell.name)


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "elu": activations.elu,
    "linear": lambda x: x,
    "relu": activations.relu,
    "selu": activations.selu,
    "sigmoid": math_ops.sigmoid,
    "softmax": activations.softmax,
    "softplus": activations.softplus,
    "softsign": activations.softsign,
    "tanh": math_ops.tanh,
}


def _activation(activation: Any) -> Callable[[Tensor], Tensor]:
    if activation is None:
        return math_ops.tanh
    if callable(activation):
        return activation
    if activation not in _ACTIVATIONS:
        names = ", ".join(sorted(_ACTIVATIONS))
        raise ValueError(f"activation must be a function or one of {names}; got {activation!r}")
    return _ACTIVATIONS[activation]


def _check_types(values: Any) -> None:
    for value in nest.flatten(values):
        _check_type(value.dtype)


def _check_type(dtype: DType | None) -> None:
    if dtype is not None and not (dtype.is_floating or dtype.is_complex):
        raise ValueError(f"RNN cell only supports floating point inputs, but saw dtype: {dtype.name}")
