"""Threads that keep queues filled. Source: TensorFlow's queue_runner_impl.py."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

from thalweg.base.errors import (
    OpError,
    OutOfRangeError,
    error_code_from_exception_type,
    exception_type_from_error_code,
)
from thalweg.formats.protos import saved_model_pb2
from thalweg.graph.convert import get_default_graph
from thalweg.graph.scope_stacks import default_sessions
from thalweg.library import framework, tf_logging
from thalweg.library.coordinator import Coordinator
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.proto_functions import (
    in_scope,
    prepend_name_scope,
    register_proto_function,
    strip_name_scope,
)


class QueueRunner:
    """Enqueue operations, each to be run in a thread of its own, over and over.

    close_op, cancel_op: close the queue without and with cancelling enqueues that wait.
    queue_closed_exception_types: errors that say that the input has ended: OutOfRangeError by default.
    """

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: tuple[type[OpError], ...] | None = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._runs_per_session: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._exceptions_raised: list[Exception] = []
        if queue_runner_def is not None:
            if queue or enqueue_ops:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._read(queue_runner_def, import_scope)
            return
        if not queue or not enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        kinds = queue_closed_exception_types
        if kinds is not None and (
            not isinstance(kinds, tuple) or not kinds or not all(issubclass(t, OpError) for t in kinds)
        ):
            raise TypeError(
                "queue_closed_exception_types, when provided, must be a tuple of tf.error types, but saw: "
                f"{kinds}"
            )
        self._queue = queue
        self._enqueue_ops = enqueue_ops
        self._close_op = queue.close() if close_op is None else close_op
        self._cancel_op = queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
        self._queue_closed_exception_types = kinds or (OutOfRangeError,)

    def _read(self, proto: Any, import_scope: str | None) -> None:
        """Takes what a QueueRunnerDef names from the default graph."""
        graph = get_default_graph()
        find = lambda name: graph.as_graph_element(prepend_name_scope(name, import_scope))
        self._queue = find(proto.queue_name)
        self._enqueue_ops = [find(name) for name in proto.enqueue_op_name]
        self._close_op = find(proto.close_op_name)
        self._cancel_op = find(proto.cancel_op_name)
        kinds = tuple(exception_type_from_error_code(c) for c in proto.queue_closed_exception_types)
        self._queue_closed_exception_types = kinds or (OutOfRangeError,)

    @property
    def queue(self) -> Any:
        """The queue."""
        return self._queue

    @property
    def enqueue_ops(self) -> Sequence[Any]:
        """The operations that fill it."""
        return self._enqueue_ops

    @property
    def close_op(self) -> Any:
        """The operation that closes it."""
        return self._close_op

    @property
    def cancel_op(self) -> Any:
        """The operation that closes it and cancels enqueues that wait."""
        return self._cancel_op

    @property
    def queue_closed_exception_types(self) -> tuple[type[OpError], ...]:
        """Errors that say that the input has ended."""
        return self._queue_closed_exception_types

    @property
    def exceptions_raised(self) -> list[Exception]:
        """What threads without a coordinator raised."""
        return self._exceptions_raised

    @property
    def name(self) -> str:
        """The name of the queue."""
        name: str = self._queue.name
        return name

    def _run(self, sess: Any, enqueue_op: Any, coord: Coordinator | None = None) -> None:
        """A thread's work: enqueues until the input ends, the coordinator stops, or there is an error."""
        counted = True
        try:
            enqueue = getattr(sess, "_repeated", sess.make_callable)(enqueue_op)
            while not (coord and coord.should_stop()):
                try:
                    enqueue()
                except self._queue_closed_exception_types:
                    counted = False
                    if self._one_less(sess) == 0:
                        _run_quietly(sess, self._close_op)
                    return
        except Exception as e:
            if coord:
                coord.request_stop(e)
                return
            tf_logging.error("Exception in QueueRunner: %s", e)
            with self._lock:
                self._exceptions_raised.append(e)
            raise
        finally:
            if counted:
                self._one_less(sess)

    def _one_less(self, sess: Any) -> int:
        with self._lock:
            self._runs_per_session[sess] -= 1
            return self._runs_per_session[sess]

    def _close_on_stop(self, sess: Any, cancel_op: Any, coord: Coordinator) -> None:
        coord.wait_for_stop()
        _run_quietly(sess, cancel_op)

    def create_threads(
        self, sess: Any, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """One thread per enqueue operation, and with coord one that closes the queue when it stops.

        No new threads where earlier ones for this session still run.
        """
        with self._lock:
            if self._runs_per_session.get(sess, 0) > 0:
                return []
            self._runs_per_session[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        prefix = f"QueueRunnerThread-{self.name}"
        threads = [
            threading.Thread(target=self._run, args=(sess, op, coord), name=f"{prefix}-{op.name}")
            for op in self._enqueue_ops
        ]
        if coord:
            args = (sess, self._cancel_op, coord)
            threads.append(
                threading.Thread(target=self._close_on_stop, args=args, name=f"{prefix}-close_on_stop")
            )
        for thread in threads:
            if coord:
                coord.register_thread(thread)
            if daemon:
                thread.daemon = True
            if start:
                thread.start()
        return threads

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The QueueRunnerDef; None for a queue outside of export_scope."""
        if not in_scope(self.name, export_scope):
            return None
        name = lambda element: strip_name_scope(element.name, export_scope)
        return saved_model_pb2.QueueRunnerDef(
            queue_name=name(self._queue),
            enqueue_op_name=[name(op) for op in self._enqueue_ops],
            close_op_name=name(self._close_op),
            cancel_op_name=name(self._cancel_op),
            queue_closed_exception_types=[
                error_code_from_exception_type(t) for t in self._queue_closed_exception_types
            ],
        )

    @staticmethod
    def from_proto(queue_runner_def: Any, import_scope: str | None = None) -> QueueRunner:
        """The QueueRunner that a QueueRunnerDef describes, over nodes of the default graph."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)


register_proto_function(
    GraphKeys.QUEUE_RUNNERS, saved_model_pb2.QueueRunnerDef, QueueRunner.to_proto, QueueRunner.from_proto
)


def _run_quietly(sess: Any, op: Any) -> None:
    """Closes a queue; that it is closed already, or the session is, doesn't matter here."""
    try:
        sess.run(op)
    except Exception as e:
        tf_logging.vlog(1, "Ignored exception: %s", e)


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a QueueRunner to those that start_queue_runners starts."""
    framework.add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Starts the threads of all QueueRunners of the default graph; returns them.

    sess: the default session where None; ValueError where there is none either.
    """
    if sess is None:
        sess = default_sessions.top()
        if sess is None:
            raise ValueError(
                "Cannot start queue runners: No default session is registered. Use `with "
                "sess.as_default()` or pass an explicit session to tf.start_queue_runners(sess=sess)"
            )
    if not (hasattr(sess, "run") and hasattr(sess, "make_callable")):
        if type(sess).__name__ in ("MonitoredSession", "SingularMonitoredSession"):
            return []
        raise TypeError(f"sess must be a `tf.Session` object. Given class: {type(sess)}")
    runners = framework.get_collection(collection)
    if not runners:
        tf_logging.warning(
            "`tf.train.start_queue_runners()` was called when no queue runners were defined. You can "
            "safely remove the call to this deprecated function."
        )
    with sess.graph.as_default():
        threads = []
        for runner in runners:
            threads += runner.create_threads(sess, coord=coord, daemon=daemon, start=start)
    return threads
