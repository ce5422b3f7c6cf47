"""The master of a session: from signatures to programs, made once each and kept; and the steps under way."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import Any

from thalweg.base import errors
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.kernel.body import StateKey
from thalweg.plan.pipeline import Plan, PlanOptions, make_plan
from thalweg.plan.placement.homes import find_homes
from thalweg.runtime.executor import Program
from thalweg.runtime.metadata import placement
from thalweg.runtime.partitions import AnyProgram, make_program
from thalweg.runtime.step import Step
from thalweg.runtime.worker import Worker


class Master:
    """Plans and runs steps of one graph on one in-process worker. Thread-safe."""

    def __init__(self, graph: Graph, worker: Worker, options: PlanOptions) -> None:
        self.graph = graph
        self.worker = worker
        self.options = options
        self._lock = threading.Lock()
        self._programs: dict[Any, AnyProgram] = {}
        self._mutations = graph._mutations
        self._steps: set[Step] = set()
        self._closed = False
        #: where nodes are, as log_device_placement has told
        self._printed: dict[str, str] = {}
        #: where variables, queues ... are, by full name of the device; guarded by _placing
        self._homes: dict[StateKey, str] = {}
        self._placing = threading.Lock()
        #: how many nodes the graph had when homes were last looked for
        self._placed = 0

    def prepare(
        self, feeds: Sequence[Tensor], fetches: Sequence[Tensor], targets: Sequence[Operation]
    ) -> AnyProgram:
        """The program of a signature. Planned once; again only where existing nodes were changed."""
        key = (tuple(feeds), tuple(fetches), tuple(targets))
        with self._lock:
            mutations = self.graph._mutations
            if self._mutations != mutations:
                self._programs.clear()
                self._mutations = mutations
            program = self._programs.get(key)
        if program is None:
            plan = self._plan(feeds, fetches, targets)
            if self.options.log_placement:
                self._print_placement(plan, feeds)
            program = make_program(plan, len(feeds), len(fetches), self.worker)
            with self._lock:
                if self._mutations == mutations and not self._closed:  # else it may be of an older graph
                    program = self._programs.setdefault(key, program)
        return program

    def prepare_part(
        self,
        feeds: Sequence[Tensor],
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        done: Collection[Operation],
    ) -> AnyProgram:
        """The program of one part of a step, whose nodes in `done` have run. Not kept."""
        plan = self._plan(feeds, fetches, targets, done)
        return make_program(plan, len(feeds), len(fetches), self.worker)

    def _plan(
        self,
        feeds: Sequence[Tensor],
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        done: Collection[Operation] = (),
    ) -> Plan:
        """The plan of a signature. With several devices one at a time: each learns where state is."""
        devices = self.worker.device_names
        if len(devices) == 1:
            return make_plan(self.graph, feeds, fetches, targets, self.options, devices, done)
        cluster, homes, soft = self.worker.cluster, self._homes, self.options.soft_placement
        with self._placing:
            self._placed = find_homes(self.graph, cluster, homes, soft, since=self._placed)
            incarnations = {name: d.incarnation for name, d in self.worker.devices.items()}
            return make_plan(
                self.graph, feeds, fetches, targets, self.options, cluster, done, incarnations, homes
            )

    def _print_placement(self, plan: Plan, feeds: Sequence[Tensor]) -> None:
        """Prints where the caller's nodes go, each once, in TensorFlow's form."""
        for name, kind, device in placement(plan, feeds):
            if self._printed.get(name) != device and name in self.graph._by_name:
                self._printed[name] = device
                print(f"{name}: ({kind}): {device}")

    def run(self, program: AnyProgram, feeds: Sequence[Any], step: Step) -> list[Any]:
        """Runs one step of a program. RuntimeError after close."""
        self._steps.add(step)
        try:
            if self._closed:  # asked after the step was added: either we see it, or close() sees the step
                raise RuntimeError("Attempted to use a closed Session.")
            return program.run(feeds, step)
        finally:
            self._steps.discard(step)

    def run_repeated(self, program: AnyProgram, timeout_ms: int) -> None:
        """Runs one step of a program without feeds and fetches, or some at once where that is the same."""
        transfer = program.transfer if isinstance(program, Program) else None
        step = Step(timeout_ms)
        self._steps.add(step)
        try:
            if self._closed:
                raise RuntimeError("Attempted to use a closed Session.")
            if transfer is None or not transfer.run(step):
                program.run((), step)
        finally:
            self._steps.discard(step)

    def close(self) -> None:
        """Cancels the steps under way, refuses later ones, and forgets the programs."""
        self._closed = True
        for step in list(self._steps):
            step.cancel(errors.CancelledError(None, None, "Step was cancelled: the session was closed"))
        with self._lock:
            self._programs.clear()

    @property
    def closed(self) -> bool:
        """Whether close was called."""
        return self._closed
