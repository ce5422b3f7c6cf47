"""What the loops over sequences share: batch sizes, types, steps that copy through finished sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thalweg.base import nest
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.convert import get_default_graph
from thalweg.graph.operation import Tensor
from thalweg.graph.shape_context import constant_value
from thalweg.graph.where import containing_while_context
from thalweg.library import framework
from thalweg.library.array_ops import shape as shape_of
from thalweg.library.cond_ops import cond
from thalweg.library.gathering_ops import where
from thalweg.library.scope_store import VariableScope
from thalweg.library.tensor_array import TensorArray


def cache_variables(scope: VariableScope) -> None:
    """Has variables read once, on their own device, unless this is in a loop or the scope says otherwise."""
    inside = containing_while_context(get_default_graph()._get_control_flow_context())
    if inside is None and scope.caching_device is None:
        scope.set_caching_device(lambda op: op.device)


def initial_state_of(cell: Any, initial_state: Any, batch_size: Any, dtype: Any) -> Any:
    """initial_state, or the cell's zero state. ValueError where neither it nor dtype is given."""
    if initial_state is not None:
        return initial_state
    if not dtype:
        raise ValueError("If there is no initial_state, you must give a dtype.")
    if getattr(cell, "get_initial_state", None) is not None:
        return cell.get_initial_state(inputs=None, batch_size=batch_size, dtype=dtype)
    return cell.zero_state(batch_size, dtype)


def state_dtype(explicit: Any, state: Any) -> Any:
    """The element type of outputs: the explicit one, else the state's. ValueError where a state has none or
    several."""
    if explicit is not None:
        return explicit
    kinds = [part.dtype for part in nest.flatten(state)]
    if not kinds:
        raise ValueError("Unable to infer dtype from empty state.")
    if any(kind != kinds[0] for kind in kinds):
        raise ValueError(
            "State has tensors of different inferred_dtypes. Unable to infer a single representative dtype: "
            f"{', '.join(k.name for k in kinds)}"
        )
    return kinds[0]


def batch_size_of(inputs: Sequence[Tensor]) -> Any:
    """The batch size of [time, batch, ...] inputs: an int where known, else a scalar tensor."""
    for tensor in inputs:
        shape = tensor.shape
        if shape.ndims is None:
            continue
        if shape.ndims < 2:
            raise ValueError(f"Expected input tensor {tensor.name} to have rank at least 2")
        known = shape.as_list()[1]
        if known is not None:
            return known
    return shape_of(inputs[0])[1]


def as_static(size: Any) -> Any:
    """A size that may be a tensor, as a shape."""
    if not isinstance(size, Tensor):
        return size
    value = constant_value(size)
    return TensorShape(None if value is None else value.tolist())


def copy_through(done: Tensor, old: Any, new: Any) -> Any:
    """old in the rows that are done, new in the others. TensorArrays and scalars: new."""
    if isinstance(old, TensorArray) or old.shape.ndims == 0:
        return new
    with framework.colocate_with(new):
        return where(done, old, new)


def rnn_step(
    time: Any,
    sequence_length: Tensor,
    min_sequence_length: Tensor,
    max_sequence_length: Tensor,
    zero_output: Any,
    state: Any,
    call_cell: Callable[[], Any],
    skip_conditionals: bool = False,
) -> Any:
    """One step of the rows whose sequences go on: (output, state); the others give zeros, and keep theirs.

    Without skip_conditionals the step doesn't run where all sequences are over, and nothing is selected where
    none is.
    """
    flat_state, flat_zeros = nest.flatten(state), nest.flatten(zero_output)
    done = time >= sequence_length

    def called() -> tuple[list[Any], list[Any]]:
        output, following = call_cell()
        nest.assert_same_structure(zero_output, output)
        nest.assert_same_structure(state, following)
        return nest.flatten(output), nest.flatten(following)

    def selected(outputs: list[Any], states: list[Any]) -> list[Any]:
        old, new = flat_zeros + flat_state, outputs + states
        return [copy_through(done, o, n) for o, n in zip(old, new, strict=True)]

    def stepped() -> Any:
        outputs, states = called()
        return cond(time < min_sequence_length, lambda: outputs + states, lambda: selected(outputs, states))

    if skip_conditionals:
        results = selected(*called())
    else:
        results = cond(time >= max_sequence_length, lambda: flat_zeros + flat_state, stepped)
    outputs, states = results[: len(flat_zeros)], results[len(flat_zeros) :]
    for new, old in zip(outputs + states, flat_zeros + flat_state, strict=True):
        if not isinstance(new, TensorArray):
            new.set_shape(old.shape)
    return nest.pack_sequence_as(zero_output, outputs), nest.pack_sequence_as(state, states)
