"""Examples as tensors: parse_example and its like. Source: TensorFlow's parsing_ops.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thalweg.base import dtypes
from thalweg.graph.composite import SparseTensor
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library import framework
from thalweg.library.array_ops import expand_dims, identity, rank
from thalweg.library.casting import cast
from thalweg.library.check_ops import Assert
from thalweg.library.example_features import (
    FeatureParams,
    FixedLenFeature,
    FixedLenSequenceFeature,
    SparseFeature,
    VarLenFeature,
)
from thalweg.library.framework import name_scope
from thalweg.library.joining_ops import concat
from thalweg.library.sparse_ops import sparse_reorder

Features = Mapping[str, Any]


def parse_example(
    serialized: Any, features: Features, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The features of a vector of serialised Examples: a dictionary of tensors and SparseTensors.

    features: a FixedLenFeature, FixedLenSequenceFeature, VarLenFeature or SparseFeature for each key wanted.
    example_names: what the examples are called in errors. InvalidArgumentError, when run, where an example is
    damaged, has a value of another type or size, or lacks a feature without a default.
    """
    if not features:
        raise ValueError(f"Argument `features` cannot be None or falsy. Got {features}")
    features = {key: _with_rows(key, feature) for key, feature in features.items()}
    params = FeatureParams(features, (VarLenFeature, SparseFeature, FixedLenFeature, FixedLenSequenceFeature))
    with name_scope(name, "ParseExample", [serialized, example_names]):
        serialized = convert_to_tensor(serialized, dtypes.string, name="serialized")
        n = len(params.sparse)
        results = emit(
            "ParseExampleV2",
            serialized=serialized,
            names=[] if example_names is None else example_names,
            sparse_keys=list(params.sparse),
            dense_keys=list(params.dense),
            ragged_keys=[],
            dense_defaults=params.default_tensors(),
            num_sparse=n,
            sparse_types=list(params.sparse.values()),
            ragged_value_types=[],
            ragged_split_types=[],
            dense_shapes=params.dense_shapes,
            name=name,
        )
    found = _by_key(params, results[:4])
    return _with_sparse_features(features, found)


def _with_rows(key: str, feature: Any) -> Any:
    """A sequence of rows as the op wants it: with the number of rows as its first dimension."""
    if not isinstance(feature, FixedLenSequenceFeature):
        return feature
    if not feature.allow_missing:
        raise ValueError(
            f"Unsupported: FixedLenSequenceFeature requires allow_missing to be True: feature {key}"
        )
    return feature._replace(shape=[None, *feature.shape])


def _by_key(params: FeatureParams, parts: Any) -> dict[str, Any]:
    indices, values, shapes, dense = parts
    sparse = [SparseTensor(*cell) for cell in zip(indices, values, shapes, strict=True)]
    return dict(zip([*params.sparse, *params.dense], [*sparse, *dense], strict=True))


def _with_sparse_features(features: Features, found: dict[str, Any]) -> dict[str, Any]:
    """SparseFeatures out of their parts; parts that nobody asked for left out."""
    result = {key: value for key, value in found.items() if key in features}
    for key in sorted(features):
        feature = features[key]
        if isinstance(feature, SparseFeature):
            is_single = isinstance(feature.index_key, str)
            keys = [feature.index_key] if is_single else list(feature.index_key)
            sizes = [feature.size] if is_single else list(feature.size)
            if len(keys) != len(sizes):
                raise ValueError("sp_ids and vocab_size have to have equal lengths.")
            result[key] = _merged([found[k] for k in keys], found[feature.value_key], sizes, feature)
    return result


def _merged(
    ids: list[SparseTensor], values: SparseTensor, sizes: list[Any], feature: SparseFeature
) -> SparseTensor:
    """A SparseTensor whose last positions are the values of others."""
    with name_scope(None, "SparseMerge"):
        columns = [expand_dims(x.values, axis=1) for x in ids]
        wide = [cast(size, dtypes.int64) for size in sizes]
        indices = concat([ids[0].indices[:, :-1], *columns], 1)
        shape = concat([ids[0].dense_shape[:-1], wide], 0)
        merged = SparseTensor(indices, values.values, shape)
        if feature.already_sorted:
            return merged
        ordered = sparse_reorder(merged)
        return SparseTensor(ordered.indices, ordered.values, shape)


def parse_single_example(
    serialized: Any, features: Features, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The features of one serialised Example, a scalar; see parse_example. There is no batch dimension."""
    if not features:
        raise ValueError("Invalid argument: features cannot be empty.")
    with name_scope(name, "ParseSingleExample", [serialized, example_names]):
        serialized = _scalar(serialized)
        return parse_example(serialized, features, name, example_names)


def _scalar(value: Any) -> Tensor:
    tensor = convert_to_tensor(value, dtypes.string, name="serialized")
    if tensor.shape.rank is None:
        check = Assert(
            emit("Equal", rank(tensor), 0), ["Input serialized must be a scalar"], name="SerializedIsScalar"
        )
        with framework.control_dependencies([check]):
            tensor = identity(tensor, name="serializedDependencies")
        tensor.set_shape([])
    elif tensor.shape.rank != 0:
        raise ValueError("Input serialized must be a scalar")
    return tensor


_CONTEXT = (VarLenFeature, FixedLenFeature)
_LISTS = (VarLenFeature, FixedLenSequenceFeature)


def parse_sequence_example(
    serialized: Any,
    context_features: Features | None = None,
    sequence_features: Features | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The features of a vector of serialised SequenceExamples: of contexts and sequences, and lengths.

    context_features: as for parse_example, FixedLenFeature and VarLenFeature. sequence_features:
    FixedLenSequenceFeature ([batch, most steps, *shape], with zeros behind shorter ones) and VarLenFeature (a
    SparseTensor [batch, step, index]). The lengths are the numbers of steps of the dense ones.
    """
    context, lists = _sequence_params(context_features, sequence_features)
    with name_scope(name, "ParseSequenceExample", [serialized, example_names]):
        return _parse_sequences(serialized, example_names, context, lists, name)


def parse_single_sequence_example(
    serialized: Any,
    context_features: Features | None = None,
    sequence_features: Features | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The features of one serialised SequenceExample; see parse_sequence_example. No batch dimension."""
    context, lists = _sequence_params(context_features, sequence_features)
    with name_scope(name, "ParseSingleSequenceExample", [serialized, example_name]):
        with name_scope(name, "ParseSingleExample", [serialized, example_name]):
            serialized = _scalar(serialized)
        return _parse_sequences(serialized, example_name, context, lists, name)[:2]


def _sequence_params(
    context_features: Features | None, sequence_features: Features | None
) -> tuple[FeatureParams, FeatureParams]:
    if not (context_features or sequence_features):
        raise ValueError(
            "Both `context_features` and `sequence_features` argument are None, but at least one should have "
            "values."
        )
    lists = FeatureParams(sequence_features, _LISTS)
    for key, default in lists.defaults.items():
        if default is not None:
            raise ValueError(f"Value feature_list.dense_defaults[{key}] must be None")
    return FeatureParams(context_features, _CONTEXT), lists


def _parse_sequences(
    serialized: Any, names: Any, context: FeatureParams, lists: FeatureParams, name: str | None
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    with name_scope(name, "ParseSequenceExample", [serialized]):
        serialized = convert_to_tensor(serialized, dtypes.string, name="serialized")
        may_miss = [key in lists.defaults for key in lists.dense]
        results = emit(
            "ParseSequenceExampleV2",
            serialized=serialized,
            debug_name=[] if names is None else names,
            context_sparse_keys=list(context.sparse),
            context_dense_keys=list(context.dense),
            context_ragged_keys=[],
            feature_list_sparse_keys=list(lists.sparse),
            feature_list_dense_keys=list(lists.dense),
            feature_list_ragged_keys=[],
            feature_list_dense_missing_assumed_empty=may_miss,
            context_dense_defaults=context.default_tensors(),
            Ncontext_sparse=len(context.sparse),
            Nfeature_list_sparse=len(lists.sparse),
            Nfeature_list_dense=len(lists.dense),
            context_sparse_types=list(context.sparse.values()),
            context_ragged_value_types=[],
            context_ragged_split_types=[],
            feature_list_dense_types=lists.dense_types,
            feature_list_sparse_types=list(lists.sparse.values()),
            feature_list_ragged_value_types=[],
            feature_list_ragged_split_types=[],
            context_dense_shapes=context.dense_shapes,
            feature_list_dense_shapes=lists.dense_shapes,
            name=name,
        )
    found_context = _by_key(context, results[:4])
    found_lists = _by_key(lists, results[6:10])
    lengths = dict(zip(lists.dense, results[10], strict=True))
    return found_context, found_lists, lengths
