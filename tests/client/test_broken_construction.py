"""What building calls return, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import thalweg as tf


@pytest.fixture(autouse=True)
def fresh_graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def test_several_outputs_have_names() -> None:
    assert tf.unique([1, 1, 2]).idx.dtype == tf.int32
    assert tf.nn.top_k([1.0, 2.0]).indices.shape.as_list() == [1]
    assert tf.unique_with_counts([1, 1]).count.dtype == tf.int32
    with tf.Session() as session:
        fetched = session.run(tf.setdiff1d([1, 2], [1]))
    assert fetched.out.tolist() == [2] and fetched.idx.tolist() == [1]


def test_a_python_function_without_results_is_an_operation() -> None:
    called = []
    node = tf.py_func(lambda: called.append(1), [], [])
    assert isinstance(node, tf.Operation)
    with tf.Session() as session:
        assert session.run(node) is None
        with tf.control_dependencies([node]):
            one = tf.constant(1) + 0
        session.run(one)
    assert called == [1, 1]


REFUSED: dict[str, Callable[[], Any]] = {
    "placeholder of a negative size": lambda: tf.placeholder(tf.float32, [-1]),
    "reshape to a matrix": lambda: tf.reshape(tf.ones([2, 2]), [[4]]),
    "reshape to a scalar": lambda: tf.reshape(tf.ones([2, 2]), 4),
    "reshape to a negative size": lambda: tf.reshape(tf.ones([2, 2]), [-2, 2]),
    "concat of nothing": lambda: tf.concat([], 0),
    "concat along a vector": lambda: tf.concat([tf.ones([2]), tf.ones([2])], [0]),
    "bounds of different lengths": lambda: tf.strided_slice(tf.ones([2, 2]), [0], [1, 1]),
    "transposed convolution of wrong channels": lambda: tf.nn.conv2d_transpose(
        tf.ones([1, 8, 8, 3]), tf.ones([3, 3, 2, 4]), [1, 8, 8, 2], [1, 1, 1, 1]
    ),
    "unknown way to treat what isn't connected": lambda: tf.gradients(
        [tf.constant(1.0)], [tf.constant(1.0)], unconnected_gradients="x"
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    with pytest.raises(ValueError):
        REFUSED[what]()


@pytest.mark.parametrize("use_resource", [False, True])
def test_gradient_of_a_variable_by_itself(use_resource: bool) -> None:
    v = tf.Variable(2.0, use_resource=use_resource)
    w = tf.Variable(3.0, use_resource=use_resource)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(tf.gradients(v, v)) == [1.0]
        assert session.run(tf.gradients([v, v * w, w], [v, w])) == [4.0, 3.0]
        session.run(tf.train.GradientDescentOptimizer(0.5).minimize(v))
        assert session.run(v) == 1.5


def test_sampled_values_of_nce_with_a_variable() -> None:
    weights, biases = tf.Variable(tf.ones([10, 4])), tf.Variable(tf.zeros([10]))
    sampled = (tf.constant([1, 2, 3], tf.int64), tf.ones([2, 1]), tf.ones([3]))
    loss = tf.nn.nce_loss(weights, biases, [[1], [2]], tf.ones([2, 4]), 3, 10, sampled_values=sampled)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(loss).shape == (2,)


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_assert_variables_initialized_fails(use_resource: bool, count: int) -> None:
    variables = [tf.Variable([1.0], use_resource=use_resource) for _ in range(count)]
    check = tf.assert_variables_initialized()
    zeros = tf.zeros_like(variables[-1])
    with tf.Session() as session:
        session.run([v.initializer for v in variables[1:]])
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value"):
            session.run(check)
        session.run(variables[0].initializer)
        session.run(check)
        assert session.run(zeros) == [0.0]
