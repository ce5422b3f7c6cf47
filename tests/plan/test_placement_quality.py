"""Small versions of what the placement benchmark claims, and the invariants of what it compares with."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.plan.placement.arrange import arrange, blocks, coordinates
from thalweg.plan.placement.critical_path import by_rank, upward_ranks
from thalweg.plan.placement.polish import polish
from thalweg.plan.placement.problem import Problem
from thalweg.plan.placement.search import best_placement
from thalweg.plan.placement.simulate import simulate

_BENCHMARKS = str(Path(__file__).resolve().parents[2] / "benchmarks")


@pytest.fixture(scope="module")
def benchmark_modules() -> Iterator[dict[str, ModuleType]]:
    """The benchmarks' modules, which import each other from their own folder."""
    others = _taken("programs")  # another file of tests has modules of that name
    sys.path.insert(0, _BENCHMARKS)
    names = ("placement_graphs", "placement_problems", "baselines.simple", "baselines.baechi", "programs.placement")
    try:
        yield {name.rpartition(".")[2]: importlib.import_module(name) for name in names}
    finally:
        sys.path.remove(_BENCHMARKS)
        _taken("programs")
        sys.modules.update(others)


def _taken(package: str) -> dict[str, ModuleType]:
    """Forgets a package and its modules, which are returned."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == package}


@pytest.fixture(scope="module")
def small(benchmark_modules: dict[str, ModuleType]) -> dict[str, Any]:
    """Nodes of small training graphs, by name."""
    graphs: Any = benchmark_modules["placement_graphs"]
    makers: dict[str, Any] = {
        "lstm": lambda tf: graphs.lstm8(tf, layers=3, steps=3, batch=16, hidden=128),
        "transformer": lambda tf: graphs.transformer(tf, layers=2, batch=4, length=16, width=64, heads=2, words=500),
        "wide": lambda tf: graphs.wide_and_deep(tf, tables=4, rows=2000, width=16, batch=64),
        "random": lambda tf: graphs.random_layers(tf, layers=6, wide=5, batch=64),
    }
    found = {}
    for name, make in makers.items():
        with tf.Graph().as_default() as graph:
            found[name] = benchmark_modules["placement_problems"].nodes(graph, make(tf))
    return found


def problem_of(modules: dict[str, ModuleType], new: Any, count: int, share: float) -> Problem:
    """A problem where each device holds `share` of what the step takes on one device."""
    problems = modules["placement_problems"]
    free: Problem = problems.problem(new, problems.accelerators(count))
    order = by_rank(free, upward_ranks(free))
    peak = simulate(free, [0] * free.nodes, order).peak[0]
    made: Problem = problems.problem(new, problems.accelerators(count, share * peak))
    return made


def step(problem: Problem, assignment: list[int]) -> float:
    result = simulate(problem, assignment, by_rank(problem, upward_ranks(problem)))
    return math.inf if result.overflow(problem) else result.makespan


@pytest.mark.parametrize(("count", "share"), [(2, 1.1), (2, 0.7), (4, 1.1), (4, 0.5)])
@pytest.mark.parametrize("name", ["lstm", "transformer", "wide", "random"])
def test_never_worse_than_what_one_does_by_hand(
    benchmark_modules: dict[str, ModuleType], small: dict[str, Any], name: str, count: int, share: float
) -> None:
    problem = problem_of(benchmark_modules, small[name], count, share)
    best = best_placement(problem).best
    mine = math.inf if best.overflow else best.result.makespan
    simple = benchmark_modules["simple"]
    ways = [simple.single(problem), simple.round_robin(problem)]
    ways += [simple.expert(problem, memory) for memory in (0.0, 1.0, 1e6)]
    assert mine <= min(step(problem, way) for way in ways) * 1.001


def test_reaches_bounds_that_can_be_reached(benchmark_modules: dict[str, ModuleType]) -> None:
    for name, problem in benchmark_modules["placement"].tight_problems():
        choice = best_placement(problem)
        assert choice.best.result.makespan <= 1.1 * choice.bound, name


@pytest.mark.parametrize("name", ["lstm", "random"])
@pytest.mark.parametrize("gradients", [False, True])
def test_baselines_keep_groups_together(
    benchmark_modules: dict[str, ModuleType], small: dict[str, Any], name: str, gradients: bool
) -> None:
    baechi, simple = benchmark_modules["baechi"], benchmark_modules["simple"]
    problem = problem_of(benchmark_modules, small[name], 3, 1.1)
    prepared = baechi.coplaced(problem, gradients)
    children = baechi.favourite_children(prepared)
    chosen = [c for c in children if c >= 0]
    assert chosen and len(set(chosen)) == len(chosen)  # nobody is the favourite of two
    takers = [{u for t in problem.outputs[i] for u in problem.takers[t]} for i in range(problem.nodes)]
    assert all(c in takers[i] for i, c in enumerate(children) if c >= 0)
    for assignment in (
        baechi.m_topo(prepared), baechi.m_etf(prepared), baechi.m_sct(prepared, children),
        simple.round_robin(problem), simple.expert(problem), simple.single(problem),
    ):  # fmt: skip
        assert len(assignment) == problem.nodes and set(assignment) <= {0, 1, 2}
        for members in problem.members:
            assert len({assignment[i] for i in members}) == 1


def test_favourite_child_is_the_one_that_costs_most_to_reach(benchmark_modules: dict[str, ModuleType]) -> None:
    from thalweg.plan.placement.problem import make_problem

    cluster = benchmark_modules["placement_problems"].accelerators(2)
    edges = [(0, 2, 1e8), (1, 3, 1e8), (2, 4, 1e8), (3, 4, 1e3)]
    problem = make_problem(cluster, [1e-3] * 5, edges)
    assert benchmark_modules["baechi"].favourite_children(problem)[:3] == [2, 3, 4]


def test_a_device_waits_for_the_favourite_child(benchmark_modules: dict[str, ModuleType]) -> None:
    """Where a node's output is large, m-SCT keeps its taker with it; nothing crosses."""
    from thalweg.plan.placement.problem import make_problem

    cluster = benchmark_modules["placement_problems"].accelerators(2)
    edges = [(2 * c, 2 * c + 1, 1e8) for c in range(4)]
    problem = make_problem(cluster, [1e-3] * 8, edges)
    baechi = benchmark_modules["baechi"]
    for assignment in (baechi.m_sct(problem, baechi.favourite_children(problem)), baechi.m_etf(problem)):
        result = simulate(problem, assignment)
        assert not result.transfers and result.makespan == pytest.approx(4e-3)


def test_layers_lie_along_the_line(benchmark_modules: dict[str, ModuleType], small: dict[str, Any]) -> None:
    """Forward, backward and variables of a layer have the same place; blocks are consecutive."""
    problem = problem_of(benchmark_modules, small["lstm"], 2, 1.1)
    found = coordinates(problem)
    index = {name: i for i, name in enumerate(problem.names)}
    weights = [found[index[f"layer{k}/w"]] for k in range(3)]
    assert weights == sorted(set(weights))
    for k in range(3):
        assert found[index[f"layer{k}/MatMul"]] == found[index[f"gradients/layer{k}/MatMul_grad/MatMul"]]
        assert found[index[f"layer{k}/MatMul"]] == weights[k]
    order = by_rank(problem, upward_ranks(problem))
    line = arrange(problem, order)
    for crossing in (None, 1.0, 0.1):
        assignment = np.array(blocks(problem, line, [0, 1], 1.0, crossing))
        pieces = [sorted(set(line.piece[problem.group[assignment == d]].tolist())) for d in (0, 1)]
        assert not pieces[0] or not pieces[1] or pieces[0][-1] < pieces[1][0]


def test_polishing_makes_less_cross(benchmark_modules: dict[str, ModuleType], small: dict[str, Any]) -> None:
    problem = problem_of(benchmark_modules, small["random"], 2, 0.7)
    before = benchmark_modules["simple"].round_robin(problem)
    for even in (True, False):
        after = polish(problem, before, even)
        assert sum(simulate(problem, after).sent) < sum(simulate(problem, before).sent)
        for members in problem.members:
            assert len({after[i] for i in members}) == 1
