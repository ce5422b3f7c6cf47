"""Executables of cluster bodies: compiled once for each content and input shapes, in memory and on disk.

This file owns the policy for new shapes. What a body needs first is to run: the compiler's cheap level
makes an executable in a fraction of the time. What is run again gets the fast level, compiled on the side
while the second run goes on, and used from the third run on: always the same run, so that the same
program gives the same numbers however long compiling takes. What an earlier process compiled is on disk,
and used at once. Compilations are counted, and a program that churns shapes is told.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import logging
import os
import pathlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from thalweg.kernel.body import Body
from thalweg.kernel.trace import body_function
from thalweg.runtime.executable_cache import ExecutableCache
from thalweg.runtime.xla import ArgSpec, Executable, Level, compile, load

_log = logging.getLogger("thalweg")

#: executables kept in memory, all sessions together
MEMORY_LIMIT = 4096
#: compilations of one body for new shapes after which the program is told
CHURN = 20
#: runs at the cheap level
CHEAP_RUNS = 2


@dataclass(frozen=True, slots=True)
class _Target:
    """What an executable is made for. The body is not part of it: it would keep a whole graph alive."""

    content: bytes
    specs: tuple[ArgSpec, ...]
    donate: tuple[int, ...]
    device: jax.Device
    disk: ExecutableCache | None

    def load(self) -> Executable | None:
        """What an earlier process compiled at the fast level."""
        if self.disk is None:
            return None
        return load(
            self.specs, self.donate, device=self.device, level="fast", key=self.content, cache=self.disk
        )

    def compile(self, body: Body, static_values: Sequence[np.ndarray], level: Level) -> Executable:
        """The executable of a body that has this content."""
        function = body_function(body, static_values)
        return compile(
            function, self.specs, self.donate,
            device=self.device, level=level, key=self.content, cache=self.disk,
        )  # fmt: skip


class Compiled:
    """A body compiled for some input shapes: at the cheap level at first, then at the fast one."""

    __slots__ = ("_cheap", "_fast", "_lock", "_runs", "_target", "final")

    def __init__(self, target: _Target, body: Body, static_values: Sequence[np.ndarray]) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._runs = 0
        self._fast: Future[Executable] | None = None
        #: the executable at the fast level, once it is there to stay
        self.final: Executable | None = target.load()
        self._cheap = target.compile(body, static_values, "cheap") if self.final is None else None

    def next(self, body: Body, static_values: Sequence[np.ndarray]) -> Executable:
        """The executable for the next run. body, static_values: of the same content, to compile from."""
        if self.final is not None:
            return self.final
        with self._lock:
            self._runs += 1
            if self._runs > 1 and self._fast is None:
                self._fast = _background().submit(self._target.compile, body, static_values, "fast")
            cheap, fast = self._cheap, self._fast
            if cheap is not None and self._runs <= CHEAP_RUNS:
                return cheap
        assert fast is not None
        self.final = fast.result()
        self._cheap = None
        return self.final


class ExecutableStore:
    """Finds or makes executables. Thread-safe; two threads that want the same one compile it once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[Any, Compiled] = OrderedDict()
        self._making: dict[Any, threading.Event] = {}
        self._disk: ExecutableCache | None = None
        self._disk_set = False
        #: how many executables were asked for and not found in memory
        self.compiles = 0

    @property
    def disk(self) -> ExecutableCache | None:
        """The cache on disk: what use_disk said, else one in the user's cache folder."""
        with self._lock:
            if not self._disk_set:
                self._disk = _open_disk(default_directory())
                self._disk_set = True
            return self._disk

    def use_disk(self, directory: str | os.PathLike[str] | None, max_bytes: int = 1 << 30) -> None:
        """Keeps executables in `directory` from now on; None: nowhere."""
        disk = None if directory is None else ExecutableCache(directory, max_bytes)
        with self._lock:
            self._disk, self._disk_set = disk, True

    def forget(self) -> None:
        """Drops what is in memory (not what is on disk): for tests and benchmarks."""
        with self._lock:
            self._found.clear()

    def get(
        self,
        body: Body,
        static_values: Sequence[np.ndarray],
        specs: tuple[ArgSpec, ...],
        donate: tuple[int, ...],
        device: jax.Device,
    ) -> Compiled:
        """The executable of a body for these static values and input specs."""
        content = _content(body, static_values)
        ours = _is_ours(body)
        key = (content, specs, donate, device, None if ours else body)
        while True:
            with self._lock:
                found = self._found.get(key)
                if found is not None:
                    self._found.move_to_end(key)
                    return found
                making = self._making.get(key)
                if making is None:
                    self._making[key] = threading.Event()
                    break
            making.wait()
        try:
            target = _Target(content, specs, donate, device, self.disk if ours else None)
            made = Compiled(target, body, static_values)
            with self._lock:
                self.compiles += 1
                self._found[key] = made
                while len(self._found) > MEMORY_LIMIT:
                    self._found.popitem(last=False)
            return made
        finally:
            with self._lock:
                self._making.pop(key).set()


def default_directory() -> pathlib.Path:
    """Where executables are kept unless the program says otherwise: the user's cache folder (XDG)."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "thalweg" / "executables"


def _open_disk(directory: pathlib.Path) -> ExecutableCache | None:
    """The cache in a folder, or None where it can't be used: a program must run without it."""
    try:
        return ExecutableCache(directory, 1 << 30)
    except OSError as e:
        _log.info("executables are not kept on disk: %s", e)
        return None


_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _background() -> ThreadPoolExecutor:
    """The thread that compiles on the side; the process waits for it at exit (XLA can't be interrupted)."""
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(1, "thalweg-compile")
        return _pool


@functools.cache
def _kernel_sources() -> bytes:
    """A digest of the code of kernels: what was compiled from other kernels must not be found."""
    h = hashlib.blake2b(digest_size=20)
    for package in ("ops", "kernel"):
        folder = importlib.resources.files("thalweg").joinpath(package)
        for file in sorted(folder.iterdir(), key=lambda f: f.name):
            if file.name.endswith(".py"):
                h.update(file.name.encode())
                h.update(file.read_bytes())
    return h.digest()


#: modules whose code is part of the key, or goes with the version of JAX
_OURS = ("thalweg.ops.", "thalweg.kernel.", "jax")


def _is_ours(body: Body) -> bool:
    """Whether every kernel of a body is part of thalweg: only then its key says all of what it computes."""
    return all((op._record.kernel.fn.__module__ or "").startswith(_OURS) for op in body.walk())


def _content(body: Body, static_values: Sequence[np.ndarray]) -> bytes:
    h = hashlib.blake2b(body.key, digest_size=20)
    h.update(_kernel_sources())
    for value in static_values:
        h.update(f"{value.dtype}{value.shape}".encode())
        h.update(value.tobytes())
    return h.digest()


def warn_of_churn(name: str, count: int, shapes: Any) -> None:
    """Tells the user once that a part of his program is compiled again and again."""
    _log.warning(
        "the part of the graph round '%s' was compiled for %d different input shapes or static values "
        "(the last: %s). Each costs a compilation; pad inputs to a few shapes, or feed fixed batch sizes.",
        name, count, shapes,
    )  # fmt: skip


#: of the process: executables are cached by content across sessions and graphs
store = ExecutableStore()
