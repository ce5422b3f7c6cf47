"""Where variables live: chosen once for the whole graph, so that the training step decides it and not what
runs first.

The first thing that runs is mostly the initialiser, to which any device is as good as another.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from thalweg.base.errors import OpError
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation
from thalweg.kernel.body import StateKey
from thalweg.plan.placement.cluster import ClusterDescription
from thalweg.plan.placement.constraints import state_key
from thalweg.plan.placement.costs import CostModel
from thalweg.plan.placement.place import decide
from thalweg.plan.places import find_places
from thalweg.plan.prune import prune

_INITIALISE = frozenset(("Assign", "AssignVariableOp"))


def find_homes(
    graph: Graph,
    cluster: ClusterDescription,
    homes: MutableMapping[StateKey, str],
    soft: bool = False,
    costs: CostModel | None = None,
    since: int = 0,
) -> int:
    """Adds to `homes` a device for each variable, queue ... that updates of the graph use.

    since: what an earlier call returned: nothing is done where no state came after that. Returns how many
    nodes the graph has now.

    The user's graph isn't changed; it is locked while it is copied. What can't be placed is left for the plan
    that needs it, which says why.
    """
    with graph._lock:
        count = len(graph._ops)
        if all(key in homes for op in graph._ops[since:] if (key := state_key(op)) is not None):
            return count
        roots = [op for op in graph._ops if _decides(op)]
        copy = prune(graph, (), (), roots)
    try:
        find_places(copy)
        decision = decide(copy._ops, cluster, soft, homes, costs, lenient=True)
    except (OpError, ValueError):
        return count
    for op, device in zip(copy._ops, decision.assignment, strict=True):
        key = state_key(op)
        if key is not None:
            homes.setdefault(key, cluster.devices[device].name)
    return count


def _decides(op: Operation) -> bool:
    """Whether a node updates state in the course of training (or serves a queue), not to initialise it."""
    kernel = op._record.kernel
    if kernel is None or op.type in _INITIALISE:
        return False
    return bool(kernel.writes) or (op._record.definition.is_stateful and not op._outputs and bool(op._inputs))
