"""What the executor runs: one instruction per node outside clusters and per cluster.

An instruction takes its inputs from slots of the step's value list and puts its outputs into others.
Values in slots: jax.Array, np.ndarray (object arrays hold bytes), or a Handle for references and resources.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any, NamedTuple

import jax
import numpy as np

from thalweg.base import errors
from thalweg.graph.operation import Operation
from thalweg.kernel import checks
from thalweg.kernel.body import StateKey
from thalweg.kernel.convention import Kernel, Kind, as_array, group_inputs, kernel_attrs
from thalweg.kernel.step_resource import StepResource
from thalweg.kernel.trace import apply_kernel
from thalweg.kernel.trace_names import input_names
from thalweg.runtime.access import Access
from thalweg.runtime.arrays import to_device
from thalweg.runtime.cluster import ClusterRunner, uninitialized
from thalweg.runtime.failures import op_error
from thalweg.runtime.resources import Handle, Variable
from thalweg.runtime.step import KernelContext, Step
from thalweg.runtime.waiting import Done, Wait
from thalweg.runtime.worker import Worker

#: nanoseconds that stand for an instruction that hasn't run yet
UNKNOWN_COST = 1_000_000_000


class Instruction:
    """One node to run. Subclasses are final."""

    __slots__ = ("cost", "first_output", "freeable", "frees", "inputs", "op")

    is_async = False

    def __init__(self, op: Operation, inputs: list[int], first_output: int) -> None:
        self.op = op
        self.inputs = inputs
        self.first_output = first_output
        #: nanoseconds that it took when it last ran in a partition; before, for all that compute: much
        self.cost = 0
        #: of the inputs' slots, those that are freed after their last use
        self.freeable: tuple[int, ...] = ()
        #: of those, the ones that nobody needs after this instruction, in program order
        self.frees: tuple[int, ...] = ()

    def run(self, values: list[Any], step: Step) -> None:
        """Computes the outputs from the inputs, both in `values`."""
        raise NotImplementedError

    def traced(self, values: list[Any], step: Step) -> None:
        """run, and tells the step's recorder of it."""
        start = time.time_ns()
        try:
            self.run(values, step)
        finally:
            step.stats.record(self.op, start, self.outputs(values))

    def outputs(self, values: list[Any]) -> list[Any]:
        """What it put into `values`."""
        return values[self.first_output : self.first_output + len(self.op._outputs)]

    def put(self, values: list[Any], outputs: Any) -> None:
        """Stores the outputs."""
        at = self.first_output
        for output in outputs:
            values[at] = output
            at += 1


class RunCluster(Instruction):
    """A compiled cluster."""

    __slots__ = ("runner",)

    def __init__(self, op: Operation, inputs: list[int], first_output: int, worker: Worker) -> None:
        body = op._attrs["body"]
        # what comes after args and static args are tokens: they say when the cluster runs
        super().__init__(op, inputs[: len(body.args) + len(body.static_args)], first_output)
        self.cost = UNKNOWN_COST
        self.runner = ClusterRunner(op, worker)

    def run(self, values: list[Any], step: Step) -> None:
        self.put(values, self.runner.run([values[i] for i in self.inputs], step))


class RunNothing(Instruction):
    """NoOp."""

    __slots__ = ()

    def run(self, values: list[Any], step: Step) -> None:
        return


class _Binding(NamedTuple):
    """The variables that a node touches, by argument name, as they are in one generation of the resources."""

    generation: int
    variables: dict[str, Variable]
    access: Access


class RunKernel(Instruction):
    """A node outside clusters: a host or stateful kernel, or one too small to compile."""

    __slots__ = ("_binding", "attrs", "definition", "device", "flat", "kernel", "keys", "names", "worker")

    def __init__(
        self,
        op: Operation,
        inputs: list[int],
        first_output: int,
        worker: Worker,
        keys: dict[str, StateKey],
    ) -> None:
        super().__init__(op, inputs, first_output)
        self.cost = UNKNOWN_COST
        self.kernel: Kernel = op._record.kernel
        self.definition = op._record.definition
        self.attrs = kernel_attrs(self.kernel.fn_attrs, op._attrs)
        self.flat = not any(a.is_list for a in self.definition.inputs)
        self.worker = worker
        self.device = worker.device_of(op)
        self.keys = keys
        self.names = input_names(op)
        self._binding: _Binding | None = None

    def run(self, values: list[Any], step: Step) -> None:
        inputs = [np.asarray(v) if isinstance(v := values[i], np.generic) else v for i in self.inputs]
        if not self.keys:
            self.put(values, self._apply(inputs, step))
            return
        binding = self._bound()
        self.worker.access.acquire(binding.access, step)
        try:
            outputs = self._apply(self._with_state(inputs, binding.variables), step)
            outputs = self._store(outputs, binding.variables)
        finally:
            self.worker.access.release(binding.access)
        self.put(values, outputs)

    def _bound(self) -> _Binding:
        """The variables, looked up again after a container was cleared."""
        binding = self._binding
        if binding is None or binding.generation != self.worker.resources.generation:
            binding = self._binding = self._bind()
        return binding

    def _bind(self) -> _Binding:
        resources = self.worker.resources
        generation = resources.generation
        own = self.kernel.own_state
        variables = {
            name: resources.variable(key, own(self.op) if own is not None and not name else None)
            for name, key in self.keys.items()
        }
        written = [variables[n] for n in self.kernel.writes] + ([variables[""]] if own is not None else [])
        return _Binding(generation, variables, Access(list(variables.values()), written))

    def _with_state(self, inputs: list[Any], variables: dict[str, Variable]) -> list[Any]:
        """Variables' values where the kernel wants values; the variables where it wants them."""
        kernel = self.kernel
        args = {a.name: a for a in self.definition.inputs}
        result: list[Any] = [] if kernel.own_state is None else [np.asarray(variables[""].value)]
        for name, value in zip(self.names, inputs, strict=True):
            variable = variables.get(name)
            arg = args.get(name)
            if variable is None:
                result.append(value)
            elif kernel.overwrites and name in kernel.writes:
                result.append(None)
            elif name in kernel.writes or name in kernel.reads or not _wants_handle(arg):
                if not isinstance(value, Handle) and name not in kernel.writes:
                    result.append(value)  # what an update left
                    continue
                if variable.value is None:
                    raise uninitialized(variable, self.op)
                # a copy: a cluster of another step may donate the variable's buffer any time after this
                result.append(variable if kernel.lends else np.array(variable.value))
            else:
                result.append(variable)
        return result

    def _apply(self, inputs: list[Any], step: Step) -> list[Any]:
        kernel = self.kernel
        checks.set_op(self.op)
        try:
            if kernel.kind in (Kind.TRACEABLE, Kind.UPDATE):
                return self._apply_pure(kernel, inputs)
            arrays = [np.asarray(v) if isinstance(v, jax.Array) else v for v in inputs]
            if not self.flat:
                arrays = group_inputs(self.definition, self.op._attrs, arrays)
            if kernel.kind is Kind.HOST:
                result = kernel.fn(*arrays, **self.attrs)
            else:
                result = kernel.fn(KernelContext(self.op, step, self.worker), *arrays, **self.attrs)
            return outputs_of(self.op, result)
        except errors.OpError:
            raise
        except Exception as e:
            raise op_error(e, self.op) from e
        finally:
            checks.set_op(None)

    def _apply_pure(self, kernel: Kernel, inputs: list[Any]) -> list[Any]:
        if len(inputs) > 1 and any(isinstance(v, Handle) for v in inputs):
            inputs = [_boxed(v) for v in inputs]
        if kernel.host is not None and any(isinstance(v, jax.Array) for v in inputs):
            inputs = [np.asarray(v) if isinstance(v, jax.Array) else v for v in inputs]
        outputs = apply_kernel(kernel, self.definition, self.op._attrs, inputs)
        return [to_device(v, self.device.jax_device) if isinstance(v, jax.Array) else v for v in outputs]

    def _store(self, outputs: list[Any], variables: dict[str, Variable]) -> list[Any]:
        """Gives the variables their new values; returns the node's outputs."""
        if self.kernel.own_state is not None:
            variables[""].value = outputs.pop()
        if not self.kernel.writes:
            return outputs
        n = len(self.kernel.writes)
        for name, value in zip(self.kernel.writes, outputs[:n], strict=True):
            variable = variables[name]
            if isinstance(value, np.ndarray | np.generic):
                value = np.array(value)  # the caller may still change a fed array
                value.flags.writeable = False
            variable.value = value
            variable.escaped = not isinstance(value, np.ndarray)
        if len(self.op._outputs) == len(outputs) - n:
            return outputs[n:]
        return [variables[name].value for name in self.kernel.writes][: len(self.op._outputs)]


class RunAsync(Instruction):
    """A kernel that hands back a future, or its result where there is nothing to wait for."""

    __slots__ = ("attrs", "definition", "flat", "kernel", "worker")

    is_async = True

    def __init__(self, op: Operation, inputs: list[int], first_output: int, worker: Worker) -> None:
        super().__init__(op, inputs, first_output)
        self.kernel: Kernel = op._record.kernel
        self.definition = op._record.definition
        self.attrs = kernel_attrs(self.kernel.fn_attrs, op._attrs)
        self.flat = not any(a.is_list for a in self.definition.inputs)
        self.worker = worker

    def start(self, values: list[Any], step: Step) -> Future[Any] | Wait | Done:
        """Starts the kernel; the future's result is what a stateful kernel would return."""
        arrays = [values[i] for i in self.inputs]
        for i, value in enumerate(arrays):
            if isinstance(value, jax.Array | np.generic):
                arrays[i] = np.asarray(value)
        if not self.flat:
            arrays = group_inputs(self.definition, self.op._attrs, arrays)
        try:
            result = self.kernel.fn(KernelContext(self.op, step, self.worker), *arrays, **self.attrs)
        except errors.OpError:
            raise
        except Exception as e:
            raise op_error(e, self.op) from e
        return result if hasattr(result, "add_done_callback") else Done(result)


def _boxed(value: Any) -> Any:
    """A handle as an array without dimensions, for kernels that arrange arrays (a list of queues)."""
    if not isinstance(value, Handle):
        return value
    box = np.empty((), object)
    box[()] = value
    return box


def _wants_handle(arg: Any) -> bool:
    return arg is not None and (arg.is_ref or (arg.dtype is not None and arg.dtype.name == "resource"))


#: what kernels may put out that is no NumPy array
_AS_IT_IS = (jax.Array, Variable, StepResource)


def outputs_of(op: Operation, result: Any) -> list[Any]:
    """A kernel's result as one value per output tensor."""
    if result is None:
        return []
    if isinstance(result, list | tuple):
        return [v if isinstance(v, _AS_IT_IS) else as_array(v) for v in result]
    if isinstance(result, _AS_IT_IS):
        return [result]
    return [as_array(result)]


__all__ = ["Instruction", "RunAsync", "RunCluster", "RunKernel", "RunNothing", "outputs_of"]
