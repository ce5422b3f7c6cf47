"""Slots: variables that belong to another variable, named after it, on its device, of its kind."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library import framework
from thalweg.library.fill_ops import zeros
from thalweg.library.initializers import zeros_initializer
from thalweg.library.ref_variable import RefVariable
from thalweg.library.resource_variable import BaseResourceVariable
from thalweg.library.variable_base import SaveSliceInfo, Variable
from thalweg.library.variable_scope import get_variable, get_variable_scope, variable_scope


def create_slot(primary: Any, val: Tensor, name: str, colocate_with_primary: bool = True) -> Any:
    """A variable "<primary>/<name>" with the initial value `val`, and val's type and shape.

    primary: a variable or tensor.
    """
    validate_shape = val.shape.is_fully_defined()
    return _create(primary, name, colocate_with_primary, initializer=val, validate_shape=validate_shape)


def create_slot_with_initializer(
    primary: Any, initializer: Any, shape: Any, dtype: Any, name: str, colocate_with_primary: bool = True
) -> Any:
    """A variable "<primary>/<name>" of this shape and type, with an initializer (a function, or a tensor)."""
    shape = TensorShape(shape)
    return _create(
        primary,
        name,
        colocate_with_primary,
        initializer=initializer,
        shape=shape if callable(initializer) else None,
        dtype=dtype,
        validate_shape=shape.is_fully_defined(),
    )


def create_zeros_slot(primary: Any, name: str, dtype: Any = None, colocate_with_primary: bool = True) -> Any:
    """A variable "<primary>/<name>" of the shape of `primary`, with zeros in it."""
    if dtype is None:
        dtype = primary.dtype.base_dtype
    if primary.shape.is_fully_defined():
        return create_slot_with_initializer(
            primary, zeros_initializer(), primary.shape, dtype, name, colocate_with_primary
        )
    value = primary.initialized_value() if isinstance(primary, Variable) else primary
    return create_slot(primary, zeros(emit.shape(value), dtype), name, colocate_with_primary)


def _create(primary: Any, name: str, colocate_with_primary: bool, **arguments: Any) -> Any:
    # The primary's name is a default name of the scope: a second slot of that name gets "_1", "_2" ...
    with variable_scope(None, f"{primary.op.name}/{name}"):
        where = framework.colocate_with(primary) if colocate_with_primary else nullcontext()
        with where:
            slot = _unpartitioned(use_resource=_kind(primary), **arguments)
    _copy_slice_info(primary, slot)
    return slot


def _kind(primary: Any) -> bool | None:
    """Whether the slot is a resource variable; None: as the scope says."""
    if isinstance(primary, BaseResourceVariable):
        return True
    return False if isinstance(primary, RefVariable) else None


def _unpartitioned(**arguments: Any) -> Any:
    scope = get_variable_scope()
    partitioner = scope.partitioner
    scope.set_partitioner(None)
    try:
        return get_variable("", trainable=False, **arguments)
    finally:
        scope.set_partitioner(partitioner)


def _copy_slice_info(primary: Any, slot: Any) -> None:
    """A slot of a part of a partitioned variable is the same part of the whole slot, in checkpoints."""
    info = primary._save_slice_info if isinstance(primary, Variable) else None
    if info is None:
        return
    rank = slot.shape.rank
    if rank == 0:
        return
    own_name = slot.name[len(primary.op.name) + 1 : -len(":0")]
    slot._set_save_slice_info(
        SaveSliceInfo(
            f"{info.full_name}/{own_name}",
            info.full_shape[:rank],
            info.var_offset[:rank],
            info.var_shape[:rank],
        )
    )
