"""Many steps as one, for a thread that runs the same step over and over: from one queue into another.

An input pipeline moves single examples: take one index from a queue, pick its rows, put them into the next
queue. Such a step costs a dozen microseconds in the interpreter, whose lock the training thread wants. A
`Transfer` does what is left to do of many such steps at once: it takes as many elements as the next queue has
room for, picks all rows in one go, and puts them in. It never waits and never loses an element: what can't be
put in goes back. Where it can do nothing, the ordinary step says why, waits, or raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from thalweg.runtime.cluster import ClusterRunner
from thalweg.runtime.instructions import Instruction, RunAsync, RunCluster
from thalweg.runtime.queue_stores import Element
from thalweg.runtime.queues import Queue
from thalweg.runtime.resources import Handle
from thalweg.runtime.step import Step
from thalweg.runtime.worker import Worker

#: steps at a time
_MOST = 64

_TAKES = frozenset(("QueueDequeue", "QueueDequeueV2"))
_PUTS = frozenset(("QueueEnqueue", "QueueEnqueueV2"))


class _Pass(NamedTuple):
    """Where a component of the element that is put in comes from: the one taken out, or the picks."""

    picked: bool
    at: int


class Transfer:
    """The steps of one program. Thread-safe, as the queues are."""

    def __init__(
        self,
        worker: Worker,
        take: RunAsync,
        put: RunAsync,
        handles: tuple[Any, Any],
        cluster: ClusterRunner | None,
        args: list[int],
        passes: list[_Pass],
    ) -> None:
        self._worker = worker
        self._take = take.op
        self._put = put.op
        self._handles = handles
        self._cluster = cluster
        self._args = args
        self._passes = passes

    def run(self, step: Step) -> int:
        """Does up to 64 steps; how many it was. 0: run an ordinary step."""
        source, target = (self._worker.resource(h) for h in self._handles)
        if source.dtypes != self._take._attrs["component_types"] or source is target:
            return 0
        if target.dtypes != self._put._attrs["Tcomponents"] or not source.gives_batches:
            return 0
        n = min(_MOST, target.capacity - target.size())
        taken = source.take_now(n) if n > 1 else []
        if not taken:
            return 0
        moved = 0
        try:
            made = self._made(source, target, taken, step)
            if made is not None:
                moved = target.put_now(made)
        finally:
            if moved < len(taken):
                source.give_back(taken[moved:])
        return moved

    def _made(self, source: Queue, target: Queue, taken: list[Any], step: Step) -> list[Element] | None:
        """The elements to put in; None where an ordinary step should look at them."""
        n = len(taken)
        batch = source.outputs(taken, n)
        picked: list[np.ndarray] = []
        if self._cluster is not None:
            found = self._cluster.pick_each([batch[i] for i in self._args], step)
            if found is None:
                return None
            picked = found
        components = tuple((picked if p.picked else batch)[p.at] for p in self._passes)
        if not target.takes([c.shape[1:] for c in components]):
            return None
        if target.in_order:
            for c in components:
                c.flags.writeable = False
            return list(zip(repeat(components, n), range(n), strict=True))
        # elements leave in another order: one that stays long must not keep the others' memory
        return [(row, -1) for row in zip(*map(_rows, components), strict=True)]


def _rows(batch: np.ndarray) -> list[np.ndarray]:
    rows = [batch[i, ...].copy() for i in range(len(batch))]
    for row in rows:
        row.flags.writeable = False
    return rows


def transfer_of(
    instructions: Sequence[Instruction], template: Sequence[Any], worker: Worker
) -> Transfer | None:
    """The transfer that a program without feeds and fetches consists of; None where it is something else."""
    if not 2 <= len(instructions) <= 3:
        return None
    take, put, cluster = instructions[0], instructions[-1], instructions[1:-1]
    if not (isinstance(take, RunAsync) and take.op.type in _TAKES and take.op._attrs["timeout_ms"] == -1):
        return None
    if not (isinstance(put, RunAsync) and put.op.type in _PUTS and put.op._attrs["timeout_ms"] == -1):
        return None
    handles = template[take.inputs[0]], template[put.inputs[0]]
    if not all(type(h) is Handle for h in handles):
        return None
    sources = {take.first_output + i: _Pass(False, i) for i in range(len(take.op._outputs))}
    args: list[int] = []
    runner = None
    if cluster:
        only = cluster[0]
        if not isinstance(only, RunCluster) or not only.runner.picks_each:
            return None
        runner = only.runner
        if not all(slot in sources for slot in only.inputs):
            return None
        args = [sources[slot].at for slot in only.inputs]
        for i in range(len(only.op._outputs)):
            sources[only.first_output + i] = _Pass(True, i)
    if not all(slot in sources for slot in put.inputs[1:]):
        return None
    return Transfer(worker, take, put, handles, runner, args, [sources[s] for s in put.inputs[1:]])
