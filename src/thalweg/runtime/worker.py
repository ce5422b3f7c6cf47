"""A worker: devices, the resources that live there, and who may touch them."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import jax
import numpy as np

from thalweg.base import errors
from thalweg.graph.operation import Operation
from thalweg.plan.placement.cluster import ClusterDescription
from thalweg.runtime.access import AccessManager
from thalweg.runtime.arrays import to_device
from thalweg.runtime.device import Device, DeviceConfig, describe, make_devices
from thalweg.runtime.resources import ResourceManager
from thalweg.runtime.stateful import found, resource_of
from thalweg.runtime.threads import Threads


class Worker:
    """What steps of one session (or server) share on one machine.

    No CPU device is opened before its first use.
    """

    def __init__(
        self, name: str = "/job:localhost/replica:0/task:0", devices: DeviceConfig | None = None
    ) -> None:
        self.name = name
        self.resources = ResourceManager()
        self.access = AccessManager()
        #: for steps of several partitions
        self.threads = Threads()
        #: by full name, the default one first
        self.devices = make_devices(name, devices or DeviceConfig())
        self._constants: weakref.WeakValueDictionary[tuple[int, Device], jax.Array] = (
            weakref.WeakValueDictionary()
        )

    @property
    def device_names(self) -> list[str]:
        """The full names of the devices, the default one first."""
        return list(self.devices)

    @functools.cached_property
    def cluster(self) -> ClusterDescription:
        """The devices as the placer sees them."""
        return describe(self.devices.values())

    def device_of(self, op: Operation) -> Device:
        """The device that a node of a plan was placed on."""
        device = self.devices.get(op._device)
        if device is None:
            there = errors.some(self.device_names)
            raise errors.InternalError(
                None, op, f"'{op._name}' is placed on '{op._device}', but here are {there}"
            )
        return device

    def constant(self, array: np.ndarray, device: Device) -> jax.Array:
        """A constant of a plan on a device: one copy for all programs, while one of them holds it.

        The caller keeps `array` as long as the result: what is known of it goes by its identity.
        """
        key = (id(array), device)
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = to_device(array, device.jax_device)
        return known

    def close(self) -> None:
        """Forgets all resources, and ends the threads."""
        self.resources.clear()
        self.threads.close()

    def resource(self, handle: Any) -> Any:
        """The queue, barrier, accumulator or mutex behind a handle."""
        return resource_of(self.resources, handle)

    def own_resource(self, op: Operation) -> Any:
        """The resource that a node names by its attributes (a staging area)."""
        return found(self.resources, op)
