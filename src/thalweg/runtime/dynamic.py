"""Programs with control flow: the tagged-token machine (runtime.frames) and what it calls.

The caller's thread runs the machine; where only asynchronous kernels are left it sleeps until one of their
futures wakes it. The first error ends the step, and so do its deadline and its cancellation.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import errors
from thalweg.graph.operation import Operation
from thalweg.kernel.convention import Kind
from thalweg.kernel.scalars import scalar_function
from thalweg.plan.pipeline import Plan
from thalweg.runtime.arrays import to_device
from thalweg.runtime.executor import Program, fetched
from thalweg.runtime.frames import Iteration, Machine, Table
from thalweg.runtime.instructions import Instruction, RunAsync, RunCluster, RunKernel, outputs_of
from thalweg.runtime.layout import Action, Layout
from thalweg.runtime.step import Step
from thalweg.runtime.waiting import waited_for, withdrawn
from thalweg.runtime.worker import Worker

#: an asynchronous node under way
_Key = tuple[Iteration, int]


class DynamicProgram:
    """An executable plan with loops or branches. Immutable once made: concurrent steps share it."""

    def __init__(self, plan: Plan, n_feeds: int, n_fetches: int, worker: Worker) -> None:
        self.plan = plan
        self.worker = worker
        self.instructions: list[Instruction] = []
        device = worker.device
        self._layout = Layout(plan, n_fetches, self._instruction, lambda value: to_device(value, device))
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
        return self._kept(op, RunKernel(op, inputs, first, self.worker, self.plan.state.get(op, {})))

    def _kept(self, op: Operation, instruction: Instruction) -> Any:
        """What the machine calls for an instruction (an asynchronous one: its start takes more)."""
        self.instructions.append(instruction)
        if isinstance(instruction, RunAsync):
            return instruction
        run = instruction.run
        device = self.worker.device_name

        def checked(values: list[Any], step: Step) -> None:
            if step._cancelled is not None or step.deadline is not None:
                step.check()
            if step.stats is None:
                run(values, step)
            else:
                with step.stats.node(op, device):
                    run(values, step)

        return checked

    def run(self, feeds: Sequence[Any], step: Step) -> list[Any]:
        """Runs a step; see Program.run. A fetch that is dead is an InvalidArgumentError."""
        run = _Run(self._layout.root, step, self.worker.device_name)
        root = run.machine.root
        for index, slot in self._layout.feeds:
            root.values[slot] = feeds[index]
        with np.errstate(all="ignore"):  # integers wrap, divisions give infinities: as in clusters
            run.go()
        results = []
        for i, slot in enumerate(self._layout.results):
            value = root.values[slot]
            if value is None:
                op = self.plan.fetches[i]._op
                raise errors.InvalidArgumentError(None, op, f"Retval[{i}] does not have value")
            results.append(fetched(value, self._give[i]))
        return results


AnyProgram = Program | DynamicProgram


def make_program(plan: Plan, n_feeds: int, n_fetches: int, worker: Worker) -> AnyProgram:
    """The program of a plan."""
    return (DynamicProgram if plan.dynamic else Program)(plan, n_feeds, n_fetches, worker)


class _Run:
    """One step: the machine, and the futures of asynchronous kernels under way."""

    def __init__(self, root: Table, step: Step, device: str) -> None:
        self.step = step
        self.device = device
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

    def _start(self, iteration: Iteration, n: int) -> None:
        self.step.check()
        start = time.time_ns() if self.step.stats is not None else 0
        future = _instruction((iteration, n)).start(iteration.values, self.step)
        key = (iteration, n)
        self.futures[key] = (future, start)
        if future.done():
            self._take(key)
        else:
            future.add_done_callback(lambda _: self.events.put(key))

    def _take(self, key: _Key) -> None:
        """The result of an asynchronous node that has ended."""
        iteration, n = key
        instruction = _instruction(key)
        future, start = self.futures.pop(key)
        instruction.put(iteration.values, outputs_of(instruction.op, future.result()))
        if self.step.stats is not None:
            self.step.stats.record(instruction.op, self.device, start)
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
