"""Recurrent nets written for TensorFlow 1.x, run by thalweg and by TensorFlow: names, values, gradients.

A program takes the module (tf), the namespace of cells (rnn_cell) and the inputs: x [3, 5, 4] and lengths [3].
It returns a nest of tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAMS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {}
#: programs with other nodes in TensorFlow 2 than in TensorFlow 1: only their values are compared
OTHER_NODES = ("dropout", "variational_dropout")

X = np.random.RandomState(0).randn(3, 5, 4).astype(np.float32)
LENGTHS = np.array([2, 5, 0], np.int32)


def _program(build: Callable[[Any, Any, Any, Any], Any]) -> Callable[[Any, Any, Any, Any], Any]:
    PROGRAMS[build.__name__] = build
    return build


@_program
def basic_rnn_time_major(tf: Any, rnn_cell: Any, x: Any, _: Any) -> Any:
    return tf.nn.dynamic_rnn(
        rnn_cell.BasicRNNCell(6), tf.transpose(x, [1, 0, 2]), time_major=True, dtype=tf.float32
    )


@_program
def basic_rnn_relu(tf: Any, rnn_cell: Any, x: Any, lengths: Any) -> Any:
    cell = rnn_cell.BasicRNNCell(3, activation=tf.nn.relu, name="mine")
    return tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32, scope="net")


@_program
def gru(tf: Any, rnn_cell: Any, x: Any, lengths: Any) -> Any:
    return tf.nn.dynamic_rnn(rnn_cell.GRUCell(6), x, sequence_length=lengths, dtype=tf.float32)


@_program
def gru_unknown_sizes(tf: Any, rnn_cell: Any, x: Any, _: Any) -> Any:
    x = tf.placeholder_with_default(x, [None, None, 4])
    return tf.nn.dynamic_rnn(rnn_cell.GRUCell(6), x, dtype=tf.float32)


@_program
def basic_lstm(tf: Any, rnn_cell: Any, x: Any, lengths: Any) -> Any:
    return tf.nn.dynamic_rnn(rnn_cell.BasicLSTMCell(6), x, sequence_length=lengths, dtype=tf.float32)


@_program
def basic_lstm_from_a_state(tf: Any, rnn_cell: Any, x: Any, _: Any) -> Any:
    state = rnn_cell.LSTMStateTuple(tf.ones([3, 6]), tf.fill([3, 6], -0.5))
    return tf.nn.dynamic_rnn(rnn_cell.BasicLSTMCell(6, forget_bias=0.0), x, initial_state=state)


@_program
def lstm_with_all_options(tf: Any, rnn_cell: Any, x: Any, lengths: Any) -> Any:
    cell = rnn_cell.LSTMCell(6, use_peepholes=True, cell_clip=0.5, num_proj=3, proj_clip=0.4, forget_bias=0.3)
    return tf.nn.dynamic_rnn(cell, x, sequence_length=lengths, dtype=tf.float32)


@_program
def lstm_joined_state(tf: Any, rnn_cell: Any, x: Any, _: Any) -> Any:
    cells = [rnn_cell.LSTMCell(6, state_is_tuple=False, num_proj=2)]
    cells.append(rnn_cell.BasicLSTMCell(3, state_is_tuple=False))
    return tf.nn.dynamic_rnn(rnn_cell.MultiRNNCell(cells, state_is_tuple=False), x, dtype=tf.float32)


@_program
def stack_of_cells(tf: Any, rnn_cell: Any, x: Any, lengths: Any) -> Any:
    cells = [rnn_cell.LSTMCell(3), rnn_cell.ResidualWrapper(rnn_cell.GRUCell(3)), rnn_cell.BasicRNNCell(2)]
    return tf.nn.dynamic_rnn(rnn_cell.MultiRNNCell(cells), x, lengths, dtype=tf.float32)


@_program
def dropout(tf: Any, rnn_cell: Any, x: Any, _: Any) -> Any:
    cell = rnn_cell.DropoutWrapper(rnn_cell.LSTMCell(6), 0.5, 0.6, 0.7, seed=3)
    # one iteration at a time: else TensorFlow may draw for a later one first
    return tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, parallel_iterations=1)


@_program
def variational_dropout(tf: Any, rnn_cell: Any, x: Any, _: Any) -> Any:
    cell = rnn_cell.DropoutWrapper(
        rnn_cell.GRUCell(6),
        0.5,
        0.6,
        0.7,
        variational_recurrent=True,
        input_size=4,
        dtype=tf.float32,
        seed=3,
    )
    return tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)


@_program
def static(tf: Any, rnn_cell: Any, x: Any, _: Any) -> Any:
    return tf.nn.static_rnn(rnn_cell.BasicLSTMCell(6), tf.unstack(x, axis=1), dtype=tf.float32)


@_program
def static_with_lengths(tf: Any, rnn_cell: Any, x: Any, lengths: Any) -> Any:
    inputs = tf.unstack(x[:, :3], axis=1)
    return tf.nn.static_rnn(rnn_cell.GRUCell(2), inputs, sequence_length=lengths, dtype=tf.float32)


@_program
def bidirectional(tf: Any, rnn_cell: Any, x: Any, lengths: Any) -> Any:
    return tf.nn.bidirectional_dynamic_rnn(
        rnn_cell.GRUCell(6), rnn_cell.LSTMCell(2), x, sequence_length=lengths, dtype=tf.float32
    )


@_program
def static_bidirectional(tf: Any, rnn_cell: Any, x: Any, lengths: Any) -> Any:
    inputs = tf.unstack(x[:, :2], axis=1)
    lengths = tf.minimum(lengths, 2)
    return tf.nn.static_bidirectional_rnn(
        rnn_cell.GRUCell(2), rnn_cell.BasicRNNCell(3), inputs, sequence_length=lengths, dtype=tf.float32
    )


@_program
def one_cell_in_two_nets(tf: Any, rnn_cell: Any, x: Any, _: Any) -> Any:
    cell = rnn_cell.GRUCell(3)
    with tf.variable_scope("one"):
        first = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    with tf.variable_scope("two"):
        second = tf.nn.dynamic_rnn(cell, x * 2.0, dtype=tf.float32)
    return first, second


@_program
def raw(tf: Any, rnn_cell: Any, x: Any, lengths: Any) -> Any:
    cell = rnn_cell.LSTMCell(6)
    inputs = tf.TensorArray(tf.float32, 5, clear_after_read=False).unstack(tf.transpose(x, [1, 0, 2]))

    def loop_fn(time: Any, output: Any, state: Any, seen: Any) -> Any:
        first = output is None
        state = cell.zero_state(3, tf.float32) if first else state
        seen = tf.constant(0) if first else seen + 1
        finished = time >= lengths
        given = tf.cond(tf.reduce_all(finished), lambda: tf.zeros([3, 4]), lambda: inputs.read(time))
        return finished, given, state, output, seen

    emitted, state, seen = tf.nn.raw_rnn(cell, loop_fn)
    return emitted.stack(), state, seen


def run(tf: Any, rnn_cell: Any, name: str) -> tuple[dict[str, np.ndarray], list[str], list[str]]:
    """Runs a program: (its values and gradients, "name shape" of its variables, "name op" of its nodes)."""
    with tf.Graph().as_default():
        return _run(tf, rnn_cell, name)


def _run(tf: Any, rnn_cell: Any, name: str) -> tuple[dict[str, np.ndarray], list[str], list[str]]:
    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, X.shape, "x")
    lengths = tf.placeholder(tf.int32, LENGTHS.shape, "lengths")
    results = tf.nest.flatten(PROGRAMS[name](tf, rnn_cell, x, lengths))
    nodes = [f"{op.name} {op.type}" for op in tf.get_default_graph().get_operations()]
    variables = tf.global_variables()
    loss = tf.add_n([tf.reduce_sum(tf.square(r)) for r in results if r.dtype == tf.float32])
    gradients = tf.gradients(loss, [x, *variables])
    numbers = np.random.RandomState(5)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for v in variables:
            v.load(numbers.uniform(-0.7, 0.7, v.shape.as_list()).astype(np.float32), sess)
        values = sess.run([results, gradients], {x: X, lengths: LENGTHS})
    found = {f"{name}/{kind}{i}": v for kind, vs in zip("rg", values, strict=True) for i, v in enumerate(vs)}
    return found, [f"{v.name} {v.shape.as_list()}" for v in variables], nodes
