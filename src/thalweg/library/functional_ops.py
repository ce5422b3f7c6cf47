"""Functions over the first dimension of tensors: map_fn, foldl, foldr, scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from thalweg.base import nest
from thalweg.base import shape as shapes
from thalweg.graph.composite import SparseTensor
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.operation import Tensor
from thalweg.library import framework
from thalweg.library.array_ops import shape as shape_of
from thalweg.library.framework import name_scope
from thalweg.library.loop_values import known
from thalweg.library.tensor_array import TensorArray
from thalweg.library.variable_scope import get_variable_scope
from thalweg.library.while_ops import while_loop


def map_fn(
    fn: Callable[..., Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """fn of each row of elems (a tensor or a nest of them with the same number of rows), stacked.

    dtype (or fn_output_signature): a nest like fn's result of its types, where it differs from elems.
    Errors: TypeError for an fn that can't be called and results of another structure, ValueError for scalars.
    """
    _check_function(fn)
    if isinstance(elems, SparseTensor):
        raise TypeError(
            "To perform a map over the values of a sparse tensor use either "
            "SparseTensor(input.indices, fn(input.values), input.dense_shape) or "
            "SparseTensor(input.indices, map_fn(fn, input.values), input.dense_shape)"
        )
    signature = dtype if fn_output_signature is None else fn_output_signature
    if not nest.flatten(elems):
        raise ValueError(
            f"elems must be a Tensor or (possibly nested) sequence of Tensors. Got {elems}, which does not "
            "contain any Tensors."
        )
    with name_scope(name, "map", known(elems)), _cached_variables():
        flat = _converted(elems)
        if flat[0]._shape == ():
            raise ValueError("Elements in elems must be 1+ dimensional Tensors, not scalars")
        count = _known_count(flat)
        n = count or shape_of(flat[0])[0]
        arrays = [TensorArray(t.dtype, size=n) for t in flat]
        arrays = [a.unstack(t) for a, t in zip(arrays, flat, strict=True)]
        i = framework.constant(0)
        structure = elems if signature is None else signature
        types = [t.dtype for t in flat] if signature is None else nest.flatten(signature)
        results = [TensorArray(t, size=n, infer_shape=infer_shape) for t in types]

        def compute(i: Tensor, results: list[TensorArray]) -> tuple[Tensor, list[TensorArray]]:
            result = fn(nest.pack_sequence_as(elems, [a.read(i) for a in arrays]))
            nest.assert_same_structure(structure, result)
            values = nest.flatten(result)
            written = [a.write(i, v) for a, v in zip(results, values, strict=True)]
            return i + 1, written

        _, results = while_loop(
            lambda i, _: i < n,
            compute,
            (i, results),
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=n,
        )
        return nest.pack_sequence_as(structure, _stacked(results, count))


def foldl(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """fn(... fn(fn(initializer, row 0), row 1) ..., last row); without an initializer, row 0 is it.

    elems, initializer: tensors or nests of them. TypeError for an fn that can't be called.
    """
    _check_function(fn)
    with name_scope(name, "foldl", known(elems)), _cached_variables():
        n, arrays = _as_arrays(elems)
        first = nest.map_structure(lambda a: a.read(0), arrays) if initializer is None else initializer
        start = framework.constant(1 if initializer is None else 0)

        def compute(i: Tensor, a: Any) -> list[Any]:
            row = nest.map_structure(lambda array: array.read(i), arrays)
            a = fn(a, row)
            return [i + 1, a]

        _, result = while_loop(
            lambda i, _: i < n,
            compute,
            [start, first],
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=n,
        )
        return result


def foldr(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """As foldl, from the last row to the first."""
    _check_function(fn)
    with name_scope(name, "foldr", known(elems)), _cached_variables():
        n, arrays = _as_arrays(elems)
        if initializer is None:
            start = n - 1
            first = nest.map_structure(lambda a: a.read(start), arrays)
        else:
            start, first = n, initializer

        def compute(i: Tensor, a: Any) -> list[Any]:
            i = i - 1
            row = nest.map_structure(lambda array: array.read(i), arrays)
            return [i, fn(a, row)]

        _, result = while_loop(
            lambda i, _: i > 0,
            compute,
            [start, first],
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=n,
        )
        return result


def scan(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All values that foldl goes through, stacked; with reverse, that foldr goes through.

    elems, initializer: tensors or nests of them. fn returns what is like initializer (or else elems).
    Errors: TypeError or ValueError for an fn that can't be called, or returns another structure.
    """
    _check_function(fn)
    structure = elems if initializer is None else initializer
    with name_scope(name, "scan", known(elems)), _cached_variables():
        flat = _converted(elems)
        n: Any = flat[0]._shape[0] if flat[0]._shape else None
        if n is None:
            n = shape_of(flat[0])[0]
        arrays = [TensorArray(t.dtype, size=n, element_shape=t.shape[1:]) for t in flat]
        arrays = [a.unstack(t) for a, t in zip(arrays, flat, strict=True)]
        first = n - 1 if reverse else 0
        if initializer is None:
            values = [a.read(first) for a in arrays]
        else:
            values = [convert_to_tensor(v) for v in nest.flatten(initializer)]
        results = [
            TensorArray(
                v.dtype, size=n, element_shape=v.shape if infer_shape else None, infer_shape=infer_shape
            )
            for v in values
        ]
        if initializer is None:
            results = [a.write(first, v) for a, v in zip(results, values, strict=True)]

        def compute(i: Tensor, values: list[Tensor], results: list[TensorArray]) -> tuple[Any, ...]:
            row = nest.pack_sequence_as(elems, [a.read(i) for a in arrays])
            result = fn(nest.pack_sequence_as(structure, values), row)
            nest.assert_same_structure(structure, result)
            flat_result = nest.flatten(result)
            written = [a.write(i, v) for a, v in zip(results, flat_result, strict=True)]
            return i - 1 if reverse else i + 1, flat_result, written

        done = 1 if initializer is None else 0
        start = n - 1 - done if reverse else done
        _, _, results = while_loop(
            (lambda i, _1, _2: i >= 0) if reverse else (lambda i, _1, _2: i < n),
            compute,
            (start, values, results),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=n,
        )
        stacked = [a.stack() for a in results]
        return nest.pack_sequence_as(structure, _with_count(stacked, _known_count(flat)))


# ---- what they share -------------------------------------------------------------------------------------


def _check_function(fn: Any) -> None:
    if not callable(fn):
        raise TypeError(f"{fn!r} is not callable. Please provide a callable function.")


@contextmanager
def _cached_variables() -> Iterator[None]:
    """Variables made inside are read once, not in each iteration."""
    scope = get_variable_scope()
    ours = scope.caching_device is None
    if ours:
        scope.set_caching_device(lambda op: op.device)
    try:
        yield
    finally:
        if ours:
            scope.set_caching_device(None)


def _converted(elems: Any) -> list[Tensor]:
    return [convert_to_tensor(e, name="elem") for e in nest.flatten(elems)]


def _unstacked(tensor: Any, n: Any) -> TensorArray:
    return TensorArray(tensor.dtype, size=n).unstack(tensor)


def _as_arrays(elems: Any) -> tuple[Any, Any]:
    """The number of rows, and elems as TensorArrays of their rows."""
    first = _converted(elems)[0]
    n = (first._shape[0] if first._shape else None) or shape_of(first)[0]
    return n, nest.map_structure(lambda e: _unstacked(e, n), elems)


def _known_count(tensors: list[Tensor]) -> int | None:
    """The number of rows, where it is known. ValueError where the tensors' differ."""
    found: shapes.Shape = (None,)
    for t in tensors:
        if t._shape is not None:
            found = shapes.merge(found, t._shape[:1])
    return None if found is None else found[0]


def _stacked(arrays: list[TensorArray], count: int | None) -> list[Tensor]:
    return _with_count([a.stack() for a in arrays], count)


def _with_count(tensors: list[Tensor], count: int | None) -> list[Tensor]:
    """The tensors, their static shapes with the number of rows."""
    for t in tensors:
        if t._shape is not None:
            t.set_shape((count, *t._shape[1:]))
    return tensors
