"""ResourceVariable: a variable whose node (VarHandleOp) outputs a handle, for reads and updates to take."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.convert import convert_to_tensor, get_default_graph, register_tensor_conversion_function
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework
from thalweg.library import variable_base as base
from thalweg.library.framework import name_scope
from thalweg.library.initial_values import remember, safe_initial_value
from thalweg.library.variable_base import Variable


class BaseResourceVariable(Variable):
    """What a handle allows: reads and updates. Its subclasses set `_handle`, `_dtype` and `_shape`."""

    _handle: Tensor
    _dtype: DType
    _shape: shapes.Shape
    _graph_element: Tensor
    _cached_value: Tensor | None = None
    _caching_device: Any = None
    _initializer_op: Operation | None = None
    _validate_shape = True

    @property
    def handle(self) -> Tensor:
        """The resource tensor, for ops that take one."""
        return self._handle

    @property
    def name(self) -> str:
        """The name of the variable: "op_name:0"."""
        return self._handle.name

    @property
    def op(self) -> Operation:
        """The VarHandleOp node."""
        return self._handle.op

    @property
    def device(self) -> str:
        """The device asked for."""
        return self._handle.device

    @property
    def graph(self) -> Any:
        """The graph that holds the variable."""
        return self._handle.graph

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return TensorShape.of(self._shape)

    @property
    def create(self) -> Operation | None:
        """The operation that gives it its initial value."""
        return self._initializer_op

    @property
    def initializer(self) -> Operation:
        """The operation that gives it its initial value."""
        return self._initializer_op  # type: ignore[return-value]  # an UnreadVariable has none

    def set_shape(self, shape: Any) -> None:
        """Merges what the caller knows into the static shape."""
        self._shape = shapes.merge(self._shape, shapes.as_shape(shape))
        self._graph_element.set_shape(shape)

    # ---- reads -----------------------------------------------------------------------------------------

    def _read(self) -> Tensor:
        graph = self.graph
        if self._caching_device is None:
            return emit("ReadVariableOp", self._handle, dtype=self._dtype)
        with graph.colocate_with(None, ignore_existing=True), graph.device(self._caching_device):
            return emit("ReadVariableOp", self._handle, dtype=self._dtype)

    def value(self) -> Tensor:
        """The value: the cached copy where there is a caching device, else read by a new node."""
        if self._cached_value is not None:
            return self._cached_value
        with self.graph.colocate_with(None, ignore_existing=True):
            return self._read()

    def read_value(self) -> Tensor:
        """The value, read by a new node: under the control dependencies in force."""
        with name_scope("Read"):
            value = self._read()
        return emit("Identity", value)

    def _as_graph_element(self) -> Tensor:
        return self._graph_element

    def is_initialized(self, name: str | None = None) -> Tensor:
        """A scalar: whether it has a value."""
        return emit("VarIsInitializedOp", self._handle, name=name)

    def _initialized_value_node(self, initial_value: Tensor, name: str) -> Tensor:
        return emit("_InitializedResourceValue", self._handle, initial_value, name=name)

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """The rows at `indices`: only those are read."""
        return emit("ResourceGather", self._handle, indices, dtype=self._dtype, name=name or "Gather")

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements or slices at indices [..., k]."""
        value = emit("ResourceGatherNd", self._handle, indices, dtype=self._dtype, name=name or "GatherNd")
        return emit("Identity", value)

    def _conversion(self, dtype: DType | None, as_ref: bool) -> Tensor:
        base.check_conversion(self, dtype)
        return self.value()  # there is no reference: an op that wants one says so itself

    # ---- updates ---------------------------------------------------------------------------------------

    def _after(self) -> AbstractContextManager[None]:
        """What updates and reads of this object come after."""
        return nullcontext()

    def _update(
        self, op_type: str, *inputs: Any, value: Any, name: str | None, read_value: bool = True, **attrs: Any
    ) -> Any:
        """A node of op_type(handle, *inputs, value): the operation, or the variable as it is after it."""
        value = convert_to_tensor(value, self._dtype)
        with self._after():
            operation = emit.operation(op_type, self._handle, *inputs, value, name=name, **attrs)
        return UnreadVariable(self, operation) if read_value else operation

    def assign(
        self, value: Any, use_locking: bool | None = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        """A node that gives it a value; returns the variable as it is then; without read_value the operation.

        ValueError for a value of another shape.
        """
        value = convert_to_tensor(value, self._dtype)
        if not shapes.is_compatible(self._shape, value._shape):
            raise ValueError(
                f"Cannot assign to variable {self.name} due to variable shape "
                f"{shapes.format_shape(self._shape)} and value shape {shapes.format_shape(value._shape)} are "
                "incompatible"
            )
        validate = self._validate_shape and shapes.is_fully_defined(self._shape)
        return self._update(
            "AssignVariableOp", value=value, name=name, read_value=read_value, validate_shape=validate
        )

    def assign_add(
        self, delta: Any, use_locking: bool | None = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        """A node that adds delta; returns the variable as it is then, or the operation (read_value)."""
        return self._update("AssignAddVariableOp", value=delta, name=name, read_value=read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool | None = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        """A node that subtracts delta; returns the variable as it is then, or the operation (read_value)."""
        return self._update("AssignSubVariableOp", value=delta, name=name, read_value=read_value)

    def _scatter(self, op_type: str, sparse_delta: Any, name: str | None) -> Any:
        rows = base.checked_slices(sparse_delta)
        return self._update(op_type, rows.indices, value=rows.values, name=name)

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """A node that adds IndexedSlices; returns the variable as it is then. Rows that repeat add up."""
        return self._scatter("ResourceScatterAdd", sparse_delta, name)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """A node that subtracts IndexedSlices; returns the variable as it is then."""
        return self._scatter("ResourceScatterSub", sparse_delta, name)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """A node that multiplies rows by IndexedSlices; returns the variable as it is then."""
        return self._scatter("ResourceScatterMul", sparse_delta, name)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """A node that divides rows by IndexedSlices; returns the variable as it is then."""
        return self._scatter("ResourceScatterDiv", sparse_delta, name)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """A node that takes the maximum with IndexedSlices; returns the variable as it is then."""
        return self._scatter("ResourceScatterMax", sparse_delta, name)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """A node that takes the minimum with IndexedSlices; returns the variable as it is then."""
        return self._scatter("ResourceScatterMin", sparse_delta, name)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """A node that replaces rows by IndexedSlices; returns the variable as it is then."""
        return self._scatter("ResourceScatterUpdate", sparse_delta, name)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """A node that adds updates at indices [..., k]; returns the variable as it is then."""
        return self._update("ResourceScatterNdAdd", indices, value=updates, name=name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """A node that subtracts updates at indices [..., k]; returns the variable as it is then."""
        return self._update("ResourceScatterNdSub", indices, value=updates, name=name)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """A node that puts updates at indices [..., k]; returns the variable as it is then."""
        return self._update("ResourceScatterNdUpdate", indices, value=updates, name=name)

    def _assign_slice(self, read: Operation, value: Any, name: str | None) -> Any:
        bounds, masks = base.slice_arguments(read)
        with self.graph.name_scope(None):
            name = name or f"{read.name}/_assign"
            return self._update("ResourceStridedSliceAssign", *bounds, value=value, name=name, **masks)

    def count_up_to(self, limit: int) -> Tensor:
        """A node that adds one, and returns the value before; OutOfRangeError at the limit."""
        with self._after():
            return emit("ResourceCountUpTo", self._handle, limit=limit, T=self._dtype)


class ResourceVariable(BaseResourceVariable):
    """A resource variable. See Variable."""

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        dtype: Any = None,
        variable_def: Any = None,
        import_scope: str | None = None,
        constraint: Callable[[Tensor], Tensor] | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        base.checked_arguments(initial_value, constraint, variable_def)
        modes = base.checked_modes(synchronization, aggregation, trainable, name)
        self._synchronization, self._aggregation, self._trainable = modes
        collections = base.checked_collections(collections, self._trainable)
        self._constraint = constraint
        self._validate_shape = validate_shape
        given = [] if callable(initial_value) else [initial_value]
        with framework.init_scope(), name_scope(name, "Variable", given) as scope:
            self._make_state(initial_value, dtype, shape, scope)
            self._make_initializer(scope)
            self._make_read(caching_device)
        remember(self)
        self.graph.add_to_collections(collections, self)

    def _make_state(self, initial_value: Any, dtype: Any, shape: Any, scope: str) -> None:
        graph = get_default_graph()
        with graph._attr_scope(base.own_group(scope)):
            with name_scope("Initializer"), graph.device(None):
                value = initial_value() if callable(initial_value) else initial_value
                value = convert_to_tensor(value, dtype, "initial_value")
            self._shape = value._shape if shape is None else shapes.as_shape(shape)
            if not shapes.is_compatible(self._shape, value._shape):
                raise ValueError(
                    f"The initial value's shape ({shapes.format_shape(value._shape)}) is not compatible with "
                    f"the explicitly supplied `shape` argument ({shapes.format_shape(self._shape)})."
                )
            self._dtype = value.dtype.base_dtype
            self._handle = emit(
                "VarHandleOp",
                shape=self._shape,
                dtype=self._dtype,
                shared_name=scope.rstrip("/"),
                name=scope,
            )
        base.check_not_in_control_flow(value, scope.rstrip("/"))
        self._initial_value = value

    def _make_initializer(self, scope: str) -> None:
        assert self._initial_value is not None
        graph = self.graph
        with name_scope("IsInitialized"):
            self._is_initialized_op = emit("VarIsInitializedOp", self._handle)
        self._safe_initial_value = safe_initial_value(self._initial_value, scope)
        with graph.colocate_with(None, ignore_existing=True), graph.device(self._handle.device):
            self._initializer_op = emit.operation(
                "AssignVariableOp", self._handle, self._safe_initial_value, name="Assign"
            )

    def _make_read(self, caching_device: Any) -> None:
        graph = self.graph
        self._caching_device = caching_device
        with name_scope("Read"):
            with graph.device(self._handle.device):
                self._graph_element = emit("ReadVariableOp", self._handle, dtype=self._dtype)
            if caching_device is not None:
                with graph.colocate_with(None, ignore_existing=True), graph.device(caching_device):
                    self._cached_value = emit("Identity", self._graph_element)


class UnreadVariable(BaseResourceVariable):
    """A resource variable as it is after an update: whatever uses it comes after the update."""

    def __init__(self, variable: BaseResourceVariable, update: Operation) -> None:
        self._handle = variable._handle
        self._dtype = variable._dtype
        self._shape = variable._shape
        self._trainable = variable._trainable
        self._constraint = variable._constraint
        self._update_op = update
        with self._after():
            self._graph_element = emit("ReadVariableOp", self._handle, dtype=self._dtype)

    def _after(self) -> AbstractContextManager[None]:
        return self.graph.control_dependencies([self._update_op])

    @property
    def name(self) -> str:
        """The name of the update."""
        return self._update_op.name

    @property
    def op(self) -> Operation:
        """The update."""
        return self._update_op

    def _read(self) -> Tensor:
        with self._after():
            return super()._read()


register_tensor_conversion_function(
    BaseResourceVariable, lambda v, dtype=None, name=None, as_ref=False: v._conversion(dtype, as_ref)
)
