"""Staging areas and mutexes. The state machines are the runtime's (runtime/staging.py).

Source: TensorFlow's stage_op.cc, mutex_ops.cc.
"""

from __future__ import annotations

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
    handle_shape,
    kept,
    no_shapes,
    scalar_shape,
    unknown_shapes,
)


def _attrs(minimum: str) -> str:
    return (
        f"capacity: int >= 0 = 0, memory_limit: int >= 0 = 0, dtypes: list(type){minimum}, {CONTAINER}"
    )


def _define(
    name: str,
    kernel: Kernel,
    shape: Any,
    doc: str,
    inputs: str = "",
    outputs: str = "",
    minimum: str = " >= 1",
) -> None:
    define_op(
        name,
        inputs=inputs,
        outputs=outputs,
        attrs=_attrs(minimum),
        shape=shape,
        kernel=kernel,
        stateful=True,
        gradient=NO_GRADIENT,
        doc=doc,
    )


def _stage_kernel(context: Any, values: list[Any]) -> Any:
    return context.own_resource().put(context.op, [kept(v) for v in values])


def _peek_kernel(context: Any, index: Any) -> Any:
    at = int(index)
    if at < 0:
        raise context.fail(InvalidArgumentError, f"the index must not be negative, but is {at}")
    return context.own_resource().peek(context.op, at)


def _peek_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    return unknown_shapes(c)


_define("Stage", asynchronous(_stage_kernel), no_shapes, "Puts values into a staging area; waits for room.",
        inputs="values: dtypes")  # fmt: skip
_define("Unstage", asynchronous(lambda context: context.own_resource().get(context.op)), unknown_shapes,
        "Takes the first values of a staging area; waits for them.", outputs="values: dtypes")  # fmt: skip
_define("StagePeek", asynchronous(_peek_kernel), _peek_shape,
        "The values at an index of a staging area, which stay there; waits for them.",
        inputs="index: int32", outputs="values: dtypes")  # fmt: skip
_define("StageSize", stateful(lambda context: np.int32(context.own_resource().size())), scalar_shape,
        "How many tuples of values a staging area holds.", outputs="size: int32", minimum="")  # fmt: skip
_define("StageClear", stateful(lambda context: context.own_resource().clear()), no_shapes,
        "Empties a staging area.", minimum="")  # fmt: skip

define_op(
    "MutexV2",
    outputs="resource: resource",
    attrs=CONTAINER,
    shape=handle_shape,
    kernel=source(),
    stateful=True,
    gradient=NO_GRADIENT,
    doc="A mutex.",
)

define_op(
    "MutexLock",
    inputs="mutex: resource",
    outputs="mutex_lock: variant",
    shape=scalar_shape,
    kernel=asynchronous(lambda context, mutex: context.resource(mutex).acquire(context.op)),
    stateful=True,
    gradient=NO_GRADIENT,
    doc="Waits for a mutex. It is held until the lock is consumed, or nothing holds the lock any more.",
)

define_op(
    "ConsumeMutexLock",
    inputs="mutex_lock: variant",
    shape=no_shapes,
    kernel=stateful(lambda context, lock: np.asarray(lock).item().consume(context.op)),
    stateful=True,
    gradient=NO_GRADIENT,
    doc="Gives a mutex back.",
)
