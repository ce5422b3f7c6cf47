"""Queues: tf.FIFOQueue and its like, objects over a queue's node. Source: TensorFlow's data_flow_ops.py."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from typing import Any

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.base.tensor_shape import Dimension, TensorShape, unknown_shape
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.shape_context import constant_value
from thalweg.library import framework
from thalweg.library.component_lists import as_name_list, as_shape_list, as_type_list, shapes_or_unknown
from thalweg.library.framework import name_scope
from thalweg.library.gathering_ops import gather
from thalweg.library.joining_ops import stack
from thalweg.library.random_seed import get_seed


class QueueBase:
    """A queue of elements, each a tuple of tensors, that lives across steps.

    dtypes, shapes: one per component; shapes None: not fixed. names: the components are a dictionary.
    queue_ref: the queue's node, as the tensor that it puts out.
    """

    def __init__(self, dtypes: Any, shapes: Any, names: Any, queue_ref: Tensor) -> None:
        self._dtypes = dtypes
        self._shapes = shapes_or_unknown(shapes, dtypes, "Queue")
        if names is not None and len(names) != len(dtypes):
            raise ValueError(
                "Queue names must have the same length as dtypes,received "
                f"len(names)={len(names)},len {len(dtypes)}"
            )
        self._names = names
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.split("/")[-1]

    @staticmethod
    def from_list(index: Any, queues: Any) -> QueueBase:
        """The queue at an index that a tensor gives. TypeError unless all have the same components."""
        if not queues or not isinstance(queues, list) or not all(isinstance(q, QueueBase) for q in queues):
            raise TypeError("A list of queues expected")
        first = queues[0]
        if any(first.dtypes != q.dtypes for q in queues):
            raise TypeError("Queues do not have matching component dtypes.")
        if any(first.names != q.names for q in queues):
            raise TypeError("Queues do not have matching component names.")
        shapes = [
            functools.reduce(_shape_common, of_component)
            for of_component in zip(*(q.shapes for q in queues), strict=True)
        ]
        refs = stack([q.queue_ref for q in queues])
        return QueueBase(first.dtypes, shapes, first.names, gather(refs, index))

    @property
    def queue_ref(self) -> Tensor:
        """The queue's node, as the tensor that it puts out."""
        return self._queue_ref

    @property
    def name(self) -> str:
        """The name of the queue's node."""
        return self._queue_ref.op.name

    @property
    def dtypes(self) -> list[DType]:
        """The type of each component."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """The shape of each component."""
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        """The name of each component, or None."""
        return self._names

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """The operation that adds one element; it waits for room.

        vals: a tensor, a list of them, or a dictionary for a queue with names. CancelledError when run on a
        closed queue.
        """
        with name_scope(name, f"{self._name}_enqueue", _flat(vals)) as scope:
            tensors = self._components(vals)
            for tensor, shape in zip(tensors, self._shapes, strict=False):
                tensor.shape.assert_is_compatible_with(shape)
            return self._emit("QueueEnqueue", tensors, name=scope)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """The operation that adds the slices of vals along their first dimension, as there is room."""
        with name_scope(name, f"{self._name}_EnqueueMany", _flat(vals)) as scope:
            tensors = self._components(vals)
            n = Dimension(None)
            for tensor, shape in zip(tensors, self._shapes, strict=False):
                static = tensor.shape.with_rank_at_least(1)
                n = n.merge_with(static[0])
                static[1:].assert_is_compatible_with(shape)
            return self._emit("QueueEnqueueMany", tensors, name=scope)

    def dequeue(self, name: str | None = None) -> Any:
        """One element: a tensor, a list, or a dictionary. Waits for one; OutOfRangeError where none comes."""
        result = self._emit(
            "QueueDequeue", component_types=self._dtypes, name=name or f"{self._name}_Dequeue"
        )
        return self._shaped(result, self._shapes)

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """A batch of n elements. OutOfRangeError where the queue is closed and has fewer."""
        result = self._emit(
            "QueueDequeueMany", n, component_types=self._dtypes, name=name or f"{self._name}_DequeueMany"
        )
        known = constant_value(result[0].op.inputs[1])
        batch = TensorShape([None if known is None else int(known)])
        return self._shaped(result, [batch.concatenate(s) for s in self._shapes])

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """A batch of n elements; of fewer, but at least one, where the queue is closed and has no more."""
        result = self._emit(
            "QueueDequeueUpTo", n, component_types=self._dtypes, name=name or f"{self._name}_DequeueUpTo"
        )
        batch = TensorShape([None])
        return self._shaped(result, [batch.concatenate(s) for s in self._shapes])

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """The operation that closes the queue: no elements come after those that wait.

        cancel_pending_enqueues: enqueues that wait end with CancelledError.
        """
        return self._emit(
            "QueueClose",
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_Close",
        )

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether the queue is closed."""
        return self._emit("QueueIsClosed", name=name or f"{self._name}_Is_Closed")

    def size(self, name: str | None = None) -> Tensor:
        """How many elements are in the queue."""
        return self._emit("QueueSize", name=name or f"{self._name}_Size")

    def _emit(self, op: str, *args: Any, **attrs: Any) -> Any:
        version = "V2" if self._queue_ref.dtype == dtypes.resource else ""
        return emit(op + version, self._queue_ref, *args, **attrs)

    def _components(self, vals: Any) -> list[Tensor]:
        """The components of an element as tensors of the queue's types."""
        names = self._names
        if isinstance(vals, dict):
            if not names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(names, key=str) != sorted(vals, key=str):
                raise ValueError(
                    f"Keys in dictionary to enqueue do not match names of Queue.  Dictionary: "
                    f"{sorted(vals)},Queue: {sorted(names)}"
                )
            vals = [vals[k] for k in names]
        elif names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        elif not isinstance(vals, list | tuple):
            vals = [vals]
        return [
            convert_to_tensor(val, dtype, f"component_{i}")
            for i, (val, dtype) in enumerate(zip(vals, self._dtypes, strict=False))
        ]

    def _shaped(self, tensors: list[Tensor], shapes: list[TensorShape]) -> Any:
        """What a dequeue returns: with shapes; by name where the queue has names."""
        for tensor, shape in zip(tensors, shapes, strict=True):
            tensor.set_shape(shape)
        if self._names:
            return dict(zip(self._names, tensors, strict=True))
        return tensors[0] if len(tensors) == 1 else tensors


def _flat(vals: Any) -> Iterable[Any]:
    if isinstance(vals, dict):
        return vals.values()
    return vals if isinstance(vals, list | tuple) else [vals]


def _shape_common(a: TensorShape, b: TensorShape) -> TensorShape:
    """What two shapes agree on."""
    if a.ndims is None or b.ndims is None or a.ndims != b.ndims:
        return unknown_shape()
    return TensorShape([x if x == y else None for x, y in zip(a.as_list(), b.as_list(), strict=True)])


class FIFOQueue(QueueBase):
    """First in, first out. shapes: needed to dequeue batches."""

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str | None = "fifo_queue",
    ) -> None:
        types = as_type_list(dtypes)
        given = as_shape_list(shapes)
        names = as_name_list(names, types)
        with framework.init_scope(), framework.device("CPU"):
            ref = emit(
                "FIFOQueueV2",
                component_types=types,
                shapes=given,
                capacity=capacity,
                shared_name=shared_name,
                name=name,
            )
        super().__init__(types, given, names, ref)


class RandomShuffleQueue(QueueBase):
    """Elements leave in random order; min_after_dequeue of them stay until the queue is closed."""

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        types = as_type_list(dtypes)
        given = as_shape_list(shapes)
        names = as_name_list(names, types)
        seed1, seed2 = get_seed(seed)
        if seed1 is None and seed2 is None:
            seed1, seed2 = 0, 0
        elif seed is None and shared_name is not None:
            # the same wherever the queue is shared, though other nodes were counted there
            digest = hashlib.md5((str(seed1) + shared_name).encode(), usedforsecurity=False).hexdigest()
            seed2 = int(digest[:8], 16) & 0x7FFFFFFF
        ref = emit(
            "RandomShuffleQueueV2",
            component_types=types,
            shapes=given,
            capacity=capacity,
            min_after_dequeue=min_after_dequeue,
            seed=seed1,
            seed2=seed2,
            shared_name=shared_name,
            name=name,
        )
        super().__init__(types, given, names, ref)


class PaddingFIFOQueue(QueueBase):
    """A FIFO queue whose shapes may have unknown dimensions: a batch is padded with zeros to its largest."""

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        types = as_type_list(dtypes)
        given = as_shape_list(shapes, partial=True) or []
        names = as_name_list(names, types)
        if len(types) != len(given):
            raise ValueError(
                "Shapes must be provided for all components, "
                f"but received {len(types)} dtypes and {len(given)} shapes."
            )
        ref = emit(
            "PaddingFIFOQueueV2",
            component_types=types,
            shapes=given,
            capacity=capacity,
            shared_name=shared_name,
            name=name,
        )
        super().__init__(types, given, names, ref)


class PriorityQueue(QueueBase):
    """The element with the smallest priority leaves first: an int64, the first component of every element.

    types, shapes: of the other components.
    """

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        kinds = as_type_list(types)
        given = as_shape_list(shapes)
        ref = emit(
            "PriorityQueueV2",
            component_types=kinds,
            shapes=given or [],
            capacity=capacity,
            shared_name=shared_name,
            name=name,
        )
        scalar = [TensorShape([])]
        super().__init__([dtypes.int64, *kinds], [*scalar, *given] if given else None, names, ref)
