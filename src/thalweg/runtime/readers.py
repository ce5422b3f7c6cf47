"""Readers as state machines: a request for records comes in, file names come out of a queue, records go out.

Requests are served in order of arrival, one at a time. One that needs a file name waits for the queue without
a thread; when the name comes, the thread that brought it reads on. Source: TensorFlow's reader_base.cc.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from thalweg.base import dtypes
from thalweg.base.errors import (
    CancelledError,
    InternalError,
    InvalidArgumentError,
    OpError,
    UnimplementedError,
)
from thalweg.formats.protos.example_pb2 import ReaderBaseState
from thalweg.formats.record_sources import Source
from thalweg.runtime.queues import Queue
from thalweg.runtime.waiting import Resource, Wait


class _Request(Wait):
    """Something that a reader is to do: read n records (-1: one, not as a batch), or call a function."""

    __slots__ = ("call", "keys", "n", "queue", "values", "waits_for")

    def __init__(
        self, reader: Reader, op: Any, queue: Queue | None, n: int, call: Callable[[], Any] | None = None
    ) -> None:
        super().__init__(reader, op)
        self.queue = queue
        self.n = n
        self.call = call
        self.keys: list[bytes] = []
        self.values: list[bytes] = []
        #: the dequeue that it waits for
        self.waits_for: Any = None

    def outputs(self) -> list[np.ndarray]:
        """Keys and values."""
        if self.n < 0:
            return [_scalar(self.keys[0]), _scalar(self.values[0])]
        result = [np.empty(len(self.keys), object), np.empty(len(self.keys), object)]
        result[0][:], result[1][:] = self.keys, self.values
        return result


def _scalar(value: bytes) -> np.ndarray:
    result = np.empty((), object)
    result[()] = value
    return result


class Reader(Resource):
    """Gives the records of files, whose names come from queues. Thread-safe.

    open_source: makes the source of a file from its name. keeps_state: between files its state can be saved.
    """

    def __init__(
        self, kind: str, name: str, open_source: Callable[[bytes], Source], keeps_state: bool = False
    ) -> None:
        super().__init__(name)
        self.kind = kind
        self.records_produced = 0
        self.work_started = 0
        self.work_finished = 0
        self._work = b""
        self._source: Source | None = None
        self._open_source = open_source
        self._keeps_state = keeps_state
        self._requests: deque[_Request] = deque()
        self._is_busy = False

    # --- what kernels call ---

    def read(self, op: Any, queue: Queue) -> Wait:
        """One record: key and value. OutOfRangeError where the queue is closed and has no more names."""
        return self._ask(_Request(self, op, _checked(op, queue), -1))

    def read_up_to(self, op: Any, queue: Queue, n: int) -> Wait:
        """Up to n records of one file; at least one, for n > 0."""
        return self._ask(_Request(self, op, _checked(op, queue), max(n, 0)))

    def serialize_state(self, op: Any) -> Wait:
        """The state as a string. UnimplementedError where the reader is of a kind that can't."""
        return self._ask(_Request(self, op, None, 0, lambda: _scalar(self._state(op))))

    def restore_state(self, op: Any, state: bytes) -> Wait:
        """Goes on from a state."""
        return self._ask(_Request(self, op, None, 0, lambda: self._restore(op, state)))

    def reset(self, op: Any) -> Wait:
        """Goes back to the start: no file is open, nothing was read."""
        return self._ask(_Request(self, op, None, 0, self._reset))

    # --- the machine: only the thread that made it busy runs it ---

    def _ask(self, request: _Request) -> Wait:
        with self.lock:
            self._requests.append(request)
            if self._is_busy:
                return request
            self._is_busy = True
        self._serve()
        return request

    def _serve(self) -> None:
        """Serves requests until there are none, or one waits for a queue."""
        while True:
            with self.lock:
                if not self._requests:
                    self._is_busy = False
                    return
                request = self._requests[0]
            result, error = None, None
            try:
                if request.call is not None:
                    result = request.call()
                elif self._read(request):
                    result = request.outputs()
                else:
                    request.waits_for.add_done_callback(self._name_came)
                    return
            except OpError as e:
                error = e if e.op is not None else type(e)(None, request.op, e.message)
            except Exception as e:  # whatever it is must not leave the reader busy
                error = InternalError(None, request.op, f"{type(e).__name__}: {e}")
            self._end(request, result, error)

    def _end(self, request: _Request, result: Any, error: OpError | None) -> None:
        with self.lock:
            if request.done():  # cancelled meanwhile
                return
            self._requests.popleft()
            request.end(result, error)
        request.tell()

    def _read(self, request: _Request) -> bool:
        """Reads for a request; False where it must wait for a file name."""
        wanted = 1 if request.n < 0 else request.n
        while len(request.keys) < wanted:
            if self._source is None and not self._next_file(request):
                return False
            keys, values = self._source.read_many(wanted - len(request.keys))  # type: ignore[union-attr]
            request.keys += keys
            request.values += values
            self.records_produced += len(keys)
            if keys and not self._is_at_once():
                continue
            self._close()
            self.work_finished = self.work_started
            if request.keys:
                break
        return True

    def _is_at_once(self) -> bool:
        """Whether a file is one record: then it ends with it."""
        return self._keeps_state

    def _next_file(self, request: _Request) -> bool:
        """Opens the next file; False where its name isn't there yet."""
        wait, request.waits_for = request.waits_for, None
        if wait is None:
            self._work = b""
            wait = request.queue.dequeue(request.op)  # type: ignore[union-attr]
            if not wait.done():
                request.waits_for = wait
                return False
        self._work = _name(request.op, wait.result())
        self._source = self._open_source(self._work)
        self.work_started += 1
        return True

    def _name_came(self, wait: Any) -> None:
        """A dequeue has ended: with a name, an error, or because its request was cancelled."""
        with self.lock:
            request = self._requests[0] if self._requests else None
            is_wanted = request is not None and request.waits_for is wait
        if not is_wanted:
            self._keep(wait)
        self._serve()

    def _keep(self, wait: Any) -> None:
        """A name for a request that has gone: its file is the next one."""
        try:
            work = _name(wait.op, wait.result())
            self._source = self._open_source(work)
        except OpError:
            return
        self._work = work
        self.work_started += 1

    def _close(self) -> None:
        if self._source is not None:
            self._source.close()
            self._source = None

    # --- cancelling ---

    def cancel(self, wait: Wait, take_back: bool = True) -> bool:
        """See Wait.cancel. Records that were read are lost to it."""
        assert isinstance(wait, _Request)
        with self.lock:
            if wait.done():
                return False
            self._requests.remove(wait)
            dequeue = wait.waits_for
            wait.fail(CancelledError, f"{wait.op.type} '{wait.op.name}': the operation was cancelled")
        wait.tell()
        if dequeue is not None:
            dequeue.withdraw()
        return True

    def describe(self, wait: Wait) -> str:
        """See Wait.describe."""
        assert isinstance(wait, _Request)
        dequeue = wait.waits_for
        if dequeue is not None:
            return f"reader '{self.name}', which waits for {dequeue.describe()}"
        return f"reader '{self.name}' to serve the requests before it"

    # --- state ---

    def _state(self, op: Any) -> bytes:
        if not self._keeps_state:
            raise UnimplementedError(None, op, "Reader SerializeState")
        state = ReaderBaseState(
            work_started=self.work_started,
            work_finished=self.work_finished,
            num_records_produced=self.records_produced,
            current_work=self._work,
        )
        return state.SerializeToString()

    def _restore(self, op: Any, data: bytes) -> None:
        if not self._keeps_state:
            raise UnimplementedError(None, op, "Reader RestoreState")
        state = ReaderBaseState()
        try:
            state.ParseFromString(data)
        except DecodeError:
            message = f"Could not parse state for {self.kind} '{self.name}': {data[:200]!r}"
            raise InvalidArgumentError(None, op, message) from None
        started, finished = state.work_started, state.work_finished
        if min(started, finished, state.num_records_produced) < 0:
            message = f"Unexpected negative value when restoring in {self.kind} '{self.name}': {state}"
            raise InvalidArgumentError(None, op, message)
        if not finished <= started <= finished + 1:
            message = (
                f"Inconsistent work started vs. finished when restoring in {self.kind} '{self.name}': {state}"
            )
            raise InvalidArgumentError(None, op, message)
        self._close()
        if started > finished:
            self._source = self._open_source(state.current_work)
        self.work_started, self.work_finished = started, finished
        self.records_produced = state.num_records_produced
        self._work = state.current_work

    def _reset(self) -> None:
        self._close()
        self.work_started = self.work_finished = self.records_produced = 0
        self._work = b""


def _checked(op: Any, queue: Queue) -> Queue:
    if not isinstance(queue, Queue):
        raise InvalidArgumentError(None, op, "a reader takes file names from a queue")
    if len(queue.dtypes) != 1:
        raise InvalidArgumentError(None, op, "Expected single component queue")
    if queue.dtypes[0] != dtypes.string:
        raise InvalidArgumentError(None, op, "Expected queue with single string component")
    return queue


def _name(op: Any, components: Any) -> bytes:
    array = np.asarray(components[0], object)
    if array.size != 1:
        raise InvalidArgumentError(None, op, "Expected to dequeue a one-element string tensor")
    name: bytes = array.reshape(()).item()
    return name
