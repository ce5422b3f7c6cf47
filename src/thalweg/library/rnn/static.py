"""Recurrent nets written out step by step in the graph: static_rnn and its like."""

from __future__ import annotations

import functools
from typing import Any

from thalweg.base import dtypes, nest
from thalweg.base.tensor_shape import unknown_shape
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.operation import Tensor
from thalweg.library import framework
from thalweg.library.array_ops import identity
from thalweg.library.array_ops import shape as shape_of
from thalweg.library.casting import cast
from thalweg.library.fill_ops import zeros
from thalweg.library.joining_ops import concat, reverse_sequence, stack, unstack
from thalweg.library.reduction_ops import reduce_max, reduce_min
from thalweg.library.rnn.cell_base import assert_like_rnncell, batch_shape, static_batch_shape
from thalweg.library.rnn.steps import cache_variables, initial_state_of, rnn_step, state_dtype
from thalweg.library.variable_scope import variable_scope


def static_rnn(
    cell: Any,
    inputs: Any,
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> Any:
    """Runs a cell over a list of inputs, one after the other: (list of outputs, final state).

    inputs: a list over time of tensors [batch, ...], or of nests of such.
    initial_state: in the structure of cell.state_size; default: zeros, of type `dtype`.
    sequence_length: how long each of the batch is: past its end a sequence's outputs are 0 and its state
        stays what it was; steps past the longest don't run.
    scope: the variable scope; default "rnn".
    Errors: TypeError for something that is no cell and inputs that are no list; ValueError for no inputs,
        unknown or differing sizes, and without initial_state and dtype.
    """
    assert_like_rnncell("cell", cell)
    _check_list(inputs)
    with variable_scope(scope or "rnn") as opened:
        cache_variables(opened)
        known_batch = _known_batch(inputs)
        batch_size = known_batch or shape_of(nest.flatten(inputs)[0])[0]
        state = initial_state_of(cell, initial_state, batch_size, dtype)
        if sequence_length is not None:
            lengths = convert_to_tensor(sequence_length, name="sequence_length")
            if lengths.shape.ndims not in (None, 1):
                raise ValueError("sequence_length must be a vector of length batch_size")
            kind = state_dtype(dtype, state)
            nothing = nest.map_structure(
                lambda size: _zero_output(batch_size, known_batch, size, kind), cell.output_size
            )
            lengths = cast(lengths, dtypes.int32)
            shortest, longest = reduce_min(lengths), reduce_max(lengths)
        outputs = []
        for time, given in enumerate(inputs):
            if time > 0:
                opened.reuse_variables()
            if sequence_length is None:
                output, state = cell(given, state)
            else:
                output, state = rnn_step(
                    time,
                    lengths,
                    shortest,
                    longest,
                    nothing,
                    state,
                    functools.partial(cell, given, state),
                )
            outputs.append(output)
        return outputs, state


def _check_list(inputs: Any) -> None:
    if not nest.is_nested(inputs):
        raise TypeError(f"inputs must be a sequence, got {inputs}")
    if not inputs:
        raise ValueError("inputs must not be empty")


def _known_batch(inputs: Any) -> int | None:
    """The batch size as the first input says it. ValueError where others differ, and for unknown depths."""
    flat = nest.flatten(inputs)
    if flat[0].shape.ndims == 1:
        return flat[0].shape.as_list()[0]
    first = flat[0].shape.with_rank_at_least(2)[0]
    for x in flat:
        shape = x.shape.with_rank_at_least(2)
        first.assert_is_compatible_with(shape[0])
        for i, size in enumerate(shape.as_list()[1:]):
            if size is None:
                raise ValueError(
                    f"Input size (dimension {i} of inputs) must be accessible via shape inference, but saw "
                    f"value None in {shape}."
                )
    return first.value


def _zero_output(batch_size: Any, known_batch: int | None, size: Any, kind: Any) -> Tensor:
    result = zeros(stack(batch_shape(batch_size, size)), kind)
    result.set_shape(static_batch_shape([known_batch], size))
    return result


def static_state_saving_rnn(
    cell: Any,
    inputs: Any,
    state_saver: Any,
    state_name: Any,
    sequence_length: Any = None,
    scope: Any = None,
) -> Any:
    """static_rnn that starts from a state that was saved, and saves its last: (list of outputs, state).

    state_saver: an object with `state(name)`, the tensor saved under a name, and `save_state(name, value)`,
        an operation that saves one. state_name: a name, or a tuple of names in the structure of
        cell.state_size.
    Errors: ValueError where the names' structure isn't the state's; those of static_rnn.
    """
    size = cell.state_size
    if nest.is_nested(size) != nest.is_nested(state_name):
        raise ValueError(
            f"state_name should be the same type as cell.state_size. state_name: {state_name}, "
            f"cell.state_size: {size}"
        )
    names = nest.flatten(state_name)
    if len(names) != len(nest.flatten(size)):
        raise ValueError(
            f"#elems(state_name) != #elems(state_size): {len(names)} vs. {len(nest.flatten(size))}"
        )
    start = nest.pack_sequence_as(size, [state_saver.state(name) for name in names])
    outputs, state = static_rnn(
        cell, inputs, initial_state=start, sequence_length=sequence_length, scope=scope
    )
    parts = nest.flatten(state)
    saved = [state_saver.save_state(name, part) for name, part in zip(names, parts, strict=True)]
    with framework.control_dependencies(saved):
        outputs[-1] = nest.map_structure(identity, outputs[-1])
        state = nest.map_structure(identity, state)
    return outputs, state


def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> Any:
    """static_rnn of one cell forwards and of another backwards: (list of outputs, state, state).

    Each output is the forward and the backward one side by side, at the time of their input. Variables are
    under "fw" and "bw" in the scope "bidirectional_rnn". Arguments and errors: static_rnn's.
    """
    assert_like_rnncell("cell_fw", cell_fw)
    assert_like_rnncell("cell_bw", cell_bw)
    _check_list(inputs)
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as scope_fw:
            output_fw, state_fw = static_rnn(
                cell_fw, inputs, initial_state_fw, dtype, sequence_length, scope=scope_fw
            )
        with variable_scope("bw") as scope_bw:
            backwards = _reversed(inputs, sequence_length)
            output_bw, state_bw = static_rnn(
                cell_bw, backwards, initial_state_bw, dtype, sequence_length, scope=scope_bw
            )
    output_bw = _reversed(output_bw, sequence_length)
    pairs = zip(nest.flatten(output_fw), nest.flatten(output_bw), strict=True)
    joined = [concat([fw, bw], 1) for fw, bw in pairs]
    return nest.pack_sequence_as(output_fw, joined), state_fw, state_bw


def _reversed(inputs: Any, lengths: Any) -> list[Any]:
    """A list over time the other way round; with lengths, each sequence within its own."""
    if lengths is None:
        return list(reversed(inputs))
    parts = [nest.flatten(x) for x in inputs]
    columns = []
    for sequence in zip(*parts, strict=True):
        shape = unknown_shape(sequence[0].shape.ndims)
        for x in sequence:
            shape = shape.merge_with(x.shape)
        turned = unstack(reverse_sequence(stack(sequence), lengths, seq_axis=0, batch_axis=1))
        for x in turned:
            x.set_shape(shape)
        columns.append(turned)
    rows = zip(*columns, strict=True)
    return [nest.pack_sequence_as(x, list(row)) for x, row in zip(inputs, rows, strict=True)]
