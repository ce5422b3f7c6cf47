"""A step's deadline and cancellation."""

from __future__ import annotations

import pytest

from thalweg.base.errors import AbortedError, CancelledError, DeadlineExceededError
from thalweg.runtime.step import Step


def test_without_a_deadline_there_is_no_end() -> None:
    step = Step()
    assert step.remaining() is None
    assert not step.cancelled
    step.check()


def test_a_deadline_counts_down_to_nothing() -> None:
    step = Step(timeout_ms=60_000)
    left = step.remaining()
    assert left is not None and 0 < left <= 60
    step.check()
    step.deadline = 0.0
    assert step.remaining() == 0.0
    with pytest.raises(DeadlineExceededError, match="Timed out"):
        step.check()


def test_cancelling_calls_everybody_once() -> None:
    step, called = Step(), []
    step.on_cancel(lambda: called.append(1))
    step.on_cancel(lambda: called.append(2))
    step.cancel()
    step.cancel()
    assert called == [1, 2]
    assert step.cancelled


def test_the_first_error_is_kept() -> None:
    step = Step()
    step.cancel(AbortedError(None, None, "first"))
    step.cancel(CancelledError(None, None, "second"))
    with pytest.raises(AbortedError, match="first"):
        step.check()


def test_whoever_took_his_callback_back_is_not_called() -> None:
    step, called = Step(), []
    remove = step.on_cancel(lambda: called.append(1))
    remove()
    remove()
    step.cancel()
    assert called == []


def test_after_cancellation_a_callback_is_called_at_once_and_may_ask_the_step() -> None:
    step, called = Step(), []
    step.cancel()

    def callback() -> None:
        step.on_cancel(lambda: called.append("inner"))
        called.append("outer")

    step.on_cancel(callback)
    assert called == ["inner", "outer"]
