"""TensorArrays: lists of tensors that loops write and read. Every op takes and gives a *flow*, a scalar
without meaning that puts them in order.

Source: TensorFlow's data_flow_ops.cc, tensor_array_ops.cc, tensor_array_grad.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import Kernel, as_array, stateful
from thalweg.ops._tensor_array import Array, zeros

_FLOW = np.float32(0)
_NO_VALUES = NotDifferentiable("it moves no values")


def _kernel(fn: Callable[..., Any]) -> Kernel:
    """A stateful kernel whose ValueErrors name the node."""

    def run(context: Any, *args: Any) -> Any:
        try:
            return fn(context.op, *args)
        except ValueError as e:
            raise context.fail(InvalidArgumentError, str(e)) from None

    return stateful(run)


# ---- shapes ----------------------------------------------------------------------------------------------


def _element_shape(c: ShapeContext) -> Shape:
    """The shape of the elements, as far as the handle tells."""
    handle = c.handle(0)
    return None if handle is None else handle[1]


def _check_element(c: ShapeContext, value: Shape) -> None:
    handle = c.handle(0)
    if handle is not None:
        shapes.merge(handle[1], value)


def _array_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    element: Shape = c.attr("element_shape")
    if c.attr("identical_element_shapes") or shapes.is_fully_defined(element):
        c.handles[0] = (c.attr("dtype"), element)
    return [(2,), ()]


def _grad_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 1)
    handle = c.handle(0)
    if handle is not None:
        c.handles[0] = handle
    return [(2,), ()]


def _grad_with_shape_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 1)
    handle = c.handle(0)
    if handle is not None:
        prepended, element = c.value_as_shape(2), handle[1]
        known = prepended is not None and element is not None
        c.handles[0] = (handle[0], (*(prepended or ()), *(element or ())) if known else None)
    return [(2,), ()]


def _write_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 1)
    c.with_rank(1, 0)
    _check_element(c, c.shape(2))
    return [()]


def _read_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 1)
    c.with_rank(1, 0)
    return [_element_shape(c)]


def _gather_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 1)
    (n,) = c.with_rank(1, 1) or (None,)
    element = _element_shape(c) if c.handle(0) is not None else c.attr("element_shape")
    return [None if element is None else (n, *element)]


def _scatter_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 1)
    (n,) = c.with_rank(1, 1) or (None,)
    value = c.with_rank_at_least(2, 1)
    if value is not None:
        shapes.merge((n,), value[:1])
        _check_element(c, value[1:])
    return [()]


def _split_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 1)
    c.with_rank(2, 1)
    return [()]


def _concat_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 1)
    return [None, (None,)]


# ---- kernels ---------------------------------------------------------------------------------------------


def _array_kernel(context: Any, size: np.ndarray) -> tuple[Array, Any]:
    op = context.op
    if np.ndim(size):
        raise context.fail(
            InvalidArgumentError, f"TensorArray size must be scalar, but had shape: {list(np.shape(size))}"
        )
    if size < 0:
        raise context.fail(InvalidArgumentError, f"Size should be >= 0, got {size}.")
    attrs = op._attrs
    array = Array(
        attrs["tensor_array_name"].decode() or op._name,
        np.dtype(attrs["dtype"].as_numpy_dtype),
        int(size),
        attrs["element_shape"],
        attrs["identical_element_shapes"],
        attrs["dynamic_size"],
        attrs["clear_after_read"],
    )
    return array, _FLOW


def _grad(op: Operation, array: Array, flow: Any) -> tuple[Array, Any]:
    return array.gradient(op._attrs["source"].decode(), ()), flow


def _grad_with_shape(op: Operation, array: Array, flow: Any, prepend: np.ndarray) -> tuple[Array, Any]:
    return array.gradient(op._attrs["source"].decode(), tuple(int(d) for d in prepend)), flow


def _write(op: Operation, array: Array, index: np.ndarray, value: np.ndarray, flow: Any) -> Any:
    array.write(_scalar(index), value)
    return flow


def _read(op: Operation, array: Array, index: np.ndarray, flow: Any) -> np.ndarray:
    _check_dtype(op, array)
    return array.read(_scalar(index))


def _gather(op: Operation, array: Array, indices: np.ndarray, flow: Any) -> np.ndarray:
    _check_dtype(op, array)
    if np.ndim(indices) != 1:
        raise ValueError(f"Expected indices to be a vector, but received shape: {list(np.shape(indices))}")
    if not len(indices):
        element = shapes.merge(op._attrs["element_shape"], array.element_shape)
        if element is None or None in element:
            raise ValueError(
                f"TensorArray has size zero, but element shape {shapes.format_shape(element)} is not fully "
                "defined. Currently only static shapes are supported when packing zero-size TensorArrays."
            )
        return zeros((0, *element), array.dtype)
    values = array.read_many([int(i) for i in indices])
    for i, value in zip(indices, values, strict=True):
        if value.shape != values[0].shape:
            raise ValueError(
                f"TensorArray has inconsistent shapes.  Index {indices[0]} has shape: "
                f"{list(values[0].shape)} but index {i} has shape: {list(value.shape)}"
            )
    return np.stack(values)


def _scatter(op: Operation, array: Array, indices: np.ndarray, value: np.ndarray, flow: Any) -> Any:
    if np.ndim(indices) != 1:
        raise ValueError(f"Expected indices to be a vector, but received shape: {list(np.shape(indices))}")
    if not np.ndim(value):
        raise ValueError("Input value for unpack must be at least a vector but received shape: []")
    if len(indices) != len(value):
        raise ValueError(
            f"Expected len(indices) == values.shape[0], but saw: {len(indices)} vs. {len(value)}"
        )
    if len(indices) and not array.resizable and max(indices) >= array.size():
        raise ValueError(f"Max scatter index must be < array size ({max(indices)} vs. {array.size()})")
    array.write_many([int(i) for i in indices], [as_array(v) for v in value])
    return flow


def _split(op: Operation, array: Array, value: np.ndarray, lengths: np.ndarray, flow: Any) -> Any:
    if np.ndim(lengths) != 1:
        raise ValueError(f"Expected lengths to be a vector, received shape: {list(np.shape(lengths))}")
    if not np.ndim(value):
        raise ValueError("Expected value to be at least a vector, but received shape: []")
    if lengths.sum() != len(value):
        raise ValueError(
            "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
            f"{lengths.sum()} and value's shape is: {list(value.shape)}"
        )
    if len(lengths) != array.size() and not (array.resizable and len(lengths) > array.size()):
        raise ValueError(
            f"TensorArray's size is not equal to the size of lengths ({array.size()} vs. {len(lengths)}), "
            "and the TensorArray is not marked as dynamically resizeable"
        )
    array.write_many(range(len(lengths)), np.split(value, np.cumsum(lengths)[:-1]) if len(lengths) else [])
    return flow


def _concat(op: Operation, array: Array, flow: Any) -> tuple[np.ndarray, np.ndarray]:
    _check_dtype(op, array)
    values = array.read_many(range(array.size()))
    if not values:
        rest: Shape = op._attrs["element_shape_except0"]
        if array.element_shape:
            rest = shapes.merge(rest, array.element_shape[1:])
        if rest is None or None in rest:
            raise ValueError(
                "TensorArray has size zero, but element_shape_except0 "
                f"{shapes.format_shape(rest)} is not fully defined. Currently only static shapes are "
                "supported when concatenating zero-size TensorArrays."
            )
        return zeros((0, *rest), array.dtype), np.zeros(0, np.int64)
    for i, value in enumerate(values):
        if not value.ndim:
            raise ValueError(
                f"Concat saw a scalar shape at index {i} but requires at least vectors.  Did you mean to "
                "call pack?"
            )
        if value.shape[1:] != values[0].shape[1:]:
            raise ValueError(
                "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: "
                f"{list(values[0].shape[1:])} but index {i} has (excepting dimension 0) shape: "
                f"{list(value.shape[1:])}"
            )
    return np.concatenate(values), np.array([len(v) for v in values], np.int64)


def _scalar(index: np.ndarray) -> int:
    if np.ndim(index):
        raise ValueError(f"TensorArray index must be scalar, but had shape: {list(np.shape(index))}")
    return int(index)


def _check_dtype(op: Operation, array: Array) -> None:
    dtype: DType = op._attrs["dtype"]
    if dtype.as_numpy_dtype != array.dtype:
        raise ValueError(
            f"TensorArray dtype is {array.dtype.name} but Op requested dtype {dtype.name}."
        )


# ---- gradients: reads write into the gradient's array, writes read from it -------------------------------


def _source(tensor: Tensor) -> str:
    """Which call of `gradients` this is, by the name of a gradient: each call has arrays of its own."""
    parts = tensor.name.split("/")
    found = [i for i, part in enumerate(parts) if part.startswith("gradients")]
    if not found:
        raise ValueError(
            f"Expected op/tensor name to start with gradients (excluding scope), got: {tensor.name}. This "
            "means that a tf.gradients op with this op in its dependency path has a custom name that does "
            "not start with 'gradients'. Please make sure all calls to tf.gradients that have non-empty "
            "`name` arguments use names that start with 'gradients'."
        )
    return "/".join(parts[: found[-1] + 1])


def _gradient_array(emit: Emitter, handle: Tensor, flow: Tensor, source: str) -> tuple[Tensor, Tensor]:
    """The handle of the gradient's array, and the flow after it was made."""
    graph = get_default_graph()
    with graph.name_scope("TensorArray"):
        pass
    with graph.name_scope("TensorArrayGrad"), graph.colocate_with(handle):
        made, _ = emit("TensorArrayGradV3", handle, flow, source=source)
        with graph.control_dependencies([made]):
            flow = emit("Identity", flow, name="gradient_flow")
        with graph.name_scope("TensorArray"):
            pass
    return made, flow


def _barrier(emit: Emitter, op: Operation, flow: Tensor) -> Tensor:
    """The gradient's flow, after the forward op."""
    done = emit("Identity", op._outputs[0], name="flow_out")
    with get_default_graph().control_dependencies([done]):
        return emit("Identity", flow, name="write_barrier")


def _read_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    handle, index, flow = op._inputs
    array, flow = _gradient_array(emit, handle, flow, _source(dy))
    with get_default_graph().name_scope("TensorArrayWrite"):
        return [None, None, emit("TensorArrayWriteV3", array, index, dy, flow)]


def _write_gradient(emit: Emitter, op: Operation, dflow: Tensor) -> list[Tensor | None]:
    handle, index = op._inputs[:2]
    source = _source(dflow)
    dflow = _barrier(emit, op, dflow)
    array, flow = _gradient_array(emit, handle, dflow, source)
    return [None, None, emit("TensorArrayReadV3", array, index, flow, dtype=op._attrs["T"]), dflow]


def _gather_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    handle, indices, flow = op._inputs
    array, flow = _gradient_array(emit, handle, flow, _source(dy))
    with get_default_graph().name_scope("TensorArrayScatter"):
        return [None, None, emit("TensorArrayScatterV3", array, indices, dy, flow)]


def _scatter_gradient(emit: Emitter, op: Operation, dflow: Tensor) -> list[Tensor | None]:
    handle, indices = op._inputs[:2]
    source = _source(dflow)
    dflow = _barrier(emit, op, dflow)
    array, flow = _gradient_array(emit, handle, dflow, source)
    grad = emit("TensorArrayGatherV3", array, indices, flow, dtype=op._attrs["T"])
    return [None, None, grad, dflow]


def _concat_gradient(emit: Emitter, op: Operation, dy: Tensor, _: Any) -> list[Tensor | None]:
    handle, flow = op._inputs
    array, flow = _gradient_array(emit, handle, flow, _source(dy))
    with get_default_graph().name_scope("TensorArraySplit"):
        return [None, emit("TensorArraySplitV3", array, dy, op._outputs[1], flow)]


def _split_gradient(emit: Emitter, op: Operation, dflow: Tensor) -> list[Tensor | None]:
    source = _source(dflow)
    dflow = _barrier(emit, op, dflow)
    array, flow = _gradient_array(emit, op._inputs[0], dflow, source)
    grad, _ = emit("TensorArrayConcatV3", array, flow, dtype=op._attrs["T"])
    return [None, grad, None, dflow]


# ---- the ops ---------------------------------------------------------------------------------------------

define_op(
    "TensorArrayV3",
    inputs="size: int32",
    outputs="handle: resource, flow: float",
    attrs="dtype: type, element_shape: shape = None, dynamic_size: bool = False, "
    "clear_after_read: bool = True, identical_element_shapes: bool = False, tensor_array_name: string = ''",
    shape=_array_shape,
    kernel=stateful(_array_kernel),
    stateful=True,
    gradient=_NO_VALUES,
    doc="A new array of `size` empty places, each time it runs.",
)

define_op(
    "TensorArrayGradV3",
    inputs="handle: resource, flow_in: float",
    outputs="grad_handle: resource, flow_out: float",
    attrs="source: string",
    shape=_grad_shape,
    kernel=_kernel(_grad),
    stateful=True,
    gradient=_NO_VALUES,
    doc="The array of an array's gradients in one call of `gradients`; writes to one place add up.",
)

define_op(
    "TensorArrayGradWithShape",
    inputs="handle: resource, flow_in: float, shape_to_prepend: int32",
    outputs="grad_handle: resource, flow_out: float",
    attrs="source: string",
    shape=_grad_with_shape_shape,
    kernel=_kernel(_grad_with_shape),
    stateful=True,
    gradient=_NO_VALUES,
    doc="As TensorArrayGradV3, of elements with more dimensions in front.",
)

define_op(
    "TensorArrayWriteV3",
    inputs="handle: resource, index: int32, value: T, flow_in: float",
    outputs="flow_out: float",
    attrs="T: type",
    shape=_write_shape,
    kernel=_kernel(_write),
    stateful=True,
    gradient=_write_gradient,
    doc="Puts a tensor into a place of the array.",
)

define_op(
    "TensorArrayReadV3",
    inputs="handle: resource, index: int32, flow_in: float",
    outputs="value: dtype",
    attrs="dtype: type",
    shape=_read_shape,
    kernel=_kernel(_read),
    stateful=True,
    gradient=_read_gradient,
    doc="The tensor in a place of the array.",
)

define_op(
    "TensorArrayGatherV3",
    inputs="handle: resource, indices: int32, flow_in: float",
    outputs="value: dtype",
    attrs="dtype: type, element_shape: shape = None",
    shape=_gather_shape,
    kernel=_kernel(_gather),
    stateful=True,
    gradient=_gather_gradient,
    doc="The tensors in several places, stacked.",
)

define_op(
    "TensorArrayScatterV3",
    inputs="handle: resource, indices: int32, value: T, flow_in: float",
    outputs="flow_out: float",
    attrs="T: type",
    shape=_scatter_shape,
    kernel=_kernel(_scatter),
    stateful=True,
    gradient=_scatter_gradient,
    doc="Puts the rows of a tensor into places of the array.",
)

define_op(
    "TensorArrayConcatV3",
    inputs="handle: resource, flow_in: float",
    outputs="value: dtype, lengths: int64",
    attrs="dtype: type, element_shape_except0: shape = None",
    shape=_concat_shape,
    kernel=_kernel(_concat),
    stateful=True,
    gradient=_concat_gradient,
    doc="All tensors of the array one after the other, and how long each is.",
)

define_op(
    "TensorArraySplitV3",
    inputs="handle: resource, value: T, lengths: int64, flow_in: float",
    outputs="flow_out: float",
    attrs="T: type",
    shape=_split_shape,
    kernel=_kernel(_split),
    stateful=True,
    gradient=_split_gradient,
    doc="Cuts a tensor along its first dimension and puts the parts into the array.",
)

define_op(
    "TensorArraySizeV3",
    inputs="handle: resource, flow_in: float",
    outputs="size: int32",
    shape=lambda c: [()],
    kernel=_kernel(lambda op, array, flow: np.int32(array.size())),
    stateful=True,
    gradient=_NO_VALUES,
    doc="The number of places.",
)

define_op(
    "TensorArrayCloseV3",
    inputs="handle: resource",
    shape=lambda c: [],
    kernel=_kernel(lambda op, array: array.close()),
    stateful=True,
    gradient=_NO_VALUES,
    doc="Drops the array's values before the step ends.",
)
