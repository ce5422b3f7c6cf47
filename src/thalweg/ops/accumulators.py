"""Accumulators: gradients added up until there are enough. The state machines are in runtime/accumulators.py.

Source: TensorFlow's data_flow_ops.cc, conditional_accumulator_op.cc.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from thalweg.base.shape import Shape
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import asynchronous, source, stateful
from thalweg.ops._resources import (
    CONTAINER,
    NO_GRADIENT,
    handle_argument,
    handle_shape,
    no_shapes,
    scalar_shape,
    unknown_shapes,
)

_NUMBER = (
    "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
    "quint16, uint16, complex128, half, uint32, uint64}"
)

_log = logging.getLogger("thalweg")


def _define_handle(name: str, resource: bool, doc: str) -> None:
    define_op(
        name,
        outputs=handle_argument(resource),
        attrs=f"dtype: {_NUMBER}, shape: shape, {CONTAINER}, reduction_type: {{'MEAN', 'SUM'}} = 'MEAN'",
        shape=handle_shape,
        kernel=source(),
        stateful=True,
        gradient=NO_GRADIENT,
        doc=doc,
    )


_define_handle("ConditionalAccumulator", False, "Adds up gradients that aren't stale.")
_define_handle("ResourceConditionalAccumulator", True, "Adds up gradients that aren't stale.")
_define_handle("SparseConditionalAccumulator", False, "Adds up sparse gradients that aren't stale.")


def _apply_kernel(context: Any, handle: Any, local_step: Any, gradient: Any) -> Any:
    return context.resource(handle).apply(context.op, int(local_step), [gradient])


def _take_kernel(context: Any, handle: Any, num_required: Any) -> Any:
    return context.resource(handle).take(context.op, int(num_required))


def _set_step_kernel(context: Any, handle: Any, new_global_step: Any) -> None:
    new = int(new_global_step)
    old = context.resource(handle).set_step(new)
    if new < old:
        _log.warning(
            "Attempt to set current_global_step_ to smaller value: current_global_step_ = %d >= %d = "
            "new_global_step.", old, new,
        )  # fmt: skip


def _count_kernel(context: Any, handle: Any) -> np.int32:
    return np.int32(context.resource(handle).count)


def _apply_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(1, 0)
    return []


for _prefix in ("", "Resource"):
    _handle = handle_argument(_prefix == "Resource")
    _stateful = _prefix == "Resource"
    define_op(
        f"{_prefix}AccumulatorApplyGradient",
        inputs=f"{_handle}, local_step: int64, gradient: dtype",
        attrs=f"dtype: {_NUMBER}",
        shape=_apply_shape,
        kernel=asynchronous(_apply_kernel),
        stateful=_stateful,
        gradient=NO_GRADIENT,
        doc="Adds a gradient, unless its step is older than the accumulator's.",
    )
    define_op(
        f"{_prefix}AccumulatorTakeGradient",
        inputs=f"{_handle}, num_required: int32",
        outputs="average: dtype",
        attrs=f"dtype: {_NUMBER}",
        shape=unknown_shapes,
        kernel=asynchronous(_take_kernel),
        stateful=_stateful,
        gradient=NO_GRADIENT,
        doc="The mean (or sum) of the gradients when there are num_required; starts over.",
    )
    define_op(
        f"{_prefix}AccumulatorSetGlobalStep",
        inputs=f"{_handle}, new_global_step: int64",
        shape=_apply_shape,
        kernel=stateful(_set_step_kernel),
        stateful=_stateful,
        gradient=NO_GRADIENT,
        doc="Sets the step below which gradients are dropped.",
    )
    define_op(
        f"{_prefix}AccumulatorNumAccumulated",
        inputs=_handle,
        outputs="num_accumulated: int32",
        shape=scalar_shape,
        kernel=stateful(_count_kernel),
        stateful=_stateful,
        gradient=NO_GRADIENT,
        doc="How many gradients there are.",
    )


def _apply_sparse_kernel(
    context: Any,
    handle: Any,
    local_step: Any,
    indices: Any,
    values: Any,
    shape: Any,
    *,
    has_known_shape: bool,
) -> Any:
    gradient = [indices, values, shape if has_known_shape else None]
    return context.resource(handle).apply(context.op, int(local_step), gradient)


define_op(
    "SparseAccumulatorApplyGradient",
    inputs="handle: Ref(string), local_step: int64, gradient_indices: int64, gradient_values: dtype, "
    "gradient_shape: int64",
    attrs=f"dtype: {_NUMBER}, has_known_shape: bool",
    shape=no_shapes,
    kernel=asynchronous(_apply_sparse_kernel),
    gradient=NO_GRADIENT,
    doc="Adds the rows of a sparse gradient, unless its step is older than the accumulator's.",
)

define_op(
    "SparseAccumulatorTakeGradient",
    inputs="handle: Ref(string), num_required: int32",
    outputs="indices: int64, values: dtype, shape: int64",
    attrs=f"dtype: {_NUMBER}",
    shape=unknown_shapes,
    kernel=asynchronous(_take_kernel),
    gradient=NO_GRADIENT,
    doc="The mean (or sum) of the rows when there are num_required gradients; starts over.",
)
