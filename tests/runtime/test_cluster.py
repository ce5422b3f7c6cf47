"""Clusters in sessions: whose memory is whose, who waits for whom, and what is left when all is done."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.runtime import cluster

N = 100_000


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def test_a_graph_goes_with_its_last_session() -> None:
    """Executables are kept for the process; they must not keep the graphs that they were made for."""

    def use() -> list[weakref.ref[Any]]:
        with tf.Graph().as_default() as graph, tf.Session() as sess:
            x = tf.placeholder(tf.float32, [None])
            v = tf.Variable(tf.random_normal([10]))
            y = tf.reduce_sum(tf.tanh(x) * v)
            bump = tf.assign_add(v, v * 2.0)
            sess.run(tf.global_variables_initializer())
            for n in (10, 10, 10, 10, 1):
                sess.run([y, bump], {x: np.ones(n)})
            return [weakref.ref(graph), weakref.ref(sess)]

    left = use()
    gc.collect()
    assert [ref() for ref in left] == [None, None]


def test_a_closed_session_keeps_no_values(graph: tf.Graph) -> None:
    v = tf.Variable(np.zeros(N, np.float32))
    double = tf.assign(v, v * 2.0)
    sess = tf.Session()
    sess.run(v.initializer)
    sess.run(double.op)
    variable = sess._master.worker.resources.find(("variable", "", v.op.name))
    left = [weakref.ref(variable.value)]
    del variable
    sess.close()
    gc.collect()
    assert left[0]() is None


def test_a_fetched_assignment_is_not_the_variable(graph: tf.Graph) -> None:
    """The assignment runs outside of clusters: it comes after a condition that may fail."""
    v = tf.Variable(np.zeros(N, np.float32))
    x, i = tf.placeholder(tf.float32, [N]), tf.placeholder(tf.int32, [N])
    assigned = tf.assign(v, tf.gather(x * 2.0, i))
    feed = {x: np.ones(N), i: np.zeros(N, np.int32)}
    with tf.Session() as sess:
        sess.run(v.initializer)
        out = sess.run(assigned, feed)
        out[:] = 7.0
        assert sess.run(v)[0] == 2.0
        bump = tf.assign_add(v, tf.ones([N]))
        kept = sess.run(assigned, feed)
        sess.run(bump.op)
        assert kept[0] == 2.0 and sess.run(v)[0] == 3.0


def test_large_constants_are_on_the_device_once(graph: tf.Graph) -> None:
    c = tf.constant(np.arange(N, dtype=np.float32))
    x = tf.placeholder(tf.float32, [])
    one, two = c * x, c + x
    with tf.Session() as sess:
        for _ in range(2):
            assert sess.run(one, {x: 2.0})[1] == 2.0
            assert sess.run(two, {x: 2.0})[1] == 3.0
        out = sess.run(c)
        out[:] = 0.0
        assert sess.run([c, one], {x: 3.0})[1][1] == 3.0
        assert len(sess._master.worker._constants) == 1


def test_what_a_variable_was_declared_as_counts(graph: tf.Graph) -> None:
    """Two assignments that compute the same, to variables of which one takes the shape, and one doesn't."""
    x = tf.placeholder(tf.float32, [None])
    for shape, fits in ((None, True), ([2], False)):
        ref = tf.raw_ops.VariableV2(shape=shape, dtype=tf.float32)
        assign = tf.raw_ops.Assign(ref=ref, value=tf.tanh(x) * 2.0)
        with tf.Session() as sess:
            if fits:
                assert sess.run(assign, {x: np.ones(3)}).shape == (3,)
            else:
                with pytest.raises(tf.errors.InvalidArgumentError, match="shapes of both tensors to match"):
                    sess.run(assign, {x: np.ones(3)})


def test_variables_change_shape_between_runs(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [None])
    ref = tf.raw_ops.VariableV2(shape=None, dtype=tf.float32)
    assign = tf.raw_ops.Assign(ref=ref, value=tf.tanh(x), validate_shape=False)
    total = tf.reduce_sum(ref * 2.0)
    with tf.Session() as sess:
        for n in (3, 3, 3, 3, 2, 5, 3):
            sess.run(assign.op, {x: np.full(n, 100.0)})
            assert sess.run(total) == 2.0 * n


def test_others_run_while_an_executable_is_compiled(graph: tf.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling takes seconds: no variable is locked meanwhile."""
    v = tf.Variable(1.0)
    slow, quick = tf.assign_add(v, tf.exp(v) * 0.0 + 1.0), v * 3.0
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(quick)
        entered, leave = threading.Event(), threading.Event()
        get = cluster.executables.store.get

        def wait_and_get(*args: Any) -> Any:
            entered.set()
            assert leave.wait(30)
            return get(*args)

        monkeypatch.setattr(cluster.executables.store, "get", wait_and_get)
        thread = threading.Thread(target=lambda: sess.run(slow.op), daemon=True)
        thread.start()
        assert entered.wait(10)
        assert sess.run(quick, options=tf.RunOptions(timeout_in_ms=5000)) == 3.0
        leave.set()
        thread.join(30)
        assert sess.run(quick) == 6.0


def test_the_node_that_reads_is_named(graph: tf.Graph) -> None:
    v = tf.Variable(1.0, name="w")
    y = tf.exp(tf.placeholder_with_default(1.0, [])) + v
    with tf.Session() as sess, pytest.raises(tf.errors.FailedPreconditionError, match="value w") as caught:
        sess.run(y)
    assert caught.value.op.name == "w/read"


def test_state_of_nodes_survives_new_plans(graph: tf.Graph) -> None:
    """Random numbers go on where they were, in whatever program and form the node runs."""
    tf.set_random_seed(3)
    draw = tf.random_uniform([], seed=4)
    other = draw * 1.0
    with tf.Session() as sess:
        mixed = [float(sess.run(t)) for t in (draw, other, draw, [draw, other][1])]
    with tf.Session() as sess:
        plain = [float(sess.run(draw)) for _ in range(4)]
    assert mixed == plain
    assert len(set(plain)) == 4


def test_memory_that_is_not_there(graph: tf.Graph) -> None:
    """XLA consumes the buffers it may write into before it finds that the rest has no room."""
    v, w = tf.Variable([[1.0]], name="v"), tf.Variable([[2.0]], name="w")
    x = tf.placeholder(tf.float32, [1, 1])
    huge = tf.tile(x, [1 << 24, 1 << 24]) * tf.exp(x) + w
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.ResourceExhaustedError, match=r"1125899906842624 bytes.*values of v are lost"):
            sess.run([huge, tf.assign_add(v, v * 2.0).op], {x: [[1.0]]})
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
            sess.run(v)
        assert sess.run(w) == 2.0
        sess.run(v.initializer)
        assert sess.run(v) == 1.0
