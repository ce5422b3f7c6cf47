"""Barriers: values put together by key. The state machine is the runtime's (runtime/barriers.py).

Source: TensorFlow's data_flow_ops.cc, barrier_ops.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import asynchronous, source, stateful
from thalweg.ops._resources import (
    CONTAINER,
    NO_GRADIENT,
    handle_shape,
    kept,
    no_shapes,
    scalar_shape,
    unknown_shapes,
)

define_op(
    "Barrier",
    outputs="handle: Ref(string)",
    attrs=f"component_types: list(type) >= 1, shapes: list(shape) >= 0 = [], capacity: int = -1, {CONTAINER}",
    shape=handle_shape,
    kernel=source(),
    stateful=True,
    gradient=NO_GRADIENT,
    doc="A map from keys to tuples that get their components one by one.",
)


def _insert_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(1, 1)
    c.with_rank_at_least(2, 1)
    return []


def _insert_kernel(context: Any, handle: Any, keys: Any, values: Any, *, component_index: int) -> Any:
    barrier = context.resource(handle)
    return barrier.insert_many(context.op, component_index, keys, kept(values))


define_op(
    "BarrierInsertMany",
    inputs="handle: Ref(string), keys: string, values: T",
    attrs="T: type, component_index: int",
    shape=_insert_shape,
    kernel=asynchronous(_insert_kernel),
    gradient=NO_GRADIENT,
    doc="Gives each key a value for one component.",
)


def _take_kernel(context: Any, handle: Any, n: Any, *, allow_small_batch: bool) -> Any:
    count = int(n)
    if count < 0:
        raise context.fail(InvalidArgumentError, f"BarrierTakeMany requested {count} < 0 elements")
    return context.resource(handle).take_many(context.op, count, allow_small_batch)


define_op(
    "BarrierTakeMany",
    inputs="handle: Ref(string), num_elements: int32",
    outputs="indices: int64, keys: string, values: component_types",
    attrs="component_types: list(type) >= 1, allow_small_batch: bool = False, "
    "wait_for_incomplete: bool = False, timeout_ms: int = -1",
    shape=unknown_shapes,
    kernel=asynchronous(_take_kernel),
    gradient=NO_GRADIENT,
    doc="Takes complete values, in the order in which their keys were met; waits for them.",
)


def _close_kernel(context: Any, handle: Any, *, cancel_pending_enqueues: bool) -> Any:
    return context.resource(handle).close(context.op, cancel_pending_enqueues)


define_op(
    "BarrierClose",
    inputs="handle: Ref(string)",
    attrs="cancel_pending_enqueues: bool = False",
    shape=no_shapes,
    kernel=asynchronous(_close_kernel),
    gradient=NO_GRADIENT,
    doc="No new keys; and with cancel_pending_enqueues no components for old ones.",
)


define_op(
    "BarrierReadySize",
    inputs="handle: Ref(string)",
    outputs="size: int32",
    shape=scalar_shape,
    kernel=stateful(lambda context, handle: np.int32(context.resource(handle).ready_size())),
    gradient=NO_GRADIENT,
    doc="How many values are complete.",
)

define_op(
    "BarrierIncompleteSize",
    inputs="handle: Ref(string)",
    outputs="size: int32",
    shape=scalar_shape,
    kernel=stateful(lambda context, handle: np.int32(context.resource(handle).incomplete_size())),
    gradient=NO_GRADIENT,
    doc="How many values lack components.",
)
