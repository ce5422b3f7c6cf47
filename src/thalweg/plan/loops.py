"""Compiled loops: a frame of traceable nodes becomes one node, _CompiledLoop, which may join a cluster.

Frames are recognised by their structure, so loops of any origin are: a loop variable is a Merge of an Enter
and a NextIteration, a Switch by the LoopCond sends it into the body or to an Exit. Inner frames come first.
What can't be compiled stays on the executor (runtime.frames), and the report says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.graph import registry
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import NEXT_ITERATION, bypass_control, raw_node, replace_uses, topological_order
from thalweg.kernel.body import Body
from thalweg.plan.arrays import convert_arrays
from thalweg.plan.branches import compile_branches
from thalweg.plan.mark import is_compilable, known_tensors
from thalweg.plan.places import ENTER, EXIT, MERGE, SWITCH, Frame, Place, find_places, frame_of, predicate
from thalweg.plan.regions import (
    CannotCompile,
    Slice,
    detach,
    follows_from_shapes,
    known_args,
    make_body,
    require_one_device,
    require_traceable,
    slice_back,
    take_instead,
)
from thalweg.plan.rewrite.fold import remove_unused
from thalweg.plan.stacks import Link, find_links
from thalweg.plan.trips import Trips, find_trips

#: constants up to this many bytes are copied into the bodies that use them
_INLINE_BYTES = 1024


def compile_loops(graph: Graph) -> tuple[bool, list[tuple[str, int]]]:
    """Loops become _CompiledLoop and conditionals _CompiledCond nodes, where all of them is traceable.

    Law: the same values leave, and the same errors. find_places must have run; it has run again afterwards.
    Returns whether control flow is left, and for the report what was compiled and what wasn't and why.
    """
    report: list[tuple[str, int]] = []
    order = topological_order(graph)
    known = known_tensors(order, {op for op in order if is_compilable(op)})
    buffers = convert_arrays(graph, known, report)
    remove_unused(graph)
    frames: dict[Frame, None] = {}
    for op in graph._ops:
        frame = frame_of(op)
        while frame is not None:
            frames.setdefault(frame)
            frame = frame.parent
    children: dict[Frame | None, list[Frame]] = {}
    for frame in frames:
        children.setdefault(frame.parent, []).append(frame)
    _collapse(graph, None, children, buffers, report)
    return find_places(graph, freed=True), report


def _collapse(
    graph: Graph,
    frame: Frame | None,
    children: dict[Frame | None, list[Frame]],
    buffers: set[Tensor],
    report: list[tuple[str, int]],
) -> None:
    """Compiles the loops right inside a frame, from the inside out, then the conditionals in it."""
    inner = children.get(frame, [])
    for child in inner:
        _collapse(graph, child, children, buffers, report)
    if inner:
        _compile_frames(graph, inner, buffers, report)
    compile_branches(graph, frame, report)


def _compile_frames(
    graph: Graph, frames: Sequence[Frame], buffers: set[Tensor], report: list[tuple[str, int]]
) -> None:
    topological = topological_order(graph)
    order = {op: i for i, op in enumerate(topological)}
    known = known_tensors(topological, {op for op in topological if is_compilable(op)})
    members: dict[Frame, list[Operation]] = {f: [] for f in frames}
    for op in topological:
        frame = frame_of(op)
        if frame in members:
            members[frame].append(op)
    links = find_links(graph)
    loops: dict[Frame, _Loop] = {}
    for frame in frames:
        loop = _Loop(graph, frame, members[frame], order, links, buffers)
        try:
            loop.analyse()
        except CannotCompile as why:
            report.append((f"loop '{frame.name}' runs on the executor: {why}", 0))
        else:
            loops[frame] = loop
    _settle_links(loops, links, known, report)
    for loop in _by_dependency(loops):
        loop.replace()
        report.append((f"loop '{loop.frame.name}' compiled", len(loop.members)))
    if loops:
        remove_unused(graph)


def _settle_links(
    loops: dict[Frame, _Loop],
    links: Sequence[Link],
    known: set[Tensor],
    report: list[tuple[str, int]],
) -> None:
    """Finds what each loop must keep for another; drops those that can't, and those that need them."""
    changed = True
    while changed:
        changed = False
        for link in links:
            for frame, other in ((link.pusher, link.popper), (link.popper, link.pusher)):
                if frame in loops and other not in loops:
                    name = other.name if other is not None else ""
                    report.append((f"loop '{frame.name}' runs on the executor: the loop '{name}' does", 0))
                    del loops[frame]
                    changed = True
            if link.popper in loops and not link.wanted and link in loops[link.popper].popped:
                link.wanted = changed = True
                try:
                    loops[link.pusher].keep(link, known)
                except CannotCompile as why:
                    name = link.pusher.name
                    report.append((f"loop '{name}' runs on the executor: {why}", 0))
                    del loops[link.pusher]


def _by_dependency(loops: dict[Frame, _Loop]) -> list[_Loop]:
    """The loops so that what keeps values comes before what takes them."""
    done: list[_Loop] = []
    waiting = list(loops.values())
    while waiting:
        ready = [a for a in waiting if all(loops[k.pusher] in done for k in a.links if k.popper is a.frame)]
        done += ready
        waiting = [a for a in waiting if a not in ready]
    return done


@dataclass
class _Variable:
    """A loop variable: what enters, what goes round, and what comes back (the NextIteration)."""

    enter: Operation
    merge: Operation
    following: Tensor


@dataclass
class _Loop:
    graph: Graph
    frame: Frame
    members: list[Operation]
    order: dict[Operation, int]
    links: list[Link]
    #: what stands for TensorArrays
    buffers: set[Tensor]
    condition: Operation = field(init=False)
    #: where the loop runs
    place: Place | None = None
    variables: list[_Variable] = field(default_factory=list)
    exits: list[Operation] = field(default_factory=list)
    #: tensors that enter and don't change, in order; and those whose values must be known
    captured: list[Tensor] = field(default_factory=list)
    known: list[Tensor] = field(default_factory=list)
    #: stacks that this loop fills for another, which keeps what is pushed, or takes it as fixed
    kept: list[Link] = field(default_factory=list)
    fixed: list[Link] = field(default_factory=list)
    #: stacks that this loop empties
    popped: list[Link] = field(default_factory=list)
    #: how many iterations there are at most, where something is kept
    trips: Trips | None = None
    bounds: list[Trips] = field(default_factory=list)
    cond_part: Slice = field(init=False)
    body_part: Slice = field(init=False)
    finish_part: Slice = field(init=False)
    fixed_part: Slice = field(default_factory=lambda: Slice(set(), {}, {}))

    # ---- what it is: changes nothing -----------------------------------------------------------------------

    def analyse(self) -> None:
        """CannotCompile where the loop isn't one of the form that _CompiledLoop runs."""
        self.links = [k for k in self.links if self.frame in (k.pusher, k.popper)]
        self._links = {op: k for k in self.links for op in (k.push, k.pop)}
        self._find_nodes()
        require_one_device(op for op in self.members if op.type != "Const")
        self._check_conditions()
        self.cond_part = self._slice([self.condition._inputs[0]], None)
        self.body_part = self._slice([v.following for v in self.variables], 1)
        self.finish_part = self._slice([op._inputs[0] for op in self.exits], 0)
        self._find_args()
        self._find_bounds()
        for op in self.cond_part.nodes:
            check = op._record.kernel.may_fail
            if check is not None and check(op):
                raise CannotCompile(f"'{op._name}' ({op.type}) in its condition may fail")

    def _find_bounds(self) -> None:
        following = {v.merge: v.following for v in self.variables}

        def is_fixed(tensor: Tensor) -> bool:
            return tensor._op.type in ENTER or tensor._op.type == "Const"

        self.bounds = find_trips(
            self.condition._inputs[0],
            following,
            lambda t: self._resolve(t, None),
            lambda t: self._resolve(t, 1),
            is_fixed,
        )
        if not self.bounds:
            raise CannotCompile("nothing bounds its iterations (no counter, no maximum_iterations)")

    def keep(self, link: Link, known: set[Tensor]) -> None:
        """Keeps what is pushed, for the loop that pops it. CannotCompile where it may be too much."""
        if link.known:
            if not follows_from_shapes(link.push._inputs[1], lambda t: self._resolve(t, 1)):
                raise CannotCompile(f"its gradient must know '{link.push._inputs[1].name}' when compiled")
            self.fixed.append(link)
            self.fixed_part = self._slice([k.push._inputs[1] for k in self.fixed], 1)
            self._find_args()
            return
        if self.trips is None:
            enters = {v.merge: v.enter._inputs[0] for v in self.variables}
            bounds = [b for b in self.bounds if b.step > 0]
            bounds = [b for b in bounds if {_outside(b.limit), enters[b.counter]} <= known]
            if not bounds:
                raise CannotCompile("a gradient needs a bound of its iterations that is known when compiling")
            self.trips = bounds[0]
        self.kept.append(link)
        roots = [v.following for v in self.variables] + [k.push._inputs[1] for k in self.kept]
        self.body_part = self._slice(roots, 1)
        self._find_args()

    def _find_nodes(self) -> None:
        enters = [op for op in self.frame.enters if op not in self.graph._removed and op in self.order]
        conditions = [op for op in self.members if op.type == "LoopCond"]
        if len(conditions) != 1:
            raise CannotCompile(f"it has {len(conditions)} LoopCond nodes")
        self.condition = conditions[0]
        rest: list[Operation] = []
        for op in self.members:
            if op.type in MERGE and any(t._op.type in NEXT_ITERATION for t in op._inputs):
                self.variables.append(_variable(op, self.buffers))
            elif op.type in EXIT:
                self.exits.append(op)
            elif op.type in NEXT_ITERATION or op is self.condition or self._is_loop_switch(op):
                if any(t._dtype.is_ref_dtype or t._dtype.name == "resource" for t in op._inputs):
                    raise CannotCompile(f"'{op._name}' passes a variable on")
            elif op not in self._links:
                rest.append(op)
            elif op._control_flow_context.live != {(predicate(self.condition._outputs[0]), 1)}:
                raise CannotCompile(f"'{op._name}' doesn't run in each iteration")
        require_traceable(rest)
        entered = {v.enter for v in self.variables}
        for op in enters:
            if op not in entered and not op._attrs["is_constant"]:
                raise CannotCompile(f"'{op._name}' is there in the first iteration only")
        for op in self.members:
            if op.type in NEXT_ITERATION and op._outputs[0] not in {v.following for v in self.variables}:
                raise CannotCompile(f"'{op._name}' closes no loop variable")

    def _is_loop_switch(self, op: Operation) -> bool:
        return op.type in SWITCH and predicate(op._inputs[1]) is predicate(self.condition._outputs[0])

    def _resolve(self, tensor: Tensor, side: int | None) -> Tensor:
        """What stands for a tensor in a body: behind the loop's Switch, LoopCond, NextIteration."""
        while True:
            op = tensor._op
            if self._is_loop_switch(op) and frame_of(op) is self.frame:
                if tensor._index != side:
                    raise CannotCompile(f"'{tensor.name}' is used on the other side of the loop's condition")
            elif op in self._links and op.type == "StackPushV2":
                tensor = op._inputs[1]
                continue
            elif op.type not in NEXT_ITERATION and op is not self.condition:
                return tensor
            tensor = op._inputs[0]

    def _slice(self, roots: Sequence[Tensor], side: int | None) -> Slice:
        merges = {v.merge for v in self.variables}

        def inside(op: Operation) -> bool:
            if op in merges or op.type in ENTER or op in self._links:
                return False
            return frame_of(op) is self.frame

        found = slice_back(
            [t._op._inputs[0] if t._op.type in NEXT_ITERATION else t for t in roots],
            lambda t: self._resolve(t, side),
            inside,
        )
        require_traceable(found.nodes)
        for t in found.args:
            if t._op in merges and t._index:
                raise CannotCompile(f"'{t.name}' tells the first iteration from the others")
        return found

    def _find_args(self) -> None:
        merged = {v.merge._outputs[0] for v in self.variables}
        parts = (self.cond_part, self.body_part, self.finish_part, self.fixed_part)
        entered: dict[Tensor, None] = {}
        for part in parts:
            for t in part.args:
                if t in merged:
                    continue
                if t._op not in self._links:
                    entered.setdefault(t)
                elif part is not self.body_part and part is not self.fixed_part:
                    raise CannotCompile(f"'{t.name}' is used outside of the body")
        wanted: set[Tensor] = set()
        pops = {k.pop._outputs[0]: k for k in self.links if self.frame is k.popper}
        for part, side in zip(parts, (None, 1, 0, 1), strict=True):
            args = {*entered, *pops}
            wanted |= known_args(part.nodes, args, partial(self._resolve, side=side))
        self.popped = [k for t, k in pops.items() if t in self.body_part.args or t in self.fixed_part.args]
        for link in self.popped:
            link.known = link.pop._outputs[0] in wanted
        enters = [t for t in entered if not _is_inline(t, t in wanted)]
        self.captured = [t for t in enters if t not in wanted]
        self.known = [t for t in enters if t in wanted]

    # ---- what it becomes ---------------------------------------------------------------------------------

    def replace(self) -> None:
        """Puts a _CompiledLoop node in the place of the frame."""
        graph = self.graph
        for part, side in (
            (self.cond_part, None), (self.body_part, 1), (self.finish_part, 0), (self.fixed_part, 1)
        ):
            self._rewire(part, side)
        args = [v.merge._outputs[0] for v in self.variables] + self.captured
        stacked = [k for k in self.popped if not k.known]
        args += [k.pop._outputs[0] for k in stacked]
        results = [v.following for v in self.variables] + [k.push._inputs[1] for k in self.kept]
        first = [v.enter._inputs[0] for v in self.variables]
        captured = [_outside(t) for t in self.captured]
        known = [_outside(t) for t in self.known]
        from_shapes = [k for k in self.popped if k.known]
        known += [k.fixed for k in from_shapes]
        self.known += [k.pop._outputs[0] for k in from_shapes]
        bodies = {
            "cond": self._body(self.cond_part, args, [self.condition._inputs[0]], None),
            "body": self._body(self.body_part, args, results, 1),
            "finish": self._body(self.finish_part, args, [e._inputs[0] for e in self.exits], 0),
            "fixed": self._body(self.fixed_part, args, [k.push._inputs[1] for k in self.fixed], 1),
        }
        trips: tuple[int, ...] = ()
        if self.trips is not None:
            at = len(known)
            enters_of = {v.merge: v.enter for v in self.variables}
            known += [_outside(self.trips.limit), enters_of[self.trips.counter]._inputs[0]]
            trips = (at, at + 1, self.trips.step, int(self.trips.inclusive))
        popped = [k.buffer for k in stacked]
        count = [stacked[0].count] if stacked else []
        kept = [k.push._inputs[1]._dtype.base_dtype for k in self.kept]
        by_one = {b.counter for b in self.bounds if abs(b.step) == 1}
        outputs = (
            *(e._outputs[0]._dtype for e in self.exits), *kept, *([dtypes.int32] if kept else []),
            *(k.push._inputs[1]._dtype.base_dtype for k in self.fixed),
        )  # fmt: skip
        attrs: dict[str, Any] = {
            **bodies,
            "arrays": tuple(
                i for i, v in enumerate(self.variables) if v.merge._outputs[0] in self.buffers
            ),
            "counters": tuple(i for i, v in enumerate(self.variables) if v.merge in by_one),
            "pushes": len(self.kept),
            "trips": trips,
            "T": _types(first),
            "Tcaptured": _types(captured),
            "Tpopped": _types(popped),
            "Ncount": len(count),
            "Tknown": _types(known),
            "Tout": outputs,
        }  # fmt: skip
        inputs = [*first, *captured, *popped, *count, *known]
        enters = dict.fromkeys(e for e in self.frame.enters if e in self.order)
        controls = dict.fromkeys(c for e in enters for c in e._control_inputs)
        new = raw_node(
            graph, registry.lookup("_CompiledLoop"), f"_while_{self.frame.name}", inputs, attrs, outputs,
            list(controls), self.variables[0].enter,
        )  # fmt: skip
        new._control_flow_context = self.place
        for link, output in zip(self.kept, new._outputs[len(self.exits) :], strict=False):
            link.buffer, link.count = output, new._outputs[len(self.exits) + len(self.kept)]
        for link, output in zip(self.fixed, new._outputs[len(outputs) - len(self.fixed) :], strict=True):
            link.fixed = output
        for output, e in zip(new._outputs, self.exits, strict=False):
            output._shape = e._outputs[0]._shape
            replace_uses(e._outputs[0], output)
            bypass_control(e, [new])
        graph._targets = [new if t in set(self.exits) else t for t in graph._targets]
        gone = [*self.members, *enters]
        detach(graph, gone)

    def _check_conditions(self) -> None:
        """All that enters must be there on the conditions on which the loop runs."""
        places: list[Place] = [
            v.enter._control_flow_context for v in self.variables if v.enter._control_flow_context is not None
        ]
        self.place = max(places, key=lambda p: len(p.live), default=None)
        if self.place is not None and any(not p.live <= self.place.live for p in places):
            raise CannotCompile("it is entered under several conditions")

    def _rewire(self, part: Slice, side: int | None) -> None:
        for op in part.nodes:
            for i, t in enumerate(op._inputs):
                take_instead(op, i, _inlined(self._resolve(t, side), self))

    def _body(self, part: Slice, args: list[Tensor], results: Sequence[Tensor], side: int | None) -> Body:
        found = [
            self._resolve(t._op._inputs[0] if t._op.type in NEXT_ITERATION else t, side) for t in results
        ]
        for t in list(part.args):
            inlined = _inlined(t, self)
            if inlined is not t:
                part.constants.setdefault(inlined._op)
        return make_body(self.order, part, args, self.known, [_inlined(t, self) for t in found])


def _variable(merge: Operation, buffers: set[Tensor]) -> _Variable:
    inputs = sorted(merge._inputs, key=lambda t: t._op.type in NEXT_ITERATION)
    if [t._op.type in ENTER for t in inputs] != [True, False]:
        raise CannotCompile(f"'{merge._name}' isn't a merge of what enters and what comes round")
    first, second = inputs
    if first._op._attrs["is_constant"] or merge._control_inputs:
        raise CannotCompile(f"'{merge._name}' is no loop variable")
    dtype = merge._outputs[0]._dtype
    if dtype.is_ref_dtype or dtype.name in ("resource", "string", "variant"):
        raise CannotCompile(f"the loop variable '{merge._name}' is of type {dtype.name}")
    shape, start = merge._outputs[0]._shape, first._op._inputs[0]._shape
    if merge._outputs[0] not in buffers and start is not None and (
        shape is None or any(a is None and b is not None for a, b in zip(shape, start, strict=False))
    ):
        raise CannotCompile(f"the loop variable '{merge._name}' may change its shape")
    return _Variable(first._op, merge, second)


def _outside(tensor: Tensor) -> Tensor:
    """What enters, in the parent frame."""
    return tensor._op._inputs[0] if tensor._op.type in ENTER else tensor


def _is_inline(tensor: Tensor, known: bool) -> bool:
    source = _outside(tensor)._op
    if tensor._op.type not in ENTER or source.type != "Const" or source._control_inputs:
        return False
    return known or source._attrs["value"].nbytes <= _INLINE_BYTES


def _inlined(tensor: Tensor, loop: _Loop) -> Tensor:
    """A small constant that enters is there from the start."""
    if tensor in loop.captured or tensor in loop.known or tensor._op.type not in ENTER:
        return tensor
    return _outside(tensor)


def _types(tensors: Sequence[Tensor]) -> tuple[DType, ...]:
    return tuple(t._dtype.base_dtype for t in tensors)
