"""Reading tf.train.SequenceExample messages into tensors. Source: TensorFlow's example_parsing_ops.cc.

The context is read as an Example is. A feature list gives a step per Feature: dense lists are padded with
zeros to the longest of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg.base.shape import Shape
from thalweg.formats.examples import KIND_NAMES, ExampleError
from thalweg.formats.sequence_examples import Lists, sequence_columns
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import host
from thalweg.ops._example_outputs import (
    Dense,
    Names,
    Plan,
    check_keys,
    failure,
    flat_bytes,
    kind_of,
    names_of,
    plan_of,
)

_NO_GRADIENT = NotDifferentiable("what is read from messages has no gradient")
_KINDS = "list({float, int64, string}) >= 0 = []"
_SPLITS = "list({int32, int64}) >= 0 = []"
_SHAPES = "list(shape) >= 0 = []"
_COUNT = "int >= 0 = 0"


@dataclass(frozen=True)
class _ListPlan:
    """What is wanted of the feature lists. may_miss: dense keys that count as empty where missing."""

    sparse: tuple[tuple[bytes, int], ...]
    dense: tuple[Dense, ...]
    ragged: tuple[tuple[bytes, int, np.dtype], ...]
    may_miss: frozenset[bytes]

    @property
    def kinds(self) -> dict[bytes, int]:
        """The kind of list of each key."""
        kinds = dict(self.sparse)
        kinds |= {d.key: d.kind for d in self.dense}
        return kinds | {key: kind for key, kind, _ in self.ragged}

    def check(self, found: Mapping[bytes, Lists], names: Names) -> None:
        """InvalidArgumentError where a dense list is missing, or a step of one has another size."""
        for feature in self.dense:
            lists = found[feature.key]
            if feature.key not in self.may_miss and not lists.present.all():
                i = int(np.flatnonzero(~lists.present)[0])
                key = feature.key.decode("utf-8", "replace")
                raise failure(
                    f"Name: {names.name(i)}, Feature list '{key}' is required but could not be found.  Did "
                    "you mean to include it in feature_list_dense_missing_assumed_empty or "
                    "feature_list_dense_defaults?"
                )
            wrong = np.flatnonzero(lists.counts != feature.stride)
            if len(wrong):
                step = int(wrong[0])
                i = int(np.searchsorted(np.cumsum(lists.steps), step, "right"))
                t = step - int(lists.steps[:i].sum())
                raise names.fail(
                    i,
                    feature.key,
                    f"Number of {KIND_NAMES[feature.kind]} values != expected in step {t}.  Values size: "
                    f"{lists.counts[step]} but output shape: {feature.text()}",
                )

    def outputs(self, found: Mapping[bytes, Lists]) -> list[Any]:
        """Of a batch: indices, values, shapes; dense values, their lengths."""
        sparse = [_sparse(found[key]) for key, _ in self.sparse]
        result = [part for parts in zip(*sparse, strict=True) for part in parts]
        result += [_padded(found[d.key], d) for d in self.dense]
        return result + [found[d.key].steps for d in self.dense]

    def single_outputs(self, found: Mapping[bytes, Lists]) -> list[Any]:
        """The same of one example, without the batch's dimension."""
        sparse = []
        for key, _ in self.sparse:
            indices, values, shape = _sparse(found[key])
            sparse.append((indices[:, 1:], values, shape[1:]))
        result = [part for parts in zip(*sparse, strict=True) for part in parts]
        result += [found[d.key].values.reshape((-1, *d.shape)) if d.stride else _padded(found[d.key], d)[0]
                   for d in self.dense]  # fmt: skip
        return result + [found[d.key].steps[0] for d in self.dense]

    def ragged_outputs(self, found: Mapping[bytes, Lists], single: bool) -> list[Any]:
        """Values, outer splits (steps of each example), inner splits (values of each step)."""
        groups = []
        for key, _, dtype in self.ragged:
            lists = found[key]
            outer = np.empty(0, dtype) if single else _splits(lists.steps, dtype)
            groups.append((lists.values, outer, _splits(lists.counts, dtype)))
        return [part for parts in zip(*groups, strict=True) for part in parts]


def _splits(counts: np.ndarray, dtype: np.dtype) -> np.ndarray:
    result = np.zeros(len(counts) + 1, dtype)
    np.cumsum(counts, out=result[1:])
    return result


def _sparse(lists: Lists) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[example, step, index in the step] of each value; the values; the shape."""
    steps, counts = lists.steps, lists.counts
    total = len(lists.values)
    example_of_step = np.repeat(np.arange(len(steps)), steps)
    step_in_example = np.arange(len(counts)) - np.repeat(np.cumsum(steps) - steps, steps)
    indices = np.empty((total, 3), np.int64)
    indices[:, 0] = np.repeat(example_of_step, counts)
    indices[:, 1] = np.repeat(step_in_example, counts)
    indices[:, 2] = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    longest = steps.max() if len(steps) else 0
    shape = np.array([len(steps), longest, counts.max() if len(counts) else 0], np.int64)
    return indices, lists.values, shape


def _padded(lists: Lists, feature: Dense) -> np.ndarray:
    """[examples, most steps, *shape], with zeros (or empty strings) behind the shorter ones."""
    n, stride = len(lists.steps), feature.stride
    longest = int(lists.steps.max()) if n else 0
    if lists.values.dtype == object:
        result = np.full((n, longest, stride), b"", object)
    else:
        result = np.zeros((n, longest, stride), lists.values.dtype)
    result[np.arange(longest) < lists.steps[:, None]] = lists.values.reshape(-1, stride) if stride else 0
    return result.reshape((n, longest, *feature.shape))


def _read(
    messages: list[bytes], plan: Plan, lists: _ListPlan, names: Names
) -> tuple[dict[bytes, Any], dict[bytes, Lists]]:
    try:
        context, found = sequence_columns(messages, plan.kinds, lists.kinds)
    except ExampleError as e:
        raise names.of(e) from None
    lists.check(found, names)
    return context, found


def _pairs(keys: Sequence[bytes], types: Sequence[np.dtype]) -> tuple[tuple[bytes, int], ...]:
    return tuple((key, kind_of(t)) for key, t in zip(keys, types, strict=True))


def _dense(keys: Sequence[bytes], types: Sequence[np.dtype], shapes: Sequence[Any]) -> tuple[Dense, ...]:
    return tuple(Dense(k, kind_of(t), tuple(s)) for k, t, s in zip(keys, types, shapes, strict=True))


def _encoded(keys: Sequence[str]) -> list[bytes]:
    return [k.encode() for k in keys]


def _parse_single_kernel(
    serialized: Any,
    feature_list_dense_missing_assumed_empty: Any,
    context_sparse_keys: list[Any],
    context_dense_keys: list[Any],
    feature_list_sparse_keys: list[Any],
    feature_list_dense_keys: list[Any],
    context_dense_defaults: list[Any],
    debug_name: Any,
    *,
    context_sparse_types: tuple[np.dtype, ...],
    Tcontext_dense: tuple[np.dtype, ...],
    feature_list_dense_types: tuple[np.dtype, ...],
    context_dense_shapes: tuple[Shape, ...],
    feature_list_sparse_types: tuple[np.dtype, ...],
    feature_list_dense_shapes: tuple[Shape, ...],
) -> list[Any]:
    scalar = [[k.item() for k in keys] for keys in (context_sparse_keys, context_dense_keys,
              feature_list_sparse_keys, feature_list_dense_keys)]  # fmt: skip
    plan = plan_of(
        tuple(zip(scalar[0], context_sparse_types, strict=True)),
        tuple(zip(scalar[1], Tcontext_dense, context_dense_shapes, strict=True)),
    )
    lists = _ListPlan(
        _pairs(scalar[2], feature_list_sparse_types),
        _dense(scalar[3], feature_list_dense_types, feature_list_dense_shapes),
        (),
        frozenset(flat_bytes(feature_list_dense_missing_assumed_empty)),
    )
    if np.ndim(serialized):
        raise failure(f"serialized must be a scalar, but has shape {np.shape(serialized)}")
    names = Names([n for n in flat_bytes(debug_name) if n])
    context, found = _read(flat_bytes(serialized), plan, lists, names)
    result = plan.single_outputs(context, context_dense_defaults, names) + lists.single_outputs(found)
    return result[: len(result) - len(lists.dense)]  # without the lengths


def _parse_kernel(
    serialized: Any,
    debug_name: Any,
    context_dense_defaults: list[Any],
    *,
    feature_list_dense_missing_assumed_empty: tuple[str, ...],
    context_sparse_keys: tuple[str, ...],
    context_dense_keys: tuple[str, ...],
    feature_list_sparse_keys: tuple[str, ...],
    feature_list_dense_keys: tuple[str, ...],
    context_sparse_types: tuple[np.dtype, ...],
    Tcontext_dense: tuple[np.dtype, ...],
    feature_list_dense_types: tuple[np.dtype, ...],
    context_dense_shapes: tuple[Shape, ...],
    feature_list_sparse_types: tuple[np.dtype, ...],
    feature_list_dense_shapes: tuple[Shape, ...],
) -> list[Any]:
    plan = plan_of(
        tuple(zip(_encoded(context_sparse_keys), context_sparse_types, strict=True)),
        tuple(zip(_encoded(context_dense_keys), Tcontext_dense, context_dense_shapes, strict=True)),
    )
    lists = _ListPlan(
        _pairs(_encoded(feature_list_sparse_keys), feature_list_sparse_types),
        _dense(_encoded(feature_list_dense_keys), feature_list_dense_types, feature_list_dense_shapes),
        (),
        frozenset(_encoded(feature_list_dense_missing_assumed_empty)),
    )
    messages = flat_bytes(serialized)
    names = names_of(debug_name, len(messages))
    context, found = _read(messages, plan, lists, names)
    return plan.outputs(context, context_dense_defaults, names) + lists.outputs(found)


def _parse_v2_kernel(
    serialized: Any,
    debug_name: Any,
    context_sparse_keys: Any,
    context_dense_keys: Any,
    context_ragged_keys: Any,
    feature_list_sparse_keys: Any,
    feature_list_dense_keys: Any,
    feature_list_ragged_keys: Any,
    feature_list_dense_missing_assumed_empty: Any,
    context_dense_defaults: list[Any],
    *,
    Tcontext_dense: tuple[np.dtype, ...],
    context_sparse_types: tuple[np.dtype, ...],
    context_ragged_value_types: tuple[np.dtype, ...],
    context_ragged_split_types: tuple[np.dtype, ...],
    context_dense_shapes: tuple[Shape, ...],
    feature_list_dense_types: tuple[np.dtype, ...],
    feature_list_sparse_types: tuple[np.dtype, ...],
    feature_list_ragged_value_types: tuple[np.dtype, ...],
    feature_list_ragged_split_types: tuple[np.dtype, ...],
    feature_list_dense_shapes: tuple[Shape, ...],
) -> list[Any]:
    wanted = [
        ("context sparse", flat_bytes(context_sparse_keys), context_sparse_types),
        ("context dense", flat_bytes(context_dense_keys), Tcontext_dense),
        ("context ragged", flat_bytes(context_ragged_keys), context_ragged_value_types),
        ("feature list sparse", flat_bytes(feature_list_sparse_keys), feature_list_sparse_types),
        ("feature list dense", flat_bytes(feature_list_dense_keys), feature_list_dense_types),
        ("feature list ragged", flat_bytes(feature_list_ragged_keys), feature_list_ragged_value_types),
    ]
    for what, keys, types in wanted:
        check_keys(what, keys, types)
    context_keys = [tuple(zip(keys, types, strict=True)) for _, keys, types in wanted[:3]]
    plan = plan_of(
        context_keys[0],
        tuple((*pair, shape) for pair, shape in zip(context_keys[1], context_dense_shapes, strict=True)),
        tuple(
            (*pair, split) for pair, split in zip(context_keys[2], context_ragged_split_types, strict=True)
        ),
    )
    dense_keys = wanted[4][1]
    may_miss = np.broadcast_to(feature_list_dense_missing_assumed_empty, (len(dense_keys),))
    ragged = _pairs(wanted[5][1], feature_list_ragged_value_types)
    lists = _ListPlan(
        _pairs(wanted[3][1], feature_list_sparse_types),
        _dense(dense_keys, feature_list_dense_types, feature_list_dense_shapes),
        tuple((*pair, t) for pair, t in zip(ragged, feature_list_ragged_split_types, strict=True)),
        frozenset(k for k, ok in zip(dense_keys, may_miss, strict=True) if ok),
    )
    messages = flat_bytes(serialized)
    single = np.ndim(serialized) == 0
    names = Names(flat_bytes(debug_name)) if single else names_of(debug_name, len(messages))
    context, found = _read(messages, plan, lists, names)
    if single:
        result = plan.single_outputs(context, context_dense_defaults, names) + lists.single_outputs(found)
    else:
        result = plan.outputs(context, context_dense_defaults, names) + lists.outputs(found)
    return result + lists.ragged_outputs(found, single)


def _known(c: ShapeContext, shapes: str) -> list[tuple[Any, ...]]:
    for i, shape in enumerate(c.attr(shapes)):
        if shape is None:
            raise ValueError(f"{shapes}[{i}] must be known")
    return list(c.attr(shapes))


def _sparse_shapes(n: int, rank: int) -> list[Shape]:
    return [(None, rank)] * n + [(None,)] * n + [(rank,)] * n


def _single_shapes(c: ShapeContext) -> list[Shape]:
    """Without the lengths."""
    return [
        *_sparse_shapes(c.attr("Ncontext_sparse"), 1),
        *_known(c, "context_dense_shapes"),
        *_sparse_shapes(c.attr("Nfeature_list_sparse"), 2),
        *((None, *s) for s in _known(c, "feature_list_dense_shapes")),
    ]


def _batch_shapes(c: ShapeContext, n: Any) -> list[Shape]:
    lists = _known(c, "feature_list_dense_shapes")
    return [
        *_sparse_shapes(c.attr("Ncontext_sparse"), 2),
        *((n, *s) for s in _known(c, "context_dense_shapes")),
        *_sparse_shapes(c.attr("Nfeature_list_sparse"), 3),
        *((n, None, *s) for s in lists),
        *[(n,)] * len(lists),
    ]


def _parse_single_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    return _single_shapes(c)


def _parse_shape(c: ShapeContext) -> list[Shape]:
    serialized = c.with_rank(0, 1)
    assert serialized is not None
    return _batch_shapes(c, serialized[0])


def _parse_v2_shape(c: ShapeContext) -> list[Shape]:
    serialized = c.shape(0)
    if serialized is None:
        return [None] * len(c.op._outputs)
    if len(serialized) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {len(serialized)}")
    single = not serialized
    n = None if single else serialized[0]
    plain = _single_shapes(c) + [()] * c.attr("Nfeature_list_dense") if single else _batch_shapes(c, n)
    splits: Shape = (0,) if single else (None if n is None else n + 1,)
    context = len(c.attr("context_ragged_value_types"))
    lists = len(c.attr("feature_list_ragged_value_types"))
    at = 3 * c.attr("Ncontext_sparse") + len(c.attr("Tcontext_dense"))
    ragged_context: list[Shape] = [(None,)] * context + [splits] * context
    ragged_lists: list[Shape] = [(None,)] * lists + [splits] * lists + [(None,)] * lists
    return plain[:at] + ragged_context + plain[at:] + ragged_lists


_CONTEXT_OUT = (
    "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, "
    "context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense"
)
_LISTS_OUT = (
    "feature_list_sparse_indices: Nfeature_list_sparse * int64, "
    "feature_list_sparse_values: feature_list_sparse_types, "
    "feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
    "feature_list_dense_values: feature_list_dense_types"
)
_COUNTS = (
    f"Ncontext_sparse: {_COUNT}, Ncontext_dense: {_COUNT}, Nfeature_list_sparse: {_COUNT}, "
    f"Nfeature_list_dense: {_COUNT}, context_sparse_types: {_KINDS}, Tcontext_dense: {_KINDS}, "
    f"feature_list_dense_types: {_KINDS}, context_dense_shapes: {_SHAPES}, "
    f"feature_list_sparse_types: {_KINDS}, feature_list_dense_shapes: {_SHAPES}"
)
_KEYS = (
    "feature_list_dense_missing_assumed_empty", "context_sparse_keys", "context_dense_keys",
    "feature_list_sparse_keys", "feature_list_dense_keys",
)  # fmt: skip

define_op(
    "ParseSingleSequenceExample",
    inputs="serialized: string, feature_list_dense_missing_assumed_empty: string, "
    "context_sparse_keys: Ncontext_sparse * string, context_dense_keys: Ncontext_dense * string, "
    "feature_list_sparse_keys: Nfeature_list_sparse * string, "
    "feature_list_dense_keys: Nfeature_list_dense * string, context_dense_defaults: Tcontext_dense, "
    "debug_name: string",
    outputs=f"{_CONTEXT_OUT}, {_LISTS_OUT}",
    attrs=_COUNTS,
    shape=_parse_single_shape,
    kernel=host(_parse_single_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="Tensors of the context and the feature lists of one serialised SequenceExample.",
)

define_op(
    "ParseSequenceExample",
    inputs="serialized: string, debug_name: string, context_dense_defaults: Tcontext_dense",
    outputs=f"{_CONTEXT_OUT}, {_LISTS_OUT}, feature_list_dense_lengths: Nfeature_list_dense * int64",
    attrs=", ".join(f"{key}: list(string) >= 0" for key in _KEYS) + f", {_COUNTS}",
    shape=_parse_shape,
    kernel=host(_parse_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="Tensors of the contexts and the feature lists of a batch of serialised SequenceExamples.",
)

define_op(
    "ParseSequenceExampleV2",
    inputs="serialized: string, debug_name: string, context_sparse_keys: string, context_dense_keys: string, "
    "context_ragged_keys: string, feature_list_sparse_keys: string, feature_list_dense_keys: string, "
    "feature_list_ragged_keys: string, feature_list_dense_missing_assumed_empty: bool, "
    "context_dense_defaults: Tcontext_dense",
    outputs=f"{_CONTEXT_OUT}, context_ragged_values: context_ragged_value_types, "
    f"context_ragged_row_splits: context_ragged_split_types, {_LISTS_OUT}, "
    "feature_list_dense_lengths: Nfeature_list_dense * int64, "
    "feature_list_ragged_values: feature_list_ragged_value_types, "
    "feature_list_ragged_outer_splits: feature_list_ragged_split_types, "
    "feature_list_ragged_inner_splits: feature_list_ragged_split_types",
    attrs=f"Ncontext_sparse: {_COUNT}, Tcontext_dense: {_KINDS}, context_sparse_types: {_KINDS}, "
    f"context_ragged_value_types: {_KINDS}, context_ragged_split_types: {_SPLITS}, "
    f"context_dense_shapes: {_SHAPES}, Nfeature_list_sparse: {_COUNT}, Nfeature_list_dense: {_COUNT}, "
    f"feature_list_dense_types: {_KINDS}, feature_list_sparse_types: {_KINDS}, "
    f"feature_list_ragged_value_types: {_KINDS}, feature_list_ragged_split_types: {_SPLITS}, "
    f"feature_list_dense_shapes: {_SHAPES}",
    shape=_parse_v2_shape,
    kernel=host(_parse_v2_kernel, foldable=False),
    gradient=_NO_GRADIENT,
    doc="Tensors of a serialised SequenceExample, or of a batch of them; ragged ones too.",
)
