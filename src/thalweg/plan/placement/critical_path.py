"""How much work comes after each node, and what no placement can beat."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.plan.placement.problem import Problem


def upward_ranks(problem: Problem) -> list[float]:
    """For each node the seconds from its start to the end of the step, at least, on devices of average speed.

    As in HEFT (Topcuoglu et al. 2002): a node's own mean time, and the longest way through its takers, where
    each edge counts the mean time that a transfer between two devices takes.
    """
    p = problem
    kinds = np.bincount(p.kinds)
    mean = p.times @ (kinds / kinds.sum())
    latency, per_byte = mean_link(p)
    cross = ((latency + p.sizes * per_byte) * p.crossings).tolist()
    rank = [0.0] * p.nodes
    takers, outputs, own = p.takers, p.outputs, mean.tolist()
    for i in reversed(p.order):
        longest = 0.0
        for t in outputs[i]:
            after = 0.0
            for user in takers[t]:
                if rank[user] > after:
                    after = rank[user]
            if after and after + cross[t] > longest:
                longest = after + cross[t]
        rank[i] = own[i] + longest
    return rank


def by_rank(problem: Problem, rank: list[float]) -> list[int]:
    """The nodes, the one with the most work behind it first; a topological order."""
    position = np.empty(problem.nodes, np.int64)
    position[problem.order] = np.arange(problem.nodes)
    order: list[int] = np.lexsort((position, -np.asarray(rank))).tolist()
    return order


def mean_link(problem: Problem) -> tuple[float, float]:
    """The mean latency, and seconds per byte, of the links between two devices."""
    devices = len(problem.cluster)
    if devices == 1:
        return 0.0, 0.0
    counts = np.bincount(problem.cluster.kind_of.ravel(), minlength=len(problem.cluster.speeds)).astype(float)
    counts[0] = 0  # a device and itself
    _, latency, per_byte = problem.links
    return float(counts @ latency / counts.sum()), float(counts @ per_byte / counts.sum())


def lower_bound(problem: Problem) -> tuple[float, float]:
    """Seconds that no placement can beat: the longest path, and the work shared evenly among all devices.

    Each node takes what it takes on the fastest of the devices that it may go to.
    """
    fastest = fastest_times(problem)
    end = [0.0] * problem.nodes
    times = fastest.tolist()
    inputs, producers = problem.inputs, problem.producers
    for i in problem.order:
        end[i] = times[i] + max((end[producers[t]] for t in inputs[i]), default=0.0)
    _, lanes = problem.pools
    return max(end, default=0.0), float(fastest.sum()) / sum(lanes)


def fastest_times(problem: Problem) -> np.ndarray[Any, Any]:
    """The seconds of each node on the fastest of the devices that it may go to."""
    kinds = np.array(problem.kinds)
    sets = [problem.times[:, np.unique(kinds[list(a)])].min(axis=1) if a else None for a in problem.allowed]
    which = problem.allowed_of[problem.group]
    result = np.zeros(problem.nodes)
    for number, times in enumerate(sets):
        if times is not None:
            mask = which == number
            result[mask] = times[mask]
    return result
