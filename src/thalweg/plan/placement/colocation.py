"""Groups of nodes that go to one device, with what ties them, and where each group may go.

Sets of devices are Python integers: bit i stands for device i.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from thalweg.graph.operation import Operation
from thalweg.graph.subgraph import NEXT_ITERATION
from thalweg.plan.places import ENTER, EXIT, MERGE, SWITCH, Place
from thalweg.plan.state import VARIABLE_OPS, variable_key

_LOC = b"loc:@"


class Groups:
    """Union-find over the nodes of a list. can: where each node has a kernel; want: where it asks to be."""

    def __init__(
        self, ops: Sequence[Operation], can: Sequence[int], want: Sequence[int], everywhere: int
    ) -> None:
        self.ops = ops
        self.everywhere = everywhere
        self.can, self.want = list(can), list(want)
        self._parent = list(range(len(ops)))
        #: the tree of unions: what ties a node to others, and why
        self._ties: dict[int, list[tuple[int, str]]] = {}
        #: nodes whose wish gave way to that of the variable, queue ... that they use, with that one's node
        self.overruled: dict[int, int] = {}

    def root(self, i: int) -> int:
        """The node that stands for the group of node i."""
        parent = self._parent
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def unite(self, a: int, b: int, why: str) -> bool:
        """Makes one group of two. Whether it can go anywhere: else see `conflict`."""
        ra, rb = self.root(a), self.root(b)
        if ra == rb:
            return True
        ra, rb = min(ra, rb), max(ra, rb)  # the first node stands for the group
        self._parent[rb] = ra
        self.can[ra] &= self.can[rb]
        self.want[ra] &= self.want[rb]
        self._ties.setdefault(a, []).append((b, why))
        self._ties.setdefault(b, []).append((a, why))
        return bool(self.can[ra] & self.want[ra])

    def follow(self, a: int, b: int, why: str) -> None:
        """As unite; what b's group asks for gives way to what a's does, where that is something else."""
        ra, rb = self.root(a), self.root(b)
        if ra != rb and not self.want[ra] & self.want[rb] and self.want[ra] & self.can[rb]:
            self.want[rb] = self.want[ra]
            self.overruled[b] = a
        self.unite(a, b, why)

    def unite_softly(self, a: int, b: int, why: str) -> bool:
        """As unite, where both have a device in common; else they stay apart. Whether they are together."""
        ra, rb = self.root(a), self.root(b)
        if ra == rb:
            return True
        if not self.can[ra] & self.can[rb] & self.want[ra] & self.want[rb]:
            return False
        return self.unite(a, b, why)

    def members(self) -> dict[int, list[int]]:
        """The nodes of each group, by its root."""
        found: dict[int, list[int]] = {}
        for i in range(len(self.ops)):
            found.setdefault(self.root(i), []).append(i)
        return found

    def tied_to(self, a: int) -> dict[int, tuple[int, str]]:
        """For each node that is tied to a: the node before it on the way there, and what ties it to that."""
        before: dict[int, tuple[int, str]] = {a: (-1, "")}
        queue = deque([a])
        while queue:
            at = queue.popleft()
            for other, why in self._ties.get(at, ()):
                if other not in before:
                    before[other] = (at, why)
                    queue.append(other)
        return before

    def chain(self, a: int, b: int) -> list[tuple[int, str]]:
        """How b is tied to a: the nodes on the way after a, and why each goes where the one before goes."""
        before = self.tied_to(a)
        way: list[tuple[int, str]] = []
        while b != a:
            at, why = before[b]
            way.append((b, why))
            b = at
        return way[::-1]


def unite_all(groups: Groups) -> None:
    """Makes the groups that must be: by `_class`, by references and handles, by shared state."""
    ops = groups.ops
    index = {op: i for i, op in enumerate(ops)}
    named: dict[bytes, int] = {}
    shared: dict[object, int] = {}
    first_of_name: dict[bytes, list[int]] = {}
    for i, op in enumerate(ops):
        for loc in op._attrs.get("_class", ()):
            if loc.startswith(_LOC):
                first_of_name.setdefault(loc[len(_LOC) :], []).append(i)
        if op.type in VARIABLE_OPS:
            key = variable_key(op)
            groups.unite(shared.setdefault(key, i), i, f"both are the variable '{key[2]}'")
        elif op._attrs.get("shared_name") and op._record.definition.is_stateful:
            name = op._attrs["shared_name"].decode()
            key2 = (op.type, op._attrs.get("container"), name)
            groups.unite(shared.setdefault(key2, i), i, f"both are the shared {op.type} '{name}'")
        for tensor in op._inputs:
            if _must_join(op, tensor):
                what = "the resource" if tensor._dtype.name == "resource" else "the reference"
                groups.follow(index[tensor._op], i, f"it takes {what} '{tensor.name}'")
    if first_of_name:
        named = {op._name.encode(): i for i, op in enumerate(ops) if op._name.encode() in first_of_name}
        for name, takers in first_of_name.items():
            first = named.get(name, takers[0])
            for i in takers:
                # what goes along with a node asks for what that asks for, and gives way with it
                gives_way = first in groups.overruled and ops[i]._device == ops[first]._device
                unite = groups.follow if gives_way else groups.unite
                unite(first, i, f"_class 'loc:@{name.decode()}'")


def _must_join(op: Operation, tensor: object) -> bool:
    dtype = tensor._dtype  # type: ignore[attr-defined]
    if dtype.name == "resource":
        return op.type != "_Retval"
    return dtype.is_ref_dtype and any(
        t is tensor and arg_is_ref for t, arg_is_ref in zip(op._inputs, _takes_references(op), strict=False)
    )


def _takes_references(op: Operation) -> list[bool]:
    """For each input, whether it is taken as a reference (else the value behind it is taken)."""
    definition = op._record.definition
    references = {arg.name for arg in definition.inputs if arg.is_ref}
    if not references:
        return [False] * len(op._inputs)
    return [name.partition(".")[0] in references for name in definition.input_names(op._attrs)]


def unite_where_possible(groups: Groups, asked: Sequence[int]) -> None:
    """Makes groups that should be: one loop variable's nodes, reads with their variable, results with what
    they return, and loops and branches that ask for no device, or all for one: whole they can be compiled.

    asked: for each node the devices that it asks for itself, as bits; all of them where it doesn't ask.
    """
    ops = groups.ops
    index = {op: i for i, op in enumerate(ops)}
    bodies: dict[object, list[int]] = {}
    for i, op in enumerate(ops):
        kind = op.type
        if kind == "_Retval" or (kind == "Identity" and op._inputs[0]._dtype.is_ref_dtype):
            groups.unite_softly(index[op._inputs[0]._op], i, f"it takes '{op._inputs[0].name}'")
        elif kind in MERGE:
            for t in op._inputs:
                if t._op.type in ENTER or t._op.type in NEXT_ITERATION:
                    groups.unite_softly(i, index[t._op], "one loop variable")
        elif kind in EXIT or (kind in SWITCH and op._inputs[0]._op.type in MERGE):
            groups.unite_softly(index[op._inputs[0]._op], i, "one loop variable")
        place = op._control_flow_context
        if isinstance(place, Place):
            bodies.setdefault(_body(place), []).append(i)
    for key, members in bodies.items():
        if len({asked[i] for i in members if asked[i] != groups.everywhere}) <= 1:
            first = members[0]
            for i in members[1:]:
                groups.unite_softly(first, i, f"both are in {_say(key)}")


def _body(place: Place) -> object:
    """The outermost loop or branch that a place is in."""
    frame = place.frame
    live = place.live
    while frame is not None and frame.parent is not None:
        frame = frame.parent
    if frame is not None:
        if not frame.live:
            return frame
        live = frame.live
    return min((what for what, _ in live), key=lambda what: what.name)


def _say(body: object) -> str:
    name = getattr(body, "name", "")
    return f"the loop '{name}'" if type(body).__name__ == "Frame" else f"the branch on '{name}'"
