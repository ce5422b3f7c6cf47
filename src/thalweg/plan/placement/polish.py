"""Making less cross: groups move, one by one, to the device where fewer of their tensors have to be sent."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from thalweg.plan.placement.critical_path import fastest_times, mean_link
from thalweg.plan.placement.problem import Problem

#: how often all groups are gone through, at most
_SWEEPS = 4
#: no device gets more work, or bytes, by this than so many times what the fullest had
_BALANCE = 1.02


def polish(problem: Problem, assignment: Sequence[int], even: bool = True) -> list[int]:
    """The assignment, changed so that less crosses. Work stays about as even as it was.

    even: so do bytes, where memory is limited; else variables alone keep within what the devices hold.
    """
    run = _Polish(problem, assignment, even)
    for _ in range(_SWEEPS):
        if not run.sweep():
            break
    return [run.where[g] for g in problem.group.tolist()]


class _Polish:
    def __init__(self, problem: Problem, assignment: Sequence[int], even: bool) -> None:
        p = self.p = problem
        groups, devices = len(p.allowed_of), len(p.cluster)
        where = np.zeros(groups, np.int64)
        where[p.group] = assignment
        self.where: list[int] = where.tolist()
        node = np.repeat(np.arange(p.nodes), np.diff(p.taken_from))
        self.home: list[int] = p.group[p.producer].tolist()
        pairs = np.unique(np.stack([p.group[node], p.taken]), axis=1)
        pairs = pairs[:, pairs[0] != p.group[p.producer[pairs[1]]]]
        self.taken: list[list[int]] = [[] for _ in range(groups)]
        self.made: list[list[int]] = [[] for _ in range(groups)]
        #: of each tensor: how many groups take it on each device where any does
        self.takers: list[dict[int, int]] = [{} for _ in range(len(p.producer))]
        for g, t in zip(*pairs.tolist(), strict=True):
            self.taken[g].append(t)
            at = self.takers[t]
            at[self.where[g]] = at.get(self.where[g], 0) + 1
        for t, g in enumerate(self.home):
            if self.takers[t]:
                self.made[g].append(t)
        latency, per_byte = mean_link(p)
        self.seconds: list[float] = ((latency + p.sizes * per_byte) * p.crossings).tolist()
        self.work: list[float] = np.bincount(p.group, fastest_times(p), groups).tolist()
        self.load: list[float] = np.bincount(where, self.work, devices).tolist()
        self.most = max(self.load) * _BALANCE
        made = p.state + (np.bincount(p.group[p.producer], p.held, groups) if even else 0.0)
        self.bytes: list[float] = made.tolist()
        self.held: list[float] = np.bincount(where, made, devices).tolist()
        limited = not all(map(math.isinf, p.memory))
        self.most_held = [max(self.held) * _BALANCE] * devices if limited and even else p.memory
        rank = np.empty(p.nodes, np.int64)
        rank[p.order] = np.arange(p.nodes)
        first = np.full(groups, p.nodes)
        np.minimum.at(first, p.group, rank)
        self.order: list[int] = np.argsort(first, kind="stable").tolist()

    def sweep(self) -> bool:
        """Goes through the groups once. Whether any moved."""
        moved = False
        for g in self.order:
            near = {self.where[self.home[t]] for t in self.taken[g]}
            for t in self.made[g]:
                near.update(self.takers[t])
            here = self.where[g]
            if near <= {here}:
                continue
            best, most = here, 1e-12
            allowed = self.p.allows(g)
            for device in sorted(near):
                if device == here or device not in allowed or not self._has_room(g, device):
                    continue
                gain = self._gain(g, here, device)
                if gain > most:
                    best, most = device, gain
            if best != here:
                self._move(g, here, best)
                moved = True
        return moved

    def _has_room(self, g: int, device: int) -> bool:
        return (
            self.load[device] + self.work[g] <= self.most
            and self.held[device] + self.bytes[g] <= self.most_held[device]
        )

    def _gain(self, g: int, here: int, there: int) -> float:
        """Seconds of transfers that a move saves."""
        gain = 0.0
        for t in self.made[g]:
            at = self.takers[t]
            gain += self.seconds[t] * ((there in at) - (here in at))
        for t in self.taken[g]:
            at, home = self.takers[t], self.where[self.home[t]]
            if home != here and at[here] == 1:
                gain += self.seconds[t]
            if home != there and there not in at:
                gain -= self.seconds[t]
        return gain

    def _move(self, g: int, here: int, there: int) -> None:
        self.where[g] = there
        self.load[here] -= self.work[g]
        self.load[there] += self.work[g]
        self.held[here] -= self.bytes[g]
        self.held[there] += self.bytes[g]
        for t in self.taken[g]:
            at = self.takers[t]
            at[here] -= 1
            if not at[here]:
                del at[here]
            at[there] = at.get(there, 0) + 1
