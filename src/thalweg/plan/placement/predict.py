"""How long a placed step will take as it is executed: in clusters, not node by node.

A cluster starts when all that it takes has come, and what it makes is there when it ends. The placer, which
works before there are clusters, lets each node go as soon as it can: its figure is what a placement is chosen
by, this one is what to expect.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from thalweg.graph.graph import Graph
from thalweg.plan.localize import localize
from thalweg.plan.mark import MAX_CLUSTER, mark_clusters, mark_single
from thalweg.plan.order import order_state
from thalweg.plan.placement.build import build
from thalweg.plan.placement.cluster import ClusterDescription
from thalweg.plan.placement.colocation import Groups
from thalweg.plan.placement.costs import CostModel
from thalweg.plan.placement.problem import Problem, topological
from thalweg.plan.placement.simulate import Result, simulate


def predict(
    graph: Graph, cluster: ClusterDescription, costs: CostModel | None = None, clusters: bool = True
) -> Result | None:
    """One simulated step of a placed private graph, which is changed. None where there is control flow in it.

    clusters: whether compilable nodes run in clusters; else each on its own.
    """
    if any(op._control_flow_context is not None for op in graph._ops):
        return None
    localize(graph)
    order = order_state(graph)
    marks = mark_clusters(order, MAX_CLUSTER) if clusters else mark_single(order)
    number = {name: 1 << i for name, i in cluster.index.items()}
    masks = [number[op._device] for op in graph._ops]
    groups = Groups(graph._ops, masks, masks, (1 << len(cluster)) - 1)
    problem = build(graph._ops, cluster, groups, costs).problem
    where = [m.bit_length() - 1 for m in masks]
    whole, members = joined(problem, [marks.cluster.get(op, -1) for op in graph._ops], not costs)
    return simulate(whole, [where[nodes[0]] for nodes in members])


def joined(
    problem: Problem, cluster_of: Sequence[int], overhead: bool = True
) -> tuple[Problem, list[list[int]]]:
    """The problem with the nodes of each cluster made one, and the nodes that each of its nodes stands for.

    cluster_of: the number of each node's cluster, or -1. overhead: starting a cluster takes the device's time
    for that (else the nodes' times have it).
    ValueError where clusters wait for each other in a cycle.
    """
    p = problem
    label = np.asarray(cluster_of, np.int64)
    alone = label < 0
    label = np.where(alone, label.max(initial=-1) + 1 + np.arange(p.nodes), label)
    label = np.unique(label, return_inverse=True)[1]
    count = int(label.max(initial=-1)) + 1
    members: list[list[int]] = [[] for _ in range(count)]
    for i, at in enumerate(label.tolist()):
        members[at].append(i)
    times = np.zeros((count, p.times.shape[1]))
    np.add.at(times, label, p.times)
    if overhead:
        compiled = np.zeros(count, bool)
        compiled[label[~alone]] = True
        times += compiled[:, None] * np.array(p.launch)
    node = label[np.repeat(np.arange(p.nodes), np.diff(p.taken_from))]
    pairs = np.unique(np.stack([node, p.taken])[:, node != label[p.producer[p.taken]]], axis=1)
    crossing, taken = np.unique(pairs[1], return_inverse=True)
    taken_from = np.searchsorted(pairs[0], np.arange(count + 1))
    producer = label[p.producer[crossing]]
    bounds = taken_from.tolist()
    sources = [producer[taken[a:b]].tolist() for a, b in itertools.pairwise(bounds)]
    whole = dataclasses.replace(
        p,
        names=[p.names[nodes[0]] for nodes in members],
        times=times,
        producer=producer,
        sizes=p.sizes[crossing],
        held=p.held[crossing],
        crossings=p.crossings[crossing],
        taken=taken,
        taken_from=taken_from,
        group=np.arange(count),
        allowed_of=p.allowed_of[p.group[[nodes[0] for nodes in members]]],
        state=np.bincount(label[[g[0] for g in p.members]], p.state, count),
        order=topological(sources),
        starts=False,
    )
    return whole, members
