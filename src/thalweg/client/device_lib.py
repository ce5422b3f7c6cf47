"""tensorflow.python.client.device_lib: the devices of this process, without a session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from thalweg.client.session import device_config
from thalweg.runtime.device import make_devices


@dataclass(frozen=True)
class LocalDevice:
    """A device, with the fields of TensorFlow's DeviceAttributes message."""

    name: str
    device_type: str
    memory_limit: int
    incarnation: int
    physical_device_desc: str = ""
    locality: dict[str, Any] = field(default_factory=dict)


def list_local_devices(session_config: Any = None) -> list[LocalDevice]:
    """The devices that a session with this ConfigProto would have. No CPU device is opened."""
    return [
        LocalDevice(
            d.name,
            d.type.name,
            d.memory_limit,
            d.incarnation,
            "" if d.type.hosts else f"device: {d.index}, name: {d.attributes['kind']}",
        )
        for d in make_devices("", device_config(session_config)).values()
    ]
