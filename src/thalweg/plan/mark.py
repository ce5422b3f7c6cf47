"""Marking clusters: which nodes become one XLA executable. Decided on the whole graph, before it is cut.

Every node gets a *phase* that never falls along an edge. Compilable nodes of one phase (and device and
place: frame and conditions) form a cluster; a path from a cluster through a node outside it and back needs
a higher phase on return, so clusters are acyclic through any path. Each rule is a predicate of its own
below.

In loops and branches, arithmetic on scalars that control flow or the host makes is a cluster of another
kind (`Marks.scalar`): it runs on the host, where it costs less than a call of compiled code. In one phase
such clusters come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thalweg.base import dtypes
from thalweg.graph.operation import Operation, Tensor
from thalweg.kernel import scalars
from thalweg.kernel.body import StateKey
from thalweg.kernel.convention import Kernel, Kind
from thalweg.kernel.initializing import BETWEEN, initializes
from thalweg.kernel.trace_names import input_names
from thalweg.plan.placement import estimates
from thalweg.plan.places import is_control, left_frame
from thalweg.plan.state import state_keys

#: nodes of a cluster at most: XLA's compile time grows faster than the cluster (docs/performance.md)
MAX_CLUSTER = 1000

#: seconds of (estimated) work after which a value that another device waits for is sent: a cluster more costs
#: about a tenth of it
WORTH_SENDING = 2e-4

_UNCOMPILED = frozenset((dtypes.string, dtypes.resource, dtypes.variant))


class Marks:
    """What marking decided: the cluster of each node, and which tensors must be known when tracing."""

    def __init__(self) -> None:
        self.cluster: dict[Operation, int] = {}
        self.known: set[Tensor] = set()
        self.members: list[list[Operation]] = []
        #: updates that are not stored where a condition in their cluster fails
        self.masked: set[Operation] = set()
        #: nodes that are computed on the host, as Python code over NumPy scalars
        self.scalar: set[Operation] = set()


def mark_clusters(order: list[Operation], max_cluster: int = MAX_CLUSTER) -> Marks:
    """Clusters over `order`, a topological order of the whole graph (see plan.order).

    Law: every edge between clusters goes forward; inside a cluster nothing waits, all nodes are in one frame
    and alive together, static inputs are known when tracing, and no write comes after a condition that may
    fail, unless it can be masked by it.
    """
    marks = Marks()
    on_host = initial_values_on_host(order)
    eligible = [op for op in order if op not in on_host and is_compilable(op)]
    inside = set(eligible)
    marks.scalar = scalar_nodes(order, inside)
    marks.known = known_tensors(order, inside - marks.scalar)
    phase = _earliest(order, inside, marks)
    _latest(order, inside, marks, phase)
    groups: dict[tuple[str, int, Any, bool], list[Operation]] = {}
    for op in eligible:
        key = (op._device, phase[op], op._control_flow_context, op in marks.scalar)
        groups.setdefault(key, []).append(op)
    for members in groups.values():
        if not any(_computes(op, marks.known) for op in members):
            continue  # constants, identities, assignments: nothing to compile
        for piece in _pieces(members, max_cluster):
            for op in piece:
                marks.cluster[op] = len(marks.members)
            marks.members.append(piece)
    return marks


def _pieces(members: list[Operation], max_cluster: int) -> Iterator[list[Operation]]:
    """Cuts a cluster that is too large; and after what another device waits for, so that both work at once.

    The members are in topological order, so their pieces are too.
    """
    for part in _parts_between_sends(members):
        pieces = -(-len(part) // max_cluster)
        size = -(-len(part) // pieces)
        for start in range(0, len(part), size):
            yield part[start : start + size]


def _parts_between_sends(members: list[Operation]) -> Iterator[list[Operation]]:
    part: list[Operation] = []
    seconds = 0.0
    for op in members:
        part.append(op)
        seconds += estimates.seconds(op)
        users = (c for t in op._outputs for c in t._consumers)
        if seconds >= WORTH_SENDING and any(c._device != op._device for c in users):
            yield part
            part, seconds = [], 0.0
    if part:
        yield part


def mark_single(order: list[Operation]) -> Marks:
    """Op-by-op mode: every compilable node is a cluster of its own."""
    marks = Marks()
    marks.scalar = scalar_nodes(order, {op for op in order if is_compilable(op)})
    for op in order:
        if is_compilable(op) and _kernel(op).kind is not Kind.NOTHING:
            marks.cluster[op] = len(marks.members)
            marks.members.append([op])
    return marks


def _kernel(op: Operation) -> Kernel:
    kernel: Kernel = op._record.kernel
    return kernel


def is_compilable(op: Operation) -> bool:
    """Whether a node may be part of a cluster: a pure kernel over numeric types."""
    kernel = op._record.kernel
    if kernel is None:
        return False
    if kernel.kind is Kind.NOTHING:
        return True
    if op._control_flow_context is not None and op.type == "Identity" and not op._outputs[0]._consumers:
        return False  # it says which side of a Switch others wait for
    if kernel.kind not in (Kind.TRACEABLE, Kind.UPDATE):
        return False
    if kernel.compiles is not None and not kernel.compiles(op):
        return False
    if kernel.on_host is not None and kernel.on_host(op):
        return False
    state = {*kernel.reads, *kernel.writes}
    for name, tensor in zip(input_names(op), op._inputs, strict=True):
        if tensor._dtype.base_dtype in _UNCOMPILED and name not in state:
            return False
    for t in op._outputs:
        if t._dtype.is_ref_dtype:
            if op._control_flow_context is not None and any(is_control(c) for c in t._consumers):
                return False  # a reference that control flow passes on is a token of its own
        elif t._dtype.base_dtype in _UNCOMPILED:
            return False
    return True


def scalar_nodes(order: list[Operation], inside: set[Operation]) -> set[Operation]:
    """The arithmetic of loops and branches on scalars that compiled code has no part in."""
    found: set[Operation] = set()
    for op in order:
        if op._control_flow_context is None or op not in inside or not scalars.is_scalar(op) or may_fail(op):
            continue
        if all(t._op in found or t._op not in inside for t in op._inputs):
            found.add(op)
    return found


def initial_values_on_host(order: list[Operation]) -> set[Operation]:
    """The arithmetic between draws that run on the host and the variables that they initialise.

    It has host kernels, runs once, and would be compiled for every shape.
    """
    drawn: set[Operation] = set()
    result: set[Operation] = set()
    for op in order:
        kernel = op._record.kernel
        if kernel is None:
            continue
        if kernel.on_host is not None and kernel.on_host(op):
            drawn.add(op)
        elif op.type in BETWEEN and kernel.host is not None and initializes(op):
            sources = [t._op for t in op._inputs]
            if any(s in drawn for s in sources) and all(s in drawn or s.type == "Const" for s in sources):
                drawn.add(op)
                result.add(op)
    return result


def may_fail(op: Operation) -> bool:
    """Whether the node's kernel has a condition that a bad value breaks."""
    check = op._record.kernel.may_fail if op._record.kernel is not None else None
    return check is not None and check(op)


def writes_state(op: Operation) -> bool:
    """Whether the node changes a variable (a random node's own counter doesn't count)."""
    kernel = op._record.kernel
    return kernel is not None and kernel.kind is Kind.UPDATE and bool(kernel.writes)


def _computes(op: Operation, known: set[Tensor]) -> bool:
    """Whether compiling the node is worth anything by itself."""
    kernel = _kernel(op)
    if kernel.kind is Kind.NOTHING or op.type in ("Assign", "AssignVariableOp", "Identity", "ReadVariableOp"):
        return False
    return not (op._outputs and all(t in known for t in op._outputs))


def static_tensors(op: Operation) -> list[Tensor]:
    """The inputs whose values the node's kernel must know."""
    kernel = op._record.kernel
    if kernel is None or not kernel.static:
        return []
    static = kernel.static_names(op)
    return [
        t
        for name, t in zip(input_names(op), op._inputs, strict=True)
        if name.partition(".")[0] in static
    ]


def known_tensors(order: list[Operation], inside: set[Operation]) -> set[Tensor]:
    """Tensors whose values follow from constants, input shapes, and integer feeds that shapes depend on."""
    fed = _shape_feeds(order)
    known: set[Tensor] = set(fed)
    for op in order:
        kernel = op._record.kernel
        if op.type == "Const":
            known.update(op._outputs)
        elif op.type == "_CompiledLoop":
            known.update(op._outputs[len(op._outputs) - len(op._attrs["fixed"].results) :])
        elif op in inside and kernel.kind is Kind.TRACEABLE:
            if kernel.shape_only or (
                kernel.host is not None
                and not kernel.reads
                and not any(t._dtype.is_ref_dtype for t in op._inputs)
                and all(t in known for t in op._inputs)
            ):
                known.update(op._outputs)
    return known


def _shape_feeds(order: list[Operation]) -> set[Tensor]:
    """Fed integers from which static inputs are computed, by host kernels all the way."""
    wanted: set[Tensor] = set()
    stack = [t for op in order for t in static_tensors(op)]
    seen: set[Tensor] = set(stack)
    while stack:
        t = stack.pop()
        op = t._op
        if op.type == "_Arg":
            if t._dtype.is_integer:
                wanted.add(t)
            continue
        kernel = op._record.kernel
        if kernel is None or kernel.kind is not Kind.TRACEABLE or kernel.host is None or kernel.shape_only:
            continue
        for i in op._inputs:
            if i not in seen:
                seen.add(i)
                stack.append(i)
    return wanted


def _sources(op: Operation) -> list[tuple[Operation, Tensor | None]]:
    """What a node comes after: what a loop returns comes after all that enters the loop."""
    sources: list[tuple[Operation, Tensor | None]] = [(t._op, t) for t in op._inputs]
    sources += [(c, None) for c in op._control_inputs]
    frame = left_frame(op)
    if frame is not None:
        sources += [(enter, None) for enter in frame.enters]
    return sources


def _is_free(op: Operation) -> bool:
    """Sources that are there before anything runs: they hold no phase of their own."""
    return not op._control_inputs and (
        op.type == "_Arg" or (op._record.kernel is not None and op._record.kernel.kind is Kind.SOURCE)
    )


def _must_part(
    source: Operation, tensor: Tensor | None, op: Operation, marks: Marks, statics: list[Tensor]
) -> bool:
    """Whether op needs a higher phase than this producer, which may be in a cluster too.

    It is on another device (what is computed there may wait for this one), lives on other conditions or in
    another kind of cluster, or must know a value that is computed there.
    """
    if source._device != op._device or source._control_flow_context is not op._control_flow_context:
        return True
    if source in marks.scalar:
        return False  # its cluster comes first in any phase
    return op in marks.scalar or (tensor is not None and tensor not in marks.known and tensor in statics)


def _earliest(order: list[Operation], inside: set[Operation], marks: Marks) -> dict[Operation, int]:
    phase: dict[Operation, int] = {}
    failing: dict[Operation, int] = {}  # the last phase in which something upstream may fail
    read_in: dict[StateKey, int] = {}  # the phase in which each variable was read last
    for op in order:
        at, fail = 0, -1
        statics = static_tensors(op) if op in inside else []
        for source, tensor in _sources(op):
            if source not in phase:
                continue  # a loop's back edge
            p = phase[source]
            if op in inside and not _is_free(source):
                if source not in inside or _must_part(source, tensor, op, marks, statics):
                    p += 1
            at = max(at, p)
            fail = max(fail, failing[source])
        if op in inside:
            keys = state_keys(op)
            if fail >= at and writes_state(op):
                if _can_mask(op, keys, at, read_in):
                    marks.masked.add(op)
                else:
                    at = fail + 1
            if may_fail(op):
                fail = at
            for key in keys.values():
                read_in[key] = at
        phase[op], failing[op] = at, fail
    return phase


def _can_mask(op: Operation, keys: dict[str, StateKey], at: int, read_in: dict[StateKey, int]) -> bool:
    """Whether an update may stay behind a condition that can fail: the old value is there to fall back on.

    An update that looks at the old value has it; one that overwrites needs a read in the same phase.
    """
    kernel = _kernel(op)
    if not kernel.maskable:
        return False
    return not kernel.overwrites or all(read_in.get(keys[n], -1) == at for n in kernel.writes if n in keys)


def _latest(
    order: list[Operation], inside: set[Operation], marks: Marks, phase: dict[Operation, int]
) -> None:
    """Moves nodes to the latest phase that their consumers allow, so that fewer, larger clusters remain."""
    for op in reversed(order):
        if op not in inside or may_fail(op):
            continue
        users: list[tuple[Operation, Tensor | None]] = [(c, t) for t in op._outputs for c in t._consumers]
        users += [(c, None) for c in op._control_outputs]
        limits = [
            phase[user] - (user in inside and _must_part(op, tensor, user, marks, static_tensors(user)))
            for user, tensor in users
        ]
        phase[op] = max(phase[op], min(limits, default=0))
