"""Many threads over queues and variables, with time limits, closed sessions' and closed queues' errors: no hang,
no lost element, no thread left behind."""

import random
import threading
import time
from typing import Any

import numpy as np
import pytest

import thalweg as tf

SECONDS = 4.0
OPEN = (tf.errors.DeadlineExceededError,)
ENDED = (tf.errors.CancelledError, tf.errors.OutOfRangeError)


class Load:
    """Producers number their elements; consumers collect them. What was put is put or in doubt."""

    def __init__(self, session: Any, q: Any, seed: int) -> None:
        self.session = session
        self.x = tf.placeholder(tf.int64, [])
        self.many = tf.placeholder(tf.int64, [None])
        self.put, self.put_many = q.enqueue(self.x), q.enqueue_many(self.many)
        self.take, self.take_many, self.take_some = q.dequeue(), q.dequeue_many(3), q.dequeue_up_to(4)
        self.seed = seed
        self.lock = threading.Lock()
        self.next = 0
        self.sure: set[int] = set()
        self.doubt: set[int] = set()
        self.taken: list[int] = []
        self.until = time.monotonic() + SECONDS
        self.errors: list[BaseException] = []

    def _limit(self, rng: random.Random) -> Any:
        return None if rng.random() < 0.3 else tf.RunOptions(timeout_in_ms=rng.choice([1, 2, 5, 20]))

    def produce(self, number: int) -> None:
        rng = random.Random(self.seed * 100 + number)
        while time.monotonic() < self.until:
            n = rng.choice([1, 1, 5])
            with self.lock:
                values = list(range(self.next, self.next + n))
                self.next += n
                self.doubt.update(values)
            one = n == 1 and rng.random() < 0.7
            feed = {self.x: values[0]} if one else {self.many: np.array(values)}
            try:
                self.session.run(self.put if one else self.put_many, feed, self._limit(rng))
            except OPEN:
                continue  # some of a batch may have gone in
            except ENDED:
                return
            with self.lock:
                self.sure.update(values)
                self.doubt.difference_update(values)

    def consume(self, number: int) -> None:
        rng = random.Random(self.seed * 100 + 50 + number)
        while True:
            fetch = rng.choice([self.take, self.take_many, self.take_some])
            try:
                got = self.session.run(fetch, options=self._limit(rng))
            except OPEN:
                continue
            except tf.errors.OutOfRangeError:
                if fetch is self.take_many:
                    continue  # fewer than three are left: another fetch takes them
                return
            except ENDED:
                return
            with self.lock:
                self.taken += np.atleast_1d(got).tolist()

    def threads(self, producers: int, consumers: int) -> list[threading.Thread]:
        def guarded(work: Any, number: int) -> None:
            try:
                work(number)
            except BaseException as e:
                self.errors.append(e)

        made = [
            threading.Thread(target=guarded, args=(work, i), daemon=True)
            for work, n in ((self.produce, producers), (self.consume, consumers))
            for i in range(n)
        ]
        for thread in made:
            thread.start()
        return made


def _join(threads: list[threading.Thread]) -> None:
    deadline = time.monotonic() + 15
    for thread in threads:
        thread.join(max(0.1, deadline - time.monotonic()))
    assert not [t for t in threads if t.is_alive()], "a thread hangs"


@pytest.mark.parametrize("kind", ["fifo", "shuffle"])
def test_every_element_comes_out_once(kind: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        if kind == "fifo":
            q = tf.FIFOQueue(7, tf.int64, shapes=[()])
        else:
            q = tf.RandomShuffleQueue(9, 2, tf.int64, shapes=[()], seed=1)
        load = Load(session, q, seed=len(kind))
        close = q.close()
        threads = load.threads(producers=3, consumers=3)
        _join(threads[:3])
        session.run(close)
        _join(threads[3:])
    assert not load.errors
    assert len(load.taken) == len(set(load.taken)), "an element came twice"
    assert load.sure <= set(load.taken), "an element was lost"
    assert set(load.taken) <= load.sure | load.doubt
    assert len(load.taken) > 100


def test_a_close_that_cancels_drops_only_what_waits() -> None:
    for round_ in range(5):
        with tf.Graph().as_default(), tf.Session() as session:
            q = tf.FIFOQueue(5, tf.int64, shapes=[()])
            load = Load(session, q, seed=round_)
            load.until = time.monotonic() + 0.4
            cancel = q.close(cancel_pending_enqueues=True)
            threads = load.threads(producers=3, consumers=2)
            time.sleep(0.2)
            session.run(cancel)
            _join(threads)
        assert not load.errors
        assert len(load.taken) == len(set(load.taken))
        assert load.sure <= set(load.taken) <= load.sure | load.doubt


def test_closing_the_session_frees_every_thread() -> None:
    with tf.Graph().as_default():
        session = tf.Session()
        q = tf.FIFOQueue(2, tf.int64, shapes=[()])
        load = Load(session, q, seed=3)
        load.until = time.monotonic() + 30
        threads = load.threads(producers=3, consumers=1)
        time.sleep(0.5)
        session.close()
        _join(threads)
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
        until = time.monotonic() + SECONDS / 2

        def work(op: Any) -> None:
            while time.monotonic() < until:
                got = session.run(op)
                if got is not None:
                    counted.append(int(got))

        threads = [threading.Thread(target=work, args=(op,), daemon=True) for op in (forward, forward, back, back)]
        for thread in threads:
            thread.start()
        time.sleep(SECONDS / 2)
        session.run(release)  # for those that wait
        _join(threads)
        left = [session.run(q.dequeue_many(session.run(q.size()))) for q in (a, b)]
        assert sorted(v for values in left for v in values.tolist() if v) == [1, 10, 100]
        assert session.run(total) == sum(counted)
        assert len(counted) > 20
