"""The pass: every node of a plan gets a device."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.base import device_name
from thalweg.base.errors import InvalidArgumentError, ResourceExhaustedError
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation
from thalweg.kernel.body import StateKey
from thalweg.plan.placement.build import Built, build
from thalweg.plan.placement.cluster import ClusterDescription, local_cluster
from thalweg.plan.placement.constraints import Constraints, state_key
from thalweg.plan.placement.costs import CostModel
from thalweg.plan.placement.estimates import size, state_size
from thalweg.plan.placement.feasible import record_on
from thalweg.plan.placement.problem import Problem
from thalweg.plan.placement.search import Choice, best_placement
from thalweg.plan.placement.simulate import Result, simulate

_log = logging.getLogger("thalweg")


@dataclass
class Decision:
    """A placement of some nodes: the device of each, by its number in the cluster, and how that came about.

    choice is None where no group had a choice, or there was nothing to gain: all devices compute on the same
    cores.
    """

    ops: Sequence[Operation]
    cluster: ClusterDescription
    constraints: Constraints
    built: Built
    assignment: list[int]
    choice: Choice | None


def place(
    graph: Graph,
    cluster: ClusterDescription | Sequence[str],
    soft: bool = False,
    log: bool = False,
    homes: MutableMapping[StateKey, str] | None = None,
    costs: CostModel | None = None,
) -> Decision | None:
    """Gives every node of a plan's private graph the full name of its device.

    Law: constraints, colocation and homes hold. A node whose device has a kernel of its own for it gets a
    record with that kernel. The same graph, cluster, costs and homes give the same placement.

    cluster: what there is, the default device first; names alone stand for devices on this machine.
    soft: a wish that can't be met gives way (see constraints). log: the device of each node is logged.
    homes: where state is; what is placed here first is added. costs: what was measured.
    Returns how it was decided; None with one device, where there is nothing to decide.
    Errors: InvalidArgumentError where constraints can't be met; ResourceExhaustedError where variables alone
    need more than the devices hold.
    """
    if len(cluster) == 1:
        _place_on_one(graph, cluster if isinstance(cluster, ClusterDescription) else cluster[0], soft)
        decision = None
    else:
        if not isinstance(cluster, ClusterDescription):
            cluster = local_cluster(cluster)
        decision = decide(graph._ops, cluster, soft, homes or {}, costs)
        write(decision, homes)
        for text in fallbacks(decision):
            _log.info("%s", text)
    if log:
        for op in graph._ops:
            _log.info("%s: (%s): %s", op._name, op.type, op._device)
    return decision


def decide(
    ops: Sequence[Operation],
    cluster: ClusterDescription,
    soft: bool = False,
    homes: Mapping[StateKey, str] | None = None,
    costs: CostModel | None = None,
    lenient: bool = False,
) -> Decision:
    """Where each node goes; changes nothing. Errors: as `place`; lenient: none of constraints."""
    constraints = Constraints(ops, cluster, soft, homes or {}, lenient)
    built = build(ops, cluster, constraints.groups, costs)
    problem = built.problem
    if not lenient:
        _check_groups(ops, problem)
    if all(len(a) == 1 for a in problem.allowed):
        only = [a[0] for a in problem.allowed]
        which = problem.allowed_of[problem.group].tolist()
        decision = Decision(ops, cluster, constraints, built, [only[w] for w in which], None)
        over = 0.0
    elif _nothing_to_gain(problem):
        decision = Decision(ops, cluster, constraints, built, [0] * len(ops), None)
        over = 0.0
    else:
        choice = best_placement(problem)
        decision = Decision(ops, cluster, constraints, built, choice.best.assignment, choice)
        over = choice.best.overflow
    if not lenient:
        _check_memory(decision, over)
    return decision


def _nothing_to_gain(problem: Problem) -> bool:
    """Whether all may go to the first device, and others compute on its cores."""
    devices = {d for allowed in problem.allowed for d in allowed}
    pools, lanes = problem.pools
    alike = all(pools[d] == pools[0] and problem.kinds[d] == problem.kinds[0] for d in devices)
    if not alike or lanes[pools[0]] > 1:
        return False
    if not all(0 in allowed for allowed in problem.allowed):
        return False
    return float(problem.state.sum() + problem.held.sum()) <= problem.memory[0]


def check_constraints(graph: Graph, cluster: ClusterDescription, soft: bool) -> None:
    """InvalidArgumentError where what the program asks for can't be. Changes nothing.

    Kernels don't count yet: rewriting may take a node away that has none.
    """
    Constraints(graph._ops, cluster, soft, {}, kernels=False)


def _place_on_one(graph: Graph, device: ClusterDescription | str, soft: bool) -> None:
    """The one device that there is, for all: what is left to decide is whether it will do."""
    if isinstance(device, ClusterDescription):
        device = device.names[0]
    known: set[str] = {""}
    for op in graph._ops:
        asked = op._device
        if asked not in known:
            _check_name(op, asked, device, soft)
            known.add(asked)
        op._device = device


def _check_name(op: Operation, asked: str, device: str, soft: bool) -> None:
    if device_name.is_compatible(asked, device):
        return
    task = str(device_name.parse(asked)._replace(device_type=None, device_index=None))
    would_do = device_name.is_compatible(task, device)
    if soft and would_do:
        return
    raise InvalidArgumentError(
        None,
        op,
        f"Cannot assign a device for operation {op._name}: it was explicitly assigned to {asked} but "
        f"available devices are [ {device} ]. Make sure the device specification refers to a valid device"
        + (", or set ConfigProto.allow_soft_placement." if would_do and not soft else "."),
    )


def write(decision: Decision, homes: MutableMapping[StateKey, str] | None = None) -> None:
    """Gives the nodes their devices, and the kernels of those. Adds to homes what is new."""
    devices = decision.cluster.devices
    for op, number in zip(decision.ops, decision.assignment, strict=True):
        device = devices[number]
        op._device = device.name
        op._record = record_on(op, device)
        if homes is not None and (key := state_key(op)) is not None:
            homes.setdefault(key, device.name)


def fallbacks(decision: Decision) -> list[str]:
    """What didn't get the device that it asks for, and where it went instead."""
    names = decision.cluster.names
    return [
        f"{text}: it goes to {names[decision.assignment[i]]}"
        for i, text in decision.constraints.fallbacks.items()
    ]


def _check_groups(ops: Sequence[Operation], problem: Problem) -> None:
    """ResourceExhaustedError where what goes to one device is more than any that it may go to holds."""
    if all(map(math.isinf, problem.memory)):
        return
    made = np.bincount(problem.producer, problem.held, problem.nodes)
    largest = np.zeros(len(problem.allowed_of))
    np.maximum.at(largest, problem.group, made)
    need = problem.state + largest
    most = [max((problem.memory[d] for d in devices), default=math.inf) for devices in problem.allowed]
    for group in np.flatnonzero(need > np.array(most)[problem.allowed_of]).tolist():
        members = problem.members[group]
        op = ops[max(members, key=lambda i: (state_size(ops[i]), made[i], -i))]
        what = f"'{op._name}' and what goes with it"
        raise _too_large(op, problem, need[group], problem.allows(group), what)


def _check_memory(decision: Decision, over: float) -> None:
    """ResourceExhaustedError where variables alone are more than a device holds; a warning where outputs are.

    How long outputs are held is an estimate: XLA never makes many of them.
    """
    problem, names = decision.built.problem, decision.cluster.names
    used = np.bincount(
        [decision.assignment[members[0]] for members in problem.members], problem.state, len(names)
    )
    for device in np.flatnonzero(used > np.array(problem.memory)).tolist():
        there = [i for i, d in enumerate(decision.assignment) if d == device]
        op = decision.ops[max(there, key=lambda i: (state_size(decision.ops[i]), -i))]
        raise _too_large(op, problem, used[device], range(len(names)), f"the variables on {names[device]}")
    if over:
        assert decision.choice is not None
        device, peak = _fullest(problem, decision.choice.best.result)
        _log.warning(
            "the step may need more memory than there is: an estimated %s of %s bytes on %s",
            f"{peak:.4g}", f"{problem.memory[device]:.4g}", names[device],
        )  # fmt: skip


def require_memory(decision: Decision) -> None:
    """ResourceExhaustedError where the estimates say that the step doesn't fit into memory."""
    problem = decision.built.problem
    result = (
        simulate(problem, decision.assignment) if decision.choice is None else decision.choice.best.result
    )
    if not result.overflow(problem):
        return
    device, peak = _fullest(problem, result)
    held = problem.held_by_node()
    there = [i for i, d in enumerate(decision.assignment) if d == device]
    op = decision.ops[max(there, key=lambda i: (held[i], -i))]
    names = problem.cluster.names
    raise _too_large(op, problem, peak, range(len(names)), f"the step on {names[device]}")


def _fullest(problem: Problem, result: Result) -> tuple[int, float]:
    """The device that lacks most memory, and the most bytes that it would hold."""
    return max(result.overflow(problem), key=lambda row: row[1] - problem.memory[row[0]])


def _too_large(
    op: Operation, problem: Problem, need: float, devices: Sequence[int], what: str
) -> ResourceExhaustedError:
    names = problem.cluster.names
    memory = ", ".join(f"{names[d]} {problem.memory[d]:.4g}" for d in devices[:8])
    return ResourceExhaustedError(
        None,
        op,
        f"OOM when placing the graph: {what} would take {need:.4g} bytes of memory; the largest part of it "
        f"is '{op._name}' ({op.type}), {state_size(op) or sum(map(size, op._outputs)):.4g} bytes. There are "
        f"(bytes): {memory}. Split what is large, ask for less of it on one device, or give the devices more "
        "memory.",
    )
