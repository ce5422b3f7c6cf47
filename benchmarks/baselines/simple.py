"""What one does without a placer: one device, each in turn, or layers by hand."""

import re

import numpy as np

from thalweg.plan.placement.critical_path import fastest_times

_LAYER = re.compile(r"(?:layer|s)(\d+)(?:b(\d+))?(?:_\d+)?/")


def single(problem):
    """All on the first device."""
    return [0] * problem.nodes


def round_robin(problem):
    """Groups in order of their first node, to each device in turn; full ones (by variables) are skipped."""
    devices = len(problem.cluster)
    used = [0.0] * devices
    where = {}
    turn = 0
    for i in problem.order:
        group = int(problem.group[i])
        if group in where:
            continue
        state = float(problem.state[group])
        device = next((d for k in range(devices) if used[d := (turn + k) % devices] + state
                       <= problem.memory[d]), turn)
        where[group] = device
        used[device] += state
        turn = (device + 1) % devices
    return [where[g] for g in problem.group.tolist()]


def layers(problem):
    """The layer of each node: the one in whose scope its name is, else that of what it takes, or gives to.

    Scopes of layers are called "layer3" or, with blocks in them, "s2b1".
    """
    found = [None] * problem.nodes
    for i, name in enumerate(problem.names):
        match = _LAYER.search(name)
        if match:
            found[i] = int(match[1]), int(match[2] or 0)
    for i in problem.order:
        if found[i] is None:
            came = [found[problem.producers[t]] for t in problem.inputs[i]]
            found[i] = max((c for c in came if c is not None), default=None)
    for i in reversed(problem.order):
        if found[i] is None:
            users = [found[u] for t in problem.outputs[i] for u in problem.takers[t]]
            found[i] = min((u for u in users if u is not None), default=None)
    numbers = {k: n for n, k in enumerate(sorted({k for k in found if k is not None}))}
    return [numbers.get(k, 0) for k in found]


def expert(problem, memory=0.0):
    """Consecutive layers to each device, forward and backward: about the same work for each.

    memory: how much bytes (variables, and outputs) count beside the work: 0 for not at all, 1 for as much.
    """
    devices = len(problem.cluster)
    layer = np.array(layers(problem))
    work = np.bincount(layer, fastest_times(problem))
    held = np.bincount(layer, problem.held_by_node())
    share = work / work.sum() + memory * held / max(held.sum(), 1.0)
    middle = (np.cumsum(share) - share / 2) / share.sum()
    device = np.minimum(middle * devices, devices - 1).astype(int)[layer]
    first = {}
    for i in problem.order:  # what is tied together goes where its first node goes
        first.setdefault(int(problem.group[i]), int(device[i]))
    return [first[g] for g in problem.group.tolist()]
