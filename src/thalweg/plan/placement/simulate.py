"""Running a placed graph on paper: when every node starts and ends, what crosses, what is in memory.

The model: a device runs one node at a time, of those that are ready the first by priority. When a node ends,
its outputs leave at once for every other device where they are taken, once to each. Transfers between devices
of one task queue at the two devices, others at the two tasks (their network cards). A node that takes
something
from another device starts a new cluster there: it takes `Problem.launch` longer. Devices that share cores
(`DeviceInfo.shares`) compute in turns. An output is in memory from its node's start until its last taker
there ends and it has been sent; what arrives, from the start of its transfer until the last taker ends.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.plan.placement.problem import Problem

_ARRIVES, _ENDS, _LEAVES = 0, 1, 2


@dataclass
class Result:
    """What a simulated step did. Times in seconds, sizes in bytes, lists by device or node."""

    makespan: float
    start: list[float]
    finish: list[float]
    busy: list[float]
    peak: list[float]
    sent: list[float]
    received: list[float]
    #: (tensor, from, to, start, arrival), in order of arrival
    transfers: list[tuple[int, int, int, float, float]] = field(default_factory=list)

    def overflow(self, problem: Problem) -> list[tuple[int, float]]:
        """The devices that would hold more than they can, and how many bytes they would hold."""
        return [(d, p) for d, (p, most) in enumerate(zip(self.peak, problem.memory, strict=True)) if p > most]


def simulate(problem: Problem, assignment: Sequence[int], order: Sequence[int] | None = None) -> Result:
    """Runs one step with node i on device assignment[i].

    order: the nodes by priority, the first goes first; any order will do. A topological one where None.
    """
    return _Run(problem, assignment, problem.order if order is None else order).result


class _Run:
    """One simulated step. The loops run over plain lists: an event costs some microseconds."""

    def __init__(self, problem: Problem, assignment: Sequence[int], order: Sequence[int]) -> None:
        self.p = problem
        self.where = [int(d) for d in assignment]
        self._lay_out(order)
        self._prepare()
        self._run()
        devices = len(problem.cluster)
        finish = self.finish
        self.result = Result(
            max(finish, default=0.0), self.start, finish, self.busy, self.peak,
            np.bincount(self.copy_from, self.copy_bytes, devices).tolist(),
            np.bincount(self.copy_to, self.copy_bytes, devices).tolist(),
            self.transfers,
        )  # fmt: skip

    def _lay_out(self, order: Sequence[int]) -> None:
        """Which tensors are taken where they are made, and which copies there are of the others."""
        p, n = self.p, self.p.nodes
        where = np.asarray(self.where, np.int64)
        devices = len(p.cluster)
        node = np.repeat(np.arange(n), np.diff(p.taken_from))
        home = where[p.producer[p.taken]] if len(p.taken) else p.taken
        there = where[node]
        remote = home != there
        keys, inverse = np.unique(p.taken[remote] * devices + there[remote], return_inverse=True)
        self.copy_tensor = (keys // devices).tolist()
        to = keys % devices
        sources = where[p.producer[keys // devices]] if len(keys) else keys
        self.copy_to, self.copy_from = to.tolist(), sources.tolist()
        bytes_once = p.sizes[keys // devices]
        self.copy_hold = bytes_once.tolist()
        crossings = p.crossings[keys // devices]
        self.copy_bytes = (bytes_once * crossings).tolist()
        kind = p.cluster.kind_of[sources, to]
        latency, per_byte = (np.array(x) for x in p.links[1:])
        self.copy_seconds = (bytes_once * per_byte[kind] * crossings).tolist()
        self.copy_latency = (latency[kind] * crossings).tolist()
        tasks = np.array(p.cluster.task_of)
        local = tasks[sources] == tasks[to]
        self.copy_out = np.where(local, sources, devices + tasks[sources]).tolist()
        self.copy_in = np.where(local, to, devices + tasks[to]).tolist()
        #: of each taken tensor (as in Problem.taken): its copy, or -1 where it is local
        copy_of = np.full(len(p.taken), -1)
        copy_of[remote] = inverse
        bounds = p.taken_from.tolist()
        flat = copy_of.tolist()
        self.in_copies = [flat[a:b] for a, b in itertools.pairwise(bounds)]
        self.copy_left = np.bincount(inverse, minlength=len(keys)).tolist()
        self.copy_takers = _split(node[remote], inverse, len(keys))
        self.local_takers = _split(node[~remote], p.taken[~remote], len(p.producer))
        self.copies_of = _split(np.arange(len(keys)), keys // devices, len(p.producer))
        crossing = np.zeros(n, bool)
        crossing[node[remote]] = True
        kinds = np.array(p.kinds)[where]
        times = p.times[np.arange(n), kinds]
        self.cost = (times + np.array(p.launch)[kinds] * (crossing & (times > 0))).tolist()
        self.priority = [0] * n
        for at, i in enumerate(order):
            self.priority[i] = at

    def _prepare(self) -> None:
        p = self.p
        devices = len(p.cluster)
        self.start, self.finish = [0.0] * p.nodes, [0.0] * p.nodes
        self.busy = np.bincount(self.where, self.cost, devices).tolist()
        group_device = np.zeros(len(p.state), np.int64)
        group_device[p.group] = self.where
        self.used = np.bincount(group_device, p.state, devices).tolist()
        self.peak = list(self.used)
        self.pending = [len(i) for i in p.inputs]
        self.tensor_left = [
            len(takers) + len(copies)
            for takers, copies in zip(self.local_takers, self.copies_of, strict=True)
        ]
        self.held = p.held.tolist()
        self.ready: list[list[tuple[int, int]]] = [[] for _ in range(devices)]
        self.idle = [True] * devices
        self.pool_of, lanes = p.pools
        self.free_lanes = list(lanes)
        self.pool_devices: list[list[int]] = [[] for _ in lanes]
        for device, pool in enumerate(self.pool_of):
            self.pool_devices[pool].append(device)
        self.port_free = [0.0] * (devices + len(set(p.cluster.task_of)))
        self.events: list[tuple[float, int, int]] = []
        self.transfers: list[tuple[int, int, int, float, float]] = []

    def _run(self) -> None:
        self._become_ready([i for i in self.p.order if not self.pending[i]], 0.0)
        self._start(range(len(self.pool_devices)), 0.0)
        events, pool_of, where = self.events, self.pool_of, self.where
        while events:
            now = events[0][0]
            touched: dict[int, None] = {}
            while events and events[0][0] == now:
                _, what, i = heapq.heappop(events)
                if what == _ENDS:
                    device = where[i]
                    self.idle[device] = True
                    pool = pool_of[device]
                    self.free_lanes[pool] += 1
                    touched.setdefault(pool)
                    woken = self._end(i, now)
                elif what == _LEAVES:
                    self._hold(self.copy_to[i], self.copy_hold[i])
                    continue
                else:
                    self._drop_tensor(self.copy_tensor[i])
                    woken = self._less(self.copy_takers[i])
                for device in self._become_ready(woken, now):
                    touched.setdefault(pool_of[device])
            self._start(touched, now)

    def _become_ready(self, nodes: Sequence[int], now: float) -> list[int]:
        """Nodes that take no time end at once, others queue. Returns the devices where some queue."""
        devices = []
        stack = list(nodes)
        while stack:
            i = stack.pop()
            device = self.where[i]
            if self.cost[i] > 0.0:
                heapq.heappush(self.ready[device], (self.priority[i], i))
                devices.append(device)
                continue
            self.start[i] = now
            for t in self.p.outputs[i]:
                self._hold(device, self.held[t])
            stack.extend(self._end(i, now))
        return devices

    def _start(self, pools: Any, now: float) -> None:
        """Starts what can start: in each pool, on idle devices, the first by priority."""
        ready, idle = self.ready, self.idle
        for pool in pools:
            while self.free_lanes[pool]:
                best = -1
                for device in self.pool_devices[pool]:
                    if idle[device] and ready[device] and (best < 0 or ready[device][0] < ready[best][0]):
                        best = device
                if best < 0:
                    break
                _, i = heapq.heappop(ready[best])
                idle[best] = False
                self.free_lanes[pool] -= 1
                self.start[i] = now
                for t in self.p.outputs[i]:
                    self._hold(best, self.held[t])
                heapq.heappush(self.events, (now + self.cost[i], _ENDS, i))

    def _end(self, i: int, now: float) -> list[int]:
        """A node has ended: its outputs leave, its inputs may go. Returns the nodes that became ready."""
        self.finish[i] = now
        device = self.where[i]
        woken: list[int] = []
        for t in self.p.outputs[i]:
            for copy in self.copies_of[t]:
                self._send(copy, now)
            if self.local_takers[t]:
                woken += self._less(self.local_takers[t])
            elif not self.tensor_left[t]:
                self.used[device] -= self.held[t]
        for t, copy in zip(self.p.inputs[i], self.in_copies[i], strict=True):
            if copy < 0:
                self._drop_tensor(t)
            else:
                self.copy_left[copy] -= 1
                if not self.copy_left[copy]:
                    self.used[device] -= self.copy_hold[copy]
        return woken

    def _send(self, copy: int, now: float) -> None:
        out, into, free = self.copy_out[copy], self.copy_in[copy], self.port_free
        start = max(now, free[out], free[into])
        end = start + self.copy_seconds[copy]
        free[out] = free[into] = end
        arrival = end + self.copy_latency[copy]
        if start > now:
            heapq.heappush(self.events, (start, _LEAVES, copy))
        else:
            self._hold(self.copy_to[copy], self.copy_hold[copy])
        heapq.heappush(self.events, (arrival, _ARRIVES, copy))
        self.transfers.append(
            (self.copy_tensor[copy], self.copy_from[copy], self.copy_to[copy], start, arrival)
        )

    def _hold(self, device: int, size: float) -> None:
        used = self.used[device] = self.used[device] + size
        if used > self.peak[device]:
            self.peak[device] = used

    def _drop_tensor(self, t: int) -> None:
        """A taker or a transfer needs it no more."""
        self.tensor_left[t] -= 1
        if not self.tensor_left[t]:
            self.used[self.where[self.p.producers[t]]] -= self.held[t]

    def _less(self, nodes: Sequence[int]) -> list[int]:
        """One input more is there for these nodes. Returns those that have all now."""
        pending = self.pending
        woken = []
        for i in nodes:
            pending[i] -= 1
            if not pending[i]:
                woken.append(i)
        return woken


def _split(values: Any, keys: Any, count: int) -> list[list[int]]:
    """values, in lists by key."""
    by_key = np.argsort(keys, kind="stable")
    flat = values[by_key].tolist()
    bounds = np.searchsorted(keys[by_key], np.arange(count + 1)).tolist()
    return [flat[a:b] for a, b in itertools.pairwise(bounds)]
