"""A worker: a device, the resources that live there, and who may touch them."""

from __future__ import annotations

from typing import Any

from thalweg.graph.operation import Operation
from thalweg.kernel.body import StateKey
from thalweg.runtime.access import AccessManager
from thalweg.runtime.arrays import devices
from thalweg.runtime.resources import ResourceManager, Variable
from thalweg.runtime.stateful import found, resource_of


class Worker:
    """What steps of one session (or server) share on one machine. Opens its device when first used."""

    def __init__(self, name: str = "/job:localhost/replica:0/task:0") -> None:
        self.name = name
        self.resources = ResourceManager()
        self.access = AccessManager()
        self._device: Any = None

    @property
    def device(self) -> Any:
        """The device that runs clusters."""
        if self._device is None:
            self._device = devices("cpu")[0]
        return self._device

    @property
    def device_name(self) -> str:
        """The full name of the device."""
        return f"{self.name}/device:CPU:0"

    def variable(self, key: StateKey) -> Variable:
        """The variable, or a node's own state, of that key."""
        return self.resources.variable(key)

    def resource(self, handle: Any) -> Any:
        """The queue, barrier, accumulator or mutex behind a handle."""
        return resource_of(self.resources, handle)

    def own_resource(self, op: Operation) -> Any:
        """The resource that a node names by its attributes (a staging area)."""
        return found(self.resources, op)
