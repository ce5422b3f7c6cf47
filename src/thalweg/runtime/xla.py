"""The lowest layer between the runtime and XLA: a pure function becomes an executable.

`compile` turns a pure function of arrays into an `Executable`; a call of one costs
about 3 us, 0.8 us per array argument and result, and 2.5 us per NumPy argument.

Why not `jax.jit(f)(*args)` or `jit(f).lower().compile()(*args)`: both make 64-bit
NumPy arguments 32-bit outside an `enable_x64` scope (the second then fails), both may
alias the caller's NumPy memory while work is still going on, both run on a CPU client
that computes in other threads (20-30 us of hand-over for a small step), and neither
can be loaded from disk without pickle or without tracing again.

Private JAX API: jaxlib's client and LoadedExecutable (`compile`, `_load`, `Executable`), and
the functions under "JAX internals". Measured and tested on the CPU; other platforms take the
same path, untested.
"""

import functools
import hashlib
import json
import logging
import os
import platform
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import ml_dtypes
import numpy as np
from jax._src.interpreters import pxla as _pxla
from jaxlib import _jax
from jaxlib import xla_client as _xc
from jaxlib.version import __version__ as _jaxlib_version

from thalweg.runtime.arrays import BIG_BYTES, ArgSpec, Array, aval_of, put, sharding_of
from thalweg.runtime.executable_cache import Entry, ExecutableCache

__all__ = ["ArgSpec", "Executable", "Level", "compile", "load"]

_log = logging.getLogger(__name__)

Level = Literal["fast", "cheap"]

# What each level asks of the compiler. "cheap" compiles 2-6 times faster; steps full of matmuls
# and convolutions then run 2 times slower, pure elementwise or random code 10-20 times: for what
# runs once, or until the fast one is ready. No other option tried saves more than a few per cent
# at equal speed (jax 0.10.2).
_OPTIONS: dict[str, dict[Level, dict[str, str]]] = {
    "cpu": {
        # YNN multiplies matrices well; XLA's own convolutions use both cores, YNN's one.
        "fast": {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"},
        "cheap": {
            "xla_backend_optimization_level": "0",
            "xla_cpu_use_fusion_emitters": "False",
            "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
        },
    },
}

# XLA on CPU reads memory in place only if it starts on a multiple of this.
_ALIGNMENT = 64

# Part of every disk key: raise it when the meaning of an entry changes.
_FORMAT = 1


class Executable:
    """A compiled function of arrays on one device.

    A call takes one `np.ndarray` (or NumPy scalar) or one `jax.Array` on this device
    for each of `in_specs`, of exactly that shape and dtype, and returns a new
    `jax.Array` for each of `out_specs`. No result shares memory with an argument
    that wasn't donated, or with another result.

    A `jax.Array` at a position in `donate` is consumed: its buffer becomes a result's,
    and using it again raises. (If someone holds a NumPy view of it, XLA copies instead
    of reusing, and leaves the array usable; callers must not count on either.)
    `donate` lists only positions that a result could take over, so it may be shorter
    than what `compile` was given.

    NumPy arguments may be changed by the caller as soon as the call returns. On the CPU
    the computation runs in the calling thread (plus XLA's own pool for big kernels),
    with the GIL released, and is finished when the call returns. On other devices the
    call returns early. Thread-safe.

    Raises:
      TypeError, ValueError: an argument has another type, dtype, shape or device.
      jax.errors.JaxRuntimeError: XLA's own error, e.g. a consumed array.
    """

    __slots__ = (
        "__dict__", "_execute", "_handlers", "_loaded", "_params",
        "device", "donate", "in_specs", "out_specs",
    )  # fmt: skip

    def __init__(
        self,
        loaded: _jax.LoadedExecutable,
        device: jax.Device,
        in_specs: Sequence[ArgSpec],
        out_specs: Sequence[ArgSpec],
        donate: Sequence[int],
    ) -> None:
        self.device = device
        self.in_specs = tuple(in_specs)
        self.out_specs = tuple(out_specs)
        self.donate = tuple(donate)
        self._loaded = loaded
        self._execute = loaded.execute_sharded
        self._params = tuple(_Param(spec, device, i in self.donate) for i, spec in enumerate(in_specs))
        self._handlers = [_result_handler(spec, device) for spec in out_specs]

    def __call__(self, *args: Any) -> list[jax.Array]:
        buffers = list(args)
        borrowed = False
        try:
            for i, (arg, param) in enumerate(zip(args, self._params, strict=True)):
                if type(arg) is Array:
                    if arg.aval is not param.aval or arg._sharding is not param.sharding:
                        param.check(i, arg)
                else:
                    buffers[i], borrows = param.put(i, arg)
                    borrowed |= borrows
        except ValueError:
            if len(args) != len(self._params):
                raise TypeError(
                    f"the executable takes {len(self._params)} arguments, got {len(args)}"
                ) from None
            raise
        results: list[jax.Array] = self._execute(buffers).consume_with_handlers(self._handlers)
        if borrowed and results:
            # Inline execution has ended already; this makes the loan safe whatever XLA does.
            results[0].block_until_ready()
        return results

    def fits(self, args: Sequence[Any]) -> bool:
        """Whether arguments have the shapes and dtypes that this takes."""
        specs = [(a.shape, a.dtype) for a in args]
        return specs == [(spec.shape, spec.dtype) for spec in self.in_specs]

    @functools.cached_property
    def temporary_bytes(self) -> int:
        """Bytes that a call needs while it runs, beyond arguments and results. 80 us when first asked for."""
        try:
            return int(self._loaded.get_compiled_memory_stats().temp_size_in_bytes)
        except jax.errors.JaxRuntimeError:  # a platform that doesn't tell
            return 0

    def serialize(self) -> bytes:
        """The compiler's own bytes, for a client of the same version and machine."""
        return bytes(self._loaded.serialize())


def compile(
    fn: Callable[..., Sequence[Any]],
    in_specs: Sequence[ArgSpec],
    donate: Sequence[int] = (),
    *,
    device: jax.Device,
    level: Level = "fast",
    key: bytes | None = None,
    cache: ExecutableCache | None = None,
) -> Executable:
    """Compile `fn`, or load what an earlier process compiled under the same `key`.

    `fn` takes one traced array per spec and returns a flat list or tuple of arrays. It is
    traced at most once, with 64-bit types on in this scope only; no global JAX flag changes.

    `key` names the content: two calls with the same key, specs, donation, level, device kind
    and software must mean the same function. On a hit in `cache` neither tracing nor lowering
    happens. Custom calls into Python or C are stored by name, so they must be registered
    before the entry is loaded.

    Thread-safe; XLA compiles with the GIL released, so compiling in a background thread pays.
    Two threads that miss on one key both compile.

    Raises:
      NotImplementedError: `fn` calls back into Python (`pure_callback`, `jax.debug.print`): the
        code would point into this process. Such work is a host kernel.
    """
    in_specs = tuple(in_specs)
    donate = tuple(sorted(set(donate)))
    if donate and not 0 <= donate[0] <= donate[-1] < len(in_specs):
        raise ValueError(f"donate {donate} is out of range for {len(in_specs)} arguments")
    if key is not None and cache is not None:
        found = load(in_specs, donate, device=device, level=level, key=key, cache=cache)
        if found is not None:
            return found
    module, out_specs, taken = _lower(fn, in_specs, donate, device)
    loaded = device.client.compile_and_load(
        module,
        executable_devices=_xc.DeviceList((device,)),
        compile_options=_compile_options(device, level),
    )
    executable = Executable(loaded, device, in_specs, out_specs, taken)
    if key is not None and cache is not None:
        header = {
            "out_specs": [[list(spec.shape), spec.dtype.name] for spec in out_specs],
            "donate": list(taken),
        }
        cache.put(_full_key(key, in_specs, donate, device, level), header, executable.serialize())
    return executable


def load(
    in_specs: Sequence[ArgSpec],
    donate: Sequence[int] = (),
    *,
    device: jax.Device,
    level: Level,
    key: bytes,
    cache: ExecutableCache,
) -> Executable | None:
    """What `compile` put into the cache under the same arguments, or None. Nothing is compiled."""
    full_key = _full_key(key, in_specs, tuple(sorted(set(donate))), device, level)
    entry = cache.get(full_key)
    if entry is None:
        return None
    found = _load(entry, in_specs, device)
    if found is None:
        cache.remove(full_key)
    return found


class _Param:
    """How to bring one argument to the device."""

    __slots__ = ("aval", "device", "dtype", "lend", "shape", "sharding", "spec")

    def __init__(self, spec: ArgSpec, device: jax.Device, donated: bool) -> None:
        self.spec = spec
        self.shape = spec.shape
        self.dtype = spec.dtype
        self.device = device
        self.aval = aval_of(spec)
        self.sharding = sharding_of(device)
        # XLA may read the caller's memory in place if it is done with it when the call
        # returns (our CPU client) and if the buffer won't become a result.
        nbytes = int(np.prod(spec.shape, dtype=np.int64)) * spec.dtype.itemsize
        self.lend = device.platform == "cpu" and not donated and nbytes >= BIG_BYTES

    def put(self, index: int, arg: Any) -> tuple[jax.Array, bool]:
        """`arg` on the device, and whether the caller's memory is borrowed for it."""
        if not isinstance(arg, np.ndarray):
            if not isinstance(arg, np.generic):
                raise TypeError(
                    f"argument {index} must be a NumPy array or a jax.Array, got {type(arg).__name__}"
                )
            arg = np.asarray(arg)
        if arg.dtype != self.dtype or arg.shape != self.shape:
            raise ValueError(
                f"argument {index} must be {self.spec}, got {ArgSpec(arg.shape, arg.dtype)}"
                + ("" if arg.dtype.isnative else " in foreign byte order")
            )
        # Only memory that XLA can read in place is lent: it copies other memory, and when
        # it may, it does so in the background, after the call has returned.
        borrow = self.lend and arg.flags.c_contiguous and arg.__array_interface__["data"][0] % _ALIGNMENT == 0
        return put(arg, self.aval, self.device, borrow=borrow), borrow

    def check(self, index: int, arg: jax.Array) -> None:
        """Raise unless `arg` fits, though it was made elsewhere than by an Executable."""
        if arg.shape != self.shape or arg.dtype != self.dtype:
            raise ValueError(f"argument {index} must be {self.spec}, got {ArgSpec(arg.shape, arg.dtype)}")
        if arg.devices() != {self.device}:
            raise ValueError(
                f"argument {index} must be on {self.device} of its own client, is on "
                f"{arg.sharding}: bring it here with to_device"
            )


def _load(entry: Entry, in_specs: Sequence[ArgSpec], device: jax.Device) -> Executable | None:
    """The executable in a cache entry, or None if XLA won't have it (it gets compiled again)."""
    try:
        out_specs = [ArgSpec(tuple(shape), np.dtype(name)) for shape, name in entry.header["out_specs"]]
        donate = [int(i) for i in entry.header["donate"]]
        loaded = device.client.deserialize_executable(
            entry.payload,
            executable_devices=_xc.DeviceList((device,)),
            compile_options=_compile_options(device, "fast"),
        )
    except (KeyError, TypeError, ValueError, jax.errors.JaxRuntimeError) as error:
        _log.warning("an executable from the disk can't be used, so it is compiled: %s", error)
        return None
    return Executable(loaded, device, in_specs, out_specs, donate)


def _full_key(
    key: bytes,
    in_specs: Sequence[ArgSpec],
    donate: Sequence[int],
    device: jax.Device,
    level: Level,
) -> str:
    """Everything that the compiled bytes depend on, as a digest."""
    parts = {
        "format": _FORMAT,
        "key": key.hex(),
        "in": [str(spec) for spec in in_specs],
        "donate": list(donate),
        "level": level,
        "options": _OPTIONS.get(device.platform, {}).get(level, {}),
        "machine": _machine(device.platform, device.device_kind),
        "client": device.client.platform_version,
        "precision": str(jax.config.jax_default_matmul_precision),  # type: ignore[attr-defined]
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@functools.cache
def _machine(platform_name: str, device_kind: str) -> list[str]:
    """What the code is compiled by and for. XLA's flags are read from the environment by XLA."""
    lines: list[str] = []
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            wanted = ("model name", "flags", "Features", "CPU part")
            lines = sorted({line.strip() for line in file if line.startswith(wanted)})
    return [
        jax.__version__, _jaxlib_version, ml_dtypes.__version__, platform_name, device_kind,
        platform.system(), platform.machine(), os.environ.get("XLA_FLAGS", ""), *lines,
    ]  # fmt: skip


def _takers(
    in_specs: Sequence[ArgSpec], out_specs: Sequence[ArgSpec], donate: Sequence[int]
) -> tuple[int, ...]:
    """The donated positions for which a result of the same shape and dtype is left."""
    free = list(out_specs)
    taken = []
    for i in donate:
        if in_specs[i] in free:
            free.remove(in_specs[i])
            taken.append(i)
    return tuple(taken)


# JAX internals. Everything below leans on names that JAX doesn't promise to keep
# (as of jax 0.10.2); tests/runtime/test_xla.py fails first if one of them goes.


@functools.lru_cache(maxsize=1 << 14)
def _result_handler(spec: ArgSpec, device: jax.Device) -> Any:
    """Wraps an output buffer as jax.Array in C++ (0.3 us; the public ways take 1.3 us and more)."""
    return _pxla.global_aval_to_result_handler(aval_of(spec), sharding_of(device), True)


def _lower(
    fn: Callable[..., Sequence[Any]],
    in_specs: Sequence[ArgSpec],
    donate: Sequence[int],
    device: jax.Device,
) -> tuple[Any, list[ArgSpec], tuple[int, ...]]:
    """Trace and lower: the StableHLO module, the results' specs, the positions really donated.

    Public API but for `compile_args`, the only place that tells of callbacks (running code
    that has some without XLA's host callback plumbing is a segmentation fault).
    """
    sharding = sharding_of(device)

    def flat(*args: Any) -> list[Any]:
        return list(fn(*args))

    def traced(donated: tuple[int, ...]) -> Any:
        jitted = jax.jit(
            flat, in_shardings=sharding, out_shardings=sharding,
            donate_argnums=donated, keep_unused=True,
        )  # fmt: skip
        return jitted.trace(*structs)

    with jax.enable_x64(True):
        struct: Any = jax.ShapeDtypeStruct
        structs = [struct(spec.shape, spec.dtype) for spec in in_specs]
        trace = traced(())
        out_specs = [ArgSpec(tuple(o.shape), np.dtype(o.dtype)) for o in trace.out_info]
        taken = _takers(in_specs, out_specs, donate)
        if taken:
            trace = traced(taken)  # from JAX's cache: `fn` doesn't run again
        lowered = trace.lower()
        module = lowered.compiler_ir()
    details = lowered._lowering.compile_args
    if any(details[name] for name in ("ordered_effects", "unordered_effects", "keepalive", "host_callbacks")):
        raise NotImplementedError("a compiled function can't call back into Python")
    return module, out_specs, taken


def _compile_options(device: jax.Device, level: Level) -> Any:
    """Options of one executable; the public way passes through jit and its caches."""
    if level not in ("fast", "cheap"):
        raise ValueError(f"level must be 'fast' or 'cheap', got {level!r}")
    options = _xc.CompileOptions()
    options.num_replicas = 1
    options.num_partitions = 1
    options.device_assignment = _xc.DeviceAssignment.create(np.array([[device.id]]))
    options.env_option_overrides = list(_OPTIONS.get(device.platform, {}).get(level, {}).items())
    return options
