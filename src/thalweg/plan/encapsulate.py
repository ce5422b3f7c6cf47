"""Encapsulation: each marked set of nodes becomes one _Cluster node with a body."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.base.errors import InternalError
from thalweg.graph import registry
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import raw_node, relink, sweep
from thalweg.kernel.body import Body
from thalweg.kernel.convention import Kind
from thalweg.plan.mark import Marks, static_tensors
from thalweg.plan.places import is_control
from thalweg.plan.state import root_variable, state_keys

#: constants up to this many bytes are copied into the clusters that use them; larger ones are arguments
INLINE_BYTES = 1024


@dataclass
class _Interface:
    """Where values enter and leave a cluster; see kernel.body.Body."""

    args: dict[Tensor, None]
    static_args: dict[Tensor, None]
    constants: dict[Operation, None]
    results: list[Tensor]
    #: handles from nodes of control flow: they say where and when the cluster runs
    tokens: dict[Tensor, None]


def encapsulate(graph: Graph, marks: Marks) -> None:
    """Replaces each cluster of `marks` by a _Cluster node.

    Law: the same values reach the same consumers; control edges into and out of members become the
    cluster's; variables stop being edges: the body names them. A handle that comes through control flow stays
    an input, after all others.
    """
    record = registry.lookup("_Cluster")
    replaced: dict[Tensor, Tensor] = {}
    cluster_ops: list[Operation] = []
    for number, members in enumerate(marks.members):
        inside = set(members)
        face = _interface(members, inside, marks)
        body = Body(
            members,
            list(face.args),
            list(face.static_args),
            face.results,
            {op: keys for op in members if (keys := state_keys(op))},
            list(face.constants),
            marks.masked & inside,
            members[0] in marks.scalar,
        )
        inputs = [*face.args, *face.static_args, *face.tokens]
        controls = dict.fromkeys(
            c for op in (*members, *face.constants) for c in op._control_inputs if c not in inside
        )
        results = tuple(t._dtype.base_dtype for t in face.results)
        attrs = {
            "Tin": tuple(t._dtype.base_dtype for t in inputs),
            "Tout": results,
            "body": body,
        }
        op = raw_node(
            graph, record, f"_cluster_{number}", inputs, attrs, results, list(controls), members[0]
        )
        for new, old in zip(op._outputs, face.results, strict=True):
            new._shape = old._shape
            replaced[old] = new
        cluster_ops.append(op)
    _rewire(graph, marks, replaced, cluster_ops)


def _interface(members: list[Operation], inside: set[Operation], marks: Marks) -> _Interface:
    """What a cluster takes from outside, and what outside takes from it."""
    face = _Interface({}, {}, {}, [], {})
    for op in members:
        keys = state_keys(op)
        statics = static_tensors(op)
        for tensor in op._inputs:
            source = tensor._op
            if source in inside:
                continue
            if source._record.kernel.kind is Kind.SOURCE and source.type not in ("Const", "_Arg"):
                continue  # a variable's handle
            if keys and (tensor._dtype.is_ref_dtype or tensor._dtype.name == "resource"):
                if tensor._dtype.name == "resource" or not _snapshot(op, tensor):
                    if is_control(source):
                        face.tokens.setdefault(tensor)
                    continue
            if source.type == "Const" and (
                tensor in statics or source._attrs["value"].nbytes <= INLINE_BYTES
            ):
                face.constants.setdefault(source)
            elif tensor in statics or (tensor in marks.known and source.type != "Const"):
                face.static_args.setdefault(tensor)
            else:
                face.args.setdefault(tensor)
    for op in members:
        for tensor in op._outputs:
            if any(c not in inside and _uses_value(c, tensor) for c in tensor._consumers):
                face.results.append(tensor)
    for tensor in face.static_args:
        face.args.pop(tensor, None)
    return face


def _snapshot(op: Operation, tensor: Tensor) -> bool:
    """Whether a node takes the value that an update outside its cluster left, not the variable itself."""
    kernel = op._record.kernel
    names = [a.name for a in op._record.definition.inputs]
    position = op._inputs.index(tensor)
    updated = position < len(names) and names[position] in kernel.writes
    source = tensor._op._record.kernel
    return not updated and source is not None and bool(source.writes)


def _uses_value(user: Operation, tensor: Tensor) -> bool:
    """Whether a consumer outside takes the tensor as a value (not as a handle to state)."""
    if not tensor._dtype.is_ref_dtype:
        return tensor._dtype.name != "resource"
    return user.type == "_Retval" or _snapshot(user, tensor)


def _detach_handles(op: Operation, marks: Marks, replaced: dict[Tensor, Tensor]) -> None:
    """A node outside that got a reference through a member gets it from the variable, and waits."""
    for i, t in enumerate(op._inputs):
        if t._op in marks.cluster and t not in replaced:
            root = root_variable(t)
            if root is None:
                raise InternalError(None, op, f"'{op._name}' takes '{t.name}' from inside a cluster")
            op._control_inputs.append(t._op)
            op._inputs[i] = root._outputs[0]


def _rewire(
    graph: Graph, marks: Marks, replaced: dict[Tensor, Tensor], cluster_ops: list[Operation]
) -> None:
    """Lets what is left of the graph take from clusters, and wait for them, in place of their members."""
    gone = marks.cluster
    for op in graph._ops:
        if op in gone:
            continue
        _detach_handles(op, marks, replaced)
        op._inputs = [replaced.get(t, t) for t in op._inputs]
        sources = (cluster_ops[gone[c]] if c in gone else c for c in op._control_inputs)
        op._control_inputs = [c for c in dict.fromkeys(sources) if c is not op]
    graph._targets = [cluster_ops[gone[t]] if t in gone else t for t in graph._targets]
    for op in gone:
        del graph._by_name[op._name]
    graph._removed.update(gone)
    sweep(graph)
    relink(graph)
