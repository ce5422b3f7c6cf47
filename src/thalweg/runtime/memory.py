"""Memory of devices while a traced step runs: what is alive after every node, and the peaks.

XLA's CPU client keeps no statistics, but it lists its living arrays. That list is the ground truth: it has
variables, constants and values under way, whoever made them. Two things are not in it and are added here:
temporaries of an executable while it runs, and NumPy arrays that kernels on the host put out.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import numpy as np

from thalweg.runtime.device import Device


class NodeMemory(NamedTuple):
    """Memory of a node's device: bytes of its outputs, of temporaries while it ran, and in use at its end."""

    outputs: int
    temporaries: int
    in_use: int


class MemoryMeter:
    """Follows the bytes in use of each device during one step. Thread-safe; 0.1 us an array and node."""

    def __init__(self, devices: Iterable[Device]) -> None:
        self._lock = threading.Lock()
        self._known: dict[int, tuple[weakref.ref[Any], str, int]] = {}
        self._gone: deque[int] = deque()  # filled by finalizers, at any moment
        devices = list(devices)
        self._names: dict[jax.Device, str] = {d.jax_device: d.name for d in devices if d.is_open}
        self._in_use: dict[str, int] = {d.name: 0 for d in devices}
        with self._lock:
            for client in {jax_device.client for jax_device in self._names}:
                self._find_new(client)
        #: bytes in use when the step began, by device
        self.before = dict(self._in_use)
        #: the most bytes in use during the step, by device
        self.peaks = dict(self._in_use)

    def after(self, device: Device, outputs: Iterable[Any], temporaries: int) -> NodeMemory:
        """A node has just run on a device. outputs: its values. temporaries: bytes that only it needed."""
        total = 0
        with self._lock:
            self._drain()
            if device.is_open:
                self._names.setdefault(device.jax_device, device.name)
                self._find_new(device.jax_device.client)
            for value in outputs:
                if isinstance(value, np.ndarray):
                    total += value.nbytes
                    owner = _owner(value)
                    if id(owner) not in self._known:
                        self._add(owner, device.name, owner.nbytes)
                elif isinstance(value, jax.Array):
                    total += value.nbytes
            in_use = self._in_use[device.name]
            for name, used in self._in_use.items():
                now = used + (temporaries if name == device.name else 0)
                if now > self.peaks[name]:
                    self.peaks[name] = now
        device.saw(in_use + temporaries)
        return NodeMemory(total, temporaries, in_use)

    def _find_new(self, client: Any) -> None:
        known = self._known
        alive = client.live_arrays()
        self._drain()  # an array may have got the identity of one that died before
        for array in alive:
            if id(array) not in known and not array.is_deleted():
                for jax_device in array.devices():
                    name = self._names.get(jax_device)
                    if name is not None:
                        self._add(array, name, array.nbytes)

    def _add(self, value: Any, name: str, nbytes: int) -> None:
        key, gone = id(value), self._gone
        self._known[key] = (weakref.ref(value, lambda _: gone.append(key)), name, nbytes)
        self._in_use[name] += nbytes

    def _drain(self) -> None:
        """Takes off what has died since."""
        while self._gone:
            _, name, nbytes = self._known.pop(self._gone.popleft())
            self._in_use[name] -= nbytes


def _owner(array: np.ndarray) -> np.ndarray:
    """The array whose memory this one shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
