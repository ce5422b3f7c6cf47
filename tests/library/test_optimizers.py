"""Optimizers, global steps, averages: what they promise beyond the graphs and values that were recorded.

Graphs: tests/graph/test_recorded_graphs.py. Values: test_training_runs.py.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import thalweg as tf

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "gradient_descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, centered=True),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(1.0),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
    "proximal_gradient_descent": lambda: tf.train.ProximalGradientDescentOptimizer(0.1),
    "proximal_adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1),
}


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def run(fetches: Any, feeds: Any = None, steps: int = 1) -> Any:
    """Initialises everything, runs `steps` times, and returns what the last run gave."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            result = session.run(fetches, feeds)
        return result


def names(graph: Any, prefix: str) -> dict[str, str]:
    """The nodes whose name starts with `prefix`: name to type."""
    return {op.name: op.type for op in graph.get_operations() if op.name.startswith(prefix)}


# ---- names -----------------------------------------------------------------------------------------------


def test_names_of_gradient_descent(graph: Any) -> None:
    v = tf.Variable([1.0])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(v * v))
    assert train.name == "GradientDescent" and train.type == "NoOp"
    assert names(graph, "GradientDescent") == {
        "GradientDescent/learning_rate": "Const",
        "GradientDescent/update_Variable/ApplyGradientDescent": "ApplyGradientDescent",
        "GradientDescent": "NoOp",
    }
    assert tf.get_collection(tf.GraphKeys.TRAIN_OP) == [train]


def test_names_of_adam(graph: Any) -> None:
    with tf.variable_scope("net"):
        v = tf.get_variable("w", [2])
    optimizer = tf.train.AdamOptimizer()
    optimizer.minimize(tf.reduce_sum(v * v))
    assert [v.name for v in optimizer.variables()] == [
        "beta1_power:0",
        "beta2_power:0",
        "net/w/Adam:0",
        "net/w/Adam_1:0",
    ]
    assert optimizer.get_slot_names() == ["m", "v"]
    assert optimizer.get_slot(v, "m").name == "net/w/Adam:0"
    assert optimizer.get_slot(v, "nothing") is None
    assert {"Adam/beta1", "Adam/mul", "Adam/Assign", "Adam/Assign_1", "Adam"} <= names(graph, "Adam").keys()


def test_a_second_optimizer_has_slots_of_its_own() -> None:
    v = tf.Variable([1.0], name="v")
    loss = tf.reduce_sum(v)
    first, second = (tf.train.MomentumOptimizer(0.1, 0.9) for _ in range(2))
    first.minimize(loss)
    assert second.minimize(loss).name == "Momentum_1"
    assert first.get_slot(v, "momentum").name == "v/Momentum:0"
    assert second.get_slot(v, "momentum").name == "v/Momentum_1:0"


def test_names_of_ftrl_are_those_of_1_15(graph: Any) -> None:
    v = tf.Variable([1.0], name="v")
    tf.train.FtrlOptimizer(0.1, l2_regularization_strength=0.5).minimize(tf.reduce_sum(v))
    assert names(graph, "Ftrl") == {
        "Ftrl/learning_rate": "Const",
        "Ftrl/l1_regularization_strength": "Const",
        "Ftrl/l2_regularization_strength": "Const",
        "Ftrl/l2_shrinkage_regularization_strength": "Const",
        "Ftrl/learning_rate_power": "Const",
        "Ftrl/update_v/ApplyFtrl": "ApplyFtrl",
        "Ftrl": "NoOp",
    }
    assert names(graph, "v/Ftrl_1") == {
        "v/Ftrl_1/Initializer/zeros": "Const",
        "v/Ftrl_1": "VariableV2",
        "v/Ftrl_1/Assign": "Assign",
        "v/Ftrl_1/read": "Identity",
    }


def test_slots_are_where_their_variable_is() -> None:
    with tf.device("/job:ps/task:1"):
        v = tf.Variable([1.0], name="v")
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    with tf.device("/job:worker"):
        train = optimizer.minimize(tf.reduce_sum(v))
    slot = optimizer.get_slot(v, "momentum")
    assert slot.device == v.device == "/job:ps/task:1"
    assert slot.op.colocation_groups() == [b"loc:@v"]
    assert train.control_inputs[0].device == v.device


# ---- behaviour -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("use_resource", [False, True])
def test_a_parabola_gets_lower(name: str, use_resource: bool) -> None:
    v = tf.Variable([3.0, -2.0], use_resource=use_resource)
    loss = tf.reduce_sum(tf.square(v))
    train = OPTIMIZERS[name]().minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(loss)
        for _ in range(20):
            session.run(train)
        assert session.run(loss) < before


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_other_types_are_cast(dtype: str) -> None:
    v = tf.Variable(np.array([1.0, 2.0], dtype))
    train = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(v))
    with tf.control_dependencies([train]):
        after = v.read_value()
    np.testing.assert_allclose(run(after), [0.9, 1.9], rtol=2e-3)


def test_the_global_step_counts_after_the_updates() -> None:
    v = tf.Variable(1.0)
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.5).minimize(v, global_step=step, name="step_once")
    assert train.name == "step_once" and train.type == "AssignAdd"
    # the order goes through the constant, as in TensorFlow
    assert [c.name for c in train.inputs[1].op.control_inputs] == ["step_once/update"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        assert tf.train.global_step(session, step) == 3
        assert session.run(v) == -0.5


def test_hyperparameters_may_be_functions_and_tensors() -> None:
    v = tf.Variable([1.0])
    rate = tf.placeholder(tf.float32, [])
    train = tf.train.MomentumOptimizer(lambda: rate, tf.constant(0.0)).minimize(tf.reduce_sum(v))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {rate: 0.25})
        session.run(train, {rate: 0.5})
        np.testing.assert_allclose(session.run(v), [0.25])


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_constraint_is_applied_after_the_update(use_resource: bool) -> None:
    v = tf.Variable([0.5, 5.0], constraint=lambda x: tf.maximum(x, 0.0), use_resource=use_resource)
    train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(v))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(v), [0.0, 4.0])


def test_rows_that_repeat_count_once_for_adagrad() -> None:
    table = tf.Variable(np.zeros((3, 1), np.float32))
    rows = tf.gather(table, [1, 1])
    optimizer = tf.train.AdagradOptimizer(1.0, initial_accumulator_value=1.0)
    train = optimizer.minimize(tf.reduce_sum(rows))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        # the gradient of row 1 is 1 + 1, its accumulator 1 + 2 * 2
        np.testing.assert_allclose(session.run(table), [[0.0], [-2 / np.sqrt(5)], [0.0]], rtol=1e-6)
        np.testing.assert_allclose(session.run(optimizer.get_slot(table, "accumulator")), [[1.0], [5.0], [1.0]])


def test_gradients_may_be_changed_on_the_way() -> None:
    v, unused = tf.Variable([1.0, 2.0]), tf.Variable(7.0)
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(tf.reduce_sum(v * v), [v, [unused]])
    assert [v for _, v in pairs] == [v, unused] and pairs[1][0] is None
    train = optimizer.apply_gradients([(None if g is None else g * 0.5, w) for g, w in pairs])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(v), [0.0, 0.0])
        assert session.run(unused) == 7.0


def test_a_gradient_may_be_an_array() -> None:
    v = tf.Variable([1.0, 2.0])
    train = tf.train.GradientDescentOptimizer(1.0).apply_gradients([(np.array([1.0, 1.0], np.float32), v)])
    with tf.control_dependencies([train]):
        after = v.read_value()
    np.testing.assert_allclose(run(after), [0.0, 1.0])


def test_losses_of_more_elements_add_up_and_grad_loss_weighs_them() -> None:
    v = tf.Variable([1.0, 2.0])
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    ((grad, _),) = optimizer.compute_gradients(v * v, grad_loss=tf.constant([1.0, 10.0]))
    np.testing.assert_allclose(run(grad), [2.0, 40.0])


# ---- optimizers of programs ------------------------------------------------------------------------------


def test_a_program_may_write_its_own() -> None:
    class SignDescent(tf.train.Optimizer):
        def __init__(self, rate: float) -> None:
            super().__init__(use_locking=False, name="SignDescent")
            self._rate = rate

        def _prepare(self) -> None:
            self._rate_t = tf.convert_to_tensor(self._rate, name="rate")

        def _create_slots(self, var_list: Any) -> None:
            for v in var_list:
                self._zeros_slot(v, "count", self._name)

        def _apply_dense(self, grad: Any, var: Any) -> Any:
            count = self.get_slot(var, "count")
            return tf.group(
                tf.assign_sub(var, self._rate_t * tf.sign(grad)), tf.assign_add(count, tf.ones_like(grad))
            )

        def _apply_sparse(self, grad: Any, var: Any) -> Any:
            return tf.scatter_sub(var, grad.indices, self._rate_t * tf.sign(grad.values))

    v, table = tf.Variable([1.0, -1.0], name="v"), tf.Variable([[5.0], [6.0]])
    optimizer = SignDescent(0.5)
    train = optimizer.minimize(tf.reduce_sum(v * v) + tf.reduce_sum(tf.gather(table, [1, 1])))
    assert train.name == "SignDescent"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(v), [0.5, -0.5])
        np.testing.assert_allclose(session.run(table), [[5.0], [5.5]])
        np.testing.assert_allclose(session.run(optimizer.get_slot(v, "count")), [1.0, 1.0])


def test_what_a_program_did_not_write_is_missing() -> None:
    class Empty(tf.train.Optimizer):
        pass

    v = tf.Variable([1.0])
    with pytest.raises(NotImplementedError):
        Empty(False, "Empty").minimize(tf.reduce_sum(v))


def test_a_built_in_optimizer_may_be_extended() -> None:
    class Halved(tf.train.GradientDescentOptimizer):
        def _apply_dense(self, grad: Any, var: Any) -> Any:
            return super()._apply_dense(grad * 0.5, var)

    v = tf.Variable([1.0])
    train = Halved(1.0).minimize(tf.reduce_sum(v))
    with tf.control_dependencies([train]):
        after = v.read_value()
    np.testing.assert_allclose(run(after), [0.5])


# ---- errors ----------------------------------------------------------------------------------------------


def test_errors_of_minimize() -> None:
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match="No variables to optimize"):
        optimizer.minimize(tf.constant(1.0))
    v = tf.Variable(1.0)
    with pytest.raises(ValueError, match="No gradients provided for any variable, check your graph"):
        optimizer.minimize(tf.constant(1.0))
    with pytest.raises(ValueError, match=r"Invalid type tf\.int32 for"):
        optimizer.minimize(tf.constant(1))
    with pytest.raises(ValueError, match="gate_gradients must be one of"):
        optimizer.compute_gradients(v, gate_gradients=3)
    with pytest.raises(NotImplementedError, match="unsupported type"):
        optimizer.minimize(v * 1.0, var_list=["v"])


def test_errors_of_apply_gradients() -> None:
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    v = tf.Variable(1.0)
    with pytest.raises(ValueError, match="No variables provided"):
        optimizer.apply_gradients([])
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizer.apply_gradients([(None, v)])
    with pytest.raises(TypeError, match="Gradient must be convertible to a Tensor"):
        optimizer.apply_gradients([(object(), v)])
    with pytest.raises(NotImplementedError, match="Trying to update a Tensor"):
        optimizer.apply_gradients([(tf.constant(1.0), tf.constant(1.0))])


def test_errors_of_arguments() -> None:
    with pytest.raises(ValueError, match="Must specify the optimizer name"):
        tf.train.GradientDescentOptimizer(0.1, name="")
    with pytest.raises(ValueError, match="initial_accumulator_value must be positive"):
        tf.train.AdagradOptimizer(0.1, initial_accumulator_value=0.0)
    with pytest.raises(ValueError, match="learning_rate_power"):
        tf.train.FtrlOptimizer(0.1, learning_rate_power=0.5)
    with pytest.raises(tf.errors.UnimplementedError):
        tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 2)


def test_a_constraint_and_sparse_gradients_exclude_each_other() -> None:
    table = tf.Variable([[1.0], [2.0]], constraint=tf.abs)
    with pytest.raises(RuntimeError, match="constraint function on a sparse variable"):
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.gather(table, [0])))


# ---- global step -----------------------------------------------------------------------------------------


def test_global_step() -> None:
    assert tf.train.get_global_step() is None
    step = tf.train.create_global_step()
    assert step.name == "global_step:0" and step.dtype.base_dtype == tf.int64 and not step.trainable
    assert tf.train.get_global_step() is step is tf.train.get_or_create_global_step()
    with pytest.raises(ValueError, match="already exists"):
        tf.train.create_global_step()
    other = tf.Graph()
    assert tf.train.get_or_create_global_step(other).graph is other


def test_a_global_step_is_an_integer_scalar() -> None:
    with pytest.raises(TypeError, match="integer"):
        tf.train.assert_global_step(tf.Variable(1.0))
    with pytest.raises(TypeError, match="scalar"):
        tf.train.assert_global_step(tf.Variable([1]))
    with pytest.raises(TypeError, match="Variable or Tensor"):
        tf.train.assert_global_step("global_step")


def test_boundaries_of_a_piecewise_rate_are_of_the_type_of_the_step() -> None:
    with pytest.raises(ValueError, match="Boundaries"):
        tf.train.piecewise_constant(tf.constant(1), [1.5], [1.0, 2.0])
    with pytest.raises(ValueError, match="length of boundaries"):
        tf.train.piecewise_constant(tf.constant(1), [1, 2], [1.0, 2.0])
    with pytest.raises(ValueError, match="same dtype"):
        tf.train.piecewise_constant(tf.constant(1), [1], [1.0, 2])
    assert tf.train.piecewise_constant_decay is tf.train.piecewise_constant


def test_a_decay_needs_a_step() -> None:
    with pytest.raises(ValueError, match="global_step is required"):
        tf.train.exponential_decay(0.1, None, 10, 0.9)


# ---- averages --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("use_resource", [False, True])
def test_the_average_of_a_variable_starts_at_its_value(use_resource: bool) -> None:
    v = tf.Variable([10.0], name="v", use_resource=use_resource)
    ema = tf.train.ExponentialMovingAverage(0.9)
    with tf.control_dependencies([v.assign([20.0])]):
        update = ema.apply([v])
    average = ema.average(v)
    assert average.name == "v/ExponentialMovingAverage:0" and not average.trainable
    assert tf.moving_average_variables() == [v]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(average), [10.0])
        session.run(update)
        np.testing.assert_allclose(session.run(average), [11.0])


def test_the_average_of_a_tensor_starts_at_zero_or_is_corrected() -> None:
    x = tf.placeholder(tf.float32, [1], name="x")
    plain, corrected = (tf.train.ExponentialMovingAverage(0.9, zero_debias=z, name=f"ema{z}") for z in (0, 1))
    updates = [plain.apply([x]), corrected.apply([x])]
    averages = [plain.average(x), corrected.average(x)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for value in (1.0, 3.0):
            session.run(updates, {x: [value]})
        got = session.run(averages)
    np.testing.assert_allclose(got[0], [0.9 * 0.1 + 0.1 * 3], rtol=1e-5)
    np.testing.assert_allclose(got[1], [(0.9 * 0.1 + 0.1 * 3) / (1 - 0.81)], rtol=1e-5)


def test_averages_move_faster_at_the_start() -> None:
    v = tf.Variable(0.0)
    ema = tf.train.ExponentialMovingAverage(0.99, num_updates=tf.constant(5))
    with tf.control_dependencies([v.assign(1.0)]):
        update = ema.apply([v])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update)
        np.testing.assert_allclose(session.run(ema.average(v)), 1 - 6 / 15, rtol=1e-6)


def test_names_to_restore_from() -> None:
    v, w = tf.Variable(1.0, name="v"), tf.Variable(1.0, name="w", trainable=False)
    ema = tf.train.ExponentialMovingAverage(0.9)
    assert ema.average(v) is None and ema.average_name(v) == "v/ExponentialMovingAverage"
    assert ema.variables_to_restore() == {"v/ExponentialMovingAverage": v, "w": w}


def test_only_floats_have_averages() -> None:
    with pytest.raises(TypeError, match="must be half, float, or double"):
        tf.train.ExponentialMovingAverage(0.9).apply([tf.Variable(1)])


# ---- gradients -------------------------------------------------------------------------------------------


def test_hessians() -> None:
    x = tf.constant([1.0, 2.0])
    (h,) = tf.hessians(x[0] ** 3 + x[0] * x[1], x)
    np.testing.assert_allclose(run(h), [[6.0, 1.0], [1.0, 0.0]])


def test_a_gradient_of_ones_own(graph: Any) -> None:
    @tf.custom_gradient
    def log1pexp(x: Any) -> Any:
        e = tf.exp(x)
        return tf.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    x = tf.constant([100.0, 0.0])
    y = log1pexp(x)
    (dx,) = tf.gradients(y, x)
    assert y.op.type == "IdentityN"
    np.testing.assert_allclose(run(dx), [1.0, 0.5])


def test_a_gradient_of_ones_own_over_a_variable() -> None:
    v = tf.Variable([3.0], name="v")

    @tf.custom_gradient
    def scaled(x: Any) -> Any:
        def gradient(dy: Any, variables: Any = None) -> Any:
            assert variables == [v]
            return dy * 100.0, [dy * 7.0]

        return x * v, gradient

    x = tf.constant([2.0])
    np.testing.assert_allclose(run(tf.gradients(scaled(x), [x, v])), [[100.0], [7.0]])
    with pytest.raises(TypeError, match="'variables'"):
        tf.custom_gradient(lambda a: (a * v, lambda dy: dy))(x)


def test_gradients_against_differences() -> None:
    x = tf.placeholder(tf.float64, [2, 3])
    w = tf.constant(np.arange(12.0).reshape(3, 4) / 10)
    y = tf.tanh(tf.matmul(x, w))
    with tf.Session():
        by_gradients, by_differences = tf.test.compute_gradient(x, [2, 3], y, [2, 4])
        assert by_gradients.shape == by_differences.shape == (6, 8)
        assert tf.test.compute_gradient_error(x, [2, 3], y, [2, 4]) < 1e-5
        assert tf.test.compute_gradient_error([x], [[2, 3]], y, [2, 4], x_init_value=[np.ones((2, 3))]) < 1e-5


def test_sparse_gradients_against_differences() -> None:
    table = tf.placeholder(tf.float64, [4, 2])
    y = tf.square(tf.gather(table, [1, 3, 1]))
    with tf.Session():
        assert tf.test.compute_gradient_error(table, [4, 2], y, [3, 2]) < 1e-6


def test_differences_need_a_session() -> None:
    x = tf.placeholder(tf.float32, [1])
    with pytest.raises(ValueError, match="default session"):
        tf.test.compute_gradient(x, [1], x * x, [1])
