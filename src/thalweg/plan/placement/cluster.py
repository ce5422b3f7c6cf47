"""What the placer knows of machines: devices with their speeds and memory, and the links between them.

Data only, so that a cluster can be described that isn't there. In JSON:

    {"devices": [{"name": "/job:worker/task:{0..3}/device:GPU:{0..7}", "flops": 1.5e13, "bandwidth": 1e12,
                  "memory": 1.6e10}, ...],
     "links": [{"between": ["/job:ps", "/job:worker"], "latency": 1e-4, "bandwidth": 1.2e9}],
     "same_task": {"latency": 1e-5, "bandwidth": 1e10},
     "other_task": {"latency": 1e-4, "bandwidth": 1.2e9}}

`{0..3}` in a name stands for each of these numbers. Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.base import device_name
from thalweg.base.errors import InvalidArgumentError, some

#: classes of element types that devices have different speeds for
DTYPE_CLASSES = ("float32", "float64", "float16", "int")

_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
_DEFAULT_FLOPS = {"CPU": 5e10, "GPU": 1.5e13, "TPU": 5e13}
_DEFAULT_BANDWIDTH = {"CPU": 1e10, "GPU": 1e12, "TPU": 1e12}
_MAX_DEVICES = 100_000


@dataclass(frozen=True)
class DeviceInfo:
    """A device as the placer sees it."""

    #: in full: "/job:worker/replica:0/task:3/device:GPU:0"
    name: str
    type: str
    #: operations per second: of float32, and for other classes of element types where they differ
    flops: float = 5e10
    flops_of: Mapping[str, float] = field(default_factory=dict)
    #: bytes per second between the device and its own memory
    bandwidth: float = 1e10
    #: seconds to start one kernel, or one executable of many nodes
    overhead: float = 1e-5
    #: bytes that it holds; None: as many as there are
    memory: float | None = None
    #: whether XLA's kernels serve it; whether it runs what XLA can't (strings, queues, Python). With neither
    #: it has only the kernels that graph.registry.register_kernel gave its type
    compiles: bool = True
    hosts: bool = False
    #: devices that compute on the same cores have the same name here: they take turns
    shares: str = ""

    def flops_for(self, dtype_class: str) -> float:
        """Operations per second on a class of element types."""
        return self.flops_of.get(dtype_class, self.flops)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What is equal for devices on which every node takes the same time."""
        speeds = tuple(sorted(self.flops_of.items()))
        return (self.type, self.flops, speeds, self.bandwidth, self.overhead, self.compiles, self.hosts)

    @property
    def task(self) -> tuple[str | None, int | None, int | None]:
        """The (job, replica, task) that it belongs to."""
        return device_name.parse(self.name)[:3]


@dataclass(frozen=True)
class Link:
    """How long n bytes take from one device to another: latency + n / bandwidth.

    source, target: (partial) device names. A link serves both directions unless `one_way`.
    """

    source: str
    target: str
    latency: float
    bandwidth: float
    one_way: bool = False


@dataclass(frozen=True)
class Speed:
    """The latency (seconds) and bandwidth (bytes per second) of links of one kind."""

    latency: float
    bandwidth: float


#: between devices of one process that are the host's memory: what a Send, a Recv and a new cluster cost
LOCAL = Speed(6e-5, 5e9)
#: between tasks, where nothing else is known: 10 Gbit/s Ethernet
NETWORK = Speed(2e-4, 1.2e9)


class ClusterDescription:
    """The devices there are, the default one first, and what connects them. Doesn't change once made.

    links: the first that matches a pair holds. same_task, other_task: pairs that no link matches; None: there
    is no way between them.
    Errors: InvalidArgumentError that says which device or link is wrong, and what would be right.
    """

    def __init__(
        self,
        devices: Iterable[DeviceInfo],
        links: Sequence[Link] = (),
        same_task: Speed | None = None,
        other_task: Speed | None = None,
    ) -> None:
        self.devices = tuple(devices)
        self.links = tuple(links)
        self.same_task = same_task
        self.other_task = other_task
        self.index = {d.name: i for i, d in enumerate(self.devices)}
        _check(self)
        tasks: dict[Any, int] = {}
        #: the number of each device's task
        self.task_of = [tasks.setdefault(d.task, len(tasks)) for d in self.devices]
        #: kind_of[i, j]: which of `speeds` the link from device i to device j has
        self.kind_of, self.speeds = _link_kinds(self)

    @property
    def names(self) -> list[str]:
        """The full names of the devices."""
        return [d.name for d in self.devices]

    def __len__(self) -> int:
        return len(self.devices)

    def __repr__(self) -> str:
        return f"<ClusterDescription of {len(self.devices)} devices>"

    def speed(self, source: str, target: str) -> Speed:
        """The speed of the link between two devices, by full name."""
        return self.speeds[int(self.kind_of[self.index[source], self.index[target]])]

    def seconds(self, source: str, target: str, size: float) -> float:
        """How long that many bytes take from one device to another."""
        speed = self.speed(source, target)
        return speed.latency + size / speed.bandwidth

    @classmethod
    def from_json(cls, text: str | bytes) -> ClusterDescription:
        """Reads a description. InvalidArgumentError says what in it is wrong."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as e:
            raise _error(f"the cluster description is not JSON: {e}") from None
        if not isinstance(data, dict) or not isinstance(data.get("devices"), list):
            raise _error('a cluster description is a JSON object with a list "devices"')
        _only(data, ("devices", "links", "same_task", "other_task"), "the description")
        devices = [d for item in data["devices"] for d in _read_devices(item)]
        if not isinstance(data.get("links", []), list):
            raise _error(f'"links" of a cluster is a list, but got {data["links"]!r}')
        links = [_read_link(item) for item in data.get("links", [])]
        same, other = (_read_speed(data.get(key), key) for key in ("same_task", "other_task"))
        return cls(devices, links, same, other)

    def to_json(self) -> str:
        """The description as JSON; from_json gives an equal one."""
        data: dict[str, Any] = {"devices": [_write_device(d) for d in self.devices]}
        if self.links:
            data["links"] = [
                {
                    "between": [link.source, link.target],
                    "latency": link.latency,
                    "bandwidth": link.bandwidth,
                    **({"one_way": True} if link.one_way else {}),
                }
                for link in self.links
            ]
        for key, speed in (("same_task", self.same_task), ("other_task", self.other_task)):
            if speed is not None:
                data[key] = {"latency": speed.latency, "bandwidth": speed.bandwidth}
        return json.dumps(data, indent=1)


def local_cluster(names: Sequence[str]) -> ClusterDescription:
    """The description of devices of which only the names are known: virtual CPUs share the cores."""
    return ClusterDescription([default_device(name) for name in names], (), LOCAL, NETWORK)


def default_device(name: str) -> DeviceInfo:
    """What is assumed of a device of which only the name is known."""
    kind = device_name.parse(name).device_type or "CPU"
    cpu = kind == "CPU"
    shares = f"cores of {device_name.DeviceSpec(*device_name.parse(name)[:3]).to_string()}" if cpu else ""
    flops, bandwidth = _DEFAULT_FLOPS.get(kind, 5e10), _DEFAULT_BANDWIDTH.get(kind, 1e10)
    return DeviceInfo(name, kind, flops, bandwidth=bandwidth, hosts=cpu, shares=shares)


def _error(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, text)


def _check(cluster: ClusterDescription) -> None:
    if not cluster.devices:
        raise _error("a cluster needs one device at least: its description has none")
    for device in cluster.devices:
        _check_device(device)
    if len(cluster.index) != len(cluster.devices):
        names = cluster.names
        double = next(n for n in names if names.count(n) > 1)
        raise _error(f"two devices of the cluster have the name '{double}': give each its own number or task")
    for link in cluster.links:
        what = f"the link between '{link.source}' and '{link.target}'"
        _check_speed(link, what)
        for end in (link.source, link.target):
            try:
                known = any(device_name.is_compatible(end, d.name) for d in cluster.devices)
            except ValueError as e:
                raise _error(f"{what}: {e}") from None
            if not known:
                raise _error(
                    f"{what}: no device of the cluster matches '{end}'. The devices are "
                    f"{some(cluster.names)}"
                )
    for key, speed in (("same_task", cluster.same_task), ("other_task", cluster.other_task)):
        if speed is not None:
            _check_speed(speed, f"'{key}'")


def _check_device(device: DeviceInfo) -> None:
    try:
        parsed = device_name.parse(device.name)
    except ValueError as e:
        raise _error(f"device '{device.name}': {e}") from None
    if None in parsed:
        missing = [part for part, value in parsed._asdict().items() if value is None]
        raise _error(
            f"device '{device.name}': its name leaves open {', '.join(missing)}; a device is named in full, "
            "such as '/job:worker/replica:0/task:0/device:GPU:0'"
        )
    if parsed.device_type != device.type:
        raise _error(f"device '{device.name}' has the type '{device.type}', but its name says otherwise")
    for name, value in (
        ("flops", device.flops),
        ("bandwidth", device.bandwidth),
        *((f"flops_of {k}", v) for k, v in device.flops_of.items()),
    ):
        if not (_is_number(value) and value > 0):
            raise _error(f"device '{device.name}': its {name} must be a positive number, but is {value!r}")
    least = {"overhead": device.overhead, "memory": 0.0 if device.memory is None else device.memory}
    for name, value in least.items():
        if not (_is_number(value) and value >= 0):
            raise _error(f"device '{device.name}': its {name} must be 0 or more, but is {value!r}")
    unknown = set(device.flops_of) - set(DTYPE_CLASSES)
    if unknown:
        raise _error(
            f"device '{device.name}': flops_of has '{min(unknown)}'; there are {', '.join(DTYPE_CLASSES)}"
        )


def _check_speed(speed: Speed | Link, what: str) -> None:
    if not (_is_number(speed.latency) and speed.latency >= 0):
        raise _error(f"{what}: its latency must be 0 seconds or more, but is {speed.latency!r}")
    if not (_is_number(speed.bandwidth) and speed.bandwidth > 0):
        raise _error(
            f"{what}: its bandwidth must be a positive number of bytes per second, but is {speed.bandwidth!r}"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _link_kinds(cluster: ClusterDescription) -> tuple[np.ndarray[Any, Any], list[Speed]]:
    n = len(cluster.devices)
    speeds = [Speed(0.0, math.inf)]
    if n == 1:
        return np.zeros((1, 1), np.int32), speeds
    kinds = np.full((n, n), -1, np.int32)
    tasks = np.array(cluster.task_of)
    same = tasks[:, None] == tasks[None, :]
    for mask, speed in ((same, cluster.same_task), (~same, cluster.other_task)):
        if speed is not None:
            kinds[mask] = len(speeds)
            speeds.append(speed)
    matching: dict[str, np.ndarray[Any, Any]] = {}
    for link in reversed(cluster.links):  # the first that matches is written last
        sources = _matching(matching, link.source, cluster)
        targets = _matching(matching, link.target, cluster)
        kind = len(speeds)
        speeds.append(Speed(link.latency, link.bandwidth))
        kinds[np.ix_(sources, targets)] = kind
        if not link.one_way:
            kinds[np.ix_(targets, sources)] = kind
    np.fill_diagonal(kinds, 0)
    if kinds.min() < 0:
        a, b = (cluster.devices[int(i)].name for i in np.argwhere(kinds < 0)[0])
        tasks_of = [cluster.devices[cluster.index[name]].task for name in (a, b)]
        default = "same_task" if tasks_of[0] == tasks_of[1] else "other_task"
        raise _error(
            f"the cluster has no link from '{a}' to '{b}': add {{\"between\": [\"{a}\", \"{b}\"], "
            f'"latency": ..., "bandwidth": ...}} to its links, or a default for such pairs as "{default}"'
        )
    return kinds, speeds


def _matching(
    known: dict[str, np.ndarray[Any, Any]], partial: str, cluster: ClusterDescription
) -> np.ndarray[Any, Any]:
    found = known.get(partial)
    if found is None:
        exact = cluster.index.get(partial)
        names = cluster.names if exact is None else []
        found = known[partial] = np.array(
            [exact] if exact is not None
            else [i for i, n in enumerate(names) if device_name.is_compatible(partial, n)]
        )  # fmt: skip
    return found


def _only(item: Mapping[str, Any], allowed: Sequence[str], what: str) -> None:
    unknown = [key for key in item if key not in allowed]
    if unknown:
        raise _error(f"{what} has an unknown key '{unknown[0]}'; it may have {', '.join(allowed)}")


_DEVICE_KEYS = (
    "name", "type", "flops", "flops_of", "bandwidth", "overhead", "memory", "compiles", "hosts", "shares"
)  # fmt: skip


def _read_devices(item: Any) -> list[DeviceInfo]:
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        raise _error(f'a device of the cluster is an object with a "name", but got {item!r}')
    _only(item, _DEVICE_KEYS, f"device '{item['name']}'")
    if not isinstance(item.get("flops_of", {}), dict):
        raise _error(f"device '{item['name']}': flops_of is an object, but got {item['flops_of']!r}")
    made = []
    for name in _expand(item["name"]):
        try:
            name = device_name.merge("/replica:0", name)
            base = default_device(name)
        except ValueError as e:
            raise _error(f"device '{name}': {e}") from None
        made.append(DeviceInfo(**{**base.__dict__, **item, "name": name}))
    return made


def _expand(pattern: str) -> list[str]:
    """The names that a pattern with ranges stands for."""
    parts = _RANGE.split(pattern)
    ranges = [range(int(a), int(b) + 1) for a, b in zip(parts[1::3], parts[2::3], strict=True)]
    count = math.prod(map(len, ranges))
    if not 0 < count <= _MAX_DEVICES:
        raise _error(f"device '{pattern}' stands for {count} devices; it may be 1 to {_MAX_DEVICES}")
    fixed = parts[::3]
    return [
        "".join(itertools.chain(*zip(fixed, (*map(str, numbers), ""), strict=True)))
        for numbers in itertools.product(*ranges)
    ]


def _read_link(item: Any) -> Link:
    ends = item.get("between") if isinstance(item, dict) else None
    if not isinstance(ends, list) or len(ends) != 2 or not all(isinstance(e, str) for e in ends):
        raise _error(f'a link is an object with "between": [device, device], but got {item!r}')
    _only(item, ("between", "latency", "bandwidth", "one_way"), f"the link between {ends[0]} and {ends[1]}")
    try:
        source, target = (
            end if None in device_name.parse(end) else device_name.canonical(end) for end in ends
        )
    except ValueError as e:
        raise _error(f"the link between '{ends[0]}' and '{ends[1]}': {e}") from None
    return Link(source, target, item.get("latency", 0.0), item.get("bandwidth"), bool(item.get("one_way")))


def _read_speed(item: Any, key: str) -> Speed | None:
    if item is None:
        return None
    if not isinstance(item, dict):
        raise _error(f'"{key}" is an object with "latency" and "bandwidth", but got {item!r}')
    _only(item, ("latency", "bandwidth"), f"'{key}'")
    return Speed(item.get("latency", 0.0), item.get("bandwidth"))  # type: ignore[arg-type]


def _write_device(device: DeviceInfo) -> dict[str, Any]:
    base = default_device(device.name).__dict__
    kept = {k: v for k, v in device.__dict__.items() if k in ("name", "type", "flops") or v != base[k]}
    if "flops_of" in kept:
        kept["flops_of"] = dict(kept["flops_of"])
    return kept
