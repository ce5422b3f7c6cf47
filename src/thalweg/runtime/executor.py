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
from collections.abc import Sequence
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
from thalweg.runtime.instructions import Instruction, RunAsync, RunCluster, RunKernel, RunNothing, outputs_of
from thalweg.runtime.repeated import transfer_of
from thalweg.runtime.resources import Handle
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
        else:
            instruction = RunKernel(op, inputs, first, self.worker, keys)
        self.instructions.append(instruction)

    def _constant(self, op: Operation) -> Any:
        """A Const node's value, on the device where clusters take it: it doesn't go there in every step."""
        value = op._attrs["value"]
        on_device = any(user._record.kernel.kind is Kind.CLUSTER for user in op._outputs[0]._consumers)
        return self.worker.constant(value) if on_device else value

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
                with stats.node(instruction.op, self.worker.device_name):
                    instruction.run(values, step)
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
        array = np.array(value)
    return array if array.ndim else array[()]


def result_of(future: Any, op: Operation) -> Any:
    """What an asynchronous kernel gave. Its error is one of tf.errors, and names the node."""
    try:
        return future.result()
    except errors.OpError:
        raise
    except Exception as e:
        raise op_error(e, op) from e


class _Run:
    """One step of a program with asynchronous kernels: pending counts and a ready queue.

    The first n instructions have finished; `first` is the future of instruction n, where it was started.
    """

    def __init__(self, program: Program, values: list[Any], step: Step, n: int, first: Any = None) -> None:
        self.program = program
        self.values = values
        self.step = step
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

    def _start(self, i: int) -> None:
        instruction = self.program.instructions[i]
        if self.step.stats is not None:
            self.started[i] = time.time_ns()
        if isinstance(instruction, RunAsync):
            self._watch(i, instruction.start(self.values, self.step))
            return
        instruction.run(self.values, self.step)
        self._finished(i)

    def _watch(self, i: int, future: Any) -> None:
        self.running[i] = future
        if future.done():
            self._take(i)
        else:
            future.add_done_callback(lambda _: self.events.put(i))

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
            self.step.stats.record(instruction.op, self.program.worker.device_name, self.started[i])
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
