"""Several placements, each run on paper: the one with the shortest step wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from thalweg.plan.placement.arrange import Make, splits
from thalweg.plan.placement.coarsen import coarsen
from thalweg.plan.placement.critical_path import by_rank, lower_bound, upward_ranks
from thalweg.plan.placement.greedy import greedy
from thalweg.plan.placement.polish import polish
from thalweg.plan.placement.problem import Problem
from thalweg.plan.placement.simulate import Result, simulate

#: a greedy placement that doesn't fit is tried again with less memory, so often at most
_TRIES = 4
#: another placement must be so much better to be taken: what the model can't tell apart stays on one device
_WORTH = 0.999
#: simulated nodes that improving a placement may take: about half a second
EFFORT = 50_000
#: of so many candidates it is tried to make less cross
_POLISHED = 6
#: graphs with more nodes get fewer candidates; devices that work is split over at most
_LARGE, _SPLIT = 20_000, 16


@dataclass
class Candidate:
    """A way to place everything, and what came of it. overflow: bytes beyond what the devices hold."""

    name: str
    assignment: list[int]
    result: Result
    overflow: float


@dataclass
class Choice:
    """The best candidate, and all that were looked at."""

    best: Candidate
    #: the nodes by priority, as the simulation took them
    order: list[int]
    bound: float
    candidates: list[Candidate] = field(default_factory=list)


def best_placement(
    problem: Problem, extra: Sequence[tuple[str, Sequence[int]]] = (), effort: int = EFFORT
) -> Choice:
    """The placement with the shortest simulated step among those that fit in memory.

    Tried are: all on one device of each kind, as far as constraints go; the greedy simulation in ready order
    and by rank, and of coarser problems; splits by layers; what `extra` has, by name; and the best of all
    these with less crossing. The first of equals wins, and is improved: single groups are moved as long as
    that helps, at an effort of so many simulated nodes at most. Where nothing fits, the candidate that lacks
    least is returned: its overflow says how much.
    """
    order = by_rank(problem, upward_ranks(problem))
    choice: Choice | None = None
    for name, make in _candidates(problem, order, extra):
        candidate = _try(problem, name, make, order, choice.candidates if choice else ())
        if choice is None:
            choice = Choice(candidate, order, max(lower_bound(problem)))
        elif _better(candidate, choice.best):
            choice.best = candidate
        choice.candidates.append(candidate)
        if _is_optimal(choice):
            return choice
    assert choice is not None
    if len(choice.candidates) > 1:
        _polish(problem, choice)
        starts = [choice.best, *_promising(choice)]
        for start in starts:
            improved = _improve(problem, start, choice, effort // len(starts))
            if _better(improved, choice.best):
                choice.best = improved
                choice.candidates.append(improved)
    return choice


def _polish(problem: Problem, choice: Choice) -> None:
    """Looks at what less crosses in of some of the best candidates, one of each step time."""
    ranked = sorted(choice.candidates, key=lambda c: (c.overflow, c.result.makespan))
    distinct = {(c.overflow, c.result.makespan): c for c in reversed(ranked)}
    for key in sorted(distinct)[: _POLISHED if problem.nodes <= _LARGE else 1]:
        candidate = distinct[key]
        done = [candidate.assignment]
        for even in (True, False):
            assignment = polish(problem, candidate.assignment, even)
            if assignment not in done:
                done.append(assignment)
                polished = _simulated(problem, f"{candidate.name}, polished", assignment, choice.order)
                choice.candidates.append(polished)
                if _better(polished, choice.best):
                    choice.best = polished


def _promising(choice: Choice) -> list[Candidate]:
    """The fastest of the candidates that don't fit, where it is faster than the best: it may lack little."""
    best = choice.best
    rest = [c for c in choice.candidates if c.overflow and c is not best]
    fastest = min(rest, key=lambda c: c.result.makespan, default=best)
    return [fastest] if fastest.result.makespan < best.result.makespan else []


def _is_optimal(choice: Choice) -> bool:
    return not choice.best.overflow and choice.best.result.makespan * _WORTH <= choice.bound


def _improve(problem: Problem, best: Candidate, choice: Choice, effort: int) -> Candidate:
    """Moves groups to devices of their neighbours, while that makes the step shorter or saves memory."""
    name = f"{best.name}, improved"
    tries = effort // max(problem.nodes, 1)
    while tries > 0:
        before = best
        for group, device in _moves(problem, best):
            if tries <= 0:
                break
            tries -= 1
            assignment = list(best.assignment)
            for i in problem.members[group]:
                assignment[i] = device
            candidate = _simulated(problem, name, assignment, choice.order)
            if _better(candidate, best):
                best = candidate
                if not best.overflow and best.result.makespan * _WORTH <= choice.bound:
                    return best
        if best is before:
            break
    return best


def _moves(problem: Problem, candidate: Candidate) -> list[tuple[int, int]]:
    """(group, device) pairs worth trying: groups by their time, to where their neighbours are."""
    assignment, result = candidate.assignment, candidate.result
    group = problem.group.tolist()
    weight = [0.0] * len(problem.allowed_of)
    near: list[set[int]] = [set() for _ in weight]
    for i, g in enumerate(group):
        weight[g] += result.finish[i] - result.start[i]
        for t in problem.inputs[i]:
            maker = problem.producers[t]
            if assignment[maker] != assignment[i]:
                near[g].add(assignment[maker])
                near[group[maker]].add(assignment[i])
    order = sorted(range(len(weight)), key=lambda g: (-weight[g], g))
    return [
        (g, d) for g in order for d in sorted(near[g]) if d in problem.allows(g)
    ]


def _candidates(
    problem: Problem, order: list[int], extra: Sequence[tuple[str, Sequence[int]]]
) -> list[tuple[str, Make]]:
    """Names, and functions from the share of memory that may be used to an assignment."""
    found: list[tuple[str, Make]] = []
    for kind in range(len(problem.launch)):
        device = problem.kinds.index(kind)
        name = f"all on {problem.cluster.devices[device].name}"
        found.append((name, lambda share, device=device: single_device(problem, device)))  # type: ignore[misc]
    if any(len(a) > 1 for a in problem.allowed):
        found += [(name, lambda share, given=given: list(given)) for name, given in extra]  # type: ignore[misc]
        found.append(("ready order", lambda share: greedy(problem, None, share).assignment))
        found.append(("critical path first", lambda share: greedy(problem, order, share).assignment))
        found += _coarse(problem, order)
        found += splits(problem, order, problem.nodes > _LARGE)
    else:
        del found[1:]
    return found


def _try(
    problem: Problem, name: str, make: Make, order: list[int], done: Sequence[Candidate]
) -> Candidate:
    """The candidate, made with less memory where it doesn't fit. done: some whose simulations are known."""
    share, last = 1.0, None
    for _ in range(_TRIES if problem.nodes <= _LARGE else 1):
        assignment = make(share)
        if last is not None and assignment == last.assignment:
            break
        known = next((c for c in done if c.assignment == assignment), None)
        if known is not None:
            candidate = Candidate(name, assignment, known.result, known.overflow)
        else:
            candidate = _simulated(problem, name, assignment, order)
        if last is None or candidate.overflow < last.overflow:
            last = candidate
        over = candidate.result.overflow(problem)
        if not over:
            break
        share *= 0.9 * min(problem.memory[d] / p for d, p in over)
    assert last is not None
    return last


def _simulated(problem: Problem, name: str, assignment: list[int], order: list[int]) -> Candidate:
    result = simulate(problem, assignment, order)
    over = result.overflow(problem)
    return Candidate(name, assignment, result, sum(p - problem.memory[d] for d, p in over))


def _better(a: Candidate, b: Candidate) -> bool:
    if bool(a.overflow) != bool(b.overflow):
        return not a.overflow
    if a.overflow:
        return a.overflow < b.overflow
    return a.result.makespan < b.result.makespan * _WORTH


def _coarse(problem: Problem, order: list[int]) -> list[tuple[str, Make]]:
    """Greedy simulations of coarser problems: groups of a few per device, up to many."""
    devices = min(len(problem.cluster), _SPLIT)
    large = problem.nodes > _LARGE
    shares = [(per_device / devices, per_device < 0.5) for per_device in (2, 0.5, 0.125, 0.03125)]
    return [
        (
            f"groups of up to {share:.2g} of the work",
            lambda memory, share=share, ranked=ranked: greedy(  # type: ignore[misc]
                coarsen(problem, share), order if ranked else None, memory
            ).assignment,
        )
        for share, ranked in shares[: 1 if large else None]
    ]


def single_device(problem: Problem, device: int) -> list[int]:
    """All on one device; what may not go there, on the nearest that it may."""
    latency = problem.links[1]
    kinds = problem.cluster.kind_of[:, device]
    chosen = [
        -1 if not allowed
        else device if device in allowed
        else min(allowed, key=lambda d: (latency[kinds[d]], d))
        for allowed in problem.allowed
    ]  # fmt: skip
    result: list[int] = np.array(chosen)[problem.allowed_of[problem.group]].tolist()
    return result
