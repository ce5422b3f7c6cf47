"""Who may touch which variables when: conflicts, order of arrival, and waits that end."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from thalweg.base.errors import CancelledError, DeadlineExceededError
from thalweg.runtime.access import Access, AccessManager
from thalweg.runtime.resources import Variable
from thalweg.runtime.step import Step

A, B = (Variable(("variable", "", name)) for name in "ab")


def reads(*variables: Variable) -> Access:
    return Access(list(variables), [])


def writes(*variables: Variable) -> Access:
    return Access([], list(variables))


class Asker(threading.Thread):
    """A thread that asks for an access; `got` says that it has it, `error` why not."""

    def __init__(self, manager: AccessManager, access: Access, step: Step | None = None) -> None:
        super().__init__(daemon=True)
        self.manager, self.access, self.step = manager, access, step or Step()
        self.got = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.manager.acquire(self.access, self.step)
        except BaseException as e:
            self.error = e
        else:
            self.got.set()


def ask(manager: AccessManager, access: Access, step: Step | None = None) -> Asker:
    """Starts an asker and returns once it holds the access or waits for it."""
    asker = Asker(manager, access, step)
    before = len(manager._waiting)
    asker.start()
    until(lambda: asker.got.is_set() or len(manager._waiting) > before or not asker.is_alive())
    return asker


def until(holds: Callable[[], bool]) -> None:
    done = threading.Event()
    for _ in range(5000):
        if holds():
            return
        done.wait(0.001)
    raise AssertionError("it never came")


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        (reads(A), reads(A), False),
        (reads(A), writes(A), True),
        (writes(A), reads(A), True),
        (writes(A), writes(A), True),
        (writes(A), writes(B), False),
        (Access([A], [B]), Access([B], [A]), True),
        (Access([A], [B]), Access([A], []), False),
        (reads(), writes(A), False),
    ],
)
def test_conflicts(first: Access, second: Access, conflict: bool) -> None:
    assert first.conflicts(second) == second.conflicts(first) == conflict


def test_readers_share_and_a_writer_waits_for_all_of_them() -> None:
    manager = AccessManager()
    one, two = ask(manager, reads(A)), ask(manager, reads(A, B))
    assert one.got.is_set() and two.got.is_set()
    writer = ask(manager, writes(A))
    manager.release(one.access)
    assert not writer.got.is_set()
    manager.release(two.access)
    assert writer.got.wait(5)


def test_the_same_access_may_be_held_twice() -> None:
    manager, access = AccessManager(), reads(A)
    manager.acquire(access, Step())
    manager.acquire(access, Step())
    manager.release(access)
    writer = ask(manager, writes(A))
    assert not writer.got.is_set()
    manager.release(access)
    assert writer.got.wait(5)


def test_a_reader_does_not_overtake_a_waiting_writer() -> None:
    manager = AccessManager()
    holder = ask(manager, reads(A))
    writer = ask(manager, writes(A))
    late = ask(manager, reads(A))
    assert not late.got.is_set()
    manager.release(holder.access)
    assert writer.got.wait(5)
    assert not late.got.is_set()
    manager.release(writer.access)
    assert late.got.wait(5)


def test_who_conflicts_with_nobody_does_not_wait() -> None:
    manager = AccessManager()
    holder = ask(manager, writes(A))
    waiting = ask(manager, writes(A, B))
    assert ask(manager, reads(B)).got.is_set() is False, "it would overtake who waits for a and b"
    manager.release(holder.access)
    assert waiting.got.wait(5)
    free = Variable(("variable", "", "c"))
    assert ask(manager, writes(free)).got.is_set()


def test_accesses_in_opposite_order_do_not_deadlock() -> None:
    manager = AccessManager()
    count = [0]

    def work(first: Variable, second: Variable) -> None:
        for _ in range(300):
            access = writes(first, second)
            manager.acquire(access, Step(10_000))
            seen = count[0]
            count[0] = seen + 1
            manager.release(access)

    threads = [threading.Thread(target=work, args=pair) for pair in ((A, B), (B, A), (A, B))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    assert count[0] == 900
    assert repr(manager) == "<AccessManager held=0 waiting=0>"


def test_waiting_ends_with_the_deadline_and_lets_others_through() -> None:
    manager = AccessManager()
    holder = ask(manager, reads(A))
    writer = ask(manager, writes(A), Step(timeout_ms=50))
    reader = ask(manager, reads(A))
    assert not reader.got.is_set()
    writer.join(5)
    assert isinstance(writer.error, DeadlineExceededError)
    assert "the variables a" in str(writer.error)
    assert reader.got.wait(5)
    manager.release(holder.access)
    manager.release(reader.access)
    assert repr(manager) == "<AccessManager held=0 waiting=0>"


def test_waiting_ends_with_cancellation() -> None:
    manager = AccessManager()
    holder = ask(manager, writes(A))
    step = Step()
    waiting = ask(manager, writes(A), step)
    step.cancel()
    waiting.join(5)
    assert isinstance(waiting.error, CancelledError)
    manager.release(holder.access)
    assert ask(manager, writes(A)).got.is_set()


def test_a_cancelled_step_does_not_start_to_wait() -> None:
    manager = AccessManager()
    manager.acquire(writes(A), Step())
    step = Step()
    step.cancel()
    with pytest.raises(CancelledError):
        manager.acquire(writes(A), step)


class Interrupted(threading.Event):
    """An event whose wait is interrupted, as by Ctrl-C; the access may have been granted before."""

    def __init__(self, first: Callable[[], None]) -> None:
        super().__init__()
        self.first = first

    def wait(self, timeout: float | None = None) -> bool:
        self.first()
        raise KeyboardInterrupt


@pytest.mark.parametrize("granted", [False, True])
def test_an_interrupted_wait_leaves_nothing_behind(granted: bool) -> None:
    manager, held = AccessManager(), writes(A)
    manager.acquire(held, Step())
    entry = (writes(A), Interrupted(lambda: manager.release(held) if granted else None))
    manager._waiting.append(entry)
    with pytest.raises(KeyboardInterrupt):
        manager._wait(entry, Step())
    if not granted:
        manager.release(held)
    assert repr(manager) == "<AccessManager held=0 waiting=0>"


def test_an_empty_access_costs_nothing() -> None:
    manager = AccessManager()
    manager.acquire(reads(), Step())
    assert repr(manager) == "<AccessManager held=0 waiting=0>"
    manager.release(reads())
