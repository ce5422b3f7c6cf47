"""Programs with control flow: the tagged-token machine (runtime.frames) and what it calls.

The caller's thread runs the machine; where only asynchronous kernels are left it sleeps until one of their
futures wakes it. The first error ends the step, and so do its deadline and its cancellation.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from thalweg.base import errors
from thalweg.graph.operation import Operation
from thalweg.kernel.convention import Kind
from thalweg.kernel.scalars import scalar_function
from thalweg.plan.pipeline import Plan
from thalweg.runtime.arrays import to_device
from thalweg.runtime.executor import fetched, run_shared, share_traced
from thalweg.runtime.frames import RECV, Iteration, Machine, Table
from thalweg.runtime.instructions import Instruction, RunAsync, RunCluster, outputs_of
from thalweg.runtime.layout import Action, Layout
from thalweg.runtime.rendezvous import DEAD
from thalweg.runtime.sendrecv import RunRecv, RunSend, kernel_instruction
from thalweg.runtime.step import Step
from thalweg.runtime.waiting import waited_for, withdrawn
from thalweg.runtime.worker import Worker

#: an asynchronous node under way
_Key = tuple[Iteration, int]


class DynamicProgram:
    """An executable plan with loops or branches. Immutable once made: concurrent steps share it."""

    def __init__(
        self, plan: Plan, n_feeds: int, n_fetches: int, worker: Worker, is_part: bool = False
    ) -> None:
        """is_part: whether it is one of several partitions of a step."""
        self.plan = plan
        self.worker = worker
        self._is_part = is_part
        self.instructions: list[Instruction] = []
        self._layout = Layout(plan, n_fetches, self._instruction, self._to_device_of)
        #: per fetch, whether nothing else holds its value: what a cluster made and only the fetch takes
        self._give = [False] * n_fetches
        for op in plan.graph._ops:
            if op.type == "_Retval":
                tensor = op._inputs[0]
                self._give[op._attrs["index"]] = len(tensor._consumers) == 1 and tensor._op.type == "_Cluster"

    def _instruction(self, op: Operation, inputs: list[int], first: int) -> Any:
        """What the machine calls for a node outside of control flow; None for one that does nothing."""
        kernel = op._record.kernel
        if kernel is None:
            raise errors.UnimplementedError(
                None, op, f"{op.type} '{op._name}': no kernel is registered for this op"
            )
        kind = kernel.kind
        if kind is Kind.NOTHING:
            return None
        if kind is Kind.CLUSTER:
            body = op._attrs["body"]
            if body.scalar:
                args = [*body.args, *body.static_args]
                results = [(t, first + i) for i, t in enumerate(body.results)]
                function = scalar_function(
                    body.nodes, body.constants, list(zip(args, inputs, strict=False)), results
                )
                return function
            return self._kept(op, RunCluster(op, inputs, first, self.worker))
        if kind is Kind.ASYNC:
            return self._kept(op, RunAsync(op, inputs, first, self.worker))
        if kind is Kind.RECV:
            return self._kept(op, RunRecv(op, inputs, first, self.worker))
        if kind is Kind.SEND:
            send = RunSend(op, inputs, first)
            self.instructions.append(send)
            return send.send
        keys = self.plan.state.get(op, {})
        return self._kept(op, kernel_instruction(op, inputs, first, self.worker, keys))

    def _to_device_of(self, op: Operation) -> Callable[[Any], Any]:
        """What brings a value to the device of a node."""
        device = self.worker.device_of(op).jax_device
        return lambda value: to_device(value, device)

    def _kept(self, op: Operation, instruction: Instruction) -> Any:
        """What the machine calls for an instruction (an asynchronous one: its start takes more)."""
        self.instructions.append(instruction)
        if isinstance(instruction, RunAsync):
            return instruction
        run, traced = instruction.run, instruction.traced
        if self._is_part:
            run = partial(run_shared, instruction)

        def checked(values: list[Any], step: Step) -> None:
            if step._cancelled is not None or step.deadline is not None:
                step.check()
            if step.stats is None:
                run(values, step)
            else:
                share_traced(step)
                traced(values, step)

        return checked

    def run(self, feeds: Sequence[Any], step: Step) -> list[Any]:
        """Runs a step; see Program.run. A fetch that is dead is an InvalidArgumentError."""
        run = _Run(self._layout.root, step)
        root = run.machine.root
        for index, slot in self._layout.feeds:
            root.values[slot] = feeds[index]
        with np.errstate(all="ignore"):  # integers wrap, divisions give infinities: as in clusters
            run.go()
        return [self.result(root.values, i) for i in range(len(self._give))]

    def result(self, values: list[Any], i: int) -> Any:
        """Fetch number i, from the values of the root."""
        value = values[self._layout.results[i]]
        if value is None:
            op = self.plan.fetches[i]._op
            raise errors.InvalidArgumentError(None, op, f"Retval[{i}] does not have value")
        return fetched(value, self._give[i])

    @property
    def waits_first(self) -> bool:
        """See Program.waits_first."""
        root = self._layout.root
        return bool(root.start) and all(root.kinds[n] == RECV for n in root.start)

    def part(self, feeds: Sequence[Any], step: Step, notify: Callable[[], None]) -> DynamicPart:
        """See Program.part."""
        return DynamicPart(self, feeds, step, notify)


class DynamicPart:
    """See executor.Part: one step of one of several partitions, with control flow."""

    def __init__(
        self, program: DynamicProgram, feeds: Sequence[Any], step: Step, notify: Callable[[], None]
    ) -> None:
        self.finished = False
        self._program = program
        self._run = _Run(program._layout.root, step, notify)
        values = self._run.machine.root.values
        for index, slot in program._layout.feeds:
            values[slot] = feeds[index]

    def advance(self) -> None:
        """See executor.Part."""
        with np.errstate(all="ignore"):
            self._run.advance()
        self.finished = not self._run.futures

    def waiting(self) -> list[tuple[Any, Operation]]:
        """See executor.Part."""
        futures = self._run.futures
        return [(f, _instruction(key).op) for key, (f, _) in futures.items()]

    def result(self, i: int) -> Any:
        """See executor.Part."""
        return self._program.result(self._run.machine.root.values, i)

    def drop(self) -> None:
        """See executor.Part."""
        for future, _ in self._run.futures.values():
            future.cancel()
        self._run.futures.clear()
        self._run.machine.root.values.clear()


class _Run:
    """One step: the machine, and the futures of asynchronous kernels under way."""

    def __init__(self, root: Table, step: Step, notify: Callable[[], None] | None = None) -> None:
        """notify: called when an event has come, where nobody waits for it in `go`."""
        self.step = step
        self.notify = notify
        self.machine = Machine(root, step, self._start, step.check)
        #: by iteration and node: the future, and since when it runs
        self.futures: dict[_Key, tuple[Any, int]] = {}
        self.events: queue.SimpleQueue[_Key | None] = queue.SimpleQueue()

    def go(self) -> None:
        """Runs to the end, the first error, the deadline or cancellation."""
        machine = self.machine
        try:
            machine.advance()
            if self.futures:
                self._go_on()
        finally:
            for future, _ in self.futures.values():
                future.cancel()

    def _go_on(self) -> None:
        remove = self.step.on_cancel(lambda: self.events.put(None))
        try:
            while self.futures:
                self._wait()
                self.machine.advance()
        finally:
            remove()

    def advance(self) -> None:
        """Runs what can be run without waiting."""
        self.machine.advance()
        while True:
            try:
                event = self.events.get_nowait()
            except queue.Empty:
                return
            if event in self.futures:
                self._take(event)
                self.machine.advance()

    def _start(self, iteration: Iteration, n: int) -> None:
        self.step.check()
        start = time.time_ns() if self.step.stats is not None else 0
        instruction = _instruction((iteration, n))
        if isinstance(instruction, RunRecv):
            future: Any = instruction.receive(iteration, self.step)
        else:
            future = instruction.start(iteration.values, self.step)
        key = (iteration, n)
        self.futures[key] = (future, start)
        if future.done():
            self._take(key)
        else:
            future.add_done_callback(lambda _: self._event(key))

    def _event(self, key: _Key) -> None:
        self.events.put(key)
        if self.notify is not None:
            self.notify()

    def _take(self, key: _Key) -> None:
        """The result of an asynchronous node that has ended."""
        iteration, n = key
        instruction = _instruction(key)
        future, start = self.futures.pop(key)
        result = future.result()
        if result is DEAD:
            self.machine.finished(iteration, n, dead=True)
            return
        instruction.put(iteration.values, outputs_of(instruction.op, result))
        if self.step.stats is not None:
            self.step.stats.record(instruction.op, start, instruction.outputs(iteration.values))
        self.machine.finished(iteration, n)

    def _wait(self) -> None:
        try:
            event = self.events.get(timeout=self.step.remaining())
        except queue.Empty:
            self._time_out()
            return
        if event is None:
            self.step.check()
        elif event in self.futures:
            self._take(event)

    def _time_out(self) -> None:
        """DeadlineExceededError, unless all that was waited for has just ended."""
        pairs = [
            (future, _instruction(key).op) for key, (future, _) in self.futures.items() if not future.done()
        ]
        message = waited_for(pairs)  # before they are cancelled
        if withdrawn([future for future, _ in pairs]):
            raise errors.DeadlineExceededError(None, pairs[0][1], f"Timed out waiting for {message}")
        for key in list(self.futures):
            self._take(key)


def _instruction(key: _Key) -> RunAsync:
    iteration, n = key
    instruction: RunAsync = iteration.frame.table.data[n]
    return instruction
