"""The tagged-token machine: which nodes run, in which iterations, and what is dead. Nothing is computed."""

from __future__ import annotations

import pathlib
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

import thalweg.ops  # noqa: F401
from thalweg.base import dtypes
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation
from thalweg.graph.text import parse
from thalweg.plan.pipeline import Plan
from thalweg.plan.places import find_places
from thalweg.plan.prune import prune
from thalweg.runtime import frames
from thalweg.runtime.frames import Iteration, Machine, Table
from thalweg.runtime.layout import Layout

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from loops import loop

_COMPUTE = {
    "Add": lambda a, b: a + b,
    "Less": lambda a, b: a < b,
    "Neg": lambda a: -a,
    "LogicalNot": lambda a: not a,
}


class Tried:
    """A graph on the machine: `ran` lists the nodes outside of control flow in the order they ran."""

    def __init__(self, graph: Graph, fetches: str, feeds: dict[str, Any], waiting: str = "") -> None:
        self.ran: list[str] = []
        self.started: list[tuple[str, Iteration, int]] = []
        tensors = [graph.get_tensor_by_name(f if ":" in f else f + ":0") for f in fetches.split()]
        given = [graph.get_tensor_by_name(f"{f}:0") for f in feeds]
        new = prune(graph, given, tensors, [])
        assert find_places(new)
        self.layout = Layout(Plan(new, {}, True), len(tensors), self._instruction)
        for table, ops in self.layout.ops.items():
            for n, op in enumerate(ops):
                if op.name in waiting.split():
                    table.kinds[n] = frames.ASYNC
        self.machine = Machine(self.layout.root, None, self._start)
        values = list(feeds.values())
        for index, slot in self.layout.feeds:
            self.machine.root.values[slot] = values[index]
        self.machine.advance()

    def _instruction(self, op: Operation, inputs: list[int], first: int) -> Any:
        def run(values: list[Any], step: Any) -> None:
            self.ran.append(op.name)
            function = _COMPUTE.get(op.type, lambda *a: a[0])
            values[first] = function(*(values[i] for i in inputs))

        return run if op._outputs else None

    def _start(self, iteration: Iteration, n: int) -> None:
        self.started.append((self.layout.ops[iteration.frame.table][n].name, iteration, n))

    def finish(self, name: str, index: int) -> None:
        """The event that an asynchronous node of an iteration has ended."""
        found = next(s for s in self.started if s[0] == name and s[1].index == index)
        self.started.remove(found)
        _, iteration, n = found
        iteration.frame.table.data[n](iteration.values, None)
        self.machine.finished(iteration, n)
        self.machine.advance()

    @property
    def waiting(self) -> list[tuple[str, int]]:
        """Asynchronous nodes under way: (name, iteration)."""
        return [(name, iteration.index) for name, iteration, _ in self.started]

    @property
    def values(self) -> list[Any]:
        """The fetches; None is dead."""
        return [self.machine.root.values[slot] for slot in self.layout.results]

    @property
    def over(self) -> bool:
        """Whether every frame and iteration has ended."""
        return not self.machine.root.frame.alive and not self.machine.root.children


BRANCH = """p = Placeholder[dtype=bool, shape=[]](); x = Placeholder[dtype=int32, shape=[]]()
s = Switch(x, p); f = Neg(s); t = Add(s:1, 1); m = Merge(f, t); after = Neg(m)"""


@pytest.mark.parametrize(("p", "ran", "values"), [(True, ["t", "after"], [-6, 1]), (False, ["f", "after"], [5, 0])])
def test_only_the_chosen_side_runs(p: bool, ran: list[str], values: list[int]) -> None:
    tried = Tried(parse(BRANCH), "after m:1", {"p": p, "x": 5})
    assert (tried.ran, tried.values, tried.over) == (ran, values, True)


def test_one_dead_input_makes_a_node_dead_and_so_on() -> None:
    text = BRANCH + "; both = Add(f, x); more = Neg(both); m2 = Merge(more, f)"
    tried = Tried(parse(text), "both m2 after", {"p": True, "x": 5})
    assert tried.values == [None, None, -6] and tried.over
    assert "both" not in tried.ran


def test_a_control_edge_carries_deadness() -> None:
    text = BRANCH + "; waits = Neg(x) after(f)"
    assert Tried(parse(text), "waits", {"p": True, "x": 5}).values == [None]
    assert Tried(parse(text), "waits", {"p": False, "x": 5}).values == [-5]


def test_a_merge_waits_for_control_inputs_dead_or_alive() -> None:
    text = BRANCH + "; slow = Neg(x); m2 = Merge(f, t) after(slow, f); y = Neg(m2)"
    for p in (True, False):
        tried = Tried(parse(text), "y", {"p": p, "x": 5}, waiting="slow")
        assert tried.values == [None] and not tried.over
        tried.finish("slow", 0)
        assert tried.values == [-6 if p else 5] and tried.over


def test_a_dead_merge_waits_for_its_control_inputs() -> None:
    text = BRANCH + "; slow = Neg(x); m2 = Merge(f, f) after(slow); y = Neg(m2); z = Merge(y, x) after(y)"
    tried = Tried(parse(text), "y z", {"p": True, "x": 5}, waiting="slow")
    tried.finish("slow", 0)
    assert tried.values == [None, 5] and tried.over


def test_a_control_trigger_runs_when_dead() -> None:
    text = BRANCH + "; go = ControlTrigger() after(f); y = Neg(x) after(go)"
    assert Tried(parse(text), "y", {"p": True, "x": 5}).values == [-5]


def test_merge_takes_the_first_that_lives() -> None:
    text = "x = Placeholder[dtype=int32](); a = Neg(x); b = Add(x, 1); m = Merge(a, b)"
    tried = Tried(parse(text), "m m:1", {"x": 5}, waiting="a b")
    tried.finish("b", 0)
    assert tried.values == [6, 1]
    tried.finish("a", 0)
    assert tried.values == [6, 1] and tried.over


def counting(parallel: int = 10, extra: bool = False) -> Graph:
    graph = Graph()
    with graph.as_default():
        n = emit("Placeholder", dtype=dtypes.int32, shape=[], name="n")
        c = emit("Neg", n, name="c")

        def body(v: Any, k: Any) -> list[Any]:
            result = [emit("Add", v[0], emit.constant(np.int32(1), name="one"), name="more")]
            if extra:
                result.append(emit("Add", v[1], k[1], name="sum"))
            return result

        start = [emit.constant(np.int32(0)), emit.constant(np.int32(100))][: 1 + extra]
        ends = loop(graph, start, lambda v, k: emit("Less", v[0], k[0], name="less"), body, [n, c], parallel=parallel)
        for i, end in enumerate(ends):
            emit("Neg", end, name=f"end{i}")
    return graph


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_loop(n: int) -> None:
    tried = Tried(counting(), "end0", {"n": n})
    assert tried.values == [-n] and tried.over
    ran = Counter(name.split("/")[-1] for name in tried.ran)
    assert (ran["less"], ran["more"], ran["end0"]) == (n + 1, n, 1)


def test_a_constant_that_comes_late_reaches_all_iterations() -> None:
    tried = Tried(counting(extra=True), "end0 end1", {"n": 3}, waiting="c")
    assert tried.values == [-3, None] and not tried.over  # the counter ran ahead
    tried.finish("c", 0)
    assert tried.values == [-3, -100 + 9] and tried.over


@pytest.mark.parametrize("parallel", [1, 2, 4])
def test_no_more_iterations_than_allowed_are_under_way(parallel: int) -> None:
    tried = Tried(counting(parallel, extra=True), "end0 end1", {"n": 6}, waiting="loop/sum")
    most = 0
    for i in range(6):
        frame = tried.started[0][1].frame
        most = max(most, len(frame.alive))
        assert tried.waiting == [("loop/sum", i)]
        tried.finish("loop/sum", i)
    assert most == parallel and tried.over
    assert tried.values == [-6, -100 + 36]


def test_iterations_end_in_order_whatever_finishes_first() -> None:
    tried = Tried(counting(3), "end0", {"n": 3}, waiting="loop/more")
    for i in range(3):
        assert tried.waiting == [("loop/more", i)]
        tried.finish("loop/more", i)
    assert tried.values == [-3] and tried.over


def test_a_loop_on_the_untaken_side_is_dead() -> None:
    graph = Graph()
    with graph.as_default():
        p = emit("Placeholder", dtype=dtypes.bool, shape=[], name="p")
        x = emit("Placeholder", dtype=dtypes.int32, shape=[], name="x")
        other, taken = emit("Switch", x, p)
        (end,) = loop(
            graph, [taken], lambda v, k: emit("Less", v[0], k[0]), lambda v, k: [emit("Add", v[0], k[0])], [taken]
        )
        after = emit("Neg", end, name="after")
        emit("Merge", [emit("Neg", other), after], name="m")
        emit("Neg", x, name="never")._op._add_control_inputs([after._op])
    for p, values in ((True, [-5, -5, -5]), (False, [None, -5, None])):
        tried = Tried(graph, "after m never", {"p": p, "x": 5})
        assert tried.values == values and tried.over


def nested() -> Graph:
    graph = Graph()
    with graph.as_default():
        n = emit("Placeholder", dtype=dtypes.int32, shape=[], name="n")

        def body(v: Any, k: Any) -> list[Any]:
            start = emit.constant(np.int32(0))
            _, total = loop(
                graph,
                [start, v[1]],
                lambda w, c: emit("Less", w[0], c[0], name="less"),
                lambda w, c: [emit("Add", w[0], 1), emit("Add", w[1], c[0], name="sum")],
                [v[0]],
                name="inner",
            )
            return [emit("Add", v[0], 1), total]

        zero = emit.constant(np.int32(0))
        loop(graph, [zero, zero], lambda v, k: emit("Less", v[0], k[0]), body, [n], name="outer")
    return graph


def test_frames_in_frames() -> None:
    tried = Tried(nested(), "outer/Exit outer/Exit_1", {"n": 6})
    assert tried.values == [6, sum(i * i for i in range(6))] and tried.over
    assert tried.ran.count("outer/inner/sum") == 15


def test_frames_in_frames_asynchronously() -> None:
    tried = Tried(nested(), "outer/Exit outer/Exit_1", {"n": 5}, waiting="outer/inner/sum")
    while tried.started:
        tried.finish(*tried.waiting[-1])
    assert tried.values == [5, 30] and tried.over


def test_memory_of_a_long_loop_stays_flat(monkeypatch: pytest.MonkeyPatch) -> None:
    class Number(int):
        live = most = 0

        def __new__(cls, value: int) -> Number:
            Number.live += 1
            Number.most = max(Number.most, Number.live)
            return super().__new__(cls, value)

        def __del__(self) -> None:
            Number.live -= 1

    monkeypatch.setitem(_COMPUTE, "Add", lambda a, b: Number(a + b))
    tried = Tried(counting(), "end0", {"n": 20_000})
    assert tried.over and tried.ran.count("loop/more") == 20_000
    assert Number.most < 10 and Number.live <= 1


def test_the_check_is_called_in_an_endless_loop() -> None:
    class Enough(Exception):
        pass

    tried = Tried(counting(), "end0", {"n": 3})
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == 10:
            raise Enough

    root: Table = tried.layout.root
    machine = Machine(root, None, None, check)
    for _, slot in tried.layout.feeds:
        machine.root.values[slot] = 1 << 60
    with pytest.raises(Enough):
        machine.advance()
