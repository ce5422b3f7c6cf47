"""From a plan to a program, and running it.

A program is the plan's nodes as instructions, each with the slots that it takes from and puts into. Where
no instruction is asynchronous, a step runs them in order in the caller's thread: no queue, no pool, no
locks but the variables'. Otherwise the executor counts unfinished inputs, keeps a ready queue and is woken
by the futures of asynchronous kernels.
"""

from __future__ import annotations

import queue
import time
from collections import deque
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
from thalweg.runtime.instructions import Instruction, RunAsync, RunCluster, RunKernel, RunNothing, outputs_of
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
        self._dependents, self._pending = self._edges()
        self._after: dict[int, tuple[list[int], list[int]]] = {}
        #: the commonest program: feeds straight into one cluster, its results fetched
        self.single = self._single(n_feeds)

    def _add(self, op: Operation, slots: dict[Tensor, int]) -> None:
        kind = op.type
        if kind == "_Arg":
            slots[op._outputs[0]] = op._attrs["index"]
            return
        if kind == "_Retval":
            tensor = op._inputs[0]
            only = len(tensor._consumers) == 1 and tensor._op._record.kernel.kind is not Kind.SOURCE
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
            self._template.append(op._attrs["value"] if kind == "Const" else Handle(op))
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

    def _mark_frees(self, n_feeds: int) -> None:
        """After the last use of a value nobody holds it, so its buffer is freed."""
        kept = {slot for slot, _ in self.results} | set(range(n_feeds))
        seen: set[int] = set()
        for instruction in reversed(self.instructions):
            frees = []
            for slot in dict.fromkeys(instruction.inputs):
                if slot not in seen and slot not in kept and self._template[slot] is None:
                    frees.append(slot)
                seen.add(slot)
            instruction.frees = tuple(frees)

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
            return [fetched(outputs[i], give, feeds) for i, (_, give) in enumerate(self.results)]
        values = self._template.copy()
        values[: len(feeds)] = feeds
        if self.is_async:
            self._run_async(values, step)
        else:
            self._run_in_order(values, step)
        return [fetched(values[slot], give, feeds) for slot, give in self.results]

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
                instruction.put(values, outputs_of(instruction.op, future.result()))
            elif step.stats is not None:
                _Run(self, values, step, i).go()
                return
            else:
                instruction.run(values, step)
            for slot in instruction.frees:
                values[slot] = None

    def pending_after(self, n: int) -> tuple[list[int], list[int]]:
        """Pending counts when the first n instructions have finished, and which others are ready then."""
        found = self._after.get(n)
        if found is None:
            pending = self._pending.copy()
            for i in range(n):
                for j in self._dependents[i]:
                    pending[j] -= 1
            found = pending, [i for i in range(n, len(pending)) if pending[i] == 0]
            self._after[n] = found
        return found


def _instructions_before(op: Operation, index: dict[Operation, int]) -> set[Operation]:
    """The operations with an instruction that op waits for, also through constants that wait for them."""
    found: set[Operation] = set()
    stack = [t._op for t in op._inputs] + op._control_inputs
    while stack:
        source = stack.pop()
        if source in index:
            found.add(source)
        else:
            stack.extend(source._control_inputs)
    return found


def fetched(value: Any, give: bool, feeds: Sequence[Any]) -> Any:
    """A fetched value as the caller gets it: his own, and a NumPy scalar where it has no dimensions.

    give: nothing else in the program uses the value.
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
        array = value
        flags = array.flags
        if not (give and flags.owndata and flags.writeable) or any(value is f for f in feeds):
            array = np.array(value)
    return array if array.ndim else array[()]


class _Run:
    """One step of a program with asynchronous kernels: pending counts and a ready queue.

    The first n instructions have finished; `first` is the future of instruction n, where it was started.
    """

    def __init__(self, program: Program, values: list[Any], step: Step, n: int, first: Any = None) -> None:
        self.program = program
        self.values = values
        self.step = step
        pending, ready = program.pending_after(n)
        self.pending = pending.copy()
        self.ready = deque(ready)
        #: asynchronous instructions under way, and since when
        self.running: dict[int, Any] = {}
        self.since: dict[int, int] = {}
        self.events: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        if first is not None:
            self.ready.remove(n)
            self._watch(n, first)

    def go(self) -> None:
        """Runs to the end, the first error, the deadline or cancellation."""
        remove = self.step.on_cancel(lambda: self.events.put(None))
        try:
            while self.ready or self.running:
                while self.ready:
                    self.step.check()
                    self._start(self.ready.popleft())
                if self.running:
                    self._wait()
        finally:
            remove()
            for future in self.running.values():
                future.cancel()

    def _start(self, i: int) -> None:
        instruction = self.program.instructions[i]
        stats = self.step.stats
        if isinstance(instruction, RunAsync):
            self.since[i] = time.time_ns()
            self._watch(i, instruction.start(self.values, self.step))
            return
        if stats is None:
            instruction.run(self.values, self.step)
        else:
            with stats.node(instruction.op, self.program.worker.device_name):
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
        instruction.put(self.values, outputs_of(instruction.op, self.running.pop(i).result()))
        if self.step.stats is not None and i in self.since:
            self.step.stats.add(instruction.op, self.program.worker.device_name, self.since[i])
        self._finished(i)

    def _finished(self, i: int) -> None:
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
