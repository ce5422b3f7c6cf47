"""What parse_example is told of features, and what ops make of it. Source: TensorFlow's parsing_config.py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.convert import constant, convert_to_tensor
from thalweg.graph.operation import Tensor
from thalweg.library.array_ops import reshape


class FixedLenFeature(NamedTuple):
    """A feature with a value of the same shape in every example: a tensor [batch, *shape].

    default_value: for examples without the feature; None: they are an error.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature of any number of rows of one shape: a tensor [batch, most rows, *shape], padded.

    allow_missing: examples without the feature have no rows (parse_example wants this). default_value: the
    padding.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature of any number of values: a SparseTensor."""

    dtype: Any


class SparseFeature(NamedTuple):
    """A SparseTensor out of several features: positions (one feature per dimension) and values.

    index_key: the key of the positions, or a list of keys. size: of the dimension, or a list. already_sorted:
    the positions are in order, which saves sorting.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class FeatureParams:
    """Features sorted by what ops make of them: sparse and dense ones, with types, shapes and defaults."""

    def __init__(self, features: Mapping[str, Any] | None, allowed: tuple[type, ...]) -> None:
        self.sparse: dict[str, DType] = {}
        self.dense: dict[str, tuple[DType, TensorShape]] = {}
        #: defaults of dense keys: None for a sequence that may be missing
        self.defaults: dict[str, Any] = {}
        for key in sorted(features or ()):
            assert features is not None
            feature = features[key]
            if not isinstance(feature, allowed):
                raise ValueError(f"Unsupported {type(feature).__name__} {feature}.")
            self._add(key, feature)
        both = self.sparse.keys() & self.dense.keys()
        if both:
            raise ValueError(
                f"Dense and sparse keys must not intersect; dense_keys: {list(self.dense)}, sparse_keys: "
                f"{list(self.sparse)}, intersection: {both}"
            )

    def __len__(self) -> int:
        return len(self.sparse) + len(self.dense)

    @property
    def dense_types(self) -> list[DType]:
        """The type of each dense key."""
        return [dtype for dtype, _ in self.dense.values()]

    @property
    def dense_shapes(self) -> list[TensorShape]:
        """The shape of each dense key."""
        return [shape for _, shape in self.dense.values()]

    def default_tensors(self) -> list[Tensor]:
        """The default of each dense key as a tensor; an empty one where it must not be missing."""
        return [self._default(key, dtype, shape) for key, (dtype, shape) in self.dense.items()]

    def _default(self, key: str, dtype: DType, shape: TensorShape) -> Tensor:
        default = self.defaults.get(key)
        name = re.sub(r"[^A-Za-z0-9_.\-/]", "_", key)
        if shape.rank and shape.as_list()[0] is None:  # any number of rows: the padding
            if default is None:
                return convert_to_tensor("" if dtype == dtypes.string else 0, dtype)
            return reshape(convert_to_tensor(default, dtype, name=f"padding_{name}"), [])
        if default is None:
            return constant([], dtype)
        if isinstance(default, Tensor):
            return default
        return reshape(convert_to_tensor(default, dtype, name=f"key_{name}"), shape.as_list())

    def _add(self, key: str, feature: Any) -> None:
        if not feature.dtype:
            raise ValueError(f"Missing type for feature {key}. Received feature={feature}.")
        if isinstance(feature, VarLenFeature):
            self._add_sparse(key, feature.dtype)
        elif isinstance(feature, SparseFeature):
            self._add_parts(feature)
        else:
            self._add_dense(key, feature)

    def _add_sparse(self, key: str, dtype: Any) -> None:
        dtype = dtypes.as_dtype(dtype)
        known = self.sparse.setdefault(key, dtype)
        if known != dtype:
            raise ValueError(f"Conflicting type {known} vs {dtype} for feature {key}.")

    def _add_parts(self, feature: SparseFeature) -> None:
        if not feature.index_key:
            raise ValueError(f"Missing index_key for SparseFeature {feature}.")
        if not feature.value_key:
            raise ValueError(f"Missing value_key for SparseFeature {feature}.")
        keys = [feature.index_key] if isinstance(feature.index_key, str) else feature.index_key
        for key in sorted(keys):
            self._add_sparse(key, dtypes.int64)
        self._add_sparse(feature.value_key, feature.dtype)

    def _add_dense(self, key: str, feature: FixedLenFeature | FixedLenSequenceFeature) -> None:
        if feature.shape is None:
            raise ValueError(f"Missing shape for feature {key}. Received feature={feature}.")
        shape = TensorShape(feature.shape)
        if isinstance(feature, FixedLenFeature):
            if shape.rank and shape.as_list()[0] is None:
                raise ValueError(
                    f"First dimension of shape for feature {key} unknown. Consider using "
                    f"FixedLenSequenceFeature. Received feature={feature}."
                )
            if not shape.is_fully_defined():
                raise ValueError(
                    f"All dimensions of shape for feature {key} need to be known, not {feature.shape}."
                )
        elif feature.allow_missing:
            self.defaults[key] = None
        self.dense[key] = dtypes.as_dtype(feature.dtype), shape
        if feature.default_value is not None:
            self.defaults[key] = feature.default_value
