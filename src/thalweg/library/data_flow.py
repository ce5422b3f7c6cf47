"""Barriers and accumulators. Source: TensorFlow's data_flow_ops.py."""

from __future__ import annotations

from typing import Any

from thalweg.base import dtypes
from thalweg.base.tensor_shape import TensorShape, unknown_shape
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.shape_context import constant_value
from thalweg.library.casting import cast
from thalweg.library.component_lists import as_shape_list, as_type_list, shapes_or_unknown


class Barrier:
    """A map from keys to tuples that are put together component by component, and taken when complete."""

    def __init__(
        self, types: Any, shapes: Any = None, shared_name: str | None = None, name: str = "barrier"
    ) -> None:
        self._types = as_type_list(types)
        given = as_shape_list(shapes)
        self._shapes = shapes_or_unknown(given, self._types, "Barrier")
        for i, shape in enumerate(given or ()):
            if shape.num_elements() == 0:
                raise ValueError(
                    f"Empty tensors are not supported, but received shape '{shape}' at index {i}"
                )
        self._barrier_ref: Tensor = emit(
            "Barrier", component_types=self._types, shapes=given or [], shared_name=shared_name, name=name
        )
        self._name = self._barrier_ref.op.name.split("/")[-1]

    @property
    def barrier_ref(self) -> Tensor:
        """The barrier's node, as the tensor that it puts out."""
        return self._barrier_ref

    @property
    def name(self) -> str:
        """The name of the barrier's node."""
        return self._barrier_ref.op.name

    def insert_many(self, component_index: int, keys: Any, values: Any, name: str | None = None) -> Operation:
        """The operation that gives each key a value for one component."""
        return emit(
            "BarrierInsertMany",
            self._barrier_ref,
            keys,
            values,
            component_index=component_index,
            name=name or f"{self._name}_BarrierInsertMany",
        )

    def take_many(
        self,
        num_elements: Any,
        allow_small_batch: bool = False,
        timeout: int | None = None,
        name: str | None = None,
    ) -> Any:
        """(indices, keys, values): complete tuples in the order in which their keys were met; waits for them.

        allow_small_batch: fewer where the barrier is closed and has no more.
        """
        result = emit(
            "BarrierTakeMany",
            self._barrier_ref,
            num_elements,
            component_types=self._types,
            allow_small_batch=allow_small_batch,
            timeout_ms=timeout,
            name=name or f"{self._name}_BarrierTakeMany",
        )
        op = result[0].op
        known = None if allow_small_batch else constant_value(op.inputs[1])
        batch = TensorShape([None if known is None else int(known)])
        for output, shape in zip(op.outputs, [(), (), *self._shapes], strict=True):
            output.set_shape(batch.concatenate(shape))
        return result

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """The operation after which no new keys are taken; with cancel_pending_enqueues no components."""
        return emit(
            "BarrierClose",
            self._barrier_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_BarrierClose",
        )

    def ready_size(self, name: str | None = None) -> Tensor:
        """How many tuples are complete."""
        name = name or f"{self._name}_BarrierReadySize"
        return emit("BarrierReadySize", self._barrier_ref, name=name)

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many tuples lack components."""
        name = name or f"{self._name}_BarrierIncompleteSize"
        return emit("BarrierIncompleteSize", self._barrier_ref, name=name)


class ConditionalAccumulatorBase:
    """Adds up gradients that aren't stale, and gives their mean when there are enough."""

    _PREFIX = ""

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Tensor) -> None:
        self._dtype = dtype
        self._shape = unknown_shape() if shape is None else TensorShape(shape)
        self._accumulator_ref = accumulator_ref
        self._name = accumulator_ref.op.name.split("/")[-1]

    @property
    def accumulator_ref(self) -> Tensor:
        """The accumulator's node, as the tensor that it puts out."""
        return self._accumulator_ref

    @property
    def name(self) -> str:
        """The last part of the name of the accumulator's node."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The type of the gradients."""
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """How many gradients there are."""
        return emit(
            f"{self._PREFIX}AccumulatorNumAccumulated",
            self._accumulator_ref,
            name=name or f"{self._name}_NumAccumulated",
        )

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """The operation that sets the step below which gradients are stale."""
        step = cast(convert_to_tensor(new_global_step), dtypes.int64)
        return emit(
            f"{self._PREFIX}AccumulatorSetGlobalStep", self._accumulator_ref, step, name=name
        )


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """For gradients of one shape. reduction_type: "MEAN" or "SUM"."""

    _PREFIX = "Resource"

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        ref = emit(
            "ResourceConditionalAccumulator",
            dtype=dtype,
            shape=shape,
            shared_name=shared_name,
            name=name,
            reduction_type=reduction_type,
        )
        super().__init__(dtype, shape, ref)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """The operation that adds a gradient, unless local_step is older than the accumulator's step."""
        grad = convert_to_tensor(grad, self._dtype)
        grad.shape.assert_is_compatible_with(self._shape)
        step = cast(convert_to_tensor(local_step), dtypes.int64)
        return emit(
            "ResourceAccumulatorApplyGradient", self._accumulator_ref, step, grad, name=name
        )

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """The mean (or sum) when there are num_required gradients; starts over, one step later."""
        result: Tensor = emit(
            "ResourceAccumulatorTakeGradient",
            self._accumulator_ref,
            num_required,
            dtype=self._dtype,
            name=name,
        )
        result.set_shape(self._shape)
        return result


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """For IndexedSlices. The mean of a row is over the gradients that have it."""

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        ref = emit(
            "SparseConditionalAccumulator",
            dtype=dtype,
            shape=shape,
            shared_name=shared_name,
            name=name,
            reduction_type=reduction_type,
        )
        super().__init__(dtype, shape, ref)

    def apply_indexed_slices_grad(
        self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None
    ) -> Operation:
        """The operation that adds IndexedSlices, unless local_step is older than the accumulator's step."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self,
        grad_indices: Any,
        grad_values: Any,
        grad_shape: Any = None,
        local_step: Any = 0,
        name: str | None = None,
    ) -> Operation:
        """The operation that adds rows, unless local_step is older than the accumulator's step."""
        step = cast(convert_to_tensor(local_step), dtypes.int64)
        return emit(
            "SparseAccumulatorApplyGradient",
            self._accumulator_ref,
            local_step=step,
            gradient_indices=cast(grad_indices, dtypes.int64),
            gradient_values=grad_values,
            gradient_shape=cast([] if grad_shape is None else grad_shape, dtypes.int64),
            has_known_shape=grad_shape is not None,
            name=name,
        )

    def take_grad(self, num_required: Any, name: str | None = None) -> Any:
        """(indices, values, shape): the mean (or sum) when there are num_required gradients."""
        return emit(
            "SparseAccumulatorTakeGradient",
            self._accumulator_ref,
            num_required,
            dtype=self._dtype,
            name=name,
        )

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """The same as IndexedSlices."""
        result = self.take_grad(num_required, name)
        return IndexedSlices(indices=result.indices, values=result.values, dense_shape=result.shape)
