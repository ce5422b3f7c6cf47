"""Explaining placements: of a session's devices, or of a cluster that is described and needn't be there."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from thalweg.client.fetches import FetchPlan
from thalweg.client.session import device_config, plan_options
from thalweg.graph.graph import Graph
from thalweg.kernel.body import StateKey
from thalweg.plan.pipeline import prepare
from thalweg.plan.placement.cluster import ClusterDescription
from thalweg.plan.placement.costs import CostModel
from thalweg.plan.placement.homes import find_homes
from thalweg.plan.placement.place import decide, require_memory, write
from thalweg.plan.placement.predict import predict
from thalweg.plan.placement.report import ALTERNATIVES, Placement, report
from thalweg.runtime.worker import Worker

if TYPE_CHECKING:
    from rich.table import Table

#: candidates that are named in a table
_SHOWN = 5


def explain(
    graph: Graph,
    fetches: Any,
    cluster: ClusterDescription | None = None,
    config: Any = None,
    costs: CostModel | None = None,
    feeds: Sequence[Any] = (),
    alternatives: int = ALTERNATIVES,
) -> Placement:
    """Where a step that fetches `fetches` would run, why there, and how long it would take.

    fetches: as for Session.run. feeds: tensors that are fed, other than placeholders.
    cluster: the devices; those that a session with this `config` has, where None.
    config: a ConfigProto: device_count, allow_soft_placement, and the switches of passes before placement.
    costs: what traced runs measured. alternatives: for how many groups of nodes other devices are tried.
    Errors: as Session.run for bad fetches and devices; ResourceExhaustedError where the step fits into no
    device's memory.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"`graph` must be a tf.Graph, but got {graph!r}")
    if not isinstance(cluster, ClusterDescription | None):
        raise TypeError(f"`cluster` must be a ClusterDescription (see its from_json), but got {cluster!r}")
    if cluster is None:
        cluster = Worker(devices=device_config(config)).cluster
    plan = FetchPlan(graph, fetches)
    options = plan_options(config)
    fed = [graph.as_graph_element(t, allow_operation=False) for t in feeds]
    new, _, _ = prepare(graph, fed, plan.tensors, plan.targets, options, cluster=cluster)
    homes: dict[StateKey, str] = {}
    if len(cluster) > 1:
        find_homes(graph, cluster, homes, options.soft_placement, costs)
    decision = decide(new._ops, cluster, options.soft_placement, homes, costs)
    require_memory(decision)
    explained = report(decision, alternatives)
    write(decision)
    expected = predict(new, cluster, costs, options.cluster)
    return explained if expected is None else dataclasses.replace(explained, step_time=expected.makespan)


def measure(graph: Graph, run_metadata: Any, costs: CostModel | None = None) -> CostModel:
    """A cost model with what a traced run measured; added to `costs`, where given.

    run_metadata: a RunMetadata that Session.run filled with trace_level FULL_TRACE.
    """
    costs = CostModel() if costs is None else costs
    costs.measure(run_metadata, graph._ops)
    return costs


def format_placement(placement: Placement, nodes: int = 30, width: int = 150) -> str:
    """The report as tables. nodes: how many of the nodes are shown, those that take longest."""
    from rich.console import Console  # importing thalweg shouldn't take its 40 ms

    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(_summary(placement), highlight=False)
    console.print(_device_table(placement))
    console.print(_node_table(placement, nodes))
    for text in placement.fallbacks:
        console.print(f"Falls back: {text}", highlight=False)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _summary(placement: Placement) -> str:
    tried = _tried(placement)
    text = f"Step: {seconds(placement.step_time)} predicted; node by node {seconds(placement.simulated)} "
    text += f"({placement.chosen})"
    if placement.bound:
        text += f", which no placement can have below {seconds(placement.bound)}"
    return text + (f"\nTried: {tried}" if tried else "")


def _tried(placement: Placement) -> str:
    """The best candidates, and the first, which is one device."""
    short = short_names([row.name for row in placement.devices])
    names = list(placement.candidates)
    fitting = sorted((t, names.index(n), n) for n, t in placement.candidates.items() if t is not None)
    shown = [n for _, _, n in fitting[:_SHOWN]]
    shown += [n for n in names[:1] if n not in shown]
    texts = []
    for name in shown:
        time, words = placement.candidates[name], [short.get(word, word) for word in name.split()]
        texts.append(f"{' '.join(words)} {'does not fit' if time is None else seconds(time)}")
    if len(names) > len(shown):
        texts.append(f"{len(names) - len(shown)} more ({len(names) - len(fitting)} in all don't fit)")
    return ", ".join(texts)


def _table() -> Table:
    from rich.table import Table

    return Table(box=None, header_style="", pad_edge=False)


def _device_table(placement: Placement) -> Table:
    table = _table()
    table.add_column("device", no_wrap=True)
    for head in ("nodes", "busy", "memory peak", "of", "sent", "received"):
        table.add_column(head, justify="right", no_wrap=True)
    used = [row for row in placement.devices if row.nodes]
    for row in used:
        table.add_row(
            row.name, str(row.nodes), seconds(row.busy), size(row.peak),
            "" if row.memory is None else size(row.memory), size(row.sent), size(row.received),
        )  # fmt: skip
    idle = len(placement.devices) - len(used)
    if idle:
        table.add_row(f"nothing to do: {idle} more")
    return table


def _node_table(placement: Placement, count: int) -> Table:
    table = _table()
    table.add_column("node", overflow="fold")
    table.add_column("op", no_wrap=True)
    table.add_column("device", no_wrap=True)
    table.add_column("start", justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    table.add_column("the step, with it elsewhere", overflow="fold")
    short = short_names([row.name for row in placement.devices])
    longest = sorted(placement.nodes, key=lambda row: -row.time)[:count]
    for row in sorted(longest, key=lambda row: row.start):
        others = ", ".join(f"{short[d]} {seconds(t)}" for d, t in row.alternatives.items())
        table.add_row(
            row.name, row.op, short[row.device], seconds(row.start), seconds(row.time), row.reason, others
        )
    return table


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Device names without the parts that all of them share."""
    parts = [name.strip("/").split("/") for name in names]
    same = [len({p[i] for p in parts}) == 1 for i in range(len(parts[0]))]
    keep = [i for i, s in enumerate(same) if not s or i == len(same) - 1]
    return {
        name: "/".join(p[i].removeprefix("device:") for i in keep)
        for name, p in zip(names, parts, strict=True)
    }


def seconds(value: float) -> str:
    """A time with a fitting unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return "0" if value < 5e-10 else f"{value * 1e6:.2g} us"


def size(value: float) -> str:
    """A number of bytes with a fitting unit."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.0f} B"


__all__ = ["explain", "format_placement", "measure", "short_names"]
