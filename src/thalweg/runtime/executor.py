"""From a plan to a program, and running it.

A program is the plan's nodes as instructions, each with the slots that it takes from and puts into. Where
no instruction is asynchronous, a step runs them in order in the caller's thread: no queue, no pool, no
locks but the variables'. Otherwise the executor counts unfinished inputs, keeps a ready queue and is woken
by the futures of asynchronous kernels.
"""

from __future__ import annotations

import queue
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from thalweg.base import errors
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import topological_order
from thalweg.kernel.convention import Kind
from thalweg.plan.pipeline import Plan
from thalweg.runtime.arrays import to_host
from thalweg.runtime.failures import op_error
from thalweg.runtime.instructions import Instruction, RunAsync, RunCluster, RunNothing, outputs_of
from thalweg.runtime.repeated import transfer_of
from thalweg.runtime.resources import Handle
from thalweg.runtime.sendrecv import RunRecv, RunSend, kernel_instruction
from thalweg.runtime.step import Step
from thalweg.runtime.waiting import waited_for, withdrawn
from thalweg.runtime.worker import Worker


class Program:
    """An executable plan. Immutable once made: concurrent steps share it."""

    def __init__(self, plan: Plan, n_feeds: int, n_fetches: int, worker: Worker) -> None:
        self.plan = plan
        self.worker = worker
        slots: dict[Tensor, int] = {}
        self._template: list[Any] = [None] * n_feeds
        self.results: list[tuple[int, bool]] = [(0, False)] * n_fetches
        self.instructions: list[Instruction] = []
        order = topological_order(plan.graph)
        for op in order:
            self._add(op, slots)
        self._mark_frees(n_feeds)
        self.is_async = any(i.is_async for i in self.instructions)
        if self.is_async:
            self._dependents, self._pending = self._edges()
            self._after: dict[int, tuple[list[int], list[int], Counter[int]]] = {}
        #: the commonest program: feeds straight into one cluster, its results fetched
        self.single = self._single(n_feeds)
        #: what steps that a thread runs over and over do at once
        self.transfer = (
            None if n_feeds or n_fetches else transfer_of(self.instructions, self._template, worker)
        )

    def _add(self, op: Operation, slots: dict[Tensor, int]) -> None:
        kind = op.type
        if kind == "_Arg":
            slots[op._outputs[0]] = op._attrs["index"]
            return
        if kind == "_Retval":
            tensor = op._inputs[0]
            # a kernel outside clusters may have passed on what somebody else still holds
            only = len(tensor._consumers) == 1 and tensor._op._record.kernel.kind is Kind.CLUSTER
            self.results[op._attrs["index"]] = (slots[tensor], only)
            return
        first = len(self._template)
        kernel = op._record.kernel
        if kernel is None:
            raise errors.UnimplementedError(
                None, op, f"{op.type} '{op._name}': no kernel is registered for this op"
            )
        for i, tensor in enumerate(op._outputs):
            slots[tensor] = first + i
        if kernel.kind is Kind.SOURCE:
            self._template.append(self._constant(op) if kind == "Const" else Handle(op))
            return
        self._template.extend([None] * len(op._outputs))
        inputs = [slots[t] for t in op._inputs]
        keys = self.plan.state.get(op, {})
        instruction: Instruction
        if kernel.kind is Kind.CLUSTER:
            instruction = RunCluster(op, inputs, first, self.worker)
        elif kernel.kind is Kind.NOTHING:
            instruction = RunNothing(op, inputs, first)
        elif kernel.kind is Kind.ASYNC:
            instruction = RunAsync(op, inputs, first, self.worker)
        elif kernel.kind is Kind.SEND:
            instruction = RunSend(op, inputs, first)
        elif kernel.kind is Kind.RECV:
            instruction = RunRecv(op, inputs, first, self.worker)
        else:
            instruction = kernel_instruction(op, inputs, first, self.worker, keys)
        self.instructions.append(instruction)

    def _constant(self, op: Operation) -> Any:
        """A Const node's value, on the device where clusters take it: it doesn't go there in every step."""
        value = op._attrs["value"]
        on_device = any(user._record.kernel.kind is Kind.CLUSTER for user in op._outputs[0]._consumers)
        return self.worker.constant(value, self.worker.device_of(op)) if on_device else value

    def _mark_frees(self, n_feeds: int) -> None:
        """After the last use of a value nobody holds it, so its buffer is freed."""
        kept = {slot for slot, _ in self.results} | set(range(n_feeds))
        seen: set[int] = set()
        for instruction in reversed(self.instructions):
            slots = [s for s in dict.fromkeys(instruction.inputs) if s not in kept]
            instruction.freeable = tuple(s for s in slots if self._template[s] is None)
            instruction.frees = tuple(s for s in instruction.freeable if s not in seen)
            seen.update(slots)

    def _edges(self) -> tuple[list[list[int]], list[int]]:
        """For the ready queue: who waits for each instruction, and for how many each waits."""
        index = {instruction.op: i for i, instruction in enumerate(self.instructions)}
        dependents: list[list[int]] = [[] for _ in self.instructions]
        pending = [0] * len(self.instructions)
        for i, instruction in enumerate(self.instructions):
            for source in _instructions_before(instruction.op, index):
                dependents[index[source]].append(i)
                pending[i] += 1
        return dependents, pending

    def _single(self, n_feeds: int) -> RunCluster | None:
        if len(self.instructions) != 1 or not isinstance(self.instructions[0], RunCluster):
            return None
        only = self.instructions[0]
        direct = only.inputs == list(range(n_feeds)) and not only.runner.body.static_args
        results = [slot - only.first_output for slot, _ in self.results]
        in_order = results == list(range(len(only.op._outputs)))
        return only if direct and in_order else None

    @property
    def waits_first(self) -> bool:
        """Whether nothing can be done before a message from another partition comes."""
        if not self.is_async:
            return False
        ready = self.state_after(0)[1]
        return bool(ready) and all(isinstance(self.instructions[i], RunRecv) for i in ready)

    def part(self, feeds: Sequence[Any], step: Step, notify: Callable[[], None]) -> Part:
        """A step of this program as one of several partitions."""
        return Part(self, feeds, step, notify)

    def run(self, feeds: Sequence[Any], step: Step) -> list[Any]:
        """Runs a step. feeds: one np.ndarray (or jax.Array) per feed, of the right dtype. Returns one
        np.ndarray, NumPy scalar or bytes per fetch; each belongs to the caller."""
        single = self.single
        if single is not None and step.stats is None:
            if step.deadline is not None:
                step.check()
            outputs = single.runner.run(list(feeds), step)
            return [fetched(outputs[i], give) for i, (_, give) in enumerate(self.results)]
        values = self._template.copy()
        values[: len(feeds)] = feeds
        if self.is_async:
            self._run_async(values, step)
        else:
            self._run_in_order(values, step)
        return [fetched(values[slot], give) for slot, give in self.results]

    def _run_in_order(self, values: list[Any], step: Step) -> None:
        watched = step.deadline is not None
        stats = step.stats
        for instruction in self.instructions:
            if watched or step.cancelled:
                step.check()
            if stats is None:
                instruction.run(values, step)
            else:
                instruction.traced(values, step)
            for slot in instruction.frees:
                values[slot] = None

    def _run_async(self, values: list[Any], step: Step) -> None:
        """In order while nothing has to be waited for; what is left then by pending counts."""
        watched = step.deadline is not None
        for i, instruction in enumerate(self.instructions):
            if watched or step.cancelled:
                step.check()
            if isinstance(instruction, RunAsync) and step.stats is None:
                future = instruction.start(values, step)
                if not future.done():
                    _Run(self, values, step, i, future).go()
                    return
                instruction.put(values, outputs_of(instruction.op, result_of(future, instruction.op)))
            elif step.stats is not None:
                _Run(self, values, step, i).go()
                return
            else:
                instruction.run(values, step)
            for slot in instruction.frees:
                values[slot] = None

    def state_after(self, n: int) -> tuple[list[int], list[int], Counter[int]]:
        """When the first n instructions have finished: pending counts, what is ready, readers by slot."""
        found = self._after.get(n)
        if found is None:
            pending = self._pending.copy()
            for i in range(n):
                for j in self._dependents[i]:
                    pending[j] -= 1
            readers = Counter(slot for i in self.instructions[n:] for slot in i.freeable)
            found = pending, [i for i in range(n, len(pending)) if pending[i] == 0], readers
            self._after[n] = found
        return found


def _instructions_before(op: Operation, index: dict[Operation, int]) -> set[Operation]:
    """The operations with an instruction that op waits for, also through constants that wait for them."""
    found: set[Operation] = set()
    passed: set[Operation] = set()
    stack = [t._op for t in op._inputs] + op._control_inputs
    while stack:
        source = stack.pop()
        if source in index:
            found.add(source)
        elif source not in passed:
            passed.add(source)
            stack.extend(source._control_inputs)
    return found


def fetched(value: Any, give: bool) -> Any:
    """A fetched value as the caller gets it: his own, and a NumPy scalar where it has no dimensions.

    give: nobody else holds the value.
    """
    if isinstance(value, jax.Array):
        array = to_host(value, give=give)
    elif isinstance(value, Handle):
        raise errors.UnimplementedError(
            None, value.op, f"'{value.op._name}' is a handle: fetch a value that is read through it"
        )
    elif isinstance(value, np.generic):
        return value
    else:
        try:
            array = np.array(value)
        except MemoryError as e:  # one number may stand for terabytes of equal ones
            raise errors.ResourceExhaustedError(None, None, f"a fetched value: {e}") from e
    return array if array.ndim else array[()]


def result_of(future: Any, op: Operation) -> Any:
    """What an asynchronous kernel gave. Its error is one of tf.errors, and names the node."""
    try:
        return future.result()
    except errors.OpError:
        raise
    except Exception as e:
        raise op_error(e, op) from e


#: nanoseconds of work that are worth waking another thread for what else could run
WORTH_SHARING = 100_000


def run_shared(instruction: Instruction, values: list[Any], step: Step) -> None:
    """Runs an instruction of a partition; where that takes long, other threads get the other partitions."""
    if step.stats is not None:
        share_traced(step)
        instruction.run(values, step)
        return
    if instruction.cost > WORTH_SHARING and step.parts.ready:
        step.parts.share()
    start = time.perf_counter_ns()
    instruction.run(values, step)
    # on a busy machine a thread may be held up in anything: what takes longer once doesn't count for much
    instruction.cost = min(time.perf_counter_ns() - start, instruction.cost * 5 // 4 + 1000)


def share_traced(step: Step) -> None:
    """Before an instruction of a traced step: it waits for its results; other partitions go on meanwhile."""
    if step.parts is not None and step.parts.ready:
        step.parts.share()


class Part:
    """One step of a program that is one of several partitions: it never waits.

    notify: called, in any thread, when there is something to `advance`.
    """

    def __init__(
        self, program: Program, feeds: Sequence[Any], step: Step, notify: Callable[[], None]
    ) -> None:
        self.finished = False
        self._program = program
        self._step = step
        self._notify = notify
        self._values = program._template.copy()
        self._values[: len(feeds)] = feeds
        self._run: _Run | None = None

    def advance(self) -> None:
        """Runs what can be run; `finished` then tells whether that was all. In one thread at a time."""
        if self._run is None:
            self._run = self._in_order()
        if self._run is not None:
            self._run.advance()
        self.finished = self._run is None or not self._run.running

    def _in_order(self) -> _Run | None:
        """Runs instructions in order, to the end or to the first that has to wait."""
        step, values = self._step, self._values
        watched, traced = step.deadline is not None, step.stats is not None
        for i, instruction in enumerate(self._program.instructions):
            if watched or step._cancelled is not None:
                step.check()
            if isinstance(instruction, RunAsync):
                if traced:
                    return _Run(self._program, values, step, i, None, self._notify)
                future = instruction.start(values, step)
                if not future.done():
                    return _Run(self._program, values, step, i, future, self._notify)
                instruction.put(values, outputs_of(instruction.op, result_of(future, instruction.op)))
            elif traced:
                share_traced(step)
                instruction.traced(values, step)
            else:
                run_shared(instruction, values, step)
            for slot in instruction.frees:
                values[slot] = None
        return None

    def waiting(self) -> list[tuple[Any, Operation]]:
        """What it waits for: futures, and whose they are. Not while it advances."""
        if self._run is None:
            return []
        return [(f, self._program.instructions[i].op) for i, f in self._run.running.items()]

    def result(self, i: int) -> Any:
        """Fetch number i, which must be one of its own."""
        slot, give = self._program.results[i]
        return fetched(self._values[slot], give)

    def drop(self) -> None:
        """Ends what is under way, and lets go of all values."""
        if self._run is not None:
            for future in self._run.running.values():
                future.cancel()
        self._run = None
        self._values.clear()


class _Run:
    """One step of a program with asynchronous kernels: pending counts and a ready queue.

    The first n instructions have finished; `first` is the future of instruction n, where it was started.
    """

    def __init__(
        self,
        program: Program,
        values: list[Any],
        step: Step,
        n: int,
        first: Any = None,
        notify: Callable[[], None] | None = None,
    ) -> None:
        """notify: called when an event has come, where nobody waits for it in `go`."""
        self.program = program
        self.values = values
        self.step = step
        self.notify = notify
        pending, ready, readers = program.state_after(n)
        self.pending = pending.copy()
        self.readers = readers.copy()
        self.ready = deque(ready)
        #: asynchronous instructions under way
        self.running: dict[int, Any] = {}
        self.started: dict[int, int] = {}  # when, in nanoseconds, where the step is traced
        self.events: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        if first is not None:
            self.ready.remove(n)
            if step.stats is not None:
                self.started[n] = time.time_ns()
            self._watch(n, first)

    def go(self) -> None:
        """Runs to the end, the first error, the deadline or cancellation.

        Where it ends early, the step is cancelled, so that the kernels under way give up.
        """
        remove = self.step.on_cancel(lambda: self.events.put(None))
        try:
            while self.ready or self.running:
                while self.ready:
                    self.step.check()
                    self._start(self.ready.popleft())
                if self.running:
                    self._wait()
        except BaseException as e:
            self.step.cancel(errors.CancelledError(None, None, f"Another node of the step failed: {e}"))
            raise
        finally:
            remove()
            for future in self.running.values():
                future.cancel()

    def advance(self) -> None:
        """Runs what can be run without waiting."""
        while True:
            while self.ready:
                self.step.check()
                self._start(self.ready.popleft())
            try:
                event = self.events.get_nowait()
            except queue.Empty:
                return
            if event in self.running:
                self._take(event)

    def _start(self, i: int) -> None:
        instruction = self.program.instructions[i]
        if self.step.stats is not None:
            self.started[i] = time.time_ns()
        if isinstance(instruction, RunAsync):
            self._watch(i, instruction.start(self.values, self.step))
            return
        if self.notify is None:
            instruction.run(self.values, self.step)
        else:
            run_shared(instruction, self.values, self.step)
        self._finished(i)

    def _watch(self, i: int, future: Any) -> None:
        self.running[i] = future
        if future.done():
            self._take(i)
        else:
            future.add_done_callback(lambda _: self._event(i))

    def _event(self, i: int) -> None:
        self.events.put(i)
        if self.notify is not None:
            self.notify()

    def _take(self, i: int) -> None:
        """The result of an asynchronous instruction that has ended."""
        instruction = self.program.instructions[i]
        instruction.put(
            self.values, outputs_of(instruction.op, result_of(self.running.pop(i), instruction.op))
        )
        self._finished(i)

    def _finished(self, i: int) -> None:
        instruction = self.program.instructions[i]
        if self.step.stats is not None:
            self.step.stats.record(instruction.op, self.started[i], instruction.outputs(self.values))
        for slot in instruction.freeable:
            self.readers[slot] -= 1
            if self.readers[slot] == 0:
                self.values[slot] = None
        for j in self.program._dependents[i]:
            self.pending[j] -= 1
            if self.pending[j] == 0:
                self.ready.append(j)

    def _wait(self) -> None:
        try:
            event = self.events.get(timeout=self.step.remaining())
        except queue.Empty:
            self._time_out()
            return
        if event is None:
            self.step.check()
        elif event in self.running:
            self._take(event)

    def _time_out(self) -> None:
        """DeadlineExceededError, unless all that was waited for has just ended."""
        ops = {i: self.program.instructions[i].op for i in self.running}
        pairs = [(self.running[i], ops[i]) for i in sorted(ops) if not self.running[i].done()]
        message = waited_for(pairs)  # before they are cancelled
        if withdrawn([future for future, _ in pairs]):
            raise errors.DeadlineExceededError(None, pairs[0][1], f"Timed out waiting for {message}")
        for i in list(self.running):
            self._take(i)
