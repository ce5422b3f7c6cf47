"""Recurrent nets as loops of the graph: dynamic_rnn, bidirectional_dynamic_rnn, raw_rnn."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from thalweg.base import dtypes, nest
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.convert import constant, convert_to_tensor
from thalweg.graph.operation import Tensor
from thalweg.library import framework
from thalweg.library.array_ops import identity, rank, transpose
from thalweg.library.array_ops import shape as shape_of
from thalweg.library.casting import cast
from thalweg.library.check_ops import Assert
from thalweg.library.elementwise_ops import logical_not, logical_or, maximum, minimum
from thalweg.library.fill_ops import zeros
from thalweg.library.framework import name_scope
from thalweg.library.joining_ops import concat, reverse, reverse_sequence, stack
from thalweg.library.math_ops import equal
from thalweg.library.reduction_ops import reduce_all, reduce_max, reduce_min
from thalweg.library.rnn.cell_base import assert_like_rnncell, batch_shape, static_batch_shape
from thalweg.library.rnn.steps import (
    as_static,
    batch_size_of,
    cache_variables,
    copy_through,
    initial_state_of,
    rnn_step,
    state_dtype,
)
from thalweg.library.sequence_ops import range as range_of
from thalweg.library.tensor_array import TensorArray
from thalweg.library.variable_scope import variable_scope
from thalweg.library.while_ops import while_loop


def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> Any:
    """Runs a cell over sequences, in a loop: (outputs, final state).

    inputs: [batch, time, ...], or a nest of such; with time_major [time, batch, ...], which saves transposes.
        outputs come in the same order.
    sequence_length: how long each of the batch is, an integer vector: past its end a sequence's outputs are 0
        and its state stays what it was.
    initial_state: in the structure of cell.state_size; default: zeros, of type `dtype`.
    parallel_iterations: 32; swap_memory: accepted. scope: the variable scope; default "rnn".
    Errors: TypeError for something that is no cell; ValueError without initial_state and dtype, for inputs
        whose depth isn't known, whose times or batches differ, and for a sequence_length that is no vector;
        InvalidArgumentError at run time for one of another length than the batch.
    """
    assert_like_rnncell("cell", cell)
    with variable_scope(scope or "rnn") as opened:
        cache_variables(opened)
        flat = nest.flatten(inputs)
        if not time_major:
            flat = [_swapped(convert_to_tensor(x)) for x in flat]
        if sequence_length is not None:
            sequence_length = _checked_lengths(sequence_length)
        batch_size = batch_size_of(flat)
        state = initial_state_of(cell, initial_state, batch_size, dtype)
        if sequence_length is not None:
            with framework.control_dependencies([_has_shape(sequence_length, [batch_size])]):
                sequence_length = identity(sequence_length, name="CheckSeqLen")
        loop = _Loop(cell, nest.pack_sequence_as(inputs, flat), state, sequence_length, dtype)
        outputs, state = loop.run(parallel_iterations or 32, swap_memory)
        if not time_major:
            outputs = nest.map_structure(_swapped, outputs)
        return outputs, state


def _swapped(x: Tensor) -> Tensor:
    """x with its first two axes changed over."""
    static = x.shape
    if static.ndims is not None and static.ndims < 2:
        return x
    order = concat(([1, 0], range_of(2, rank(x))), axis=0)
    result = transpose(x, order)
    if static.ndims is not None:
        batch, time, *others = static.as_list()
        result.set_shape([time, batch, *others])
    return result


def _checked_lengths(sequence_length: Any) -> Tensor:
    lengths = cast(sequence_length, dtypes.int32)
    if lengths.shape.ndims not in (None, 1):
        raise ValueError(
            f"sequence_length must be a vector of length batch_size, but saw shape: {lengths.shape}"
        )
    return identity(lengths, name="sequence_length")


def _has_shape(x: Tensor, shape: list[Any]) -> Any:
    found, expected = shape_of(x), stack(shape)
    message = f"Expected shape for Tensor {x.name} is "
    return Assert(reduce_all(equal(found, expected)), [message, expected, " but saw shape: ", found])


class _Loop:
    """The loop of a dynamic_rnn over inputs [time, batch, ...]."""

    def __init__(
        self, cell: Any, inputs: Any, state: Any, sequence_length: Tensor | None, dtype: Any
    ) -> None:
        self._cell = cell
        self._inputs = inputs
        self._state = state
        self._lengths = sequence_length
        self._dtype = dtype
        self._flat = nest.flatten(inputs)
        self._sizes = nest.flatten(cell.output_size)

    def run(self, parallel_iterations: int, swap_memory: bool) -> Any:
        """Makes the loop: (outputs [time, batch, ...], final state)."""
        steps = shape_of(self._flat[0])[0]
        batch_size = batch_size_of(self._flat)
        known_steps, known_batch = self._check_inputs()
        zero_output = self._zero_output(batch_size)
        if self._lengths is not None:
            shortest, longest = reduce_min(self._lengths), reduce_max(self._lengths)
        else:
            shortest, longest = steps, steps
        time = constant(0, dtypes.int32, name="time")
        read, written = self._arrays(steps, known_batch)

        def step(time: Tensor, arrays: Any, state: Any) -> Any:
            given = [array.read(time) for array in read]
            for x, whole in zip(given, self._flat, strict=True):
                x.set_shape(whole.shape[1:])
            at_time = nest.pack_sequence_as(self._inputs, given)
            if self._lengths is None:
                output, state = self._cell(at_time, state)
            else:
                output, state = rnn_step(
                    time,
                    self._lengths,
                    shortest,
                    longest,
                    zero_output,
                    state,
                    functools.partial(self._cell, at_time, state),
                    skip_conditionals=True,
                )
            outputs = nest.flatten(output)
            arrays = tuple(a.write(time, o) for a, o in zip(arrays, outputs, strict=True))
            return time + 1, arrays, state

        bound = minimum(steps, maximum(1, longest))
        _, written, state = while_loop(
            cond=lambda time, *_: time < bound,
            body=step,
            loop_vars=(time, written, self._state),
            parallel_iterations=parallel_iterations,
            maximum_iterations=steps,
            swap_memory=swap_memory,
        )
        outputs = [array.stack() for array in written]
        for output, size in zip(outputs, self._sizes, strict=True):
            output.set_shape(static_batch_shape([known_steps, known_batch], size))
        return nest.pack_sequence_as(self._cell.output_size, outputs), state

    def _check_inputs(self) -> list[int | None]:
        """What is known of (time, batch)."""
        shapes = [x.shape.with_rank_at_least(3) for x in self._flat]
        first = shapes[0].as_list()[:2]
        for shape in shapes:
            if not shape[2:].is_fully_defined():
                raise ValueError(
                    "Input size (depth of inputs) must be accessible via shape inference, but saw value None "
                    f"in {shape}."
                )
            steps, batch = shape.as_list()[:2]
            if steps != first[0]:
                raise ValueError(
                    f"Time steps is not the same for all the elements in the input: {first[0]} and {steps}."
                )
            if batch != first[1]:
                raise ValueError(
                    f"Batch_size is not the same for all the elements in the input: {first[1]} and {batch}."
                )
        return first

    def _zero_output(self, batch_size: Any) -> Any:
        kind = state_dtype(self._dtype, self._state)
        flat = [zeros(stack(batch_shape(batch_size, size)), kind) for size in self._sizes]
        return nest.pack_sequence_as(self._cell.output_size, flat)

    def _arrays(self, steps: Tensor, known_batch: int | None) -> Any:
        """(the inputs as arrays over time, empty arrays for the outputs)."""
        with name_scope("dynamic_rnn") as base:
            pass
        kind = state_dtype(self._dtype, self._state)
        outputs = tuple(
            TensorArray(
                dtype=kind,
                size=steps,
                element_shape=TensorShape([known_batch]).concatenate(as_static(size)),
                tensor_array_name=f"{base}output_{i}",
            )
            for i, size in enumerate(self._sizes)
        )
        inputs = [
            TensorArray(
                dtype=x.dtype, size=steps, element_shape=x.shape[1:], tensor_array_name=f"{base}input_{i}"
            )
            for i, x in enumerate(self._flat)
        ]
        return [a.unstack(x) for a, x in zip(inputs, self._flat, strict=True)], outputs


def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> Any:
    """dynamic_rnn of one cell forwards and of another backwards: ((outputs, outputs), (state, state)).

    The backward outputs stand at the times of their inputs. Variables are under "fw" and "bw" in the scope
    "bidirectional_rnn". Arguments and errors: dynamic_rnn's.
    """
    assert_like_rnncell("cell_fw", cell_fw)
    assert_like_rnncell("cell_bw", cell_bw)
    time_axis, batch_axis = (0, 1) if time_major else (1, 0)

    def reversed_in_time(x: Any) -> Tensor:
        if sequence_length is None:
            return reverse(x, axis=[time_axis])
        return reverse_sequence(x, sequence_length, seq_axis=time_axis, batch_axis=batch_axis)

    def run(cell: Any, inputs: Any, initial_state: Any, scope: Any) -> Any:
        return dynamic_rnn(
            cell,
            inputs,
            sequence_length=sequence_length,
            initial_state=initial_state,
            dtype=dtype,
            parallel_iterations=parallel_iterations,
            swap_memory=swap_memory,
            time_major=time_major,
            scope=scope,
        )

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as scope_fw:
            output_fw, state_fw = run(cell_fw, inputs, initial_state_fw, scope_fw)
        with variable_scope("bw") as scope_bw:
            backwards = nest.map_structure(reversed_in_time, inputs)
            output_bw, state_bw = run(cell_bw, backwards, initial_state_bw, scope_bw)
    return (output_fw, nest.map_structure(reversed_in_time, output_bw)), (state_fw, state_bw)


# ---- raw_rnn ---------------------------------------------------------------------------------------------


def raw_rnn(
    cell: Any,
    loop_fn: Callable[[Any, Any, Any, Any], Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> Any:
    """Runs a cell in a loop that loop_fn steers: (TensorArrays of what was emitted, state, loop state).

    loop_fn(time, cell_output, cell_state, loop_state) returns (finished, next input, next cell state, what to
    emit, next loop state). It is called first with time 0 and None for the rest: it then gives the first
    input, the initial state, zeros in the structure of what will be emitted (None: as cell.output_size), and
    the first loop state (or None). `finished` is a boolean vector over the batch: rows that are finished emit
    zeros and keep their state; the loop ends when all are. Decoders of sequences are made of it.
    Errors: TypeError for something that is no cell or a loop_fn that can't be called; ValueError and
    TypeError where structures change.
    """
    assert_like_rnncell("cell", cell)
    if not callable(loop_fn):
        raise TypeError("loop_fn must be a callable")
    with variable_scope(scope or "rnn") as opened:
        cache_variables(opened)
        time = constant(0, dtypes.int32)
        finished, first_input, state, emitted, loop_state = loop_fn(time, None, None, None)
        stateless = loop_state is None
        if stateless:
            loop_state = constant(0, dtypes.int32)
        known_batch, batch_size = _batch_of(nest.flatten(first_input))
        nest.assert_same_structure(state, cell.state_size)
        state = nest.map_structure(convert_to_tensor, state)
        arrays, nothing = _emit_arrays(cell, state, emitted, known_batch, batch_size)

        def step(time: Tensor, finished: Tensor, given: Any, arrays: Any, state: Any, loop_state: Any) -> Any:
            output, cell_state = cell(given, state)
            nest.assert_same_structure(state, cell_state)
            nest.assert_same_structure(cell.output_size, output)
            following = time + 1
            now, next_input, next_state, emit, next_loop = loop_fn(following, output, cell_state, loop_state)
            nest.assert_same_structure(state, next_state)
            nest.assert_same_structure(given, next_input)
            nest.assert_same_structure(arrays, emit)
            loop_state = loop_state if next_loop is None else next_loop

            def selected(old: Any, new: Any) -> Any:
                return copy_through(finished, old, new)

            emit = nest.map_structure(selected, nothing, emit)
            next_state = nest.map_structure(selected, state, next_state)
            arrays = nest.map_structure(lambda array, x: array.write(time, x), arrays, emit)
            return following, logical_or(finished, now), next_input, arrays, next_state, loop_state

        *_, arrays, state, loop_state = while_loop(
            lambda time, finished, *_: logical_not(reduce_all(finished)),
            step,
            loop_vars=[time, finished, first_input, arrays, state, loop_state],
            parallel_iterations=parallel_iterations or 32,
            swap_memory=swap_memory,
        )
        return arrays, state, None if stateless else loop_state


def _batch_of(inputs: list[Tensor]) -> tuple[int | None, Any]:
    """The batch size of [batch, ...] inputs: (as far as known, an int or a tensor). ValueError where they
    differ."""
    known: int | None = None
    for x in inputs:
        size = x.shape.as_list()[0] if x.shape.ndims else None
        if None not in (known, size) and size != known:
            raise ValueError(f"Dimensions {known} and {size} are not compatible")
        known = size if known is None else known
    return known, shape_of(inputs[0])[0] if known is None else known


def _emit_arrays(cell: Any, state: Any, emitted: Any, known_batch: int | None, batch_size: Any) -> Any:
    """(empty arrays, zeros) in the structure of what is emitted at each step.

    emitted: [batch, ...] tensors whose shapes after the batch's axis count, or None: cell.output_size.
    """
    if emitted is None:
        structure = cell.output_size
        sizes = nest.flatten(structure)
        kinds = [nest.flatten(state)[0].dtype] * len(sizes)
    else:
        structure = emitted
        parts = nest.flatten(emitted)
        sizes = [x.shape if x.shape.is_fully_defined() else shape_of(x) for x in parts]
        kinds = [x.dtype for x in parts]
    arrays = [
        TensorArray(
            dtype=kind,
            dynamic_size=True,
            element_shape=TensorShape([known_batch]).concatenate(as_static(size)),
            size=0,
            name=f"rnn_output_{i}",
        )
        for i, (kind, size) in enumerate(zip(kinds, sizes, strict=True))
    ]
    nothing = [zeros(batch_shape(batch_size, size), kind) for size, kind in zip(sizes, kinds, strict=True)]
    return nest.pack_sequence_as(structure, arrays), nest.pack_sequence_as(structure, nothing)
