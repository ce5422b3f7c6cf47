"""Running one _Cluster node: gather arguments and variables, call the executable, store what is new."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import jax
import numpy as np

from thalweg.base import errors
from thalweg.graph.operation import Operation
from thalweg.kernel.body import Body
from thalweg.kernel.loops import LoopChanges, eagerly
from thalweg.kernel.trace import body_checks, body_function
from thalweg.runtime import executables
from thalweg.runtime.access import Access
from thalweg.runtime.arrays import to_device
from thalweg.runtime.failures import op_error
from thalweg.runtime.picks import picks_of
from thalweg.runtime.resources import Variable
from thalweg.runtime.step import Step
from thalweg.runtime.worker import Worker
from thalweg.runtime.xla import ArgSpec, Executable

#: shapes that a runner remembers by itself; the store of executables knows more
KEPT_SHAPES = 256


class _Binding(NamedTuple):
    """The variables of a cluster as they are in one generation of the resources."""

    generation: int
    reads: list[Variable]
    writes: list[Variable]
    access: Access


class ClusterRunner:
    """Runs one cluster of a plan. Thread-safe: concurrent steps share it.

    The variables' access is held from reading the old values to storing the new ones, so steps over shared
    variables are serialisable: no update is lost, and nobody meets a donated buffer. It is not held while an
    executable is compiled.
    """

    def __init__(self, op: Operation, worker: Worker) -> None:
        self.op = op
        self.body: Body = op._attrs["body"]
        self.worker = worker
        self.device = worker.device_of(op).jax_device
        self.n_args = len(self.body.args)
        self.n_results = len(self.body.results)
        written = set(self.body.writes)
        self.written_reads = frozenset(i for i, k in enumerate(self.body.reads) if k in written)
        self.donate = tuple(self.n_args + i for i in sorted(self.written_reads))
        self._picks = picks_of(self.body, self.device)
        self._last: Executable | None = None
        self._by_shape: dict[Any, executables.Compiled] = {}
        self._lock = threading.Lock()
        self._binding = self._bind()

    def _bind(self) -> _Binding:
        """Looks the variables up; again after a container was cleared."""
        resources, body = self.worker.resources, self.body
        generation = resources.generation
        for key, initial in body.initial_state.items():
            resources.variable(key, initial)
        reads = [resources.variable(k) for k in body.reads]
        writes = [resources.variable(k) for k in body.writes]
        return _Binding(generation, reads, writes, Access(reads, writes))

    def run(self, args: list[Any], step: Step) -> list[Any]:
        """The results for these arguments (args, then static args). Raises what a kernel's condition says."""
        binding = self._binding
        if binding.generation != self.worker.resources.generation:
            binding = self._binding = self._bind()
        if self._picks is not None:
            picked = self._pick(binding, args, step)
            if picked is not None:
                return picked
        static = args[self.n_args :]
        arrays = args[: self.n_args] if static else args
        executable: Executable | _StepByStep | None = None if static else self._last
        manager, access = self.worker.access, binding.access
        while True:
            if executable is None:
                executable = self._next([*arrays, *self._present(binding)], static)
            manager.acquire(access, step)
            try:
                operands = [*arrays, *self._values(binding)]
                try:
                    outputs = executable(*operands)
                except Exception as e:
                    if not executable.fits(operands):
                        executable = None  # made for other shapes than these
                    elif not self._brought(arrays, binding):
                        raise op_error(e, self.op, self._lost(binding)) from e
                    continue
                if step.stats is not None:
                    for output in outputs:  # so that its time is its own, not that of who needs it
                        output.block_until_ready()
                    step.stats.ran(self.op, executable.temporary_bytes)
                return self._finish(outputs, binding.writes, operands, static)
            finally:
                manager.release(access)

    @property
    def picks_each(self) -> bool:
        """Whether `pick_each` may be called."""
        return self._picks is not None and self._picks.for_each(self.n_args)

    def pick_each(self, args: list[Any], step: Step) -> list[np.ndarray] | None:
        """Many runs at once: the arguments and results are batches. None where single runs are needed."""
        binding = self._binding
        if binding.generation != self.worker.resources.generation:
            binding = self._binding = self._bind()
        return self._pick(binding, args, step, each=True)

    def _pick(
        self, binding: _Binding, args: list[Any], step: Step, each: bool = False
    ) -> list[np.ndarray] | None:
        """The results without compiled code, or None where they need it."""
        assert self._picks is not None
        manager, access = self.worker.access, binding.access
        manager.acquire(access, step)
        try:
            values = [variable.value for variable in binding.reads]
            if any(value is None for value in values):
                return None
            return self._picks.run([*args[: self.n_args], *values], each)
        finally:
            manager.release(access)

    def _present(self, binding: _Binding) -> list[Any]:
        """The values of the variables that are read, for their shapes only: others may write them now."""
        values = [variable.value for variable in binding.reads]
        for variable, value in zip(binding.reads, values, strict=True):
            if value is None:
                raise uninitialized(variable, self._user_of(variable))
        return values

    def _values(self, binding: _Binding) -> list[Any]:
        """The values of the variables that are read, on the device. Called with the access."""
        values: list[Any] = []
        for i, variable in enumerate(binding.reads):
            value = variable.value
            if value is None:
                raise uninitialized(variable, self._user_of(variable))
            if type(value) is np.ndarray:
                value = variable.value = to_device(value, self.device)
            elif variable.escaped and i in self.written_reads:
                value = to_device(np.asarray(value), self.device)  # a copy that may be donated
            values.append(value)
        return values

    def _brought(self, arrays: list[Any], binding: _Binding) -> bool:
        """Brings arguments and variables to the device; whether some were on another one.

        Edges between devices end in a _Recv, so this is for what comes another way: through a staging area,
        or a variable whose nodes were placed elsewhere before the graph grew.
        """
        away = [i for i, a in enumerate(arrays) if self._is_away(a)]
        moved = [v for v in binding.reads if self._is_away(v.value)]
        for i in away:
            arrays[i] = to_device(arrays[i], self.device)
        for variable in moved:
            variable.value = to_device(variable.value, self.device)
        return bool(away or moved)

    def _is_away(self, value: Any) -> bool:
        return isinstance(value, jax.Array) and not value.is_deleted() and value.devices() != {self.device}

    def _lost(self, binding: _Binding) -> str:
        """What a failed run has cost: the variables whose buffers it was given to write into are lost."""
        gone = [v for v in binding.reads if isinstance(v.value, jax.Array) and v.value.is_deleted()]
        for variable in gone:
            variable.value = None
        return f". The values of {', '.join(v.name for v in gone)} are lost" if gone else ""

    def _user_of(self, variable: Variable) -> Operation:
        """The first node of the cluster that uses a variable."""
        users = (op for op in self.body.nodes if variable.key in self.body.state_of.get(op, {}).values())
        return next(users, self.op)

    def _next(self, arrays: list[Any], static: list[Any]) -> Executable | _StepByStep:
        """The executable for a run with values of these shapes, compiled where it isn't there."""
        statics = [np.asarray(v) for v in static]
        key = (
            tuple(a.shape for a in arrays),
            tuple((v.dtype.str, v.shape, v.tobytes()) for v in statics),
        )
        try:
            compiled = self._by_shape.get(key)
            if compiled is None:
                specs = tuple(ArgSpec(tuple(a.shape), np.dtype(a.dtype)) for a in arrays)
                compiled = executables.store.get(self.body, statics, specs, self.donate, self.device)
                self._remember(key, compiled)
            executable = compiled.next(self.body, statics)
        except errors.OpError:
            raise
        except LoopChanges:
            return _StepByStep(self.body, statics, self.device)
        except Exception as e:
            raise op_error(e, self._traced(e)) from e
        self._last = compiled.final
        return executable

    def _remember(self, key: Any, compiled: executables.Compiled) -> None:
        with self._lock:
            self._by_shape[key] = compiled
            count = len(self._by_shape)
            if count > KEPT_SHAPES:
                del self._by_shape[next(iter(self._by_shape))]
        if count == executables.CHURN:
            executables.warn_of_churn(self.body.nodes[0]._name, count, key[0])

    def _traced(self, error: Exception) -> Operation:
        """The node in which tracing failed: shapes that could only be known now don't fit."""
        names = [note.split("'")[1] for note in getattr(error, "__notes__", []) if "'" in note]
        by_name = {op._name: op for op in self.body.walk()}
        return next(
            (by_name[name] for name in names if name in by_name), self.op
        )  # the innermost comes first

    def _finish(self, outputs: list[Any], writes: Any, arrays: list[Any], static: list[Any]) -> list[Any]:
        n = self.n_results
        for i, variable in enumerate(writes):
            variable.value = outputs[n + i]
            variable.escaped = False
        extra = n + len(writes)
        if len(outputs) > extra:
            ok = np.asarray(outputs[extra])
            if not ok.all():
                self._fail(ok, outputs[extra + 1 :], arrays, static)
        return outputs[:n] if len(outputs) > n else outputs

    def _fail(self, ok: np.ndarray, values: list[Any], arrays: list[Any], static: list[Any]) -> None:
        """Raises for the first condition that doesn't hold."""
        struct: Any = jax.ShapeDtypeStruct
        specs = [struct(a.shape, a.dtype) for a in arrays]
        with jax.enable_x64(True):
            checks = body_checks(self.body, [np.asarray(v) for v in static], specs)
        at = 0
        for holds, check in zip(ok, checks, strict=True):
            n = len(check.values)
            if not holds:
                check.raise_with([np.asarray(v) for v in values[at : at + n]])
            at += n


class _StepByStep:
    """In place of an executable, where a loop in a cluster changes shapes: kernel by kernel."""

    temporary_bytes = 0

    def __init__(self, body: Body, statics: list[np.ndarray], device: Any) -> None:
        self._function = body_function(body, statics)
        self._device = device

    def __call__(self, *arrays: Any) -> list[Any]:
        with jax.enable_x64(True), jax.default_device(self._device), eagerly():
            return self._function(*(jax.device_put(a, self._device) for a in arrays))

    def fits(self, arrays: Any) -> bool:
        """Any shapes will do."""
        return True


def uninitialized(variable: Variable, op: Operation | None) -> errors.FailedPreconditionError:
    """The error of reading a variable that has no value."""
    return errors.FailedPreconditionError(
        None,
        op,
        f"Attempting to use uninitialized value {variable.name}: run its initializer first "
        "(tf.global_variables_initializer()), or restore it",
    )
