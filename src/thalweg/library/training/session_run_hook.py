"""SessionRunHook: what joins the runs of a MonitoredSession. Source: TensorFlow's session_run_hook.py."""

from __future__ import annotations

from typing import Any, NamedTuple


class SessionRunHook:
    """Is called as a MonitoredSession starts, runs and ends. To be subclassed; each method does nothing.

    The order, for each of the hooks in the order in which they were given:

        begin()                                the graph may still be changed
        after_create_session(session, coord)   each time a session was made: also after a recovery
            before_run(context)                may add fetches, feeds and options to the run
            after_run(context, values)         where the run succeeded
        end(session)                           unless an error ended the training
    """

    def begin(self) -> None:
        """Called once, before the graph is finalized and the session made."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called when a session was made and its variables have values; the graph is finalized."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each run; returns what to add to it."""

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each run that succeeded, with the values asked for in before_run."""

    def end(self, session: Any) -> None:
        """Called before the session is closed, unless an error other than the end of input ended it."""


class SessionRunArgs(NamedTuple):
    """Arguments of a run: as session.run takes them."""

    fetches: Any
    feed_dict: Any = None
    options: Any = None


class SessionRunValues(NamedTuple):
    """What a run gave: results in the structure of the hook's fetches (None where it had none)."""

    results: Any
    options: Any
    run_metadata: Any


class SessionRunContext:
    """One run, as hooks see it: what the caller asked for, and a way to ask for the end."""

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """The fetches and feeds of the caller of run."""
        return self._original_args

    @property
    def session(self) -> Any:
        """The Session that the run happens in."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """Whether a hook asked for the end."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Asks for the end: should_stop is true after this run."""
        self._stop_requested = True
