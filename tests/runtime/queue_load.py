"""Threads that put numbered elements into a queue and take them out, for stress tests.

THALWEG_STRESS_SECONDS in the environment makes each of those tests run that long, in place of a few seconds.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import thalweg as tf

#: of a whole test; None: as long as the test finds right
GIVEN = os.environ.get("THALWEG_STRESS_SECONDS")
OPEN = (tf.errors.DeadlineExceededError,)
ENDED = (tf.errors.CancelledError, tf.errors.OutOfRangeError)


def seconds(usually: float) -> float:
    """How long a test runs."""
    return float(GIVEN) if GIVEN else usually


def limit(rng: random.Random) -> Any:
    """A time limit for a step, or none."""
    return None if rng.random() < 0.3 else tf.RunOptions(timeout_in_ms=rng.choice([1, 2, 5, 20]))


class Threads:
    """Threads of a test, and what they raised."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []

    def start(self, work: Callable[[int], Any], n: int) -> list[threading.Thread]:
        """n threads that call work(0), work(1), ..."""

        def guarded(number: int) -> None:
            try:
                work(number)
            except BaseException as e:
                self.errors.append(e)

        made = [threading.Thread(target=guarded, args=(i,), daemon=True) for i in range(n)]
        for thread in made:
            thread.start()
        return made


def join(threads: list[threading.Thread], within: float = 15) -> None:
    """Waits for the end of threads; fails where one hangs."""
    deadline = time.monotonic() + within
    for thread in threads:
        thread.join(max(0.1, deadline - time.monotonic()))
    assert not [t for t in threads if t.is_alive()], "a thread hangs"


class Load(Threads):
    """Producers number their elements; consumers collect them. What was put is put or in doubt.

    q: what is put into; source: what is taken from (q, or the other end of a pipeline).
    """

    def __init__(self, session: Any, q: Any, seed: int, run_for: float, source: Any = None) -> None:
        super().__init__()
        source = q if source is None else source
        self.session = session
        self.x = tf.placeholder(tf.int64, [])
        self.many = tf.placeholder(tf.int64, [None])
        self.put, self.put_many = q.enqueue(self.x), q.enqueue_many(self.many)
        self.take, self.take_many, self.take_some = source.dequeue(), source.dequeue_many(3), source.dequeue_up_to(4)
        self.seed = seed
        self.lock = threading.Lock()
        self.next = 0
        self.sure: set[int] = set()
        self.doubt: set[int] = set()
        self.taken: list[int] = []
        self.until = time.monotonic() + run_for

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
                self.session.run(self.put if one else self.put_many, feed, limit(rng))
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
                got = self.session.run(fetch, options=limit(rng))
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

    def check(self, lost: int = 0) -> None:
        """Nothing came twice, nothing came from nowhere, and at most so many that were put in didn't come out."""
        assert len(self.taken) == len(set(self.taken)), "an element came twice"
        assert set(self.taken) <= self.sure | self.doubt, "an element came from nowhere"
        assert len(self.sure - set(self.taken)) <= lost, "an element was lost"
