"""Loops and branches on several devices: the machines of all partitions, joined by messages in any order."""

from __future__ import annotations

import pathlib
import random
import sys
from typing import Any

import numpy as np
import pytest

import thalweg.ops  # noqa: F401
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.plan.localize import localize
from thalweg.plan.partition import Partition, partition
from thalweg.plan.pipeline import Plan
from thalweg.plan.places import find_places
from thalweg.plan.prune import prune
from thalweg.runtime.frames import Iteration, Machine
from thalweg.runtime.layout import Layout

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from loops import loop

CPU = "/job:localhost/replica:0/task:0/device:CPU:"
_COMPUTE = {"Add": lambda a, b: a + b, "Mul": lambda a, b: a * b, "Less": lambda a, b: a < b, "Neg": lambda a: -a}
_DEAD = object()


class Split:
    """The machines of a graph's partitions. `run` lets random ones go on and delivers messages in random order."""

    def __init__(self, graph: Graph, fetch: Tensor, seed: int, devices: int) -> None:
        self.random = random.Random(seed)
        new = prune(graph, [], [fetch], [])
        assert find_places(new)
        for op in new._ops:
            op._device = CPU + (op._device[-1] if op._device else str(self.random.randrange(devices)))
        localize(new)
        self.sent: dict[str, Any] = {}
        self.taken: set[str] = set()
        self.waiting: list[tuple[Machine, Layout, Iteration, int, str]] = []
        self.machines = [self._machine(part) for part in partition(new, {}, True)]

    def _machine(self, part: Partition) -> tuple[Machine, Layout]:
        layout = Layout(Plan(part.graph, {}, True), 1, self._instruction)
        machine = Machine(layout.root, None, lambda iteration, n: self._wait(layout, iteration, n))
        return machine, layout

    def _instruction(self, op: Operation, inputs: list[int], first: int) -> Any:
        if "tensor_name" not in op._attrs:

            def run(values: list[Any], step: Any) -> None:
                values[first] = _COMPUTE.get(op.type, lambda *a: a[0])(*(values[i] for i in inputs))

            return run if op._outputs else None

        def key(iteration: Iteration) -> str:
            return f"{op._attrs['tensor_name'].decode()};{iteration.frame.id}:{iteration.index}"

        def send(iteration: Iteration, step: Any, dead: bool) -> None:
            assert key(iteration) not in self.sent, "sent twice"
            self.sent[key(iteration)] = _DEAD if dead else iteration.values[inputs[0]]

        return send if inputs else (key, first)

    def _wait(self, layout: Layout, iteration: Iteration, n: int) -> None:
        machine = next(m for m, other in self.machines if other is layout)
        self.waiting.append((machine, layout, iteration, n, iteration.frame.table.data[n][0](iteration)))

    def run(self) -> Any:
        """The fetched value. Every message must have been taken."""
        for machine, _ in self.random.sample(self.machines, len(self.machines)):
            machine.advance()
        while self.waiting:
            there = [w for w in self.waiting if w[-1] in self.sent]
            assert there, f"nobody sends {[w[-1] for w in self.waiting]}"
            chosen = self.random.choice(there)
            self.waiting.remove(chosen)
            machine, _, iteration, n, key = chosen
            assert key not in self.taken, "received twice"
            self.taken.add(key)
            value = self.sent[key]
            if value is not _DEAD:
                iteration.values[iteration.frame.table.data[n][1]] = value
            machine.finished(iteration, n, dead=value is _DEAD)
            machine.advance()
        assert self.taken == set(self.sent)
        for machine, _ in self.machines:
            assert not machine.root.children and not machine.root.running
        values = [
            machine.root.values[layout.results[0]]
            for machine, layout in self.machines
            if any(op.type == "_Retval" for op in self._ops(layout))
        ]
        return values[0]

    def _ops(self, layout: Layout) -> list[Operation]:
        return list(next(iter(layout.ops.values()))[0]._graph._ops)


def doubled(graph: Graph, n: int, x: Any, name: str, parallel: int = 10, body: Any = None) -> Tensor:
    """x, n times doubled (or what body makes of it)."""
    body = body or (lambda v: emit("Add", v, v))
    with graph.control_dependencies([emit("Identity", x)._op]):  # where and when x is there
        start, count = emit.constant(np.int32(0)), emit.constant(np.int32(n))
    return loop(
        graph,
        [start, x],
        lambda v, c: emit("Less", v[0], c[0]),
        lambda v, c: [emit("Add", v[0], 1), body(v[1])],
        [count],
        name,
        parallel,
    )[1]


@pytest.mark.parametrize("devices", [2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_a_loop(seed: int, devices: int) -> None:
    n = seed % 4
    with Graph().as_default() as graph:
        y = doubled(graph, n, emit("Neg", np.int32(3)), "a", parallel=1 + seed % 3)
        assert Split(graph, y, seed, devices).run() == -3 * 2**n


@pytest.mark.parametrize("seed", range(12))
def test_a_loop_in_a_loop(seed: int) -> None:
    with Graph().as_default() as graph:
        y = doubled(
            graph, 3, emit("Neg", np.int32(1)), "outer", body=lambda v: doubled(graph, seed % 3, v, "inner", 2)
        )
        assert Split(graph, y, seed, 3).run() == -(2 ** (3 * (seed % 3)))


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_a_loop_that_may_be_dead(seed: int, taken: bool) -> None:
    """On the untaken side of a branch in a loop: its devices learn that there is nothing to do."""
    with Graph().as_default() as graph:

        def body(v: Tensor) -> Tensor:
            condition = emit("Less", v, np.int32(1000 if taken else -1000))
            no, yes = emit("Switch", v, condition)
            return emit("Merge", [doubled(graph, 2, yes, "inner"), emit("Neg", no)])[0]

        y = doubled(graph, 3, emit("Neg", np.int32(-3)), "outer", body=body)
        assert Split(graph, y, seed, 3).run() == (3 * 4**3 if taken else -3)


def test_frames_have_the_same_number_on_every_device() -> None:
    with Graph().as_default() as graph:
        y = doubled(graph, 2, emit("Neg", np.int32(1)), "outer", body=lambda v: doubled(graph, 2, v, "inner"))
        split = Split(graph, y, 1, 3)
        assert split.run() == -16
        ids = {key.rpartition(";")[2].partition(":")[0] for key in split.sent}
        assert len(ids - {"0"}) == 1 + 3, "the outer loop, and the inner one of each iteration; the last is dead"
        assert all(int(i) < 1 << 64 for i in ids)
