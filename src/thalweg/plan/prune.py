"""Pruning: from the user's graph to a private copy of just what a signature needs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from thalweg.base.errors import InvalidArgumentError
from thalweg.graph import registry
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import ancestors, copy_op, raw_node
from thalweg.kernel.convention import Kind
from thalweg.kernel.trace_names import input_names
from thalweg.plan.state import VARIABLE_OPS


def prune(
    graph: Graph,
    feeds: Sequence[Tensor],
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    done: Collection[Operation] = (),
) -> Graph:
    """A copy of what the fetches and targets need.

    Law: feeds become _Arg nodes (index i for feeds[i]) in place of what produced them, fetches become
    _Retval nodes (index i for fetches[i]); walking back stops at feeds; a control edge from a fed
    placeholder goes. Targets keep their names. Nodes in `done` have run: what they made is fed where it is
    needed, and nothing waits for them. References that are fetched, or that an asynchronous kernel takes, are
    read by nodes of their own.
    """
    fed = set(feeds)
    keep = ancestors([t._op for t in fetches if t not in fed] + list(targets), lambda t: t in fed, done)
    new = Graph()
    copies = _arguments(new, feeds)
    ops = _copy_nodes(new, keep, fed, copies)
    _add_results(new, fetches, fed, copies)
    new._targets.extend(ops[t] for t in targets if t in ops)  # a fed placeholder has nothing to run
    return new


def _arguments(new: Graph, feeds: Sequence[Tensor]) -> dict[Tensor, Tensor]:
    """Adds an _Arg node for every feed; returns which tensor stands for which."""
    record = registry.lookup("_Arg")
    copies: dict[Tensor, Tensor] = {}
    for i, feed in enumerate(feeds):
        base = feed._dtype.base_dtype
        name = f"_arg_{feed._op._name}_{feed._index}"
        arg = raw_node(new, record, name, [], {"T": base, "index": i}, [base], made_from=feed._op)
        arg._outputs[0]._shape = feed._shape
        copies[feed] = arg._outputs[0]
    return copies


def _copy_nodes(
    new: Graph, keep: Sequence[Operation], fed: set[Tensor], copies: dict[Tensor, Tensor]
) -> dict[Operation, Operation]:
    """Adds copies of the nodes to keep, in order of creation; extends `copies` by their outputs."""
    ops: dict[Operation, Operation] = {}
    later: list[tuple[Operation, int, Tensor]] = []  # inputs from nodes that were made after their consumer
    for op in keep:
        if op.type == "Placeholder" and op._outputs[0] in fed:
            continue
        inputs: list[Tensor] = []
        for i, t in enumerate(op._inputs):
            if t not in copies:
                later.append((op, i, t))
                continue
            if t in fed and t._dtype.is_ref_dtype:
                _require_no_reference(op, i)
            inputs.append(copies[t])
        controls = [ops[c] for c in op._control_inputs if c in ops]
        if op._record.kernel is not None and op._record.kernel.kind in (Kind.ASYNC, Kind.SEND):
            inputs = [_read(new, t, op, controls) if t._dtype.is_ref_dtype else t for t in inputs]
        copy = ops[op] = copy_op(new, op, inputs, controls)
        for old, fresh in zip(op._outputs, copy._outputs, strict=True):
            copies.setdefault(old, fresh)
    for op, i, t in later:
        ops[op]._inputs.insert(i, copies[t])
        copies[t]._consumers.append(ops[op])
    for op, copy in ops.items():
        copy._add_control_inputs(ops[c] for c in op._control_inputs if c._id > op._id and c in ops)
    return ops


def _add_results(
    new: Graph, fetches: Sequence[Tensor], fed: set[Tensor], copies: dict[Tensor, Tensor]
) -> None:
    """Adds a _Retval node for every fetch; what is fetched of a variable is a value, read by an Identity."""
    record = registry.lookup("_Retval")
    for i, fetch in enumerate(fetches):
        base, op = fetch._dtype.base_dtype, fetch._op
        result = copies[fetch]
        if fetch._dtype.is_ref_dtype and op.type in VARIABLE_OPS and fetch not in fed:
            result = _read(new, result, op, [])
        raw_node(new, record, f"_retval_{op._name}_{fetch._index}_{i}", [result], {"T": base, "index": i}, [])


def _read(new: Graph, reference: Tensor, user: Operation, controls: Sequence[Operation]) -> Tensor:
    """What is behind a reference, as a value: read by a node of its own, for a user of values."""
    base = reference._dtype.base_dtype
    identity, name = registry.lookup("Identity"), f"_read_{reference._op._name}"
    read = raw_node(new, identity, name, [reference], {"T": base}, [base], controls, user)
    read._outputs[0]._shape = reference._shape
    return read._outputs[0]


def _require_no_reference(op: Operation, i: int) -> None:
    """InvalidArgumentError where an input that is fed must be a variable: a value can't be updated."""
    references = {arg.name for arg in op._record.definition.inputs if arg.is_ref}
    name = input_names(op)[i]
    if name in references:
        raise InvalidArgumentError(
            None,
            op,
            f"{op.type} '{op.name}': its input '{name}' is the variable '{op._inputs[i].name}', for which a "
            "value is fed: what is fed can't be updated. Leave the feed out, or fetch what only reads it",
        )
