"""What a second run of the same call finds, and what must not be taken for the same call."""

from __future__ import annotations

import collections
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import thalweg as tf


class P(NamedTuple):
    x: Any
    y: Any


class Q(NamedTuple):
    u: Any
    v: Any


@pytest.fixture
def sess() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as sess:
        yield sess


def test_structures_of_the_same_parts_are_told_apart(sess: tf.Session) -> None:
    a, b = tf.constant(1), tf.constant(2)
    structures: list[Any] = [
        (a, b), [a, b], P(a, b), Q(a, b), {"x": a, "y": b}, {"y": a, "x": b},
        collections.OrderedDict(x=a, y=b), [(a, b)], [P(a, b)], [Q(a, b)], ((a, b),), [[a], b], [a, [b]],
    ]  # fmt: skip
    first = [sess.run(s) for s in structures]
    assert first[:4] == [(1, 2), [1, 2], P(1, 2), Q(1, 2)]
    for _ in range(2):
        for wanted, got in zip(first, [sess.run(s) for s in structures], strict=True):
            assert got == wanted and type(got) is type(wanted)
            inner = next(iter(wanted))
            assert type(inner) is type(next(iter(got)))
    assert len(sess._calls) == len(structures)


def test_a_dictionary_is_looked_up_too(sess: tf.Session) -> None:
    a = tf.constant(1)
    for _ in range(3):
        assert sess.run({"loss": a, "more": [a, a.op]}) == {"loss": 1, "more": [1, None]}
    assert len(sess._calls) == 1


def test_composite_feeds_run_again(sess: tf.Session) -> None:
    sparse = tf.sparse_placeholder(tf.float32)
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    total = tf.reduce_sum(sparse.values) + a - b
    for k in (1.0, 2.0, 3.0):
        value = tf.SparseTensorValue([[0, 1]], [10.0 * k], [2, 2])
        assert sess.run(total, {sparse: value, (a, b): (k, 1.0)}) == 10.0 * k + k - 1.0
        assert sess.run(total, {sparse: value, a: k, b: 1.0}) == 10.0 * k + k - 1.0


def test_the_last_of_two_values_for_one_tensor_counts(sess: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    y = x * 2.0
    for _ in range(3):
        assert sess.run(y, {x: 1.0, "x:0": 2.0}) == 4.0


def test_the_order_of_feeds_does_not_matter(sess: tf.Session) -> None:
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    for _ in range(2):
        assert sess.run(a - b, {a: 3.0, b: 1.0}) == 2.0
        assert sess.run(a - b, {b: 1.0, a: 3.0}) == 2.0


def test_a_callable_takes_single_tensors(sess: tf.Session) -> None:
    sparse, x = tf.sparse_placeholder(tf.float32), tf.placeholder(tf.float32, [])
    with pytest.raises(ValueError, match="three parts"):
        sess.make_callable(x, [sparse])
    with pytest.raises(ValueError, match="twice"):
        sess.make_callable(x, [x, x])


def test_a_graph_that_is_changed_while_it_is_planned(sess: tf.Session) -> None:
    """The plan is of one of the two graphs; what is kept must be of the new one."""
    v = tf.Variable(0)
    bump = tf.assign_add(v, 1)
    x = tf.identity(tf.constant(1.0), name="x")
    sess.run(v.initializer)
    prepare = sess._master.prepare

    def prepare_and_change(*args: Any) -> Any:
        program = prepare(*args)
        x.op._add_control_input(bump.op)
        return program

    sess._master.prepare = prepare_and_change
    sess.run(x)
    sess._master.prepare = prepare
    before = sess.run(v)
    sess.run(x)
    assert sess.run(v) == before + 1


def test_an_input_from_a_node_that_was_made_later(sess: tf.Session) -> None:
    a = tf.placeholder(tf.float32, [])
    b = tf.negative(a)
    both = tf.add(a, b)
    c = a * 5.0
    b.op._update_input(0, c)
    both.op._update_input(0, c)
    assert sess.run([b, both], {a: 2.0}) == [-10.0, 0.0]


def test_threads_with_new_signatures(sess: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None])
    outputs = [tf.reduce_sum(x * float(k)) for k in range(8)]
    results: list[Any] = [None] * len(outputs)
    start = threading.Barrier(len(outputs))

    def work(k: int) -> None:
        start.wait(10)
        results[k] = [sess.run(outputs[(k + i) % 8], {x: np.ones(4)}) for i in range(8)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert results == [[4.0 * ((k + i) % 8) for i in range(8)] for k in range(8)]
