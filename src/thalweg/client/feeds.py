"""Feeds: what may be fed for a tensor, checked and brought into its element type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.graph.composite import IndexedSlices, SparseTensor
from thalweg.graph.convert import to_array
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Tensor


def expand_feeds(graph: Graph, feed_dict: Any) -> dict[Tensor, Any]:
    """feed_dict with every key a tensor of the graph: names, variables, sparse tensors and nests resolved."""
    if not isinstance(feed_dict, Mapping):
        raise TypeError(f"feed_dict must be a dictionary from tensors to values, but got {feed_dict!r}")
    result: dict[Tensor, Any] = {}
    for key, value in _pairs(feed_dict):
        try:
            tensor = graph.as_graph_element(key, allow_operation=False)
        except (TypeError, ValueError, KeyError) as e:
            text = e.args[0] if e.args else e
            raise TypeError(f"Cannot interpret feed_dict key as Tensor: {text}") from None
        if not graph.is_feedable(tensor):
            raise ValueError(f"Tensor {tensor.name} may not be fed.")
        result[tensor] = value
    return result


def _pairs(feed_dict: Any) -> Iterator[tuple[Any, Any]]:
    """Single keys with their values: a tuple as key takes a tuple of values, a composite its parts."""
    for key, value in feed_dict.items():
        if isinstance(key, SparseTensor):
            parts: tuple[Any, ...] = (key.indices, key.values, key.dense_shape)
        elif isinstance(key, IndexedSlices):
            # an IndexedSlicesValue is (values, indices, dense_shape), also where the shape isn't known
            parts = (key.values, key.indices)
            if key.dense_shape is not None:
                parts = (*parts, key.dense_shape)
            elif isinstance(value, tuple) and len(value) == 3 and value[2] is None:
                value = value[:2]
        elif isinstance(key, tuple):
            parts = key
        else:
            yield key, value
            continue
        if not isinstance(value, list | tuple) or len(value) != len(parts):
            raise ValueError(f"The feed_dict key {key!r} takes {len(parts)} values, but got {_show(value)}")
        yield from _pairs(dict(zip(parts, value, strict=True)))


def is_composite_key(key: Any) -> bool:
    """Whether a key of a feed_dict stands for several tensors."""
    return isinstance(key, SparseTensor | IndexedSlices | tuple)


class Feeder:
    """Converts and checks what is fed for one tensor; what it has seen last is checked fastest."""

    __slots__ = ("_accepted", "_dtype", "_numpy", "_shape", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self._dtype = tensor._dtype.base_dtype
        if self._dtype in (dtypes.resource, dtypes.variant):
            raise ValueError(f"Tensor {tensor.name} of dtype {self._dtype.name} can't be fed")
        self._numpy = np.dtype(self._dtype.as_numpy_dtype)
        self._shape = tensor._shape
        self._accepted: tuple[int, ...] | None = None

    def __call__(self, value: Any) -> Any:
        """The value as an array of the tensor's dtype.

        TypeError: a tensor was fed, or a value of a kind that doesn't convert; ValueError: a wrong shape.
        """
        array = value if type(value) is np.ndarray and value.dtype == self._numpy else self._convert(value)
        if array.shape != self._accepted:
            self._check_shape(array.shape)
        return array

    def _convert(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            raise TypeError(
                "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python "
                "scalars, strings, lists, numpy ndarrays, or TensorHandles. For reference, the tensor object "
                f"was {value} which was passed to the feed with key {self.tensor.name}."
            )
        if isinstance(value, jax.Array) and value.dtype == self._numpy:
            return np.asarray(value)
        if isinstance(value, np.generic) and value.dtype == self._numpy:
            return np.asarray(value)
        if self._dtype == dtypes.string:
            return to_array(value, self._dtype)
        return self._numeric(value)

    def _numeric(self, value: Any) -> Any:
        try:
            array = np.asarray(value)
            if array.dtype == object:
                raise TypeError("it holds objects")
            if isinstance(value, int | list | tuple) and self._numpy.kind in "iu" and array.dtype.kind == "i":
                if array.size and not np.array_equal(array.astype(self._numpy), array):
                    raise TypeError(
                        f"Type of feed value {value} with type {type(value)} is not compatible with "
                        f"Tensor type {self._dtype.name}: it is out of its range"
                    )
            converted = np.asarray(array, self._numpy)
        except (TypeError, ValueError) as e:
            kind = ValueError if isinstance(e, ValueError) else TypeError
            raise kind(
                f"Cannot feed {_show(value)} for Tensor '{self.tensor.name}' of dtype {self._dtype.name}: {e}"
            ) from None
        if isinstance(value, float) and self._numpy.kind in "iu" and converted != value:
            raise TypeError(
                f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type "
                f"{self._dtype.name}. Try explicitly setting the type of the feed tensor to a larger type "
                "(e.g. int64)."
            )
        return converted

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        self._shape = self.tensor._shape
        if not shapes.is_compatible(self._shape, shape):
            raise ValueError(
                f"Cannot feed value of shape {shape} for Tensor {self.tensor.name}, which has shape "
                f"'{self.tensor.shape}'"
            )
        self._accepted = shape


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."
