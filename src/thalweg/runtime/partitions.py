"""Steps of several partitions in one process.

Each partition is a program of its own that never waits: it runs what it can, and is called again when
something has come. So a partition needs no thread of its own. The caller's thread runs one partition after
another; where one is about to work for long and another could go on, a thread of the pool (or the caller's,
where that sleeps) takes it. The first error ends the step everywhere.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from thalweg.base import errors
from thalweg.graph.operation import Operation
from thalweg.kernel.convention import Kind
from thalweg.plan.pipeline import Plan
from thalweg.runtime.dynamic import DynamicPart, DynamicProgram
from thalweg.runtime.executor import Part, Program
from thalweg.runtime.rendezvous import Rendezvous
from thalweg.runtime.step import Step
from thalweg.runtime.waiting import waited_for
from thalweg.runtime.worker import Worker

#: how much of what is waited for an error tells
SHOWN = 4

#: what a partition does: it waits for its first message; for events; for a thread; it runs; it runs, and
#: something has come meanwhile; it has ended
_UNBEGUN, _IDLE, _QUEUED, _RUNNING, _AGAIN, _OVER = range(6)


class PartitionedProgram:
    """A plan of several partitions. Immutable once made: concurrent steps share it."""

    def __init__(self, plan: Plan, n_feeds: int, n_fetches: int, worker: Worker) -> None:
        self.plan = plan
        self.worker = worker
        self.n_fetches = n_fetches
        self.devices = [part.device for part in plan.partitions]
        self.programs: list[Program | DynamicProgram] = []
        #: per partition the numbers of the fetches that it computes
        self.fetches: list[list[int]] = []
        for part in plan.partitions:
            own = replace(plan, graph=part.graph, state=part.state, dynamic=part.dynamic, partitions=[part])
            self.programs.append(
                DynamicProgram(own, n_feeds, n_fetches, worker, is_part=True)
                if part.dynamic
                else Program(own, n_feeds, n_fetches, worker)
            )
            self.fetches.append([op._attrs["index"] for op in part.graph._ops if op.type == "_Retval"])
        self.waits_first = [program.waits_first for program in self.programs]

    def run(self, feeds: Sequence[Any], step: Step) -> list[Any]:
        """Runs a step; see Program.run. Its rendezvous is empty afterwards."""
        return _Run(self, feeds, step).go()


AnyProgram = Program | DynamicProgram | PartitionedProgram


def make_program(plan: Plan, n_feeds: int, n_fetches: int, worker: Worker) -> AnyProgram:
    """The program of a plan."""
    kinds = (Kind.SEND, Kind.RECV)
    kernels = (op._record.kernel for op in plan.graph._ops)
    if len(plan.partitions) > 1 or any(k is not None and k.kind in kinds for k in kernels):
        return PartitionedProgram(plan, n_feeds, n_fetches, worker)
    return (DynamicProgram if plan.dynamic else Program)(plan, n_feeds, n_fetches, worker)


class _Run:
    """One step. `step.parts` while it runs."""

    def __init__(self, program: PartitionedProgram, feeds: Sequence[Any], step: Step) -> None:
        self.program = program
        self.step = step
        self.rendezvous = step.rendezvous = Rendezvous()
        self._lock = threading.Lock()
        self._parts: list[Part | DynamicPart] = [
            p.part(feeds, step, partial(self._notify, i)) for i, p in enumerate(program.programs)
        ]
        self._states = [_UNBEGUN] * len(self._parts)
        #: the partitions that want a thread
        self.ready: deque[int] = deque()
        self._unfinished = len(self._parts)
        #: threads that are in a partition, and those of the pool that were asked and haven't come yet
        self._inside: set[int] = set()
        self._coming = 0
        self._asleep = False
        self._wake_ups: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        step.parts = self

    # ---- the caller's thread -------------------------------------------------------------------------------

    def go(self) -> list[Any]:
        """Runs to the end, the first error, the deadline or cancellation."""
        remove = self.step.on_cancel(self._wake)
        try:
            self._begin()
            while True:
                i = self._next()
                if i is not None:
                    self._work(i)
                elif not self._wait():
                    break
            if self._error is not None:
                raise self._error
            self._check_all_received()
            return self._results()
        except BaseException as e:
            self._inside.discard(threading.get_ident())  # KeyboardInterrupt comes anywhere
            self._fail(e)
            self._settle()
            raise
        finally:
            remove()
            for part in self._parts:
                part.drop()
            self._parts.clear()
            self.step.parts = None

    def _begin(self) -> None:
        for i, waits in enumerate(self.program.waits_first):
            if not waits:
                self._states[i] = _QUEUED
                self.ready.append(i)

    def _wait(self) -> bool:
        """Sleeps until there is something to do. False when the step is over."""
        with self._lock:
            if self._unfinished == 0 and not self._inside:
                return False
            if self.ready:
                return True
            stuck = None
            if not self._inside:
                if self._error is not None:
                    return False
                if self._begin_rest():
                    return True
                stuck = self._stuck()
            sleep = self._asleep = stuck is None and self.step._cancelled is None
        if sleep:
            try:
                self._wake_ups.get(timeout=self.step.remaining() if self._error is None else None)
            except queue.Empty:
                self._time_out()
            self._asleep = False
        if stuck is not None:
            self._fail(stuck)
        elif self.step._cancelled is not None:
            self._fail(self.step._cancelled)
            self._settle()
        return True

    def _begin_rest(self) -> bool:
        """Starts what has waited for its first message, when nothing else is left to send one."""
        rest = [i for i, state in enumerate(self._states) if state == _UNBEGUN]
        for i in rest:
            self._states[i] = _QUEUED
            self.ready.append(i)
        return bool(rest)

    def _stuck(self) -> errors.OpError | None:
        """The error where all that is left waits for messages: there is nobody to send one. With the lock."""
        pairs = [pair for part in self._parts for pair in part.waiting()]
        if not pairs or any(f.done() or not self._is_message(f) for f, _ in pairs):
            return None
        what = _told(pairs)
        return errors.InternalError(None, pairs[0][1], f"Nothing is left to send what is waited for: {what}")

    def _is_message(self, future: Any) -> bool:
        return getattr(future, "resource", None) is self.rendezvous

    def _time_out(self) -> None:
        with self._lock:
            idle = [p for p, state in zip(self._parts, self._states, strict=True) if state == _IDLE]
            pairs = [pair for part in idle for pair in part.waiting() if not pair[0].done()]
        # what waits for another partition comes last: it isn't the cause
        pairs.sort(key=lambda pair: self._is_message(pair[0]))
        what = _told(pairs) if pairs else "the step to finish"
        op = pairs[0][1] if pairs else None
        self._fail(errors.DeadlineExceededError(None, op, f"Timed out waiting for {what}"))

    def _settle(self) -> None:
        """Waits until no thread is in a partition."""
        while True:
            with self._lock:
                if not self._inside:
                    return
                self._asleep = True
            self._wake_ups.get()

    def _check_all_received(self) -> None:
        left = self.rendezvous.unreceived()
        if left:
            told = errors.some(left, SHOWN)
            raise errors.InternalError(None, None, f"Sent, but never received: {told}")

    def _results(self) -> list[Any]:
        results: list[Any] = [None] * self.program.n_fetches
        for part, numbers in zip(self._parts, self.program.fetches, strict=True):
            for i in numbers:
                results[i] = part.result(i)
        return results

    # ---- any thread ----------------------------------------------------------------------------------------

    def share(self) -> None:
        """Called before a partition works for long: another thread may take what is ready."""
        with self._lock:
            if len(self.ready) <= self._coming:
                return
            wake, self._asleep = self._asleep, False
            self._coming += not wake
        if wake:
            self._wake_ups.put(None)
        elif not self.program.worker.threads.submit(self._help):
            with self._lock:
                self._coming -= 1

    def arrived(self, device: str) -> None:
        """Nobody waited for a message to this device: maybe its partition hasn't begun."""
        states = self._states
        for i, name in enumerate(self.program.devices):
            if name == device and states[i] == _UNBEGUN:
                with self._lock:
                    if states[i] == _UNBEGUN:
                        states[i] = _QUEUED
                        self.ready.append(i)

    def _notify(self, i: int) -> None:
        """Something has come for a partition."""
        with self._lock:
            state = self._states[i]
            if state == _RUNNING:
                self._states[i] = _AGAIN
            if state != _IDLE or self._error is not None:
                return
            self._states[i] = _QUEUED
            self.ready.append(i)
            if threading.get_ident() in self._inside:
                return  # it looks by itself, before it works for long and when it is done
            wake, self._asleep = self._asleep, False
            self._coming += not wake
        if wake:
            self._wake_ups.put(None)
        elif not self.program.worker.threads.submit(self._help):
            with self._lock:
                self._coming -= 1

    def _help(self) -> None:
        """A thread of the pool: partitions as long as there are ready ones."""
        with self._lock:
            self._coming -= 1
        while (i := self._next()) is not None:
            self._work(i)

    def _next(self) -> int | None:
        """A partition for this thread to run."""
        with self._lock:
            if self._error is not None:
                self.ready.clear()
            if not self.ready:
                return None
            i = self.ready.popleft()
            self._states[i] = _RUNNING
            self._inside.add(threading.get_ident())
            return i

    def _work(self, i: int) -> None:
        part = self._parts[i]
        error: BaseException | None = None
        try:
            part.advance()
        except BaseException as e:
            error = e
        if error is not None:
            self._fail(error)
        with self._lock:
            self._inside.discard(threading.get_ident())
            if error is not None or part.finished:
                self._states[i] = _OVER
                self._unfinished -= 1
            elif self._states[i] == _AGAIN:
                self._states[i] = _QUEUED
                self.ready.append(i)
            else:
                self._states[i] = _IDLE
            wake = self._asleep and (not self._inside or bool(self.ready))
            if wake:
                self._asleep = False
        if wake:
            self._wake_ups.put(None)

    def _fail(self, error: BaseException) -> None:
        """The first error ends the step everywhere."""
        with self._lock:
            if self._error is None:
                self._error = error
            error = self._error
        why = errors.CancelledError(None, None, f"Another node of the step failed: {error}")
        self.step.cancel(why)
        self.rendezvous.abort(why)

    def _wake(self) -> None:
        """The step was cancelled."""
        with self._lock:
            wake, self._asleep = self._asleep, False
        if wake:
            self._wake_ups.put(None)


def _told(pairs: list[tuple[Any, Operation]]) -> str:
    """What is waited for; of many, the first."""
    more = len(pairs) - SHOWN
    return waited_for(pairs[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
