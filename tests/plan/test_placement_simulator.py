"""The simulator and the searches, on problems of numbers alone."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.plan.placement.cluster import ClusterDescription, DeviceInfo, Speed
from thalweg.plan.placement.critical_path import by_rank, lower_bound, upward_ranks
from thalweg.plan.placement.greedy import greedy
from thalweg.plan.placement.predict import joined
from thalweg.plan.placement.problem import Problem, make_problem
from thalweg.plan.placement.search import best_placement
from thalweg.plan.placement.simulate import simulate


def cluster(
    count: int = 2, tasks: int = 1, memory: float | None = None, latency: float = 0.0, bandwidth: float = 1.0,
    shares: str = "", overhead: float = 0.0,
) -> ClusterDescription:
    """Devices of one kind, over tasks."""
    devices = [
        DeviceInfo(
            f"/job:w/replica:0/task:{i % tasks}/device:GPU:{i // tasks}", "GPU", overhead=overhead, memory=memory, shares=shares
        )
        for i in range(count)
    ]
    return ClusterDescription(devices, (), Speed(latency, bandwidth), Speed(latency, bandwidth))


def test_a_chain_over_two_devices() -> None:
    problem = make_problem(cluster(latency=0.5, bandwidth=10.0), [1.0, 2.0, 4.0], [(0, 1, 10.0), (1, 2, 20.0)])
    assert simulate(problem, [0, 0, 0]).makespan == 7.0
    result = simulate(problem, [0, 1, 0])
    assert result.start == [0.0, 2.5, 7.0] and result.finish == [1.0, 4.5, 11.0]
    assert result.busy == [5.0, 2.0] and result.sent == [10.0, 20.0] and result.received == [20.0, 10.0]
    assert result.transfers == [(0, 0, 1, 1.0, 2.5), (1, 1, 0, 4.5, 7.0)]


def test_a_tensor_crosses_once_to_each_device() -> None:
    edges = [(0, i, 6.0) for i in range(1, 6)]
    problem = make_problem(cluster(3), [0.0] * 6, edges)
    result = simulate(problem, [0, 1, 1, 2, 2, 0])
    assert sorted(t[:3] for t in result.transfers) == [(0, 0, 1), (0, 0, 2)]
    assert result.sent == [12.0, 0.0, 0.0]


def test_transfers_queue_at_a_device() -> None:
    problem = make_problem(cluster(3, bandwidth=1.0), [0.0, 0.0, 1.0], [(0, 2, 4.0), (1, 2, 5.0)])
    assert simulate(problem, [0, 1, 2]).start[2] == 9.0
    problem = make_problem(cluster(3, bandwidth=1.0), [0.0, 1.0, 1.0], [(0, 1, 4.0), (0, 2, 4.0)])
    assert simulate(problem, [0, 1, 2]).start == [0.0, 4.0, 8.0]


def test_transfers_between_tasks_queue_at_the_tasks() -> None:
    problem = make_problem(cluster(4, tasks=2), [0.0, 0.0, 1.0, 1.0], [(0, 2, 4.0), (1, 3, 4.0)])
    assert simulate(problem, [0, 2, 1, 3]).makespan == 9.0  # one network card for two devices


def test_shared_cores_take_turns() -> None:
    problem = make_problem(cluster(2, shares="cores"), [1.0, 1.0], [])
    assert simulate(problem, [0, 1]).makespan == 2.0
    assert simulate(dataclasses.replace(problem, lanes=2), [0, 1]).makespan == 1.0


def test_a_node_that_waits_for_another_device_starts_a_cluster() -> None:
    problem = make_problem(cluster(2, overhead=0.25), [1.0, 1.0, 0.0], [(0, 1, 0.0), (1, 2, 0.0)])
    assert simulate(problem, [0, 0, 0]).makespan == 2.0
    assert simulate(problem, [0, 1, 0]).makespan == 2.25


def test_memory_is_held_from_a_nodes_start_to_the_end_of_the_last_that_takes_it() -> None:
    chain = [(i, i + 1, 10.0) for i in range(4)]
    problem = make_problem(cluster(2), [1.0] * 5, chain, state=[100.0, 0, 0, 0, 0])
    assert simulate(problem, [0] * 5).peak == [120.0, 0.0]
    assert simulate(problem, [0, 0, 1, 1, 1]).peak == [120.0, 20.0]
    fan = make_problem(cluster(2), [1.0] * 4, [(0, 3, 10.0), (1, 3, 10.0), (2, 3, 10.0)])
    assert simulate(fan, [0] * 4).peak == [30.0, 0.0]


def test_priority_decides_among_ready_nodes() -> None:
    problem = make_problem(cluster(1), [1.0, 1.0, 5.0], [(1, 2, 0.0)])
    assert simulate(problem, [0, 0, 0], [1, 0, 2]).start == [1.0, 0.0, 2.0]
    assert simulate(problem, [0, 0, 0], [0, 1, 2]).start == [0.0, 1.0, 2.0]


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        make_problem(cluster(), [1.0, 1.0], [(0, 1, 1.0), (1, 0, 1.0)])


@st.composite
def problems(draw: st.DrawFn, memory: bool = False) -> Problem:
    n = draw(st.integers(1, 14))
    devices = draw(st.integers(1, 4))
    ms = st.integers(0, 20).map(float)
    edges = [
        (a, b, float(draw(st.integers(0, 30))))
        for b in range(1, n)
        for a in draw(st.sets(st.integers(0, b - 1), max_size=3))
    ]
    groups = [draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=3, unique=True)) for _ in range(draw(st.integers(0, 2)))] if n > 2 else []
    state = [float(draw(st.integers(0, 20))) for _ in range(n)]
    most = float(sum(state) + 60 + draw(st.integers(0, 200))) if memory else None
    where = cluster(devices, draw(st.integers(1, 2)), most, draw(st.integers(0, 3)), 5.0)
    allowed = {0: [draw(st.integers(0, devices - 1))]} if draw(st.booleans()) else {}
    return make_problem(where, [draw(ms) for _ in range(n)], edges, groups=groups, state=state, allowed=allowed)


@settings(max_examples=60, deadline=None)
@given(problems(), st.data())
def test_no_step_is_shorter_than_its_longest_path_or_its_shared_work(problem: Problem, data: st.DataObject) -> None:
    devices = len(problem.cluster)
    assignment = [data.draw(st.integers(0, devices - 1)) for _ in range(problem.nodes)]
    order = data.draw(st.permutations(range(problem.nodes)))
    result = simulate(problem, assignment, order)
    path, work = lower_bound(problem)
    assert result.makespan >= path - 1e-9 and result.makespan >= work - 1e-9
    assert result.makespan >= max(result.busy) - 1e-9
    assert sum(result.busy) == pytest.approx(problem.times[:, 0].sum())
    assert sum(result.sent) == pytest.approx(sum(result.received))
    for i, tensors in enumerate(problem.inputs):
        for t in tensors:
            assert result.start[i] >= result.finish[problem.producers[t]] - 1e-9
    assert all(peak >= 0 for peak in result.peak)
    again = simulate(problem, assignment, order)
    assert again == result


@settings(max_examples=40, deadline=None)
@given(problems())
def test_what_is_chosen_is_not_worse_than_one_device(problem: Problem) -> None:
    choice = best_placement(problem, effort=300)
    for group, members in enumerate(problem.members):
        assert {choice.best.assignment[i] for i in members} <= set(problem.allows(group))
        assert len({choice.best.assignment[i] for i in members}) == 1
    assert choice.best.result.makespan >= choice.bound * 0.999 - 1e-9
    single = choice.candidates[0].result.makespan
    assert choice.best.result.makespan <= single
    assert choice.best.result == simulate(problem, choice.best.assignment, choice.order)


@settings(max_examples=40, deadline=None)
@given(problems(memory=True))
def test_memory_is_never_exceeded_where_it_suffices(problem: Problem) -> None:
    choice = best_placement(problem, effort=300)
    if not choice.best.overflow:
        assert all(p <= m for p, m in zip(choice.best.result.peak, problem.memory, strict=True))
    else:  # then no single device would have done either
        for device in range(len(problem.cluster)):
            if all(device in a for a in problem.allowed):
                assert simulate(problem, [device] * problem.nodes, choice.order).overflow(problem)


@settings(max_examples=30, deadline=None)
@given(problems(), st.randoms(use_true_random=False))
def test_the_names_and_order_of_edges_don_t_matter(problem: Problem, random: object) -> None:
    flat = problem.taken.tolist()
    bounds = problem.taken_from.tolist()
    shuffled = []
    for a, b in itertools.pairwise(bounds):
        part = flat[a:b]
        random.shuffle(part)  # type: ignore[attr-defined]
        shuffled += part
    names = [f"x{i}" for i in range(problem.nodes)]
    other = dataclasses.replace(problem, taken=np.array(shuffled, np.int64), names=names)
    a, b = best_placement(problem, effort=300), best_placement(other, effort=300)
    assert a.best.assignment == b.best.assignment and a.best.result == b.best.result


def test_ranks_put_the_longest_way_first() -> None:
    problem = make_problem(cluster(2), [1.0, 1.0, 1.0, 9.0], [(0, 2, 0.0), (1, 3, 0.0)])
    rank = upward_ranks(problem)
    assert rank == [2.0, 10.0, 1.0, 9.0]
    assert by_rank(problem, rank) == [1, 3, 0, 2]


def test_independent_work_is_shared_out() -> None:
    problem = make_problem(cluster(4), [1.0] * 8, [])
    placed = greedy(problem)
    assert simulate(problem, placed.assignment).makespan == 2.0
    assert best_placement(problem).best.result.makespan == 2.0


def test_ties_go_to_the_first_device() -> None:
    problem = make_problem(cluster(4, latency=1.0), [1.0] * 5, [(i, i + 1, 0.0) for i in range(4)])
    assert greedy(problem).assignment == [0] * 5
    assert best_placement(problem).best.assignment == [0] * 5


def test_variables_that_don_t_fit_on_one_device_are_spread() -> None:
    times = [0.0, 1.0] * 4
    edges = [(2 * i, 2 * i + 1, 40.0) for i in range(4)] + [(2 * i + 1, 2 * i + 3, 1.0) for i in range(3)]
    problem = make_problem(cluster(2, memory=100.0), times, edges, state=[40.0, 0.0] * 4, held=[0.0, 1.0] * 4)
    best = best_placement(problem).best
    assert not best.overflow
    assert [best.assignment[2 * i] for i in range(4)] in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert all(best.assignment[2 * i] == best.assignment[2 * i + 1] for i in range(4))


def test_what_fits_nowhere_is_told() -> None:
    problem = make_problem(cluster(2, memory=10.0), [1.0], [], state=[25.0])
    best = best_placement(problem).best
    assert best.overflow == 15.0


def test_many_devices_are_used_though_not_all_are_tried() -> None:
    problem = make_problem(cluster(64, tasks=8), [1.0] * 64, [])
    result = simulate(problem, greedy(problem).assignment)
    assert result.makespan == 1.0 and math.isclose(sum(result.busy), 64.0)


def test_clusters_wait_for_all_that_they_take() -> None:
    edges = [(0, 1, 0.0), (1, 2, 0.0), (1, 3, 0.0)]
    problem = make_problem(cluster(2, overhead=0.5), [1.0, 1.0, 1.0, 4.0], edges)
    assert simulate(problem, [0, 0, 1, 0]).finish == [1.0, 2.0, 3.5, 6.0]
    whole, members = joined(problem, [0, 0, 1, 0])
    assert members == [[0, 1, 3], [2]] and whole.names == ["n0", "n2"]
    assert simulate(whole, [0, 1]).finish == [6.5, 8.0]  # each starts once
    measured, _ = joined(problem, [0, 0, -1, 0], overhead=False)
    assert simulate(measured, [0, 1]).finish == [6.0, 7.0]


def test_clusters_in_a_cycle_are_refused() -> None:
    problem = make_problem(cluster(2), [1.0] * 3, [(0, 1, 0.0), (1, 2, 0.0)])
    with pytest.raises(ValueError, match="cycle"):
        joined(problem, [0, -1, 0])


def test_memory_may_take_many_devices() -> None:
    count = 64
    times = [0.0, 1.0] * count
    edges = [(2 * i, 2 * i + 1, 40.0) for i in range(count)] + [(2 * i + 1, 2 * i + 3, 1.0) for i in range(count - 1)]
    held, state = [0.0, 1.0] * count, [40.0, 0.0] * count
    problem = make_problem(cluster(48, tasks=6, memory=100.0), times, edges, state=state, held=held)
    best = best_placement(problem, effort=300).best
    assert not best.overflow and len(set(best.assignment)) >= 32
