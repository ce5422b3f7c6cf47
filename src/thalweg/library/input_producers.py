"""Queues that produce the rows of a tensor, epoch by epoch. Source: TensorFlow's training/input.py."""

from __future__ import annotations

from typing import Any

from thalweg.base import dtypes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library import framework, summary_ops
from thalweg.library.array_ops import identity, shape, size
from thalweg.library.casting import cast
from thalweg.library.check_ops import Assert
from thalweg.library.framework import convert_to_tensor_or_indexed_slices, name_scope
from thalweg.library.gathering_ops import gather
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.queue_runner import QueueRunner, add_queue_runner
from thalweg.library.queues import FIFOQueue
from thalweg.library.random_ops import random_shuffle
from thalweg.library.sequence_ops import range as range_op
from thalweg.library.variables import Variable


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Any:
    """tensor, for num_epochs runs; then OutOfRangeError. None: for ever.

    It counts in a local variable: run local_variables_initializer first.
    """
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    with name_scope(name, "limit_epochs", [tensor]) as scope:
        zero = emit.constant(0, dtypes.int64)
        make: Any = Variable
        epochs = make(zero, name="epochs", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])
        counter = epochs.count_up_to(num_epochs)
        with framework.control_dependencies([counter]):
            return identity(tensor, name=scope)


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> FIFOQueue:
    """A queue with the rows of input_tensor, and a QueueRunner that fills it.

    element_shape: of a row, where input_tensor's shape isn't known; ValueError where neither tells.
    shuffle: in a new random order every epoch. num_epochs: OutOfRangeError after so many.
    """
    with name_scope(name, "input_producer", [input_tensor]):
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        row_shape = rows.shape[1:].merge_with(element_shape)
        if not row_shape.is_fully_defined():
            raise ValueError(
                "Either `input_tensor` must have a fully defined shape or `element_shape` must be specified"
            )
        if shuffle:
            rows = random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(
            capacity=capacity,
            dtypes=[rows.dtype.base_dtype],
            shapes=[row_shape],
            shared_name=shared_name,
            name=name,
        )
        enqueue = queue.enqueue_many([rows])
        add_queue_runner(QueueRunner(queue, [enqueue], cancel_op=cancel_op))
        if summary_name is not None:
            summary_ops.scalar(summary_name, cast(queue.size(), dtypes.float32) * (1.0 / capacity))
        return queue


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> FIFOQueue:
    """A queue with strings (file names, say); see input_producer. ValueError on an empty list."""
    message = "string_input_producer requires a non-null input tensor"
    if not isinstance(string_tensor, Tensor) and not string_tensor:
        raise ValueError(message)
    with name_scope(name, "input_producer", [string_tensor]) as scope:
        strings = convert_to_tensor(string_tensor, dtypes.string)
        check = Assert(emit("Greater", size(strings), 0), [message])
        with framework.control_dependencies([check]):
            strings = identity(strings)
        return input_producer(
            strings,
            [],
            num_epochs,
            shuffle,
            seed,
            capacity,
            shared_name,
            f"fraction_of_{capacity}_full",
            scope,
            cancel_op,
        )


def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> FIFOQueue:
    """A queue with the integers from 0 to limit - 1; see input_producer."""
    with name_scope(name, "input_producer", [limit]) as scope:
        numbers = range_op(limit)
        summary_name = f"fraction_of_{capacity}_full"
        return input_producer(
            numbers, [], num_epochs, shuffle, seed, capacity, shared_name, summary_name, scope
        )


def slice_input_producer(
    tensor_list: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """One row of each tensor, the same one of all; another each run. They come through a queue."""
    with name_scope(name, "input_producer", tensor_list):
        tensors = [convert_to_tensor_or_indexed_slices(t) for t in tensor_list]
        if not tensors:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        queue = range_input_producer(
            shape(tensors[0])[0],
            num_epochs=num_epochs,
            shuffle=shuffle,
            seed=seed,
            capacity=capacity,
            shared_name=shared_name,
        )
        index = queue.dequeue()
        return [gather(t, index) for t in tensors]
