"""Reading tf.train.Example messages into tensors. Source: TensorFlow's example_parsing_ops.cc.

A key that is missing takes its default value; a feature without a list, or with an empty map entry, counts as
missing. The lists themselves are read in formats/examples.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base.shape import Shape
from thalweg.formats.examples import Column, ExampleError, columns
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import host
from thalweg.ops._example_outputs import Names, Plan, check_keys, failure, flat_bytes, names_of, plan_of

_NO_GRADIENT = NotDifferentiable("what is read from messages has no gradient")
_KINDS = "{float, int64, string}"


def _columns(serialized: list[bytes], plan: Plan, names: Names) -> dict[bytes, Column]:
    try:
        return columns(serialized, plan.kinds)
    except ExampleError as e:
        raise names.of(e) from None


def _parse_example_kernel(
    serialized: Any,
    names: Any,
    sparse_keys: list[Any],
    dense_keys: list[Any],
    dense_defaults: list[Any],
    *,
    sparse_types: tuple[np.dtype, ...],
    Tdense: tuple[np.dtype, ...],
    dense_shapes: tuple[Shape, ...],
) -> list[Any]:
    plan = plan_of(
        tuple(zip((k.item() for k in sparse_keys), sparse_types, strict=True)),
        tuple(zip((k.item() for k in dense_keys), Tdense, dense_shapes, strict=True)),
    )
    messages = flat_bytes(serialized)
    called = names_of(names, len(messages))
    return plan.outputs(_columns(messages, plan, called), dense_defaults, called)


def _parse_example_v2_kernel(
    serialized: Any,
    names: Any,
    sparse_keys: Any,
    dense_keys: Any,
    ragged_keys: Any,
    dense_defaults: list[Any],
    *,
    sparse_types: tuple[np.dtype, ...],
    Tdense: tuple[np.dtype, ...],
    dense_shapes: tuple[Shape, ...],
    ragged_value_types: tuple[np.dtype, ...],
    ragged_split_types: tuple[np.dtype, ...],
) -> list[Any]:
    wanted = (flat_bytes(sparse_keys), flat_bytes(dense_keys), flat_bytes(ragged_keys))
    for what, keys, types in zip(
        ("sparse", "dense", "ragged"), wanted, (sparse_types, Tdense, ragged_value_types), strict=True
    ):
        check_keys(what, keys, types)
    plan = plan_of(
        tuple(zip(wanted[0], sparse_types, strict=True)),
        tuple(zip(wanted[1], Tdense, dense_shapes, strict=True)),
        tuple(zip(wanted[2], ragged_value_types, ragged_split_types, strict=True)),
    )
    if np.ndim(serialized) == 0:
        return _single(plan, serialized, dense_defaults)
    messages = flat_bytes(serialized)
    called = names_of(names, len(messages))
    return plan.outputs(_columns(messages, plan, called), dense_defaults, called)


def _single(plan: Plan, serialized: Any, dense_defaults: list[Any]) -> list[Any]:
    called = Names([], is_batch=False)
    return plan.single_outputs(_columns(flat_bytes(serialized), plan, called), dense_defaults, called)


def _parse_single_kernel(
    serialized: Any,
    dense_defaults: list[Any],
    *,
    sparse_keys: tuple[str, ...],
    dense_keys: tuple[str, ...],
    sparse_types: tuple[np.dtype, ...],
    Tdense: tuple[np.dtype, ...],
    dense_shapes: tuple[Shape, ...],
) -> list[Any]:
    plan = plan_of(
        tuple(zip((k.encode() for k in sparse_keys), sparse_types, strict=True)),
        tuple(zip((k.encode() for k in dense_keys), Tdense, dense_shapes, strict=True)),
    )
    if np.ndim(serialized):
        raise failure(f"serialized must be a scalar, but has shape {np.shape(serialized)}")
    return _single(plan, serialized, dense_defaults)


def _dense_shapes(c: ShapeContext, names: str, shapes: str) -> list[Shape]:
    if len(c.attr(names)) != len(c.attr(shapes)):
        raise ValueError(
            f"len({shapes}) is {len(c.attr(shapes))}, but there are {len(c.attr(names))} dense keys"
        )
    for i, shape in enumerate(c.attr(shapes)):
        if shape is None or None in shape[1:]:
            raise ValueError(f"{shapes}[{i}] must be known except for its first dimension, but is {shape}")
    return list(c.attr(shapes))


def _batch_shapes(c: ShapeContext, n: Any, num_sparse: int) -> list[Shape]:
    """Of sparse and dense outputs, for a batch of n examples (or None)."""
    sparse: list[Shape] = [(None, 2)] * num_sparse + [(None,)] * num_sparse + [(2,)] * num_sparse
    return sparse + [(n, *s) for s in _dense_shapes(c, "Tdense", "dense_shapes") if s is not None]


def _single_shapes(c: ShapeContext, num_sparse: int) -> list[Shape]:
    sparse: list[Shape] = [(None, 1)] * num_sparse + [(None,)] * num_sparse + [(1,)] * num_sparse
    return sparse + _dense_shapes(c, "Tdense", "dense_shapes")


def _parse_example_shape(c: ShapeContext) -> list[Shape]:
    serialized = c.with_rank(0, 1)
    assert serialized is not None
    return _batch_shapes(c, serialized[0], c.attr("Nsparse"))


def _parse_example_v2_shape(c: ShapeContext) -> list[Shape]:
    serialized = c.shape(0)
    n = c.attr("num_sparse")
    ragged = len(c.attr("ragged_value_types"))
    values: list[Shape] = [(None,)] * ragged
    if serialized is None:
        dense: list[Shape] = [None] * len(_dense_shapes(c, "Tdense", "dense_shapes"))
        return [(None, None)] * n + [(None,)] * n + [(None,)] * n + dense + values + values
    if len(serialized) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {len(serialized)}")
    if not serialized:
        return [*_single_shapes(c, n), *values, *[(0,)] * ragged]
    splits = None if serialized[0] is None else serialized[0] + 1
    return [*_batch_shapes(c, serialized[0], n), *values, *[(splits,)] * ragged]


def _parse_single_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    return _single_shapes(c, c.attr("num_sparse"))


define_op(
    "ParseExample",
    inputs="serialized: string, names: string, sparse_keys: Nsparse * string, dense_keys: Ndense * string, "
    "dense_defaults: Tdense",
    outputs="sparse_indices: Nsparse * int64, sparse_values: sparse_types, sparse_shapes: Nsparse * int64, "
    "dense_values: Tdense",
    attrs=f"Nsparse: int >= 0, Ndense: int >= 0, sparse_types: list({_KINDS}) >= 0, "
    f"Tdense: list({_KINDS}) >= 0, dense_shapes: list(shape) >= 0",
    shape=_parse_example_shape,
    kernel=host(_parse_example_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="Tensors of the features of a batch of serialised Examples.",
)

define_op(
    "ParseExampleV2",
    inputs="serialized: string, names: string, sparse_keys: string, dense_keys: string, ragged_keys: string, "
    "dense_defaults: Tdense",
    outputs="sparse_indices: num_sparse * int64, sparse_values: sparse_types, "
    "sparse_shapes: num_sparse * int64, dense_values: Tdense, ragged_values: ragged_value_types, "
    "ragged_row_splits: ragged_split_types",
    attrs=f"Tdense: list({_KINDS}) >= 0, num_sparse: int >= 0, sparse_types: list({_KINDS}) >= 0, "
    f"ragged_value_types: list({_KINDS}) >= 0, ragged_split_types: list({{int32, int64}}) >= 0, "
    "dense_shapes: list(shape) >= 0",
    shape=_parse_example_v2_shape,
    kernel=host(_parse_example_v2_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="Tensors of the features of a serialised Example, or of a batch of them; ragged ones too.",
)

define_op(
    "ParseSingleExample",
    inputs="serialized: string, dense_defaults: Tdense",
    outputs="sparse_indices: num_sparse * int64, sparse_values: sparse_types, "
    "sparse_shapes: num_sparse * int64, dense_values: Tdense",
    attrs="num_sparse: int >= 0, sparse_keys: list(string) >= 0, dense_keys: list(string) >= 0, "
    f"sparse_types: list({_KINDS}) >= 0, Tdense: list({_KINDS}) >= 0, dense_shapes: list(shape) >= 0",
    shape=_parse_single_shape,
    kernel=host(_parse_single_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="Tensors of the features of one serialised Example.",
)
