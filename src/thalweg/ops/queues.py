"""Queues: their handles, enqueue, dequeue, close. The state machines are the runtime's (runtime/queues.py).

Every op exists twice: with a resource handle (V2), and with a reference to a string as in the first graphs.
Source: TensorFlow's data_flow_ops.cc, queue_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import Kernel, asynchronous, source, stateful
from thalweg.ops._resources import (
    CONTAINER,
    NO_GRADIENT,
    handle_argument,
    handle_shape,
    kept,
    no_shapes,
    scalar_shape,
    unknown_shapes,
)

ShapeFn = Callable[[ShapeContext], list[Shape]]


def _define_handle(name: str, attrs: str, doc: str) -> None:
    for version in ("", "V2"):
        define_op(
            name + version,
            outputs=handle_argument(version == "V2"),
            attrs=attrs,
            shape=handle_shape,
            kernel=source(),
            stateful=True,
            gradient=NO_GRADIENT,
            doc=doc,
        )


_TYPES = "component_types: list(type) >= 1, shapes: list(shape) >= 0 = [], capacity: int = -1"

_define_handle("FIFOQueue", f"{_TYPES}, {CONTAINER}", "A queue: first in, first out.")
_define_handle(
    "RandomShuffleQueue",
    f"{_TYPES}, min_after_dequeue: int = 0, seed: int = 0, seed2: int = 0, {CONTAINER}",
    "A queue that gives its elements in random order, and keeps some back until it is closed.",
)
_define_handle(
    "PaddingFIFOQueue",
    f"{_TYPES}, {CONTAINER}",
    "A FIFO queue of elements of different sizes, which pads the smaller ones of a batch with zeros.",
)
_define_handle(
    "PriorityQueue",
    f"component_types: list(type) >= 0 = [], shapes: list(shape) >= 0, capacity: int = -1, {CONTAINER}",
    "A queue that gives the element with the smallest first component.",
)


def _queue(context: Any, handle: Any, types: str) -> Any:
    """The queue behind a handle, which must have the components that the node was made for."""
    op = context.op
    queue = context.resource(handle)
    mine = op._attrs[types]
    if mine != queue.dtypes:
        theirs = ", ".join(d.name for d in queue.dtypes)
        raise context.fail(
            InvalidArgumentError,
            f"the components of '{queue.name}' are ({theirs}), but this node is made for "
            f"({', '.join(d.name for d in mine)})",
        )
    if op._attrs["timeout_ms"] != -1:
        raise context.fail(InvalidArgumentError, "Timeout not supported yet.")
    return queue


def _enqueue_kernel(context: Any, handle: Any, components: list[Any]) -> Any:
    return _queue(context, handle, "Tcomponents").enqueue(context.op, [kept(c) for c in components])


def _enqueue_many_kernel(context: Any, handle: Any, components: list[Any]) -> Any:
    return _queue(context, handle, "Tcomponents").enqueue_many(context.op, [kept(c) for c in components])


def _dequeue_kernel(context: Any, handle: Any) -> Any:
    return _queue(context, handle, "component_types").dequeue(context.op)


def _dequeue_many_kernel(context: Any, handle: Any, n: Any) -> Any:
    return _queue(context, handle, "component_types").dequeue_many(context.op, _count(context, n, "Many"))


def _dequeue_up_to_kernel(context: Any, handle: Any, n: Any) -> Any:
    queue = _queue(context, handle, "component_types")
    return queue.dequeue_many(context.op, _count(context, n, "UpTo"), small=True)


def _count(context: Any, n: Any, what: str) -> int:
    count = int(n)
    if count < 0:
        raise context.fail(InvalidArgumentError, f"Dequeue{what}Op requested {count} < 0 elements")
    return count


def _close_kernel(context: Any, handle: Any, *, cancel_pending_enqueues: bool) -> Any:
    return context.resource(handle).close(context.op, cancel_pending_enqueues)


def _define(
    name: str,
    kernel: Kernel,
    shape: ShapeFn,
    doc: str,
    inputs: str = "",
    outputs: str = "",
    attrs: str = "",
) -> None:
    for version in ("", "V2"):
        handle = handle_argument(version == "V2")
        define_op(
            name + version,
            inputs=f"{handle}, {inputs}" if inputs else handle,
            outputs=outputs,
            attrs=attrs,
            shape=shape,
            kernel=kernel,
            stateful=version == "V2",
            gradient=NO_GRADIENT,
            doc=doc,
        )


_PUT = "Tcomponents: list(type) >= 1, timeout_ms: int = -1"
_GET = "component_types: list(type) >= 1, timeout_ms: int = -1"


def _batch_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(1, 0)
    return unknown_shapes(c)


_define(
    "QueueEnqueue",
    asynchronous(_enqueue_kernel),
    no_shapes,
    "Adds one element to a queue; waits for room.",
    inputs="components: Tcomponents",
    attrs=_PUT,
)
_define(
    "QueueEnqueueMany",
    asynchronous(_enqueue_many_kernel),
    no_shapes,
    "Adds the slices of the components to a queue, one element each; waits for room.",
    inputs="components: Tcomponents",
    attrs=_PUT,
)
_define(
    "QueueDequeue",
    asynchronous(_dequeue_kernel),
    unknown_shapes,
    "Takes one element; waits for one.",
    outputs="components: component_types",
    attrs=_GET,
)
_define(
    "QueueDequeueMany",
    asynchronous(_dequeue_many_kernel),
    _batch_shape,
    "Takes n elements as one batch; waits for them. OutOfRangeError where the queue is closed with fewer.",
    inputs="n: int32",
    outputs="components: component_types",
    attrs=_GET,
)
_define(
    "QueueDequeueUpTo",
    asynchronous(_dequeue_up_to_kernel),
    _batch_shape,
    "Takes n elements as one batch; fewer, but one at least, where the queue is closed with fewer.",
    inputs="n: int32",
    outputs="components: component_types",
    attrs=_GET,
)
_define(
    "QueueClose",
    asynchronous(_close_kernel),
    no_shapes,
    "No elements will come any more: after the enqueues that wait, or in their place.",
    attrs="cancel_pending_enqueues: bool = False",
)
_define(
    "QueueIsClosed",
    stateful(lambda context, handle: np.bool_(context.resource(handle).closed)),
    scalar_shape,
    "Whether a queue is closed.",
    outputs="is_closed: bool",
)
_define(
    "QueueSize",
    stateful(lambda context, handle: np.int32(context.resource(handle).size())),
    scalar_shape,
    "How many elements are in a queue.",
    outputs="size: int32",
)
