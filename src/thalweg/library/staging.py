"""Staging areas. Source: TensorFlow's data_flow_ops.py."""

from __future__ import annotations

from typing import Any

from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework
from thalweg.library.array_ops import identity
from thalweg.library.component_lists import shapes_or_unknown
from thalweg.library.framework import name_scope
from thalweg.library.grouping import no_op


class StagingArea:
    """Tuples of tensors that wait between steps, first in, first out.

    capacity, memory_limit: in tuples and bytes; 0 means no limit. names: tuples are dictionaries.
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        if shared_name is None:
            self._name = get_default_graph().unique_name("StagingArea")
        elif isinstance(shared_name, str):
            self._name = shared_name
        else:
            raise ValueError(f"shared_name must be a string, got {shared_name}")
        self._dtypes = dtypes
        self._shapes = shapes_or_unknown(shapes, dtypes, "StagingArea")
        if names is not None and len(names) != len(dtypes):
            raise ValueError("StagingArea names must be the same length as dtypes")
        self._names = names
        self._capacity = capacity
        self._memory_limit = memory_limit
        with name_scope(f"{self._name}_root"):
            self._coloc_op = no_op()

    @property
    def name(self) -> str:
        """The name of the staging area."""
        return self._name

    @property
    def dtypes(self) -> Any:
        """The type of each component."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """The shape of each component."""
        return self._shapes

    @property
    def names(self) -> Any:
        """The name of each component, or None."""
        return self._names

    @property
    def capacity(self) -> int:
        """How many tuples there may be; 0 means no limit."""
        return self._capacity

    @property
    def memory_limit(self) -> int:
        """How many bytes there may be; 0 means no limit."""
        return self._memory_limit

    def put(self, values: Any, name: str | None = None) -> Operation:
        """The operation that adds a tuple: a tensor, a list, or a dictionary. It waits for room."""
        parts = values.values() if isinstance(values, dict) else values
        given = parts if isinstance(parts, list | tuple) or parts is not values else [values]
        with name_scope(name, f"{self._name}_put", given) as scope:
            tensors = self._checked(values)
            with framework.colocate_with(self._coloc_op):
                return emit("Stage", tensors, name=scope, **self._attrs())

    def get(self, name: str | None = None) -> Any:
        """Takes the first tuple: a list, or a dictionary. Waits for one."""
        with framework.colocate_with(self._coloc_op):
            tensors = emit(
                "Unstage", dtypes=self._dtypes, name=name or f"{self._name}_get", **self._attrs()
            )
        return self._returned(tensors)

    def peek(self, index: Any, name: str | None = None) -> Any:
        """The tuple at an index, which stays. Waits for it."""
        with framework.colocate_with(self._coloc_op):
            tensors = emit(
                "StagePeek", index, dtypes=self._dtypes, name=name or f"{self._name}_peek", **self._attrs()
            )
        return self._returned(tensors)

    def size(self, name: str | None = None) -> Tensor:
        """How many tuples there are."""
        name = name or f"{self._name}_size"
        return emit("StageSize", dtypes=self._dtypes, name=name, **self._attrs())

    def clear(self, name: str | None = None) -> Operation:
        """The operation that drops all tuples."""
        name = name or f"{self._name}_clear"
        return emit("StageClear", dtypes=self._dtypes, name=name, **self._attrs())

    def _attrs(self) -> dict[str, Any]:
        return {
            "shared_name": self._name,
            "capacity": self._capacity,
            "memory_limit": self._memory_limit,
        }

    def _checked(self, values: Any) -> list[Tensor]:
        """The components as tensors, of the declared types and shapes."""
        if isinstance(values, dict):
            if not self._names:
                raise ValueError("Staging areas must have names to enqueue a dictionary")
            if not set(values).issubset(self._names):
                raise ValueError(
                    "Keys in dictionary to put do not match names of staging area. Dictionary: "
                    f"{sorted(values)}Queue: {sorted(self._names)}"
                )
            values = [values[k] for k in self._names if k in values]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a staging area with names")
        elif not isinstance(values, list | tuple):
            values = [values]
        if len(values) > len(self._dtypes):
            raise ValueError(f"Unexpected number of inputs {len(values)} vs {len(self._dtypes)}")
        tensors = []
        for i, (value, dtype, shape) in enumerate(zip(values, self._dtypes, self._shapes, strict=False)):
            tensor = convert_to_tensor(value, name=f"component_{i}")
            if tensor.dtype.base_dtype != dtype:
                raise ValueError(
                    f"Datatypes do not match. Received val.dtype {tensor.dtype} and dtype {dtype}"
                )
            tensor.shape.assert_is_compatible_with(shape)
            tensors.append(tensor)
        return tensors

    def _returned(self, tensors: list[Tensor]) -> Any:
        if no_op().device != self._coloc_op.device:  # the node tells which device is in force here
            tensors = [identity(t) for t in tensors]
        for tensor, shape in zip(tensors, self._shapes, strict=True):
            tensor.set_shape(shape)
        return dict(zip(self._names, tensors, strict=True)) if self._names else tensors
