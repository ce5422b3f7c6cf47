"""Many threads over queues and variables, with time limits, closed sessions' and closed queues' errors: no hang,
no lost element, no thread left behind."""

import pathlib
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import thalweg as tf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from queue_load import Load, join, seconds


@pytest.mark.timeout(seconds(2) + 100)
@pytest.mark.parametrize("kind", ["fifo", "shuffle"])
def test_every_element_comes_out_once(kind: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        if kind == "fifo":
            q = tf.FIFOQueue(7, tf.int64, shapes=[()])
        else:
            q = tf.RandomShuffleQueue(9, 2, tf.int64, shapes=[()], seed=1)
        load = Load(session, q, seed=len(kind), run_for=seconds(2))
        close = q.close()
        producers, consumers = load.start(load.produce, 3), load.start(load.consume, 3)
        join(producers, seconds(2) + 15)
        session.run(close)
        join(consumers)
    assert not load.errors
    load.check()
    assert len(load.taken) > 100


def test_a_close_that_cancels_drops_only_what_waits() -> None:
    for round_ in range(5):
        with tf.Graph().as_default(), tf.Session() as session:
            q = tf.FIFOQueue(5, tf.int64, shapes=[()])
            load = Load(session, q, seed=round_, run_for=0.4)
            cancel = q.close(cancel_pending_enqueues=True)
            threads = load.start(load.produce, 3) + load.start(load.consume, 2)
            time.sleep(0.2)
            session.run(cancel)
            join(threads)
        assert not load.errors
        load.check()


def test_closing_the_session_frees_every_thread() -> None:
    with tf.Graph().as_default():
        session = tf.Session()
        q = tf.FIFOQueue(2, tf.int64, shapes=[()])
        load = Load(session, q, seed=3, run_for=30)
        threads = load.start(load.produce, 3) + load.start(load.consume, 1)
        time.sleep(0.5)
        session.close()
        join(threads)
    assert all(isinstance(e, RuntimeError) for e in load.errors)  # a closed session refuses steps


def test_queues_and_variables() -> None:
    """Numbers go round between two queues, past a variable that counts them: none is lost, all are counted."""
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = (tf.FIFOQueue(16, tf.int64, shapes=[()]) for _ in range(2))
        total = tf.Variable(np.int64(0))
        moved = a.dequeue()
        with tf.control_dependencies([total.assign_add(moved)]):
            forward = b.enqueue(moved)
        with tf.control_dependencies([forward]):
            forward = tf.identity(moved)
        back = a.enqueue(b.dequeue())
        session.run(total.initializer)
        session.run(a.enqueue_many([[1, 10, 100]]))
        release = [q.enqueue_many([[0, 0]]) for q in (a, b)]
        counted: list[int] = []
        until = time.monotonic() + seconds(1)

        def work(op: Any) -> None:
            while time.monotonic() < until:
                got = session.run(op)
                if got is not None:
                    counted.append(int(got))

        threads = [threading.Thread(target=work, args=(op,), daemon=True) for op in (forward, forward, back, back)]
        for thread in threads:
            thread.start()
        time.sleep(seconds(1))
        session.run(release)  # for those that wait
        join(threads)
        left = [session.run(q.dequeue_many(session.run(q.size()))) for q in (a, b)]
        assert sorted(v for values in left for v in values.tolist() if v) == [1, 10, 100]
        assert session.run(total) == sum(counted)
        assert len(counted) > 20
