"""What a placement is, in words and numbers: of each node the device, the reason, and what else it would have
cost.

An alternative's cost is the length of the whole step, simulated with only that node's group moved.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from thalweg.plan.placement.build import bits
from thalweg.plan.placement.place import Decision, fallbacks
from thalweg.plan.placement.simulate import Result, simulate

#: groups whose alternatives are simulated, at most: those that cost most come first
ALTERNATIVES = 40
#: devices that are tried for a group, and nodes that are simulated for all of them, at most
_TRIED, _EFFORT = 8, 500_000


@dataclass(frozen=True)
class NodeRow:
    """Where one node goes. Times in seconds from the start of the step."""

    name: str
    op: str
    device: str
    reason: str
    start: float
    time: float
    #: of the groups that were looked at: other devices, and how long the step would be with the group there
    alternatives: dict[str, float]


@dataclass(frozen=True)
class DeviceRow:
    """What one device does in a step: seconds busy, bytes held at most, sent and received."""

    name: str
    nodes: int
    busy: float
    peak: float
    memory: float | None
    sent: float
    received: float


@dataclass(frozen=True)
class Placement:
    """A report. `str` of it is a table; `to_json` has everything."""

    #: the predicted seconds of a step, which runs in clusters
    step_time: float
    #: the same node by node, which placements are chosen by; no placement can take less than `bound`
    simulated: float
    bound: float
    #: the placement that won, and the step times of all that were tried (None: doesn't fit in memory)
    chosen: str
    candidates: dict[str, float | None]
    nodes: tuple[NodeRow, ...]
    devices: tuple[DeviceRow, ...]
    #: what didn't get the device that it asks for
    fallbacks: tuple[str, ...]
    #: (tensor, from, to, bytes, start, arrival); a control edge goes by its node's name, "^name"
    transfers: tuple[tuple[str, str, str, float, float, float], ...]

    def device(self, node: str) -> str:
        """The device of a node. KeyError where there is no such node in the step."""
        for row in self.nodes:
            if row.name == node:
                return row.device
        raise KeyError(f"'{node}' is no node of this step")

    def to_json(self) -> str:
        """The report as JSON."""
        return json.dumps(
            {
                "step_time": self.step_time,
                "simulated": self.simulated,
                "bound": self.bound,
                "chosen": self.chosen,
                "candidates": self.candidates,
                "fallbacks": list(self.fallbacks),
                "devices": [row.__dict__ for row in self.devices],
                "nodes": [row.__dict__ for row in self.nodes],
                "transfers": [
                    dict(zip(("tensor", "from", "to", "bytes", "start", "arrival"), row, strict=True))
                    for row in self.transfers
                ],
            },
            indent=1,
        )


def report(decision: Decision, alternatives: int = ALTERNATIVES) -> Placement:
    """Explains a decision. alternatives: for how many groups others are simulated (0: for none).

    The step time is that of the simulation node by node: predict.py may know better.
    """
    problem, cluster = decision.built.problem, decision.cluster
    names = cluster.names
    choice = decision.choice
    order = problem.order if choice is None else choice.order
    result = simulate(problem, decision.assignment, order) if choice is None else choice.best.result
    others = _alternatives(decision, order, result, alternatives)
    reasons = _reasons(decision)
    group = problem.group.tolist()
    counts = [0] * len(cluster)
    for d in decision.assignment:
        counts[d] += 1
    nodes = tuple(
        NodeRow(
            op._name, op.type, names[decision.assignment[i]], reasons[i], result.start[i],
            result.finish[i] - result.start[i], others.get(group[i], {}),
        )
        for i, op in enumerate(decision.ops)
    )  # fmt: skip
    devices = tuple(
        DeviceRow(
            d.name, counts[i], result.busy[i], result.peak[i], d.memory, result.sent[i], result.received[i]
        )
        for i, d in enumerate(cluster.devices)
    )
    return Placement(
        result.makespan,
        result.makespan,
        choice.bound if choice is not None else 0.0,
        choice.best.name if choice is not None else _without_choice(decision),
        {c.name: None if c.overflow else c.result.makespan for c in choice.candidates} if choice else {},
        nodes,
        devices,
        tuple(fallbacks(decision)),
        tuple(_transfers(decision, result)),
    )


def _transfers(
    decision: Decision, result: Result
) -> list[tuple[str, str, str, float, float, float]]:
    problem, names, tensors = decision.built.problem, decision.cluster.names, decision.built.tensors
    rows = []
    for t, source, target, start, arrival in sorted(result.transfers, key=lambda row: row[3:]):
        tensor = tensors[t]
        name = tensor.name if tensor is not None else "^" + problem.names[problem.producers[t]]
        rows.append((name, names[source], names[target], float(problem.sizes[t]), start, arrival))
    return rows


def _alternatives(
    decision: Decision, order: Sequence[int], result: Result, count: int
) -> dict[int, dict[str, float]]:
    """For the groups that cost most and have a choice: the step times with the group elsewhere."""
    problem, names = decision.built.problem, decision.cluster.names
    members = problem.members
    movable = [g for g in range(len(members)) if len(problem.allows(g)) > 1]
    weight = [sum(result.finish[i] - result.start[i] for i in members[g]) for g in movable]
    ranked = sorted(range(len(movable)), key=lambda k: (-weight[k], movable[k]))[:count]
    found: dict[int, dict[str, float]] = {}
    tries = _EFFORT // max(problem.nodes, 1)
    for k in ranked:
        group = movable[k]
        here = decision.assignment[members[group][0]]
        times = found[group] = {}
        for device in [d for d in problem.allows(group) if d != here][: min(_TRIED, tries)]:
            tries -= 1
            moved = list(decision.assignment)
            for i in members[group]:
                moved[i] = device
            times[names[device]] = simulate(problem, moved, order).makespan
    return found


def _reasons(decision: Decision) -> list[str]:
    """Why each node is where it is."""
    constraints, ops = decision.constraints, decision.ops
    groups = constraints.groups
    members = groups.members()
    reasons = [""] * len(ops)
    for root, nodes in members.items():
        allowed = groups.can[root] & groups.want[root]
        why = _why(decision, root, nodes, allowed)
        home = next((i for i in nodes if i in constraints.at_home), None)
        anchor = next((i for i in nodes if constraints.asked[i] != constraints.everywhere), root)
        ties = groups.tied_to(anchor)
        for i in nodes:
            if home is not None:
                lives = "state lives there"
                reasons[i] = lives if i == home else f"with '{ops[home]._name}', whose {lives}"
            elif i in constraints.fallbacks:
                reasons[i] = f"falls back: {constraints.fallbacks[i]}"
            elif constraints.asked[i] != constraints.everywhere:
                reasons[i] = f"asked for: {ops[i]._device or 'its device'}"
            elif i != anchor and i in ties:
                reasons[i] = f"with '{ops[anchor]._name}': {ties[i][1]}"
            else:
                reasons[i] = why
    return reasons


def _why(decision: Decision, root: int, nodes: Sequence[int], allowed: int) -> str:
    """The reason for a group that doesn't ask for a device."""
    constraints = decision.constraints
    cluster, choice = decision.cluster, decision.choice
    options = bits(allowed)
    types = {cluster.devices[d].type for d in options}
    limiting = next((i for i in nodes if constraints.can[i] != constraints.everywhere), None)
    limited = ""
    if limiting is not None:
        limited = f"'{decision.ops[limiting]._name}' has kernels on {', '.join(sorted(types))} only"
    if len(options) == 1:
        return f"only kernel: {limited}" if limited else "the only device that is allowed"
    simulated = "simulated" if choice is not None else "the first device: the others share its cores"
    return f"{simulated}; {limited}" if limited else simulated


def _without_choice(decision: Decision) -> str:
    if all(len(a) == 1 for a in decision.built.problem.allowed):
        return "as the program asks"
    return f"all on {decision.cluster.names[0]}: the others share its cores"
