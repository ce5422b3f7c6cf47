"""Session: fetches, feeds, extension, threads, timeouts, errors: what users see."""

from __future__ import annotations

import collections
import logging
import threading
import time
from typing import Any

import numpy as np
import pytest

import thalweg as tf


@pytest.fixture(autouse=True)
def fresh_graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def test_partial_execution() -> None:
    a = tf.placeholder(tf.float32, [], name="a")
    unused = tf.placeholder(tf.float32, [], name="unused")
    b = a * 2.0
    c = b + unused
    with tf.Session() as sess:
        assert sess.run(b, {a: 3.0}) == 6.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="'unused' with dtype float32"):
            sess.run(c, {a: 3.0})


def test_results_are_numpy_and_belong_to_the_caller() -> None:
    x = tf.placeholder(tf.float32, [None])
    v = tf.Variable([1.0, 2.0])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        fed = np.array([1.0, 2.0], np.float32)
        for fetch in (x, tf.identity(x), x * 1.0, v, tf.constant([1.0, 2.0]), v.read_value()):
            out = sess.run(fetch, {x: fed})
            assert type(out) is np.ndarray and out.dtype == np.float32
            out += 100.0
            np.testing.assert_array_equal(sess.run(fetch, {x: fed}), [1.0, 2.0])
        assert type(sess.run(tf.reduce_sum(x), {x: fed})) is np.float32
        assert sess.run(tf.constant("text")) == b"text"


def test_a_fed_array_may_be_changed_after_the_run() -> None:
    x = tf.placeholder(tf.float32, [100000])
    v = tf.Variable(np.zeros(100000, np.float32))
    with tf.Session() as sess:
        fed = np.ones(100000, np.float32)
        sess.run(tf.assign(v, x), {x: fed})
        fed[:] = 7.0
        assert sess.run(v)[0] == 1.0


def test_fetch_structures() -> None:
    Point = collections.namedtuple("Point", "x y")
    a, b = tf.constant(1), tf.constant(2)
    with tf.Session() as sess:
        assert sess.run((a, [b, {"k": a}])) == (1, [2, {"k": 1}])
        assert sess.run(Point(a, b)) == Point(1, 2)
        assert sess.run(collections.OrderedDict([("z", a), ("y", b)])) == collections.OrderedDict([("z", 1), ("y", 2)])
        assert sess.run([]) == []
        assert sess.run(a.op) is None
        assert sess.run([a, a, "Const:0", b"Const_1:0"]) == [1, 1, 1, 2]
        sparse = tf.SparseTensor([[0, 1]], [5.0], [2, 2])
        value = sess.run(sparse)
        assert value.dense_shape.tolist() == [2, 2] and value.values.tolist() == [5.0]


@pytest.mark.parametrize(
    ("fetch", "error", "text"),
    [
        (None, TypeError, "Cannot be None"),
        (3.5, TypeError, "float"),
        ("nothing:0", ValueError, "nothing"),
        ("a:5", ValueError, "1 outputs"),
        ("a:x", ValueError, "valid"),
    ],
)
def test_bad_fetches(fetch: Any, error: type[Exception], text: str) -> None:
    tf.constant(1.0, name="a")
    with tf.Session() as sess, pytest.raises(error, match=text):
        sess.run(fetch)


def test_fetch_from_another_graph() -> None:
    other = tf.Graph()
    with other.as_default():
        foreign = tf.constant(1.0)
    tf.constant(2.0)
    with tf.Session() as sess, pytest.raises(ValueError, match="not an element of this graph"):
        sess.run(foreign)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (np.ones((3, 2)), ValueError, r"\(3, 2\)"),
        ("words", (TypeError, ValueError), "float32"),
        ([[1.0, 2.0], [3.0]], (TypeError, ValueError), "float32"),
        (None, (TypeError, ValueError), "x:0"),
    ],
)
def test_bad_feeds(value: Any, error: Any, text: str) -> None:
    x = tf.placeholder(tf.float32, [2, None], name="x")
    with tf.Session() as sess, pytest.raises(error, match=text):
        sess.run(x * 2.0, {x: value})


def test_feeding_a_tensor_is_an_error() -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.Session() as sess, pytest.raises(TypeError, match=r"cannot be a tf\.Tensor"):
        sess.run(x * 2.0, {x: tf.constant(1.0)})


def test_int_feed_out_of_range() -> None:
    x = tf.placeholder(tf.int8, [], name="small")
    with tf.Session() as sess, pytest.raises((TypeError, ValueError, OverflowError), match="small"):
        sess.run(x + 1, {x: 1000})


def test_feed_in_the_middle_by_name() -> None:
    a = tf.constant(2.0, name="a")
    b = tf.multiply(a, 3.0, name="b")
    with tf.Session() as sess:
        assert sess.run(b + 1.0, {"b:0": 10.0}) == 11.0
        assert sess.run(b, {a: 10.0}) == 30.0
        assert sess.run([a, b], {b: 5.0}) == [2.0, 5.0]


def test_extension_between_runs() -> None:
    a = tf.placeholder(tf.float32, [])
    b = a + 1.0
    with tf.Session() as sess:
        assert sess.run(b, {a: 1.0}) == 2.0
        c = b * 10.0
        assert sess.run(c, {a: 1.0}) == 20.0
        assert sess.run([b, c], {a: 2.0}) == [3.0, 30.0]


def test_growing_graph_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    x = tf.constant(1.0)
    with tf.Session() as sess, caplog.at_level(logging.WARNING, "thalweg"):
        for _ in range(80):
            sess.run(x + 1.0)
    told = [r for r in caplog.records if "graph grew" in r.getMessage()]
    assert len(told) == 1
    assert "test_session.py" in told[0].getMessage()


def test_an_added_control_input_makes_a_new_plan() -> None:
    v = tf.Variable(0)
    bump = tf.assign_add(v, 1)
    x = tf.constant(1.0) * 2.0
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(x)
        assert sess.run(v) == 0
        x.op._add_control_input(bump.op)
        sess.run(x)
        assert sess.run(v) == 1


def test_make_callable() -> None:
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    with tf.Session() as sess:
        call = sess.make_callable([a + b, {"p": a * b}], [b, a])
        assert call(2.0, 5.0) == [7.0, {"p": 10.0}]
        with pytest.raises(TypeError, match="takes 2 feeds"):
            call(1.0)
        with_options = sess.make_callable(a * 2.0, [a], accept_options=True)
        metadata = tf.RunMetadata()
        assert with_options(2.0, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata) == 4.0
        assert metadata.step_stats.dev_stats


def test_default_sessions() -> None:
    v = tf.Variable(3.0)
    with pytest.raises(ValueError, match="No default session"):
        v.eval()
    with tf.Session() as sess:
        v.initializer.run()
        assert v.eval() == 3.0
        assert tf.get_default_session() is sess
        (v * 2.0).op.run()
    assert tf.get_default_session() is None
    inter = tf.InteractiveSession()
    tf.global_variables_initializer().run()
    assert (v + 1.0).eval() == 4.0
    inter.close()
    with pytest.raises(RuntimeError, match="closed"):
        inter.run(v)


def test_partition_graphs_show_clusters() -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.tanh(x) * 2.0
    with tf.Session() as sess:
        metadata = tf.RunMetadata()
        sess.run(y, {x: 1.0}, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
    nodes = {n.op: n for n in metadata.partition_graphs[0].node}
    assert {"_Arg", "Tanh", "Mul", "_Retval"} <= set(nodes)
    assert nodes["Tanh"].attr["_cluster"].s == nodes["Mul"].attr["_cluster"].s
    assert nodes["Tanh"].device == "/job:localhost/replica:0/task:0/device:CPU:0"


def test_uninitialised_variable_is_named() -> None:
    v = tf.Variable(1.0, name="weights")
    with tf.Session() as sess:
        for fetch in (v, v * 2.0, tf.assign_add(v, 1.0)):
            with pytest.raises(tf.errors.FailedPreconditionError, match="weights"):
                sess.run(fetch)


@pytest.mark.parametrize("use_resource", [False, True])
def test_no_update_is_lost(use_resource: bool) -> None:
    v = tf.Variable(0.0, use_resource=use_resource)
    bump = tf.assign_add(v, 1.0)
    read = v * 1.0
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        seen: list[list[float]] = [[], []]
        stop = threading.Event()
        failures: list[BaseException] = []

        def work() -> None:
            try:
                for _ in range(500):
                    sess.run(bump.op if hasattr(bump, "op") else bump)
            except BaseException as e:
                failures.append(e)

        def look(mine: list[float]) -> None:
            while not stop.is_set():
                mine.append(float(sess.run(read)))

        readers = [threading.Thread(target=look, args=(mine,)) for mine in seen]
        writers = [threading.Thread(target=work) for _ in range(8)]
        for t in readers + writers:
            t.start()
        for t in writers:
            t.join()
        stop.set()
        for t in readers:
            t.join()
        assert not failures
        assert sess.run(v) == 4000.0
        assert all(mine == sorted(mine) for mine in seen)


def test_a_read_ordered_before_a_write_shows_the_old_value() -> None:
    v = tf.Variable([1.0, 2.0])
    old = tf.identity(v)
    with tf.control_dependencies([old]):
        new = tf.assign(v, old * 2.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for k in range(4):
            o, n = sess.run([old, new])
            np.testing.assert_array_equal(o, np.array([1.0, 2.0]) * 2**k)
            np.testing.assert_array_equal(n, np.array([1.0, 2.0]) * 2 ** (k + 1))


def test_a_failing_step_changes_nothing() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    i = tf.placeholder(tf.int32, [None])
    picked = tf.gather(v, i)
    update = tf.assign_add(v, tf.ones([3]) * tf.reduce_sum(picked))
    rows = tf.scatter_add(v, i, tf.ones_like(picked))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for op in (update, rows):
            with pytest.raises(tf.errors.InvalidArgumentError, match="7"):
                sess.run(op, {i: [0, 7]})
            np.testing.assert_array_equal(sess.run(v), [1.0, 2.0, 3.0])


def test_division_by_zero() -> None:
    a, b = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
    q = tf.floordiv(a, b, name="quotient")
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="quotient") as caught:
            sess.run(q, {a: [1, 2], b: [1, 0]})
        assert "test_session.py" in str(caught.value)
        assert caught.value.op is q.op
        assert sess.run(q, {a: [7, -7], b: [2, 2]}).tolist() == [3, -4]


def test_nan_where_checked() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.check_numerics(tf.log(x), "log went wrong")
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="log went wrong"):
            sess.run(y, {x: [-1.0]})
        assert sess.run(y, {x: [1.0]}).tolist() == [0.0]


def test_construction_errors_say_what_and_where() -> None:
    a, b = tf.placeholder(tf.float32, [2, 3], name="a"), tf.placeholder(tf.float32, [4, 5], name="b")
    with pytest.raises(ValueError, match=r"3 and 4(.|\n)*'a:0' \[2,3\](.|\n)*'b:0' \[4,5\]"):
        tf.matmul(a, b)
    with pytest.raises(TypeError, match=r"int32.*float32"):
        tf.add(a, tf.constant(1))
    with pytest.raises(ValueError, match="padding"):
        tf.nn.conv2d(tf.zeros([1, 4, 4, 1]), tf.zeros([2, 2, 1, 1]), [1, 1, 1, 1], "SOME")
    with pytest.raises(ValueError, match="not a valid"):
        tf.constant(1.0, name="bad name")


def test_a_stuck_step_ends_with_its_timeout() -> None:
    release = threading.Event()
    stuck = tf.py_func(lambda: (release.wait(30), np.float32(1.0))[1], [], tf.float32, name="stuck")
    with tf.Session() as sess:
        start = time.monotonic()
        with pytest.raises(tf.errors.DeadlineExceededError, match="stuck"):
            sess.run(stuck, options=tf.RunOptions(timeout_in_ms=200))
        assert time.monotonic() - start < 10
        assert sess.run(tf.constant(1.0)) == 1.0
    release.set()


def test_a_stuck_step_ends_with_close() -> None:
    release = threading.Event()
    stuck = tf.py_func(lambda: (release.wait(30), np.float32(1.0))[1], [], tf.float32)
    sess = tf.Session()
    outcome: list[Any] = []

    def work() -> None:
        try:
            sess.run(stuck)
        except tf.errors.CancelledError as e:
            outcome.append(e)

    thread = threading.Thread(target=work)
    thread.start()
    while not sess._master._steps:
        pass
    sess.close()
    thread.join(10)
    release.set()
    assert len(outcome) == 1


def test_closed_and_empty_sessions() -> None:
    with tf.Session(graph=tf.Graph()) as sess, pytest.raises(RuntimeError, match="graph is empty"):
        sess.run("a:0")
    x = tf.constant(1.0)
    sess = tf.Session()
    sess.run(x)
    sess.close()
    with pytest.raises(RuntimeError, match="closed"):
        sess.run(x)


def test_sessions_have_their_own_variables(fresh_graph: tf.Graph) -> None:
    v = tf.Variable(1.0)
    bump = tf.assign_add(v, 1.0)
    init = tf.global_variables_initializer()
    with tf.Session(graph=fresh_graph) as one, tf.Session(graph=fresh_graph) as two:
        one.run(init)
        two.run(init)
        one.run(bump)
        assert (one.run(v), two.run(v)) == (2.0, 1.0)


def test_64_bit_types_stay() -> None:
    x = tf.placeholder(tf.int64, [])
    y = tf.placeholder(tf.float64, [])
    with tf.Session() as sess:
        big, small = sess.run([x + 1, y * 3.0], {x: 2**40, y: 1e-200})
    assert big == 2**40 + 1 and big.dtype == np.int64
    assert small == 3e-200 and small.dtype == np.float64
