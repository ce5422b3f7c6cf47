"""Fetches: any nest of tensors, operations, names, variables, sparse tensors, taken apart and rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from thalweg.graph.composite import IndexedSlices, SparseTensor, SparseTensorValue
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor

Rebuild = Callable[[Sequence[Any]], Any]  # (one value per tensor of the fetch) -> the caller's structure


class FetchPlan:
    """What a fetch structure needs, and how its result is put together.

    tensors: each once, in order of first mention; targets: operations that must run.
    """

    def __init__(self, graph: Graph, fetches: Any) -> None:
        self._graph = graph
        self._index: dict[Tensor, int] = {}
        self._targets: dict[Operation, None] = {}
        self.rebuild: Rebuild = self._visit(fetches)
        self.tensors = list(self._index)
        self.targets = list(self._targets)

    def _visit(self, fetch: Any) -> Rebuild:
        if fetch is None:
            raise TypeError(
                f'Argument `fetch` = {fetch} has invalid type "{type(fetch).__name__}". Cannot be None'
            )
        if isinstance(fetch, Tensor | Operation | str | bytes):
            return self._element(fetch)
        if isinstance(fetch, SparseTensor):
            parts = [self._tensor(t) for t in (fetch.indices, fetch.values, fetch.dense_shape)]
            return lambda values: SparseTensorValue(*(values[i] for i in parts))
        if isinstance(fetch, IndexedSlices):
            return self._slices(fetch)
        if isinstance(fetch, Mapping):
            keys = list(fetch)
            inner = [self._visit(fetch[k]) for k in keys]
            kind = type(fetch) if isinstance(fetch, dict) else dict
            if kind.__name__ == "defaultdict":
                kind = dict
            return lambda values: kind((k, r(values)) for k, r in zip(keys, inner, strict=True))
        if isinstance(fetch, list | tuple):
            return self._sequence(fetch)
        if hasattr(fetch, "__attrs_attrs__"):
            names = [a.name for a in type(fetch).__attrs_attrs__]
            parts_ = [self._visit(getattr(fetch, n)) for n in names]
            return lambda values: type(fetch)(*(r(values) for r in parts_))
        return self._element(fetch)

    def _sequence(self, fetch: Any) -> Rebuild:
        inner = [self._visit(f) for f in fetch]
        if hasattr(fetch, "_fields"):
            return lambda values: type(fetch)(*(r(values) for r in inner))
        kind = list if isinstance(fetch, list) else tuple
        return lambda values: kind(r(values) for r in inner)

    def _slices(self, fetch: IndexedSlices) -> Rebuild:
        values_at, indices_at = self._tensor(fetch.values), self._tensor(fetch.indices)
        shape_at = None if fetch.dense_shape is None else self._tensor(fetch.dense_shape)
        return lambda values: IndexedSlicesValue(
            values[values_at], values[indices_at], None if shape_at is None else values[shape_at]
        )

    def _element(self, fetch: Any) -> Rebuild:
        try:
            element = self._graph.as_graph_element(fetch)
        except TypeError as e:
            raise TypeError(
                f'Argument `fetch` = {fetch!r} has invalid type "{type(fetch).__name__}" must be a string or '
                f"Tensor. ({e})"
            ) from None
        except ValueError as e:
            raise ValueError(f"Argument `fetch` = {fetch} cannot be interpreted as a Tensor. ({e})") from None
        except KeyError as e:
            raise ValueError(
                f"Argument `fetch` = {fetch} cannot be interpreted as a Tensor. ({e.args[0]})"
            ) from None
        if not self._graph.is_fetchable(element):
            raise ValueError(f"Operation '{element.name}' has been marked as not fetchable.")
        if isinstance(element, Operation):
            self._targets.setdefault(element)
            return lambda values: None
        i = self._tensor(element)
        return lambda values: values[i]

    def _tensor(self, tensor: Tensor) -> int:
        self._graph.as_graph_element(tensor)
        return self._index.setdefault(tensor, len(self._index))


class IndexedSlicesValue(NamedTuple):
    """What fetching IndexedSlices gives: its parts as NumPy arrays, or None for an unknown shape."""

    values: Any
    indices: Any
    dense_shape: Any
