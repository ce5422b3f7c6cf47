"""What compiled loops and compiled branches (plan.loops, plan.branches) have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from thalweg.base.errors import some
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.kernel.body import Body
from thalweg.kernel.convention import Kind
from thalweg.plan.mark import is_compilable, static_tensors


class CannotCompile(Exception):
    """Says why a region stays on the executor."""


_WHY = {
    Kind.HOST: "is a host op",
    Kind.STATEFUL: "keeps state on the host",
    Kind.ASYNC: "is asynchronous",
    Kind.UPDATE: "changes a variable or draws random numbers",
    Kind.CONTROL: "is control flow that can't be compiled",
    Kind.SOURCE: "is a variable",
}


def obstacle(op: Operation) -> str | None:
    """Why a node can't be part of a compiled region; None where it can."""
    kernel = op._record.kernel
    if kernel is None:
        return "has no kernel"
    if kernel.kind is Kind.NOTHING or op.type in ("ControlTrigger", "Const"):
        return None
    if kernel.kind is not Kind.TRACEABLE:
        return _WHY.get(kernel.kind, "can't be compiled")
    if any(t._dtype.is_ref_dtype or t._dtype.name == "resource" for t in op._inputs):
        return "reads a variable"
    if op.type == "Identity" and op._outputs[0]._dtype.name not in ("string", "resource", "variant"):
        return None
    return None if is_compilable(op) else "is a host op here (strings, or a shape that depends on data)"


def require_traceable(ops: Iterable[Operation]) -> None:
    """CannotCompile that names the first node that can't be part of a region."""
    for op in ops:
        why = obstacle(op)
        if why is not None:
            raise CannotCompile(f"'{op._name}' ({op.type}) {why}")


def require_one_device(ops: Iterable[Operation]) -> None:
    """CannotCompile where the nodes aren't all on one device."""
    devices = dict.fromkeys(op._device for op in ops)
    if len(devices) > 1:
        raise CannotCompile(f"its nodes are on several devices ({some(list(devices))})")


@dataclass
class Slice:
    """What a set of tensors needs inside a region: nodes, and tensors that come from outside of it."""

    nodes: set[Operation]
    args: dict[Tensor, None]
    constants: dict[Operation, None]


def slice_back(
    roots: Iterable[Tensor],
    resolve: Callable[[Tensor], Tensor],
    inside: Callable[[Operation], bool],
) -> Slice:
    """The slice behind `roots`.

    resolve: what stands for a tensor in the region (behind a Switch ...). inside: whether a node is in it.
    """
    found = Slice(set(), {}, {})
    stack = [resolve(t) for t in roots]
    while stack:
        tensor = stack.pop()
        op = tensor._op
        if op in found.nodes:
            continue
        if op.type == "Const":
            found.constants.setdefault(op)
        elif not inside(op):
            found.args.setdefault(tensor)
        else:
            found.nodes.add(op)
            stack.extend(resolve(t) for t in op._inputs)
    return found


def known_args(
    nodes: Iterable[Operation], args: set[Tensor], resolve: Callable[[Tensor], Tensor]
) -> set[Tensor]:
    """The tensors from outside whose values must be known when the nodes are traced.

    CannotCompile where a node must know a value that is computed inside from others.
    """
    wanted: set[Tensor] = set()
    seen: set[Tensor] = set()
    stack = [(resolve(t), op) for op in nodes for t in static_tensors(op)]
    while stack:
        tensor, user = stack.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        op = tensor._op
        if op.type == "Const":
            continue
        if tensor in args:
            wanted.add(tensor)
            continue
        kernel = op._record.kernel
        if kernel.kind is Kind.TRACEABLE and kernel.shape_only:
            continue
        if kernel.kind is not Kind.TRACEABLE or kernel.host is None:
            raise CannotCompile(f"'{user._name}' must know the value of '{tensor.name}' when it is compiled")
        stack.extend((resolve(t), user) for t in op._inputs)
    return wanted


def follows_from_shapes(tensor: Tensor, resolve: Callable[[Tensor], Tensor]) -> bool:
    """Whether a value is known when a loop is compiled, by the shapes of what is in it."""
    stack, seen = [resolve(tensor)], set()
    while stack:
        op = stack.pop()._op
        if op in seen or op.type == "Const":
            continue
        seen.add(op)
        kernel = op._record.kernel
        if kernel is None or kernel.kind is not Kind.TRACEABLE:
            return False
        if not kernel.shape_only:
            if kernel.host is None or not op._inputs:
                return False
            stack.extend(resolve(t) for t in op._inputs)
    return True


def make_body(
    order: dict[Operation, int],
    found: Slice,
    args: Sequence[Tensor],
    known: Sequence[Tensor],
    results: Sequence[Tensor],
) -> Body:
    """The body of a slice; its nodes' inputs must be resolved by now."""
    nodes = sorted(found.nodes, key=order.__getitem__)
    return Body(nodes, args, known, results, {}, list(found.constants))


def copied_body(
    order: dict[Operation, int],
    found: Slice,
    args: Sequence[Tensor],
    known: Sequence[Tensor],
    results: Sequence[Tensor],
    resolve: Callable[[Tensor], Tensor],
) -> Body:
    """The body of a slice, from copies of its nodes that no graph holds: others may still need the nodes.

    results must be resolved by now.
    """
    copies: dict[Operation, Operation] = {}

    def inside(tensor: Tensor) -> Tensor:
        copy = copies.get(tensor._op)
        return tensor if copy is None else copy._outputs[tensor._index]

    for op in sorted(found.nodes, key=order.__getitem__):
        taken = [resolve(t) for t in op._inputs]
        copies[op] = copy = Operation(
            op._graph, op._id, op._name, op._record, [inside(t) for t in taken], [], dict(op._attrs),
            [t._dtype for t in op._outputs], op._device, op._origin,
        )  # fmt: skip
        copy._original_op = op._original_op or op
        copy._control_flow_context = op._control_flow_context
        for new, old in zip(copy._outputs, op._outputs, strict=True):
            new._shape, new._handle = old._shape, old._handle
        for tensor in taken:
            if tensor._op not in copies:
                tensor._consumers.remove(copy)
    constants = list(found.constants)
    return Body(list(copies.values()), args, known, [inside(t) for t in results], {}, constants)


def take_instead(op: Operation, i: int, new: Tensor) -> None:
    """Makes `new` the i-th input of a node."""
    old = op._inputs[i]
    if old is new:
        return
    op._inputs[i] = new
    new._consumers.append(op)
    old._consumers.remove(op)


def detach(graph: Graph, ops: Iterable[Operation]) -> None:
    """Takes nodes out of the graph; they stay what they are, for the bodies that hold them.

    No node that stays may take their outputs.
    """
    gone = set(ops)
    for op in gone:
        for t in op._inputs:
            if t._op not in gone:
                t._consumers = [c for c in t._consumers if c is not op]
        for control in op._control_inputs:
            if control not in gone and op in control._control_outputs:
                control._control_outputs.remove(op)
        for user in op._control_outputs:
            if user not in gone and op in user._control_inputs:
                user._control_inputs.remove(op)
        op._control_inputs, op._control_outputs = [], []
        del graph._by_name[op._name]
    graph._ops = [op for op in graph._ops if op not in gone]
