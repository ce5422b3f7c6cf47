"""From a graph and its groups to a placement problem in numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import NEXT_ITERATION
from thalweg.kernel.convention import Kind
from thalweg.plan.placement import estimates
from thalweg.plan.placement.cluster import ClusterDescription
from thalweg.plan.placement.colocation import Groups
from thalweg.plan.placement.costs import LOOP_ITERATIONS, CostModel, node_times
from thalweg.plan.placement.problem import Problem, device_kinds, topological
from thalweg.plan.places import EXIT, Frame, Place

#: bytes of the message that a control edge is between devices
CONTROL_BYTES = 8.0
#: what is fed, or stands for it
_FED = frozenset(("_Arg", "Placeholder", "PlaceholderV2"))
#: elements of what arithmetic on shapes gives, at most: such nodes are copied, not sent (plan/localize.py)
_SMALL = 64


class Built:
    """A problem, and what its numbers stand for. tensors: of each tensor its Tensor; None: a control edge."""

    def __init__(self, problem: Problem, roots: list[int], tensors: list[Tensor | None]) -> None:
        self.problem = problem
        #: of each group, the node that stands for it (see Groups)
        self.roots = roots
        self.tensors = tensors


def build(
    ops: Sequence[Operation], cluster: ClusterDescription, groups: Groups, costs: CostModel | None
) -> Built:
    """The problem of placing these nodes. A loop counts by its iterations: its back edges are left out."""
    kinds = device_kinds(cluster)
    first_of_kind = [cluster.devices[kinds.index(k)] for k in range(max(kinds) + 1)]
    repeats = [_repeats(op) for op in ops]
    times = node_times(ops, first_of_kind, costs, repeats)
    edges = _Edges(ops, costs)
    sources = [[edges.producer[t] for t in taken] for taken in edges.taken]
    roots = [groups.root(i) for i in range(len(ops))]
    distinct, group = np.unique(np.array(roots, np.int64), return_inverse=True)
    sets: dict[int, int] = {}
    allowed_of = [
        sets.setdefault(groups.can[root] & groups.want[root], len(sets)) for root in distinct.tolist()
    ]
    state = np.bincount(group, [estimates.state_size(op) for op in ops], len(distinct))
    problem = Problem(
        cluster,
        [op._name for op in ops],
        times,
        np.array(edges.producer, np.int64),
        np.array(edges.sizes, np.float64),
        np.array(edges.held, np.float64),
        np.array([repeats[p] for p in edges.producer], np.float64),
        np.array([t for taken in edges.taken for t in taken], np.int64),
        np.cumsum([0, *map(len, edges.taken)]),
        group,
        np.array(allowed_of, np.int64),
        [bits(mask) for mask in sets],
        state,
        topological(sources),
        kinds,
    )
    return Built(problem, distinct.tolist(), edges.tensors)


def bits(mask: int) -> tuple[int, ...]:
    """The numbers of the bits that are set."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return tuple(found)


class _Edges:
    """The tensors that may have to cross, and who takes them."""

    def __init__(self, ops: Sequence[Operation], costs: CostModel | None) -> None:
        self.producer: list[int] = []
        self.sizes: list[float] = []
        self.held: list[float] = []
        self.tensors: list[Tensor | None] = []
        self.taken: list[list[int]] = []
        index = {op: i for i, op in enumerate(ops)}
        everywhere = _everywhere(ops)
        numbers: dict[Tensor | Operation, int] = {}
        for op in ops:
            taken: dict[int, None] = {}
            for t in op._inputs:
                source = t._op
                if source in everywhere or source.type in NEXT_ITERATION:
                    continue
                number = numbers.get(t)
                if number is None:
                    size = (costs.bytes(t.name) if costs else None) or estimates.size(t)
                    held = 0.0 if _is_variable(t) else size
                    number = numbers[t] = self._add(index[source], size, held, t)
                taken.setdefault(number)
            for c in (*op._control_inputs, *_last_iteration(op)):
                if c in everywhere or (c.type in NEXT_ITERATION and op.type not in EXIT):
                    continue
                number = numbers.get(c)
                if number is None:
                    number = numbers[c] = self._add(index[c], CONTROL_BYTES, 0.0, None)
                taken.setdefault(number)
            self.taken.append(list(taken))

    def _add(self, producer: int, size: float, held: float, tensor: Tensor | None) -> int:
        self.producer.append(producer)
        self.sizes.append(size)
        self.held.append(held)
        self.tensors.append(tensor)
        return len(self.tensors) - 1


def _last_iteration(op: Operation) -> list[Operation]:
    """What a loop's Exit waits for, since back edges are left out: the body, up to its NextIteration."""
    if op.type not in EXIT or not op._inputs:
        return []
    switch = op._inputs[0]._op
    merge = switch._inputs[0]._op if switch._inputs else switch
    return [t._op for t in merge._inputs if t._op.type in NEXT_ITERATION]


def _everywhere(ops: Sequence[Operation]) -> set[Operation]:
    """Nodes whose values are at hand on each device: what is fed, constants, arithmetic on shapes."""
    found: set[Operation] = set()
    for op in ops:
        if op._control_inputs:
            continue
        if op.type in _FED or op.type == "Const":
            found.add(op)
            continue
        kernel = op._record.kernel
        if kernel is None or kernel.kind is not Kind.TRACEABLE or op._control_flow_context is not None:
            continue
        if kernel.shape_only:
            found.add(op)
        elif kernel.host is not None and op._inputs and not kernel.reads:
            if all(t._op in found for t in op._inputs) and all(map(_is_small, (*op._inputs, *op._outputs))):
                found.add(op)
    return found


def _is_variable(tensor: Tensor) -> bool:
    """Whether a tensor is a variable, or its value as it is: the variable's memory holds it."""
    dtype = tensor._dtype
    return dtype.is_ref_dtype or dtype.name == "resource" or estimates.is_variable_read(tensor._op)


def _is_small(tensor: Tensor) -> bool:
    dtype = tensor._dtype
    if tensor._shape is None or None in tensor._shape or dtype.is_ref_dtype:
        return False
    return (dtype.is_integer or dtype.is_bool) and estimates.elements(tensor) <= _SMALL


def _repeats(op: Operation) -> int:
    """How often a node is thought to run in one step."""
    place = op._control_flow_context
    count = 1
    if isinstance(place, Place):
        frame: Frame | None = place.frame
        while frame is not None:
            count *= LOOP_ITERATIONS
            frame = frame.parent
    return count
