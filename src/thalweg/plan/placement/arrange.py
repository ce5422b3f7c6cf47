"""A net laid out on a line, from its inputs to its loss, and the line cut into blocks, one to each device.

It is what an engineer does by hand: a layer's variables, its forward and its backward part stay together, so
that only activations cross. The line is cut where little crosses, and so that each block fits into its
device's memory, by dynamic programming over the places where it may be cut.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.plan.placement.critical_path import fastest_times
from thalweg.plan.placement.problem import Array, Problem
from thalweg.plan.placement.simulate import simulate

#: places where the line may be cut; moments at which memory is looked at
_PLACES, _MOMENTS = 160, 48
#: devices that a net is split over, at most
_MOST = 16
#: the node that a node of a gradient belongs to, in its name
_GRADIENT = re.compile(r"(?:.*/)?gradients(?:_\d+)?/(.*?)_grad/")


@dataclass
class Line:
    """A net in pieces, from one end to the other.

    piece: of each group its piece. cut[k]: seconds to send what crosses between the pieces before k and the
    others. work[k]: seconds of the pieces before k. live[m, k]: bytes that they hold at moment m of a step on
    one device.
    """

    piece: Array
    cut: Array
    work: Array
    live: Array


Make = Callable[[float], list[int]]


def splits(problem: Problem, order: Sequence[int], large: bool) -> list[tuple[str, Make]]:
    """Ways to split a net over some of the devices of the fastest kind that there are several of: names, and
    functions from the share of memory that may be used to an assignment."""
    times = problem.times.sum(axis=0)
    kinds = [k for k in range(len(problem.launch)) if problem.kinds.count(k) > 1]
    if not kinds:
        return []
    kind = min(kinds, key=lambda k: times[k])
    devices = [d for d, k in enumerate(problem.kinds) if k == kind]
    most = min(len(devices), _MOST)
    line = arrange(problem, order)
    memory = max(1.0, min(problem.memory[d] for d in devices))
    least = float(line.live[:, -1].max()) / memory  # devices that hold all together
    if least > most:
        factors = (2.0,) if large else (1.5, 3.0)
        counts = sorted({min(math.ceil(least * factor), len(devices)) for factor in factors})
    else:
        counts = [n for n in (2, 4, 8) if n < most and not large] + [most]
    return [
        (
            f"{name} over {n} devices",
            lambda share, n=n, crossing=crossing: blocks(  # type: ignore[misc]
                problem, line, devices[:n], share, crossing
            ),
        )
        for n in counts
        for name, crossing in (("cheapest cuts", None), ("even blocks", 1.0), ("even work", 0.1))
    ]


def arrange(problem: Problem, order: Sequence[int]) -> Line:
    """Lays a problem's groups out on a line. order: as for `simulate`."""
    p = problem
    first = np.empty(len(p.allowed_of), np.int64)  # of each group: what is tied goes where it comes first
    backwards = np.array(p.order[::-1], np.int64)
    first[p.group[backwards]] = np.array(coordinates(p))[backwards]
    distinct, position = np.unique(first, return_inverse=True)
    count = len(distinct)
    low, high = _spans(p, position)
    latency, per_byte = (max(x[1:], default=0.0) for x in p.links[1:])
    seconds = (latency + p.sizes * per_byte) * p.crossings
    crossing = np.zeros(count + 1)
    np.add.at(crossing, low + 1, seconds * (low < high))
    np.add.at(crossing, high + 1, -seconds * (low < high))
    crossing = np.maximum(np.cumsum(crossing), 0.0)
    work = np.bincount(position[p.group], fastest_times(p), count)
    held = np.bincount(position, p.state, count) + np.bincount(position[p.group[p.producer]], p.held, count)
    starts = _pieces(crossing, work, held)
    piece_at = np.searchsorted(starts, np.arange(count), "right") - 1
    piece = piece_at[position]
    pieces = len(starts)
    return Line(
        piece,
        np.concatenate([[0.0], crossing[starts[1:]], [0.0]]),
        np.concatenate([[0.0], np.cumsum(np.bincount(piece_at, work, pieces))]),
        _live(p, piece, pieces, order),
    )


def coordinates(problem: Problem) -> list[int]:
    """For each node the number of the last variable, in order of first use, that its value comes from; for a
    gradient's node that of the node it belongs to; for what is made of gradients the first of those.

    A node that makes more bytes than it takes counts to what takes it.
    """
    p = problem
    group, producers = p.group.tolist(), p.producers
    holds = (p.state > 0).tolist()
    partners = _partners(p)
    numbers: dict[int, int] = {}
    found = [0] * p.nodes
    backward = [False] * p.nodes
    free = []
    for i in p.order:
        makers = [producers[t] for t in p.inputs[i]]
        backward[i] = partners[i] is not None or any(backward[m] for m in makers)
        if makers and not backward[i]:
            touched = [g for m in makers if holds[g := group[m]]]
            mine = [numbers.setdefault(g, len(numbers) + 1) for g in touched]
            found[i] = max(mine + [found[m] for m in makers if not holds[group[m]]], default=0)
            if not touched:
                free.append(i)
    for i in reversed(free):
        users = [found[u] for t in p.outputs[i] for u in p.takers[t] if not backward[u]]
        taken = [t for t in p.inputs[i] if p.inputs[producers[t]]]  # what comes from nothing isn't far
        if users and p.sizes[taken].sum() < p.sizes[p.outputs[i]].sum():
            found[i] = max(found[i], min(users))
    for i in p.order:
        if backward[i]:
            partner = partners[i]
            before = [found[m] for t in p.inputs[i] if backward[m := producers[t]]]
            found[i] = min(before, default=0) if partner is None or partner < 0 else found[partner]
    for i in range(p.nodes):
        if holds[group[i]]:
            found[i] = numbers.get(group[i], found[i])
    return found


def _partners(p: Problem) -> list[int | None]:
    """Of a gradient's node the node that it belongs to, -1 where that is gone; None of others."""
    index = {name: i for i, name in enumerate(p.names)}
    matches = [_GRADIENT.match(name) if "gradients" in name else None for name in p.names]
    return [None if m is None else index.get(m[1], -1) for m in matches]


def blocks(
    problem: Problem, line: Line, devices: Sequence[int], share: float, crossing: float | None = None
) -> list[int]:
    """Pieces to devices, in order: so that the least crosses, or that the slowest block takes least.

    share: how much of a device's memory a block may take by the line's count. Where nothing fits, so that
    the fullest device is as little full as can be. crossing: how much what crosses counts beside a block's
    work; None: nothing else counts.
    """
    balanced = crossing is not None
    count = len(line.work) - 1
    need = (line.live[:, None, :] - line.live[:, :, None]).max(axis=0)  # [from, to]
    price = line.cut[:, None] + line.cut[None, :]
    if crossing is not None:
        price = price * crossing + (line.work[None, :] - line.work[:, None])
    price[np.tril_indices(count + 1)] = np.inf
    memory = [problem.memory[d] for d in devices]
    bounds = _best_bounds([np.where(need <= m * share, price, np.inf) for m in memory], balanced)
    if bounds is None:
        full = np.where(np.isfinite(price), need, np.inf)
        bounds = _best_bounds([full / max(1.0, m) for m in memory], True)
    assert bounds is not None
    device_of = np.empty(count, np.int64)
    for device, a, b in zip(devices, bounds, bounds[1:], strict=False):
        device_of[a:b] = device
    where = []
    for group, device in enumerate(device_of[line.piece].tolist()):
        allowed = problem.allows(group)
        where.append(device if device in allowed else allowed[0])
    return [where[g] for g in problem.group.tolist()]


def _best_bounds(prices: Sequence[Array], largest: bool) -> list[int] | None:
    """Bounds of one block for each table of prices [from, to], some empty, with the least sum or the least
    largest price. None where all are infinite."""
    count = len(prices[0])
    here = np.arange(count)
    best = np.where(here == 0, 0.0, np.inf)
    choices = []
    for price in prices:
        total = np.maximum(best[:, None], price) if largest else best[:, None] + price
        choice = total.argmin(axis=0)
        found = total[choice, here]
        empty = best <= found
        choices.append(np.where(empty, here, choice))
        best = np.where(empty, best, found)
    if not np.isfinite(best[-1]):
        return None
    bounds = [count - 1]
    for choice in reversed(choices):
        bounds.append(int(choice[bounds[-1]]))
    return bounds[::-1]


def _spans(p: Problem, position: Array) -> tuple[Array, Array]:
    """The first and the last position where each tensor is made or taken."""
    low = position[p.group[p.producer]]
    high = low.copy()
    node = np.repeat(np.arange(p.nodes), np.diff(p.taken_from))
    at = position[p.group[node]]
    np.minimum.at(low, p.taken, at)
    np.maximum.at(high, p.taken, at)
    return low, high


def _pieces(crossing: Array, work: Array, held: Array) -> Array:
    """The first positions of the pieces: in each stretch of the line the place where the least crosses."""
    count = len(work)
    if count <= _PLACES:
        return np.arange(count)
    share = work / max(work.sum(), 1e-30) + held / max(held.sum(), 1e-30) + 1.0 / count
    along = np.cumsum(share)
    bounds = np.searchsorted(along, np.linspace(0, along[-1], _PLACES + 1)[:-1]).tolist()
    stretches = zip(bounds, [*bounds[1:], count], strict=True)
    found = [a + int(crossing[a:b].argmin()) for a, b in stretches if b > a]
    return np.unique([0, *found])


def _live(p: Problem, piece: Array, count: int, order: Sequence[int]) -> Array:
    """live[m, k]: bytes that the pieces before k hold at moment m of a step on one device."""
    result = simulate(p, [0] * p.nodes, order)
    finish = np.array(result.finish)
    starts, ends = np.array(result.start)[p.producer], finish[p.producer]
    node = np.repeat(np.arange(p.nodes), np.diff(p.taken_from))
    np.maximum.at(ends, p.taken, finish[node])
    scale = _MOMENTS / max(result.makespan, 1e-30)
    first, last = (np.clip((x * scale).astype(np.int64), 0, _MOMENTS - 1) for x in (starts, ends))
    where = piece[p.group[p.producer]]
    change = np.zeros((_MOMENTS + 1, count))
    np.add.at(change, (first, where), p.held)
    np.add.at(change, (last + 1, where), -p.held)
    live = np.cumsum(change, axis=0)[:_MOMENTS] + np.bincount(piece, p.state, count)
    return np.concatenate([np.zeros((_MOMENTS, 1)), np.cumsum(live, axis=1)], axis=1)
