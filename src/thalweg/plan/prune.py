"""Pruning: from the user's graph to a private copy of just what a signature needs."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.base.errors import InvalidArgumentError
from thalweg.graph import registry
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import ancestors, copy_op, raw_node
from thalweg.kernel.trace_names import input_names
from thalweg.plan.state import VARIABLE_OPS


def prune(
    graph: Graph, feeds: Sequence[Tensor], fetches: Sequence[Tensor], targets: Sequence[Operation]
) -> Graph:
    """A copy of what the fetches and targets need.

    Law: feeds become _Arg nodes (index i for feeds[i]) in place of what produced them, fetches become
    _Retval nodes (index i for fetches[i]); walking back stops at feeds; a control edge from a fed
    placeholder goes. Targets keep their names.
    """
    fed = set(feeds)
    roots = [t._op for t in fetches if t not in fed] + list(targets)
    keep = ancestors(roots, lambda t: t in fed)
    new = Graph()
    copies: dict[Tensor, Tensor] = {}
    arg_record = registry.lookup("_Arg")
    for i, feed in enumerate(feeds):
        base = feed._dtype.base_dtype
        arg = raw_node(
            new, arg_record, f"_arg_{feed._op._name}_{feed._index}", [], {"T": base, "index": i}, [base],
            made_from=feed._op,
        )
        arg._outputs[0]._shape = feed._shape
        copies[feed] = arg._outputs[0]
    ops: dict[Operation, Operation] = {}
    back_edges: list[tuple[Operation, int, Tensor]] = []
    kept = set(keep)
    for op in keep:
        if op.type == "Placeholder" and op._outputs[0] in fed:
            continue
        inputs: list[Tensor] = []
        for i, t in enumerate(op._inputs):
            if t in copies:
                if t in fed and t._dtype.is_ref_dtype:
                    _require_no_reference(op, i)
                inputs.append(copies[t])
            else:
                back_edges.append((op, i, t))
                inputs.append(inputs[0])
        controls = [ops[c] for c in op._control_inputs if c in ops]
        copy = ops[op] = copy_op(new, op, inputs, controls)
        for old, fresh in zip(op._outputs, copy._outputs, strict=True):
            copies.setdefault(old, fresh)
    for op, i, t in back_edges:
        ops[op]._update_input(i, copies[t])
    for op, copy in ops.items():
        if len(copy._control_inputs) != len(op._control_inputs):
            copy._add_control_inputs(ops[c] for c in op._control_inputs if c in kept and c in ops)
    retval = registry.lookup("_Retval")
    for i, fetch in enumerate(fetches):
        base = fetch._dtype.base_dtype
        if fetch._dtype.is_ref_dtype and fetch._op.type in VARIABLE_OPS and fetch not in fed:
            read = raw_node(
                new, registry.lookup("Identity"), f"_read_{fetch._op._name}", [copies[fetch]], {"T": base},
                [base], made_from=fetch._op,
            )
            read._outputs[0]._shape = fetch._shape
            copies[fetch] = read._outputs[0]
        raw_node(new, retval, f"_retval_{fetch._op._name}_{fetch._index}_{i}", [copies[fetch]],
                 {"T": base, "index": i}, [])
    new._targets.extend(ops[t] for t in targets if t in ops)  # a fed placeholder has nothing to run
    return new


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
