"""Static shape inference at construction, and what is known of tensors' values without running anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.base.shape import Shape
from thalweg.graph.operation import _UNKNOWN, Operation, Tensor

#: values of more elements than this are not folded for shape inference
MAX_KNOWN_ELEMENTS = 4096

#: of a tensor, as in TensorFlow
MAX_RANK = 254


class ShapeContext:
    """What a shape function sees of the node it serves.

    A shape function takes one of these and returns a list with a Shape for every output. It raises
    ValueError, saying what it got and what it takes; the caller adds the node's name and inputs.
    """

    __slots__ = ("handles", "op")

    def __init__(self, op: Operation) -> None:
        self.op = op
        #: for resource outputs, by output index: (dtype, shape) of what is behind the handle
        self.handles: dict[int, tuple[DType, Shape]] = {}

    def __len__(self) -> int:
        return len(self.op._inputs)

    def shape(self, i: int) -> Shape:
        """The static shape of input i."""
        return self.op._inputs[i]._shape

    def shapes(self) -> list[Shape]:
        """The static shapes of all inputs."""
        return [t._shape for t in self.op._inputs]

    def dtype(self, i: int) -> DType:
        """The dtype of input i."""
        return self.op._inputs[i]._dtype

    def attr(self, name: str) -> Any:
        """An attribute's canonical value."""
        return self.op._attrs[name]

    def text(self, name: str) -> str:
        """A string attribute, decoded."""
        value: bytes = self.op._attrs[name]
        return value.decode()

    def value(self, i: int) -> np.ndarray | None:
        """The value of input i, where it is known without running."""
        return constant_value(self.op._inputs[i])

    def value_as_shape(self, i: int) -> Shape:
        """Input i read as a shape, as far as it is known."""
        return constant_value_as_shape(self.op._inputs[i])

    def handle(self, i: int) -> tuple[DType, Shape] | None:
        """What is behind resource input i, where known."""
        return self.op._inputs[i]._handle

    def with_rank(self, i: int, rank: int) -> Shape:
        """Input i's shape, which must have this rank; all unknown where nothing is known of it."""
        s = self.op._inputs[i]._shape
        if s is None:
            if rank > MAX_RANK:
                raise ValueError(f"Shape of input {i} would have rank {rank}: at most {MAX_RANK} is possible")
            return (None,) * rank
        if len(s) != rank:
            raise ValueError(
                f"Shape must be rank {rank} but is rank {len(s)} for input {i}: {shapes.format_shape(s)}"
            )
        return s

    def with_rank_at_least(self, i: int, rank: int) -> Shape:
        """Input i's shape, which must have at least this rank where it is known."""
        s = self.op._inputs[i]._shape
        if s is not None and len(s) < rank:
            raise ValueError(
                f"Shape must be at least rank {rank} but is rank {len(s)} for input {i}: "
                f"{shapes.format_shape(s)}"
            )
        return s


def infer_shapes(op: Operation) -> None:
    """Sets the static shapes of op's outputs. ValueError that names the node where they can't fit."""
    context = ShapeContext(op)
    try:
        inferred = op._record.shape(context)
    except ValueError as e:
        raise ValueError(_explain(op, str(e))) from None
    for tensor, shape in zip(op._outputs, inferred, strict=True):
        tensor._shape = shape
    for index, handle in context.handles.items():
        op._outputs[index]._handle = handle


def _explain(op: Operation, message: str) -> str:
    lines = [f"{op.type} '{op._name}': {message}"]
    if op._inputs:
        names = op._record.definition.input_names(op._attrs)
        pairs = list(zip(names, op._inputs, strict=True))[:8]
        lines.append(
            "  " + ", ".join(f"{n} = '{t.name}' {shapes.format_shape(t._shape)}" for n, t in pairs)
        )
    return "\n".join(lines)


def constant_value(tensor: Tensor) -> np.ndarray | None:
    """The value of a tensor that depends on constants and static shapes alone, or None.

    Computed by the ops' own host kernels and remembered. Callers must not change the array.
    """
    if tensor._value is _UNKNOWN:
        stack = [tensor]  # not by recursion: a loop in the user's program makes long chains
        while stack:
            first = _settle(stack[-1])
            if first is None:
                stack.pop()
            else:
                stack.append(first)
    return tensor._value  # type: ignore[no-any-return]


def _settle(tensor: Tensor) -> Tensor | None:
    """Finds a tensor's value out, or returns the input whose value must be found out first."""
    op = tensor._op
    value = None
    if op.type == "Const":
        value = op._attrs["value"]
    elif (known := _from_shapes(tensor)) is not None:
        value = known
    elif _foldable(op):
        for t in op._inputs:
            if t._value is _UNKNOWN:
                return t
            if t._value is None:
                break
        else:
            value = _computed(tensor)
    tensor._value = value
    return None


def _from_shapes(tensor: Tensor) -> np.ndarray | None:
    """The value of Shape, Size, Rank ..., where static shapes alone tell it."""
    shape = tensor._shape
    if tensor._op._record.shape_value is None or shape is None or len(shape) > 1:
        return None
    if not tensor._dtype.is_integer:
        return None
    known = _shape_value(tensor)
    if not shapes.is_fully_defined(known):
        return None
    return np.array(known, tensor._dtype.as_numpy_dtype).reshape((-1,) * len(shape))


def _foldable(op: Operation) -> bool:
    """Whether the host can compute the node's outputs from its inputs' values, and they are small."""
    kernel = op._record.kernel
    if kernel is None or getattr(kernel, "fold", None) is None or op._record.definition.is_stateful:
        return False
    return bool(op._inputs) and all(map(_small, op._inputs)) and all(map(_small, op._outputs))


def _computed(tensor: Tensor) -> np.ndarray | None:
    """The value that the op's host kernel gives; the node's other outputs get theirs too."""
    op = tensor._op
    try:
        results = op._record.kernel.fold(op._record.definition, [t._value for t in op._inputs], op._attrs)
    except Exception:  # a bad value is reported when the node runs, or by its shape function
        return None
    if results is None:
        return None
    for output, result in zip(op._outputs, results, strict=True):
        output._value = np.asarray(result)
    return tensor._value  # type: ignore[no-any-return]


def _small(tensor: Tensor) -> bool:
    shape = tensor._shape
    if shape is None:
        return True
    n = 1
    for d in shape:
        if d is None:
            return True
        n *= d
    return n <= MAX_KNOWN_ELEMENTS


def constant_value_as_shape(tensor: Tensor) -> Shape:
    """An integer vector read as a partial shape: what is known of each element; -1 is unknown.

    A scalar -1 stands for an unknown shape, as in TensorFlow.
    """
    value = constant_value(tensor)
    if value is not None:
        if value.ndim != 1:
            return None
        return tuple(None if d < 0 else int(d) for d in value)
    known = _shape_value(tensor)
    if known is not None:
        return known
    static = tensor._shape
    if static is not None and len(static) == 1 and static[0] is not None and static[0] <= MAX_RANK:
        return (None,) * static[0]
    return None


def shape_value_of_scalar(tensor: Tensor) -> int | None:
    """A scalar integer read as one dimension, where known (negative: unknown)."""
    value = constant_value(tensor)
    if value is not None and value.size == 1:
        n = int(value.reshape(()))
        return None if n < 0 else n
    known = _shape_value(tensor)
    return known[0] if known is not None and len(known) == 1 else None


def _shape_value(tensor: Tensor) -> Shape:
    """What the op says of this output, read as a shape; None where it says nothing."""
    function = tensor._op._record.shape_value
    if function is None:
        return None
    known = function(tensor._op)
    return known[tensor._index] if isinstance(known, list) else known


def same(shape_list: Sequence[Shape]) -> Shape:
    """The merge of several shapes. ValueError where they contradict."""
    result: Shape = None
    for s in shape_list:
        result = shapes.merge(result, s)
    return result
