"""The ends of edges between devices, as instructions: a Send leaves its value in the step's rendezvous, a
Recv takes it from there and brings it to its device.

A value stays where it is until it is received: what nobody needs any more isn't moved, and the receiver's
thread does the work.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from thalweg.base import errors
from thalweg.graph.operation import Operation
from thalweg.kernel.body import StateKey
from thalweg.kernel.convention import Kind
from thalweg.runtime.arrays import BIG_BYTES, to_device
from thalweg.runtime.cluster import uninitialized
from thalweg.runtime.frames import Iteration
from thalweg.runtime.instructions import Instruction, RunAsync, RunKernel
from thalweg.runtime.rendezvous import DEAD, NO_LOOP, Key
from thalweg.runtime.resources import Handle
from thalweg.runtime.step import Step
from thalweg.runtime.waiting import Done, Wait
from thalweg.runtime.worker import Worker


def key_of(op: Operation) -> Key:
    """The key of a Send's or Recv's messages outside of loops. InvalidArgumentError where it can't be one."""
    attrs = op._attrs
    key = Key(
        attrs["send_device"].decode(),
        attrs["send_device_incarnation"],
        attrs["recv_device"].decode(),
        attrs["tensor_name"].decode(),
    )
    try:
        return key.check()
    except errors.InvalidArgumentError as e:
        raise errors.InvalidArgumentError(None, op, f"{op.type} '{op._name}': {e.message}") from None


class RunSend(Instruction):
    """A Send. It does no work: the value is handed on as it is."""

    __slots__ = ("_key", "_prefix", "recv_device")

    def __init__(self, op: Operation, inputs: list[int], first_output: int) -> None:
        super().__init__(op, inputs, first_output)
        key = key_of(op)
        self.recv_device = key.recv_device
        self._prefix = key.prefix
        self._key = self._prefix + NO_LOOP

    def run(self, values: list[Any], step: Step) -> None:
        self._put(self._key, values[self.inputs[0]], step)

    def send(self, iteration: Iteration, step: Step, dead: bool) -> None:
        """The same from an iteration of a loop. dead: there is no value."""
        key = f"{self._prefix}{iteration.frame.id}:{iteration.index}"
        self._put(key, DEAD if dead else iteration.values[self.inputs[0]], step)

    def _put(self, key: str, value: Any, step: Step) -> None:
        if step.stats is not None and value is not DEAD:
            step.stats.sent(self.op, value)
        if not step.rendezvous.put(key, value, self.op):
            step.parts.arrived(self.recv_device)


class RunRecv(RunAsync):
    """A Recv. It may be told that its value is dead."""

    __slots__ = ("_device", "_key", "_on_host", "_prefix")

    def __init__(self, op: Operation, inputs: list[int], first_output: int, worker: Worker) -> None:
        super().__init__(op, inputs, first_output, worker)
        key = key_of(op)
        self._prefix = key.prefix
        self._key = self._prefix + NO_LOOP
        self._device = worker.device_of(op)
        self._on_host = op.type == "_HostRecv"

    def start(self, values: list[Any], step: Step) -> Wait | Done:
        wait: Wait | Done = step.rendezvous.take(self._key, self.op)
        return wait

    def receive(self, iteration: Iteration, step: Step) -> Wait | Done:
        """The same for an iteration of a loop."""
        key = f"{self._prefix}{iteration.frame.id}:{iteration.index}"
        wait: Wait | Done = step.rendezvous.take(key, self.op)
        return wait

    def put(self, values: list[Any], outputs: Any) -> None:
        (value,) = outputs
        values[self.first_output] = self._moved(value) if isinstance(value, jax.Array) else value

    def _moved(self, value: jax.Array) -> Any:
        """An array where the users of this node take it.

        A small one in the host's memory stays there: the call that takes it brings it to its device for less
        than a transfer costs.
        """
        if self._on_host:
            return np.asarray(value)
        device = self._device.jax_device
        if value.nbytes < BIG_BYTES and all(d.platform == "cpu" for d in value.devices()):
            return np.asarray(value)
        return to_device(value, device)


class RunRead(RunKernel):
    """A variable that is read in order to be sent: copied once, to where it goes first."""

    __slots__ = ("_target",)

    def __init__(
        self,
        op: Operation,
        inputs: list[int],
        first_output: int,
        worker: Worker,
        keys: dict[str, StateKey],
    ) -> None:
        super().__init__(op, inputs, first_output, worker, keys)
        receiver = key_of(op._outputs[0]._consumers[0]).recv_device
        self._target = worker.devices.get(receiver, self.device)

    def run(self, values: list[Any], step: Step) -> None:
        if not isinstance(values[self.inputs[0]], Handle):  # what an update left
            super().run(values, step)
            return
        binding = self._bound()
        self.worker.access.acquire(binding.access, step)
        try:
            (variable,) = binding.variables.values()
            value = variable.value
            if value is None:
                raise uninitialized(variable, self.op)
            if isinstance(value, jax.Array):  # its buffer may be donated any time after this
                value = self._copy(value)
        finally:
            self.worker.access.release(binding.access)
        values[self.first_output] = value

    def _copy(self, value: jax.Array) -> Any:
        target = self._target.jax_device
        if value.nbytes < BIG_BYTES or value.devices() == {target}:
            return np.array(value)
        return to_device(value, target).block_until_ready()


def kernel_instruction(
    op: Operation, inputs: list[int], first_output: int, worker: Worker, keys: dict[str, StateKey]
) -> RunKernel:
    """The instruction of a node outside clusters."""
    users = op._outputs[0]._consumers if op._outputs else []
    only_sent = bool(users) and all(user._record.kernel.kind is Kind.SEND for user in users)
    reads = len(keys) == 1 and op.type in ("Identity", "ReadVariableOp")
    return (RunRead if only_sent and reads else RunKernel)(op, inputs, first_output, worker, keys)


__all__ = ["RunRead", "RunRecv", "RunSend", "kernel_instruction", "key_of"]
