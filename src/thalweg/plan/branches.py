"""Compiled conditionals: Switch and Merge nodes of one predicate, and the nodes between, become one node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from thalweg.graph import registry
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import NEXT_ITERATION, bypass_control, raw_node, replace_uses, topological_order
from thalweg.plan.places import MERGE, SWITCH, Condition, Frame, Place, exits_after_enters, predicate
from thalweg.plan.regions import (
    CannotCompile,
    Slice,
    copied_body,
    detach,
    known_args,
    require_one_device,
    require_traceable,
    slice_back,
)
from thalweg.plan.rewrite.fold import remove_unused

#: where both sides are no more than this many nodes of the kinds below, both are computed
_CHEAP_NODES = 16
_CHEAP = frozenset(
    (
        "Abs", "Add", "AddV2", "Cast", "Equal", "Greater", "GreaterEqual", "Identity", "Less", "LessEqual",
        "LogicalAnd", "LogicalNot", "LogicalOr", "Maximum", "Minimum", "Mul", "Neg", "NotEqual", "OnesLike",
        "RealDiv", "Relu", "Reshape", "Select", "Sign", "Square", "Sub", "ZerosLike",
    )
)  # fmt: skip

_Live = frozenset[Condition]


def compile_branches(graph: Graph, frame: Frame | None, report: list[tuple[str, int]]) -> None:
    """Compiles the conditionals right inside a frame, the innermost first."""
    refused: set[Any] = set()
    while True:
        groups = _groups(graph, frame, refused)
        if not groups:
            return
        deepest = max(len(live) for _, live, _ in groups)
        order = {op: i for i, op in enumerate(topological_order(graph))}
        changed = False
        for key, merges in groups.items():
            if len(key[1]) < deepest:
                continue
            branch = _Branch(graph, frame, key[0], key[1], merges, order)
            try:
                branch.analyse()
            except CannotCompile as why:
                refused.add((key[0], key[1]))
                report.append((f"cond '{merges[0]._name}' runs on the executor: {why}", 0))
            else:
                branch.replace()
                report.append((f"cond '{merges[0]._name}' compiled", len(branch.nodes)))
                changed = True
        if changed:
            remove_unused(graph)


def _place(op: Operation) -> tuple[Frame | None, _Live]:
    place: Place | None = op._control_flow_context
    return (None, frozenset()) if place is None else (place.frame, place.live)


def _groups(
    graph: Graph, frame: Frame | None, refused: set[Any]
) -> dict[tuple[Tensor, _Live, int], list[Operation]]:
    """The merges of conditionals, by predicate, conditions round them, and depth: none needs another."""
    depth: dict[Operation, int] = {}
    groups: dict[tuple[Tensor, _Live, int], list[Operation]] = {}
    merges = {op for op in graph._ops if op.type in MERGE and _place(op)[0] is frame}
    merges = {op for op in merges if not any(t._op.type in NEXT_ITERATION for t in op._inputs)}
    if not merges:
        return groups
    exits = exits_after_enters(graph)
    for op in topological_order(graph, exits):
        d = depth.get(op, 0)
        for source in (*(t._op for t in op._inputs), *op._control_inputs):
            d = max(d, depth.get(source, 0))
        for later in exits.get(op, ()):
            depth[later] = max(d, depth.get(later, 0))
        if op in merges:
            d += 1
            found = _decides(op)
            if found is not None and found not in refused:
                groups.setdefault((*found, d), []).append(op)
        depth[op] = d
    return groups


def _sides(merge: Operation) -> list[tuple[Frame | None, _Live]]:
    sides = []
    for t in merge._inputs:
        frame, live = _place(t._op)
        if t._op.type in SWITCH:
            live = live | {(predicate(t._op._inputs[1]), t._index)}
        sides.append((frame, live))
    return sides


def _decides(merge: Operation) -> tuple[Tensor, _Live] | None:
    """The predicate of a Merge of two branches, and the conditions round it."""
    _, live = _place(merge)
    if len(merge._inputs) != 2:
        return None
    extra = [side[1] - live for side in _sides(merge)]
    if any(len(e) != 1 for e in extra):
        return None
    ((a, i),), ((b, j),) = extra
    if a is not b or {i, j} != {0, 1} or not isinstance(a, Tensor):
        return None
    return a, live


class _Branch:
    """The merges of one predicate that don't need each other, with what is behind them on both sides."""

    def __init__(
        self,
        graph: Graph,
        frame: Frame | None,
        pred: Tensor,
        live: _Live,
        merges: list[Operation],
        order: dict[Operation, int],
    ) -> None:
        self.graph = graph
        self.frame = frame
        self.pred = pred
        self.live = live
        self.merges = merges
        self.order = order
        self.parts: list[Slice] = []
        self.captured: list[Tensor] = []
        self.known: list[Tensor] = []

    @property
    def nodes(self) -> set[Operation]:
        return self.parts[0].nodes | self.parts[1].nodes

    def analyse(self) -> None:
        """CannotCompile where a branch does more than compute what the merges take."""
        for op in self.merges:
            if op._outputs[1]._consumers:
                raise CannotCompile(f"'{op._outputs[1].name}' is used")
            t = op._outputs[0]
            if t._dtype.is_ref_dtype or t._dtype.name in ("string", "resource", "variant"):
                raise CannotCompile(f"'{op._name}' is of type {t._dtype.name}")
            if op._control_inputs:
                raise CannotCompile(f"'{op._name}' waits for other nodes")
        self.parts = [self._slice(side) for side in (0, 1)]
        for op in self.order:
            place = _place(op)
            if place[0] is not self.frame:
                continue
            if (self.pred, 0) in place[1] or (self.pred, 1) in place[1]:
                if op.type in SWITCH or op.type in MERGE:
                    raise CannotCompile(f"'{op._name}' in it isn't compiled")
                require_traceable([op])
        require_one_device([*self.nodes, *self.merges])
        for op in self.nodes:
            if op in self.graph._targets:
                raise CannotCompile(f"'{op._name}' is a target")
        outside = dict.fromkeys(t for part in self.parts for t in part.args)
        wanted: set[Tensor] = set()
        for side, part in enumerate(self.parts):
            wanted |= known_args(part.nodes, set(outside), partial(self._resolve, side=side))
        self.captured = [t for t in outside if t not in wanted]
        self.known = [t for t in outside if t in wanted]

    def _resolve(self, tensor: Tensor, side: int) -> Tensor:
        while tensor._op.type in SWITCH and predicate(tensor._op._inputs[1]) is self.pred:
            if _place(tensor._op)[1] == self.live and tensor._index != side:
                raise CannotCompile(f"'{tensor.name}' is used on the other side")
            tensor = tensor._op._inputs[0]
        return tensor

    def _slice(self, side: int) -> Slice:
        here = self.live | {(self.pred, side)}
        found = slice_back(
            self._roots(side),
            lambda t: self._resolve(t, side),
            lambda op: _place(op) == (self.frame, here),
        )
        require_traceable(found.nodes)
        for t in found.args:
            place = _place(t._op)
            if place[0] is self.frame and not place[1] <= self.live:
                raise CannotCompile(f"'{t.name}' comes from another branch")
            if t._dtype.is_ref_dtype or t._dtype.name in ("string", "resource", "variant"):
                raise CannotCompile(f"'{t.name}' of type {t._dtype.name} is used in it")
        return found

    def _controls(self) -> dict[Operation, None]:
        """What the nodes of the branches wait for outside of them."""
        found: dict[Operation, None] = {}
        stack = list(self.nodes)
        stack += [t._op for op in (*self.nodes, *self.merges) for t in op._inputs if self._is_switch(t._op)]
        seen: set[Operation] = set()
        while stack:
            op = stack.pop()
            if op in seen:
                continue
            seen.add(op)
            for control in op._control_inputs:
                _, live = _place(control)
                if self._is_switch(control) or (self.pred, 0) in live or (self.pred, 1) in live:
                    stack.append(control)
                else:
                    found.setdefault(control)
        return found

    def _is_switch(self, op: Operation) -> bool:
        return op.type in SWITCH and predicate(op._inputs[1]) is self.pred and _place(op)[1] == self.live

    def _roots(self, side: int) -> list[Tensor]:
        return [
            t
            for op in self.merges
            for t, (_, live) in zip(op._inputs, _sides(op), strict=True)
            if (self.pred, side) in live
        ]

    def replace(self) -> None:
        """Puts a _CompiledCond node in the place of the merges."""
        results = [[self._resolve(t, side) for t in self._roots(side)] for side in (0, 1)]
        controls = self._controls()
        bodies = [
            copied_body(
                self.order, part, self.captured, self.known, results[side], partial(self._resolve, side=side)
            )
            for side, part in enumerate(self.parts)
        ]
        outputs = tuple(op._outputs[0]._dtype.base_dtype for op in self.merges)
        attrs = {
            "Tcaptured": _types(self.captured),
            "Tknown": _types(self.known),
            "Tout": outputs,
            "then": bodies[1],
            "otherwise": bodies[0],
            "cheap": len(self.nodes) <= _CHEAP_NODES
            and all(op.type in _CHEAP for op in self.nodes)
            and not any(b.may_fail for b in bodies),
        }
        new = raw_node(
            self.graph, registry.lookup("_CompiledCond"), f"_cond_{self.merges[0]._name}",
            [self.pred, *self.captured, *self.known], attrs, outputs, list(controls), self.merges[0],
        )  # fmt: skip
        for output, merge in zip(new._outputs, self.merges, strict=True):
            output._shape = merge._outputs[0]._shape
            replace_uses(merge._outputs[0], output)
            bypass_control(merge, [new])
        self.order[new] = self.order[self.merges[0]]
        merges = set(self.merges)
        self.graph._targets = [new if t in merges else t for t in self.graph._targets]
        detach(self.graph, merges)


def _types(tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    return tuple(t._dtype.base_dtype for t in tensors)
