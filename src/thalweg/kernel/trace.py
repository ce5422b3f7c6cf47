"""Tracing: from the nodes of a Body to one pure function of arrays.

Values that follow from constants and shapes alone stay NumPy arrays while tracing, so shape arithmetic
folds away; everything else is a JAX tracer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.graph.operation import Operation, Tensor
from thalweg.kernel import checks
from thalweg.kernel.body import Body, StateKey
from thalweg.kernel.convention import Kernel, Kind, as_array, group_inputs, kernel_attrs
from thalweg.kernel.trace_names import input_names

TracedFunction = Callable[..., list[Any]]


def body_function(body: Body, static_values: Sequence[np.ndarray]) -> TracedFunction:
    """The pure function of a body.

    Takes the args, then the state that is read (in order of body.reads). Returns the results, then the
    state that is written (in order of body.writes), then, where some kernel has conditions: a boolean
    vector of all of them, and the values that their messages need.
    """

    def function(*arrays: Any) -> list[Any]:
        with checks.collecting() as collected:
            outputs = interpret(body, static_values, arrays)
        if collected:
            _keep_old(body, outputs, arrays, collected)
            outputs.append(jnp.stack([jnp.asarray(c.ok).reshape(()) for c in collected]))
            for check in collected:
                outputs.extend(jnp.asarray(v) for v in check.values)
        return outputs

    return function


def _keep_old(
    body: Body, outputs: list[Any], arrays: Sequence[Any], collected: Sequence[checks.Check]
) -> None:
    """Puts the old values of body.kept in place of the new ones, unless all conditions hold."""
    if not body.kept:
        return
    ok = jnp.stack([jnp.asarray(c.ok).reshape(()) for c in collected]).all()
    for key in body.kept:
        at = len(body.results) + body.writes.index(key)
        old = arrays[len(body.args) + body.reads.index(key)]
        if outputs[at].shape == old.shape and outputs[at].dtype == old.dtype:
            outputs[at] = lax.select(lax.broadcast(ok, old.shape), jnp.asarray(outputs[at]), old)


def body_checks(
    body: Body, static_values: Sequence[np.ndarray], specs: Sequence[jax.ShapeDtypeStruct]
) -> list[checks.Check]:
    """The conditions of a body, in order, found by tracing it once more without compiling."""
    found: list[checks.Check] = []

    def function(*arrays: Any) -> list[Any]:
        with checks.collecting() as collected:
            interpret(body, static_values, arrays)
        found.extend(collected)
        return []

    jax.eval_shape(function, *specs)
    return found


def interpret(
    body: Body, static_values: Sequence[Any], arrays: Sequence[Any], as_known: bool = False
) -> list[Any]:
    """Calls the kernels of a body in order: its results, then the state that is written.

    arrays: the args, then the state that is read. as_known: results that are known stay NumPy arrays.
    """
    env: dict[Tensor, Any] = dict(zip(body.args, arrays, strict=False))
    env.update(zip(body.static_args, static_values, strict=True))
    for op in body.constants:
        env[op._outputs[0]] = op._attrs["value"]
    state: dict[StateKey, Any] = dict(zip(body.reads, arrays[len(body.args) :], strict=True))
    with_constant: set[Tensor] = set()
    for op in body.nodes:
        checks.set_op(op)
        try:
            if op._outputs and op._outputs[0]._dtype.is_floating:
                _keep_as_written(op, env, with_constant)
            _run_node(op, env, state, body.state_of.get(op, {}))
        except Exception as e:
            e.add_note(f"while tracing {op.type} '{op.name}'")
            raise
    checks.set_op(None)
    outputs = [env[t] if as_known else _as_output(env[t], t) for t in body.results]
    outputs.extend(state[k] for k in body.writes)
    return outputs


#: where an operand is a constant, XLA regroups chains of these: (x + a) + b becomes x + (a + b)
_REGROUPED = frozenset(("Add", "AddV2", "Sub", "Mul", "Div", "RealDiv"))


#: XLA looks through these for operands to regroup
_REARRANGING = frozenset(
    ("ExpandDims", "Identity", "Reshape", "ReverseV2", "Squeeze", "StopGradient", "Transpose")
)
#: XLA merges an op with operands of these types, which changes where floats overflow: log(exp(x)) becomes x,
#: exp(x) * exp(y) becomes exp(x + y), x / y / z becomes x / (y * z), sqrt(x * x) becomes abs(x)
_MERGED: dict[str, frozenset[str]] = {
    "Log": frozenset(("Exp", "Pow")),
    "Pow": frozenset(("Exp", "Pow")),
    "Mul": frozenset(("Exp",)),
    "Div": frozenset(("Div", "RealDiv")),
    "RealDiv": frozenset(("Div", "RealDiv")),
    "Sqrt": frozenset(("Mul", "Square")),
}


def _keep_as_written(op: Operation, env: dict[Tensor, Any], with_constant: set[Tensor]) -> None:
    """Makes XLA compute floats as the program wrote them."""
    merged = _MERGED.get(op.type)
    if merged is not None:
        for t in set(op._inputs):
            if _source(t).type in merged and not isinstance(env[t], np.ndarray | np.generic):
                env[t] = lax.optimization_barrier(env[t])  # type: ignore[no-untyped-call]
    if op.type in _REGROUPED:
        _keep_grouping(op, env, with_constant)
    elif op.type in _REARRANGING and op._inputs[0] in with_constant:
        with_constant.add(op._outputs[0])


def _source(t: Tensor) -> Operation:
    while t._op.type in _REARRANGING:
        t = t._op._inputs[0]
    return t._op


def _keep_grouping(op: Operation, env: dict[Tensor, Any], with_constant: set[Tensor]) -> None:
    """Keeps the order in which constants are added or multiplied: a small one must not be lost."""
    known = [isinstance(env.get(t), np.ndarray | np.generic) for t in op._inputs]
    if known.count(True) != 1:
        return
    other = op._inputs[known.index(False)]
    if other in with_constant:
        env[other] = lax.optimization_barrier(env[other])  # type: ignore[no-untyped-call]
        with_constant.discard(other)
    with_constant.add(op._outputs[0])


def _as_output(value: Any, tensor: Tensor) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return jnp.asarray(value, np.dtype(tensor._dtype.base_dtype.as_numpy_dtype))
    return value


def _run_node(
    op: Operation, env: dict[Tensor, Any], state: dict[StateKey, Any], keys: dict[str, StateKey]
) -> None:
    kernel: Kernel = op._record.kernel
    if kernel.kind is Kind.NOTHING:
        return
    definition = op._record.definition
    if not keys:
        values = [env[t] for t in op._inputs]
    else:
        values = _values_with_state(op, kernel, env, state, keys)
    outputs = apply_kernel(kernel, definition, op._attrs, values)
    if kernel.kind is Kind.UPDATE:
        outputs = _store(op, kernel, outputs, state, keys)
    for tensor, value in zip(op._outputs, outputs, strict=True):
        env[tensor] = value


def _values_with_state(
    op: Operation,
    kernel: Kernel,
    env: dict[Tensor, Any],
    state: dict[StateKey, Any],
    keys: dict[str, StateKey],
) -> list[Any]:
    """Input values; current state where an input is a reference, or a resource that is read or updated."""
    values: list[Any] = []
    for name, tensor in zip(input_names(op), op._inputs, strict=True):
        key = keys.get(name)
        if key is None:
            values.append(env[tensor])
        elif tensor in env and name not in kernel.writes:
            values.append(env[tensor])  # the output of an update: what it left, whatever came after
        elif kernel.overwrites and name in kernel.writes:
            values.append(None)
        else:
            values.append(state[key])
    if kernel.own_state is not None:
        values.insert(0, state[keys[""]])
    return values


def apply_kernel(kernel: Kernel, definition: Any, attrs: dict[str, Any], values: list[Any]) -> list[Any]:
    """Calls a kernel on values; on the host where all of them are known and it has a host form."""
    own = values[:1] if kernel.own_state is not None else []
    grouped = own + group_inputs(definition, attrs, values[len(own) :])
    if kernel.overwrites:
        grouped = [g for a, g in zip(definition.inputs, grouped, strict=True) if a.name not in kernel.writes]
    if kernel.host is not None and all(isinstance(v, np.ndarray | np.generic) for v in values):
        result = kernel.host(*grouped, **kernel_attrs(kernel.host_attrs, attrs))
        many = isinstance(result, list | tuple)
        return [as_array(v) if isinstance(v, bytes) else v for v in (result if many else [result])]
    result = kernel.fn(*grouped, **kernel_attrs(kernel.fn_attrs, attrs))
    return list(result) if isinstance(result, list | tuple) else [result]


def _store(
    op: Operation, kernel: Kernel, outputs: list[Any], state: dict[StateKey, Any], keys: dict[str, StateKey]
) -> list[Any]:
    """Puts new values into the state; returns the node's outputs."""
    if kernel.own_state is not None:
        state[keys[""]] = outputs[-1]
        return outputs[:-1]
    n = len(kernel.writes)
    for name, value in zip(kernel.writes, outputs[:n], strict=True):
        state[keys[name]] = value
    if len(op._outputs) == len(outputs) - n:  # a resource update, with outputs of its own or none
        return outputs[n:]
    return outputs[: len(op._outputs)]
