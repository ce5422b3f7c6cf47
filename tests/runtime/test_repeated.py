"""Steps that a thread runs over and over, several at once: the same as one after the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import thalweg as tf


@pytest.fixture
def session() -> Iterator[Any]:
    with tf.Graph().as_default(), tf.Session() as s:
        yield s


def transfer(session: Any, op: Any) -> Any:
    """What the program of an operation does at once, or None."""
    return session._master.prepare([], [], [op]).transfer


def queue(capacity: int, *shapes: Any, dtypes: Any = (tf.int64,)) -> Any:
    return tf.FIFOQueue(capacity, list(dtypes), shapes=list(shapes) or [()])


def fill(session: Any, q: Any, values: Any) -> None:
    session.run(q.enqueue_many([np.array(values, np.int64)]))


def drained(session: Any, q: Any) -> list[Any]:
    got = session.run(q.dequeue_many(session.run(q.size())))
    return got.tolist()


def test_a_call_moves_what_there_is(session: Any) -> None:
    a, b = queue(100), queue(100)
    fill(session, a, range(70))
    move = session._repeated(b.enqueue(a.dequeue()))
    move()
    assert session.run([a.size(), b.size()]) == [6, 64]
    move()
    assert session.run([a.size(), b.size()]) == [0, 70]
    assert drained(session, b) == list(range(70))


def test_rows_are_picked(session: Any) -> None:
    table = tf.Variable(np.arange(40, dtype=np.float32).reshape(10, 4), trainable=False)
    labels = tf.constant(np.arange(10) * 10)
    order = tf.constant(np.arange(10)[::-1].copy())
    session.run(table.initializer)
    a = queue(20)
    b = queue(20, [4], [], [], dtypes=[tf.float32, tf.int64, tf.int64])
    index = a.dequeue()
    op = b.enqueue([tf.gather(table, tf.gather(order, index)), tf.gather(labels, index), index])
    fill(session, a, [3, 0, 9])
    assert transfer(session, op) is not None
    session._repeated(op)()
    rows, ten, same = session.run(b.dequeue_many(3))
    np.testing.assert_array_equal(rows, np.arange(40).reshape(10, 4)[[6, 9, 0]])
    assert ten.tolist() == [30, 0, 90]
    assert same.tolist() == [3, 0, 9]


def test_elements_of_a_shuffled_queue_keep_only_their_own_memory(session: Any) -> None:
    a, b = queue(20, [3]), tf.RandomShuffleQueue(20, 0, [tf.int64], shapes=[[3]], seed=1)
    session.run(a.enqueue_many([np.arange(30).reshape(10, 3)]))
    session._repeated(b.enqueue(a.dequeue()))()
    (items,) = [q._store._items for q in _queues(session) if not q.in_order]
    assert all(array.base is None and i == -1 for (array,), i in items)
    assert sorted(session.run(b.dequeue_many(10))[:, 0].tolist()) == list(range(0, 30, 3))


def _queues(session: Any) -> list[Any]:
    containers = session._master.worker.resources._containers
    return [found[0] for resources in containers.values() for found in resources.values() if isinstance(found, tuple)]


def test_no_more_than_there_is_room_for(session: Any) -> None:
    a, b = queue(100), queue(10)
    fill(session, a, range(30))
    session._repeated(b.enqueue(a.dequeue()))()
    assert session.run([a.size(), b.size()]) == [20, 10]


def test_what_was_held_up_comes_after(session: Any) -> None:
    """An enqueue that waits for room in the first queue goes on as soon as there is some."""
    a, b = queue(10), queue(100)
    many = a.enqueue_many([np.arange(25)])
    thread = threading.Thread(target=session.run, args=(many,), daemon=True)
    thread.start()
    move = session._repeated(b.enqueue(a.dequeue()))
    while session.run(b.size()) < 25:
        move()
    thread.join(10)
    assert not thread.is_alive()
    assert drained(session, b) == list(range(25))


def test_a_closed_target_loses_nothing_but_the_one_that_says_so(session: Any) -> None:
    a, b = queue(10), queue(10)
    fill(session, a, range(5))
    session.run(b.close())
    with pytest.raises(tf.errors.CancelledError, match="is closed"):
        session._repeated(b.enqueue(a.dequeue()))()
    assert drained(session, a) == [1, 2, 3, 4]


def test_the_end_of_the_source(session: Any) -> None:
    a, b = queue(10), queue(10)
    fill(session, a, [1, 2])
    session.run(a.close())
    move = session._repeated(b.enqueue(a.dequeue()))
    move()
    with pytest.raises(tf.errors.OutOfRangeError, match="insufficient elements"):
        move()
    assert drained(session, b) == [1, 2]


def test_an_index_out_of_range_is_its_own_steps_error(session: Any) -> None:
    a, b = queue(10), queue(10)
    op = b.enqueue(tf.gather(tf.constant(np.arange(3)), a.dequeue()))
    fill(session, a, [7, 1, 2])
    move = session._repeated(op)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"7 is not in \[0, 3\)"):
        move()
    move()
    assert drained(session, b) == [1, 2]


def test_a_wrong_shape_is_the_ordinary_error(session: Any) -> None:
    a = tf.FIFOQueue(10, [tf.int64], shapes=[[2]])
    b = tf.FIFOQueue(10, [tf.int64], shapes=[[3]])
    taken = a.dequeue()
    taken._shape = None
    op = b.enqueue(taken)
    session.run(a.enqueue_many([[[1, 2], [3, 4]]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Shape mismatch"):
        session._repeated(op)()
    assert session.run(a.size()) == 1


def test_who_waits_at_the_source_comes_first(session: Any) -> None:
    a, b = queue(10), queue(10)
    got: list[Any] = []
    take = a.dequeue_many(3)
    thread = threading.Thread(target=lambda: got.append(session.run(take)), daemon=True)
    thread.start()
    move = threading.Thread(target=session._repeated(b.enqueue(a.dequeue())), daemon=True)
    while not any(q._dequeues for q in _queues(session)):
        pass
    move.start()
    fill(session, a, range(4))
    thread.join(10)
    move.join(10)
    assert got[0].tolist() == [0, 1, 2]
    assert drained(session, b) == [3]


def test_other_steps_are_run_one_by_one(session: Any) -> None:
    a, b = queue(10), queue(10)
    count = tf.Variable(np.int64(0), trainable=False)
    session.run(count.initializer)
    taken = a.dequeue()
    with tf.control_dependencies([count.assign_add(1)]):
        counted = b.enqueue(taken)
    assert transfer(session, counted) is None
    assert transfer(session, b.enqueue(taken + 1)) is None
    assert transfer(session, b.enqueue(tf.constant(np.int64(1)))) is None
    fill(session, a, range(4))
    session._repeated(counted)()
    assert session.run([count, b.size()]) == [1, 1]


def test_from_a_queue_into_itself(session: Any) -> None:
    a = queue(10)
    fill(session, a, range(4))
    session._repeated(a.enqueue(a.dequeue()))()
    assert drained(session, a) == [1, 2, 3, 0]


def test_queues_without_shapes_and_with_padding(session: Any) -> None:
    loose, b = tf.FIFOQueue(10, [tf.int64]), queue(10)
    taken = loose.dequeue()
    session.run(loose.enqueue_many([[1, 2]]))
    session._repeated(b.enqueue(taken))()
    assert session.run([loose.size(), b.size()]) == [1, 1]
    a, pads = queue(10, [2]), tf.PaddingFIFOQueue(10, [tf.int64], shapes=[[None]])
    session.run(a.enqueue_many([[[1, 2], [3, 4]]]))
    session._repeated(pads.enqueue(a.dequeue()))()
    assert session.run([a.size(), pads.size()]) == [1, 1]


def test_a_closed_session() -> None:
    with tf.Graph().as_default():
        session = tf.Session()
        a, b = queue(10), queue(10)
        move = session._repeated(b.enqueue(a.dequeue()))
        session.close()
        with pytest.raises(RuntimeError, match="closed Session"):
            move()
