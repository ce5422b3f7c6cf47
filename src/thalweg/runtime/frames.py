"""The tagged-token machine: which node of which iteration of which frame may run now. No I/O, no threads.

A loop is a *frame*: entered from an iteration of its parent, it has iterations of its own. A token (a value,
or the news that there will be none: a *dead* one) belongs to an iteration. A node is ready when a token has
come along each of its edges; a Merge with its first live one. A ready node with a dead input isn't run: it
is dead itself. (The TensorFlow white paper, section 4.4.)

An iteration has its own list of values and of pending counts, both copied from its frame, and a queue of
ready nodes. It runs until its queue is empty; then another one does. Per token there is no object: nodes
are small integers, counted in each frame from 0.

The machine runs nodes of kind RUN by calling them. One of kind ASYNC it starts; `finished` is the event
that it has ended. SEND and RECV are the ends of edges from and to other machines, to which a token crosses
with the name of its frame and the number of its iteration. A Send runs also when it is dead, and says so.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from thalweg.base.errors import InvalidArgumentError

#: what the machine does with a ready node
RUN, PASS, SWITCH, NEXT, EXIT, ENTER, ASYNC, TRIGGER, CHECKED, SEND, RECV = range(11)

#: A pending count holds the tokens still to come, and DEAD for every dead one that has.
DEAD = 1 << 20
_COMING = DEAD - 1

#: (merge, slot of its value, index of the input, slot of the index or -1); index -1: a control edge
MergeEdge = tuple[int, int, int, int]


class Table:
    """What is fixed of a frame: its nodes, by number, and who gets their tokens. Shared by all steps.

    The lists are parallel. An edge of an Enter leads to the child's table, one of an Exit to the parent's.
    """

    def __init__(self, name: str, parent: Table | None = None, parallel: int = 10) -> None:
        self.name = name
        self.parent = parent
        #: iterations that may be under way at once
        self.parallel = parallel
        self.kinds: list[int] = []
        #: RUN: function(values, step). SEND: function(iteration, step, dead). Others see Machine._control
        self.data: list[Any] = []
        #: nodes that get a live token when the node has run (a Switch: see its data)
        self.users: list[tuple[int, ...]] = []
        self.merges: list[tuple[tuple[MergeEdge, int], ...]] = []
        #: who gets a dead token when the node is dead; never an Exit or a NextIteration: they drop it
        self.dead_users: list[tuple[int, ...]] = []
        self.dead_merges: list[tuple[MergeEdge, ...]] = []
        #: per Merge: how many data inputs it has
        self.merge_inputs: dict[int, int] = {}
        #: of a new iteration: values by slot, pending counts (a Merge: 1, and 2 for each control edge)
        self.values: list[Any] = []
        self.pending: list[int] = []
        #: nodes that wait for nothing
        self.start: list[int] = []
        self.enters = 0
        self.exits: list[int] = []

    def __repr__(self) -> str:
        return f"<Table of frame '{self.name}'>"


class Frame:
    """A loop under way. `values`, `pending` and `queue` are what its next iteration starts with."""

    __slots__ = (
        "_id", "alive", "coming", "deferred", "exited", "parent", "pending", "queue", "started", "table",
        "values",
    )  # fmt: skip

    def __init__(self, table: Table, parent: Iteration | None) -> None:
        self.table = table
        self.parent = parent
        self.values = table.values.copy()
        self.pending = table.pending.copy()
        self.queue = table.start.copy()
        #: iterations under way, the oldest first
        self.alive: deque[Iteration] = deque()
        #: iterations started so far
        self.started = 0
        #: Enters that haven't come yet
        self.coming = table.enters
        #: NextIterations that wait for an iteration to end, with their values
        self.deferred: list[tuple[int, Any]] = []
        self.exited: set[int] = set()
        self._id = -1

    @property
    def id(self) -> int:
        """A number that names the frame: the same on every device, 0 for the whole step."""
        if self._id < 0:
            self._id = 0
            if self.parent is not None:
                path = f"{self.parent.frame.id};{self.parent.index};{self.table.name}"
                self._id = int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest()) or 1
        return self._id


class Iteration:
    """One iteration of a frame."""

    __slots__ = (
        "children", "following", "frame", "index", "pending", "queue", "running", "scheduled", "values",
    )  # fmt: skip

    def __init__(self, frame: Frame, index: int) -> None:
        self.frame = frame
        self.index = index
        self.values = frame.values.copy()
        self.pending = frame.pending.copy()
        #: ready nodes; ~n stands for a dead one
        self.queue = frame.queue.copy()
        #: asynchronous nodes under way
        self.running = 0
        #: frames that were entered from here and are under way
        self.children: dict[Table, Frame] = {}
        self.scheduled = False
        self.following: Iteration | None = None


class Machine:
    """One step. Events in: `advance`, `finished`. Out: calls of the RUN nodes, `start` for ASYNC ones.

    start: function(iteration, node) that begins an asynchronous node.
    check: called now and then; raises where the step should end.
    """

    def __init__(
        self,
        root: Table,
        step: Any = None,
        start: Callable[[Iteration, int], None] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.step = step
        self._start = start
        self._check = check
        self.root = self._begin(Frame(root, None))
        self._runnable: deque[Iteration] = deque()
        self._schedule(self.root)

    def _begin(self, frame: Frame) -> Iteration:
        iteration = Iteration(frame, frame.started)
        frame.started += 1
        frame.alive.append(iteration)
        return iteration

    def _schedule(self, iteration: Iteration) -> None:
        if not iteration.scheduled:
            iteration.scheduled = True
            self._runnable.append(iteration)

    def advance(self) -> None:
        """Runs all that can be run. What is left then waits for asynchronous nodes, or never runs."""
        runnable = self._runnable
        check = self._check
        turn = 0
        while runnable:
            turn += 1
            if not turn & 15:
                check()
            iteration = runnable.popleft()
            self._run(iteration)
            iteration.scheduled = False
            if iteration.frame.alive[0] is iteration and not iteration.running:
                self._retire(iteration.frame)

    def _run(self, iteration: Iteration) -> None:
        """Runs an iteration until nothing of it is ready: the hot loop of the machine."""
        table = iteration.frame.table
        kinds, data, users, merges = table.kinds, table.data, table.users, table.merges
        values, pending, queue, step = iteration.values, iteration.pending, iteration.queue, self.step
        ready = queue.append
        while queue:
            n = queue.pop()
            if n < 0:
                self._run_dead(iteration, ~n)
                continue
            kind = kinds[n]
            if kind == RUN:
                data[n](values, step)
                targets = users[n]
            elif kind == PASS:
                targets = users[n]
            elif kind == SWITCH:
                decide, source, sides = data[n]
                out, targets, live, dead, dead_merges = sides[1 if values[decide] else 0]
                values[out] = values[source]
                if live:
                    self._merge_live(iteration, live, values)
                if dead or dead_merges:
                    self._send_dead(iteration, dead, dead_merges)
            elif kind == NEXT:
                self._next(iteration, n)
                continue
            else:
                self._control(iteration, kind, n)
                continue
            for t in targets:
                p = pending[t] - 1
                pending[t] = p
                if not p:
                    ready(t)
                elif p >= DEAD and not p & _COMING:
                    ready(~t)
            if merges[n]:
                self._merge_live(iteration, merges[n], values)

    def _merge_live(
        self, to: Iteration | Frame, edges: tuple[tuple[MergeEdge, int], ...], values: list[Any]
    ) -> None:
        """Tokens for Merges, each with the slot of its value."""
        pending = to.pending
        for edge, source in edges:
            merge, slot, index, index_slot = edge
            p = pending[merge]
            if index < 0:
                self._merge_control(to, merge)
            elif p & 1:
                to.values[slot] = values[source]
                if index_slot >= 0:
                    to.values[index_slot] = _index(index)
                pending[merge] = p - 1
                if p & _COMING == 1:
                    to.queue.append(merge)

    def _merge_control(self, to: Iteration | Frame, merge: int) -> None:
        """A control token, live or dead: a Merge doesn't care."""
        p = to.pending[merge] - 2
        to.pending[merge] = p
        if p & _COMING == 0:
            to.queue.append(merge)
        elif p & _COMING == 1 and p >> 20 >= _table_of(to).merge_inputs[merge]:
            to.queue.append(~merge)

    def _send_live(
        self,
        to: Iteration | Frame,
        targets: tuple[int, ...],
        edges: tuple[tuple[MergeEdge, int], ...],
        values: list[Any],
    ) -> None:
        pending = to.pending
        for t in targets:
            p = pending[t] - 1
            pending[t] = p
            if not p & _COMING:
                to.queue.append(~t if p else t)
        if edges:
            self._merge_live(to, edges, values)

    def _send_dead(
        self,
        to: Iteration | Frame,
        targets: tuple[int, ...],
        edges: tuple[MergeEdge, ...],
        enter: bool = False,
    ) -> None:
        """Dead tokens. One from an Enter stands for all of a Merge's inputs: the loop won't run."""
        pending = to.pending
        for t in targets:
            p = pending[t] + (DEAD - 1)
            pending[t] = p
            if not p & _COMING:
                to.queue.append(~t)
        for merge, _, index, _ in edges:
            if index < 0:
                self._merge_control(to, merge)
                continue
            inputs = _table_of(to).merge_inputs[merge]
            p = pending[merge] + (DEAD * inputs if enter else DEAD)
            pending[merge] = p
            if p & _COMING == 1 and p >> 20 >= inputs:
                to.queue.append(~merge)

    def _next(self, iteration: Iteration, n: int) -> None:
        """A NextIteration: its value goes to the iteration after, started where there isn't one."""
        frame = iteration.frame
        table = frame.table
        source, slot = table.data[n]
        following = iteration.following
        if following is None:
            if len(frame.alive) >= table.parallel:
                frame.deferred.append((n, iteration.values[source]))
                return
            following = iteration.following = self._begin(frame)
        values = following.values
        values[slot] = iteration.values[source]
        self._send_live(following, table.users[n], table.merges[n], values)
        if not following.scheduled:
            following.scheduled = True
            self._runnable.append(following)

    def _control(self, iteration: Iteration, kind: int, n: int) -> None:
        frame = iteration.frame
        table = frame.table
        if kind == ENTER:
            child, source, slot, constant, convert = table.data[n]
            value = iteration.values[source]
            self._enter(iteration, n, child, convert(value) if convert is not None else value, slot, constant)
        elif kind == EXIT:
            source, slot = table.data[n]
            parent = frame.parent
            assert parent is not None
            frame.exited.add(n)
            parent.values[slot] = iteration.values[source]
            self._send_live(parent, table.users[n], table.merges[n], parent.values)
            self._schedule(parent)
        elif kind in (ASYNC, RECV):
            iteration.running += 1
            assert self._start is not None
            self._start(iteration, n)
        elif kind == CHECKED:
            self._switch(iteration, n)
        elif kind == SEND:
            table.data[n](iteration, self.step, False)
            self._send_live(iteration, table.users[n], table.merges[n], iteration.values)
        else:
            self._send_live(iteration, table.users[n], table.merges[n], iteration.values)

    def _switch(self, iteration: Iteration, n: int) -> None:
        """A Switch of whose predicate nothing is known."""
        decide, source, sides, op = iteration.frame.table.data[n]
        values = iteration.values
        shape = np.shape(values[decide])
        if shape != ():
            raise InvalidArgumentError(
                None,
                op,
                f"The second input must be a scalar, but '{op._inputs[1].name}' has shape {list(shape)}",
            )
        out, targets, live, dead, dead_merges = sides[1 if values[decide] else 0]
        values[out] = values[source]
        self._send_live(iteration, targets, live, values)
        self._send_dead(iteration, dead, dead_merges)

    def _child(self, iteration: Iteration, child: Table) -> Frame:
        """The frame entered from an iteration, made when its first token comes."""
        frame = iteration.children.get(child)
        if frame is None:
            frame = iteration.children[child] = Frame(child, iteration)
            self._begin(frame)
        frame.coming -= 1
        return frame

    def _enter(
        self, iteration: Iteration, n: int, child: Table, value: Any, slot: int, constant: bool
    ) -> None:
        table = iteration.frame.table
        for to in self._entered(self._child(iteration, child), constant):
            to.values[slot] = value
            self._send_live(to, table.users[n], table.merges[n], to.values)
            if isinstance(to, Iteration):
                self._schedule(to)

    def _entered(self, frame: Frame, constant: bool) -> list[Iteration | Frame]:
        """Where the token of an Enter goes: to iteration 0; a constant to all, and those to come."""
        return [frame, *frame.alive] if constant else [frame.alive[0]]

    def _run_dead(self, iteration: Iteration, n: int) -> None:
        """A node with a dead input (a Merge with no live one): dead tokens to its users."""
        table = iteration.frame.table
        kind = table.kinds[n]
        if kind == ENTER:
            child, _, _, constant, _ = table.data[n]
            for to in self._entered(self._child(iteration, child), constant):
                self._send_dead(to, table.dead_users[n], table.dead_merges[n], enter=True)
                if isinstance(to, Iteration):
                    self._schedule(to)
        elif kind == TRIGGER:
            self._send_live(iteration, table.users[n], table.merges[n], iteration.values)
        elif kind == RECV:
            self._control(iteration, kind, n)  # what comes was sent already: it must be taken
        else:
            if kind == SEND:
                table.data[n](iteration, self.step, True)
            self._send_dead(iteration, table.dead_users[n], table.dead_merges[n])

    def _retire(self, frame: Frame) -> None:
        """Ends the iterations that nothing can come to any more, the oldest first; and then their frame."""
        alive = frame.alive
        while alive:
            first = alive[0]
            if first.scheduled or first.running or first.children or (frame.coming and not first.index):
                return
            alive.popleft()
            if frame.deferred:
                self._start_deferred(frame)
        parent = frame.parent
        if parent is None or frame.coming:
            return
        table = frame.table
        del parent.children[table]
        for n in table.exits:
            if n not in frame.exited:
                self._send_dead(parent, table.dead_users[n], table.dead_merges[n])
        if parent.queue:
            self._schedule(parent)
        elif not parent.scheduled and not parent.running and parent.frame.alive[0] is parent:
            self._retire(parent.frame)

    def _start_deferred(self, frame: Frame) -> None:
        table = frame.table
        newest = frame.alive[-1] if frame.alive else None
        iteration = self._begin(frame)
        if newest is not None:
            newest.following = iteration
        waiting, frame.deferred = frame.deferred, []
        for n, value in waiting:
            iteration.values[table.data[n][1]] = value
            self._send_live(iteration, table.users[n], table.merges[n], iteration.values)
        self._schedule(iteration)

    def finished(self, iteration: Iteration, n: int, dead: bool = False) -> None:
        """The event that an asynchronous node has ended; its outputs are in the iteration's values.

        dead: a Recv, for which a dead token has come.
        """
        iteration.running -= 1
        table = iteration.frame.table
        if dead:
            self._send_dead(iteration, table.dead_users[n], table.dead_merges[n])
        else:
            self._send_live(iteration, table.users[n], table.merges[n], iteration.values)
        self._schedule(iteration)


def _table_of(to: Iteration | Frame) -> Table:
    return to.frame.table if isinstance(to, Iteration) else to.table


def _index(index: int) -> Any:
    return _INDICES[index] if index < len(_INDICES) else np.int32(index)


_INDICES = tuple(np.int32(i) for i in range(16))
