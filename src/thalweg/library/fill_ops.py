"""Tensors of one value, one-hot vectors, masks, diagonals and grids."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.graph.convert import constant_node, convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import scope
from thalweg.library.casting import cast

#: up to so many elements a tensor of one value becomes a constant; larger ones are filled when run
_SMALL = 1000


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of shape `dims` with `value` everywhere."""
    return emit("Fill", dims, value, name=name)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of zeros (false, "")."""
    kind = dtypes.as_dtype(dtype).base_dtype
    zero: Any = b"" if kind == dtypes.string else False if kind == dtypes.bool else 0
    with scope(name, "zeros") as named:
        return _filled(shape, zero, kind, named)


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of ones (true)."""
    kind = dtypes.as_dtype(dtype).base_dtype
    with scope(name, "ones") as named:
        return _filled(shape, kind == dtypes.bool or 1, kind, named)


def _filled(shape: Any, value: Any, kind: DType, name: str) -> Tensor:
    if not isinstance(shape, Tensor):
        known = _known_shape(shape)
        if known is not None:
            if np.prod(known, dtype=np.int64) < _SMALL and not isinstance(shape, int | np.integer):
                return constant_node(np.full(known, value, kind.as_numpy_dtype), kind, name)
            wide = any(d >= 2**31 for d in known)
            size = np.array(known, np.int64 if wide else np.int32)
            shape = constant_node(size, name="shape_as_tensor")
        else:
            shape = convert_to_tensor(shape, dtypes.int32)
    if not shape._shape:
        shape = emit("Reshape", shape, [-1])
    return emit("Fill", shape, emit.constant(value, kind), name=name)


def _known_shape(shape: Any) -> tuple[int, ...] | None:
    """A Python shape whose dimensions are all numbers, or None (it holds tensors)."""
    try:
        known = shapes.as_shape(shape)
    except (TypeError, ValueError):
        return None
    if known is None or not shapes.is_fully_defined(known):
        return None
    return known  # type: ignore[return-value]


def zeros_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Zeros of a tensor's shape, and of its element type unless `dtype` is given."""
    with scope(name, "zeros_like") as named:
        x = convert_to_tensor(tensor, name="tensor")
        kind = x.dtype.base_dtype if dtype is None else dtypes.as_dtype(dtype).base_dtype
        if optimize and shapes.is_fully_defined(x._shape) and kind != dtypes.variant:
            return zeros(x._shape, kind, name=named)
        if kind != x.dtype.base_dtype and kind != dtypes.variant:
            return zeros(emit.shape(x) if optimize else emit("Shape", x), kind, name=named)
        return emit("ZerosLike", x, name=named)


def ones_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Ones of a tensor's shape, and of its element type unless `dtype` is given."""
    with scope(name, "ones_like") as named:
        x = convert_to_tensor(tensor, name="tensor")
        with scope(None, "Shape") as shape_name:
            known = optimize and shapes.is_fully_defined(x._shape)
            shape = emit.shape(x, name="shape_as_tensor") if known else emit("Shape", x, name=shape_name)
        result = ones(shape, x.dtype if dtype is None else dtype, name=named)
        result.set_shape(x._shape)
        return result


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """indices with a new axis of length `depth` (the last, or `axis`): on_value at the index, off_value
    elsewhere.

    Errors: TypeError where the types of the values and `dtype` differ.
    """
    with scope(name, "one_hot") as named:
        kind = None if dtype is None else dtypes.as_dtype(dtype)
        on = None if on_value is None else convert_to_tensor(on_value, preferred_dtype=kind)
        off = None if off_value is None else convert_to_tensor(off_value, preferred_dtype=kind)
        for value, what in ((on, "on_value"), (off, "off_value")):
            if value is not None and kind is not None and value.dtype.base_dtype != kind:
                raise TypeError(
                    f"dtype {value.dtype.base_dtype} of {what} does not match dtype parameter {kind}"
                )
        if kind is None:
            given = on if on is not None else off
            kind = dtypes.float32 if given is None else given.dtype.base_dtype
        if on is None:
            on = convert_to_tensor(1, kind, name="on_value")
        if off is None:
            off = convert_to_tensor(0, kind, name="off_value")
        if on.dtype.base_dtype != off.dtype.base_dtype:
            raise TypeError(f"dtype {on.dtype} of on_value does not match dtype {off.dtype} of off_value")
        return emit("OneHot", indices, depth, on, off, axis=-1 if axis is None else axis, name=named)


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool, name: str | None = None
) -> Tensor:
    """lengths with a new last axis of length maxlen (the greatest where None): true at the first `length`
    places."""
    with scope(name, "SequenceMask"):
        lengths = convert_to_tensor(lengths)
        if maxlen is None:
            if lengths._shape is None:
                axes: Any = emit("Range", 0, emit.rank(lengths), 1)
            else:
                axes = emit.constant(np.arange(len(lengths._shape), dtype=np.int32))
            maxlen = emit("Max", lengths, axes)
            maxlen = emit("Maximum", emit.constant(0, maxlen.dtype), maxlen)
        else:
            maxlen = convert_to_tensor(maxlen)
        if maxlen._shape:
            raise ValueError(
                f"maxlen must be scalar for sequence_mask, got {shapes.format_shape(maxlen._shape)}"
            )
        kind = maxlen.dtype.base_dtype
        row = emit("Range", emit.constant(0, kind), maxlen, emit.constant(1, kind))
        column = emit("Cast", emit("ExpandDims", lengths, -1), DstT=kind)
        result = emit("Less", row, column)
        if dtype is None or result.dtype.is_compatible_with(dtypes.as_dtype(dtype)):
            return result
        return emit("Cast", result, DstT=dtypes.as_dtype(dtype))


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = "meshgrid") -> list[Tensor]:
    """Coordinates of the grid over several vectors, one tensor each; "xy" has columns for the first, "ij"
    rows."""
    if indexing not in ("xy", "ij"):
        raise ValueError("indexing parameter must be either 'xy' or 'ij'")
    with scope(name, "meshgrid"):
        n = len(args)
        if not n:
            return []
        output = []
        for i, x in enumerate(args):
            around = (1,) * i + (-1,) + (1,) * (n - i - 1)
            output.append(emit("Reshape", convert_to_tensor(x, name="stack"), around))
        sizes = []
        for x in args:
            with scope(None, "Size") as size_name:
                sizes.append(emit.size(convert_to_tensor(x), name=size_name))
        kind = convert_to_tensor(args[0]).dtype.base_dtype
        if indexing == "xy" and n > 1:
            output[0] = emit("Reshape", output[0], (1, -1) + (1,) * (n - 2))
            output[1] = emit("Reshape", output[1], (-1, 1) + (1,) * (n - 2))
            sizes[0], sizes[1] = sizes[1], sizes[0]
        factor = ones(sizes, kind)
        return [x * factor for x in output]


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """The identity matrix [num_rows, num_columns or num_rows], repeated over batch_shape."""
    with scope(name, "eye"):
        square = num_columns is None
        batch = [] if batch_shape is None else batch_shape
        columns = num_rows if square else num_columns
        if isinstance(num_rows, Tensor) or isinstance(columns, Tensor):
            diagonal_size = emit("Minimum", num_rows, columns)
        else:
            diagonal_size = min(num_rows, columns)
        if isinstance(batch, Tensor) or isinstance(diagonal_size, Tensor):
            diagonal_shape: Any = emit("ConcatV2", [batch, [diagonal_size]], 0, name="concat")
        else:
            diagonal_shape = [*batch, diagonal_size]
        diagonal = ones(diagonal_shape, dtype)
        if square:
            return matrix_diag(diagonal)
        if isinstance(batch, Tensor):
            full: Any = emit("ConcatV2", [batch, [num_rows, columns]], 0, name="concat")
        else:
            full = [*batch, num_rows, columns]
        return matrix_set_diag(zeros(full, dtype), diagonal)


# ---- diagonals -----------------------------------------------------------------------------------------


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A tensor of twice the rank with `diagonal` on its diagonal and zeros elsewhere."""
    return emit("Diag", diagonal, name=name)


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The diagonal of a tensor of even rank: undoes diag."""
    return emit("DiagPart", input, name=name)


def matrix_diag(
    diagonal: Any,
    name: str | None = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with these vectors on their diagonals `k` and padding_value elsewhere."""
    if _is(k, 0) and _is(num_rows, -1) and _is(num_cols, -1) and _is(padding_value, 0):
        return emit("MatrixDiag", diagonal, name=name)
    padding = _padding(diagonal, padding_value)
    return emit("MatrixDiagV3", diagonal, k, num_rows, num_cols, padding, align=align, name=name)


def matrix_diag_part(
    input: Any, name: str | None = "diag_part", k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """The diagonals `k` of matrices; shorter ones are filled up with padding_value."""
    if _is(k, 0):
        return emit("MatrixDiagPart", input, name=name)
    return emit("MatrixDiagPartV3", input, k, _padding(input, padding_value), align=align, name=name)


def matrix_set_diag(
    input: Any, diagonal: Any, name: str | None = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Matrices with their diagonals `k` replaced."""
    if _is(k, 0):
        return emit("MatrixSetDiag", input, diagonal, name=name)
    return emit("MatrixSetDiagV3", input, diagonal, k, align=align, name=name)


def _is(value: Any, default: int) -> bool:
    return not isinstance(value, Tensor) and np.ndim(value) == 0 and value == default


def _padding(of: Any, value: Any) -> Any:
    is_bool = getattr(of, "dtype", None) == dtypes.bool
    return bool(value) if is_bool and not isinstance(value, Tensor) else value


# ---- repeats -------------------------------------------------------------------------------------------


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each element along `axis` (of the flat tensor where None) `repeats` times: one number, or one each."""
    with scope(name, "Repeat"):
        x = convert_to_tensor(input, name="data")
        counts = convert_to_tensor(repeats, name="repeats", preferred_dtype=dtypes.int32)
        if axis is None:
            x, axis = emit("Reshape", x, [-1]), 0
        if x._shape is not None and axis < 0:
            axis += len(x._shape)
        length = emit("Shape", x)[axis]
        counts = emit("BroadcastTo", cast(counts, dtypes.int32), emit("Reshape", length, [1]))
        last = emit("Cumsum", counts, 0)
        total = emit("Sum", counts, [0])
        # element i of the result comes from the first place whose running count is past i
        places = emit("Range", 0, total, 1)
        source = emit("UpperBound", emit("ExpandDims", last, 0), emit("ExpandDims", places, 0))
        return emit("GatherV2", x, emit("Squeeze", source, squeeze_dims=[0]), axis)
