"""GatherNd, ScatterNd and the updates of a tensor by index.

Source: TensorFlow's gather_nd_op.cc, scatter_nd_op.cc, array_grad.py.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext, constant_value
from thalweg.kernel.convention import traceable
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, ints, is_host, shape_text
from thalweg.ops._gradient_nodes import zeros_like
from thalweg.ops._points import gather_nd, scatter
from thalweg.ops._types import INDEX


def _gather_nd_shape(c: ShapeContext) -> list[Shape]:
    params, indices = c.shape(0), c.with_rank_at_least(1, 1)
    if params is None or indices is None or indices[-1] is None:
        return [None]
    depth = indices[-1]
    if depth > len(params):
        raise ValueError(f"indices.shape[-1] must be <= params.rank, but saw indices shape: "
                         f"{shapes.format_shape(indices)} and params shape: {shapes.format_shape(params)}")
    return [(*indices[:-1], *params[depth:])]


def _point_may_fail(shape_of: int, indices_at: int) -> Any:
    """False where the indices are constants inside of a known shape."""

    def may_fail(op: Operation) -> bool:
        indices = constant_value(op._inputs[indices_at])
        limits = op._inputs[shape_of]._shape if shape_of >= 0 else op._outputs[0]._shape
        if indices is None or limits is None or not indices.ndim:
            return True
        known = limits[: indices.shape[-1]]
        if None in known or len(known) != indices.shape[-1]:
            return True
        return bool(((indices < 0) | (indices >= np.array(known, np.int64))).any())

    return may_fail


def _gather_nd_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | IndexedSlices | None]:
    params, indices = op.inputs
    shape = emit.shape(params, out_type=indices._dtype.base_dtype)
    known = indices._shape
    if known is not None and len(known) == 2 and known[-1] == 1:
        return [IndexedSlices(dy, emit("Squeeze", indices, squeeze_dims=[-1]), shape), None]
    policy = op._attrs["bad_indices_policy"]
    return [emit("ScatterNd", indices, dy, shape, bad_indices_policy=policy), None]


define_op(
    "GatherNd",
    inputs="params: Tparams, indices: Tindices",
    outputs="output: Tparams",
    attrs="Tparams: type, Tindices: {int16, int32, int64}, bad_indices_policy: string = ''",
    shape=_gather_nd_shape,
    kernel=traceable(gather_nd, host=gather_nd, may_fail=_point_may_fail(0, 1)),
    gradient=_gather_nd_gradient,
    doc="Slices of params at the places that the rows of indices name.",
)


def _check_updates(indices: Shape, updates: Shape, target: Shape) -> None:
    if indices is None or updates is None or target is None or indices[-1] is None:
        return
    if indices[-1] > len(target):
        raise ValueError(
            f"indices.shape[-1] must be <= the rank of the result: {shapes.format_shape(indices)} and "
            f"{shapes.format_shape(target)}"
        )
    wanted = (*indices[:-1], *target[indices[-1] :])
    if not shapes.is_compatible(updates, wanted):
        raise ValueError(
            f"Dimensions of updates must be {shapes.format_shape(wanted)} for indices "
            f"{shapes.format_shape(indices)} and shape {shapes.format_shape(target)}, but are "
            f"{shapes.format_shape(updates)}"
        )


def _scatter_nd_shape(c: ShapeContext) -> list[Shape]:
    target = c.value_as_shape(2)
    _check_updates(c.with_rank_at_least(0, 1), c.shape(1), target)
    return [target]


def _scatter_nd_kernel(indices: Any, updates: Any, shape: Any) -> Any:
    target = tuple(ints(shape))
    fail_unless(all(d >= 0 for d in target), lambda: f"shape {shape_text(target)} has a negative size")
    fail_unless(
        0 not in target or 0 in np.shape(updates) or 0 in np.shape(indices),
        lambda: "Indices and updates specified for empty output. indices shape: "
        f"{shape_text(np.shape(indices))}",
    )
    like = updates if is_host(updates, indices) else jnp.zeros((0,))
    zeros = arrays.full(target, arrays.zero(updates.dtype)[()], updates.dtype, like)
    return scatter(zeros, indices, updates, add=True)


define_op(
    "ScatterNd",
    inputs="indices: Tindices, updates: T, shape: Tindices",
    outputs="output: T",
    attrs="T: type, Tindices: {int16, int32, int64}, bad_indices_policy: string = ''",
    shape=_scatter_nd_shape,
    kernel=traceable(
        _scatter_nd_kernel, host=_scatter_nd_kernel, static=("shape",), may_fail=_point_may_fail(-1, 0)
    ),
    gradient=lambda emit, op, dy: [None, emit("GatherNd", dy, op.inputs[0]), None],
    doc="Zeros of this shape, with updates added at the places that the rows of indices name.",
)


def _tensor_scatter_shape(c: ShapeContext) -> list[Shape]:
    _check_updates(c.with_rank_at_least(1, 1), c.shape(2), c.shape(0))
    return [c.shape(0)]


def _tensor_scatter_update_kernel(tensor: Any, indices: Any, updates: Any) -> Any:
    return scatter(tensor, indices, updates, add=False)


def _tensor_scatter_add_kernel(tensor: Any, indices: Any, updates: Any) -> Any:
    return scatter(tensor, indices, updates, add=True)


def _tensor_scatter_update_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    indices = op.inputs[1]
    updates_grad = emit("GatherNd", dy, indices)
    zeros = zeros_like(emit, op.inputs[2])
    return [emit("TensorScatterUpdate", emit("Identity", dy), indices, zeros), None, updates_grad]


def _tensor_scatter_add_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    updates_grad = emit("GatherNd", dy, op.inputs[1])
    return [emit("Identity", dy), None, updates_grad]


define_op(
    "TensorScatterUpdate",
    inputs="tensor: T, indices: Tindices, updates: T",
    outputs="output: T",
    attrs="T: type, Tindices: {int16, int32, int64, uint16}, bad_indices_policy: string = ''",
    shape=_tensor_scatter_shape,
    kernel=traceable(
        _tensor_scatter_update_kernel, host=_tensor_scatter_update_kernel, may_fail=_point_may_fail(0, 1)
    ),
    gradient=_tensor_scatter_update_gradient,
    doc="A copy of tensor with updates at the places that the rows of indices name.",
)

define_op(
    "TensorScatterAdd",
    inputs="tensor: T, indices: Tindices, updates: T",
    outputs="output: T",
    attrs=f"T: type, Tindices: {INDEX}, bad_indices_policy: string = ''",
    shape=_tensor_scatter_shape,
    kernel=traceable(
        _tensor_scatter_add_kernel, host=_tensor_scatter_add_kernel, may_fail=_point_may_fail(0, 1)
    ),
    gradient=_tensor_scatter_add_gradient,
    doc="A copy of tensor with updates added at the places that the rows of indices name.",
)
