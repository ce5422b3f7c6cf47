"""Sixteen threads over queues, variables and loops, with time limits and every way to end: nothing hangs, no element
is lost, no thread is left behind.

    producers -> entry -> queue runners -> middle -> loops on the executor -> way out -> consumers

and, at the same time, loops that add to variables, compiled and on the executor, and loops that go through a
queue of their own.
"""

from __future__ import annotations

import pathlib
import random
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import thalweg as tf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from queue_load import ENDED, OPEN, Load, join, limit, seconds

RUNNERS = 2


class Pipeline(Load):
    """Everything of one session."""

    def __init__(self, session: Any, seed: int, run_for: float) -> None:
        self.entry = tf.FIFOQueue(20, tf.int64, shapes=[()])
        self.middle = tf.RandomShuffleQueue(30, 3, tf.int64, shapes=[()], seed=seed + 1)
        self.way_out = tf.FIFOQueue(5, tf.int64, shapes=[()])
        super().__init__(session, self.entry, seed, run_for, self.way_out)
        self.runner = tf.train.QueueRunner(
            self.middle, [self.middle.enqueue(self.entry.dequeue()) for _ in range(RUNNERS)]
        )
        self.close_entry, self.close_way_out = self.entry.close(), self.way_out.close()
        self.cancel_middle = self.middle.close(cancel_pending_enqueues=True)
        self.rest = [q.dequeue_up_to(20) for q in (self.entry, self.middle, self.way_out)]
        self.sizes = [q.size() for q in (self.entry, self.middle, self.way_out)]
        self.move = self._through_a_loop()
        #: variables, steps that add to them, and what was added: surely, in doubt
        self.totals = [tf.Variable(np.int64(0)) for _ in range(2)]
        self.n = tf.placeholder(tf.int64, [])
        self.add = [self._loop_that_adds(v, on_the_executor=bool(i)) for i, v in enumerate(self.totals)]
        self.added = [[0, 0] for _ in self.totals]
        self.own = [self._loop_through_its_queue() for _ in range(2)]
        session.run([v.initializer for v in self.totals])

    def _through_a_loop(self) -> Any:
        """Four elements from the middle to the way out, one in each iteration."""

        def body(i: Any) -> Any:
            with tf.control_dependencies([self.way_out.enqueue(self.middle.dequeue())]):
                return i + 1

        return tf.while_loop(lambda i: i < 4, body, [0])

    def _loop_that_adds(self, variable: Any, on_the_executor: bool) -> Any:
        """Adds n to a variable: the ones that a loop of n iterations counts."""

        def body(i: Any, total: Any) -> Any:
            one = tf.constant(np.int64(1))
            if on_the_executor:
                one = tf.py_func(lambda v: v, [one], tf.int64)
                one.set_shape([])
            return i + 1, total + one

        count = tf.while_loop(lambda i, _: i < self.n, body, [np.int64(0), np.int64(0)])[1]
        return variable.assign_add(count).op

    def _loop_through_its_queue(self) -> tuple[Any, Any, Any]:
        """A loop that sends its counter through a queue; what is left in the queue, and how much."""
        q = tf.FIFOQueue(4, tf.int64, shapes=[()])

        def body(i: Any) -> Any:
            with tf.control_dependencies([q.enqueue(i)]):
                return q.dequeue() + 1

        return tf.while_loop(lambda i: i < 30, body, [np.int64(0)]), q.dequeue(), q.size()

    # --- what threads do ---

    def moves(self, number: int) -> None:
        while True:
            try:
                self.session.run(self.move)
            except ENDED:
                return

    def adds(self, number: int) -> None:
        kind = number % 2
        rng = random.Random(self.seed * 100 + 30 + number)
        while time.monotonic() < self.until:
            n = rng.choice([1, 10, 100])
            try:
                self.session.run(self.add[kind], {self.n: n}, limit(rng))
                late = 0
            except OPEN:
                late = 1
            except ENDED:
                return
            with self.lock:
                self.added[kind][late] += n

    def goes_round(self, number: int) -> None:
        loop, take, size = self.own[number]
        rng = random.Random(self.seed * 100 + 40 + number)
        while time.monotonic() < self.until:
            try:
                assert self.session.run(loop, options=limit(rng)) == 30
            except OPEN:
                # the element under way is there, or went with the step
                assert self.session.run(size) <= 1
                if self.session.run(size):
                    self.session.run(take)
            except ENDED:
                return

    def go(self) -> dict[str, list[threading.Thread]]:
        """Sixteen threads (and one that closes the middle queue when the coordinator stops)."""
        self.coordinator = tf.train.Coordinator()
        return {
            "produce": self.start(self.produce, 3),
            "run": self.runner.create_threads(self.session, self.coordinator, daemon=True, start=True),
            "move": self.start(self.moves, 2),
            "consume": self.start(self.consume, 3),
            "add": self.start(self.adds, 4),
            "go round": self.start(self.goes_round, 2),
        }


def ends_well(p: Pipeline, threads: dict[str, list[threading.Thread]]) -> None:
    """The entry is closed when nobody puts any more; each part closes the next when it has passed everything on."""
    join(threads["produce"])
    p.session.run(p.close_entry)
    join(threads["run"][:RUNNERS])
    join(threads["move"])
    p.session.run(p.close_way_out)
    join(threads["consume"] + threads["add"] + threads["go round"])
    p.coordinator.request_stop()
    p.coordinator.join(threads["run"], stop_grace_period_secs=10)
    p.check()
    check_totals(p)


def is_cancelled(p: Pipeline, threads: dict[str, list[threading.Thread]]) -> None:
    """The middle is closed at once: what its enqueues hold is dropped, everything else is somewhere."""
    time.sleep(random.Random(p.seed).random() * 0.5)
    p.session.run(p.cancel_middle)
    join(threads["move"])
    p.until = 0
    p.session.run(p.entry.close(cancel_pending_enqueues=True))
    join(threads["produce"])
    p.coordinator.request_stop()
    try:
        p.coordinator.join(threads["run"], stop_grace_period_secs=10)
    except tf.errors.CancelledError:
        pass  # as the close says
    p.session.run(p.close_way_out)
    join(threads["consume"] + threads["add"] + threads["go round"])
    for rest, size in zip(p.rest, p.sizes, strict=True):
        while p.session.run(size):
            p.taken += p.session.run(rest).tolist()
    p.check(lost=RUNNERS)
    check_totals(p)


def is_shut(p: Pipeline, threads: dict[str, list[threading.Thread]]) -> None:
    """The session is closed: all steps end, and new ones are refused."""
    time.sleep(random.Random(p.seed).random() * 0.5)
    p.session.close()
    try:
        p.coordinator.join(threads["run"], stop_grace_period_secs=10)
    except (RuntimeError, tf.errors.CancelledError):
        pass
    join([t for group in threads.values() for t in group])
    p.errors = [e for e in p.errors if "closed Session" not in str(e)]
    p.check(lost=len(p.sure))


def check_totals(p: Pipeline) -> None:
    for variable, (sure, doubt) in zip(p.totals, p.added, strict=True):
        assert sure <= p.session.run(variable) <= sure + doubt


@pytest.mark.timeout(seconds(2) + 100)
@pytest.mark.parametrize("end", [ends_well, is_cancelled, is_shut])
def test_sixteen_threads(end: Any) -> None:
    until = time.monotonic() + seconds(2)
    round_ = taken = 0
    before = set(threading.enumerate())
    while not round_ or time.monotonic() < until:
        with tf.Graph().as_default(), tf.Session() as session:
            p = Pipeline(session, round_, run_for=1)
            end(p, p.go())
        assert not p.errors
        round_ += 1
        taken += len(p.taken)
    assert taken > 10
    left = [t for t in threading.enumerate() if t not in before and not t.name.startswith("thalweg")]
    assert not left, "a thread is left behind"
