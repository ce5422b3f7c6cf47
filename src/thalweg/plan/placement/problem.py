"""The placement problem as numbers: what to place, where it may go, what everything costs.

Nodes, tensors, devices and groups go by their index. Nothing in here knows of graphs: benchmarks make
problems of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from thalweg.plan.placement.cluster import ClusterDescription

Array = np.ndarray[Any, Any]


@dataclass
class Problem:
    """A graph without cycles to be placed on a cluster.

    A group of nodes goes to one device. A tensor crosses once to each device where it is taken.
    """

    cluster: ClusterDescription
    names: list[str]
    #: times[i, k]: seconds that node i takes on a device of kind k
    times: Array
    #: of each tensor: the node that makes it, the bytes that cross, the bytes that it holds where it is made
    #: (a variable's value is held by the variable), how often it crosses in a step (in a loop: each
    #: iteration)
    producer: Array
    sizes: Array
    held: Array
    crossings: Array
    #: node i takes the tensors taken[taken_from[i] : taken_from[i + 1]], each listed once. What is there on
    #: every device when the step starts (constants, arguments) is left out
    taken: Array
    taken_from: Array
    #: of each node: its group. Of each group: which of `allowed` holds the devices that it may go to
    group: Array
    allowed_of: Array
    allowed: list[tuple[int, ...]]
    #: bytes that each group's variables hold all the time
    state: Array
    #: a topological order
    order: list[int]
    #: the kinds of devices (DeviceInfo.kind), and the kind of each device
    kinds: list[int] = field(default_factory=list)
    #: how many nodes run at a time on devices that share their cores
    lanes: int = 1
    #: whether a node that waits for another device starts a cluster, which takes the device's overhead
    starts: bool = True

    def __post_init__(self) -> None:
        """Each node's tensors in ascending order, so that it doesn't matter how they came."""
        node = np.repeat(np.arange(self.nodes), np.diff(self.taken_from))
        self.taken = self.taken[np.lexsort((self.taken, node))]

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.names)

    @cached_property
    def memory(self) -> list[float]:
        """Bytes that each device holds."""
        return [math.inf if d.memory is None else float(d.memory) for d in self.cluster.devices]

    @cached_property
    def launch(self) -> list[float]:
        """Of each kind: seconds that a node takes more where it waits for another device."""
        first: dict[int, float] = {}
        for kind, device in zip(self.kinds, self.cluster.devices, strict=True):
            first.setdefault(kind, device.overhead)
        return [first[k] * self.starts for k in range(len(first))]

    @cached_property
    def pools(self) -> tuple[list[int], list[int]]:
        """For each device the pool that computes for it; for each pool, how many nodes run at a time."""
        numbers: dict[Any, int] = {}
        of = [numbers.setdefault(d.shares or d.name, len(numbers)) for d in self.cluster.devices]
        shared = {d.shares for d in self.cluster.devices if d.shares}
        return of, [self.lanes if key in shared else 1 for key in numbers]

    @cached_property
    def links(self) -> tuple[list[list[int]], list[float], list[float]]:
        """kind[i][j] of the link between two devices; of each kind the latency and the seconds per byte."""
        speeds = self.cluster.speeds
        return (
            self.cluster.kind_of.tolist(),
            [s.latency for s in speeds],
            [0.0 if math.isinf(s.bandwidth) else 1 / s.bandwidth for s in speeds],
        )

    @cached_property
    def producers(self) -> list[int]:
        """The node that makes each tensor."""
        return self.producer.tolist()  # type: ignore[no-any-return]

    @cached_property
    def inputs(self) -> list[list[int]]:
        """The tensors that each node takes."""
        flat, bounds = self.taken.tolist(), self.taken_from.tolist()
        return [flat[a:b] for a, b in itertools.pairwise(bounds)]

    @cached_property
    def outputs(self) -> list[list[int]]:
        """The tensors that each node makes."""
        made: list[list[int]] = [[] for _ in self.names]
        for tensor, node in enumerate(self.producers):
            made[node].append(tensor)
        return made

    @cached_property
    def takers(self) -> list[list[int]]:
        """The nodes that take each tensor."""
        users: list[list[int]] = [[] for _ in range(len(self.producer))]
        for node, tensors in enumerate(self.inputs):
            for tensor in tensors:
                users[tensor].append(node)
        return users

    @cached_property
    def members(self) -> list[list[int]]:
        """The nodes of each group."""
        found: list[list[int]] = [[] for _ in range(len(self.allowed_of))]
        for node, group in enumerate(self.group.tolist()):
            found[group].append(node)
        return found

    def held_by_node(self) -> list[float]:
        """Bytes that each node holds: its variable's, or those of its outputs."""
        held = np.bincount(self.producer, self.held, self.nodes)
        for group, members in enumerate(self.members):
            held[members[0]] += self.state[group]
        return held.tolist()  # type: ignore[no-any-return]

    def allows(self, group: int) -> tuple[int, ...]:
        """The devices that a group may go to, in ascending order."""
        return self.allowed[int(self.allowed_of[group])]


def make_problem(
    cluster: ClusterDescription,
    times: Any,
    edges: Iterable[tuple[int, int, float]],
    *,
    names: Sequence[str] = (),
    held: Sequence[float] | None = None,
    state: Sequence[float] | None = None,
    groups: Iterable[Sequence[int]] = (),
    allowed: dict[int, Sequence[int]] | None = None,
) -> Problem:
    """A problem of one tensor per node, for benchmarks and tests.

    times: seconds of each node on each kind of device ([nodes, kinds], kinds in order of appearance), or
        [nodes] where one number serves.
    edges: (from, to, bytes): `to` takes the output of `from`; the bytes are those of its whole output.
    held: bytes of each node's output; those that cross, where None. state: bytes that each node holds always.
    groups: nodes that go together. allowed: devices that a node (with its group) may go to.
    ValueError where the edges have a cycle.
    """
    kinds = device_kinds(cluster)
    table = np.asarray(times, np.float64)
    n = len(table)
    if table.ndim == 1:
        table = np.repeat(table[:, None], max(kinds) + 1, axis=1)
    sizes = np.zeros(n)
    inputs: list[dict[int, None]] = [{} for _ in range(n)]
    for source, target, size in edges:
        sizes[source] = max(sizes[source], size)
        inputs[target].setdefault(source)
    taken = np.array([t for tensors in inputs for t in tensors], np.int64)
    taken_from = np.cumsum([0, *map(len, inputs)])
    group = np.arange(n)
    for members in groups:
        group[np.isin(group, group[list(members)])] = group[members[0]]
    group = np.unique(group, return_inverse=True)[1]
    everywhere = tuple(range(len(cluster)))
    sets = {everywhere: 0}
    allowed_of = np.zeros(group.max(initial=-1) + 1, np.int64)
    for node, devices in (allowed or {}).items():
        now = set(list(sets)[allowed_of[group[node]]])
        allowed_of[group[node]] = sets.setdefault(tuple(sorted(now & set(devices))), len(sets))
    return Problem(
        cluster,
        list(names) or [f"n{i}" for i in range(n)],
        table,
        np.arange(n),
        sizes,
        sizes.copy() if held is None else np.asarray(held, np.float64),
        np.ones(n),
        taken,
        taken_from,
        group,
        allowed_of,
        list(sets),
        np.bincount(group, state, len(allowed_of)) if state is not None else np.zeros(len(allowed_of)),
        topological([list(i) for i in inputs]),
        kinds,
    )


def device_kinds(cluster: ClusterDescription) -> list[int]:
    """The number of each device's kind, in order of appearance."""
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(d.kind, len(numbers)) for d in cluster.devices]


def topological(sources: Sequence[Sequence[int]]) -> list[int]:
    """The nodes, each after its sources, otherwise in ascending order as far as that goes.

    ValueError where there is a cycle.
    """
    n = len(sources)
    if all(s < i for i, nodes in enumerate(sources) for s in nodes):
        return list(range(n))
    users: list[list[int]] = [[] for _ in range(n)]
    for node, nodes in enumerate(sources):
        for source in nodes:
            users[source].append(node)
    pending = [len(nodes) for nodes in sources]
    order = [i for i in range(n) if not pending[i]]
    for node in order:  # grows
        for user in users[node]:
            pending[user] -= 1
            if not pending[user]:
                order.append(user)
    if len(order) < n:
        raise ValueError(f"the graph has a cycle through node {next(i for i in range(n) if pending[i] > 0)}")
    return order
