"""RefVariable: a variable whose node (VariableV2) outputs a reference; TensorFlow 1.x's default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


class RefVariable(Variable):
    """A reference variable. See Variable."""

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,  # ignored, as in TensorFlow
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
        self._caching_device = caching_device
        given = [] if callable(initial_value) else [initial_value]
        with framework.init_scope(), name_scope(name, "Variable", given) as scope:
            self._make_state(initial_value, dtype, shape, validate_shape, scope)
            self._make_initializer(validate_shape, scope)
            self._make_read()
        remember(self)
        self.graph.add_to_collections(collections, self)

    def _make_state(
        self, initial_value: Any, dtype: Any, shape: Any, validate_shape: bool, scope: str
    ) -> None:
        graph = get_default_graph()
        if callable(initial_value):
            with graph._attr_scope(base.own_group(scope)):
                with name_scope("Initializer"), graph.device(None):
                    value = convert_to_tensor(initial_value(), dtype, "initial_value")
                self._variable = self._state(value, shape, validate_shape, scope)
        else:
            value = convert_to_tensor(initial_value, dtype, "initial_value")
            base.check_not_in_control_flow(value, scope.rstrip("/"))
            self._variable = self._state(value, shape, validate_shape, scope)
        self._initial_value = value

    def _state(self, value: Tensor, shape: Any, validate_shape: bool, scope: str) -> Tensor:
        if shape is None and validate_shape:
            shape = value._shape
        if validate_shape and not value.shape.is_fully_defined():
            raise ValueError(f"initial_value must have a shape specified: {value}")
        return emit("VariableV2", shape=shape, dtype=value.dtype.base_dtype, name=scope)

    def _make_initializer(self, validate_shape: bool, scope: str) -> None:
        assert self._initial_value is not None
        self._safe_initial_value = safe_initial_value(self._initial_value, scope)
        self._initializer_op = emit.operation(
            "Assign", self._variable, self._safe_initial_value, validate_shape=validate_shape
        )

    def _make_read(self) -> None:
        where = (
            framework.colocate_with(self._variable.op)
            if self._caching_device is None
            else framework.device(self._caching_device)
        )
        with where:
            self._snapshot: Tensor = emit("Identity", self._variable, name="read")

    # ---- the three nodes -------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the variable: "op_name:0"."""
        return self._variable.name

    @property
    def op(self) -> Operation:
        """The VariableV2 node."""
        return self._variable.op

    @property
    def dtype(self) -> DType:
        """The reference type of the elements; `.base_dtype` is theirs."""
        return self._variable.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self._variable.shape

    @property
    def initializer(self) -> Operation:
        """The Assign node that gives it its initial value."""
        return self._initializer_op

    def value(self) -> Tensor:
        """The value: the Identity node "read" made with the variable."""
        return self._snapshot

    def read_value(self) -> Tensor:
        """The value, read by a new node: under the control dependencies in force."""
        return emit("Identity", self._variable, name="read")

    def _ref(self) -> Tensor:
        """The reference itself, for ops that update it."""
        return self._variable

    def _as_graph_element(self) -> Tensor:
        return self._variable

    def is_initialized(self, name: str | None = None) -> Tensor:
        """A scalar: whether it has a value."""
        return emit("IsVariableInitialized", self._variable, name=name)

    def set_shape(self, shape: Any) -> None:
        """Merges what the caller knows into the static shapes of the variable and its read."""
        self._variable.set_shape(shape)
        self._snapshot.set_shape(shape)

    def _initialized_value_node(self, initial_value: Tensor, name: str) -> Tensor:
        return emit("_InitializedValue", self._variable, initial_value, name=name)

    def _conversion(self, dtype: DType | None, as_ref: bool) -> Tensor:
        base.check_conversion(self, dtype)
        return self._variable if as_ref else self._snapshot

    # ---- updates ---------------------------------------------------------------------------------------

    def _update(
        self, op_type: str, *inputs: Any, name: str | None, read_value: bool = True, **attrs: Any
    ) -> Any:
        operation = emit.operation(op_type, self._variable, *inputs, name=name, **attrs)
        return operation.outputs[0] if read_value else operation

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """A node that gives it a value; returns the new value, or the operation without read_value."""
        return self._update("Assign", value, use_locking=use_locking, name=name, read_value=read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """A node that adds delta; returns the new value, or the operation without read_value."""
        return self._update("AssignAdd", delta, use_locking=use_locking, name=name, read_value=read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """A node that subtracts delta; returns the new value, or the operation without read_value."""
        return self._update("AssignSub", delta, use_locking=use_locking, name=name, read_value=read_value)

    def _scatter(self, op_type: str, sparse_delta: Any, use_locking: bool, name: str | None) -> Tensor:
        rows = base.checked_slices(sparse_delta)
        return self._update(op_type, rows.indices, rows.values, use_locking=use_locking, name=name)

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
        """A node that adds IndexedSlices; returns the new value. Rows that repeat add up."""
        return self._scatter("ScatterAdd", sparse_delta, use_locking, name)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
        """A node that subtracts IndexedSlices; returns the new value."""
        return self._scatter("ScatterSub", sparse_delta, use_locking, name)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
        """A node that multiplies rows by IndexedSlices; returns the new value."""
        return self._scatter("ScatterMul", sparse_delta, use_locking, name)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
        """A node that divides rows by IndexedSlices; returns the new value."""
        return self._scatter("ScatterDiv", sparse_delta, use_locking, name)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
        """A node that takes the maximum with IndexedSlices; returns the new value."""
        return self._scatter("ScatterMax", sparse_delta, use_locking, name)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
        """A node that takes the minimum with IndexedSlices; returns the new value."""
        return self._scatter("ScatterMin", sparse_delta, use_locking, name)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
        """A node that replaces rows by IndexedSlices; returns the new value."""
        return self._scatter("ScatterUpdate", sparse_delta, use_locking, name)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """A node that adds updates at indices [..., k]; returns the new value."""
        return self._update("ScatterNdAdd", indices, updates, use_locking=True, name=name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """A node that subtracts updates at indices [..., k]; returns the new value."""
        return self._update("ScatterNdSub", indices, updates, use_locking=True, name=name)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """A node that puts updates at indices [..., k]; returns the new value."""
        return self._update("ScatterNdUpdate", indices, updates, use_locking=True, name=name)

    def _assign_slice(self, read: Operation, value: Any, name: str | None) -> Tensor:
        bounds, masks = base.slice_arguments(read)
        with self.graph.name_scope(None):
            name = name or f"{read.name}/_assign"
            return self._update("StridedSliceAssign", *bounds, value, name=name, **masks)

    def count_up_to(self, limit: int) -> Tensor:
        """A node that adds one, and returns the value before; OutOfRangeError at the limit."""
        return self._update("CountUpTo", limit=limit, name=None)

    # ---- reads of a part -------------------------------------------------------------------------------

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """The rows at `indices`."""
        return emit("GatherV2", self._snapshot, indices, 0, name=name)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements or slices at indices [..., k]."""
        return emit("GatherNd", self._snapshot, indices, name=name)


register_tensor_conversion_function(
    RefVariable, lambda v, dtype=None, name=None, as_ref=False: v._conversion(dtype, as_ref)
)
