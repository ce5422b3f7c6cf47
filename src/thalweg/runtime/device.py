"""Devices: what a process computes on, by type; and the types there are.

CPU, GPU and TPU are built in. A program adds a type of its own in three steps: it describes the type
(`DeviceType`), registers it (`register_device_type`), and gives it kernels
(`graph.registry.register_kernel(op, type name, kernel)`). A session then has as many of it as
`ConfigProto.device_count` asks for. testing/devices.py is an example.

A type computes on a platform of JAX: that is where arrays of its devices are, and what compiles clusters
that are placed there. Several types may share one: each device still has a JAX device of its own, so that its
memory can be told apart.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
import pathlib
import random
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax

from thalweg.base import errors
from thalweg.plan.placement.cluster import LOCAL, NETWORK, ClusterDescription, DeviceInfo
from thalweg.runtime.arrays import devices as jax_devices

_log = logging.getLogger("thalweg")


@dataclass(frozen=True, slots=True)
class DeviceType:
    """A kind of device. The speeds are what the placer plans with until it has measured."""

    #: as in names of devices: "GPU"
    name: str
    #: JAX's platform that holds its arrays and compiles for it: "cpu", "gpu", "tpu"
    platform: str = "cpu"
    #: whether XLA's kernels serve it: every op that can be traced, over numbers. Else it has only what
    #: register_kernel gave it
    compiles: bool = False
    #: whether it runs what XLA can't: strings, queues, files, Python functions
    hosts: bool = False
    #: float32 operations per second
    flops: float = 1e10
    #: bytes per second between the device and its own memory
    bandwidth: float = 1e10
    #: seconds to start one kernel
    overhead: float = 5e-6
    #: bytes that one device holds; None: what the platform tells
    memory: int | None = None


_types: dict[str, DeviceType] = {}


def register_device_type(device_type: DeviceType) -> None:
    """Makes a type known. Sessions made from now on have such devices where their config asks for them.

    ValueError where another type has that name.
    """
    known = _types.setdefault(device_type.name, device_type)
    if known != device_type:
        raise ValueError(f"the device type {device_type.name} is registered already: {known}")


def device_types() -> dict[str, DeviceType]:
    """The types there are, by name."""
    return dict(_types)


# Speeds of the order of magnitude of current hardware: one CPU core, one data centre GPU, one TPU core.
register_device_type(DeviceType("CPU", "cpu", compiles=True, hosts=True, flops=5e10, bandwidth=1e10))
register_device_type(DeviceType("GPU", "gpu", compiles=True, flops=1.5e13, bandwidth=1e12, overhead=1e-5))
register_device_type(DeviceType("TPU", "tpu", compiles=True, flops=5e13, bandwidth=1e12, overhead=1e-5))


@dataclass(frozen=True)
class DeviceConfig:
    """What a ConfigProto asks of devices.

    count: how many of each type at most. The gpu_ fields are GPUOptions; see `_prepare_gpus`.
    """

    count: Mapping[str, int] = field(default_factory=dict)
    gpu_visible: str = ""
    gpu_memory_fraction: float = 0.0
    gpu_allow_growth: bool = False


class Device:
    """One device of a worker. Its JAX device is opened when first used."""

    def __init__(self, name: str, type: DeviceType, index: int, jax_index: int, jax_count: int) -> None:
        """name: in full. jax_index, jax_count: which of how many JAX devices of the type's platform it is."""
        self.name = name
        self.type = type
        self.index = index
        #: tells this device from one of the same name in another process or session
        self.incarnation = random.SystemRandom().getrandbits(63) | 1
        self._jax_index = jax_index
        self._jax_count = jax_count
        self._jax: Any = None
        self._peak = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<Device {self.name}>"

    @property
    def jax_device(self) -> jax.Device:
        """The device of JAX that holds its arrays."""
        if self._jax is None:
            count = self._jax_count if self.type.platform == "cpu" else None
            self._jax = jax_devices(self.type.platform, count)[self._jax_index]
        found: jax.Device = self._jax
        return found

    @property
    def is_open(self) -> bool:
        """Whether its JAX device was asked for."""
        return self._jax is not None

    @functools.cached_property
    def memory_limit(self) -> int:
        """Bytes that it can hold. Virtual devices of one CPU share its memory: each has that limit."""
        if self.type.memory is not None:
            return self.type.memory
        if self.type.platform == "cpu":
            return _host_memory()
        stats = self.jax_device.memory_stats() or {}
        return int(stats.get("bytes_limit", 0))

    @property
    def attributes(self) -> dict[str, str]:
        """What else is known of it: JAX's platform and what it calls this kind of device."""
        if self.type.platform == "cpu":
            return {"platform": "cpu", "kind": "cpu"}  # without opening it
        return {"platform": self.type.platform, "kind": self.jax_device.device_kind}

    @property
    def bytes_in_use(self) -> int:
        """Bytes of arrays on it, of all sessions of this process. Counted when asked: 1 us an array."""
        if self._jax is None:
            return 0
        stats = self._jax.memory_stats()
        if stats is not None:
            return int(stats["bytes_in_use"])
        used = bytes_by_device(self._jax.client).get(self._jax, 0)
        self.saw(used)
        return used

    @property
    def peak_bytes(self) -> int:
        """The most bytes in use so far that were seen: by the platform, else by traced steps (`saw`)."""
        stats = self._jax.memory_stats() if self._jax is not None else None
        return int(stats["peak_bytes_in_use"]) if stats is not None else self._peak

    def saw(self, used: int) -> None:
        """So many bytes were in use at some moment."""
        if used > self._peak:
            with self._lock:
                self._peak = max(self._peak, used)

    def reset_peak(self) -> None:
        """Forgets the peak (of devices whose platform doesn't keep its own)."""
        with self._lock:
            self._peak = 0


def bytes_by_device(client: Any) -> dict[jax.Device, int]:
    """Bytes of the living arrays of a JAX client."""
    used: dict[jax.Device, int] = {}
    for array in client.live_arrays():
        if not array.is_deleted():
            for device in array.devices():
                used[device] = used.get(device, 0) + array.nbytes
    return used


def make_devices(worker: str, config: DeviceConfig) -> dict[str, Device]:
    """The devices of a worker by full name: the CPUs, then other types. Only GPUs and TPUs are looked for.

    Errors: NotFoundError where no CPU is left.
    """
    counts = {type.name: _count(type, config) for type in _types.values()}
    if counts["CPU"] < 1:
        raise errors.NotFoundError(
            None, None, "No CPU devices are available in this process: ConfigProto.device_count asks for "
            f"{counts['CPU']} of them, and there must be one at least",
        )  # fmt: skip
    for name in config.count:
        if name not in _types:
            _log.warning(
                "device_count asks for the device type '%s', which isn't known (known: %s): ignored",
                name, ", ".join(_types),
            )  # fmt: skip
    totals: dict[str, int] = {}
    for type in _types.values():
        totals[type.platform] = totals.get(type.platform, 0) + counts[type.name]
    used = dict.fromkeys(totals, 0)
    made = {}
    for type in _types.values():
        for index in range(counts[type.name]):
            name = f"{worker}/device:{type.name}:{index}"
            made[name] = Device(name, type, index, used[type.platform], totals[type.platform])
            used[type.platform] += 1
    return made


def describe(devices: Iterable[Device]) -> ClusterDescription:
    """The devices of one process for the placer. Virtual CPUs share its cores, in turn."""
    cores = {"CPU": os.cpu_count() or 1}
    infos = [
        DeviceInfo(
            d.name, d.type.name, d.type.flops * cores.get(d.type.name, 1),
            bandwidth=d.type.bandwidth, overhead=d.type.overhead,
            memory=d.memory_limit or None, compiles=d.type.compiles, hosts=d.type.hosts,
            shares="cores" if d.type.name == "CPU" else "",
        )
        for d in devices
    ]  # fmt: skip
    return ClusterDescription(infos, (), LOCAL, NETWORK)


def _count(type: DeviceType, config: DeviceConfig) -> int:
    asked = config.count.get(type.name)
    if type.platform == "cpu":
        return max(0, asked if asked is not None else int(type.name == "CPU"))
    if asked is not None and asked <= 0:
        return 0
    found = _accelerators(type.platform, config)
    return found if asked is None else min(found, asked)


def _accelerators(platform: str, config: DeviceConfig) -> int:
    """How many devices of a platform JAX has. JAX opens its clients only where one may be there."""
    if not _may_have(platform):
        return 0
    if platform == "gpu":
        _prepare_gpus(config)
    try:
        return len(jax_devices(platform))
    except RuntimeError as e:  # the software is there, the device isn't
        _log.info("no %s: %s", platform.upper(), e)
        return 0


@functools.cache
def _may_have(platform: str) -> bool:
    """Whether JAX has the software for a platform, told without importing or opening any of it."""
    allowed = os.environ.get("JAX_PLATFORMS", "")
    if allowed and allowed.replace(" ", "") == "cpu":
        return False
    if platform == "tpu":
        return importlib.util.find_spec("libtpu") is not None or "TPU_LIBRARY_PATH" in os.environ
    return importlib.util.find_spec("jax_plugins") is not None


_gpus_prepared: list[DeviceConfig] = []


def _prepare_gpus(config: DeviceConfig) -> None:
    """Hands GPUOptions to JAX. The first session of a process that finds GPUs decides, as in TensorFlow:

    - visible_device_list is JAX's jax_cuda_visible_devices and jax_rocm_visible_devices;
    - allow_growth is XLA_PYTHON_CLIENT_PREALLOCATE=false;
    - per_process_gpu_memory_fraction is XLA_CLIENT_MEM_FRACTION.

    Where a program used JAX before, its client is open and keeps what it was opened with. A variable that is
    set in the environment wins. What GPUOptions has beyond these has no counterpart in JAX.
    """
    if _gpus_prepared:
        first = _gpus_prepared[0]
        asked = (config.gpu_visible, config.gpu_memory_fraction, config.gpu_allow_growth)
        if asked != (first.gpu_visible, first.gpu_memory_fraction, first.gpu_allow_growth):
            _log.warning(
                "gpu_options differ from those of the process's first session, which hold: %s", first
            )
        return
    _gpus_prepared.append(config)
    if config.gpu_visible:
        update: Any = jax.config.update
        for option in ("jax_cuda_visible_devices", "jax_rocm_visible_devices"):
            update(option, config.gpu_visible)
    if config.gpu_allow_growth:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if config.gpu_memory_fraction > 0 and "XLA_PYTHON_CLIENT_MEM_FRACTION" not in os.environ:
        os.environ.setdefault("XLA_CLIENT_MEM_FRACTION", str(config.gpu_memory_fraction))


@functools.cache
def _host_memory() -> int:
    """Bytes of memory that this process may use: the machine's, or its control group's limit."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = pathlib.Path(file).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            limits.append(int(text))
    return min(limits)


__all__ = [
    "Device",
    "DeviceConfig",
    "DeviceType",
    "bytes_by_device",
    "describe",
    "device_types",
    "make_devices",
    "register_device_type",
]
