"""MonitoredSession: a session with hooks, that recovers and ends well.

Source: TensorFlow's monitored_session.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from thalweg.base import errors
from thalweg.graph.convert import get_default_graph
from thalweg.library import framework
from thalweg.library.coordinator import Coordinator
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.queue_runner import start_queue_runners
from thalweg.library.training import wrapped_sessions
from thalweg.library.training.checkpoint_hook import CheckpointSaverHook
from thalweg.library.training.scaffold import Scaffold
from thalweg.library.training.session_creators import (
    ChiefSessionCreator,
    SessionCreator,
    WorkerSessionCreator,
)
from thalweg.library.training.session_run_hook import SessionRunHook
from thalweg.library.training.summary_hooks import StepCounterHook, SummarySaverHook
from thalweg.library.training.wrapped_sessions import (
    CoordinatedSession,
    HookedSession,
    RecoverableSession,
    WrappedSession,
)

#: an argument that wasn't given
USE_DEFAULT: Any = object()


class _CoordinatedCreator(SessionCreator):
    """Makes a session, starts its queue runners, tells the hooks, and wraps it."""

    def __init__(
        self, creator: SessionCreator, hooks: Sequence[SessionRunHook], stop_grace_period_secs: float
    ) -> None:
        self._creator = creator
        self._hooks = hooks
        self._stop_grace_period_secs = stop_grace_period_secs
        self.coord: Coordinator | None = None
        self.tf_sess: Any = None

    def create_session(self) -> WrappedSession:
        """A session with its coordinator and hooks."""
        self.tf_sess = self._creator.create_session()
        # no error counts as a clean end: the end of input ends the loop of whoever reads it
        self.coord = Coordinator(clean_stop_exception_types=[])
        session = CoordinatedSession(
            HookedSession(self.tf_sess, self._hooks), self.coord, self._stop_grace_period_secs
        )
        try:
            if framework.get_collection(GraphKeys.QUEUE_RUNNERS):
                start_queue_runners(sess=self.tf_sess, coord=self.coord)
            for hook in self._hooks:
                hook.after_create_session(self.tf_sess, self.coord)
        except BaseException:
            session.close()
            raise
        return session


class _MonitoredSession:
    """What MonitoredSession and SingularMonitoredSession share."""

    StepContext = wrapped_sessions.StepContext

    def __init__(
        self,
        session_creator: SessionCreator | None,
        hooks: Sequence[SessionRunHook] | None,
        should_recover: bool,
        stop_grace_period_secs: float = 120,
    ) -> None:
        self._graph_was_finalized = get_default_graph().finalized
        self._hooks = hooks or []
        for hook in self._hooks:
            hook.begin()
        self._coordinated_creator = _CoordinatedCreator(
            session_creator or ChiefSessionCreator(), self._hooks, stop_grace_period_secs
        )
        self._sess: Any = (
            RecoverableSession(self._coordinated_creator)
            if should_recover
            else self._coordinated_creator.create_session()
        )

    @property
    def graph(self) -> Any:
        """The graph; None once closed."""
        session = self._tf_sess()
        return None if session is None else session.graph

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Session.run, with the hooks. RuntimeError after the end was asked for."""
        return self._sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """step_fn(step_context), which may run with and without hooks; returns what it returns.

        Errors: ValueError where step_fn doesn't take the one argument step_context.
        """
        arguments = tuple(inspect.signature(step_fn).parameters)
        if arguments not in (("step_context",), ("self", "step_context")):
            raise ValueError(
                "`step_fn` may either have one `step_context` argument, or `self` and `step_context` "
                f"arguments if it's an instance method. Got {arguments} instead."
            )
        if isinstance(self._sess, RecoverableSession):
            return self._sess.run_step(step_fn)
        return step_fn(self.StepContext(self._tf_sess(), self._sess.run))

    def should_stop(self) -> bool:
        """Whether to leave the training loop: the end was asked for, a thread failed, or this is closed."""
        return self._sess is None or self._sess.should_stop()

    def close(self) -> None:
        """Calls the hooks' end, joins the threads and closes the session.

        Errors: RuntimeError where it is closed already; what a hook or a thread raised.
        """
        self._close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, exception_type: Any, exception_value: Any, traceback: Any) -> bool:
        if exception_type in (errors.OutOfRangeError, StopIteration):
            exception_type = None  # the end of the input is a good end
        self._close(exception_type)
        return exception_type is None

    def _close(self, exception_type: Any = None) -> None:
        try:
            if exception_type is None:
                for hook in self._hooks:
                    hook.end(self._coordinated_creator.tf_sess)
        finally:
            try:
                if self._sess is None:
                    raise RuntimeError("Session is already closed.")
                self._sess.close()
            finally:
                self._sess = None
                self._coordinated_creator.tf_sess = None
                self._coordinated_creator.coord = None
                if not self._graph_was_finalized:
                    get_default_graph()._unsafe_unfinalize()

    def _is_closed(self) -> bool:
        """Whether it is closed."""
        return self._coordinated_creator.tf_sess is None

    def _tf_sess(self) -> Any:
        """The Session inside; programs of TensorFlow 1.x use it to get at a session without hooks."""
        return self._coordinated_creator.tf_sess


class MonitoredSession(_MonitoredSession):
    """A session that is initialised or restored, calls hooks, and starts anew when a machine goes away.

    Making it finalizes the default graph; closing it undoes that. A context manager: OutOfRangeError and
    StopIteration end the block without an error.
    """

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A MonitoredSession of one machine: it doesn't start anew, and tells what its session is."""

    def __init__(
        self,
        hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Any:
        """The Session inside."""
        return self._tf_sess()


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: float | None = USE_DEFAULT,
    save_summaries_steps: int | None = USE_DEFAULT,
    save_summaries_secs: float | None = USE_DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: int | None = USE_DEFAULT,
    summary_dir: str | None = None,
    save_graph_def: bool = True,
) -> MonitoredSession:
    """A MonitoredSession for training: of the chief, with checkpoints and summaries; of a worker, without.

    checkpoint_dir: restored from at the start, saved into at the start, every save_checkpoint_steps or
    save_checkpoint_secs (600 where neither is given), and at the end. Summaries go there too, or into
    summary_dir: every save_summaries_steps (100) or save_summaries_secs. log_step_count_steps: between two
    reports of steps per second. max_wait_secs: how long a worker waits for the chief.
    Hooks are called in this order: chief_only_hooks, step counter, summaries, checkpoints, hooks.
    """
    save_summaries_steps, save_summaries_secs = _steps_or_secs(
        save_summaries_steps, save_summaries_secs, (100, None)
    )
    save_checkpoint_steps, save_checkpoint_secs = _steps_or_secs(
        save_checkpoint_steps, save_checkpoint_secs, (None, 600)
    )
    scaffold = scaffold or Scaffold()
    if not is_chief:
        return MonitoredSession(
            WorkerSessionCreator(scaffold, master, config, max_wait_secs), hooks or [], stop_grace_period_secs
        )
    all_hooks: list[SessionRunHook] = list(chief_only_hooks or ())
    summary_dir = summary_dir or checkpoint_dir
    if summary_dir and _positive(log_step_count_steps):
        all_hooks.append(StepCounterHook(output_dir=summary_dir, every_n_steps=log_step_count_steps))
    if summary_dir and (_positive(save_summaries_steps) or _positive(save_summaries_secs)):
        all_hooks.append(
            SummarySaverHook(
                scaffold=scaffold,
                save_steps=save_summaries_steps,
                save_secs=save_summaries_secs,
                output_dir=summary_dir,
            )
        )
    if checkpoint_dir and (_positive(save_checkpoint_steps) or _positive(save_checkpoint_secs)):
        all_hooks.append(
            CheckpointSaverHook(
                checkpoint_dir,
                save_steps=save_checkpoint_steps,
                save_secs=save_checkpoint_secs,
                scaffold=scaffold,
                save_graph_def=save_graph_def,
            )
        )
    all_hooks.extend(hooks or ())
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(creator, all_hooks, stop_grace_period_secs)


def _steps_or_secs(steps: Any, secs: Any, default: tuple[Any, Any]) -> tuple[Any, Any]:
    """Where one of two is given the other is None; where neither is, the default."""
    if steps is USE_DEFAULT and secs is USE_DEFAULT:
        return default
    return (None if steps is USE_DEFAULT else steps), (None if secs is USE_DEFAULT else secs)


def _positive(number: float | None) -> bool:
    return number is not None and number > 0
