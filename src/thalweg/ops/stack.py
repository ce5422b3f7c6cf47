"""Stacks: where loops keep what their gradients need. Source: TensorFlow's stack_ops.cc."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from thalweg.base.dtypes import DType
from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import stateful
from thalweg.kernel.step_resource import StepResource

_NO_GRADIENT = NotDifferentiable("it belongs to a gradient")


class Stack(StepResource):
    """A stack of tensors. Thread-safe."""

    __slots__ = ("dtype", "limit", "lock", "name", "values")

    def __init__(self, name: str, dtype: DType, limit: int) -> None:
        self.name = name
        self.dtype = dtype
        self.limit = limit
        self.values: list[np.ndarray] | None = []
        self.lock = threading.Lock()


def _open(context: Any, stack: Stack) -> list[np.ndarray]:
    if stack.values is None:
        raise context.fail(InvalidArgumentError, f"Stack[{stack.name}] has already been closed.")
    return stack.values


def _stack_kernel(context: Any, max_size: Any = -1) -> Stack:
    attrs = context.op._attrs
    if np.ndim(max_size):
        raise context.fail(
            InvalidArgumentError,
            f"Stack size must be a scalar, but had shape: {list(np.shape(max_size))}",
        )
    return Stack(attrs["stack_name"].decode() or context.op._name, attrs["elem_type"], int(max_size))


def _push_kernel(context: Any, stack: Stack, elem: np.ndarray) -> np.ndarray:
    dtype = context.op._attrs["T"]
    if dtype != stack.dtype:
        raise context.fail(
            InvalidArgumentError,
            f"Stack[{stack.name}] holds {stack.dtype.name}, but {dtype.name} is pushed",
        )
    with stack.lock:
        values = _open(context, stack)
        if 0 <= stack.limit <= len(values):
            raise context.fail(
                InvalidArgumentError, f"Stack[{stack.name}] overflowed its max_size ({stack.limit})"
            )
        values.append(elem)
    return elem


def _pop_kernel(context: Any, stack: Stack) -> np.ndarray:
    with stack.lock:
        values = _open(context, stack)
        if not values:
            raise context.fail(InvalidArgumentError, f"Stack[{stack.name}] is empty when calling Pop().")
        return values.pop()


def _close_kernel(context: Any, stack: Stack) -> None:
    with stack.lock:
        stack.values = None


def _pushed_shape(c: ShapeContext) -> list[Shape]:
    return [c.shape(1)]


for _version, _handle, _inputs in (("V2", "resource", "max_size: int32"), ("", "Ref(string)", "")):
    define_op(
        f"Stack{_version}",
        inputs=_inputs,
        outputs=f"handle: {_handle}",
        attrs="elem_type: type, stack_name: string = ''",
        shape=lambda c: [(2,)],
        kernel=stateful(_stack_kernel),
        stateful=True,
        gradient=_NO_GRADIENT,
        doc="A new stack, each time it runs; max_size < 0: of any size.",
    )
    define_op(
        f"StackPush{_version}",
        inputs=f"handle: {_handle}, elem: T",
        outputs="output: T",
        attrs="T: type, swap_memory: bool = False",
        shape=_pushed_shape,
        kernel=stateful(_push_kernel),
        stateful=bool(_version),
        gradient=_NO_GRADIENT,
        doc="Puts a tensor on the stack; its output is the tensor.",
    )
    define_op(
        f"StackPop{_version}",
        inputs=f"handle: {_handle}",
        outputs="elem: elem_type",
        attrs="elem_type: type",
        shape=lambda c: [None],
        kernel=stateful(_pop_kernel),
        stateful=bool(_version),
        gradient=_NO_GRADIENT,
        doc="Takes the last tensor from the stack.",
    )
    define_op(
        f"StackClose{_version}",
        inputs=f"handle: {_handle}",
        shape=lambda c: [],
        kernel=stateful(_close_kernel),
        stateful=bool(_version),
        gradient=_NO_GRADIENT,
        doc="Drops the stack's tensors before the step ends.",
    )
