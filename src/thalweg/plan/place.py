"""Placement: every node gets a device. With one device, what is left to decide is whether it will do."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from thalweg.base import device_name
from thalweg.base.errors import InvalidArgumentError
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation

_log = logging.getLogger("thalweg")


def place(graph: Graph, devices: Sequence[str], soft: bool = False, log: bool = False) -> None:
    """Gives every node the full name of a device that meets its constraint.

    devices: the full names of those that exist, the default first. soft: where a constraint asks for a kind
    or number of device that doesn't exist in an existing task, another device of that task is taken.
    Errors: InvalidArgumentError that names the node, what it asks for, and what exists.
    """
    chosen: dict[str, str] = {}
    for op in graph._ops:
        asked = op._device
        device = chosen.get(asked)
        if device is None:
            device = chosen[asked] = _choose(op, asked, devices, soft)
        op._device = device
        if log:
            _log.info("%s: (%s): %s", op._name, op.type, device)


def _choose(op: Operation, asked: str, devices: Sequence[str], soft: bool) -> str:
    if not asked:
        return devices[0]
    for device in devices:
        if device_name.is_compatible(asked, device):
            return device
    if soft:
        wanted = device_name.DeviceSpec.from_string(asked)
        task = device_name.DeviceSpec(job=wanted.job, replica=wanted.replica, task=wanted.task).to_string()
        for device in devices:
            if not task or device_name.is_compatible(task, device):
                return device
    raise InvalidArgumentError(
        None,
        op,
        f"Cannot assign a device for operation {op._name} ({op.type}): it asks for '{asked}', which matches "
        f"none of the devices there are: {', '.join(devices)}. Ask for one of them"
        + ("." if soft else ", or set ConfigProto.allow_soft_placement."),
    )
