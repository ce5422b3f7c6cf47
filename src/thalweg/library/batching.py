"""Batches of examples out of queues: tf.train.batch and its like. Source: TensorFlow's training/input.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.base.errors import UnimplementedError
from thalweg.base.tensor_shape import as_shape
from thalweg.graph.composite import SparseTensor
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.shape_context import constant_value
from thalweg.library import summary_ops
from thalweg.library.casting import cast
from thalweg.library.cond_ops import cond
from thalweg.library.elementwise_ops import maximum
from thalweg.library.framework import convert_to_tensor_or_indexed_slices, name_scope
from thalweg.library.gathering_ops import dynamic_partition
from thalweg.library.grouping import no_op
from thalweg.library.queue_runner import QueueRunner, add_queue_runner
from thalweg.library.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue

# --- the public functions ---------------------------------------------------------------------------------


def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of the examples that `tensors` (a list or dictionary) gives, through a queue.

    enqueue_many: each of the tensors is a batch of examples itself. dynamic_pad: pads examples of different
    sizes. num_threads: how many threads run the tensors. allow_smaller_final_batch: the last one may be.
    """
    return maybe_batch(
        tensors, True, batch_size, num_threads, capacity, enqueue_many, shapes, dynamic_pad,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """batch, of those examples only for which keep_input (a boolean, or one per example) is true."""
    tensor_list = _as_list(tensors)
    with name_scope(name, "batch", [*tensor_list, keep_input]) as scope:
        tensor_list = _checked(tensor_list)
        keep = _checked_keep(keep_input, enqueue_many)
        queue = _fifo(dynamic_pad, [tensor_list], enqueue_many, shapes, capacity, shared_name)
        _fill(queue, [tensor_list], enqueue_many, keep, num_threads)
        _summary_of_fifo(queue, capacity)
        return _like(tensors, _dequeue(queue, batch_size, allow_smaller_final_batch, scope))


def batch_join(
    tensors_list: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """batch, of several sources of examples, each with a thread of its own."""
    return maybe_batch_join(
        tensors_list, True, batch_size, capacity, enqueue_many, shapes, dynamic_pad,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


def maybe_batch_join(
    tensors_list: Any,
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """batch_join, of those examples only for which keep_input is true."""
    lists = _as_lists(tensors_list)
    with name_scope(name, "batch_join", [*(t for ts in lists for t in ts), keep_input]) as scope:
        lists = [_checked(ts) for ts in lists]
        keep = _checked_keep(keep_input, enqueue_many)
        queue = _fifo(dynamic_pad, lists, enqueue_many, shapes, capacity, shared_name)
        _fill(queue, lists, enqueue_many, keep)
        _summary_of_fifo(queue, capacity)
        return _like(tensors_list[0], _dequeue(queue, batch_size, allow_smaller_final_batch, scope))


def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """batch, in random order: drawn from a queue that keeps min_after_dequeue examples back."""
    return maybe_shuffle_batch(
        tensors, batch_size, capacity, min_after_dequeue, True, num_threads, seed, enqueue_many, shapes,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """shuffle_batch, of those examples only for which keep_input is true."""
    tensor_list = _as_list(tensors)
    with name_scope(name, "shuffle_batch", [*tensor_list, keep_input]) as scope:
        _check_capacity(capacity, min_after_dequeue)
        tensor_list = _checked(tensor_list)
        keep = _checked_keep(keep_input, enqueue_many)
        queue = _shuffling(
            [tensor_list], enqueue_many, shapes, capacity, min_after_dequeue, seed, shared_name
        )
        _fill(queue, [tensor_list], enqueue_many, keep, num_threads)
        _summary_of_shuffling(queue, capacity, min_after_dequeue)
        return _like(tensors, _dequeue(queue, batch_size, allow_smaller_final_batch, scope))


def shuffle_batch_join(
    tensors_list: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """shuffle_batch, of several sources of examples, each with a thread of its own."""
    return maybe_shuffle_batch_join(
        tensors_list, batch_size, capacity, min_after_dequeue, True, seed, enqueue_many, shapes,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


def maybe_shuffle_batch_join(
    tensors_list: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """shuffle_batch_join, of those examples only for which keep_input is true."""
    lists = _as_lists(tensors_list)
    with name_scope(name, "shuffle_batch_join", [*(t for ts in lists for t in ts), keep_input]) as scope:
        lists = [_checked(ts) for ts in lists]
        keep = _checked_keep(keep_input, enqueue_many)
        queue = _shuffling(lists, enqueue_many, shapes, capacity, min_after_dequeue, seed, shared_name)
        _fill(queue, lists, enqueue_many, keep)
        _summary_of_shuffling(queue, capacity, min_after_dequeue)
        return _like(tensors_list[0], _dequeue(queue, batch_size, allow_smaller_final_batch, scope))


# --- arguments --------------------------------------------------------------------------------------------


def _as_list(tensors: Any) -> list[Any]:
    return [tensors[k] for k in sorted(tensors, key=str)] if isinstance(tensors, dict) else list(tensors)


def _as_lists(tensors_list: Any) -> list[list[Any]]:
    if not tensors_list:
        raise ValueError("Expected at least one set of tensors")
    if isinstance(tensors_list[0], dict) and any(set(t) != set(tensors_list[0]) for t in tensors_list):
        raise ValueError("All dictionaries in tensors_list must have the same keys")
    return [_as_list(tensors) for tensors in tensors_list]


def _like(tensors: Any, dequeued: Any) -> Any:
    """What was dequeued, in the form of what was given."""
    if not isinstance(tensors, dict):
        return dequeued
    parts = [dequeued] if len(tensors) == 1 else dequeued
    return {k: parts[i] for i, k in enumerate(sorted(tensors, key=str))}


def _checked(tensor_list: Sequence[Any]) -> list[Tensor]:
    if any(isinstance(t, SparseTensor) for t in tensor_list):
        raise UnimplementedError(None, None, "batches of sparse tensors are not built yet")
    result: list[Any] = [convert_to_tensor_or_indexed_slices(t) for t in tensor_list]
    if not result:
        raise ValueError("Expected at least one tensor in batch().")
    return result


def _checked_keep(keep_input: Any, enqueue_many: bool) -> Tensor:
    keep = convert_to_tensor(keep_input)
    rank = keep.shape.ndims
    if rank is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if not enqueue_many and rank == 1:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    if rank > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    return keep


def _check_capacity(capacity: int, min_after_dequeue: int) -> None:
    if capacity <= min_after_dequeue:
        raise ValueError(
            f"capacity {capacity} must be bigger than min_after_dequeue {min_after_dequeue}."
        )


def _types(lists: Sequence[Sequence[Tensor]]) -> list[DType]:
    first = [t.dtype for t in lists[0]]
    for other in lists[1:]:
        types = [t.dtype for t in other]
        if types != first:
            shown = [", ".join(d.name for d in kinds) for kinds in (first, types)]
            raise TypeError(f"Expected types to be consistent: {shown[0]} vs. {shown[1]}.")
    return first


def _shapes(lists: Sequence[Sequence[Tensor]], shapes: Any, enqueue_many: bool) -> Any:
    """The shape of each component of an example."""
    if shapes is not None:
        return shapes
    result = []
    for tensors in zip(*lists, strict=True):
        for tensor in tensors:
            if tensor.shape.ndims is None:
                raise ValueError(f"Cannot infer Tensor's rank: {tensor}")
        given = [as_shape(t.shape) for t in tensors]
        if enqueue_many:
            given = [s.with_rank_at_least(1)[1:] for s in given]
        for other in given[1:]:
            given[0].assert_is_compatible_with(other)
        result.append(given[0].as_list())
    return result


# --- the queue and what fills it --------------------------------------------------------------------------


def _fifo(
    dynamic_pad: bool, lists: Any, enqueue_many: bool, shapes: Any, capacity: int, shared_name: str | None
) -> QueueBase:
    make: Any = PaddingFIFOQueue if dynamic_pad else FIFOQueue
    types = _types(lists)
    shapes = _shapes(lists, shapes, enqueue_many)
    result: QueueBase = make(capacity=capacity, dtypes=types, shapes=shapes, shared_name=shared_name)
    return result


def _shuffling(
    lists: Any,
    enqueue_many: bool,
    shapes: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None,
    shared_name: str | None,
) -> QueueBase:
    types = _types(lists)
    shapes = _shapes(lists, shapes, enqueue_many)
    return RandomShuffleQueue(
        capacity, min_after_dequeue, types, shapes, seed=seed, shared_name=shared_name
    )


def _fill(
    queue: QueueBase, lists: Sequence[list[Tensor]], enqueue_many: bool, keep: Tensor, threads: int = 1
) -> None:
    """Adds a QueueRunner with a thread per list, or several for one."""
    ops = [_enqueue_op(queue, tensors, enqueue_many, keep) for tensors in lists]
    add_queue_runner(QueueRunner(queue, ops * threads))


def _enqueue_op(queue: QueueBase, tensors: list[Tensor], enqueue_many: bool, keep: Tensor) -> Operation:
    enqueue = queue.enqueue_many if enqueue_many else queue.enqueue
    if keep.shape.ndims == 1:
        which = cast(keep, dtypes.int32)
        return enqueue([dynamic_partition(x, which, num_partitions=2)[1] for x in tensors])
    known = constant_value(keep)
    if known is None:
        return cond(keep, lambda: enqueue(tensors), no_op)
    return enqueue(tensors) if known else no_op()


def _summary_of_fifo(queue: QueueBase, capacity: int) -> None:
    full = cast(queue.size(), dtypes.float32) * (1.0 / capacity)
    summary_ops.scalar(f"fraction_of_{capacity}_full", full)


def _summary_of_shuffling(queue: QueueBase, capacity: int, min_after_dequeue: int) -> None:
    rest = capacity - min_after_dequeue
    full = cast(maximum(0, queue.size() - min_after_dequeue), dtypes.float32) * (1.0 / rest)
    summary_ops.scalar(f"fraction_over_{min_after_dequeue}_of_{rest}_full", full)


def _dequeue(queue: QueueBase, batch_size: Any, allow_smaller: bool, name: str) -> Any:
    if allow_smaller:
        return queue.dequeue_up_to(batch_size, name=name)
    return queue.dequeue_many(batch_size, name=name)
