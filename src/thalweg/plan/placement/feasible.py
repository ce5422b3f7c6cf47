"""Which types of device have a kernel for a node."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from thalweg.base import dtypes
from thalweg.graph.operation import Operation
from thalweg.graph.registry import OpRecord
from thalweg.kernel.convention import Kernel, Kind
from thalweg.plan.placement.cluster import DeviceInfo

#: kinds that every device serves: the executor itself does them
_ANYWHERE = frozenset((Kind.SOURCE, Kind.CONTROL, Kind.NOTHING, Kind.CLUSTER))
_COMPILED = frozenset((Kind.TRACEABLE, Kind.UPDATE))
#: what the executor does on the host, but may be asked for where XLA compiles, as in TensorFlow: the arrays
#: and stacks of a loop go with it (and become buffers where it is compiled)
_WITH_LOOPS = re.compile(r"(TensorArray|Stack(Push|Pop|Close)?(V2)?$|Where$)")
_HOST_TYPES = frozenset((dtypes.string, dtypes.variant))
#: arguments and results of a step, which cross as they are; what is fed has no kernel that matters
_PASSED = frozenset(("_Arg", "_Retval", "Placeholder", "PlaceholderV2"))

_variants: dict[tuple[int, int], tuple[OpRecord, OpRecord]] = {}


def kernel_on(op: Operation, device: DeviceInfo) -> Kernel | None:
    """The kernel that runs a node on such a device; None where it has none.

    A type's own kernels (graph.registry.register_kernel) come before XLA's.
    """
    own = _own_kernel(op, device.type)
    if own is not None:
        return own
    kernel: Kernel | None = op._record.kernel
    if kernel is None or device.hosts or op.type in _PASSED:
        return kernel
    if kernel.kind in _ANYWHERE:
        return None if _needs_host(op) else kernel
    if not device.compiles:
        return None
    if _goes_with_loops(op):
        return None if _needs_host(op) else kernel
    if kernel.kind not in _COMPILED:
        return None
    if kernel.compiles is not None and not kernel.compiles(op):
        return None
    return None if _needs_host(op) else kernel


def record_on(op: Operation, device: DeviceInfo) -> OpRecord:
    """The record of a node with the kernel that its device has; its own where that is the usual one."""
    record: OpRecord = op._record
    if not record.device_kernels:
        return record
    own = _own_kernel(op, device.type)
    if own is None or own is record.kernel:
        return record
    key = (id(record), id(own))
    found = _variants.get(key)
    if found is None or found[0] is not record:
        found = _variants[key] = (record, dataclasses.replace(record, kernel=own))
    return found[1]


def kernel_key(op: Operation) -> Any:
    """Nodes with equal keys have kernels on the same devices; None where that takes the node itself."""
    kernel = op._record.kernel
    if kernel is not None and kernel.compiles is not None:
        return None
    types = (*(t._dtype for t in op._inputs), *(t._dtype for t in op._outputs))
    return (op.type, types)


def kernel_types(op: Operation) -> str:
    """What is registered for an op, for messages: "CPU, XLA; TOY for float32"."""
    kernel: Kernel | None = op._record.kernel
    found = []
    if kernel is not None:
        found.append("CPU")
        traced = kernel.kind in _COMPILED and (kernel.compiles is None or kernel.compiles(op))
        if (traced or _goes_with_loops(op)) and not _needs_host(op):
            found.append("every type that XLA compiles for")
    for name, rows in op._record.device_kernels.items():
        for allowed, _ in rows:
            types = "" if allowed is None else " for " + ", ".join(sorted(d.name for d in allowed))
            found.append(name + types)
    return "; ".join(found) if found else "none"


def _goes_with_loops(op: Operation) -> bool:
    return _WITH_LOOPS.match(op.type) is not None


def _own_kernel(op: Operation, device_type: str) -> Kernel | None:
    rows = op._record.device_kernels.get(device_type) if op._record.device_kernels else None
    if not rows:
        return None
    dtype = _main_type(op)
    for allowed, kernel in rows:
        if allowed is None or dtype in allowed:
            return kernel  # type: ignore[no-any-return]
    return None


def _main_type(op: Operation) -> Any:
    """The element type that an op's kernels differ by: the attribute T, else that of its output."""
    for name in ("T", "dtype"):
        if name in op._attrs:
            return op._attrs[name]
    tensors = (*op._outputs, *op._inputs)
    return tensors[0]._dtype.base_dtype if tensors else None


def _needs_host(op: Operation) -> bool:
    """Whether a value of the node is one that only the host has (a handle to a variable isn't)."""
    return any(t._dtype.base_dtype in _HOST_TYPES for t in (*op._inputs, *op._outputs))
