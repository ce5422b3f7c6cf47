"""THE list of passes, in order. Each is graph to graph; its docstring says its law."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

from thalweg.base import device_name
from thalweg.graph.check import check
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.kernel.body import StateKey
from thalweg.plan.encapsulate import encapsulate
from thalweg.plan.inline import inline_calls
from thalweg.plan.localize import localize
from thalweg.plan.loop_shapes import infer_loop_shapes
from thalweg.plan.loops import compile_loops
from thalweg.plan.mark import MAX_CLUSTER, mark_clusters, mark_single
from thalweg.plan.order import order_state
from thalweg.plan.partition import Partition, partition
from thalweg.plan.placement.cluster import ClusterDescription, local_cluster
from thalweg.plan.placement.costs import CostModel
from thalweg.plan.placement.place import check_constraints, place
from thalweg.plan.places import find_places
from thalweg.plan.prune import prune
from thalweg.plan.rewrite.common import merge_common
from thalweg.plan.rewrite.fold import fold_constants, remove_unused
from thalweg.plan.rewrite.lend import lend_variables
from thalweg.plan.rewrite.simplify import remove_identities
from thalweg.plan.rewrite.tokens import bypass_identities, free_constants, read_references
from thalweg.plan.schedule_recvs import SMALLEST, schedule_receives
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
    #: where float32 crosses as bfloat16: between no devices (""), between "tasks", between all "devices"
    compress: str = ""
    #: whether receives wait until just before their values are needed; of small values too
    schedule_receives: bool = True
    schedule_all: bool = False
    #: check the graph's grammar between passes (graph.check)
    check: bool = False


_COMPRESS: dict[str, Callable[[str, str], bool]] = {
    "": lambda source, target: False,
    "tasks": lambda source, target: device_name.parse(source)[:3] != device_name.parse(target)[:3],
    "devices": lambda source, target: True,
}


def _no_check(graph: Graph, stage: str) -> None:
    return


@dataclass
class Plan:
    """What a signature becomes: the final graph, and the state that its nodes outside clusters touch.

    The graph is whole; `partitions` are what it was cut into for its devices (of one device: itself).
    """

    graph: Graph
    state: dict[Operation, dict[str, StateKey]]
    #: whether there is control flow in it
    dynamic: bool = False
    #: what is fetched, in the caller's graph
    fetches: Sequence[Tensor] = ()
    #: what each rewriting pass did: (name, nodes changed)
    report: list[tuple[str, int]] = field(default_factory=list)
    partitions: list[Partition] = field(default_factory=list)


def prepare(
    graph: Graph,
    feeds: Sequence[Tensor],
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    options: PlanOptions,
    done: Collection[Operation] = (),
    cluster: ClusterDescription | None = None,
) -> tuple[Graph, bool, list[tuple[str, int]]]:
    """The passes before placement: a private graph, whether there is control flow in it, and what they did.

    cluster: constraints are checked against it, before rewriting: on the program's own nodes. See make_plan
    for the other arguments.
    """
    with graph._lock:
        new = prune(graph, feeds, fetches, targets, done)
    report = [("prune", len(new._ops))]
    report.append(("inline_calls", inline_calls(new, graph)))
    grammar = check if options.check else _no_check
    read_references(new)
    dynamic = find_places(new)
    if dynamic:
        report.append(("infer_loop_shapes", infer_loop_shapes(new)))
    grammar(new, "prune")
    if cluster is not None:
        check_constraints(new, cluster, options.soft_placement)
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
    return new, dynamic, report


def make_plan(
    graph: Graph,
    feeds: Sequence[Tensor],
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    options: PlanOptions,
    devices: ClusterDescription | Sequence[str] = ("/job:localhost/replica:0/task:0/device:CPU:0",),
    done: Collection[Operation] = (),
    incarnations: Mapping[str, int] | None = None,
    homes: MutableMapping[StateKey, str] | None = None,
    costs: CostModel | None = None,
) -> Plan:
    """Runs the passes for one signature. The caller's graph is not changed; it is locked while it is copied.

    devices: the devices there are, or their full names, the default first.
    done: nodes that have run already (see prune). incarnations: of the devices, for keys of messages.
    homes: where state is; what this plan places first is added (see placement.place).
    costs: what was measured.
    """
    if len(devices) > 1 and not isinstance(devices, ClusterDescription):
        devices = local_cluster(devices)
    cluster = devices if isinstance(devices, ClusterDescription) else None
    new, dynamic, report = prepare(graph, feeds, fetches, targets, options, done, cluster)
    grammar = check if options.check else _no_check
    place(new, devices, options.soft_placement, options.log_placement, homes, costs)
    grammar(new, "place")
    if len(devices) > 1:
        report.append(("localize", localize(new)))
        grammar(new, "localize")
    if dynamic and options.loops and options.cluster:
        find_places(new, freed=True)  # merge_common may have made one predicate of two
        dynamic, compiled = compile_loops(new)
        report.extend(compiled)
        grammar(new, "compile_loops")
    report.append(("lend_variables", lend_variables(new)))
    grammar(new, "lend_variables")
    order = order_state(new)
    marks = mark_clusters(order, options.max_cluster) if options.cluster else mark_single(order)
    state = {
        op: keys for op in new._ops if op not in marks.cluster and (keys := state_keys(op))
    }
    grammar(new, "order_state")
    encapsulate(new, marks)
    grammar(new, "encapsulate")
    report.append(("clusters", len(marks.members)))
    parts = partition(new, state, dynamic, incarnations, _COMPRESS[options.compress])
    if options.schedule_receives and cluster is not None and len(parts) > 1:
        smallest = 0 if options.schedule_all else SMALLEST
        report.append(("schedule_receives", schedule_receives(parts, cluster.seconds, smallest)))
    for part in parts:
        grammar(part.graph, "partition")
    return Plan(new, state, dynamic, fetches, report, parts)
