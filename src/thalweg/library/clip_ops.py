"""Values and norms kept within limits; norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import renamed, scope
from thalweg.library.array_ops import rank, size
from thalweg.library.casting import cast
from thalweg.library.fill_ops import ones_like
from thalweg.library.reduction_ops import reduce_max, reduce_sum
from thalweg.library.sequence_ops import range


def _values(t: Any, name: str = "t") -> Tensor:
    return convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t, name=name)


def _like(t: Any, values: Tensor) -> Any:
    return IndexedSlices(values, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else values


def _require_kept_shape(before: Tensor, after: Tensor) -> None:
    if not shapes.is_compatible(before._shape, after._shape):
        raise ValueError(
            f"The limit must not change the shape: {shapes.format_shape(before._shape)} became "
            f"{shapes.format_shape(after._shape)}"
        )


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """t (a tensor or IndexedSlices) with what is below the minimum or above the maximum brought there.

    Errors: ValueError where the limits would broadcast t to a larger shape.
    """
    with scope(name, "clip_by_value") as named:
        values = _values(t)
        below = emit("Minimum", values, clip_value_max)
        _require_kept_shape(values, below)
        result = emit("Maximum", below, clip_value_min, name=named)
        _require_kept_shape(values, result)
        return _like(t, result)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """t scaled down to the norm clip_norm where its norm (over axes; all where None) is greater."""
    with scope(name, "clip_by_norm") as named:
        values = _values(t)
        square = emit("Mul", values, values, name="mul")
        total = reduce_sum(square, axes, keepdims=True)
        # the square root has no gradient at 0: take it of 1 there, and put the 0 back
        positive = total > 0
        safe = emit("Select", positive, total, ones_like(total))
        norm = emit("Select", positive, emit("Sqrt", safe), total)
        intermediate = values * clip_norm
        _require_kept_shape(values, intermediate)
        limit = emit("Maximum", norm, clip_norm)
        return _like(t, emit("Identity", intermediate / limit, name=named))


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """t scaled down so that its norm divided by its number of elements is at most clip_norm."""
    with scope(name, "clip_by_average_norm") as named:
        t = convert_to_tensor(t, name="t")
        count = cast(size(t), dtypes.float32)
        inverse = emit("Rsqrt", reduce_sum(t * t, range(rank(t))))
        wanted = t * clip_norm
        scale = emit("Minimum", inverse * count, emit.constant(1.0) / clip_norm)
        return emit("Identity", wanted * scale, name=named)


def _require_sequence(t_list: Any) -> list[Any]:
    if not isinstance(t_list, Sequence) or isinstance(t_list, str | bytes):
        raise TypeError("t_list should be a sequence")
    return list(t_list)


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The square root of the sum of squares of all tensors (and IndexedSlices) of a list; None is skipped."""
    t_list = _require_sequence(t_list)
    graph = get_default_graph()
    with scope(name, "global_norm"):
        values = [None if t is None else _values(t, f"t_{i}") for i, t in enumerate(t_list)]
        halves = []
        for v in values:
            if v is not None:
                with graph.colocate_with(v):
                    halves.append(emit("L2Loss", v))
        half = reduce_sum(convert_to_tensor(halves, name="stack"))
        return emit("Sqrt", half * emit.constant(2.0, half.dtype), name="global_norm")


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """(the tensors, all scaled down so that their global norm is at most clip_norm; the norm they had).

    Where the norm is infinite or NaN all become NaN. use_norm: the norm, where it is computed already.
    """
    t_list = _require_sequence(t_list)
    if use_norm is None:
        use_norm = global_norm(t_list, name)
    graph = get_default_graph()
    with scope(name, "clip_by_global_norm") as named:
        norm: Any = use_norm
        inverse = 1.0 / norm
        one = emit.constant(1.0, use_norm.dtype) if isinstance(use_norm, Tensor) else emit.constant(1.0)
        smaller = emit("Minimum", inverse, one / clip_norm)
        finite = clip_norm * smaller
        # 0 where the norm is finite, else NaN
        scale = finite + (norm - norm)
        clipped: list[Any] = []
        values = [None if t is None else _values(t, f"t_{i}") for i, t in enumerate(t_list)]
        for i, (t, v) in enumerate(zip(t_list, values, strict=True)):
            if v is None:
                clipped.append(None)
                continue
            with graph.colocate_with(v):
                scaled = v * cast(scale, v.dtype.base_dtype)
                clipped.append(_like(t, emit("Identity", scaled, name=f"{named}_{i}")))
        return clipped, use_norm


# ---- norms ---------------------------------------------------------------------------------------------


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The norm of vectors (axis: an int, or None for all elements) or of matrices (axis: two ints).

    ord: "euclidean" (for matrices also "fro"), 1, 2, infinity or any positive number (vectors only).
    """
    keepdims = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    is_matrix = isinstance(axis, list | tuple) and len(axis) == 2
    if isinstance(axis, list | tuple) and not is_matrix and len(axis) != 1:
        raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
    if is_matrix and axis[0] == axis[1]:
        raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
    if is_matrix and ord not in ("euclidean", "fro", 0.5, 1, 2, np.inf):
        raise ValueError(
            f"'ord' must be a supported matrix norm: 'euclidean', 'fro', 1, 2, np.inf; got {ord!r}"
        )
    if not is_matrix and (
        (isinstance(ord, str) and ord != "euclidean") or (not isinstance(ord, str) and ord <= 0)
    ):
        raise ValueError(
            f"'ord' must be a supported vector norm: 'euclidean' or a positive number, got {ord!r}"
        )
    if axis is not None and not is_matrix:
        axis = list(axis) if isinstance(axis, list | tuple) else [axis]
    with scope(name, "norm"):
        t = convert_to_tensor(tensor)
        if is_matrix and t._shape is not None:
            axis = [a % len(t._shape) for a in axis]
        if ord in ("euclidean", "fro") or (ord == 2 and not is_matrix):
            squares = t * (emit("Conj", t) if t.dtype.is_complex else t)
            result = emit("Sqrt", reduce_sum(squares, axis, keepdims=True))
        elif is_matrix:
            result = _matrix_norm(t, ord, axis)
        else:
            size_ = emit("ComplexAbs", t) if t.dtype.is_complex else emit("Abs", t)
            if ord == 1:
                result = reduce_sum(size_, None if axis is None else axis[0], keepdims=True)
            elif ord == np.inf:
                result = reduce_max(size_, axis, keepdims=True)
            else:
                powers = reduce_sum(emit("Pow", size_, ord, name="Pow"), axis, keepdims=True)
                result = emit("Pow", powers, 1.0 / ord, name="Pow")
        if not keepdims:
            result = emit("Squeeze", result, squeeze_dims=[] if axis is None else axis)
        return result


def _matrix_norm(t: Tensor, ord: Any, axis: list[int]) -> Tensor:
    if ord == 2:
        if t._shape is None:
            raise ValueError("the 2-norm of matrices needs a known rank")
        others = [i for i in np.arange(len(t._shape)) if i not in axis]
        last = emit("Transpose", t, np.array([*others, *axis], np.int32), name="transpose")
        singular, _, _ = emit("Svd", last, compute_uv=False)
        largest = reduce_max(singular, -1, keepdims=True)
        return (
            emit("ExpandDims", largest, -1)
            if axis == [len(others), len(others) + 1]
            else _restore(largest, axis)
        )
    sums = reduce_sum(emit("Abs", t), axis[0] if ord == 1 else axis[1], keepdims=True)
    return reduce_max(sums, axis[1] if ord == 1 else axis[0], keepdims=True)


def _restore(largest: Tensor, axis: list[int]) -> Tensor:
    """[..., 1] with axes of length 1 where the matrix's axes were."""
    result = emit("Squeeze", largest, squeeze_dims=[-1])
    for a in sorted(axis):
        result = emit("ExpandDims", result, a)
    return result


def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """x divided by its Euclidean norm along `axis` (by the root of epsilon where the norm is smaller)."""
    axis = renamed("axis", axis, "dim", dim)
    with scope(name, "l2_normalize") as named:
        x = convert_to_tensor(x, name="x")
        total = reduce_sum(emit("Square", x), axis, keepdims=True)
        inverse = emit("Rsqrt", emit("Maximum", total, epsilon))
        return emit("Mul", x, inverse, name=named)
