"""Names of devices: `/job:worker/replica:0/task:17/device:GPU:3`, whole or in part.

Graph building parses and merges names for every operation, so the functions on strings are cached.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

_CACHE_SIZE = 4096  # names in use at once: devices of a large cluster

# Types that have a short form such as "/gpu:0"; any other is written "/device:TYPE:0".
_SHORT_TYPES = frozenset({"CPU", "GPU", "TPU"})


class DeviceName(NamedTuple):
    """The parts of a device name; None is a part that the name leaves open."""

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None

    def __str__(self) -> str:
        return _format(self)


@lru_cache(_CACHE_SIZE)
def _format(name: DeviceName) -> str:
    text = ""
    if name.job is not None:
        text += f"/job:{name.job}"
    if name.replica is not None:
        text += f"/replica:{name.replica}"
    if name.task is not None:
        text += f"/task:{name.task}"
    if name.device_type is not None:
        text += f"/device:{name.device_type}:{'*' if name.device_index is None else name.device_index}"
    return text


@lru_cache(_CACHE_SIZE)
def parse(name: str) -> DeviceName:
    """Returns the parts of a device name.

    Args:
      name: parts in any order, each "/job:NAME", "/replica:N", "/task:N", "/device:TYPE:N" or the short
        "/cpu:N", "/gpu:N", "/tpu:N". "*" for a value, or no number after a device type, leaves that open; ""
        leaves all open.

    Raises:
      ValueError: if a part is not of that form, or a device type is given twice. The message shows the name.
    """
    parts: dict[str, Any] = {}
    for item in name.split("/"):
        if not item:
            continue
        key, *values = item.split(":")
        if key == "job" and len(values) == 1 and values[0] and not any(char.isspace() for char in item):
            parts["job"] = None if values[0] == "*" else values[0]
        elif key in ("replica", "task") and len(values) == 1:
            parts[key] = _number(values[0], name, item)
        elif key == "device" and len(values) in (1, 2) and values[0]:
            _put_device(parts, name, values[0], _number(values[1], name, item) if len(values) == 2 else None)
        elif key.upper() in _SHORT_TYPES and len(values) <= 1:
            _put_device(parts, name, key, _number(values[0], name, item) if values else None)
        else:
            raise ValueError(
                f"Unknown attribute '{key}' is encountered while parsing the device spec: '{name}'. "
                "Write '/job:NAME', '/replica:N', '/task:N', '/device:TYPE:N', '/cpu:N', '/gpu:N', '/tpu:N'."
            )
    return DeviceName(**parts)


def _number(text: str, name: str, item: str) -> int | None:
    if text == "*":
        return None
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"'{text}' in '/{item}' is not a number while parsing the device spec: '{name}'")
    return int(text)


def _put_device(parts: dict[str, Any], name: str, device_type: str, index: int | None) -> None:
    if "device_type" in parts:
        raise ValueError(f"Multiple device types are not allowed while parsing the device spec: '{name}'.")
    parts["device_type"] = None if device_type == "*" else _canonical_type(device_type)
    parts["device_index"] = index


def _canonical_type(device_type: str) -> str:
    upper = device_type.upper()
    return upper if upper in _SHORT_TYPES else device_type


@lru_cache(_CACHE_SIZE)
def canonical(name: str) -> str:
    """Returns the name in its one long form: "/cpu:0" becomes "/device:CPU:0". ValueError as `parse`."""
    return _format(parse(name))


@lru_cache(_CACHE_SIZE)
def merge(outer: str, inner: str) -> str:
    """Returns the canonical name that a device scope `inner` inside a scope `outer` gives.

    Each part comes from `inner`, or from `outer` where `inner` leaves it open. ValueError as `parse`.
    """
    return _format(_merge(parse(outer), parse(inner)))


def _merge(outer: DeviceName, inner: DeviceName) -> DeviceName:
    return outer._replace(**{part: value for part, value in inner._asdict().items() if value is not None})


@lru_cache(_CACHE_SIZE)
def is_compatible(partial: str, full: str) -> bool:
    """Returns whether every part that `partial` names has the same value in `full`. ValueError as `parse`."""
    return all(want is None or want == have for want, have in zip(parse(partial), parse(full), strict=True))


class DeviceSpec:
    """A possibly partial device name as an object with parts that can be set (tf.DeviceSpec).

    A part that is None is left open.
    """

    __slots__ = ("_name",)

    def __init__(
        self,
        job: object = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        """Raises ValueError if a number isn't one."""
        self._name = _checked(job, replica, task, device_type, device_index)

    @classmethod
    def from_string(cls, spec: str | None) -> DeviceSpec:
        """Returns the spec of a device name. ValueError as `parse`."""
        return cls(*parse(spec or ""))

    def parse_from_string(self, spec: str | None) -> DeviceSpec:
        """Sets all parts from a device name and returns itself. ValueError as `parse`."""
        self._name = parse(spec or "")
        return self

    def to_string(self) -> str:
        """Returns the canonical name: "/job:ps/task:1/device:CPU:0"."""
        return _format(self._name)

    def merge_from(self, dev: DeviceSpec) -> None:
        """Takes over each part that `dev` gives."""
        self._name = _merge(self._name, dev._name)

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """Returns a new spec: this one with each part that `dev` gives."""
        return DeviceSpec(*_merge(self._name, dev._name))

    def replace(self, **parts: Any) -> DeviceSpec:
        """Returns a new spec with the parts given by name changed. TypeError for a name that is no part."""
        return DeviceSpec(**{**self._name._asdict(), **parts})

    @property
    def job(self) -> str | None:
        """The name of the job."""
        return self._name.job

    @job.setter
    def job(self, job: object) -> None:
        self._name = _checked(job, *self._name[1:])

    @property
    def replica(self) -> int | None:
        """The index of the replica."""
        return self._name.replica

    @replica.setter
    def replica(self, replica: int | None) -> None:
        self._name = self._name._replace(replica=_as_int(replica))

    @property
    def task(self) -> int | None:
        """The index of the task in its job."""
        return self._name.task

    @task.setter
    def task(self, task: int | None) -> None:
        self._name = self._name._replace(task=_as_int(task))

    @property
    def device_type(self) -> str | None:
        """The type, such as "GPU"."""
        return self._name.device_type

    @device_type.setter
    def device_type(self, device_type: str | None) -> None:
        self._name = self._name._replace(device_type=_as_type(device_type))

    @property
    def device_index(self) -> int | None:
        """The index among the devices of its type in one task."""
        return self._name.device_index

    @device_index.setter
    def device_index(self, device_index: int | None) -> None:
        self._name = self._name._replace(device_index=_as_int(device_index))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self._name == other._name

    def __hash__(self) -> int:
        """Follows the parts, as in TensorFlow: don't change a spec that is a key."""
        return hash(self._name)

    def __repr__(self) -> str:
        parts = ", ".join(f"{key}={value}" for key, value in self._name._asdict().items())
        return f"<DeviceSpec({parts})>"


def _as_type(value: Any) -> str | None:
    return None if value is None else _canonical_type(str(value))


def _as_int(value: Any) -> int | None:
    return None if value is None else int(value)


def _checked(job: object, replica: Any, task: Any, device_type: Any, device_index: Any) -> DeviceName:
    return DeviceName(
        None if job is None else str(job),
        _as_int(replica),
        _as_int(task),
        _as_type(device_type),
        _as_int(device_index),
    )
