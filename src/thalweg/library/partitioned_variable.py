"""PartitionedVariable: several variables that are slices of one, used as if they were one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from thalweg.base.dtypes import DType
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.convert import register_tensor_conversion_function
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library import framework
from thalweg.library.framework import name_scope
from thalweg.library.variable_base import Variable, check_conversion


class PartitionedVariable:
    """The slices of a variable along one axis, in order. As a tensor: their concatenation.

    shape: the whole shape; partitions: the number of slices per axis. Every slice has its save_slice_info.
    """

    is_tensor_like = True

    def __init__(
        self,
        name: str,
        shape: Any,
        dtype: DType,
        variable_list: Sequence[Variable],
        partitions: Sequence[int],
    ) -> None:
        if not isinstance(variable_list, list | tuple):
            raise TypeError(f"variable_list is not a list or tuple: {variable_list}")
        if not isinstance(partitions, list | tuple):
            raise TypeError(f"partitions is not a list or tuple: {partitions}")
        if not all(p >= 1 for p in partitions):
            raise ValueError(f"partition values must be positive: {partitions}")
        if not variable_list:
            raise ValueError("variable_list may not be empty")
        self._shape = TensorShape(shape)
        if len(self._shape) != len(partitions):
            raise ValueError(f"len(shape) != len(partitions): {shape} vs. {partitions}")
        for v in variable_list:
            info = v._get_save_slice_info()
            if info is None:
                raise ValueError(f"All variables must have a save_slice_info available: {v.name}")
            if info.full_shape != self._shape.as_list():
                raise ValueError(
                    f"All variables' full shapes must match {shape}; but '{v.name}' has {info.full_shape}"
                )
        self._variables = sorted(variable_list, key=lambda v: list(v._get_save_slice_info().var_offset))
        self._name = name
        self._dtype = dtype
        self._partitions = partitions

    @property
    def name(self) -> str:
        """The name of the whole."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._variables)

    def __len__(self) -> int:
        if len(self._axes()) > 1:
            raise ValueError(f"Cannot get a length for {len(self._axes())} > 1 partition axes")
        return len(self._variables)

    def _get_variable_list(self) -> list[Variable]:
        return self._variables

    def _get_partitions(self) -> Sequence[int]:
        return self._partitions

    def _axes(self) -> list[int]:
        return [i for i, p in enumerate(self._partitions) if p > 1] or [0]

    def _axis(self) -> int:
        axes = self._axes()
        if len(axes) > 1:
            raise NotImplementedError(f"'{self._name}' is cut along more than one dimension: {axes}")
        return axes[0]

    def as_tensor(self) -> Tensor:
        """The slices, concatenated: outside the control dependencies in force."""
        with framework.control_dependencies(None):
            if len(self._variables) == 1:
                whole: Any = self._variables[0]
            else:
                with name_scope(self._name + "/ConcatPartitions/"):
                    whole = emit("ConcatV2", list(self._variables), self._axis(), name="concat")
            with name_scope(None):
                return emit("Identity", whole, name=self._name)

    def _conversion(self, dtype: DType | None, as_ref: bool) -> Tensor:
        check_conversion(self, dtype)  # type: ignore[arg-type]  # it has a name and a dtype
        if as_ref:
            raise NotImplementedError("PartitionedVariable doesn't support being used as a reference.")
        return self.as_tensor()

    # ---- updates ---------------------------------------------------------------------------------------

    def _each(self, update: Callable[[Any, Any], Any], value: Any) -> list[Any]:
        axis = self._axis()
        if isinstance(value, PartitionedVariable | list):
            parts = list(value)
        else:
            sizes = [v.shape.as_list()[axis] for v in self._variables]
            parts = emit("SplitV", value, sizes, axis, num_split=len(sizes), name="split")
        if len(parts) != len(self._variables):
            raise ValueError(f"'{self._name}' has {len(self._variables)} slices, got {len(parts)} values")
        return [update(v, part) for v, part in zip(self._variables, parts, strict=True)]

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Gives each slice its part of value (a tensor, a list of parts, or a PartitionedVariable)."""
        return self._each(lambda v, part: v.assign(part, use_locking, name, read_value), value)

    def assign_add(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Adds to each slice its part of value."""
        return self._each(lambda v, part: v.assign_add(part, use_locking, name, read_value), value)

    def assign_sub(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Subtracts from each slice its part of value."""
        return self._each(lambda v, part: v.assign_sub(part, use_locking, name, read_value), value)


def _run_operator(name: str) -> Callable[..., Any]:
    return lambda self, *args: getattr(Tensor, name)(self.as_tensor(), *args)


for _name in Tensor.OVERLOADABLE_OPERATORS - {"__eq__", "__ne__"}:
    setattr(PartitionedVariable, _name, _run_operator(_name))

register_tensor_conversion_function(
    PartitionedVariable, lambda v, dtype=None, name=None, as_ref=False: v._conversion(dtype, as_ref)
)
