"""From a plan with control flow to tables of the tagged-token machine: nodes as numbers, values in slots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thalweg.base import errors
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import NEXT_ITERATION
from thalweg.kernel.convention import Kind
from thalweg.plan.pipeline import Plan
from thalweg.plan.places import ENTER as ENTERS
from thalweg.plan.places import EXIT as EXITS
from thalweg.plan.places import MERGE as MERGES
from thalweg.plan.places import SWITCH as SWITCHES
from thalweg.plan.places import Frame, frame_of
from thalweg.runtime import frames
from thalweg.runtime.frames import MergeEdge, Table
from thalweg.runtime.resources import Handle

#: values of up to this many elements aren't worth freeing before their iteration ends
SMALL = 1024

#: what the executor starts, or calls with the iteration
_ASYNCHRONOUS = {Kind.ASYNC: frames.ASYNC, Kind.SEND: frames.SEND, Kind.RECV: frames.RECV}

#: (index of the output or -1 for a control edge, user, index of its input or -1)
Edge = tuple[int, Operation, int]
#: what a RUN node calls
Action = Callable[[list[Any], Any], None]


class Layout:
    """The tables of a plan.

    instruction: makes what the machine calls for a node outside of control flow from (op, input slots, first
    output slot); None for one that does nothing. to_device: makes what brings an array to a node's device.
    """

    def __init__(
        self,
        plan: Plan,
        n_fetches: int,
        instruction: Callable[[Operation, list[int], int], Any],
        to_device: Callable[[Operation], Callable[[Any], Any]] = lambda op: lambda value: value,
    ) -> None:
        self.root = Table("")
        self._tables: dict[Frame | None, Table] = {None: self.root}
        #: slots of the feeds, by index: (feed, slot)
        self.feeds: list[tuple[int, int]] = []
        #: per fetch the slot in the root's values
        self.results = [0] * n_fetches
        #: the operations of each table's nodes
        self.ops: dict[Table, list[Operation]] = {self.root: []}
        self._slots: dict[tuple[Table, Tensor], int] = {}
        self._number: dict[Operation, int] = {}
        self._home: dict[Operation, Table] = {}
        self._edges: dict[Operation, list[Edge]] = {}
        self._instruction = instruction
        self._to_device = to_device
        self._build(plan)

    def _build(self, plan: Plan) -> None:
        graph = plan.graph
        tokens = {t._op for op in graph._ops if op.type in MERGES for t in op._inputs}
        nodes: list[Operation] = []
        for op in graph._ops:
            if op.type == "_Retval" or _passes_on(op) or (_is_preset(op) and op not in tokens):
                continue
            nodes.append(op)
            table = self._table(frame_of(op))
            self._home[op] = table
            self._number[op] = len(self.ops[table])
            self.ops[table].append(op)
            self._edges[op] = []
        for op in nodes:
            self._output_slots(op)
        for op in nodes:
            self._find_edges(op)
        for op in nodes:
            self._add(op)
        for op in graph._ops:
            if op.type == "_Retval":
                self.results[op._attrs["index"]] = self._slot(self.root, _source(op._inputs[0]))
        self._free(nodes)

    def _table(self, frame: Frame | None) -> Table:
        table = self._tables.get(frame)
        if table is None:
            assert frame is not None
            parent = self._table(frame.parent)
            parallel = frame.enters[0]._attrs["parallel_iterations"]
            table = self._tables[frame] = Table(frame.name, parent, max(1, parallel))
            self.ops[table] = []
        return table

    def _output_table(self, op: Operation) -> Table:
        """The table of the frame in which a node's outputs are."""
        home = self._home[op]
        if op.type in ENTERS:
            return self._child(op)
        if op.type in EXITS:
            assert home.parent is not None
            return home.parent
        return home

    def _child(self, enter: Operation) -> Table:
        name, parent = enter._attrs["frame_name"].decode(), frame_of(enter)
        for frame, table in self._tables.items():
            if frame is not None and frame.parent is parent and frame.name == name:
                return table
        raise errors.InternalError(None, enter, f"nothing runs in the frame '{name}'")

    def _output_slots(self, op: Operation) -> None:
        table = self._output_table(op)
        for tensor in op._outputs:
            self._slots[table, tensor] = len(table.values)
            table.values.append(_preset_value(op) if op._record.kernel.kind is Kind.SOURCE else None)
            if op.type == "_Arg":
                self.feeds.append((op._attrs["index"], self._slots[table, tensor]))

    def _slot(self, table: Table, tensor: Tensor) -> int:
        """Where a tensor is in the values of a table; what is there from the start has one in each."""
        found = self._slots.get((table, tensor))
        if found is None:
            if not _is_preset(tensor._op):
                raise errors.InternalError(
                    None, tensor._op, f"'{tensor.name}' is used in the frame '{table.name}', where it isn't"
                )
            found = self._slots[table, tensor] = len(table.values)
            table.values.append(_preset_value(tensor._op))
            if tensor._op.type == "_Arg":
                if table is not self.root:
                    raise errors.InvalidArgumentError(
                        None,
                        tensor._op,
                        f"'{tensor.name}' is fed into the loop '{table.name}': feed what enters it",
                    )
                self.feeds.append((tensor._op._attrs["index"], found))
        return found

    def _find_edges(self, op: Operation) -> None:
        for i, tensor in enumerate(op._inputs):
            source = _source(tensor)
            if source._op in self._edges:
                self._edges[source._op].append((source._index, op, i))
        for control in op._control_inputs:
            if _passes_on(control):
                source = _source(control._inputs[0])
                if source._op in self._edges:
                    self._edges[source._op].append((source._index, op, -1))
            elif control in self._edges:
                self._edges[control].append((-1, op, -1))

    def _add(self, op: Operation) -> None:
        """One more row in the lists of the node's table (nodes come in order of their numbers)."""
        table = self._home[op]
        kind, data = self._action(op, table)
        edges = self._edges[op]
        split = kind in (frames.SWITCH, frames.CHECKED)  # who gets live tokens is in its data
        users, merges = self._targets(op, [] if split else edges)
        table.kinds.append(kind)
        table.data.append(data)
        table.users.append(users)
        table.merges.append(merges)
        dead, dead_merges = self._dead_targets(op, edges)
        table.dead_users.append(dead)
        table.dead_merges.append(dead_merges)
        number = self._number[op]
        waits = self._waits(op)
        table.pending.append(waits)
        if op.type in MERGES:
            table.merge_inputs[number] = len(op._inputs)
        elif waits == 0:
            table.start.append(number)
        if op.type in ENTERS:
            self._child(op).enters += 1
        elif op.type in EXITS:
            table.exits.append(number)

    def _waits(self, op: Operation) -> int:
        """How many tokens a node waits for; a Merge as the machine counts them."""
        controls = 0
        for c in op._control_inputs:
            controls += (_source(c._inputs[0])._op if _passes_on(c) else c) in self._edges
        if op.type in MERGES:
            return 1 + 2 * controls
        return controls + sum(_source(t)._op in self._edges for t in op._inputs)

    def _action(self, op: Operation, table: Table) -> tuple[int, Any]:
        kind = op.type
        if kind in MERGES or op._record.kernel.kind is Kind.SOURCE:
            return frames.PASS, None
        inputs = [self._slot(table, _source(t)) for t in op._inputs]
        if kind in SWITCHES:
            sides = tuple(self._side(op, side) for side in (0, 1))
            scalar = op._inputs[1]._shape == ()
            return (frames.SWITCH, (inputs[1], inputs[0], sides)) if scalar else (
                frames.CHECKED, (inputs[1], inputs[0], sides, op)
            )  # fmt: skip
        if kind in ENTERS:
            child = self._child(op)
            slot = self._slot(child, op._outputs[0])
            constant = op._attrs["is_constant"]
            convert = self._to_device(op) if constant and self._for_clusters(op) else None
            return frames.ENTER, (child, inputs[0], slot, constant, convert)
        if kind in EXITS:
            return frames.EXIT, (inputs[0], self._slot(self._output_table(op), op._outputs[0]))
        if kind in NEXT_ITERATION:
            return frames.NEXT, (inputs[0], self._slot(table, op._outputs[0]))
        if kind == "ControlTrigger":
            return frames.TRIGGER, None
        first = self._slot(table, op._outputs[0]) if op._outputs else 0
        action = self._instruction(op, inputs, first) if kind != "LoopCond" else _move(inputs[0], first)
        asynchronous = _ASYNCHRONOUS.get(op._record.kernel.kind)
        if asynchronous is not None:
            return asynchronous, action
        return (frames.RUN, action) if action is not None else (frames.PASS, None)

    def _for_clusters(self, enter: Operation) -> bool:
        """Whether compiled code takes a loop's constant in each iteration: better brought to it once."""
        output = enter._outputs[0]
        if output._dtype.base_dtype.name in ("string", "resource", "variant") or output._dtype.is_ref_dtype:
            return False
        users = [u for _, u, i in self._edges[enter] if i >= 0]
        compiled = [u.type == "_Cluster" and not u._attrs["body"].scalar for u in users]
        return any(compiled) and (all(compiled) or output._shape != ())

    def _side(self, switch: Operation, side: int) -> Any:
        """A Switch that chose this side: slot, who gets live tokens, and who dead ones from the other."""
        edges = self._edges[switch]
        users, merges = self._targets(switch, [e for e in edges if e[0] in (side, -1)])
        dead = self._dead_targets(switch, [e for e in edges if e[0] == 1 - side])
        return (self._slot(self._home[switch], switch._outputs[side]), users, merges, *dead)

    def _targets(
        self, op: Operation, edges: list[Edge]
    ) -> tuple[tuple[int, ...], tuple[tuple[MergeEdge, int], ...]]:
        table = self._output_table(op)
        users = tuple(self._number[user] for _, user, _ in edges if user.type not in MERGES)
        merges = tuple(
            (self._merge_edge(user, i), self._slot(table, op._outputs[output]) if output >= 0 else -1)
            for output, user, i in edges
            if user.type in MERGES
        )
        return users, merges

    def _dead_targets(
        self, op: Operation, edges: list[Edge]
    ) -> tuple[tuple[int, ...], tuple[MergeEdge, ...]]:
        users = tuple(
            self._number[user]
            for _, user, _ in edges
            if user.type not in MERGES and user.type not in EXITS and user.type not in NEXT_ITERATION
        )
        return users, tuple(self._merge_edge(user, i) for _, user, i in edges if user.type in MERGES)

    def _merge_edge(self, merge: Operation, i: int) -> MergeEdge:
        table = self._home[merge]
        slot, index_slot = (self._slot(table, t) for t in merge._outputs)
        wanted = bool(merge._outputs[1]._consumers)
        return (self._number[merge], slot, i, index_slot if wanted else -1)

    def _free(self, nodes: list[Operation]) -> None:
        """Wraps the last users of large values so that these are freed before their iteration ends."""
        kept = set(self.results)
        frees: dict[tuple[Table, int], list[tuple[int, int]]] = {}
        for op in nodes:
            table = self._output_table(op)
            for tensor in op._outputs:
                slot = self._slots[table, tensor]
                taken = (u for output, u, i in self._edges[op] if output == tensor._index and i >= 0)
                users = dict.fromkeys(taken)
                rows = [(self._home[u], self._number[u]) for u in users]
                if _is_small(tensor) or not rows or (table is self.root and slot in kept):
                    continue
                if op.type in ENTERS or any(t is not table or t.kinds[n] not in _FREEING for t, n in rows):
                    continue
                counter = -1
                if len(rows) > 1:
                    counter = len(table.values)
                    table.values.append(len(rows))
                for row in rows:
                    frees.setdefault(row, []).append((slot, counter))
        for (table, n), slots in frees.items():
            table.data[n] = _FREEING[table.kinds[n]](table.data[n], tuple(slots))


def _freeing(action: Action, slots: tuple[tuple[int, int], ...]) -> Action:
    """The action, then one user less for each slot: (slot, slot of its count or -1 for the only user)."""

    def run(values: list[Any], step: Any) -> None:
        action(values, step)
        _release(values, slots)

    return run


def _freeing_send(send: Any, slots: tuple[tuple[int, int], ...]) -> Any:
    """The same for a Send."""

    def run(iteration: Any, step: Any, dead: bool) -> None:
        send(iteration, step, dead)
        if not dead:
            _release(iteration.values, slots)

    return run


def _release(values: list[Any], slots: tuple[tuple[int, int], ...]) -> None:
    for slot, counter in slots:
        if counter >= 0:
            values[counter] -= 1
            if values[counter]:
                continue
        values[slot] = None


#: by the kind of a node: what wraps its action so that it frees its inputs
_FREEING: dict[int, Callable[..., Any]] = {frames.RUN: _freeing, frames.SEND: _freeing_send}


def _move(source: int, target: int) -> Action:
    def run(values: list[Any], step: Any) -> None:
        values[target] = values[source]

    return run


def _is_small(tensor: Tensor) -> bool:
    shape = tensor._shape
    if tensor._dtype.is_ref_dtype or tensor._dtype.name == "resource":
        return True
    if shape is None or None in shape:
        return False
    n = 1
    for d in shape:
        n *= d or 0
    return n <= SMALL


def _is_preset(op: Operation) -> bool:
    """Whether a node's value is there when the step starts."""
    return op._record.kernel.kind is Kind.SOURCE and not op._control_inputs


def _preset_value(op: Operation) -> Any:
    if op.type == "Const":
        return op._attrs["value"]
    return Handle(op) if op.type != "_Arg" else None


def _passes_on(op: Operation) -> bool:
    """Whether a node is no more than another name for its input."""
    if op.type not in ("Identity", "LoopCond") or op._control_inputs:
        return False
    return not op._inputs[0]._dtype.is_ref_dtype


def _source(tensor: Tensor) -> Tensor:
    """The tensor behind nodes that pass it on."""
    while _passes_on(tensor._op):
        tensor = tensor._op._inputs[0]
    return tensor
