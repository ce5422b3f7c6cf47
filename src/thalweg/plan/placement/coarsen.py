"""Coarser problems: groups between which more would cross than is worth it become one.

The greedy simulation sees one node ahead. It takes a free device for a small gain, and pays when the outputs
have to come back, or when gradients go to where the variable is. Groups that are tied by heavy tensors aren't
worth splitting, so they are joined first, the heaviest tensors first, as long as a group keeps to its share
of all work.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from thalweg.plan.placement.critical_path import fastest_times, mean_link
from thalweg.plan.placement.problem import Array, Problem


def coarsen(problem: Problem, share: float) -> Problem:
    """The same problem with larger groups, each of at most that share of all work.

    Two are joined where a tensor between them takes longer to cross than a node at one of its ends takes.
    """
    p = problem
    times = fastest_times(p)
    latency, per_byte = mean_link(p)
    crossing = (latency + p.sizes * per_byte) * p.crossings
    node = np.repeat(np.arange(p.nodes), np.diff(p.taken_from))
    maker = p.producer[p.taken]
    heavy = (crossing[p.taken] > np.minimum(times[node], times[maker])) & (p.group[node] != p.group[maker])
    heavy &= p.sizes[p.taken] > 0
    order = np.flatnonzero(heavy)
    order = order[np.argsort(-crossing[p.taken[order]], kind="stable")]
    merged = _Merged(p, times, share)
    for a, b in zip(p.group[maker[order]].tolist(), p.group[node[order]].tolist(), strict=True):
        merged.join(a, b)
    return merged.problem()


class _Merged:
    """Groups of groups, each within its share."""

    def __init__(self, problem: Problem, times: Array, share: float) -> None:
        self.p = problem
        self._parent = list(range(len(problem.allowed_of)))
        self._work = np.bincount(problem.group, times, len(self._parent)).tolist()
        self._state = problem.state.tolist()
        self._most_work = float(times.sum()) * share
        self._most_state = min(problem.memory) / 2
        self._allowed = problem.allowed_of.tolist()

    def _root(self, group: int) -> int:
        parent = self._parent
        while parent[group] != group:
            parent[group] = parent[parent[group]]
            group = parent[group]
        return group

    def join(self, a: int, b: int) -> None:
        """Makes one of the two, where they may go to the same devices and stay within the share."""
        a, b = self._root(a), self._root(b)
        if a == b or self._allowed[a] != self._allowed[b]:
            return
        work, state = self._work[a] + self._work[b], self._state[a] + self._state[b]
        if work > self._most_work or state > self._most_state:
            return
        a, b = min(a, b), max(a, b)
        self._parent[b] = a
        self._work[a], self._state[a] = work, state

    def problem(self) -> Problem:
        """The problem with the joined groups."""
        roots = np.array([self._root(g) for g in range(len(self._parent))])
        kept, number = np.unique(roots, return_inverse=True)
        return dataclasses.replace(
            self.p,
            group=number[self.p.group],
            allowed_of=self.p.allowed_of[kept],
            state=np.bincount(number, self.p.state, len(kept)),
        )
