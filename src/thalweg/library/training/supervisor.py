"""Supervisor: the older way to train with checkpoints and summaries. Source: TensorFlow's supervisor.py."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tensorboard.compat.proto.event_pb2 import SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary

from thalweg.base import dtypes
from thalweg.graph.convert import get_default_graph
from thalweg.graph.graph import Graph
from thalweg.library import framework, tf_logging, training_util
from thalweg.library.coordinator import Coordinator, LooperThread
from thalweg.library.graph_io import write_graph
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.grouping import group
from thalweg.library.meta_graph import create_meta_graph_def
from thalweg.library.resources import tables_initializer
from thalweg.library.saver import Saver
from thalweg.library.summary_ops import merge_all
from thalweg.library.summary_writer import FileWriter
from thalweg.library.training.session_manager import SessionManager
from thalweg.library.variables import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)

#: an argument that wasn't given
_DEFAULT: Any = 0


class Supervisor:
    """Starts sessions, restored or initialised, and runs threads that save checkpoints and summaries.

    Making one finalizes the graph. What isn't given is taken from the graph's collections, or made; None
    stands for none. logdir: where checkpoints and events go, and where they are restored from.
    init_fn(session) runs after init_op. save_summaries_secs, save_model_secs: 0 for no such thread.
    """

    USE_DEFAULT = _DEFAULT

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Any = USE_DEFAULT,
        ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = USE_DEFAULT,
        init_feed_dict: Any = None,
        local_init_op: Any = USE_DEFAULT,
        logdir: str | None = None,
        summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT,
        global_step: Any = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: Any = USE_DEFAULT,
        init_fn: Callable[[Any], Any] | None = None,
        local_init_run_options: Any = None,
    ) -> None:
        graph = get_default_graph() if graph is None else graph
        self._graph = graph
        with graph.as_default():
            self._ready_op = _found(ready_op, GraphKeys.READY_OP, report_uninitialized_variables)
            self._ready_for_local_init_op = _found(
                ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP
            )
            self._init_op = _found(init_op, GraphKeys.INIT_OP, global_variables_initializer)
            self._local_init_op = _found(local_init_op, GraphKeys.LOCAL_INIT_OP, _default_local_init_op)
            self._saver = _found(saver, GraphKeys.SAVERS, _default_saver)
            self._summary_op = _found(summary_op, GraphKeys.SUMMARY_OP, merge_all)
            self._global_step = _found(global_step, GraphKeys.GLOBAL_STEP, _default_global_step)
        self._init_feed_dict = init_feed_dict
        self._meta_graph_def = create_meta_graph_def(
            graph_def=graph.as_graph_def(add_shapes=True),
            saver_def=self._saver.saver_def if self._saver else None,
        )
        self._is_chief = is_chief
        self._coord = Coordinator()
        self._stop_grace_secs = stop_grace_secs
        self._init_fn = init_fn
        self._logdir = logdir if is_chief else None
        self._save_summaries_secs = save_summaries_secs if is_chief else None
        self._save_model_secs = save_model_secs if is_chief else None
        self._save_path = os.path.join(logdir, checkpoint_basename) if is_chief and logdir else None
        self._summary_writer: Any = None
        if is_chief:
            if summary_writer is not _DEFAULT:
                self._summary_writer = summary_writer
            elif logdir:
                self._summary_writer = FileWriter(logdir)
        self._graph_added_to_summary = False
        self._session_manager = session_manager or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self._ready_op,
            ready_for_local_init_op=self._ready_for_local_init_op,
            graph=graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
        )
        if not is_chief:
            _check_devices(graph)
        graph.finalize()

    # ---- what it was made of ---------------------------------------------------------------------------

    @property
    def is_chief(self) -> bool:
        """Whether this one initialises and saves; the others wait for it."""
        return self._is_chief

    @property
    def session_manager(self) -> SessionManager:
        """What makes its sessions."""
        return self._session_manager

    @property
    def coord(self) -> Coordinator:
        """What its threads stop by."""
        return self._coord

    @property
    def init_op(self) -> Any:
        """Initialises the variables."""
        return self._init_op

    @property
    def init_feed_dict(self) -> Any:
        """Feeds for init_op."""
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        """Lists the variables that have no value."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """Lists what must have a value before local_init_op runs."""
        return self._ready_for_local_init_op

    @property
    def summary_writer(self) -> Any:
        """The writer of events; None where there is none."""
        return self._summary_writer

    @property
    def summary_op(self) -> Any:
        """All summaries, merged."""
        return self._summary_op

    @property
    def save_summaries_secs(self) -> float | None:
        """Seconds between two summaries."""
        return self._save_summaries_secs

    @property
    def global_step(self) -> Any:
        """The tensor that counts steps; None where there is none."""
        return self._global_step

    @property
    def saver(self) -> Any:
        """Saves and restores; None where there is none."""
        return self._saver

    @property
    def save_model_secs(self) -> float | None:
        """Seconds between two checkpoints."""
        return self._save_model_secs

    @property
    def save_path(self) -> str | None:
        """The prefix of its checkpoints."""
        return self._save_path

    # ---- sessions --------------------------------------------------------------------------------------

    @contextmanager
    def managed_session(
        self,
        master: str = "",
        config: Any = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Any]:
        """A context with a session that is ready. At its end threads are joined, and it is closed.

        Errors of the block and of threads are raised at its end, apart from OutOfRangeError.
        """
        session = None
        try:
            session = self.prepare_or_wait_for_session(
                master, config, start_standard_services=start_standard_services
            )
            yield session
        except Exception as e:
            self.request_stop(e)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if session is not None:
                    try:
                        session.close()
                    except Exception as e:
                        # a thread that has not ended may still be using it
                        tf_logging.vlog(1, "Ignored exception: %s", e)

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:
        """A session that is ready: made so by the chief, waited for by the others. Threads are started."""
        self._coord.clear_stop()
        if self._summary_writer:
            self._summary_writer.reopen()
        if self._is_chief:
            session = self._session_manager.prepare_session(
                master,
                init_op=self._init_op,
                saver=self._saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self._init_feed_dict,
                init_fn=self._init_fn,
            )
            self._write_graph()
            if start_standard_services:
                tf_logging.info("Starting standard services.")
                self.start_standard_services(session)
        else:
            session = self._session_manager.wait_for_session(
                master, config=config, max_wait_secs=max_wait_secs
            )
        if start_standard_services:
            tf_logging.info("Starting queue runners.")
            self.start_queue_runners(session)
        return session

    def _write_graph(self) -> None:
        if self._logdir:
            write_graph(self._graph.as_graph_def(add_shapes=True), self._logdir, "graph.pbtxt")
        if self._summary_writer and not self._graph_added_to_summary:
            self._summary_writer.add_graph(self._graph)
            self._summary_writer.add_meta_graph(self._meta_graph_def)
            self._graph_added_to_summary = True

    # ---- threads ---------------------------------------------------------------------------------------

    def start_standard_services(self, sess: Any) -> list[threading.Thread] | None:
        """Starts the threads that write summaries, count steps and save checkpoints.

        RuntimeError on workers that aren't the chief.
        """
        if not self._is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. Because only chief supervisors can write "
                "events."
            )
        if not self._logdir:
            tf_logging.warning("Standard services need a 'logdir' passed to the SessionManager")
            return None
        if self._global_step is not None and self._summary_writer:
            step = training_util.global_step(sess, self._global_step)
            self._summary_writer.add_session_log(SessionLog(status=SessionLog.START), step)
        threads: list[threading.Thread] = []
        if self._save_summaries_secs and self._summary_writer:
            if self._summary_op is not None:
                threads.append(_SummaryThread(self, sess))
            if self._global_step is not None:
                threads.append(_StepCounterThread(self, sess))
        if self._saver and self._save_model_secs:
            threads.append(_CheckpointThread(self, sess))
        for thread in threads:
            thread.start()
        return threads

    def start_queue_runners(
        self, sess: Any, queue_runners: Sequence[Any] | None = None
    ) -> list[threading.Thread]:
        """Starts the threads of queue runners: all of the graph's where None."""
        if queue_runners is None:
            queue_runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        threads: list[threading.Thread] = []
        for runner in queue_runners:
            threads += runner.create_threads(sess, coord=self._coord, daemon=True, start=True)
        return threads

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> LooperThread:
        """Starts a thread that calls `target` every timer_interval_secs until the supervisor stops."""
        return LooperThread.loop(self._coord, timer_interval_secs, target, args, kwargs)

    def stop(
        self,
        threads: Sequence[threading.Thread] | None = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Stops and joins the threads, and closes the writer of events. Errors: what a thread reported."""
        self._coord.request_stop()
        try:
            self._coord.join(
                threads,
                stop_grace_period_secs=self._stop_grace_secs,
                ignore_live_threads=ignore_live_threads,
            )
        finally:
            if close_summary_writer and self._summary_writer:
                self._summary_writer.add_session_log(SessionLog(status=SessionLog.STOP))
                self._summary_writer.close()
                self._graph_added_to_summary = False

    def request_stop(self, ex: Any = None) -> None:
        """Asks the threads to stop; ex: an error to raise when they have."""
        self._coord.request_stop(ex=ex)

    def should_stop(self) -> bool:
        """Whether a stop was asked for."""
        return self._coord.should_stop()

    def stop_on_exception(self) -> AbstractContextManager[None]:
        """A context that reports exceptions raised inside."""
        return self._coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Waits until a stop is asked for."""
        self._coord.wait_for_stop()

    def summary_computed(self, sess: Any, summary: Any, global_step: Any = None) -> None:
        """Writes a summary, at the current global step unless another is given."""
        if not self._summary_writer:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self._global_step is not None:
            global_step = training_util.global_step(sess, self._global_step)
        self._summary_writer.add_summary(summary, global_step)

    # TensorFlow's names before 0.12
    PrepareSession = prepare_or_wait_for_session
    StartQueueRunners = start_queue_runners
    StartStandardServices = start_standard_services
    Stop = stop
    RequestStop = request_stop
    Loop = loop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
    SummaryComputed = summary_computed


class _SummaryThread(LooperThread):
    """Writes the summaries again and again."""

    def __init__(self, supervisor: Supervisor, session: Any) -> None:
        super().__init__(supervisor.coord, supervisor.save_summaries_secs)
        self._supervisor = supervisor
        self._session = session

    def run_loop(self) -> None:
        supervisor = self._supervisor
        step = None
        if supervisor.global_step is not None:
            summary, step = self._session.run([supervisor.summary_op, supervisor.global_step])
        else:
            summary = self._session.run(supervisor.summary_op)
        if supervisor.summary_writer:
            tf_logging.info("Recording summary at step %s.", step)
            supervisor.summary_writer.add_summary(summary, step)


class _StepCounterThread(LooperThread):
    """Writes how many steps are made per second, again and again."""

    def __init__(self, supervisor: Supervisor, session: Any) -> None:
        super().__init__(supervisor.coord, supervisor.save_summaries_secs)
        self._supervisor = supervisor
        self._session = session
        self._tag = f"{supervisor.global_step.op.name}/sec"

    def start_loop(self) -> None:
        self._last_time = time.time()
        self._last_step = training_util.global_step(self._session, self._supervisor.global_step)

    def run_loop(self) -> None:
        step = training_util.global_step(self._session, self._supervisor.global_step)
        now = time.time()
        steps, seconds = step - self._last_step, now - self._last_time
        self._last_step, self._last_time = step, now
        rate = steps / seconds if seconds > 0 else float("inf")
        if self._supervisor.summary_writer:
            summary = Summary(value=[Summary.Value(tag=self._tag, simple_value=rate)])
            self._supervisor.summary_writer.add_summary(summary, step)
        tf_logging.log_first_n(tf_logging.INFO, "%s: %g", 10, self._tag, rate)


class _CheckpointThread(LooperThread):
    """Saves checkpoints again and again."""

    def __init__(self, supervisor: Supervisor, session: Any) -> None:
        super().__init__(supervisor.coord, supervisor.save_model_secs)
        self._supervisor = supervisor
        self._session = session

    def run_loop(self) -> None:
        supervisor, step = self._supervisor, self._supervisor.global_step
        tf_logging.info("Saving checkpoint to path %s", supervisor.save_path)
        supervisor.saver.save(self._session, supervisor.save_path, global_step=step)
        if supervisor.summary_writer and step is not None:
            log = SessionLog(status=SessionLog.CHECKPOINT, checkpoint_path=supervisor.save_path)
            supervisor.summary_writer.add_session_log(log, training_util.global_step(self._session, step))


def _found(given: Any, key: str, make: Callable[[], Any] | None = None) -> Any:
    """What was given; else the first of a collection; else what `make` makes, put there unless it is None."""
    if given is not _DEFAULT:
        return given
    elements = framework.get_collection(key)
    if elements:
        if len(elements) > 1:
            tf_logging.info("Found %d %s operations. Returning the first one.", len(elements), key)
        return elements[0]
    made = make() if make is not None else None
    if made is not None:
        framework.add_to_collection(key, made)
    return made


def _default_local_init_op() -> Any:
    return group(local_variables_initializer(), tables_initializer())


def _default_saver() -> Any:
    return Saver() if global_variables() else None


def _default_global_step() -> Any:
    try:
        step = get_default_graph().get_tensor_by_name("global_step:0")
    except KeyError:
        return None
    if step.dtype.base_dtype not in (dtypes.int32, dtypes.int64):
        tf_logging.warning("Found 'global_step' is not an int type: %s", step.dtype)
        return None
    return step


def _check_devices(graph: Graph) -> None:
    """Where there are several workers, variables must have a place that all know."""
    for op in graph.get_operations():
        if op.type in ("Variable", "VariableV2") and not op.device:
            raise ValueError(f"When using replicas, all Variables must have their device set: {op}")
