"""Receive scheduling: values of other devices come just before they are needed, not as soon as they could.

A Recv waits for nothing of its own device, so without this pass all of them would be taken at once, and their
values would lie in the device's memory until somebody uses them (the TensorFlow white paper, section 5.2).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from thalweg.graph.operation import Operation
from thalweg.graph.subgraph import NEXT_ITERATION
from thalweg.kernel.body import Body
from thalweg.kernel.convention import Kind
from thalweg.plan.partition import Partition
from thalweg.plan.placement import estimates

#: below this many bytes a value isn't worth a control edge
SMALLEST = 1 << 16
#: seconds to start a kernel or an executable
_START = 1e-5


@dataclass
class _Times:
    """A step as it would run: when nodes start and end, and who comes after whom on each device."""

    start: dict[Operation, float] = field(default_factory=dict)
    end: dict[Operation, float] = field(default_factory=dict)
    #: place in one topological order of the whole step
    place: dict[Operation, int] = field(default_factory=dict)
    #: by device, what does some work, in order
    lanes: dict[str, list[Operation]] = field(default_factory=dict)


def schedule_receives(
    parts: Sequence[Partition], transfer: Callable[[str, str, float], float], smallest: float = SMALLEST
) -> int:
    """Lets each Recv wait for the last node of its device that ends early enough. Returns how many wait.

    transfer: the seconds that so many bytes take from one device to another. smallest: bytes of a value that
    is worth it. Receives whose value comes late anyway are left alone. So is a step with control flow left in
    it: what a loop returns comes after all that enters it, wherever that stands in a topological order.

    Law: same values; only control edges into Recvs are added, and one from X only where X comes before the
    Recv's first user in one topological order of the whole step. So they close no cycle, not even through
    other devices: all of a Recv's descendants come at or after its first user in that order.
    """
    pairs = _pairs(parts)
    if not pairs or any(part.dynamic for part in parts):
        return 0
    times = _simulate(parts, pairs, transfer)
    count = 0
    for recv, send in pairs.items():
        if recv._control_inputs or _bytes(recv) < smallest:
            continue
        before = _just_before(recv, send, times, transfer)
        if before is not None:
            recv._control_inputs.append(before)
            before._control_outputs.append(recv)
            count += 1
    return count


def _just_before(
    recv: Operation, send: Operation, times: _Times, transfer: Callable[[str, str, float], float]
) -> Operation | None:
    """The last node of the Recv's device that ends early enough; None where the value comes later."""
    users = [*(c for t in recv._outputs for c in t._consumers), *recv._control_outputs]
    if not users:
        return None
    first = min(users, key=times.place.__getitem__)
    latest = times.start[first] - transfer(send._device, recv._device, _bytes(recv))
    lane = times.lanes[recv._device]
    earlier = [op for op in lane if times.place[op] < times.place[first] and times.end[op] <= latest]
    if not earlier:
        return None
    chosen = max(earlier, key=times.place.__getitem__)
    return chosen if times.end[chosen] > times.end[send] else None


def _pairs(parts: Sequence[Partition]) -> dict[Operation, Operation]:
    """By Recv, its Send."""
    sends: dict[bytes, Operation] = {}
    recvs: list[Operation] = []
    for part in parts:
        for op in part.graph._ops:
            kernel = op._record.kernel
            if kernel is not None and kernel.kind is Kind.SEND:
                sends[op._attrs["tensor_name"]] = op
            elif kernel is not None and kernel.kind is Kind.RECV:
                recvs.append(op)
    return {r: sends[name] for r in recvs if (name := r._attrs["tensor_name"]) in sends}


def _simulate(
    parts: Sequence[Partition],
    pairs: dict[Operation, Operation],
    transfer: Callable[[str, str, float], float],
) -> _Times:
    """Runs the step in thought: each device does what is ready, in the order in which it becomes ready."""
    times = _Times(lanes={part.device: [] for part in parts})
    receivers: dict[Operation, Operation] = {send: recv for recv, send in pairs.items()}
    pending: dict[Operation, int] = {}
    ready: list[tuple[float, int, Operation, str]] = []
    number = 0
    device_of: dict[Operation, str] = {}
    for part in parts:
        for op in part.graph._ops:
            device_of[op] = part.device
            inputs = sum(1 for t in op._inputs if t._op.type not in NEXT_ITERATION)
            pending[op] = inputs + len(op._control_inputs) + (op in pairs)
            if pending[op] == 0:
                heapq.heappush(ready, (0.0, number, op, part.device))
            number += 1
    came: dict[Operation, float] = {}
    free = dict.fromkeys(times.lanes, 0.0)
    while ready:
        at, _, op, device = heapq.heappop(ready)
        cost = _seconds(op)
        times.start[op] = max(at, free[device]) if cost else at
        times.end[op] = times.start[op] + cost
        times.place[op] = len(times.place)
        if cost:
            free[device] = times.end[op]
            times.lanes[device].append(op)
        users = list(op._control_outputs)
        if op.type not in NEXT_ITERATION:
            users += [c for t in op._outputs for c in t._consumers]
        if op in receivers:
            users.append(receivers[op])
        for user in users:
            arrival = times.end[op]
            if pairs.get(user) is op:
                arrival += transfer(op._device, user._device, _bytes(user))
            came[user] = max(came.get(user, 0.0), arrival)
            pending[user] -= 1
            if pending[user] == 0:
                heapq.heappush(ready, (came[user], number, user, device_of[user]))
                number += 1
    return times


def _seconds(op: Operation) -> float:
    """About how long a node takes; 0 for what does no work."""
    kernel = op._record.kernel
    if kernel is None or kernel.kind in (Kind.SOURCE, Kind.NOTHING, Kind.SEND, Kind.RECV):
        return 0.0
    body = op._attrs.get("body")
    nodes = body.nodes if isinstance(body, Body) else [op]
    return _START + sum(map(estimates.seconds, nodes))


def _bytes(recv: Operation) -> float:
    return estimates.size(recv._outputs[0])
