"""Lists of tensors as values: what loops of TensorFlow 2 collect their results in.

A list is a scalar of type variant that holds a TensorList. It never changes: an op that sets an element makes
another list, which shares the elements. Source: TensorFlow's list_kernels.cc, list_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.errors import InvalidArgumentError, ResourceExhaustedError
from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import as_array, host

#: lists of more elements than this are refused: their number comes from a graph, maybe a hostile one
MAX_ELEMENTS = 1 << 26

_NO_GRADIENT = NotDifferentiable("lists of tensors have no gradients in thalweg: use a TensorArray")


class TensorList:
    """Elements (None where not set), their type, and what is known of their shape."""

    __slots__ = ("dtype", "elements", "shape")

    def __init__(self, elements: Sequence[np.ndarray | None], dtype: np.dtype, shape: Shape) -> None:
        self.elements = tuple(elements)
        self.dtype = dtype
        self.shape = shape

    def replaced(self, elements: Sequence[np.ndarray | None]) -> TensorList:
        """The same with other elements."""
        return TensorList(elements, self.dtype, self.shape)

    def checked(self, i: int) -> int:
        """An index, where the list has it."""
        if not 0 <= i < len(self.elements):
            raise InvalidArgumentError(
                None, None, f"Trying to access element {i} in a list with {len(self.elements)} elements."
            )
        return i


def _list(value: Any) -> TensorList:
    found = np.asarray(value, object).item() if np.ndim(value) == 0 else None
    if not isinstance(found, TensorList):
        raise InvalidArgumentError(None, None, "Input handle is not a list. Saw: '<unknown type>'")
    return found


def _shape_of(value: Any) -> Shape:
    """An element shape that an input gives: a scalar -1 is nothing known."""
    value = np.asarray(value)
    if value.ndim == 0:
        return None
    return tuple(None if d < 0 else int(d) for d in value)


def _count(n: Any) -> int:
    n = int(np.asarray(n).item())
    if n < 0:
        raise InvalidArgumentError(
            None, None, f"The num_elements to reserve must be a non negative number, but got {n}"
        )
    if n > MAX_ELEMENTS:
        raise ResourceExhaustedError(None, None, f"a list of {n} tensors; at most {MAX_ELEMENTS} are built")
    return n


def _merged(known: Shape, told: Any) -> Shape:
    try:
        return shapes.merge(known, _shape_of(told))
    except ValueError as e:
        raise InvalidArgumentError(
            None, None, f"Tried to use a list's elements in another shape: {e}"
        ) from None


def _element(lst: TensorList, i: int, shape: Shape) -> np.ndarray:
    """An element; zeros where it was not set."""
    found = lst.elements[i]
    if found is not None:
        return found
    if not shapes.is_fully_defined(shape):
        known = next((e.shape for e in lst.elements if e is not None), None)
        if known is None:
            raise InvalidArgumentError(
                None,
                None,
                f"Trying to read an uninitialized tensor but element_shape is not fully defined: "
                f"{shapes.format_shape(shape)}",
            )
        shape = known
    assert shape is not None
    return np.full(tuple(shape), b"", object) if lst.dtype == object else np.zeros(tuple(shape), lst.dtype)  # type: ignore[arg-type]


def _same_type(lst: TensorList, dtype: np.dtype) -> None:
    if lst.dtype != dtype:
        raise InvalidArgumentError(
            None, None, f"Invalid data types; list elements {lst.dtype} but tried to use {dtype}"
        )


def _set(
    handle: Any, index: Any, item: Any, *, element_dtype: np.dtype, resize_if_index_out_of_bounds: bool
) -> Any:
    lst, i = _list(handle), int(np.asarray(index).item())
    item = np.asarray(item)
    _same_type(lst, element_dtype)
    if not shapes.is_compatible(lst.shape, item.shape):
        raise InvalidArgumentError(
            None,
            None,
            "Tried to set a tensor with incompatible shape at a list index. Item element shape: "
            f"{list(item.shape)} list shape: {shapes.format_shape(lst.shape)}",
        )
    elements = list(lst.elements)
    if i == len(elements) and resize_if_index_out_of_bounds:
        elements.append(None)
    elements[lst.checked(i) if i < len(lst.elements) or not resize_if_index_out_of_bounds else i] = item
    return lst.replaced(elements)


def _get(handle: Any, index: Any, element_shape: Any, *, element_dtype: np.dtype) -> np.ndarray:
    lst = _list(handle)
    _same_type(lst, element_dtype)
    return _element(lst, lst.checked(int(np.asarray(index).item())), _merged(lst.shape, element_shape))


def _stacked(lst: TensorList, indices: Sequence[int], element_shape: Any) -> np.ndarray:
    shape = _merged(lst.shape, element_shape)
    if not indices:
        if not shapes.is_fully_defined(shape):
            raise InvalidArgumentError(
                None,
                None,
                "Tried to stack elements of an empty list with non-fully-defined element_shape: "
                f"{shapes.format_shape(shape)}",
            )
        return np.zeros((0, *shape), lst.dtype)  # type: ignore[misc]
    elements = [_element(lst, lst.checked(i), shape) for i in indices]
    for e in elements:
        if e.shape != elements[0].shape or not shapes.is_compatible(shape, e.shape):
            raise InvalidArgumentError(
                None,
                None,
                f"Tried to stack list elements of shapes {list(elements[0].shape)} and {list(e.shape)}",
            )
    return np.stack(elements)


def _stack(handle: Any, element_shape: Any, *, element_dtype: np.dtype, num_elements: int) -> np.ndarray:
    lst = _list(handle)
    _same_type(lst, element_dtype)
    if num_elements not in (-1, len(lst.elements)):
        raise InvalidArgumentError(
            None,
            None,
            f"Operation expected a list with {num_elements} elements but got a list with "
            f"{len(lst.elements)} elements.",
        )
    return _stacked(lst, range(len(lst.elements)), element_shape)


def _gather(handle: Any, indices: Any, element_shape: Any, *, element_dtype: np.dtype) -> np.ndarray:
    lst = _list(handle)
    _same_type(lst, element_dtype)
    return _stacked(lst, [int(i) for i in np.asarray(indices).ravel()], element_shape)


def _from_tensor(tensor: Any, element_shape: Any) -> TensorList:
    tensor = np.asarray(tensor)
    if tensor.ndim == 0:
        raise InvalidArgumentError(None, None, "Tensor must be at least a vector, but saw shape: []")
    rows = [as_array(row) for row in tensor]
    return TensorList(rows, tensor.dtype, _merged(tensor.shape[1:], element_shape))


def _scatter(tensor: Any, indices: Any, element_shape: Any, num_elements: Any) -> TensorList:
    tensor, at = np.asarray(tensor), [int(i) for i in np.asarray(indices).ravel()]
    if tensor.ndim == 0 or len(at) != len(tensor):
        raise InvalidArgumentError(
            None, None, f"Specified {len(at)} indices, but the tensor has shape {list(tensor.shape)}"
        )
    n = max(int(np.asarray(num_elements).item()), max(at, default=-1) + 1)
    elements: list[np.ndarray | None] = [None] * _count(n)
    for i, row in zip(at, tensor, strict=True):
        if i < 0:
            raise InvalidArgumentError(
                None, None, f"Indices in TensorListScatter must all be non-negative: {i}"
            )
        elements[i] = as_array(row)
    return TensorList(elements, tensor.dtype, _merged(tensor.shape[1:], element_shape))


def _pop(handle: Any, element_shape: Any, *, element_dtype: np.dtype) -> list[Any]:
    lst = _list(handle)
    _same_type(lst, element_dtype)
    if not lst.elements:
        raise InvalidArgumentError(None, None, "Trying to pop from an empty list.")
    last = _element(lst, len(lst.elements) - 1, _merged(lst.shape, element_shape))
    return [lst.replaced(lst.elements[:-1]), last]


def _push(handle: Any, tensor: Any, *, element_dtype: np.dtype) -> TensorList:
    lst, tensor = _list(handle), np.asarray(tensor)
    _same_type(lst, element_dtype)
    if not shapes.is_compatible(lst.shape, tensor.shape):
        raise InvalidArgumentError(
            None,
            None,
            "Tried to append a tensor with incompatible shape to a list. Op element shape: "
            f"{list(tensor.shape)} list shape: {shapes.format_shape(lst.shape)}",
        )
    return lst.replaced((*lst.elements, tensor))


def _resized(handle: Any, size: Any) -> TensorList:
    lst, n = _list(handle), _count(size)
    return lst.replaced([*lst.elements[:n], *[None] * (n - len(lst.elements))])


def _element_shape(handle: Any, *, shape_type: np.dtype) -> np.ndarray:
    shape = _list(handle).shape
    return np.array(-1 if shape is None else [-1 if d is None else d for d in shape], shape_type)


def _reserved(element_shape: Any, num_elements: Any, *, element_dtype: np.dtype) -> TensorList:
    return TensorList([None] * _count(num_elements), element_dtype, _shape_of(element_shape))


def _empty(element_shape: Any, max_num_elements: Any, *, element_dtype: np.dtype) -> TensorList:
    return TensorList((), element_dtype, _shape_of(element_shape))


# ---- definitions -----------------------------------------------------------------------------------------


def _told(c: ShapeContext, i: int) -> Shape:
    """The element shape that input i gives."""
    value = c.value(i)
    if value is not None:
        return _shape_of(value)
    return c.value_as_shape(i) if c.shape(i) != () else None


def _stacked_shape(n: Callable[[ShapeContext], int | None], i: int) -> Callable[[ShapeContext], list[Shape]]:
    def shape(c: ShapeContext) -> list[Shape]:
        told = _told(c, i)
        return [None if told is None else (n(c), *told)]

    return shape


def _number(c: ShapeContext) -> int | None:
    n: int = c.attr("num_elements")
    return n if n >= 0 else None


def _scalar(c: ShapeContext) -> list[Shape]:
    return [()]


def _define(
    name: str, inputs: str, outputs: str, attrs: str, fn: Any, doc: str, shape: Any = _scalar
) -> None:
    define_op(
        name,
        inputs=inputs,
        outputs=outputs,
        attrs=attrs,
        shape=shape,
        kernel=host(fn, foldable=False),
        gradient=_NO_GRADIENT,
        doc=doc,
    )


_TYPE = "element_dtype: type"
_SHAPE = "shape_type: {int32, int64}"

_define(
    "EmptyTensorList",
    "element_shape: shape_type, max_num_elements: int32",
    "handle: variant",
    f"{_TYPE}, {_SHAPE}",
    _empty,
    "A list without elements.",
)
_define(
    "TensorListReserve",
    "element_shape: shape_type, num_elements: int32",
    "handle: variant",
    f"{_TYPE}, {_SHAPE}",
    _reserved,
    "A list of elements that are not set.",
)
_define(
    "TensorListFromTensor",
    "tensor: element_dtype, element_shape: shape_type",
    "output_handle: variant",
    f"{_TYPE}, {_SHAPE}",
    _from_tensor,
    "The rows of a tensor as a list.",
)
_define(
    "TensorListScatterV2",
    "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32",
    "output_handle: variant",
    f"{_TYPE}, {_SHAPE}",
    _scatter,
    "A list with rows at the given indices.",
)
_define(
    "TensorListSetItem",
    "input_handle: variant, index: int32, item: element_dtype",
    "output_handle: variant",
    f"{_TYPE}, resize_if_index_out_of_bounds: bool = False",
    _set,
    "The list with one element set.",
)
_define(
    "TensorListGetItem",
    "input_handle: variant, index: int32, element_shape: Tshape",
    "item: element_dtype",
    f"{_TYPE}, Tshape: {{int32, int64}} = int32",
    _get,
    "One element.",
    shape=lambda c: [_told(c, 2)],
)
_define(
    "TensorListStack",
    "input_handle: variant, element_shape: int32",
    "tensor: element_dtype",
    f"{_TYPE}, num_elements: int = -1",
    _stack,
    "The elements as rows of one tensor.",
    shape=_stacked_shape(_number, 1),
)
_define(
    "TensorListGather",
    "input_handle: variant, indices: int32, element_shape: int32",
    "values: element_dtype",
    _TYPE,
    _gather,
    "Some of the elements as rows of one tensor.",
    shape=_stacked_shape(lambda c: (c.shape(1) or (None,))[0], 2),
)
_define(
    "TensorListPushBack",
    "input_handle: variant, tensor: element_dtype",
    "output_handle: variant",
    _TYPE,
    _push,
    "The list with one element more.",
)
_define(
    "TensorListPopBack",
    "input_handle: variant, element_shape: int32",
    "output_handle: variant, tensor: element_dtype",
    _TYPE,
    _pop,
    "The list without its last element, and that.",
    shape=lambda c: [(), _told(c, 1)],
)
_define(
    "TensorListLength",
    "input_handle: variant",
    "length: int32",
    "",
    lambda handle: np.int32(len(_list(handle).elements)),
    "How many elements it has.",
)
_define(
    "TensorListElementShape",
    "input_handle: variant",
    "element_shape: shape_type",
    _SHAPE,
    _element_shape,
    "What is known of the elements' shape.",
    shape=lambda c: [None],
)
_define(
    "TensorListResize",
    "input_handle: variant, size: int32",
    "output_handle: variant",
    "",
    _resized,
    "The list with so many elements: cut, or filled up with elements that are not set.",
)
