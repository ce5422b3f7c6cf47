"""Nodes that wait for others: no_op, group, tuple, with_dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base import nest
from thalweg.graph.composite import IndexedSlices, SparseTensor
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework
from thalweg.library.framework import name_scope


def no_op(name: str | None = None) -> Operation:
    """Does nothing; a place for control edges to meet."""
    return emit("NoOp", name=name)


def group(*inputs: Any, **kwargs: Any) -> Operation:
    """An operation that finishes when all inputs (nested structures of nodes, tensors, variables) have.

    name: the operation's name. Per device that inputs are on, one NoOp waits for those; one more for all.
    Errors: TypeError for what has no device, ValueError for unknown keyword arguments.
    """
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError("Unknown keyword arguments: " + ", ".join(kwargs))
    with name_scope(name, "group_deps", _known(inputs)) as scope:
        by_device: dict[str, list[Any]] = {}
        for element in nest.flatten(inputs):
            if not hasattr(element, "device"):
                raise TypeError(
                    f"Expected tf.Operation, tf.Tensor or tf.Variable in group, not {element!r} with type "
                    f"'{type(element)}'"
                )
            by_device.setdefault(element.device or "", []).append(element)
        if not by_device:
            return no_op(scope)
        if len(by_device) == 1:
            ((where, elements),) = by_device.items()
            return _no_op_after(elements, where, scope)
        parts = [_no_op_after(by_device[where], where, None) for where in sorted(by_device)]
        with framework.control_dependencies(parts):
            return no_op(scope)


def _known(values: Any) -> list[Any]:
    """What among nested values may tell the graph."""
    return [v for v in nest.flatten(values) if v is not None]


def _no_op_after(elements: Sequence[Any], device: str, name: str | None) -> Operation:
    elements = [e.values if isinstance(e, IndexedSlices | SparseTensor) else e for e in elements]
    with framework.control_dependencies(elements), framework.device(device):
        return no_op(name)


def with_dependencies(dependencies: Sequence[Any], output_tensor: Any, name: str | None = None) -> Any:
    """`output_tensor` (a Tensor or IndexedSlices), available only once `dependencies` have run."""
    with (
        name_scope(name, "control_dependency", [*dependencies, output_tensor]) as scope,
        framework.colocate_with(output_tensor),
        framework.control_dependencies(dependencies),
    ):
        if isinstance(output_tensor, IndexedSlices):
            values = emit("Identity", output_tensor.values, name=scope)
            return IndexedSlices(values, output_tensor.indices, output_tensor.dense_shape)
        return emit("Identity", output_tensor, name=scope)


def tuple(
    tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] | None = None
) -> list[Any]:
    """The same tensors (None stays None), each available only once all of them, and control_inputs, are.

    Errors: ValueError without any tensor or operation, TypeError for other control inputs.
    """
    with name_scope(name, "tuple", tensors):
        values = [t if _has_op(t) or t is None else convert_to_tensor(t) for t in tensors]
        gates = [_op_of(t) for t in values if t is not None]
        for c in control_inputs or ():
            if not isinstance(c, Tensor | Operation):
                raise TypeError(f"Control input must be Operation or Tensor: {c!r}")
            gates.append(_op_of(c))
        if not gates:
            raise ValueError(f"Must have at least one Tensor: {list(tensors)}")
        gate = group(*sorted(set(gates), key=lambda op: op._id))
        result: list[Any] = []
        for t in values:
            if isinstance(t, Operation):
                with framework.control_dependencies([gate]):
                    result.append(group(t))
            else:
                result.append(None if t is None else with_dependencies([gate], t))
        return result


def _has_op(value: Any) -> bool:
    return isinstance(value, Operation) or framework.is_tensor(value)


def _op_of(value: Any) -> Operation:
    return value if isinstance(value, Operation) else value.op
