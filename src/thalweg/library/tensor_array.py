"""TensorArray: a list of tensors that loops write to and read from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.base.shape import Shape
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.shape_context import constant_value
from thalweg.library import framework
from thalweg.library.array_ops import shape as shape_of
from thalweg.library.casting import cast
from thalweg.library.framework import name_scope
from thalweg.library.sequence_ops import range as range_of


class TensorArray:
    """A list of tensors of one type, written and read one at a time or at once.

    Every write gives a new TensorArray, to be used from then on: its `flow` comes after the write. Gradients
    flow through it. A place may be written once; with clear_after_read it may be read once.

    dtype: of the elements. size: how many places there are, an int32 scalar; needed where handle isn't
        given. dynamic_size: whether writing past the end makes it longer.
    clear_after_read: drop an element once it is read (the default).
    tensor_array_name: shown in errors.
    handle, flow: of an array that exists already.
    infer_shape: all elements have the same shape, which static shapes may rely on.
    element_shape: what is known of the elements' shape.
    colocate_with_first_write_call: the nodes go where the first tensor that is written is.
    Errors: ValueError where arguments contradict each other, TypeError for a handle that is no tensor.
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Tensor | None = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        _check_arguments(handle, size, element_shape, dynamic_size, clear_after_read, tensor_array_name)
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._dynamic_size = bool(dynamic_size)
        self._infer_shape = infer_shape
        self._size = size
        #: shared by all TensorArrays of one handle: what has been written tells the shape of what is read
        self._known: list[Shape] = [shapes.as_shape(element_shape)]
        #: shared too: what was written first; None where the nodes stay where the device scope says
        self._first_written: list[Tensor] | None = [] if colocate_with_first_write_call else None
        with name_scope(name, "TensorArray", [handle, size, flow]) as scope:
            if handle is not None:
                if flow is None:
                    raise ValueError("flow must not be None if handle is not None.")
                self._handle, self._flow = handle, flow
                return
            attrs = {
                "dtype": self._dtype,
                "element_shape": element_shape,
                "identical_element_shapes": infer_shape,
                "dynamic_size": self._dynamic_size,
                "clear_after_read": True if clear_after_read is None else clear_after_read,
                "tensor_array_name": tensor_array_name,
            }
            if colocate_with_first_write_call:
                with framework.device(None), framework.colocate_with(None, ignore_existing=True):
                    self._handle, self._flow = emit("TensorArrayV3", size, name=scope, **attrs)
            else:
                self._handle, self._flow = emit("TensorArrayV3", size, name=scope, **attrs)

    @property
    def flow(self) -> Tensor:
        """A scalar that is there once all writes that led to this object have been done."""
        return self._flow

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def handle(self) -> Tensor:
        """The resource tensor."""
        return self._handle

    @property
    def element_shape(self) -> TensorShape:
        """What is known of the elements' shape."""
        return TensorShape.of(self._known[0])

    @property
    def dynamic_size(self) -> bool:
        """Whether writing past the end makes it longer."""
        return self._dynamic_size

    def with_flow(self, flow: Tensor) -> TensorArray:
        """The same array after other writes."""
        array = TensorArray(
            self._dtype,
            handle=self._handle,
            flow=flow,
            infer_shape=self._infer_shape,
            colocate_with_first_write_call=self._first_written is not None,
        )
        array._dynamic_size = self._dynamic_size
        array._size = self._size
        array._first_written = self._first_written
        array._known = self._known
        return array

    def identity(self) -> TensorArray:
        """The same array, after the control dependencies in force."""
        return self.with_flow(emit("Identity", self._flow))

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        """The array of gradients in the call of `gradients` named source."""
        flow = self._flow if flow is None else flow
        with name_scope(name, "TensorArrayGrad", [self._handle]), framework.colocate_with(self._handle):
            handle, _ = emit("TensorArrayGradV3", self._handle, flow, source=source, name=name)
            with framework.control_dependencies([handle]):
                flow = emit("Identity", flow, name="gradient_flow")
            array = TensorArray(
                self._dtype,
                handle=handle,
                flow=flow,
                infer_shape=self._infer_shape,
                colocate_with_first_write_call=False,
            )
            array._known = self._known
            return array

    # ---- reading ---------------------------------------------------------------------------------------

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at an index."""
        value: Tensor = emit(
            "TensorArrayReadV3", self._handle, index, self._flow, dtype=self._dtype, name=name
        )
        value.set_shape(self._known[0])
        return value

    def stack(self, name: str | None = None) -> Tensor:
        """All elements, stacked. Their shapes must be the same."""
        with framework.colocate_with(self._handle), name_scope(name, "TensorArrayStack", [self._handle]):
            value = self.gather(range_of(0, self.size()), name)
            known = self._known[0]
            if known is not None and not self._dynamic_size and self._size is not None:
                size = constant_value(self._size) if isinstance(self._size, Tensor) else self._size
                value.set_shape((None if size is None else int(size), *known))
            return value

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at these indices, stacked."""
        known = self._known[0]
        value: Tensor = emit(
            "TensorArrayGatherV3",
            self._handle,
            indices,
            self._flow,
            dtype=self._dtype,
            element_shape=known,
            name=name,
        )
        if known is not None:
            value.set_shape((None, *known))
        return value

    def concat(self, name: str | None = None) -> Tensor:
        """All elements, one after the other along their first dimension."""
        known = self._known[0]
        value: Tensor
        value, _ = emit(
            "TensorArrayConcatV3",
            self._handle,
            self._flow,
            dtype=self._dtype,
            element_shape_except0=None if known is None else known[1:],
            name=name,
        )
        if known:
            size = constant_value(self.size()) if self._infer_shape else None
            first = None if size is None or known[0] is None else int(size) * known[0]
            value.set_shape((first, *known[1:]))
        return value

    def size(self, name: str | None = None) -> Tensor:
        """The number of places."""
        if not self._dynamic_size and self._size is not None:
            return convert_to_tensor(self._size, dtypes.int32)
        result: Tensor = emit("TensorArraySizeV3", self._handle, self._flow, name=name)
        return result

    # ---- writing ---------------------------------------------------------------------------------------

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with value at an index. ValueError where its shape doesn't fit."""
        with name_scope(name, "TensorArrayWrite", [self._handle, index, value]):
            value = self._converted(value)
            self._learn(value._shape)
            with self._beside(value):
                flow = emit("TensorArrayWriteV3", self._handle, index, value, self._flow, name=name)
            return self.with_flow(flow)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array with the rows of value as elements."""
        with name_scope(name, "TensorArrayUnstack", [self._handle, value]):
            count = shape_of(value)[0]
            return self.scatter(range_of(0, count), value, name)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with the rows of value at these indices."""
        with name_scope(name, "TensorArrayScatter", [self._handle, value, indices]):
            value = self._converted(value)
            self._learn(None if value._shape is None else value._shape[1:])
            with self._beside(value):
                flow = emit("TensorArrayScatterV3", self._handle, indices, value, self._flow, name=name)
            return self.with_flow(flow)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array with parts of value, so long along its first dimension, as elements."""
        with name_scope(name, "TensorArraySplit", [self._handle, value, lengths]):
            value = convert_to_tensor(value, self._dtype, "value")
            with self._beside(value):
                lengths = cast(lengths, dtypes.int64)
                known = constant_value(lengths)
                if value._shape is not None and known is not None and known.size:
                    if known.max() == known.min():
                        self._learn((int(known.flat[0]), *value._shape[1:]))
                flow = emit("TensorArraySplitV3", self._handle, value, lengths, self._flow, name=name)
            return self.with_flow(flow)

    def close(self, name: str | None = None) -> Operation:
        """An operation that drops the elements before the step ends."""
        result: Operation = emit("TensorArrayCloseV3", self._handle, name=name)
        return result

    def _converted(self, value: Any) -> Tensor:
        value = convert_to_tensor(value, name="value", preferred_dtype=self._dtype)
        if value._dtype.base_dtype != self._dtype:
            raise TypeError(
                f"A TensorArray of {self._dtype.name} can't hold {value.name}, which has dtype "
                f"{value._dtype.name}"
            )
        return value

    def _learn(self, shape: Shape) -> None:
        """Takes note of the shape of what is written. ValueError where it doesn't fit."""
        known = self._known[0]
        if not shapes.is_compatible(shape, known):
            raise ValueError(
                f"Inconsistent shapes: saw {shapes.format_shape(shape)} but expected "
                f"{shapes.format_shape(known)} "
            )
        if self._infer_shape:
            self._known[0] = shapes.merge(known, shape)

    @contextmanager
    def _beside(self, value: Tensor) -> Iterator[None]:
        """Nodes made inside go where the first tensor that was written is."""
        if self._first_written is None:
            yield
            return
        if not self._first_written:
            self._first_written.append(value)
        with framework.colocate_with(self._first_written[0]):
            yield


def _check_arguments(
    handle: Any,
    size: Any,
    element_shape: Any,
    dynamic_size: bool | None,
    clear_after_read: bool | None,
    tensor_array_name: str | None,
) -> None:
    if handle is None:
        if size is None:
            raise ValueError("Argument `size` must be provided if handle is not provided.")
        return
    if tensor_array_name:
        raise ValueError("Cannot provide both `handle` and `tensor_array_name` arguments at the same time.")
    if not isinstance(handle, Tensor):
        raise TypeError(f"Expected `handle` to be a Tensor, but got `{handle}` of type `{type(handle)}`.")
    others = {
        "size": size,
        "element_shape": element_shape,
        "dynamic_size": dynamic_size,
        "clear_after_read": clear_after_read,
    }
    for argument, value in others.items():
        if value is not None:
            raise ValueError(f"Cannot provide both `handle` and `{argument}` arguments at the same time.")
