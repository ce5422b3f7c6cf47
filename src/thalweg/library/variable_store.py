"""The variables of a graph by name: what get_variable finds or makes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from thalweg.base import dtypes, origin
from thalweg.base.dtypes import DType
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library import framework, initializers, variable_base
from thalweg.library.framework import name_scope
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.partitioned_variable import PartitionedVariable
from thalweg.library.scope_store import AUTO_REUSE
from thalweg.library.variable_base import SaveSliceInfo, Variable


class PartitionInfo:
    """Which slice of a larger variable an initializer is asked for."""

    def __init__(self, full_shape: Sequence[int], var_offset: Sequence[int]) -> None:
        if not isinstance(full_shape, list | tuple):
            raise TypeError(f"`full_shape` must be a sequence, got {type(full_shape).__name__}")
        if not isinstance(var_offset, list | tuple):
            raise TypeError(f"`var_offset` must be a sequence, got {type(var_offset).__name__}")
        if len(var_offset) != len(full_shape):
            raise ValueError(f"`var_offset` {var_offset} and `full_shape` {full_shape} differ in length")
        if any(o < 0 or o >= n for o, n in zip(var_offset, full_shape, strict=True)):
            raise ValueError(f"Expected 0 <= offset < shape, got {var_offset} in the shape {full_shape}")
        self.full_shape = full_shape
        self.var_offset = var_offset

    def single_offset(self, shape: Sequence[int]) -> int:
        """Where a slice of that shape starts, on the axis that is cut; 0 where none is."""
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else self.var_offset[axis]

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """The axis that is cut, or None. ValueError where there are several, or the slice is too large."""
        if len(shape) != len(self.full_shape):
            raise ValueError(f"shape {shape} and full_shape {self.full_shape} differ in length")
        cut = [i for i, (n, full) in enumerate(zip(shape, self.full_shape, strict=True)) if n != full]
        for i in range(len(shape)):
            if self.var_offset[i] + shape[i] > self.full_shape[i]:
                raise ValueError(
                    f"With var_offset={self.var_offset}, a partition of shape={shape} would exceed "
                    f"full_shape={self.full_shape} in dimension {i}."
                )
        if len(cut) > 1:
            raise ValueError(f"a slice {shape} of {self.full_shape} is cut along several axes: {cut}")
        return cut[0] if cut else None


class VariableStore:
    """A graph's variables that were made by get_variable, by full name."""

    def __init__(self) -> None:
        self._vars: dict[str, Variable] = {}
        self._partitioned: dict[str, PartitionedVariable] = {}

    def get_variable(
        self, name: str, custom_getter: Callable[..., Any] | None = None, **arguments: Any
    ) -> Any:
        """The variable `name` (see variable_scope.get_variable), through the custom getter where given."""
        if custom_getter is None:
            return self._get(name, **arguments)
        if not callable(custom_getter):
            raise ValueError(f"Passed a custom_getter which is not callable: {custom_getter}")
        arguments["dtype"] = _base(arguments["dtype"])
        synchronization, aggregation, trainable = variable_base.checked_modes(
            arguments["synchronization"], arguments["aggregation"], arguments["trainable"], name
        )
        arguments.update(synchronization=synchronization, aggregation=aggregation, trainable=trainable)
        if not _accepts(custom_getter, "constraint"):
            del arguments["constraint"]
        return custom_getter(getter=self._get, name=name, **arguments)

    def _get(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
    ) -> Any:
        """What a custom getter gets as `getter`."""
        arguments = dict(
            shape=shape,
            dtype=_base(dtype),
            initializer=initializer,
            regularizer=regularizer,
            reuse=reuse,
            trainable=trainable,
            collections=collections,
            caching_device=caching_device,
            validate_shape=validate_shape,
            use_resource=use_resource,
            constraint=constraint,
            synchronization=synchronization,
            aggregation=aggregation,
        )
        is_scalar = isinstance(shape, list | tuple) and not shape
        if partitioner is not None and not is_scalar:
            if not callable(partitioner):
                raise ValueError(f"Partitioner must be callable, but received: {partitioner}")
            with name_scope(None):
                return self.get_partitioned(name, partitioner=partitioner, **arguments)
        if reuse is True and name in self._partitioned:
            return self.get_partitioned(name, partitioner=None, **arguments)
        if f"{name}/part_0" in self._vars:
            raise ValueError(
                "No partitioner was provided, but a partitioned version of the variable was found: "
                f"{name}/part_0. Perhaps a variable of the same name was already created with partitioning?"
            )
        return self._get_single(name, **arguments)

    # ---- one variable ----------------------------------------------------------------------------------

    def _get_single(
        self,
        name: str,
        shape: Any,
        dtype: Any,
        initializer: Any,
        regularizer: Any,
        reuse: Any,
        partition_info: PartitionInfo | None = None,
        **arguments: Any,
    ) -> Variable:
        if shape is not None and initializer is not None and not callable(initializer):
            raise ValueError("If initializer is a constant, do not specify shape.")
        dtype = dtypes.as_dtype(dtype)
        shape = None if shape is None else TensorShape(shape)
        if name in self._vars:
            return self._existing(name, shape, dtype, reuse)
        if reuse is True:
            raise ValueError(
                f"Variable {name} does not exist, or was not created with tf.get_variable(). Did you mean to "
                "set reuse=tf.AUTO_REUSE in VarScope?"
            )
        if initializer is None:
            if shape is None or not shape.is_fully_defined():
                raise ValueError(
                    f"Shape of a new variable ({name}) must be fully defined, but instead was "
                    f"{'<unknown>' if shape is None else shape}."
                )
            initializer = _default_initializer(name, dtype)
        value, value_dtype = _initial_value(name, initializer, shape, dtype, partition_info)
        variable: Variable = variable_base.create(
            **{
                **variable_base._DEFAULTS,
                **arguments,
                "initial_value": value,
                "name": name,
                "dtype": value_dtype,
                "shape": shape if callable(value) else None,
            }
        )
        self._vars[name] = variable
        if regularizer is not None:
            _regularize(variable, name, regularizer)
        return variable

    def _existing(self, name: str, shape: TensorShape | None, dtype: DType, reuse: Any) -> Variable:
        found = self._vars[name]
        if reuse is False:
            message = (
                f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or "
                "reuse=tf.AUTO_REUSE in VarScope?"
            )
            where = "".join(
                f"  {origin.describe((frame,))}\n" for frame in found.op.origin if not isinstance(frame, str)
            )
            raise ValueError(f"{message} Originally defined at:\n\n{where}" if where else message)
        if shape is not None and not shape.is_compatible_with(found.shape):
            raise ValueError(
                f"Trying to share variable {name}, but specified shape {shape} and found shape {found.shape}."
            )
        if not dtype.is_compatible_with(found.dtype):
            raise ValueError(
                f"Trying to share variable {name}, but specified dtype {dtype.name} and found dtype "
                f"{found.dtype.name}."
            )
        return found

    # ---- slices ----------------------------------------------------------------------------------------

    def get_partitioned(
        self,
        name: str,
        partitioner: Callable[..., Any] | None,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        initializer: Any = None,
        reuse: Any = None,
        **arguments: Any,
    ) -> PartitionedVariable:
        """The partitioned variable `name`, found or made.

        partitioner: partitioner(shape=, dtype=) -> number of slices per axis, more than one on one axis only.
        """
        dtype = dtypes.as_dtype(dtype)
        if name in self._vars:
            raise ValueError(
                "A partitioner was provided, but an unpartitioned version of the variable was found: "
                f"{name}.  Perhaps a variable of the same name was already created without partitioning?"
            )
        whole = TensorShape(shape)
        if isinstance(initializer, Tensor):
            whole = whole.merge_with(initializer.shape)
        partitions = None if partitioner is None else _partitions(partitioner, whole, dtype)
        if name in self._partitioned:
            return self._existing_partitioned(name, whole, dtype, partitions, reuse)
        if reuse is True:
            raise ValueError(
                f"PartitionedVariable {name} does not exist, or was not created with tf.get_variable(). Did "
                "you mean to set reuse=False or reuse=tf.AUTO_REUSE in VarScope?"
            )
        assert partitions is not None
        self._check_slices(name, partitions)
        full_shape = [d for d in whole.as_list() if d is not None]
        parts = []
        for i, (offset, size) in enumerate(_slices(full_shape, partitions)):
            part_name = f"{name}/part_{i}"
            with name_scope(part_name + "/PartitionedInitializer"):
                part_of, part_shape, dtype = _part_initializer(initializer, offset, size, dtype)
            with name_scope(None):
                part = self._get_single(
                    part_name,
                    shape=part_shape,
                    dtype=dtype,
                    initializer=part_of,
                    partition_info=PartitionInfo(full_shape, offset),
                    reuse=reuse,
                    **arguments,
                )
            part._set_save_slice_info(SaveSliceInfo(name, full_shape, offset, size))
            parts.append(part)
        result = PartitionedVariable(name, whole, dtype, parts, partitions)
        self._partitioned[name] = result
        return result

    def _existing_partitioned(
        self, name: str, shape: TensorShape, dtype: DType, partitions: Any, reuse: Any
    ) -> PartitionedVariable:
        found = self._partitioned[name]
        if reuse is False:
            raise ValueError(
                f"Partitioned variable with name {name} already exists. Did you mean to set reuse=True or "
                "reuse=tf.AUTO_REUSE in VarScope?"
            )
        for what, asked, has, fits in (
            ("shape", shape, found.shape, shape.is_compatible_with(found.shape)),
            ("dtype", dtype.name, found.dtype.name, dtype.is_compatible_with(found.dtype)),
            (
                "partitions",
                partitions,
                found._get_partitions(),
                partitions is None or list(partitions) == list(found._get_partitions()),
            ),
        ):
            if not fits:
                raise ValueError(
                    f"Trying to reuse partitioned variable {name}, but specified {what} {asked} and found "
                    f"{what} {has}."
                )
        return found

    def _check_slices(self, name: str, partitions: Sequence[int]) -> None:
        """ValueError where slices of another partitioning exist."""
        if f"{name}/part_0" not in self._vars:
            return
        n = max(partitions)
        if f"{name}/part_{n - 1}" not in self._vars or f"{name}/part_{n}" in self._vars:
            raise ValueError(
                "Partitioner returned a different partitioning than what was already found.  Partitioner "
                f"returned {n} shards of {name}"
            )


def variable_store() -> VariableStore:
    """The default graph's store."""
    return get_default_graph()._library_state.setdefault("variable_store", VariableStore())


# ---- details ---------------------------------------------------------------------------------------------


def _base(dtype: Any) -> Any:
    return getattr(dtype, "base_dtype", dtype)


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # builtins
        return {}


def _accepts(function: Callable[..., Any], argument: str) -> bool:
    parameters = _parameters(function)
    return argument in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _default_initializer(name: str, dtype: DType) -> Callable[..., Any]:
    if dtype.is_floating:
        return initializers.glorot_uniform_initializer()
    if dtype.is_integer or dtype.is_bool or dtype == dtypes.string:
        return initializers.zeros_initializer()
    raise ValueError(f"An initializer for variable {name} of {dtype.base_dtype} is required")


def _initial_value(
    name: str, initializer: Any, shape: TensorShape | None, dtype: DType, partition_info: PartitionInfo | None
) -> tuple[Any, DType | None]:
    """tf.Variable's initial value and dtype."""
    if not callable(initializer):
        return initializer, None
    if inspect.isclass(initializer):
        initializer = initializer()
    if shape is not None and shape.is_fully_defined():
        keywords: dict[str, Any] = {"dtype": dtype}
        if "partition_info" in _parameters(initializer):
            keywords["partition_info"] = partition_info
        return functools.partial(initializer, shape.as_list(), **keywords), dtype.base_dtype
    if all(p.default is not p.empty for p in _parameters(initializer).values()):
        return initializer, None
    raise ValueError(
        f"The initializer passed for variable {name} is not valid. It should be a callable with no "
        "arguments and the shape should not be provided, or one that takes a shape, and `shape` should be "
        f"fully defined (got {'none' if shape is None else shape})."
    )


def _regularize(variable: Variable, name: str, regularizer: Callable[[Any], Any]) -> None:
    with framework.colocate_with(variable), name_scope(name + "/Regularizer/"), framework.init_scope():
        loss = regularizer(variable)
    if loss is not None:
        framework.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


def _partitions(partitioner: Callable[..., Any], shape: TensorShape, dtype: DType) -> list[int]:
    """What a partitioner answers, checked."""
    if not shape.is_fully_defined():
        raise ValueError(
            f"Shape of a new partitioned variable must be fully defined, but instead was {shape}."
        )
    if not shape:
        raise ValueError("A partitioned Variable must have rank at least 1")
    slicing = partitioner(shape=shape, dtype=dtype)
    if not isinstance(slicing, list | tuple):
        raise ValueError(f"Partitioner must return a sequence, but saw: {slicing}")
    if len(slicing) != len(shape):
        raise ValueError(
            f"Partitioner returned a partition list that does not match the rank: {slicing} vs. {shape}"
        )
    if any(p < 1 for p in slicing):
        raise ValueError(f"Partitioner returned zero partitions for some axes: {slicing}")
    if sum(p > 1 for p in slicing) > 1:
        raise ValueError(
            f"Can only slice a variable along one dimension: shape: {shape}, partitioning: {slicing}"
        )
    return list(slicing)


def _slices(shape: list[int], partitions: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """The offset and size of each slice; the first ones are one longer where it doesn't come out even."""
    axis = next((i for i, p in enumerate(partitions) if p > 1), 0)
    count = partitions[axis]
    if count > shape[axis]:
        raise ValueError(f"a variable of shape {shape} can't be cut into {count} slices along axis {axis}")
    offset = [0] * len(shape)
    for i in range(count):
        size = list(shape)
        size[axis] = shape[axis] // count + (i < shape[axis] % count)
        yield list(offset), size
        offset[axis] += size[axis]


def _part_initializer(
    initializer: Any, offset: list[int], size: list[int], dtype: DType
) -> tuple[Any, list[int] | None, DType]:
    """The initializer, shape argument and dtype of one slice."""
    if initializer is None or callable(initializer):
        return initializer, size, dtype
    if not isinstance(initializer, Tensor):
        initializer = convert_to_tensor(initializer, dtype)
    part: Tensor = emit("Slice", initializer, offset, size)
    return part, None, part.dtype.base_dtype


__all__ = ["AUTO_REUSE", "PartitionInfo", "VariableStore", "variable_store"]
