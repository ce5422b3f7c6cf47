"""Parts of tensors by begin, end and stride; indexing."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base.tensor_shape import Dimension
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import scope
from thalweg.library.casting import cast
from thalweg.library.fill_ops import ones_like
from thalweg.library.gathering_ops import boolean_mask

_INT_TYPES = (int, np.integer, Dimension)


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """The part of input_ that starts at `begin` and has this size; -1 takes all that is left of an axis."""
    return emit("Slice", input_, begin, size, name=name)


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """The part from begin to end by strides; bit i of a mask says how spec i is to be read (see
    StridedSlice).

    var: taken for TensorFlow's sake; a part of a variable, `variable[...]`, has an `assign` of its own.
    """
    if strides is None:
        strides = ones_like(begin)
    masks = {
        "begin_mask": begin_mask,
        "end_mask": end_mask,
        "ellipsis_mask": ellipsis_mask,
        "new_axis_mask": new_axis_mask,
        "shrink_axis_mask": shrink_axis_mask,
    }
    return emit("StridedSlice", input_, begin, end, strides, name=name, **masks)


def getitem(tensor: Any, spec: Any) -> Tensor:
    """tensor[spec]: integers, slices, Ellipsis and None as in NumPy, tensors among them; or a boolean mask.

    Negative integers count from the end. Errors: TypeError for floats and other kinds of index.
    """
    if _is_mask(spec):
        return boolean_mask(tensor, spec)
    parts = list(spec) if isinstance(spec, list | tuple) else [spec]
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    masks: dict[str, Any] = dict.fromkeys(
        ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
    )
    for i, part in enumerate(parts):
        bit = 1 << i
        if type(part) is _BUILTIN_SLICE:
            begin.append(_bound(part.start, masks, "begin_mask", bit))
            end.append(_bound(part.stop, masks, "end_mask", bit))
            strides.append(1 if part.step is None else _index(part.step))
            continue
        if part is Ellipsis:
            masks["ellipsis_mask"] |= bit
            first: Any = 0
            last: Any = 0
        elif part is None:
            masks["new_axis_mask"] |= bit
            first = last = 0
        else:
            first = _index(part)
            last = first + 1
            masks["shrink_axis_mask"] |= bit
        begin.append(first)
        end.append(last)
        strides.append(1)
    with scope(None, "strided_slice") as named:
        packed_begin, packed_end, packed_strides = _packed(begin, end, strides)
        return strided_slice(tensor, packed_begin, packed_end, packed_strides, **masks, name=named)


_BUILTIN_SLICE = type(np.s_[:])


def _is_mask(spec: Any) -> bool:
    return isinstance(spec, bool | np.bool_) or (
        isinstance(spec, Tensor | np.ndarray)
        and spec.dtype == (dtypes.bool if isinstance(spec, Tensor) else bool)
    )


def _bound(value: Any, masks: dict[str, Any], mask: str, bit: int) -> Any:
    """One end of a slice; an open end sets its bit."""
    if value is None or (not isinstance(value, Tensor) and value == sys.maxsize):
        masks[mask] |= bit
        return 0
    return _index(value)


def _index(value: Any) -> Any:
    """An integer, or an integer scalar tensor, fit for an index. TypeError otherwise."""
    if isinstance(value, _INT_TYPES) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, Tensor) or (hasattr(value, "dtype") and hasattr(value, "get_shape")):
        value = convert_to_tensor(value)
        if value.dtype.is_integer and value._shape in (None, ()):
            return value
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iu":
        return int(value)
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 "
        "tensors "
        f"are valid indices, got {value!r}"
    )


def _packed(*lists: list[Any]) -> list[Tensor]:
    """begin, end and strides as vectors of one type: int64 if any is."""
    if not lists[0]:
        empty = emit.constant(np.zeros(0, np.int32))
        return [empty, empty, empty]
    packed = [convert_to_tensor(values, name="stack") for values in lists]
    if any(t.dtype.base_dtype == dtypes.int64 for t in packed):
        packed = [cast(t, dtypes.int64) for t in packed]
    return packed
