"""What a run tells of itself: times, memory, bytes between devices, and where nodes are."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from thalweg.graph.operation import Operation, Tensor
from thalweg.kernel.body import Body
from thalweg.kernel.convention import Kind
from thalweg.plan.pipeline import Plan
from thalweg.runtime.device import Device
from thalweg.runtime.memory import MemoryMeter, NodeMemory
from thalweg.runtime.worker import Worker


class _Row(NamedTuple):
    """One node that ran."""

    device: Device
    name: str
    label: str
    start: int
    end: int
    thread: int
    memory: NodeMemory


class StepRecorder:
    """Times every instruction of a step, and follows the memory of devices. Filled into a StepStats message
    afterwards. Thread-safe."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        _wait_for_earlier_steps(worker)
        self._rows: list[_Row] = []
        self._temporaries: dict[Operation, int] = {}
        self.memory = MemoryMeter(worker.devices.values())
        #: bytes that were sent, by sending and receiving device
        self.bytes_sent: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def ran(self, op: Operation, temporaries: int) -> None:
        """The executable of a cluster, which is about to be recorded, needed so many bytes for itself."""
        self._temporaries[op] = temporaries

    def sent(self, op: Operation, value: Any) -> None:
        """A Send has sent a value."""
        pair = (op._attrs["send_device"].decode(), op._attrs["recv_device"].decode())
        with self._lock:
            self.bytes_sent[pair] = self.bytes_sent.get(pair, 0) + _bytes_of(value)

    def record(self, op: Operation, start: int, outputs: Iterable[Any]) -> None:
        """A node that started then (in nanoseconds) and has just ended; what it put out. Waits for that."""
        outputs = list(outputs)
        for value in outputs:
            if isinstance(value, jax.Array) and not value.is_deleted():
                value.block_until_ready()
        end = time.time_ns()
        device = self._worker.device_of(op)
        memory = self.memory.after(device, outputs, self._temporaries.get(op, 0))
        label = _label(op, outputs)
        self._rows.append(_Row(device, op._name, label, start, end, threading.get_ident(), memory))

    def fill(self, step_stats: Any) -> None:
        """Writes what was recorded into a StepStats message, by device."""
        devices: dict[str, Any] = {}
        for device, name, label, start, end, thread, memory in self._rows:
            stats = devices.get(device.name)
            if stats is None:
                stats = devices[device.name] = step_stats.dev_stats.add(device=device.name)
            node = stats.node_stats.add(
                node_name=name,
                timeline_label=label,
                all_start_micros=start // 1000,
                op_start_rel_micros=0,
                op_end_rel_micros=(end - start) // 1000,
                all_end_rel_micros=(end - start) // 1000,
                all_start_nanos=start,
                op_end_rel_nanos=end - start,
                all_end_rel_nanos=end - start,
                scheduled_micros=start // 1000,
                thread_id=thread % (1 << 31),
            )
            node.memory.add(
                allocator_name=device.type.name.lower(),
                total_bytes=memory.outputs + memory.temporaries,
                peak_bytes=memory.outputs + memory.temporaries,
                live_bytes=memory.outputs,
                allocator_bytes_in_use=memory.in_use,
            )


def _wait_for_earlier_steps(worker: Worker) -> None:
    """Steps end before their updates of variables do: those aren't to count for what reads them now."""
    for client in {d.jax_device.client for d in worker.devices.values() if d.is_open}:
        for array in client.live_arrays():
            if not array.is_deleted():
                array.block_until_ready()


def _bytes_of(value: Any) -> int:
    """Bytes of a value on its way; of strings, what they hold."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return sum(len(v) for v in value.flat if isinstance(v, bytes | str))
    return int(getattr(value, "nbytes", 0))


_RECEIVED = re.compile(r"\[(\d+)B\] (.*) from (\S+) to (\S+)")


def bytes_sent(step_stats: Any) -> dict[tuple[str, str], int]:
    """Bytes received in a traced step, by sending and receiving device, read from its StepStats."""
    total: dict[tuple[str, str], int] = {}
    for device in step_stats.dev_stats:
        for node in device.node_stats:
            match = _RECEIVED.fullmatch(node.timeline_label)
            if match is not None:
                size, _, source, target = match.groups()
                total[source, target] = total.get((source, target), 0) + int(size)
    return total


def _label(op: Operation, outputs: Sequence[Any]) -> str:
    kernel = op._record.kernel
    if kernel is not None and kernel.kind is Kind.RECV:  # in TensorFlow's form
        size = sum(map(_bytes_of, outputs))
        attrs = {name: op._attrs[name].decode() for name in ("tensor_name", "send_device", "recv_device")}
        return "[{}B] {tensor_name} from {send_device} to {recv_device}".format(size, **attrs)
    inputs = ", ".join(t._op._name for t in op._inputs)
    body = op._attrs.get("body")
    if isinstance(body, Body):
        counts: dict[str, int] = {}
        for member in body.nodes:
            counts[member.type] = counts.get(member.type, 0) + 1
        common = sorted(counts.items(), key=lambda c: -c[1])[:4]
        return f"{op._name} = cluster of {len(body.nodes)} nodes ({', '.join(f'{n} {t}' for t, n in common)})"
    return f"{op._name} = {op.type}({inputs})"


def placement(plan: Plan, feeds: Sequence[Tensor]) -> Iterator[tuple[str, str, str]]:
    """Name, type and device of the caller's nodes in a plan: its own nodes are left out, feeds are as he
    knows them. Nodes that passes folded or merged into others have no device."""
    for op in plan.graph._ops:
        body = op._attrs.get("body")
        members = body.walk() if isinstance(body, Body) else (op,)
        for member in members:
            if member.type == "_Arg":
                fed = feeds[member._attrs["index"]]._op
                yield fed._name, fed.type, member._device
            elif not member._name.startswith("_") and not member.type.startswith("_"):
                yield member._name, member.type, member._device
