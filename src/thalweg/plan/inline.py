"""Calls of functions: their bodies in place of the calls; If, Case and While as branches and loops of nodes.

After this pass a plan is one flat graph, so that clusters, compiled loops and the executor see through calls.
Source: TensorFlow's lower_if_op.cc, lower_while_op.cc, inline_function_utils.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.base.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from thalweg.graph import registry
from thalweg.graph.functions import (
    Body,
    BodyNode,
    BodyReader,
    bad_function,
    differentiators,
    function_gradients,
    function_records,
)
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.shape_context import infer_shapes
from thalweg.graph.subgraph import raw_node, remove_op, replace_uses, sweep, topological_order
from thalweg.graph.where import is_loop_constant_enter
from thalweg.kernel.convention import Kind
from thalweg.plan.places import is_control

#: nodes that bodies may come to in one plan: functions that call others twice grow without bound
MAX_NODES = 500_000

#: calls inside calls; Python's stack is finite
MAX_DEPTH = 64

_CALLS = frozenset(("PartitionedCall", "StatefulPartitionedCall"))
_IFS = frozenset(("If", "StatelessIf"))
_CASES = frozenset(("Case", "StatelessCase"))
_WHILES = frozenset(("While", "StatelessWhile"))
_ALL = _CALLS | _IFS | _CASES | _WHILES | {"SymbolicGradient"}


def inline_calls(graph: Graph, source: Graph) -> int:
    """Puts bodies in place of calls. source: the graph whose library has the functions.

    Law: no node calls a function any more. What waited for a call waits for all that the call changes. A
    body's nodes that change something run wherever the call does, and results come after them. Returns how
    many calls there were.

    Errors: InvalidArgumentError for a function that is missing, malformed or doesn't fit its call;
    UnimplementedError for one that calls itself, or whose ops are not built; ResourceExhaustedError for more
    than MAX_NODES nodes.
    """
    calls = [op for op in graph._ops if _is_call(op, source._functions)]
    if not calls:
        return 0
    inliner = _Inliner(graph, source)
    for op in calls:
        inliner.replace(op)
    sweep(graph)
    return inliner.count


def _is_call(op: Operation, functions: Mapping[str, Any]) -> bool:
    return _calls(op._record, functions)


def _calls(record: registry.OpRecord, functions: Mapping[str, Any]) -> bool:
    return record.name in _ALL or (record.kernel is None and record.name in functions)


@dataclass
class _Done:
    """What a call, branch or loop gives: its results, and what comes after all that it changes."""

    results: list[Tensor]
    effects: list[Operation]


class _Inliner:
    """One graph whose calls are expanded. `count`: how many were."""

    def __init__(self, graph: Graph, source: Graph) -> None:
        self.graph = graph
        self.source = source
        self.functions = source._functions
        self.reader = BodyReader(self.functions, function_records(source))
        self.count = 0
        #: whether calls may be in loops and branches that are nodes already
        self.dynamic = any(is_control(op) for op in graph._ops)
        self._added = 0

    # ---- nodes -----------------------------------------------------------------------------------------

    def add(
        self,
        op_type: str,
        name: str,
        inputs: Sequence[Tensor],
        attrs: dict[str, Any],
        controls: Sequence[Operation],
        call: Operation,
    ) -> Operation:
        """A node that stands for part of a call."""
        return self.add_record(registry.lookup(op_type), name, inputs, attrs, controls, call)

    def add_record(
        self,
        record: registry.OpRecord,
        name: str,
        inputs: Sequence[Tensor],
        attrs: dict[str, Any],
        controls: Sequence[Operation],
        call: Operation,
    ) -> Operation:
        self._added += 1
        if self._added > MAX_NODES:
            raise ResourceExhaustedError(
                None, call, f"the functions that are called come to more than {MAX_NODES} nodes"
            )
        for i, (tensor, wanted) in enumerate(zip(inputs, record.definition.input_dtypes(attrs), strict=True)):
            _check_type(name, i, tensor, wanted, call)
        output_dtypes = record.definition.output_dtypes(attrs)
        op = raw_node(self.graph, record, name, list(inputs), attrs, output_dtypes, controls, call)
        try:
            infer_shapes(op)
        except ValueError as e:
            raise InvalidArgumentError(None, call, str(e)) from None
        return op

    def identity(self, tensor: Tensor, name: str, controls: Sequence[Operation], call: Operation) -> Tensor:
        """tensor, once `controls` have run."""
        attrs = {"T": tensor._dtype.base_dtype}
        return self.add("Identity", name, [tensor], attrs, controls, call)._outputs[0]

    def nothing(self, name: str, controls: Sequence[Operation], call: Operation) -> Operation:
        """A node that waits for others."""
        return self.add("NoOp", name, [], {}, controls, call)

    # ---- one call --------------------------------------------------------------------------------------

    def expand(self, op: Operation, inside: tuple[str, ...]) -> _Done:
        """Adds what a call does. inside: the functions that the call is in.

        Returns its results, after its effects, and what those wait for that wait for the call.
        """
        self.count += 1
        if len(inside) > MAX_DEPTH:
            raise UnimplementedError(None, op, f"calls are nested more than {MAX_DEPTH} deep")
        if self.dynamic and op._inputs and not op._control_inputs:
            self._locate(op)
        if op.type == "SymbolicGradient":
            done = self.gradient(op, inside)
        elif op.type in _IFS:
            done = self.branches(op, inside)
        elif op.type in _CASES:
            done = self.cases(op, inside)
        elif op.type in _WHILES:
            done = _Loop(self, op, inside).build()
        else:
            done = self.call(op, inside)
        if len(done.results) != len(op._outputs):
            raise InvalidArgumentError(
                None,
                op,
                f"{op.type} '{op._name}' has {len(op._outputs)} results, its function {len(done.results)}",
            )
        results = [self._result(op, i, new, done.effects) for i, new in enumerate(done.results)]
        if not done.effects:
            # an input may come from one side of a Switch
            made = [t._op for t in results if t not in op._inputs]
            done.effects = list(dict.fromkeys([*made, *op._control_inputs])) or [t._op for t in results]
        return _Done(results, done.effects)

    def _locate(self, op: Operation) -> None:
        """Gives a call a control input in its frame and branch: for nodes of its body that have no inputs."""
        source = next((t for t in op._inputs if not is_loop_constant_enter(t._op)), op._inputs[0])
        pivot = self.identity(source, f"{op._name}/where", [], op)._op
        op._control_inputs.append(pivot)
        pivot._control_outputs.append(op)

    def _result(self, op: Operation, i: int, new: Tensor, effects: list[Operation]) -> Tensor:
        """What stands for result i of a call."""
        old = op._outputs[i]
        if old._dtype.base_dtype != new._dtype.base_dtype:
            raise InvalidArgumentError(
                None,
                op,
                f"result {i} of {op.type} '{op._name}' is {old._dtype.name}, but its function gives "
                f"{new._dtype.name}",
            )
        waits = effects + (list(op._control_inputs) if new in op._inputs else [])
        if waits:
            new = self.identity(new, f"{op._name}/result_{i}", waits, op)
        if new._shape is None:
            new._shape = old._shape
        return new

    def replace(self, op: Operation) -> None:
        """Puts what a call does in its place."""
        done = self.expand(op, ())
        for old, new in zip(op._outputs, done.results, strict=True):
            replace_uses(old, new)
        if op._control_outputs or op in self.graph._targets:
            end = self.nothing(f"{op._name}/done", done.effects, op)
            for user in op._control_outputs:
                user._control_inputs[user._control_inputs.index(op)] = end
                end._control_outputs.append(user)
            op._control_outputs.clear()
            self.graph._targets[:] = [end if t is op else t for t in self.graph._targets]
        remove_op(op)

    def call(self, op: Operation, inside: tuple[str, ...]) -> _Done:
        """A plain call: PartitionedCall, or a node whose type is a function's name."""
        if op.type in _CALLS:
            name, attrs = self.named(op, "f")
        else:
            name, attrs = op.type, op.node_def.attr
        return self.instantiate(op, op._name, name, attrs, op._inputs, self._entry(op), inside)

    def _entry(self, op: Operation) -> Operation | None:
        """What stands for the control inputs of a call, where it has any."""
        return self.nothing(f"{op._name}/start", op._control_inputs, op) if op._control_inputs else None

    def gradient(self, op: Operation, inside: tuple[str, ...]) -> _Done:
        """SymbolicGradient: a function's own gradient, or that of its body, built in a graph and copied."""
        own = function_gradients(self.source).get(op._attrs["f"].name)
        if own is not None:
            return self.instantiate(
                op, op._name, own, op._attrs["f"].attr, op._inputs, self._entry(op), inside
            )
        graph, given, results = differentiators[0](op, self.source)
        start = self._entry(op)
        entry = [] if start is None else [start]
        values: dict[Tensor, Tensor] = dict(zip(given, op._inputs, strict=True))
        ends: dict[Operation, list[Operation]] = {}
        for node in topological_order(graph):
            if node._outputs and node._outputs[0] in values:
                ends[node] = entry or [values[node._outputs[0]]._op]
                continue
            inputs = [values[t] for t in node._inputs]
            controls = [c for control in node._control_inputs for c in ends[control]]
            if not inputs or not set(node._inputs).isdisjoint(given):
                controls += entry
            name = f"{op._name}/{node._name}"
            fresh = self.add_record(node._record, name, inputs, dict(node._attrs), controls, op)
            done = _Done(list(fresh._outputs), [fresh])
            if _is_call(fresh, self.functions):
                done = self.expand(fresh, (*inside, op._attrs["f"].name))
                remove_op(fresh)
            values.update(zip(node._outputs, done.results, strict=True))
            ends[node] = done.effects
        return _Done([values[t] for t in results], [])

    def named(self, op: Operation, attr: str) -> tuple[str, Mapping[str, Any]]:
        """The function that an attribute names, with the attributes of its signature."""
        value = op._attrs[attr]
        return value.name, value.attr

    def instantiate(
        self,
        op: Operation,
        prefix: str,
        name: str,
        attrs: Mapping[str, Any],
        inputs: Sequence[Tensor],
        entry: Operation | None,
        inside: tuple[str, ...],
        constants: frozenset[int] = frozenset(),
    ) -> _Done:
        """Adds the nodes of a function's body.

        entry: what nodes wait for that take nothing but arguments, or nothing. constants: those of the
        inputs that are there in every iteration of a loop, whether or not the body runs in it.
        """
        if name in inside:
            chain = " -> ".join((*inside, name))
            raise UnimplementedError(None, op, f"functions that call themselves are not built: {chain}")
        body = self.reader.read(name, attrs)
        self._check_arguments(op, name, body, inputs)
        self.dynamic = self.dynamic or body.dynamic
        nested = (*inside, name)
        made: dict[str, _Done] = {}  # what each node gives, and what waits for it waits for
        later = {(node, i) for node, i, _ in body.later}
        for node in body.nodes:
            tensors: list[Tensor] = []
            for i, (source, index) in enumerate(node.inputs):
                if (node.name, i) in later:
                    tensors.append(tensors[0] if tensors else _none(name))
                else:
                    tensors.append(made[source].results[index] if source else inputs[index])
            controls = [op for c in node.controls if c in made for op in made[c].effects]
            if entry is not None and _waits(node, entry, constants, bool(controls), body.dynamic):
                controls.append(entry)
            fresh = self.add_record(
                node.record, f"{prefix}/{node.name}", tensors, dict(node.attrs), controls, op
            )
            if node.device:
                fresh._device = node.device
            if _is_call(fresh, self.functions):
                made[node.name] = self.expand(fresh, nested)
                remove_op(fresh)
            else:
                made[node.name] = _Done(list(fresh._outputs), [fresh])
        for node_name, i, (source, index) in body.later:
            merge, value = made[node_name].results[0]._op, made[source].results[index]
            _check_type(merge._name, i, value, merge._inputs[i]._dtype, op)
            _close(merge, i, value)
        results = [made[s].results[i] if s else inputs[i] for s, i in body.results]
        return _Done(results, [op for n in body.effects for op in made[n].effects])

    def _check_arguments(self, op: Operation, name: str, body: Body, inputs: Sequence[Tensor]) -> None:
        got = [t._dtype.base_dtype for t in inputs]
        wanted = [d.base_dtype for d in body.inputs]
        if got != wanted:
            given, takes = (", ".join(d.name for d in types) for types in (got, wanted))
            raise InvalidArgumentError(
                None, op, f"{op.type} '{op._name}' gives function '{name}' ({given}), which takes ({takes})"
            )

    # ---- branches --------------------------------------------------------------------------------------

    def branches(self, op: Operation, inside: tuple[str, ...]) -> _Done:
        """If: Switch nodes before two bodies, Merge nodes after them."""
        pred = self._as_bool(op, op._inputs[0])

        def side(attr: str) -> Callable[[list[Tensor], Operation], _Done]:
            name, attrs = self.named(op, attr)
            prefix = f"{op._name}/{attr.partition('_')[0]}"
            return lambda inputs, pivot: self.instantiate(op, prefix, name, attrs, inputs, pivot, inside)

        return self.choose(op, op._name, pred, op._inputs[1:], side("then_branch"), side("else_branch"))

    def _as_bool(self, op: Operation, value: Tensor) -> Tensor:
        """A value as a condition, once the control inputs of `op` have run."""
        if value._dtype == dtypes.bool and value._shape == ():
            if op._control_inputs:
                return self.identity(value, f"{op._name}/cond", op._control_inputs, op)
            return value
        attrs = {"T": value._dtype.base_dtype}
        return self.add("ToBool", f"{op._name}/cond", [value], attrs, op._control_inputs, op)._outputs[0]

    def choose(
        self,
        op: Operation,
        prefix: str,
        pred: Tensor,
        inputs: Sequence[Tensor],
        then: Callable[[list[Tensor], Operation], _Done],
        otherwise: Callable[[list[Tensor], Operation], _Done],
    ) -> _Done:
        """The results of one of two bodies, each built from its inputs and a pivot to wait for."""

        def switch(tensor: Tensor, name: str) -> tuple[Tensor, ...]:
            attrs = {"T": tensor._dtype.base_dtype}
            return self.add("Switch", name, [tensor, pred], attrs, [], op)._outputs

        sides = switch(pred, f"{prefix}/pred")
        given = [switch(t, f"{prefix}/switch_{i}") for i, t in enumerate(inputs)]
        found: list[_Done] = []
        ends: list[Tensor] = []
        for side, build in ((0, otherwise), (1, then)):
            pivot = self.identity(sides[side], f"{prefix}/pivot_{side}", [], op)
            done = build([g[side] for g in given], pivot._op)
            found.append(done)
            ends.append(self.identity(pivot, f"{prefix}/end_{side}", done.effects, op))
        no, yes = found
        if [t._dtype.base_dtype for t in no.results] != [t._dtype.base_dtype for t in yes.results]:
            raise InvalidArgumentError(
                None, op, f"the branches of {op.type} '{op._name}' return different types"
            )
        results = [
            self.merge([a, b], f"{prefix}/merge_{i}", op)
            for i, (a, b) in enumerate(zip(no.results, yes.results, strict=True))
        ]
        end = self.merge(ends, f"{prefix}/end", op)
        return _Done(results, [end._op] if no.effects or yes.effects else [])

    def merge(self, tensors: list[Tensor], name: str, op: Operation) -> Tensor:
        attrs = {"T": tensors[0]._dtype.base_dtype, "N": len(tensors)}
        return self.add("Merge", name, tensors, attrs, [], op)._outputs[0]

    def cases(self, op: Operation, inside: tuple[str, ...]) -> _Done:
        """Case: a chain of choices; the last branch where none before it is chosen."""
        branches = op._attrs["branches"]
        index = op._inputs[0]
        if op._control_inputs:
            index = self.identity(index, f"{op._name}/index", op._control_inputs, op)

        def body(i: int) -> Callable[[list[Tensor], Operation | None], _Done]:
            value, prefix = branches[i], f"{op._name}/branch_{i}"
            return lambda given, pivot: self.instantiate(
                op, prefix, value.name, value.attr, given[1:], pivot, inside
            )

        def chain(i: int) -> Callable[[list[Tensor], Operation | None], _Done]:
            return body(i) if i == len(branches) - 1 else lambda given, pivot: choose(i, given, pivot)

        def choose(i: int, given: Sequence[Tensor], pivot: Operation | None) -> _Done:
            controls = [] if pivot is None else [pivot]
            value = np.array(i, np.int32)
            const = self.add(
                "Const", f"{op._name}/index_{i}", [], {"dtype": dtypes.int32, "value": value}, controls, op
            )
            attrs = {"T": dtypes.int32, "incompatible_shape_error": True}
            pred = self.add("Equal", f"{op._name}/is_{i}", [given[0], const._outputs[0]], attrs, [], op)
            return self.choose(op, f"{op._name}/case_{i}", pred._outputs[0], given, body(i), chain(i + 1))

        if len(branches) > _MAX_BRANCHES:
            raise UnimplementedError(None, op, f"Case '{op._name}' has {len(branches)} branches")
        given = [index, *op._inputs[1:]]
        if len(branches) == 1:
            return body(0)(given, self._entry(op))
        return choose(0, given, None)


#: branches of a Case are nested choices: Python's stack is finite
_MAX_BRANCHES = 100


def _waits(
    node: BodyNode, entry: Operation, constants: frozenset[int], ordered: bool, dynamic: bool
) -> bool:
    """Whether a node of a body must wait for the body's entry.

    ordered: it waits for other nodes of the body. dynamic: it may be in a loop or branch inside the body.
    """
    kernel = node.record.kernel
    if not dynamic and (kernel is None or kernel.kind is Kind.CALL):
        return True  # its own nodes have to know
    if entry.type == "NoOp":  # a call's control inputs
        return (not node.inputs and not ordered) or any(not source for source, _ in node.inputs)
    return not ordered and all(not source and i in constants for source, i in node.inputs)


def _close(merge: Operation, i: int, value: Tensor) -> None:
    """Makes value the input i of a Merge: the back edge of a loop."""
    merge._inputs[i]._consumers.remove(merge)
    merge._inputs[i] = value
    value._consumers.append(merge)
    merge._outputs[0]._shape = None


def _check_type(name: str, i: int, tensor: Tensor, wanted: DType, call: Operation) -> None:
    got = tensor._dtype
    if got.base_dtype != wanted.base_dtype or (wanted.is_ref_dtype and not got.is_ref_dtype):
        raise InvalidArgumentError(
            None,
            call,
            f"Input {i} of node '{name}' was passed {got.name} from {tensor.name}, incompatible with "
            f"expected {wanted.name}",
        )


def _none(name: str) -> Tensor:
    raise bad_function(name, "a Merge takes next iterations only")


class _Loop:
    """While: the nodes of a loop round two bodies."""

    def __init__(self, inliner: _Inliner, op: Operation, inside: tuple[str, ...]) -> None:
        self.inliner = inliner
        self.op = op
        self.inside = inside
        self.cond, self.body = inliner.named(op, "cond"), inliner.named(op, "body")
        self.inputs = list(op._inputs)
        read = inliner.reader.read(*self.body)
        if len(read.results) != len(self.inputs):
            raise InvalidArgumentError(
                None,
                op,
                f"the body of While '{op._name}' returns {len(read.results)} of {len(self.inputs)} values",
            )
        #: inputs that the body hands on as they are: the same in every iteration
        self.constants = frozenset(i for i, at in read.passed_on.items() if i == at)
        if len(self.constants) == len(self.inputs):
            self.constants -= {0}  # something must go round

    def add(self, op_type: str, name: str, inputs: Sequence[Tensor], **attrs: Any) -> tuple[Tensor, ...]:
        if op_type != "LoopCond":
            attrs["T"] = inputs[0]._dtype.base_dtype
        return self.inliner.add(op_type, f"{self.op._name}/{name}", inputs, attrs, [], self.op)._outputs

    def build(self) -> _Done:
        """Enter, Merge, condition, Switch, body, NextIteration, Exit."""
        op, inliner = self.op, self.inliner
        if not self.inputs:
            raise UnimplementedError(None, op, f"While '{op._name}' has no values that go round")
        entered = [self._enter(i, t) for i, t in enumerate(self.inputs)]
        variables = [i for i in range(len(entered)) if i not in self.constants]
        merged = list(entered)
        for i in variables:
            merged[i] = inliner.merge([entered[i], entered[i]], f"{op._name}/merge_{i}", op)
            merged[i]._shape = self._invariant(i)
        start = inliner.identity(merged[variables[0]], f"{op._name}/start", [], op)._op
        cond = self._call("cond", self.cond, merged, start)
        if len(cond.results) != 1:
            raise InvalidArgumentError(None, op, f"the condition of While '{op._name}' must return one value")
        goes_on = self._condition(cond)
        (loop_cond,) = self.add("LoopCond", "goes_on", [goes_on])
        switches = {i: self._switch(i, merged[i], loop_cond) for i in variables}
        inside = list(merged)
        for i in variables:
            inside[i] = inliner.identity(switches[i][1], f"{op._name}/value_{i}", [], op)
        body = self._call("body", self.body, inside, inside[variables[0]]._op)
        self._check(body)
        for i in variables:
            self._back(i, merged[i], body)
        results = list(self.inputs)
        for i in variables:
            (results[i],) = self.add("Exit", f"exit_{i}", [switches[i][0]])
            results[i]._shape = results[i]._shape or self._invariant(i)
        effects = cond.effects or body.effects
        return _Done(results, [results[variables[0]]._op] if effects else [])

    def _enter(self, i: int, tensor: Tensor) -> Tensor:
        if self.op._control_inputs:
            tensor = self.inliner.identity(
                tensor, f"{self.op._name}/input_{i}", self.op._control_inputs, self.op
            )
        (result,) = self.add(
            "Enter",
            f"enter_{i}",
            [tensor],
            frame_name=f"{self.op._name}/frame".encode(),
            is_constant=i in self.constants,
            parallel_iterations=self.op._attrs["parallel_iterations"],
        )
        return result

    def _invariant(self, i: int) -> Any:
        """What is known of a loop variable's shape in every iteration."""
        told = self.op._attrs["output_shapes"]
        return told[i] if len(told) == len(self.inputs) else None

    def _switch(self, i: int, tensor: Tensor, pred: Tensor) -> tuple[Tensor, ...]:
        return self.add("Switch", f"switch_{i}", [tensor, pred])

    def _call(
        self, what: str, function: tuple[str, Mapping[str, Any]], inputs: list[Tensor], entry: Operation
    ) -> _Done:
        prefix = f"{self.op._name}/{what}"
        return self.inliner.instantiate(
            self.op, prefix, *function, inputs, entry, self.inside, constants=self.constants
        )

    def _condition(self, cond: _Done) -> Tensor:
        (value,) = cond.results
        name = f"{self.op._name}/cond_value"
        if value._dtype != dtypes.bool or value._shape not in ((), None):
            attrs = {"T": value._dtype.base_dtype}
            return self.inliner.add("ToBool", name, [value], attrs, cond.effects, self.op)._outputs[0]
        return self.inliner.identity(value, name, cond.effects, self.op) if cond.effects else value

    def _check(self, body: _Done) -> None:
        got = [t._dtype.base_dtype for t in body.results]
        wanted = [t._dtype.base_dtype for t in self.inputs]
        if got != wanted:
            raise InvalidArgumentError(
                None,
                self.op,
                f"the body of While '{self.op._name}' takes {[d.name for d in wanted]}, but returns "
                f"{[d.name for d in got]}",
            )

    def _back(self, i: int, merged: Tensor, body: _Done) -> None:
        """Closes the cycle of a loop variable."""
        value = body.results[i]
        if body.effects:
            value = self.inliner.identity(value, f"{self.op._name}/next_value_{i}", body.effects, self.op)
        (following,) = self.add("NextIteration", f"next_{i}", [value])
        known = merged._shape
        _close(merged._op, 1, following)
        merged._shape = known
