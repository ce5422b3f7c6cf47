"""Queues as state machines, and steps over them: order, partial work undone, what a time-out says."""

import threading
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.base import dtypes
from thalweg.library.data_flow import Barrier
from thalweg.library.staging import StagingArea
from thalweg.runtime.queue_stores import FifoStore
from thalweg.runtime.queues import Queue

SHORT = tf.RunOptions(timeout_in_ms=150)


class Op:
    """What a wait's error names."""

    name = "op"
    type = "Op"
    origin = ()


OP = Op()


def queue(capacity: int = 3) -> Queue:
    return Queue("FIFOQueue", "q", FifoStore(), [dtypes.int32], [()], capacity)


def value(i: int) -> list[np.ndarray]:
    return [np.array(i, np.int32)]


def test_waits_end_in_order_of_arrival() -> None:
    q = queue()
    first, second, third = q.dequeue_many(OP, 2), q.dequeue(OP), q.dequeue(OP)
    q.enqueue(OP, value(1))
    assert not first.done() and not second.done()
    q.enqueue_many(OP, [np.arange(2, 5, dtype=np.int32)])
    assert [w.done() for w in (first, second, third)] == [True] * 3
    assert first.result()[0].tolist() == [1, 2]
    assert [int(w.result()[0]) for w in (second, third)] == [3, 4]


def test_a_cancelled_dequeue_gives_back_what_it_had() -> None:
    q = queue()
    waiting = q.dequeue_many(OP, 3)
    later = q.dequeue(OP)
    q.enqueue_many(OP, [np.arange(2, dtype=np.int32)])
    assert q.size() == 0
    assert waiting.cancel() and not waiting.cancel()
    assert int(later.result()[0]) == 0
    assert q.size() == 1
    with pytest.raises(tf.errors.CancelledError):
        waiting.result()


def test_a_finished_dequeue_that_nobody_looked_at_goes_back_when_cancelled() -> None:
    q = queue()
    waiting = q.dequeue(OP)
    q.enqueue(OP, value(7))
    assert waiting.done() and not waiting.cancel()
    assert q.size() == 1
    taken = q.dequeue(OP)
    taken.result()
    assert not taken.cancel()
    assert q.size() == 0


def test_a_finished_wait_keeps_its_result_when_withdrawn() -> None:
    q = queue()
    waiting = q.dequeue(OP)
    q.enqueue(OP, value(7))
    assert not waiting.withdraw()
    assert int(waiting.result()[0]) == 7
    assert q.dequeue(OP).withdraw()


def test_a_cancelled_enqueue_adds_no_more() -> None:
    q = queue(capacity=1)
    q.enqueue(OP, value(1))
    waiting, later = q.enqueue(OP, value(2)), q.enqueue(OP, value(3))
    assert waiting.describe() == "queue 'q' to have room for 1 more element"
    assert waiting.cancel()
    q.dequeue(OP)
    assert later.done()
    assert int(q.dequeue(OP).result()[0]) == 3


def test_callbacks_come_once() -> None:
    q = queue()
    waiting = q.dequeue(OP)
    told: list[Any] = []
    waiting.add_done_callback(told.append)
    q.enqueue(OP, value(1))
    waiting.add_done_callback(told.append)
    assert told == [waiting, waiting]


def _fails_with(session: Any, fetches: Any, text: str) -> None:
    with pytest.raises(tf.errors.DeadlineExceededError) as error:
        session.run(fetches, options=SHORT)
    assert text in error.value.message


def test_a_time_out_says_what_waited_for_what() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        q = tf.FIFOQueue(2, tf.int32, shapes=[()], name="q")
        other = tf.RandomShuffleQueue(9, 2, tf.int32, shapes=[()], name="shuffled")
        a = tf.ConditionalAccumulator(tf.float32, shape=(), name="acc")
        area = StagingArea([tf.int32], capacity=1, shared_name="area")
        barrier = Barrier([tf.int32], shapes=[()])
        deq = q.dequeue_many(3, name="deq")
        text = "Timed out waiting for queue 'q' to have 3 more elements (QueueDequeueManyV2 'deq')"
        _fails_with(session, deq, text)
        both = [deq, other.dequeue(name="one")]
        _fails_with(session, both, "queue 'shuffled' to have 3 more elements (QueueDequeueV2 'one')")
        session.run(q.enqueue_many([[1, 2]]))
        _fails_with(session, deq, "to have 1 more element (")
        assert session.run(q.size()) == 2
        _fails_with(session, q.enqueue(1), "queue 'q' to have room for 1 more element")
        _fails_with(session, a.take_grad(2), "accumulator 'acc' to have 2 more gradients")
        _fails_with(session, area.get(), "staging area 'area' to have 1 more element")
        _fails_with(session, barrier.take_many(1), "queue 'barrier' to have 1 more element")
        session.run(area.put([tf.constant(1)]))
        _fails_with(session, area.put([tf.constant(1)]), "staging area 'area' to have room")
        assert session.run(area.size()) == 1


def test_other_nodes_run_while_one_waits() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        first, second = tf.FIFOQueue(1, tf.float32, shapes=[()]), tf.FIFOQueue(1, tf.float32, shapes=[()])
        seen = threading.Event()
        noticed = tf.py_func(lambda x: seen.set() or x, [first.dequeue()], tf.float32)
        step = [second.dequeue() * 2.0, noticed]
        got: list[Any] = []
        thread = threading.Thread(target=lambda: got.append(session.run(step)), daemon=True)
        thread.start()
        session.run(first.enqueue(1.0))
        assert seen.wait(10)  # second.dequeue() waits all the while
        session.run(second.enqueue(3.0))
        thread.join(10)
        assert got == [[6.0, 1.0]]


def test_closing_the_session_ends_waits() -> None:
    graph = tf.Graph()
    with graph.as_default():
        q = tf.FIFOQueue(1, tf.float32, shapes=[()])
        take = q.dequeue()
    session = tf.Session(graph=graph)
    errors: list[Any] = []

    def work() -> None:
        try:
            session.run(take)
        except tf.errors.CancelledError as e:
            errors.append(e)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while not session._master._steps:
        pass
    session.close()
    thread.join(10)
    assert len(errors) == 1


def test_what_is_fed_may_change_after_the_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        q = tf.FIFOQueue(4, tf.float32, shapes=[(2,)])
        x = tf.placeholder(tf.float32, [2])
        many = tf.placeholder(tf.float32, [None, 2])
        fed = np.ones(2, np.float32)
        session.run(q.enqueue(x), {x: fed})
        batch = np.full((1, 2), 2, np.float32)
        session.run(q.enqueue_many(many), {many: batch})
        fed[:] = batch[:] = 9
        got = session.run(q.dequeue())
        got[:] = 5
        assert session.run(q.dequeue()).tolist() == [2, 2]


def test_scalars_are_refused_where_a_batch_must_be() -> None:
    """TensorFlow aborts here."""
    with tf.Graph().as_default(), tf.Session() as session:
        q = tf.FIFOQueue(4, tf.float32)
        x = tf.placeholder(tf.float32)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(q.enqueue_many(x), {x: 1.0})


def test_a_priority_queue_gives_the_rest_of_a_closed_queue() -> None:
    """TensorFlow loses the elements, and says so wrongly."""
    with tf.Graph().as_default(), tf.Session() as session:
        q = tf.PriorityQueue(9, tf.int32, shapes=[()])
        session.run(q.enqueue_many([[2, 1, 2], [1, 2, 3]]))
        session.run(q.close())
        priorities, values = session.run(q.dequeue_up_to(9))
        assert priorities.tolist() == [1, 2, 2]
        assert values.tolist() == [2, 1, 3]


def test_a_mutex_is_held_until_it_is_consumed() -> None:
    raw = tf.raw_ops
    with tf.Graph().as_default(), tf.Session() as session:
        mutex = raw.MutexV2(shared_name="m")
        lock = raw.MutexLock(mutex=mutex)
        v = tf.Variable(0)
        with tf.control_dependencies([lock]):
            changed = v.assign_add(1)
        with tf.control_dependencies([changed]):
            consume = raw.ConsumeMutexLock(mutex_lock=lock)
        session.run(v.initializer)
        threads = [
            threading.Thread(target=lambda: [session.run(consume) for _ in range(20)]) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert session.run(v) == 60
        session.run(changed)  # the lock goes with the step
        session.run(consume, options=tf.RunOptions(timeout_in_ms=5000))


def test_statistics_of_a_step_that_waits() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        q = tf.FIFOQueue(4, tf.float32, shapes=[()])
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run([q.dequeue(name="deq"), q.enqueue(1.0, name="enq")], options=options, run_metadata=metadata)
        names = {n.node_name for n in metadata.step_stats.dev_stats[0].node_stats}
        assert {"deq", "enq"} <= names


def test_a_queue_out_of_a_list() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        queues = [tf.FIFOQueue(3, tf.int32, shapes=[()]) for _ in range(2)]
        which = tf.placeholder(tf.int32, [])
        q = tf.QueueBase.from_list(which, queues)
        session.run(queues[1].enqueue(5))
        assert session.run(q.size(), {which: 0}) == 0
        assert session.run(q.dequeue(), {which: 1}) == 5


def test_queues_in_branches_and_loops() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        q = tf.FIFOQueue(9, tf.int32, shapes=[()])
        yes = tf.placeholder(tf.bool, [])
        put = tf.cond(yes, lambda: q.enqueue(3), tf.no_op)
        for choice in (True, False, True, True):
            session.run(put, {yes: choice})
        assert session.run(q.size()) == 3
        total = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + q.dequeue()), [0, 0])[1]
        assert session.run(total) == 9
        _fails_with(session, total, "to have 1 more element (QueueDequeueV2 'while/")


@pytest.mark.parametrize("index", [2, -1])
def test_a_pick_out_of_range_says_so(index: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3))
        i = tf.placeholder(tf.int32, [])
        row = tf.gather(v, i)
        session.run(v.initializer)
        assert session.run(row, {i: 1}).tolist() == [3, 4, 5]
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(row, {i: index})
        session.run(v.assign(v * 2))
        assert session.run(row, {i: 1}).tolist() == [6, 8, 10]
