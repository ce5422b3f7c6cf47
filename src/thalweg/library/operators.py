"""Python's operators on tensors. Importing this module installs them.

The other operand takes the tensor's element type where it can (a Python number always can, where nothing is
lost). `==` and `!=` compare identity, as in TensorFlow 1.x: tf.equal compares values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thalweg.base import dtypes
from thalweg.graph.composite import SparseTensor
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library import math_ops
from thalweg.library.arguments import scope
from thalweg.library.matrix_ops import matmul
from thalweg.library.slicing import getitem

BinaryFn = Callable[..., Any]


def _add(x: Tensor, y: Any, name: str) -> Tensor:
    return emit("Add" if x.dtype.base_dtype == dtypes.string else "AddV2", x, y, name=name)


def _mul(x: Tensor, y: Any, name: str) -> Any:
    if isinstance(y, SparseTensor):
        values = emit("SparseDenseCwiseMul", y.indices, y.values, y.dense_shape, x, name=name)
        return SparseTensor(y.indices, values, y.dense_shape)
    return emit("Mul", x, y, name=name)


def _logical(boolean: str, integer: str) -> BinaryFn:
    """An op on truth values, and the bitwise one for integers."""

    def function(x: Tensor, y: Tensor, name: str) -> Tensor:
        return emit(boolean if x.dtype.base_dtype == dtypes.bool else integer, x, y, name=name)

    return function


def _xor(x: Tensor, y: Tensor, name: str) -> Tensor:
    if x.dtype.base_dtype == dtypes.bool:
        return math_ops.logical_xor(x, y, name=name)
    return emit("BitwiseXor", x, y, name=name)


def _sub(x: Tensor, y: Any, name: str) -> Tensor:
    return emit("Sub", x, y, name=name)


def _mod(x: Tensor, y: Any, name: str) -> Tensor:
    return emit("FloorMod", x, y, name=name)


_BINARY: dict[str, BinaryFn] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": math_ops.div,
    "truediv": math_ops.truediv,
    "floordiv": math_ops.floordiv,
    "mod": _mod,
    "pow": math_ops.pow,
    "matmul": matmul,
    "and": _logical("LogicalAnd", "BitwiseAnd"),
    "or": _logical("LogicalOr", "BitwiseOr"),
    "xor": _xor,
}


def _left(function: BinaryFn, name: str) -> BinaryFn:
    """x.__op__(y)."""

    def operator(x: Tensor, y: Any) -> Any:
        if x.graph is not get_default_graph():
            with x.graph.as_default():
                return operator(x, y)
        if isinstance(y, Tensor) and name != "xor":  # one of several nodes: the scope is for them
            return function(x, y, name=name)
        if isinstance(y, SparseTensor):
            return function(x, y, name=name) if name == "mul" else NotImplemented
        with scope(None, name) as named:
            try:
                y = convert_to_tensor(y, name="y", preferred_dtype=x.dtype.base_dtype)
            except TypeError:
                # y's class may know what to do with a tensor
                if hasattr(type(y), f"__r{name}__"):
                    return NotImplemented
                raise
            return function(x, y, name=named)

    return operator


def _right(function: BinaryFn, name: str) -> BinaryFn:
    """y.__rop__(x): x is not a tensor."""

    def operator(y: Tensor, x: Any) -> Any:
        with y.graph.as_default(), scope(None, name) as named:
            x = convert_to_tensor(x, y.dtype.base_dtype, name="x")
            return function(x, y, name=named)

    return operator


def _compare(op: str) -> BinaryFn:
    def operator(x: Tensor, y: Any) -> Tensor:
        return emit(op, x, y)

    return operator


def _invert(x: Tensor) -> Tensor:
    return emit("LogicalNot" if x.dtype.base_dtype == dtypes.bool else "Invert", x)


def _negative(x: Tensor) -> Tensor:
    return emit("Neg", x)


def _absolute(x: Tensor) -> Tensor:
    return math_ops.abs(x)


for _name, _function in _BINARY.items():
    Tensor._override_operator(f"__{_name}__", _left(_function, _name))
    Tensor._override_operator(f"__r{_name}__", _right(_function, _name))
for _name, _op in (("lt", "Less"), ("le", "LessEqual"), ("gt", "Greater"), ("ge", "GreaterEqual")):
    Tensor._override_operator(f"__{_name}__", _compare(_op))
Tensor._override_operator("__invert__", _invert)
Tensor._override_operator("__neg__", _negative)
Tensor._override_operator("__abs__", _absolute)
Tensor._override_operator("__getitem__", getitem)
