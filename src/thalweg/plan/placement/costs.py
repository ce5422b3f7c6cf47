"""The cost model: what every node takes on every device, and the bytes of what it makes.

Static estimates (estimates.py) at first. What traced runs measured replaces them, by node name: a run's
StepStats tell the time of each node, and of each cluster, which its members share as their estimates say.
Measured costs are saved and loaded as JSON.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from thalweg.base import device_name
from thalweg.base.errors import InvalidArgumentError
from thalweg.graph.operation import Operation
from thalweg.kernel.convention import Kind
from thalweg.plan.placement import estimates
from thalweg.plan.placement.cluster import DTYPE_CLASSES, DeviceInfo, default_device

#: how often a loop is thought to run its body
LOOP_ITERATIONS = 10
#: ops that don't compute: their time is that of what they wait for
_WAITS = frozenset(("_Send", "_Recv", "_HostSend", "_HostRecv"))
#: measurements of a node that are kept
_KEPT = 15
_VERSION = 1


class _Runs:
    """The last measurements of one node; their median is what counts: a slow run says little."""

    __slots__ = ("count", "values")

    def __init__(self, value: float, count: int = 1) -> None:
        self.values = [value] * min(count, _KEPT)
        self.count = count

    @property
    def value(self) -> float:
        """The median of the last measurements."""
        return statistics.median(self.values)

    def add(self, value: float) -> None:
        """One measurement more."""
        self.count += 1
        self.values = [*self.values[1 - _KEPT :], value]


_Text = str | bytes


class CostModel:
    """What runs measured: seconds by node name and type of device, bytes by tensor name. Empty at first."""

    def __init__(self) -> None:
        self._times: dict[str, dict[str, _Runs]] = {}
        self._bytes: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._times or self._bytes)

    def __len__(self) -> int:
        """The number of nodes that were measured."""
        return len(self._times)

    def __repr__(self) -> str:
        return f"<CostModel with measurements of {len(self._times)} nodes>"

    def time(self, node: str, device_type: str) -> float | None:
        """The seconds of a node on a type of device, the median; None where that was not measured."""
        found = self._times.get(node, {}).get(device_type)
        return None if found is None else found.value

    def bytes(self, tensor: str) -> float | None:
        """The bytes of a tensor ("name:0") as last seen; None where it was not."""
        return self._bytes.get(tensor)

    def record(self, node: str, device_type: str, seconds: float) -> None:
        """One run of a node took so long on a device of that type."""
        if not (math.isfinite(seconds) and seconds >= 0):
            raise _error(f"the time of '{node}' must be 0 seconds or more, but is {seconds!r}")
        times = self._times.setdefault(node, {})
        if device_type in times:
            times[device_type].add(seconds)
        else:
            times[device_type] = _Runs(seconds)

    def record_bytes(self, tensor: str, size: float) -> None:
        """A tensor was seen to have so many bytes."""
        self._bytes[tensor] = float(size)

    def measure(self, run_metadata: Any, ops: Iterable[Operation] = ()) -> int:
        """Takes over what a traced run measured: `run_metadata` of Session.run with RunOptions.FULL_TRACE.

        ops: the nodes of the graph, from whose estimates a cluster's members get their shares. Returns how
        many nodes were measured.
        """
        known = {op._name: op for op in ops}
        members, waits = _members(run_metadata.partition_graphs)
        count = 0
        for (device, name), seconds in _spent(run_metadata.step_stats, waits).items():
            inside = members.get(name, {name: 1.0})
            shares = _shares([known.get(n) for n in inside], list(inside.values()))
            for node, share in zip(inside, shares, strict=True):
                self.record(node, _device_type(device), seconds * share)
                count += 1
        for device_stats in run_metadata.step_stats.dev_stats:
            for stats in device_stats.node_stats:
                for output in stats.output:
                    size = output.tensor_description.allocation_description.requested_bytes
                    if size:
                        self.record_bytes(f"{stats.node_name}:{output.slot}", size)
        return count

    def to_json(self) -> str:
        """The measurements as JSON."""
        times = {
            node: {kind: [runs.value, runs.count] for kind, runs in sorted(kinds.items())}
            for node, kinds in sorted(self._times.items())
        }
        return json.dumps({"version": _VERSION, "times": times, "bytes": self._bytes}, sort_keys=True)

    @classmethod
    def from_json(cls, text: _Text) -> CostModel:
        """Reads what to_json wrote. InvalidArgumentError where it is something else."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as e:
            raise _error(f"the cost model is not JSON: {e}") from None
        if not isinstance(data, dict) or data.get("version") != _VERSION:
            raise _error(f'a cost model is a JSON object with "version": {_VERSION}, as to_json writes it')
        model = cls()
        for node, kinds in _object(data, "times").items():
            for kind, row in _object(kinds, node, kinds).items():
                if not (isinstance(row, list) and len(row) == 2 and all(map(_is_number, row))):
                    raise _error(f"the time of '{node}' on {kind} must be [seconds, runs], but is {row!r}")
                model.record(node, kind, float(row[0]))
                model._times[node][kind] = _Runs(float(row[0]), max(1, int(row[1])))
        for tensor, size in _object(data, "bytes").items():
            if not _is_number(size) or size < 0:
                raise _error(f"the bytes of '{tensor}' must be a number from 0 on, but are {size!r}")
            model.record_bytes(tensor, size)
        return model


def _object(data: Mapping[str, Any], key: str, found: Any = None) -> dict[str, Any]:
    found = data.get(key, {}) if found is None else found
    if not isinstance(found, dict):
        raise _error(f"'{key}' of a cost model must be an object, but is {found!r}")
    return found


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _error(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, text)


def _device_type(device: str) -> str:
    try:
        return device_name.parse(device.partition(" ")[0]).device_type or device
    except ValueError:
        return device


def _members(graphs: Iterable[Any]) -> tuple[dict[str, dict[str, float]], set[str]]:
    """What is inside of clusters and compiled loops, and how often it runs each time; what only waits."""
    members: dict[str, dict[str, float]] = {}
    waits = set()
    for graph in graphs:
        for node in graph.node:
            if node.op in _WAITS:
                waits.add(node.name)
            cluster = node.attr["_cluster"].s.decode() if "_cluster" in node.attr else ""
            inner = [n.decode() for n in node.attr["_nodes"].list.s] if "_nodes" in node.attr else []
            times = LOOP_ITERATIONS if node.op == "_CompiledLoop" else 1.0
            if cluster or inner:
                inside = members.setdefault(cluster or node.name, {})
                inside.update(dict.fromkeys(inner, float(times)) if inner else {node.name: 1.0})
    return members, waits


def _spent(step_stats: Any, waits: set[str]) -> dict[tuple[str, str], float]:
    """(device, node): seconds that it computed. While several compute on the same cores, each has its share.

    So what was measured side by side can be simulated one after the other: together it takes as long.
    """
    rows: dict[str, list[tuple[int, int, tuple[str, str]]]] = {}
    for device in step_stats.dev_stats:
        cores = _cores(device.device)
        for stats in device.node_stats:
            if stats.node_name not in waits:
                start = stats.all_start_nanos or 1000 * stats.all_start_micros
                took = stats.all_end_rel_nanos or 1000 * stats.all_end_rel_micros
                key = (device.device, stats.node_name)
                rows.setdefault(cores, []).append((start, start + took, key))
    spent: dict[tuple[str, str], float] = {}
    for events in rows.values():
        ends = [(at, begins, i) for i, row in enumerate(events) for at, begins in ((row[0], 1), (row[1], 0))]
        active: dict[int, None] = {}
        before = 0
        for at, begins, i in sorted(ends):
            for j in active:
                key = events[j][2]
                spent[key] = spent.get(key, 0.0) + (at - before) * 1e-9 / len(active)
            before = at
            if begins:
                active[i] = None
                spent.setdefault(events[i][2], 0.0)
            else:
                active.pop(i, None)
    return spent


def _cores(device: str) -> str:
    try:
        return default_device(device.partition(" ")[0]).shares or device
    except ValueError:
        return device


def _shares(ops: Sequence[Operation | None], times: Sequence[float]) -> list[float]:
    """How a cluster's time is shared among its members. times: how often each runs."""
    weights = []
    for op, count in zip(ops, times, strict=True):
        flops, moved = estimates.estimate(op) if op is not None else (0.0, 0.0)
        weights.append(max(flops / 5e10, moved / 1e10) * count)
    total = sum(weights)
    return [w / total for w in weights] if total > 0 else [1 / len(ops)] * len(ops)


def node_times(
    ops: Sequence[Operation], kinds: Sequence[DeviceInfo], costs: CostModel | None, repeats: Sequence[int]
) -> np.ndarray[Any, Any]:
    """Seconds of each node on each kind of device, in one step.

    kinds: one device of each kind. repeats: how often each node runs. Measured where there is a measurement:
    on a type that wasn't measured, as much more or less as the estimates say. Measured times are of whole
    steps.
    """
    work = np.array([estimates.estimate(op) for op in ops], np.float64).reshape(len(ops), 2)
    classes = np.array([DTYPE_CLASSES.index(estimates.dtype_class(op)) for op in ops], np.int64)
    on_host = np.array([_starts_itself(op) for op in ops], bool)
    table = np.empty((len(ops), len(kinds)))
    for k, device in enumerate(kinds):
        speeds = np.array([device.flops_for(c) for c in DTYPE_CLASSES])
        time = np.maximum(work[:, 0] / speeds[classes], work[:, 1] / device.bandwidth)
        table[:, k] = time + on_host * device.overhead
    table *= np.asarray(repeats, np.float64)[:, None]
    if costs:
        for i, op in enumerate(ops):
            kinds_measured = costs._times.get(op._name)
            if kinds_measured:
                table[i] = _measured(table[i], kinds, kinds_measured)
    return table


def _measured(
    row: np.ndarray[Any, Any], kinds: Sequence[DeviceInfo], measured: Mapping[str, _Runs]
) -> np.ndarray[Any, Any]:
    result = row.copy()
    ratios = [
        measured[d.type].value / row[k] for k, d in enumerate(kinds) if d.type in measured and row[k] > 0
    ]
    for k, device in enumerate(kinds):
        if device.type in measured:
            result[k] = measured[device.type].value
        elif ratios:
            result[k] = row[k] * ratios[0]
    return result


def _starts_itself(op: Operation) -> bool:
    """Whether the node is started on its own, not as a part of a cluster."""
    kernel = op._record.kernel
    if op.type in ("Placeholder", "PlaceholderV2"):
        return False  # it is fed
    if kernel is None or kernel.kind in (Kind.HOST, Kind.STATEFUL, Kind.ASYNC):
        return kernel is not None
    return kernel.kind is Kind.TRACEABLE and kernel.compiles is not None and not kernel.compiles(op)
