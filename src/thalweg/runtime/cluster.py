"""Running one _Cluster node: gather arguments and variables, call the executable, store what is new."""

from __future__ import annotations

from typing import Any

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
from thalweg.runtime.picks import picks_of
from thalweg.runtime.resources import Variable
from thalweg.runtime.step import Step
from thalweg.runtime.worker import Worker
from thalweg.runtime.xla import ArgSpec, Executable


class ClusterRunner:
    """Runs one cluster of a plan. Thread-safe: concurrent steps share it.

    The variables' access is held from reading the old values to storing the new ones, so steps over shared
    variables are serialisable: no update is lost, and nobody meets a donated buffer.
    """

    def __init__(self, op: Operation, worker: Worker) -> None:
        self.op = op
        self.body: Body = op._attrs["body"]
        self.worker = worker
        self.device = worker.device
        body = self.body
        self.n_args = len(body.args)
        self.n_results = len(body.results)
        self.dtypes = [np.dtype(t._dtype.base_dtype.as_numpy_dtype) for t in body.args]
        written = set(body.writes)
        self.donate = tuple(self.n_args + i for i, k in enumerate(body.reads) if k in written)
        self.written_reads = {i for i, k in enumerate(body.reads) if k in written}
        self._picks = picks_of(body, self.device)
        self._last: Executable | None = None
        self._by_shape: dict[Any, executables.Compiled] = {}
        self._generation = -1
        self._bind()

    def _bind(self) -> None:
        """Looks the variables up; again after a container was cleared."""
        worker = self.worker
        self._generation = worker.resources.generation
        self.reads = [worker.variable(k) for k in self.body.reads]
        self.writes = [worker.variable(k) for k in self.body.writes]
        for key, initial in self.body.initial_state.items():
            variable = worker.variable(key)
            if variable.value is None:
                variable.value = initial
        self.access = Access(self.reads, self.writes)

    def run(self, args: list[Any], step: Step) -> list[Any]:
        """The results for these arguments (args, then static args). Raises what a kernel's condition says."""
        if self._generation != self.worker.resources.generation:
            self._bind()
        if self._picks is not None:
            picked = self._pick(args, step)
            if picked is not None:
                return picked
        static = args[self.n_args :]
        arrays = args[: self.n_args] if static else args
        if not self.access.all:
            return self._finish(self._call(arrays, static), (), arrays, static)
        manager, access = self.worker.access, self.access
        manager.acquire(access, step)
        try:
            arrays = arrays + self._values()
            outputs = self._call(arrays, static)
            return self._finish(outputs, self.writes, arrays, static)
        finally:
            manager.release(access)

    def _pick(self, args: list[Any], step: Step) -> list[Any] | None:
        """The results without compiled code, or None where they need it."""
        assert self._picks is not None
        manager, access = self.worker.access, self.access
        manager.acquire(access, step)
        try:
            values = [variable.value for variable in self.reads]
            if any(value is None for value in values):
                return None
            return self._picks.run([*args[: self.n_args], *values])
        finally:
            manager.release(access)

    def _values(self) -> list[Any]:
        values: list[Any] = []
        for i, variable in enumerate(self.reads):
            value = variable.value
            if value is None:
                raise uninitialized(variable, self.op)
            if type(value) is np.ndarray:
                value = variable.value = to_device(value, self.device)
            elif variable.escaped and i in self.written_reads:
                value = to_device(np.asarray(value), self.device)  # a copy that may be donated
            values.append(value)
        return values

    def _call(self, arrays: list[Any], static: list[Any]) -> list[Any]:
        last = self._last
        if last is not None and not static:
            try:
                return last(*arrays)
            except (ValueError, TypeError):
                pass  # other shapes than last time, or an error that comes again below
        try:
            compiled = self._compiled(arrays, static)
        except LoopChanges:
            return self._step_by_step(arrays, static)
        executable = compiled.next()
        self._last = compiled.final
        return executable(*arrays)

    def _step_by_step(self, arrays: list[Any], static: list[Any]) -> list[Any]:
        """What the executable would return, where a loop in it changes shapes: kernel by kernel."""
        with jax.enable_x64(True), jax.default_device(self.device), eagerly():
            function = body_function(self.body, [np.asarray(v) for v in static])
            return function(*(jax.device_put(a, self.device) for a in arrays))

    def _compiled(self, arrays: list[Any], static: list[Any]) -> executables.Compiled:
        statics = [np.asarray(v) for v in static]
        key = (
            tuple(a.shape for a in arrays),
            tuple((v.dtype.str, v.shape, v.tobytes()) for v in statics),
        )
        found = self._by_shape.get(key)
        if found is None:
            specs = tuple(ArgSpec(tuple(a.shape), np.dtype(a.dtype)) for a in arrays)
            try:
                found = executables.store.get(self.body, statics, specs, self.donate, self.device)
            except (errors.OpError, LoopChanges):
                raise
            except (TypeError, ValueError, NotImplementedError, AssertionError) as e:
                raise self._explain(e, specs) from e
            self._by_shape[key] = found
            if len(self._by_shape) == executables.CHURN:
                executables.warn_of_churn(self.body.nodes[0]._name, len(self._by_shape), key[0])
        return found

    def _explain(self, error: Exception, specs: tuple[ArgSpec, ...]) -> errors.OpError:
        """An error of tracing: shapes that could only be known now don't fit."""
        notes = getattr(error, "__notes__", [])
        names = [note.split("'")[1] for note in notes if "'" in note]  # the innermost node first
        by_name = {o._name: o for o in self.body.walk()}
        op = next((by_name[name] for name in names if name in by_name), self.op)
        text = f"{op.type} '{op._name}': {error}"
        kind = (
            errors.UnimplementedError
            if isinstance(error, NotImplementedError)
            else errors.InvalidArgumentError
        )
        return kind(None, op, text)

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


def uninitialized(variable: Variable, op: Operation | None) -> errors.FailedPreconditionError:
    """The error of reading a variable that has no value."""
    return errors.FailedPreconditionError(
        None,
        op,
        f"Attempting to use uninitialized value {variable.name}: run its initializer first "
        "(tf.global_variables_initializer()), or restore it",
    )
