"""What may be fed, and what a feed of a variable or a placeholder means for what runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import thalweg as tf


@pytest.fixture(autouse=True)
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_a_tuple_of_tensors_takes_a_tuple_of_values(session: Any) -> None:
    a, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    assert session.run(a + b, {(a, b): (1.0, 2.0)}) == 3.0
    assert session.run(a + b, {((a,), b): ((1.0,), 2.0)}) == 3.0
    np.testing.assert_array_equal(session.run(a + b, {(a, b): (np.ones(2), 2.0)}), [3.0, 3.0])
    with pytest.raises(ValueError, match="takes 2 values"):
        session.run(a + b, {(a, b): (1.0,)})
    with pytest.raises(ValueError, match="takes 2 values"):
        session.run(a + b, {(a, b): 3.0})


def test_indexed_slices_can_be_fed(session: Any) -> None:
    values = tf.placeholder(tf.float32)
    with_shape = tf.IndexedSlices(values, tf.constant([0]), tf.constant([3]))
    got = session.run(with_shape, {with_shape: ([1.0], [2], [4])})
    assert [g.tolist() for g in got] == [[1.0], [2], [4]]
    assert [g.tolist() for g in session.run(with_shape, {with_shape: got})] == [[1.0], [2], [4]]
    without = tf.IndexedSlices(values, tf.constant([0]))
    got = session.run(without, {without: ([1.0], [2])})
    assert got.dense_shape is None
    for value in (([1.0], [2]), got):  # what was fetched has three parts
        got = session.run(without, {without: value})
        assert got.values.tolist() == [1.0] and got.indices.tolist() == [2] and got.dense_shape is None


def test_feeds_that_are_no_dictionary(session: Any) -> None:
    x = tf.placeholder(tf.float32)
    with pytest.raises(TypeError, match="must be a dictionary"):
        session.run(x, [x, [1.0]])


def test_the_operation_of_a_fed_placeholder_may_be_fetched(session: Any) -> None:
    x = tf.placeholder(tf.float32, name="x")
    assert session.run(x.op, {x: 1.0}) is None
    assert session.run([x.op, x], {x: 1.0}) == [None, 1.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="'x'"):
        session.run(x.op)


def test_a_fed_variable_cannot_be_updated(session: Any) -> None:
    v = tf.Variable(1.0, name="v", use_resource=False)
    session.run(v.initializer)
    step = tf.train.GradientDescentOptimizer(1.0).minimize(v * v)
    assign = tf.assign_add(v, 1.0, name="add")
    for fetch in (assign, step, v.initializer, [assign, v]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="'v:0', for which a value is fed"):
            session.run(fetch, {v: 3.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match="add"):
        session.run(tf.assign_add(assign, 1.0), {assign: 3.0})
    assert session.run(v * 2.0, {v: 3.0}) == 6.0
    assert session.run(v) == 1.0


def test_a_default_must_fit_the_declared_shape() -> None:
    with pytest.raises(ValueError, match="2 and 3"):
        tf.placeholder_with_default([1.0, 2.0], [3])
    assert tf.placeholder_with_default([1.0, 2.0], [None]).shape.as_list() == [None]
