"""Recurrent nets: beside TensorFlow's names, values and gradients; beside NumPy; and what is refused.

tests/golden/rnn_programs.py holds the programs; tests/golden/record_rnn.py recorded what TensorFlow makes of
them.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import thalweg as tf

GOLDEN = Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))

import arrays  # noqa: E402
import rnn_programs  # noqa: E402

RECORDED, META = arrays.load(GOLDEN / "data" / "rnn.npz")
cells = tf.nn.rnn_cell
X = rnn_programs.X


@pytest.fixture(autouse=True)
def fresh_graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(fetches: object, feed: object = None) -> object:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches, feed)


def names() -> list[str]:
    return [v.name for v in tf.global_variables()]


# ---- beside TensorFlow -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", rnn_programs.PROGRAMS)
def test_program(name: str) -> None:
    values, variables, nodes = rnn_programs.run(tf, cells, name)
    assert variables == META["variables"][name]
    if name in META["nodes"]:
        # of what an assertion shows, TensorFlow makes constants that nobody uses
        wanted = [n for n in META["nodes"][name] if "Assert/Const" not in n]
        assert [n for n in nodes if "Assert/Const" not in n] == wanted
    recorded = {key: value for key, value in RECORDED.items() if key.startswith(f"{name}/")}
    assert values.keys() == recorded.keys()
    for key, value in recorded.items():
        np.testing.assert_allclose(values[key], value, rtol=2e-5, atol=2e-6, err_msg=key)


# ---- beside NumPy ----------------------------------------------------------------------------------------


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def test_lstm_equations() -> None:
    outputs, state = tf.nn.dynamic_rnn(cells.BasicLSTMCell(2), tf.constant(X), dtype=tf.float32)
    kernel, bias = tf.global_variables()
    outputs, state, kernel, bias = run([outputs, state, kernel, bias + 0.0])
    c = h = np.zeros((3, 2), np.float32)
    for t in range(5):
        i, j, f, o = np.split(np.concatenate([X[:, t], h], 1) @ kernel + bias, 4, axis=1)
        c = c * _sigmoid(f + 1) + _sigmoid(i) * np.tanh(j)
        h = np.tanh(c) * _sigmoid(o)
        np.testing.assert_allclose(outputs[:, t], h, rtol=1e-5, atol=1e-6)
    assert isinstance(state, cells.LSTMStateTuple)
    np.testing.assert_allclose(state.c, c, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state.h, h, rtol=1e-5, atol=1e-6)


def test_gru_equations() -> None:
    state = np.full((3, 2), 0.3, np.float32)
    got, _ = cells.GRUCell(2)(tf.constant(X[:, 0]), tf.constant(state))
    gates, bias, candidate, _ = tf.trainable_variables()
    got, gates, bias, candidate = run([got, gates, bias, candidate])
    assert bias.tolist() == [1.0] * 4
    r, u = np.split(_sigmoid(np.concatenate([X[:, 0], state], 1) @ gates + bias), 2, axis=1)
    c = np.tanh(np.concatenate([X[:, 0], r * state], 1) @ candidate)
    np.testing.assert_allclose(got, u * state + (1 - u) * c, rtol=1e-5, atol=1e-6)


def test_finished_sequences_give_zeros_and_keep_their_state() -> None:
    outputs, state = tf.nn.dynamic_rnn(
        cells.BasicRNNCell(2), tf.constant(X), sequence_length=[2, 5, 0], dtype=tf.float32
    )
    outputs, state = run([outputs, state])
    assert not outputs[0, 2:].any() and not outputs[2].any() and outputs[1].all()
    np.testing.assert_array_equal(state, [outputs[0, 1], outputs[1, 4], [0, 0]])


def test_loop_stops_at_the_longest_sequence() -> None:
    x = np.where(np.arange(5)[None, :, None] < 3, X, np.nan)
    outputs, _ = tf.nn.dynamic_rnn(
        cells.BasicRNNCell(2), tf.constant(x), sequence_length=[2, 3, 1], dtype=tf.float32
    )
    assert np.isfinite(run(tf.reduce_sum(outputs[:, :3])))


def test_nests_of_inputs_and_outputs() -> None:
    class Pair(cells.RNNCell):
        state_size = (2, tf.TensorShape([2, 3]))
        output_size = (2, tf.TensorShape([2, 3]))

        def call(self, inputs: dict, state: tuple) -> tuple:
            new = (state[0] + inputs["a"], state[1] * 0.5 + inputs["b"])
            return new, new

    a, b = np.ones((3, 4, 2), np.float32), np.ones((3, 4, 2, 3), np.float32)
    inputs = {"a": tf.constant(a), "b": tf.constant(b)}
    (first, second), state = tf.nn.dynamic_rnn(Pair(), inputs, dtype=tf.float32)
    assert second.shape.as_list() == [3, 4, 2, 3]
    first, second, state = run([first, second, state])
    assert first[0, :, 0].tolist() == [1, 2, 3, 4]
    assert second[0, :, 0, 0].tolist() == [1, 1.5, 1.75, 1.875] and state[1].max() == 1.875


def test_while_loops_of_cells_train() -> None:
    """A net learns to add up its inputs: the variables made in the loop get gradients and move."""
    x = tf.constant(X[:, :, :1])
    outputs, _ = tf.nn.dynamic_rnn(cells.BasicRNNCell(1, activation="linear"), x, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(outputs - tf.cumsum(x, axis=1)))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(300):
            sess.run(train)
        assert sess.run(loss) < 1e-3


# ---- names, sharing, reuse -------------------------------------------------------------------------------


def test_names_of_variables() -> None:
    x = tf.constant(X)
    tf.nn.dynamic_rnn(cells.BasicLSTMCell(2), x, dtype=tf.float32)
    tf.nn.dynamic_rnn(cells.LSTMCell(2, use_peepholes=True, num_proj=1), x, dtype=tf.float32, scope="b")
    stack = cells.MultiRNNCell([cells.GRUCell(2), cells.DropoutWrapper(cells.BasicRNNCell(2), 0.5)])
    tf.nn.dynamic_rnn(stack, x, dtype=tf.float32, scope="c")
    assert names() == [
        "rnn/basic_lstm_cell/kernel:0",
        "rnn/basic_lstm_cell/bias:0",
        "b/lstm_cell/kernel:0",
        "b/lstm_cell/bias:0",
        "b/lstm_cell/w_f_diag:0",
        "b/lstm_cell/w_i_diag:0",
        "b/lstm_cell/w_o_diag:0",
        "b/lstm_cell/projection/kernel:0",
        "c/multi_rnn_cell/cell_0/gru_cell/gates/kernel:0",
        "c/multi_rnn_cell/cell_0/gru_cell/gates/bias:0",
        "c/multi_rnn_cell/cell_0/gru_cell/candidate/kernel:0",
        "c/multi_rnn_cell/cell_0/gru_cell/candidate/bias:0",
        "c/multi_rnn_cell/cell_1/basic_rnn_cell/kernel:0",
        "c/multi_rnn_cell/cell_1/basic_rnn_cell/bias:0",
    ]
    assert [v.name for v in stack.trainable_weights] == names()[8:]
    assert [v.name for v in stack._cells[1].variables] == names()[12:]


def test_a_scope_made_twice_is_refused_and_reuse_shares() -> None:
    x = tf.constant(X)

    def net(**kwargs: object) -> tf.Tensor:
        return tf.nn.dynamic_rnn(cells.GRUCell(2, **kwargs), x, dtype=tf.float32)[0]

    with tf.variable_scope("a"):
        first = net()
    with pytest.raises(ValueError, match="already exists"), tf.variable_scope("a"):
        net()
    with tf.variable_scope("a", reuse=True):
        second = net()
    with tf.variable_scope("a"):
        third = net(reuse=True)
    assert len(names()) == 4
    first, second, third = run([first, second, third])
    np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(first, third, rtol=1e-4, atol=1e-6)


def test_auto_reuse_makes_and_shares() -> None:
    for _ in range(2):
        with tf.variable_scope("a", reuse=tf.AUTO_REUSE):
            tf.nn.dynamic_rnn(cells.BasicLSTMCell(2), tf.constant(X), dtype=tf.float32)
    assert names() == ["a/rnn/basic_lstm_cell/kernel:0", "a/rnn/basic_lstm_cell/bias:0"]


def test_a_cell_called_twice_shares_its_variables() -> None:
    cell = cells.GRUCell(4)
    state = cell.zero_state(3, tf.float32)
    for _ in range(3):
        _, state = cell(tf.constant(X[:, 0]), state)
    assert len(names()) == 4 and len(cell.weights) == 4 and cell.scope_name == "gru_cell"


def test_cells_of_2016_that_do_not_call_the_base() -> None:
    class Old(cells.RNNCell):
        def __init__(self, units: int) -> None:
            self.units = units

        state_size = property(lambda self: self.units)
        output_size = property(lambda self: self.units)

        def __call__(self, inputs: tf.Tensor, state: tf.Tensor, scope: object = None) -> tuple:
            with tf.variable_scope(scope or type(self).__name__):
                new = tf.tanh(cells._linear([inputs, state], self.units, True))
            return new, new

    class Newer(Old):
        __call__ = cells.RNNCell.__call__

        def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple:
            new = state + tf.get_variable("step", []) * inputs
            return new, new

    tf.nn.dynamic_rnn(Old(2), tf.constant(X), dtype=tf.float32)
    cell = Newer(4)
    tf.nn.static_rnn(cell, [tf.constant(X[:, 0])] * 2, dtype=tf.float32, scope="b")
    assert names() == ["rnn/Old/kernel:0", "rnn/Old/bias:0", "b/newer/step:0"]
    assert [v.name for v in cell.trainable_weights] == ["b/newer/step:0"]


def test_settings_of_the_scope_reach_the_cell() -> None:
    starts = tf.constant_initializer(0.25)
    with tf.variable_scope("a", initializer=starts, regularizer=tf.nn.l2_loss):
        tf.nn.dynamic_rnn(cells.BasicRNNCell(2), tf.constant(X), dtype=tf.float32)
    kernel, losses = run([tf.global_variables()[0], tf.losses.get_regularization_losses()])
    assert set(kernel.ravel()) == {0.25} and len(losses) == 2


def test_untrainable_cell() -> None:
    cell = cells.LSTMCell(2, trainable=False)
    cell(tf.constant(X[:, 0]), cell.zero_state(3, tf.float32))
    assert not tf.trainable_variables() and not cell.trainable_weights
    assert len(cell.non_trainable_weights) == 2


def test_kernels_in_slices() -> None:
    cell = cells.LSTMCell(4, num_unit_shards=2)
    cell(tf.constant(X[:, 0]), cell.zero_state(3, tf.float32))
    assert names() == ["lstm_cell/kernel/part_0:0", "lstm_cell/kernel/part_1:0", "lstm_cell/bias:0"]


@pytest.mark.parametrize("kind", [tf.float64, tf.float32])
def test_types(kind: tf.DType) -> None:
    x = tf.cast(tf.constant(X), kind)
    outputs, state = tf.nn.dynamic_rnn(cells.LSTMCell(2, use_peepholes=True), x, dtype=kind)
    assert outputs.dtype == kind and state.dtype == kind
    assert all(v.dtype.base_dtype == kind for v in tf.global_variables())
    assert np.isfinite(run(outputs)).all()


# ---- states ----------------------------------------------------------------------------------------------


def test_zero_states() -> None:
    cell = cells.MultiRNNCell([cells.LSTMCell(3, num_proj=2), cells.GRUCell(4)])
    assert cell.state_size == (cells.LSTMStateTuple(3, 2), 4) and cell.output_size == 4
    batch = tf.placeholder(tf.int32, [])
    known, unknown = cell.zero_state(2, tf.float32), cell.zero_state(batch, tf.float64)
    assert known[0].h.shape.as_list() == [2, 2] and unknown[1].shape.as_list() == [None, 4]
    assert [v.shape for v in tf.nest.flatten(run(unknown, {batch: 7}))] == [(7, 3), (7, 2), (7, 4)]
    first = cell.get_initial_state(inputs=tf.constant(X))
    assert first[1].shape.as_list() == [3, 4] and first[1].dtype == tf.float32


def test_a_state_saver() -> None:
    class Saver:
        def __init__(self) -> None:
            self.kept = tf.get_variable("kept", [3, 2], initializer=tf.ones_initializer())

        def state(self, name: str) -> tf.Tensor:
            return self.kept.read_value()

        def save_state(self, name: str, value: tf.Tensor) -> tf.Operation:
            return self.kept.assign(value).op

    saver = Saver()
    inputs = tf.unstack(tf.constant(X), axis=1)
    outputs, state = tf.nn.static_state_saving_rnn(cells.GRUCell(2), inputs, saver, "s")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first = sess.run([outputs[-1], state])
        np.testing.assert_array_equal(sess.run(saver.kept), first[0])
        second = sess.run(state)
        assert np.abs(second - first[1]).max() > 1e-4


# ---- wrappers --------------------------------------------------------------------------------------------


def test_dropout_of_nothing_is_the_cell() -> None:
    cell = cells.DropoutWrapper(cells.GRUCell(2), 1.0, 1.0, 1.0)
    state = tf.zeros([3, 2])
    plain, _ = cell.wrapped_cell(tf.constant(X[:, 0]), state)
    wrapped, _ = cell(tf.constant(X[:, 0]), state)
    plain, wrapped = run([plain, wrapped])
    np.testing.assert_array_equal(plain, wrapped)


def test_dropout_spares_an_lstm_s_memory() -> None:
    cell = cells.DropoutWrapper(cells.LSTMCell(50), state_keep_prob=0.5, output_keep_prob=0.5)
    output, state = cell(tf.constant(X[:, 0]), cell.zero_state(3, tf.float32))
    output, state = run([output, state])
    for dropped in (output, state.h):
        assert 0.25 < np.mean(dropped == 0) < 0.75
    assert (state.c != 0).all()


def test_variational_dropout_drops_the_same_all_along() -> None:
    inner = cells.BasicRNNCell(40)
    cell = cells.DropoutWrapper(inner, output_keep_prob=0.5, variational_recurrent=True, dtype=tf.float32)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.constant(X), dtype=tf.float32)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first, second = (sess.run(outputs) == 0 for _ in range(2))
    assert (first == first[0, 0]).all() and (first != second).any()


def test_keep_prob_may_be_fed() -> None:
    keep = tf.placeholder_with_default(1.0, [])
    cell = cells.DropoutWrapper(cells.GRUCell(40), output_keep_prob=keep)
    output, _ = tf.nn.dynamic_rnn(cell, tf.constant(X), dtype=tf.float32)
    assert not (run(output) == 0).any() and (run(output, {keep: 0.5}) == 0).any()


def test_residual_function_and_device() -> None:
    cell = cells.DeviceWrapper(
        cells.ResidualWrapper(cells.GRUCell(4), residual_fn=lambda i, o: o * 0.0 - i), "/device:CPU:0"
    )
    output, _ = cell(tf.constant(X[:, 0]), cell.zero_state(3, tf.float32))
    assert output.op.inputs[0].op.device == "/device:CPU:0"
    np.testing.assert_array_equal(run(output), -X[:, 0])


# ---- what is refused -------------------------------------------------------------------------------------


def test_refused_arguments() -> None:
    x, cell = tf.constant(X), cells.GRUCell(2)
    with pytest.raises(TypeError, match="is not an RNNCell: 'output_size' property is missing"):
        tf.nn.dynamic_rnn(lambda i, s: (i, s), x, dtype=tf.float32)
    with pytest.raises(ValueError, match="must give a dtype"):
        tf.nn.dynamic_rnn(cell, x)
    with pytest.raises(ValueError, match="must be a vector of length batch_size"):
        tf.nn.dynamic_rnn(cell, x, sequence_length=[[1, 2, 3]], dtype=tf.float32)
    with pytest.raises(ValueError, match="depth of inputs"):
        tf.nn.dynamic_rnn(cell, tf.placeholder(tf.float32, [3, 5, None]), dtype=tf.float32)
    with pytest.raises(ValueError, match="Time steps is not the same"):
        tf.nn.dynamic_rnn(cell, (x, x[:, :2]), dtype=tf.float32)
    with pytest.raises(TypeError, match="inputs must be a sequence"):
        tf.nn.static_rnn(cell, x, dtype=tf.float32)
    with pytest.raises(ValueError, match="must not be empty"):
        tf.nn.static_rnn(cell, [], dtype=tf.float32)
    with pytest.raises(TypeError, match="loop_fn must be a callable"):
        tf.nn.raw_rnn(cell, 1)


def test_refused_cells() -> None:
    with pytest.raises(ValueError, match="at least one cell"):
        cells.MultiRNNCell([])
    with pytest.raises(ValueError, match="flag state_is_tuple is not set"):
        cells.MultiRNNCell([cells.LSTMCell(2)], state_is_tuple=False)
    with pytest.raises(ValueError, match="between 0 and 1"):
        cells.DropoutWrapper(cells.GRUCell(2), input_keep_prob=1.5)
    with pytest.raises(ValueError, match="input_size must be provided"):
        cells.DropoutWrapper(cells.GRUCell(2), 0.5, variational_recurrent=True, dtype=tf.float32)
    with pytest.raises(ValueError, match="only supports floating point inputs, but saw dtype: int32"):
        cells.GRUCell(2)(tf.zeros([3, 2], tf.int32), tf.zeros([3, 2], tf.int32))
    with pytest.raises(ValueError, match="expected ndim=2, found ndim=3"):
        cells.GRUCell(2)(tf.constant(X), tf.zeros([3, 2]))
    with pytest.raises(ValueError, match=r"Expected inputs.shape\[-1\] to be known"):
        cells.LSTMCell(2)(tf.placeholder(tf.float32, [3, None]), (tf.zeros([3, 2]), tf.zeros([3, 2])))
    with pytest.raises(ValueError, match="activation must be a function or one of"):
        cells.GRUCell(2, activation="nonesuch")
    with pytest.raises(TypeError, match="keyword argument not understood: 'shoesize'"):
        cells.GRUCell(2, shoesize=44)


def test_wrong_number_of_lengths_fails_when_it_runs() -> None:
    lengths = tf.placeholder(tf.int32, [None])
    outputs, _ = tf.nn.dynamic_rnn(cells.GRUCell(2), tf.constant(X), lengths, dtype=tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected shape for Tensor"):
        run(outputs, {lengths: [1, 2]})
