"""The layers of a MonitoredSession, each a session round another: recovery, coordination, hooks.

Source: TensorFlow's monitored_session.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tensorboard.compat.proto.config_pb2 import RunMetadata, RunOptions

from thalweg.base import errors
from thalweg.library import tf_logging
from thalweg.library.coordinator import Coordinator
from thalweg.library.training.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

#: errors that a new session may be free of: a machine went away
PREEMPTION_ERRORS = (errors.AbortedError, errors.UnavailableError)


class StepContext:
    """What a step function gets: the plain session, and a run that calls the hooks."""

    def __init__(self, session: Any, run_with_hooks_fn: Callable[..., Any]) -> None:
        self._session = session
        self._run_with_hooks_fn = run_with_hooks_fn

    @property
    def session(self) -> Any:
        """The Session, without hooks."""
        return self._session

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """Session.run with all hooks of the MonitoredSession."""
        return self._run_with_hooks_fn(*args, **kwargs)

    def request_stop(self) -> None:
        """Ends the training: leaves the step function by StopIteration."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class WrappedSession:
    """A session round another one; closed, it has none."""

    def __init__(self, session: Any) -> None:
        self._sess = session

    @property
    def graph(self) -> Any:
        """The graph."""
        return self._sess.graph

    @property
    def sess_str(self) -> str:
        """The target."""
        return self._sess.sess_str

    def should_stop(self) -> bool:
        """Whether this layer, or one inside, has ended."""
        if self._check_stop() or not self._sess:
            return True
        return isinstance(self._sess, WrappedSession) and self._sess.should_stop()

    def _check_stop(self) -> bool:
        """Whether this layer has ended."""
        return False

    def close(self) -> None:
        """Closes what is inside."""
        if not self._sess:
            return
        try:
            self._sess.close()
        except PREEMPTION_ERRORS as e:
            tf_logging.error(
                "An error occurred when attempting to close the session. This may be due to a preemption in "
                "a connected worker or parameter server. Error: %s",
                e,
            )
        finally:
            self._sess = None

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Session.run of what is inside."""
        return self._sess.run(*args, **kwargs)


class Creator(Protocol):
    """Makes sessions, and holds the plain one that it made last."""

    tf_sess: Any

    def create_session(self) -> WrappedSession: ...


class RecoverableSession(WrappedSession):
    """Makes a new session and goes on where a run fails of an error of PREEMPTION_ERRORS."""

    def __init__(self, creator: Creator) -> None:
        self._creator = creator
        super().__init__(self._create_session())

    def _create_session(self) -> WrappedSession:
        while True:
            try:
                return self._creator.create_session()
            except PREEMPTION_ERRORS as e:
                _tell(e, "while a session was being created")

    def _check_stop(self) -> bool:
        while True:
            try:
                return self._sess._check_stop() if self._sess else True
            except PREEMPTION_ERRORS as e:
                _tell(e, "while considering whether the session is complete")
                self.close()
                self._sess = self._create_session()
            except Exception:  # close raises it
                return True

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Session.run, until it succeeds or fails of an error that a new session won't mend."""
        return self._until_done(
            lambda: self._sess.run(
                fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata
            )
        )

    def run_step(self, step_fn: Callable[[StepContext], Any]) -> Any:
        """step_fn of a StepContext, in the same way."""
        return self._until_done(lambda: step_fn(StepContext(self._creator.tf_sess, self._sess.run)))

    def _until_done(self, work: Callable[[], Any]) -> Any:
        while True:
            try:
                if not self._sess:
                    self._sess = self._create_session()
                return work()
            except PREEMPTION_ERRORS as e:
                _tell(e, "in a run")
                self.close()


def _tell(error: errors.OpError, when: str) -> None:
    tf_logging.info(
        "An error was raised %s. This may be due to a preemption of a connected worker or parameter server. "
        "A new session will be created. Error: %s",
        when,
        error,
    )


class CoordinatedSession(WrappedSession):
    """Ends when its coordinator does, raises what its threads reported, joins them at close."""

    def __init__(self, session: Any, coord: Coordinator, stop_grace_period_secs: float = 120) -> None:
        super().__init__(session)
        self._coord = coord
        self._stop_grace_period_secs = stop_grace_period_secs

    def _check_stop(self) -> bool:
        self._coord.raise_requested_exception()
        return self._coord.should_stop()

    def close(self) -> None:
        """Stops and joins the threads, then closes the session. Errors: the one that a thread reported."""
        self._coord.request_stop()
        try:
            self._coord.join(
                stop_grace_period_secs=self._stop_grace_period_secs, ignore_live_threads=True
            )
        finally:
            try:
                super().close()
            except Exception as e:
                # often it only says that the session is closed, or in use by a thread that has not ended
                tf_logging.vlog(1, "Ignored exception: %s", e)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Session.run. Where a thread reported that a machine went away, that is the error: the cause."""
        try:
            return self._sess.run(*args, **kwargs)
        except PREEMPTION_ERRORS:
            raise
        except Exception as error:
            try:
                self._coord.raise_requested_exception()
            except PREEMPTION_ERRORS:
                raise
            except Exception:
                raise error from None
            raise


class HookedSession(WrappedSession):
    """Calls hooks round each run."""

    def __init__(self, session: Any, hooks: Sequence[SessionRunHook]) -> None:
        super().__init__(session)
        self._hooks = hooks
        self._should_stop = False

    def _check_stop(self) -> bool:
        return self._should_stop

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Session.run of the fetches and feeds of the caller and the hooks together.

        RuntimeError after the end was asked for, and where a tensor is fed twice.
        """
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._sess)
        # a copy: what hooks add isn't for the caller's next run
        merged = RunOptions() if options is None else type(options).FromString(options.SerializeToString())
        metadata = RunMetadata() if run_metadata is None else run_metadata
        all_fetches: dict[Any, Any] = {"caller": fetches}
        feeds = self._before_run(context, all_fetches, feed_dict, merged)
        results = self._sess.run(
            fetches=all_fetches, feed_dict=feeds, options=merged, run_metadata=metadata
        )
        for hook in self._hooks:
            hook.after_run(context, SessionRunValues(results.get(hook), merged, metadata))
        self._should_stop = self._should_stop or context.stop_requested
        return results["caller"]

    def _before_run(
        self, context: SessionRunContext, fetches: dict[Any, Any], feed_dict: Any, options: Any
    ) -> Any:
        """Asks the hooks; adds to fetches and options; returns the feeds of all."""
        feeds: dict[Any, Any] = {}
        for hook in self._hooks:
            request = hook.before_run(context)
            if request is None:
                continue
            if request.fetches is not None:
                fetches[hook] = request.fetches
            if request.feed_dict:
                _check_fed_once(feeds, request.feed_dict, "Same tensor is fed by two hooks.")
                feeds.update(request.feed_dict)
            if request.options:
                _merge_options(options, request.options)
        if not feeds:
            return feed_dict
        if feed_dict:
            _check_fed_once(feed_dict, feeds, "Same tensor is fed by a SessionRunHook and user.")
            feeds.update(feed_dict)
        return feeds


def _check_fed_once(feeds: Mapping[Any, Any], more: Mapping[Any, Any], message: str) -> None:
    twice = set(feeds) & set(more)
    if twice:
        raise RuntimeError(f"{message} Conflict(s): {list(twice)}")


def _merge_options(options: Any, more: Any) -> None:
    """Adds to RunOptions what a hook wants: the larger numbers, either flag, all watches."""
    for name in ("trace_level", "timeout_in_ms", "inter_op_thread_pool"):
        setattr(options, name, max(getattr(options, name), getattr(more, name)))
    for name in ("output_partition_graphs", "report_tensor_allocations_upon_oom"):
        setattr(options, name, getattr(options, name) or getattr(more, name))
    options.debug_options.MergeFrom(more.debug_options)
