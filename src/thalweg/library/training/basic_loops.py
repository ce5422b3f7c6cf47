"""A training loop for a Supervisor. Source: TensorFlow's basic_loops.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thalweg.base import errors


def basic_train_loop(
    supervisor: Any,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    master: str = "",
) -> None:
    """Calls train_step_fn(session, *args, **kwargs) until the supervisor stops; anew after AbortedError."""
    while True:
        try:
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *(args or ()), **(kwargs or {}))
            return
        except errors.AbortedError:
            # a machine went away: a new session starts from the last checkpoint
            continue
