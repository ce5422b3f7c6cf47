"""Where each node of a plan runs: in which frame, and under which conditions it is alive.

Both follow from the graph alone (a GraphDef has no contexts), as TensorFlow's executor finds them.
"""

from __future__ import annotations

from collections.abc import Iterable

from thalweg.base.errors import InvalidArgumentError
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import NEXT_ITERATION, topological_order
from thalweg.kernel.convention import Kind

SWITCH = frozenset(("Switch", "RefSwitch"))
MERGE = frozenset(("Merge", "RefMerge"))
ENTER = frozenset(("Enter", "RefEnter"))
EXIT = frozenset(("Exit", "RefExit"))

#: one thing that must hold: the chosen side of a predicate, or that a node is alive for reasons of its own
Condition = tuple[Tensor | Operation, int]
_ALWAYS: frozenset[Condition] = frozenset()


class Frame:
    """The body of one loop. parent: the frame that it is entered from; None stands for the whole step."""

    __slots__ = ("enters", "exits", "live", "name", "parent")

    def __init__(self, parent: Frame | None, name: str) -> None:
        self.parent = parent
        self.name = name
        #: the conditions of the parent under which the loop runs (those of its first Enter)
        self.live = _ALWAYS
        self.enters: list[Operation] = []
        self.exits: list[Operation] = []

    def __repr__(self) -> str:
        return f"<Frame {self.name}>"


class Place:
    """A frame, and the conditions that all hold in an iteration where a node is alive.

    Nodes of one place are alive together or dead together. One object for equal places.
    """

    __slots__ = ("frame", "live")

    def __init__(self, frame: Frame | None, live: frozenset[Condition]) -> None:
        self.frame = frame
        self.live = live

    def __repr__(self) -> str:
        conditions = ", ".join(sorted(f"{what.name}={side}" for what, side in self.live))
        return f"<Place {self.frame.name if self.frame else ''} if {conditions}>"


def find_places(graph: Graph, freed: bool = False) -> bool:
    """Writes every node's Place into `_control_flow_context`; None: outside of loops, and always alive.

    freed: constants that wait for nothing may be used anywhere (after rewrite.tokens.free_constants).

    Returns whether the graph has control flow. Errors: InvalidArgumentError where a node takes inputs from
    several frames, an Exit has no frame to leave, or a result is fetched from inside a loop.
    """
    dynamic = any(is_control(op) for op in graph._ops)
    if not dynamic:
        for op in graph._ops:
            op._control_flow_context = None
        return False
    try:
        order = topological_order(graph)
    except ValueError as e:
        raise InvalidArgumentError(None, None, f"{e}: only a NextIteration may close a loop") from None
    places = _Places(order, frozenset(), freed)
    irregular = places.irregular_frames()
    if irregular:
        places = _Places(order, irregular, freed)
    for op in order:
        place = places.of[op]
        op._control_flow_context = place if place.frame is not None or place.live else None
        if op.type == "_Retval" and place.frame is not None:
            raise InvalidArgumentError(
                None,
                op._inputs[0]._op,
                f"'{op._inputs[0].name}' can't be fetched: it has a value for each iteration of the loop "
                f"'{place.frame.name}'. Fetch what the loop returns (the output of an Exit)",
            )
    return True


def is_control(op: Operation) -> bool:
    """Whether the executor itself knows what the node does."""
    kernel = op._record.kernel
    return kernel is not None and kernel.kind is Kind.CONTROL


def frame_of(op: Operation) -> Frame | None:
    """The frame that a node runs in (after find_places)."""
    place: Place | None = op._control_flow_context
    return place.frame if place is not None else None


def left_frame(op: Operation) -> Frame | None:
    """The frame that an Exit leaves, else None."""
    return frame_of(op) if op.type in EXIT else None


def exits_after_enters(graph: Graph) -> dict[Operation, list[Operation]]:
    """By Enter, the Exits of its frame: what a loop returns comes after all that enters it."""
    there = set(graph._ops)
    after: dict[Operation, list[Operation]] = {}
    for op in graph._ops:
        frame = left_frame(op)
        if frame is not None:
            for enter in frame.enters:
                if enter in there:  # not removed by a pass
                    after.setdefault(enter, []).append(op)
    return after


def predicate(tensor: Tensor) -> Tensor:
    """The tensor that decides, behind nodes that pass it on."""
    while tensor._op.type in ("Identity", "LoopCond") and not tensor._op._control_inputs:
        tensor = tensor._op._inputs[0]
    return tensor


class _Places:
    """One pass over the graph. irregular: frames whose next iterations don't all start together."""

    def __init__(
        self, order: list[Operation], irregular: frozenset[tuple[str, ...]], freed: bool
    ) -> None:
        self._freed = freed
        self.of: dict[Operation, Place] = {}
        self._after: dict[Operation, Place] = {}  # of an output, where that isn't the node's own place
        self._frames: dict[tuple[Frame | None, str], Frame] = {}
        self._known: dict[tuple[Frame | None, frozenset[Condition]], Place] = {}
        self._irregular = irregular
        self.root = self._place(None, _ALWAYS)
        for op in order:
            self._visit(op)

    def irregular_frames(self) -> frozenset[tuple[str, ...]]:
        """The frames (as paths of names) in which values reach the next iteration on different conditions."""
        found: dict[Frame, set[Place]] = {}
        for op, place in self.of.items():
            if op.type in NEXT_ITERATION and place.frame is not None:
                found.setdefault(place.frame, set()).add(place)
        return frozenset(_path(frame) for frame, places in found.items() if len(places) > 1)

    def _place(self, frame: Frame | None, live: frozenset[Condition]) -> Place:
        place = self._known.get((frame, live))
        if place is None:
            place = self._known[frame, live] = Place(frame, live)
        return place

    def _visit(self, op: Operation) -> None:
        if op.type in MERGE:
            place = self._merge(op)
        else:
            inputs = [t for t in op._inputs if not self._is_anywhere(t._op)]
            found = [self._of_tensor(t) for t in inputs]
            found += [self._after.get(c) or self.of[c] for c in op._control_inputs]
            place = self._meet(op, inputs, found)
            if op.type == "ControlTrigger":
                place = self._place(place.frame, _ALWAYS)
        self.of[op] = place
        if op.type in ENTER:
            self._after[op] = self._enter(op, place)
        elif op.type in EXIT:
            self._after[op] = self._exit(op, place)

    def _is_anywhere(self, op: Operation) -> bool:
        return self._freed and op.type == "Const" and not op._control_inputs

    def _of_tensor(self, tensor: Tensor) -> Place:
        op = tensor._op
        if op not in self.of:
            raise InvalidArgumentError(
                None, op, f"the NextIteration '{op._name}' closes a loop: only a Merge may take what it gives"
            )
        place = self._after.get(op) or self.of[op]
        if op.type in SWITCH:
            condition = (predicate(op._inputs[1]), tensor._index)
            return self._place(place.frame, place.live | {condition})
        return place

    def _meet(self, op: Operation, inputs: list[Tensor], found: list[Place]) -> Place:
        """Where all of the inputs are there."""
        if not found:
            return self.root
        live = found[0].live.union(*(p.live for p in found[1:]))
        return self._place(self._frame(op, inputs, found), live)

    def _frame(self, op: Operation, inputs: list[Tensor], found: list[Place]) -> Frame | None:
        """The frame of all of these inputs, and of the control inputs; found: their places."""
        frame = found[0].frame
        sources = [*(t._op for t in inputs), *op._control_inputs]
        for source, place in zip(sources, found, strict=True):
            if place.frame is not frame:
                raise InvalidArgumentError(
                    None,
                    op,
                    f"The node '{op._name}' has inputs from different frames. The input '{sources[0]._name}' "
                    f"is in frame '{frame.name if frame else ''}'. The input '{source._name}' is in frame "
                    f"'{place.frame.name if place.frame else ''}'.",
                )
        return frame

    def _merge(self, op: Operation) -> Place:
        """Alive where one of its data inputs is (a constant that waits for nothing is); control inputs don't
        count."""
        inputs = [t for t in op._inputs if t._op in self.of]
        found = [self._of_tensor(t) for t in inputs]
        controls = [self._after.get(c) or self.of[c] for c in op._control_inputs]
        if not found:
            raise InvalidArgumentError(None, op, f"The Merge '{op._name}' waits for next iterations only")
        frame = self._frame(op, inputs, found + controls)
        if len(found) < len(op._inputs):
            if frame is not None and _path(frame) in self._irregular:
                return self._place(frame, frozenset({(op, 0)}))
            return self._place(frame, found[0].live)
        return self._place(frame, _either(op, [p.live for p in found]))

    def _enter(self, op: Operation, place: Place) -> Place:
        name = op._attrs["frame_name"].decode(errors="backslashreplace")
        frame = self._frames.get((place.frame, name))
        if frame is None:
            frame = self._frames[place.frame, name] = Frame(place.frame, name)
            frame.live = place.live
        frame.enters.append(op)
        return self._place(frame, _ALWAYS if place.live == frame.live else frozenset({(op, 0)}))

    def _exit(self, op: Operation, place: Place) -> Place:
        frame = place.frame
        if frame is None:
            raise InvalidArgumentError(
                None, op, f"The Exit '{op._name}' has no frame to leave: its input is outside of any loop"
            )
        frame.exits.append(op)
        ends = len(place.live) == 1 and op._inputs[0]._op.type in SWITCH and not op._control_inputs
        if ends and op._inputs[0]._op._inputs[1]._op.type == "LoopCond":
            return self._place(frame.parent, frame.live)
        return self._place(frame.parent, frame.live | {(op, 0)})


def _either(op: Operation, lives: Iterable[frozenset[Condition]]) -> frozenset[Condition]:
    """The conditions of a Merge: those that stay when both sides of one predicate are put together."""
    distinct = list(dict.fromkeys(lives))
    if len(distinct) == 1:
        return distinct[0]
    if _ALWAYS in distinct:
        return _ALWAYS
    if len(distinct) == 2:
        common = distinct[0] & distinct[1]
        rest = sorted((c for d in distinct for c in d - common), key=lambda c: c[1])
        if len(rest) == 2 and rest[0][0] is rest[1][0] and (rest[0][1], rest[1][1]) == (0, 1):
            return common
    return frozenset({(op, 0)})


def _path(frame: Frame) -> tuple[str, ...]:
    return ((*_path(frame.parent), frame.name)) if frame.parent is not None else (frame.name,)
