"""THE list of passes, in order. Each is graph to graph; its docstring says its law."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from thalweg.graph.check import check
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.kernel.body import StateKey
from thalweg.plan.encapsulate import encapsulate
from thalweg.plan.loop_shapes import infer_loop_shapes
from thalweg.plan.loops import compile_loops
from thalweg.plan.mark import MAX_CLUSTER, mark_clusters, mark_single
from thalweg.plan.order import order_state
from thalweg.plan.place import place
from thalweg.plan.places import find_places
from thalweg.plan.prune import prune
from thalweg.plan.rewrite.common import merge_common
from thalweg.plan.rewrite.fold import fold_constants, remove_unused
from thalweg.plan.rewrite.simplify import remove_identities
from thalweg.plan.rewrite.tokens import bypass_identities, free_constants, read_references
from thalweg.plan.state import state_keys


@dataclass(frozen=True)
class PlanOptions:
    """Which passes run. Made from ConfigProto.graph_options by the client."""

    fold: bool = True
    merge: bool = True
    simplify: bool = True
    cluster: bool = True
    #: whether loops and conditionals are compiled where they can be; without clusters they never are
    loops: bool = True
    max_cluster: int = MAX_CLUSTER
    #: whether a node may go elsewhere than it asks, and whether to log where nodes go
    soft_placement: bool = False
    log_placement: bool = False
    #: check the graph's grammar between passes (graph.check)
    check: bool = False


def _no_check(graph: Graph, stage: str) -> None:
    return


@dataclass
class Plan:
    """What a signature becomes: the final graph, and the state that its nodes outside clusters touch."""

    graph: Graph
    state: dict[Operation, dict[str, StateKey]]
    #: whether there is control flow in it
    dynamic: bool = False
    #: what is fetched, in the caller's graph
    fetches: Sequence[Tensor] = ()
    #: what each rewriting pass did: (name, nodes changed)
    report: list[tuple[str, int]] = field(default_factory=list)


def make_plan(
    graph: Graph,
    feeds: Sequence[Tensor],
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    options: PlanOptions,
    devices: Sequence[str] = ("/job:localhost/replica:0/task:0/device:CPU:0",),
    done: Collection[Operation] = (),
) -> Plan:
    """Runs the passes for one signature. The caller's graph is not changed; it is locked while it is copied.

    devices: the full names of the devices there are, the default first.
    done: nodes that have run already (see prune).
    """
    with graph._lock:
        new = prune(graph, feeds, fetches, targets, done)
    report = [("prune", len(new._ops))]
    grammar = check if options.check else _no_check
    read_references(new)
    dynamic = find_places(new)
    if dynamic:
        report.append(("infer_loop_shapes", infer_loop_shapes(new)))
    grammar(new, "prune")
    for _ in range(2):  # rewriting to a bounded fixed point
        changed = 0
        for wanted, name, rewrite in (
            (options.fold, "fold_constants", fold_constants),
            (options.simplify, "remove_identities", remove_identities),
            (options.merge, "merge_common", merge_common),
        ):
            if wanted:
                n = rewrite(new)
                report.append((name, n))
                changed += n
                grammar(new, name)
        if not changed:
            break
    if dynamic:
        for name, rewrite in (("free_constants", free_constants), ("bypass_identities", bypass_identities)):
            report.append((name, rewrite(new)))
            grammar(new, name)
    report.append(("remove_unused", remove_unused(new)))
    place(new, devices, options.soft_placement, options.log_placement)
    grammar(new, "place")
    if dynamic and options.loops and options.cluster:
        find_places(new, freed=True)  # merge_common may have made one predicate of two
        dynamic, compiled = compile_loops(new)
        report.extend(compiled)
        grammar(new, "compile_loops")
    order = order_state(new)
    marks = mark_clusters(order, options.max_cluster) if options.cluster else mark_single(order)
    state = {
        op: keys for op in new._ops if op not in marks.cluster and (keys := state_keys(op))
    }
    grammar(new, "order_state")
    encapsulate(new, marks)
    grammar(new, "encapsulate")
    report.append(("clusters", len(marks.members)))
    return Plan(new, state, dynamic, fetches, report)
