"""What a Saver saves: variables, parts of partitioned ones, and SaveableObjects that programs define.

Source: TensorFlow's saveable_object.py, saveable_object_util.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from thalweg.base import nest
from thalweg.base import shape as shapes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library import framework
from thalweg.library.partitioned_variable import PartitionedVariable
from thalweg.library.ref_variable import RefVariable
from thalweg.library.resource_variable import BaseResourceVariable
from thalweg.library.state_ops import assign
from thalweg.library.variable_base import Variable

_REF_VARIABLES = frozenset(("Variable", "VariableV2"))
_VARIABLES = _REF_VARIABLES | {"VarHandleOp", "ReadVariableOp"}


class SaveSpec:
    """One tensor of a checkpoint: what to save, under which name, and which slice of it that is.

    tensor: a tensor, or a function that makes it when the Saver is built; then dtype must be given.
    """

    def __init__(
        self, tensor: Any, slice_spec: str, name: str, dtype: Any = None, device: str | None = None
    ) -> None:
        if callable(tensor) and dtype is None:
            raise AssertionError("dtype must be given where the tensor is a function")
        self._tensor = tensor
        self.slice_spec = slice_spec
        self.name = name
        self.dtype = tensor.dtype if dtype is None else dtype
        self.device = tensor.device if device is None and not callable(tensor) else device

    @property
    def tensor(self) -> Any:
        """The tensor, made now where it is a function."""
        return self._tensor() if callable(self._tensor) else self._tensor


class SaveableObject:
    """A thing with state that a Saver saves and restores. Subclasses say how: they override `restore`.

    op: what makes the state, so that it isn't saved twice. specs: the tensors to save. name: of the object.
    """

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str) -> None:
        self.op = op
        self.specs = specs
        self.name = name

    @property
    def optional_restore(self) -> bool:
        """Whether it may be missing from a checkpoint."""
        return False

    @property
    def device(self) -> str:
        """The device of the first tensor."""
        return self.specs[0].device or ""

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        """Returns the operation that takes the restored tensors (with these shapes, unless None)."""
        raise ValueError("Calling an abstract method.")


class ReferenceVariableSaveable(SaveableObject):
    """A reference variable, or its tensor."""

    def __init__(self, var: Any, slice_spec: str, name: str) -> None:
        super().__init__(var, [SaveSpec(var, slice_spec, name, dtype=var.dtype)], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        """The Assign."""
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = emit("Reshape", value, restored_shapes[0])
        validate = restored_shapes is None and self.op.get_shape().is_fully_defined()
        ref = self.op if isinstance(self.op, Tensor) else self.op._ref()
        return assign(ref, value, validate_shape=validate)


class ResourceVariableSaveable(SaveableObject):
    """A resource variable, or the tensor that reads it."""

    def __init__(self, var: Any, slice_spec: str, name: str) -> None:
        self._var_device = var.device
        self._var_shape = var.shape
        tensor: Any
        if isinstance(var, Tensor):
            self.handle_op = var.op.inputs[0]
            tensor = var
        elif isinstance(var, BaseResourceVariable):
            self.handle_op = var.handle
            tensor = _reading(var)
        else:
            raise ValueError(f"Saveable is neither a resource variable nor a read operation. Got: {var!r}")
        spec = SaveSpec(tensor, slice_spec, name, dtype=var.dtype, device=var.device)
        super().__init__(var, [spec], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        """The AssignVariableOp. ValueError for a slice of another shape."""
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = emit("Reshape", value, restored_shapes[0])
        with framework.device(self._var_device):
            value = emit("Identity", value)
            shape = self._var_shape
            if not shape.is_compatible_with(value.shape):
                raise ValueError(
                    f"Received incompatible tensor with shape {value.shape} when attempting to restore "
                    f"variable with shape {shape} and name {self.name}."
                )
            return emit.operation("AssignVariableOp", self.handle_op, value)


def _reading(variable: Any) -> Callable[[], Tensor]:
    def read() -> Tensor:
        with framework.device(variable.device):
            value = variable.read_value()
            with framework.device("/device:CPU:0"):
                return emit("Identity", value)

    return read


# ---- from what programs pass -----------------------------------------------------------------------------


def saveables_of(op: Any, name: str) -> Iterator[SaveableObject]:
    """The saveables of a variable, a list of slices, a tensor that reads a variable, or a SaveableObject.

    TypeError for a name that is no text or for what is no variable; ValueError for slices that don't belong
    together.
    """
    if not isinstance(name, str):
        raise TypeError(
            "names_to_saveables must be a dict mapping string names to trackable operations. Name is not a "
            f"string: {name}"
        )
    if isinstance(op, SaveableObject):
        yield op
    elif isinstance(op, list | tuple | PartitionedVariable):
        yield from _slices(list(op), name)
    elif isinstance(op, BaseResourceVariable):
        yield ResourceVariableSaveable(op._graph_element, "", name)
    else:
        variable = _variable_tensor(op)
        if variable is None:
            raise TypeError(
                "names_to_saveables must be a dict mapping string names to Tensors/Variables. Not a "
                f"variable: {op}"
            )
        if variable.op.type in _REF_VARIABLES:
            yield ReferenceVariableSaveable(variable, "", name)
        else:
            yield ResourceVariableSaveable(variable, "", name)


def _slices(parts: Sequence[Any], name: str) -> Iterator[SaveableObject]:
    full_name = None
    for part in parts:
        if isinstance(part, SaveableObject):
            yield part
            continue
        if not isinstance(part, Variable):
            raise ValueError(f"Slices must all be Variables: {part}")
        info = part._save_slice_info
        if not info:
            raise ValueError(f"Slices must all be slices: {part}")
        if full_name not in (None, info.full_name):
            raise ValueError(f"Slices must all be from the same tensor: {full_name} != {info.full_name}")
        full_name = info.full_name
        kind = ReferenceVariableSaveable if part.op.type in _REF_VARIABLES else ResourceVariableSaveable
        yield kind(part, info.spec, name)


def _variable_tensor(value: Any) -> Tensor | None:
    """The tensor by which a variable is saved, or None where it is no variable."""
    tensor = value._ref() if isinstance(value, RefVariable) else value
    if not isinstance(tensor, Tensor):
        try:
            tensor = convert_to_tensor(value)
        except (TypeError, ValueError):
            return None
    return tensor if tensor.op.type in _VARIABLES else None


def op_list_to_dict(op_list: Any) -> dict[str, Any]:
    """Variables and saveables by the names that they are saved under; slices of a variable as a list.

    TypeError for what is no list or no variable; ValueError for two of one name.
    """
    if not isinstance(op_list, list | tuple | set):
        raise TypeError(f"Variables to save should be passed in a dict or a list. Got {op_list}")
    result: dict[str, Any] = {}
    for var in sorted(nest.flatten(list(op_list)), key=lambda v: v.name):
        if isinstance(var, SaveableObject):
            result[var.name] = var
        elif isinstance(var, PartitionedVariable):
            _put_once(result, var.name, var)
        elif isinstance(var, Variable) and var._save_slice_info:
            slices = result.setdefault(var._save_slice_info.full_name, [])
            if not isinstance(slices, list):
                raise ValueError(
                    f"Mixing slices and non-slices with the same name: {var._save_slice_info.full_name}"
                )
            slices.append(var)
        else:
            tensor = var._graph_element if isinstance(var, BaseResourceVariable) else _variable_tensor(var)
            if tensor is None:
                raise TypeError(f"Variable to save is not a Variable: {var}")
            read = tensor.op.type == "ReadVariableOp"
            _put_once(result, tensor.op.inputs[0].op.name if read else tensor.op.name, tensor)
    return result


def _put_once(names: dict[str, Any], name: str, value: Any) -> None:
    if name in names:
        raise ValueError(f"At least two variables have the same name: {name}")
    names[name] = value


def checked_saveables(names_to_saveables: Mapping[str, Any]) -> list[SaveableObject]:
    """The saveables of a dict, sorted by name. ValueError where one thing has two names."""
    result: list[SaveableObject] = []
    seen: set[int] = set()
    for name in sorted(names_to_saveables):
        for saveable in saveables_of(names_to_saveables[name], name):
            op = saveable.op
            if op is not None and id(op) in seen:
                raise ValueError(f"The same saveable will be restored with two names: {saveable.name}")
            seen.add(id(op))
            result.append(saveable)
    return result


def saved_shape(tensor: Any) -> Any:
    """The shape to reshape a restored value to: static where it is known, else a node that tells it."""
    static = tensor.get_shape()
    return list(shapes.as_shape(static) or ()) if static.is_fully_defined() else emit.shape(tensor)
