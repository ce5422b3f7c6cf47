"""When hooks act: every so many steps or seconds, or never."""

from __future__ import annotations

import time


class SecondOrStepTimer:
    """Triggers at most once every every_secs seconds, or every_steps steps: exactly one of them is given."""

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        self.reset()
        self._every_secs = every_secs
        self._every_steps = every_steps
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")

    def reset(self) -> None:
        """Forgets what has triggered."""
        self._last_step: int | None = None
        self._last_time: float | None = None

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether to act at this step: the first always, never twice in one step."""
        if self._last_step is None or self._last_time is None:
            return True
        if self._last_step == step:
            return False
        if self._every_secs is not None:
            return time.time() >= self._last_time + self._every_secs
        return bool(step >= self._last_step + (self._every_steps or 0))

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Notes that it triggered; returns the seconds and steps since it last did (None the first time)."""
        now = time.time()
        if self._last_time is None or self._last_step is None:
            since: tuple[float | None, int | None] = (None, None)
        else:
            since = (now - self._last_time, step - self._last_step)
        self._last_time, self._last_step = now, step
        return since

    def last_triggered_step(self) -> int | None:
        """The step at which it last triggered, or None."""
        return self._last_step


class NeverTriggerTimer:
    """Never triggers."""

    def reset(self) -> None:
        """Nothing to forget."""

    def should_trigger_for_step(self, step: int) -> bool:
        """False."""
        return False

    def update_last_triggered_step(self, step: int) -> tuple[None, None]:
        """Takes no note."""
        return None, None

    def last_triggered_step(self) -> None:
        """None."""
        return None
