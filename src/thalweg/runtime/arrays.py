"""Arrays on devices: NumPy in and out, and the devices themselves.

XLA on CPU reads aligned NumPy memory in place and hands out read-only views of its own. Both
are traps: the caller changes what he fed, a kept view makes donation copy. Here an array that
enters a device is a copy unless a caller explicitly lends it, and one that leaves is writable.

Private JAX API is used in the functions under "JAX internals", nowhere else.
"""

import ctypes
import functools
import sys
import threading
from dataclasses import dataclass
from typing import Any

import jax
import ml_dtypes
import numpy as np
from jax._src import core as _core
from jaxlib import _jax
from jaxlib import xla_client as _xc

# From this size on a NumPy argument is worth lending instead of copying, and a
# result worth handing over instead of copying.
BIG_BYTES = 1 << 16

# malloc.h: blocks from this size are mapped one by one; the heap's top is given back from this size.
_M_MMAP_THRESHOLD = -3
_M_TRIM_THRESHOLD = -1


@dataclass(frozen=True, slots=True)
class ArgSpec:
    """The shape and element type of one argument or result."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


def devices(kind: str = "cpu", count: int | None = None) -> tuple[jax.Device, ...]:
    """The devices of a kind ("cpu", "gpu", "tpu"); `count` of them for the CPU (default 1).

    CPU devices are thalweg's own, not those of `jax.devices()`: their client computes in
    the calling thread, and any number of them can be had without touching a global flag.
    Each count has one client, made when first asked for and kept for the process.
    """
    if kind == "cpu":
        with _clients_lock:
            return _cpu_devices(1 if count is None else count)
    found = tuple(jax.devices(kind))
    return found if count is None else found[:count]


def to_device(value: Any, device: jax.Device) -> jax.Array:
    """A copy of `value` (an array-like or a `jax.Array`) on `device`, dtype kept exactly.

    The result never shares memory with NumPy, so it can be kept, and donated. A `jax.Array`
    that is on `device` already is returned as it is.
    """
    if isinstance(value, jax.Array):
        if value.sharding is sharding_of(device) or value.devices() == {device}:
            return value
        if all(d.client is device.client for d in value.devices()):
            moved: jax.Array = jax.device_put(value, device)
            return moved
    array = np.asarray(value)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return put(array, aval_of(ArgSpec(array.shape, array.dtype)), device, borrow=False)


def to_host(array: jax.Array, *, give: bool = False) -> np.ndarray[Any, Any]:
    """`array` as a writable NumPy array that belongs to the caller. Waits until it is computed.

    With `give`, the caller promises that nothing else uses `array`, now or later (a result
    that is only fetched, never kept in a variable or fed on); then a big one on the CPU is
    handed over without a copy.
    """
    if give and array.nbytes >= BIG_BYTES and _on_cpu(array):
        return _hand_over(array)
    return np.array(array)


def _on_cpu(array: jax.Array) -> bool:
    return all(device.platform == "cpu" for device in array.devices())


# JAX internals: names that JAX doesn't promise to keep (as of jax 0.10.2);
# tests/runtime/test_xla.py fails first if one of them goes.

Array = _jax.ArrayImpl
_clients_lock = threading.Lock()


@functools.cache
def keep_heap() -> None:
    """Asks the C library to keep freed memory for the next step instead of giving it back to the system.

    XLA allocates a step's temporaries anew in each step: with glibc's defaults every page of them faults in
    again (12,000 faults, a third of the time of a small convnet's step). Process-wide, Linux with glibc only.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)


@functools.cache
def _cpu_devices(count: int) -> tuple[jax.Device, ...]:
    """A CPU client of our own. The public way (flags jax_cpu_enable_async_dispatch and
    jax_num_cpu_devices) is global and only works before JAX's first use."""
    keep_heap()
    client: Any = _xc.make_cpu_client(asynchronous=False, num_devices=count)
    return tuple(client.devices())


@functools.cache
def sharding_of(device: jax.Device) -> jax.sharding.SingleDeviceSharding:
    """One object per device, so that a call can compare by identity."""
    return jax.sharding.SingleDeviceSharding(device)


@functools.lru_cache(maxsize=1 << 14)
def aval_of(spec: ArgSpec) -> Any:
    """JAX's abstract value; one object per spec, so that a call can compare by identity."""
    return _core.ShapedArray(spec.shape, spec.dtype)


def put(array: np.ndarray[Any, Any], aval: Any, device: jax.Device, *, borrow: bool) -> jax.Array:
    """NumPy memory to a device: 2.4 us, where jax.device_put takes 17, and it keeps 64 bits
    outside an enable_x64 scope and lets us say whether the memory may be borrowed."""
    semantics = _jax.HostBufferSemantics
    result: jax.Array = _xc.batched_device_put(
        aval,
        sharding_of(device),
        [array],
        [device],
        True,
        False,
        semantics.ZERO_COPY if borrow else semantics.IMMUTABLE_ONLY_DURING_CALL,
        enable_x64=True,
    )
    return result


class _Lent:
    """The memory of a jax.Array as NumPy sees it, writable; keeps the array alive."""

    __slots__ = ("__array_interface__", "array")

    def __init__(self, array: jax.Array, data: int) -> None:
        self.array = array
        self.__array_interface__ = {
            "data": (data, False),
            "shape": array.shape,
            "typestr": f"|V{array.dtype.itemsize}",
            "version": 3,
        }


def memory_of(array: jax.Array) -> np.ndarray[Any, Any]:
    """The memory of an array on the CPU, to look at while nobody donates the array.

    Unlike np.asarray it leaves nothing behind in the array that would make a donation copy. It must not be
    used after the array was donated or dropped.
    """
    array.block_until_ready()
    interface = {
        "data": (array.unsafe_buffer_pointer(), True),
        "shape": array.shape,
        "typestr": f"|V{array.dtype.itemsize}",
        "version": 3,
    }
    return np.asarray(_Memory(interface)).view(array.dtype)


def as_lent(value: Any) -> Any:
    """An array to look at while nobody donates it: in place on the CPU, else a copy that nobody keeps."""
    if not isinstance(value, jax.Array):
        return value
    return memory_of(value) if _on_cpu(value) else np.array(value)


class _Memory:
    """Memory that somebody else keeps alive, as NumPy sees it."""

    __slots__ = ("__array_interface__",)

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


def _hand_over(array: jax.Array) -> np.ndarray[Any, Any]:
    """A writable NumPy array on the buffer of `array` (np.asarray and DLPack give read-only)."""
    array.block_until_ready()
    return np.asarray(_Lent(array, array.unsafe_buffer_pointer())).view(array.dtype)
