"""The placer's greedy simulation: nodes in some order, each to the device where it ends soonest.

This is the algorithm of the TensorFlow white paper (section 3.2.1): for a node the finish on each feasible
device is estimated as the time when its inputs have got there, or when the device is free, plus its run
time. In ready order nodes come as their inputs become available, as when the step runs. In rank order the
node with the most work behind it comes first (critical_path.py).

Nodes that take no time and come from nothing (variables, reads of them) don't choose: their group goes where
the node that does most with it goes, when that one is placed.

With more than MANY devices not all are tried for a node: of those that are alike (in kind, and in the task
that they belong to) the one that is free soonest stands for all. Tried are the devices that hold inputs, the
soonest free ones of their tasks, and the soonest free ones of all.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg.plan.placement.critical_path import fastest_times
from thalweg.plan.placement.problem import Problem

#: up to so many devices, each is tried for each node
MANY = 16
#: the holders of inputs that are tried, where there are many devices: those with the most bytes
_HOLDERS = 4


@dataclass
class Placed:
    """What a greedy run chose: each node's device, the order in which it placed them, whether all fits."""

    assignment: list[int]
    order: list[int]
    fits: bool


def greedy(problem: Problem, order: Sequence[int] | None = None, memory_share: float = 1.0) -> Placed:
    """Places each node where it ends soonest; ties go to the first device.

    order: the order of the nodes, a topological one; ready order where None.
    memory_share: how much of each device's memory it may use, by its own count: outputs are in memory until
    all that take them have been placed.
    """
    run = _Greedy(problem, memory_share)
    if order is None:
        run.in_ready_order()
    else:
        for node in order:
            run.place(node)
    return run.result()


class _Greedy:
    def __init__(self, problem: Problem, memory_share: float) -> None:
        p = self.p = problem
        self.devices = len(p.cluster)
        self.inputs, self.outputs, self.producers = p.inputs, p.outputs, p.producers
        self.group = p.group.tolist()
        self.times: list[list[float]] = p.times.tolist()
        self.sizes: list[float] = p.sizes.tolist()
        self.held: list[float] = p.held.tolist()
        self.crossings: list[float] = p.crossings.tolist()
        self.link_kind, self.latency, self.per_byte = p.links
        self.kinds, self.launch = p.kinds, p.launch
        self.task_of = p.cluster.task_of
        self.where = [-1] * len(p.allowed_of)  # by group
        group_times = np.zeros((len(p.allowed_of), p.times.shape[1]))
        np.add.at(group_times, p.group, p.times)
        self.group_times: list[list[float]] = group_times.tolist()
        self.finish = [0.0] * p.nodes
        self.free = [0.0] * self.devices
        self.port_free = [0.0] * (self.devices + len(set(self.task_of)))
        self.pool_of, lanes = p.pools
        self.lanes = [[0.0] * n for n in lanes]
        self.arrivals: dict[int, float] = {}  # (tensor, device) -> when it is there
        self.copies: dict[int, list[int]] = {}  # tensor -> devices that it was sent to
        self.placed: list[int] = []
        self.fits = True
        self.limited = not all(map(math.isinf, p.memory))
        self.most = [m * memory_share for m in p.memory]
        self.used = [0.0] * self.devices
        self.left = [len(t) for t in p.takers] if self.limited else []
        self.state: list[float] = p.state.tolist()
        self.floating, owners = _owners(p)
        #: the groups that go where a node goes; those that go where a group of nodes that don't choose goes
        self.owned: dict[int, list[int]] = {}
        self.follow: dict[int, list[int]] = {}
        for group, node in enumerate(owners):
            if node >= 0 and self.floating[node]:
                self.follow.setdefault(self.group[node], []).append(group)
            elif node >= 0:
                self.owned.setdefault(node, []).append(group)
        #: devices by (set of allowed ones, task) and kind, as heaps by the time when each is free
        self.soonest: dict[tuple[int, int | None], list[list[tuple[float, int]]]] = {}
        self.allowed_sets = [frozenset(a) for a in p.allowed]
        self._pin()

    def _pin(self) -> None:
        """Groups that have no choice are placed before all others."""
        for group, which in enumerate(self.p.allowed_of.tolist()):
            devices = self.p.allowed[which]
            if len(devices) == 1:
                self._settle(group, devices[0])

    def in_ready_order(self) -> None:
        """Places all nodes, each when its inputs are there."""
        position = [0] * self.p.nodes
        for at, i in enumerate(self.p.order):
            position[i] = at
        pending = [len(i) for i in self.inputs]
        ready_at = [0.0] * self.p.nodes
        heap = [(0.0, position[i], i) for i in self.p.order if not pending[i]]
        takers = self.p.takers
        while heap:
            _, _, i = heapq.heappop(heap)
            self.place(i)
            end = self.finish[i]
            for t in self.outputs[i]:
                for user in takers[t]:
                    pending[user] -= 1
                    if end > ready_at[user]:
                        ready_at[user] = end
                    if not pending[user]:
                        heapq.heappush(heap, (ready_at[user], position[user], user))

    def place(self, i: int) -> None:
        """Chooses the device of a node, where its group has none yet, and puts it there."""
        self.placed.append(i)
        group = self.group[i]
        if self.floating[i]:
            return  # there when the step starts; its group may be settled later
        chosen = self.where[group]
        if chosen < 0:
            chosen = self._choose(i, group)
            self._settle(group, chosen)
        for owned in self.owned.get(i, ()):
            if self.where[owned] < 0:
                self._settle(owned, self._near(owned, chosen))
        self._put(i, chosen)

    def _choose(self, i: int, group: int) -> int:
        allowed = self.p.allows(group)
        candidates = allowed if len(allowed) <= MANY else self._promising(i, group, allowed)
        best, soonest = -1, math.inf
        for device in candidates:
            if self.limited and not self._has_room(i, group, device):
                continue
            end = self._finish_on(i, device)
            if end < soonest:
                best, soonest = device, end
        if best >= 0:
            return best
        if not self.limited:
            raise ValueError(f"node {i} may go nowhere")
        return self._roomiest(i, group, allowed)

    def _finish_on(self, i: int, device: int) -> float:
        """When node i would end there, from what is known so far."""
        ready, crosses = 0.0, False
        into_free = -1.0
        for t in self.inputs[i]:
            producer = self.producers[t]
            source = self.where[self.group[producer]]
            if source < 0:
                continue  # not settled: it will be near the node that does most with it
            if source == device:
                there = self.finish[producer]
            else:
                crosses = True
                known = self.arrivals.get(t * self.devices + device)
                if known is None:
                    kind = self.link_kind[source][device]
                    out, into = self._ports(source, device)
                    start = max(self.finish[producer], self.port_free[out], self.port_free[into], into_free)
                    into_free = start + self.sizes[t] * self.per_byte[kind] * self.crossings[t]
                    known = into_free + self.latency[kind] * self.crossings[t]
                there = known
            if there > ready:
                ready = there
        kind = self.kinds[device]
        cost = self.times[i][kind]
        if cost == 0.0:
            return ready
        if crosses:
            cost += self.launch[kind]
        return max(ready, self.free[device], self._lane_free(device)) + cost

    def _lane_free(self, device: int) -> float:
        lanes = self.lanes[self.pool_of[device]]
        return lanes[0] if len(lanes) == 1 else min(lanes)

    def _ports(self, source: int, target: int) -> tuple[int, int]:
        a, b = self.task_of[source], self.task_of[target]
        return (source, target) if a == b else (self.devices + a, self.devices + b)

    def _put(self, i: int, device: int) -> None:
        """Puts a node on a device: its inputs cross, its time passes there, its memory is counted."""
        ready, crosses = 0.0, False
        for t in self.inputs[i]:
            producer = self.producers[t]
            source = self.where[self.group[producer]]
            if source < 0:
                continue
            there = self.finish[producer]
            if source != device:
                crosses = True
                there = self._send(t, source, device, there)
            if there > ready:
                ready = there
        kind = self.kinds[device]
        cost = self.times[i][kind]
        if cost > 0.0:
            if crosses:
                cost += self.launch[kind]
            lanes = self.lanes[self.pool_of[device]]
            lane = min(range(len(lanes)), key=lanes.__getitem__) if len(lanes) > 1 else 0
            ready = max(ready, self.free[device], lanes[lane]) + cost
            self.free[device] = lanes[lane] = ready
        self.finish[i] = ready
        if self.limited:
            self._count_memory(i, device)

    def _send(self, t: int, source: int, device: int, made: float) -> float:
        key = t * self.devices + device
        known = self.arrivals.get(key)
        if known is None:
            kind = self.link_kind[source][device]
            out, into = self._ports(source, device)
            start = max(made, self.port_free[out], self.port_free[into])
            end = start + self.sizes[t] * self.per_byte[kind] * self.crossings[t]
            self.port_free[out] = self.port_free[into] = end
            known = self.arrivals[key] = end + self.latency[kind] * self.crossings[t]
            if self.limited:
                self.copies.setdefault(t, []).append(device)
                self.used[device] += self.sizes[t]
        return known

    def _settle(self, group: int, device: int) -> None:
        """The group goes to that device, with its variables, and the groups that follow its nodes."""
        self.where[group] = device
        self.used[device] += self.state[group]
        if self.used[device] > self.most[device]:
            self.fits = False
        for other in self.follow.get(group, ()):
            if self.where[other] < 0:
                self._settle(other, self._near(other, device))

    def _near(self, group: int, device: int) -> int:
        """Where a group goes that belongs to what is on `device`: there, or as near as it may."""
        which = int(self.p.allowed_of[group])
        need = self.state[group]
        if device in self.allowed_sets[which] and self.used[device] + need <= self.most[device]:
            return device
        best, rating = -1, (True, math.inf)
        for d in self.p.allowed[which]:
            kind = self.link_kind[d][device]
            far = self.latency[kind] + need * self.per_byte[kind] + self.group_times[group][self.kinds[d]]
            now = (self.used[d] + need > self.most[d], far)
            if best < 0 or now < rating:
                best, rating = d, now
        return best

    def _has_room(self, i: int, group: int, device: int) -> bool:
        return self.used[device] + self._need(i, group, device) <= self.most[device]

    def _need(self, i: int, group: int, device: int) -> float:
        """Bytes that the device would hold more with node i there."""
        need = self.state[group] + sum(self.held[t] for t in self.outputs[i])
        for t in self.inputs[i]:
            source = self.where[self.group[self.producers[t]]]
            if source >= 0 and source != device and t * self.devices + device not in self.arrivals:
                need += self.sizes[t]
        for owned in self.owned.get(i, ()):
            if self.where[owned] < 0:
                need += self.state[owned]
        return need

    def _roomiest(self, i: int, group: int, allowed: Iterable[int]) -> int:
        """Where it fits and ends soonest, of all devices; else where most memory is left."""
        fitting = [d for d in allowed if self._has_room(i, group, d)]
        if fitting:
            return min(fitting, key=lambda d: self._finish_on(i, d))
        self.fits = False
        return max(allowed, key=lambda d: self.most[d] - self.used[d])

    def _count_memory(self, i: int, device: int) -> None:
        for t in self.outputs[i]:
            if self.left[t]:
                self.used[device] += self.held[t]
        for t in self.inputs[i]:
            self.left[t] -= 1
            if not self.left[t]:
                source = self.where[self.group[self.producers[t]]]
                if source >= 0 and not self.floating[self.producers[t]]:
                    self.used[source] -= self.held[t]
                for copy in self.copies.get(t, ()):
                    self.used[copy] -= self.sizes[t]

    def _promising(self, i: int, group: int, allowed: tuple[int, ...]) -> list[int]:
        """What is worth trying: holders of inputs, the soonest free near them, the soonest free of all."""
        which = int(self.p.allowed_of[group])
        held: dict[int, float] = {}
        for t in self.inputs[i]:
            source = self.where[self.group[self.producers[t]]]
            if source >= 0:
                held[source] = held.get(source, 0.0) + self.sizes[t] + 1.0
        holders = sorted(held, key=lambda d: (-held[d], d))[:_HOLDERS]
        found = {d for d in holders if d in self.allowed_sets[which]}
        for key in [(which, None), *((which, self.task_of[d]) for d in holders)]:
            for kind_heap in self._heaps(key, allowed):
                if kind_heap:
                    found.add(self._soonest(kind_heap))
        return sorted(found)

    def _heaps(self, key: tuple[int, int | None], allowed: tuple[int, ...]) -> list[list[tuple[float, int]]]:
        """By kind: the allowed devices (of one task), as heaps by the time when each is free."""
        heaps = self.soonest.get(key)
        if heaps is None:
            heaps = [[] for _ in self.launch]
            for d in allowed:
                if key[1] is None or self.task_of[d] == key[1]:
                    heaps[self.kinds[d]].append((self.free[d], d))
            for heap in heaps:
                heapq.heapify(heap)
            self.soonest[key] = heaps
        return heaps

    def _soonest(self, heap: list[tuple[float, int]]) -> int:
        while True:
            known, device = heap[0]
            now = self.free[device]
            if known == now:
                return device
            heapq.heapreplace(heap, (now, device))

    def result(self) -> Placed:
        """What was chosen. Groups that nothing has placed go with what takes them, or to the first device."""
        for i in reversed(self.placed):
            group = self.group[i]
            if self.where[group] < 0:
                users = [u for t in self.outputs[i] for u in self.p.takers[t]]
                near = next((d for u in users if (d := self.where[self.group[u]]) >= 0), -1)
                self._settle(group, self._near(group, near if near >= 0 else self.p.allows(group)[0]))
        where = np.array(self.where)
        return Placed(where[self.p.group].tolist(), self.placed, self.fits)


def _owners(problem: Problem) -> tuple[list[bool], list[int]]:
    """Which nodes don't choose; for each group with such nodes the node that does most with them, or -1."""
    p = problem
    group, producers, inputs, takers = p.group.tolist(), p.producers, p.inputs, p.takers
    floating = (p.times.max(axis=1) == 0.0).tolist() if p.nodes else []
    for i in p.order:
        if floating[i] and not all(floating[producers[t]] for t in inputs[i]):
            floating[i] = False
    weight = fastest_times(p).tolist()
    owners = [-1] * len(p.allowed_of)
    heaviest = [-1.0] * len(p.allowed_of)
    for i in reversed(p.order):
        if not floating[i]:
            continue
        g = group[i]
        for t in p.outputs[i]:
            for user in takers[t]:
                if group[user] != g:
                    weight[i] = max(weight[i], weight[user])
                    if weight[user] >= heaviest[g]:  # of equals, the first in order
                        heaviest[g], owners[g] = weight[user], user
    return floating, owners
