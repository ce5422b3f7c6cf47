"""Gradients through branches and loops: beside TensorFlow's, and where TensorFlow fails, beside differences."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thalweg as tf

GOLDEN = Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))

import arrays  # noqa: E402
import control_flow_programs  # noqa: E402
import gradient_programs  # noqa: E402

RECORDED, _ = arrays.load(GOLDEN / "data" / "gradients.npz")


@pytest.mark.parametrize("name", gradient_programs.PROGRAMS)
def test_program(name: str) -> None:
    got = control_flow_programs.run(tf, name, programs=gradient_programs.PROGRAMS)
    wanted = {key: value for key, value in RECORDED.items() if key.startswith(f"{name}/")}
    assert got.keys() == wanted.keys()
    for key, value in wanted.items():
        assert got[key].dtype == value.dtype, key
        np.testing.assert_allclose(got[key], value, rtol=2e-5, atol=1e-6, err_msg=key)


# ---- beside differences ----------------------------------------------------------------------------------

X = np.array([[0.5, -0.25, 1.0], [1.5, 0.75, -0.5]])

DIFFERENCES: dict[str, Callable[[Any], Any]] = {}


def function(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Adds a function of a [2, 3] tensor of doubles."""
    DIFFERENCES[build.__name__] = build
    return build


def _loop(n: int, body: Callable[[Any, Any], Any], x: Any, **kwargs: Any) -> Any:
    return tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, body(i, a)), [0, x], **kwargs)[1]


@function
def branch(x: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * x * tf.sin(x), lambda: x)


@function
def several_branches(x: Any) -> Any:
    s = tf.reduce_sum(x)
    return tf.case([(s > 10.0, lambda: x), (s > 1.0, lambda: x * s)], default=lambda: x * x)


@function
def loop(x: Any) -> Any:
    return _loop(3, lambda i, a: tf.tanh(a * x + 0.5), x)


@function
def loop_that_does_not_run(x: Any) -> Any:
    return _loop(0, lambda i, a: a * x, x * x)


@function
def one_iteration_at_a_time(x: Any) -> Any:
    return _loop(3, lambda i, a: a * x + tf.exp(-a), x, parallel_iterations=1)


@function
def loop_in_loop(x: Any) -> Any:
    return _loop(3, lambda i, a: _loop(2, lambda j, b: tf.sin(b) * x + tf.cast(i + j, tf.float64), a), x)


@function
def branch_in_loop(x: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        return tf.cond(tf.equal(i, 1), lambda: a * x, lambda: a + tf.reduce_mean(a * a))

    return _loop(3, body, x)


@function
def loop_in_branch(x: Any) -> Any:
    return tf.cond(x[0, 0] > 0.0, lambda: _loop(2, lambda i, a: a * x, x), lambda: x)


@function
def growing_from_a_known_gradient(x: Any) -> Any:
    grown = tf.while_loop(
        lambda i, m: i < 2,
        lambda i, m: (i + 1, tf.concat([m, m[:1] * m[:1]], 0)),
        [tf.constant(0), x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 3])],
    )[1]
    grown.set_shape([4, 3])
    return grown * tf.constant(np.arange(12.0).reshape(4, 3))


@function
def slices_that_become_dense(x: Any) -> Any:
    return tf.gather(_loop(2, lambda i, a: a * x[::-1], x), [1, 1])


@function
def slices_of_an_invariant(x: Any) -> Any:
    return _loop(3, lambda i, a: a * tf.gather(x, [1, 0]) + tf.gather(x, [i % 2]), x)


@function
def replaced_variable_of_unknown_shape(x: Any) -> Any:
    x = tf.placeholder_with_default(x, [None, 3])
    _, a, b = tf.while_loop(lambda i, *_: i < 3, lambda i, a, b: (i + 1, a * x, a), [0, x, x * x])
    return a + b


@function
def slices_of_a_replaced_variable(x: Any) -> Any:
    _, a, b = tf.while_loop(lambda i, *_: i < 3, lambda i, a, b: (i + 1, a * x, a), [0, x, x * x])
    return tf.gather(b, [1, 1, 0]) + a[:1]


@function
def arrays_of_rows(x: Any) -> Any:
    return tf.scan(lambda a, row: a * 0.5 + row * row, x) * tf.map_fn(tf.tanh, x)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_differences(name: str) -> None:
    with tf.Graph().as_default(), tf.Session():
        x = tf.placeholder(tf.float64, X.shape)
        y = DIFFERENCES[name](x)
        shape = y.eval({x: X}).shape
        assert tf.test.compute_gradient_error(x, X.shape, y, shape, x_init_value=X, delta=1e-4) < 1e-6


# ---- loops of slices that don't run ----------------------------------------------------------------------


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_slices_of_a_variable_have_its_shape(n: int, resource: bool) -> None:
    """TensorFlow's dense shape is wrong where the loop doesn't run, and of a resource in a nested loop."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=X, use_resource=resource)
        rows = tf.placeholder(tf.int32, [None])

        def body(i: Any, a: Any) -> Any:
            return _loop(2, lambda j, b: b + tf.reduce_sum(tf.nn.embedding_lookup(v, rows)), a)

        (g,) = tf.gradients(_loop(n, body, tf.constant(0.0, tf.float64)), v)
        session.run(v.initializer)
        dense = session.run(tf.convert_to_tensor(g), {rows: [1, 1]})
    np.testing.assert_array_equal(dense, [[0.0] * 3, [4.0 * n] * 3])


# ---- errors ----------------------------------------------------------------------------------------------


def test_second_order_through_a_loop_is_an_error() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        (dx,) = tf.gradients(_loop(3, lambda i, a: a * x, x), x)
        with pytest.raises(TypeError, match="Second-order gradient for while loops not supported"):
            tf.gradients(dx, x)


def test_a_body_has_no_gradient_by_the_start_of_its_loop() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [], name="start")
        with pytest.raises(ValueError, match="gradient inside while loop with respect to op 'start'"):
            _loop(3, lambda i, a: tf.gradients(a * a, x)[0], x)


def test_gradients_under_another_name_can_not_go_through_arrays() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3])
        y = tf.TensorArray(tf.float32, 3).unstack(x).read(0)
        with pytest.raises(ValueError, match="custom name that does not start"):
            tf.gradients(y, x, name="mine")
