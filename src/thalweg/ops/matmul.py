"""Matrix products. Source: TensorFlow's MatMul, BatchMatMulV2."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel import checks
from thalweg.kernel.convention import traceable
from thalweg.ops._broadcast import broadcast_shapes, broadcast_to
from thalweg.ops._broadcast import conj as conjugate
from thalweg.ops._emitting import head
from thalweg.ops._gradient_nodes import conj, sum_over


def _matmul_shape(c: ShapeContext) -> list[Shape]:
    a, b = c.with_rank(0, 2), c.with_rank(1, 2)
    assert a is not None and b is not None
    rows, inner = reversed(a) if c.attr("transpose_a") else a
    inner_b, columns = reversed(b) if c.attr("transpose_b") else b
    if inner is not None and inner_b is not None and inner != inner_b:
        raise ValueError(f"Dimensions must be equal, but are {inner} and {inner_b}: the inner dimensions")
    return [(rows, columns)]


def _matmul_kernel(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    contract = ((0 if transpose_a else 1,), (1 if transpose_b else 0,))
    return _dot(a, b, (contract, ((), ())))


def _dot(a: Any, b: Any, dimensions: Any) -> Any:
    """A product of matrices; 16-bit floats are added up in 32 bits, as in TensorFlow."""
    if a.dtype.itemsize == 2 and a.dtype.kind not in "iu":
        wide = lax.dot_general(a, b, dimensions, preferred_element_type=np.float32)
        return lax.convert_element_type(wide, a.dtype)
    return lax.dot_general(a, b, dimensions)


def _matmul_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor]:
    a, b = (conj(emit, t) for t in op._inputs)
    ta, tb = op._attrs["transpose_a"], op._attrs["transpose_b"]
    if not ta and not tb:
        return [emit("MatMul", dy, b, transpose_b=True), emit("MatMul", a, dy, transpose_a=True)]
    if not ta and tb:
        return [emit("MatMul", dy, b), emit("MatMul", dy, a, transpose_a=True)]
    if ta and not tb:
        return [emit("MatMul", b, dy, transpose_b=True), emit("MatMul", a, dy)]
    return [
        emit("MatMul", b, dy, transpose_a=True, transpose_b=True),
        emit("MatMul", dy, a, transpose_a=True, transpose_b=True),
    ]


matmul = define_op(
    "MatMul",
    inputs="a: T, b: T",
    outputs="product: T",
    attrs="transpose_a: bool = False, transpose_b: bool = False, T: {bfloat16, half, float, double, int32, "
    "int64, uint8, uint16, uint32, uint64, complex64, complex128}, "
    "grad_a: bool = False, grad_b: bool = False",
    shape=_matmul_shape,
    kernel=traceable(_matmul_kernel),
    gradient=_matmul_gradient,
    doc="The matrix product of a [n, k] and b [k, m], each transposed first where asked: [n, m].",
)


# -- batches of matrices -------------------------------------------------------------------------------------


def _batch_shape(c: ShapeContext) -> list[Shape]:
    x, y = c.with_rank_at_least(0, 2), c.with_rank_at_least(1, 2)
    x_matrix = (None, None) if x is None else x[-2:]
    y_matrix = (None, None) if y is None else y[-2:]
    rows, inner = reversed(x_matrix) if c.attr("adj_x") else x_matrix
    inner_y, columns = reversed(y_matrix) if c.attr("adj_y") else y_matrix
    if inner is not None and inner_y is not None and inner != inner_y:
        raise ValueError(f"Dimensions must be equal, but are {inner} and {inner_y}: the inner dimensions")
    if c.op.type == "BatchMatMul":  # the batches don't broadcast
        batch = shapes.merge(None if x is None else x[:-2], None if y is None else y[:-2])
    else:
        batch = None if x is None or y is None else shapes.broadcast(x[:-2], y[:-2])
    return [None if batch is None else (*batch, rows, columns)]


def _batch_kernel(x: Any, y: Any, *, adj_x: bool, adj_y: bool) -> Any:
    for name, v in (("x", x), ("y", y)):
        checks.require(
            v.ndim >= 2, lambda name=name, v=v: f"{name} must be at least a matrix, got rank {v.ndim}"
        )
    inner = x.shape[-2 if adj_x else -1], y.shape[-1 if adj_y else -2]
    checks.require(
        inner[0] == inner[1],
        lambda: (
            f"Matrix size-incompatible: In[0]: {shapes.format_shape(tuple(x.shape))}, "
            f"In[1]: {shapes.format_shape(tuple(y.shape))}"
        ),
    )
    x, y = (conjugate(x) if adj_x else x), (conjugate(y) if adj_y else y)
    batch = broadcast_shapes(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    x, y = broadcast_to(x, (*batch, *x.shape[-2:])), broadcast_to(y, (*batch, *y.shape[-2:]))
    n = len(batch)
    axes = tuple(range(n))
    contract = ((n if adj_x else n + 1,), (n + 1 if adj_y else n,))
    return _dot(x, y, (contract, (axes, axes)))


def _batch_product(emit: Emitter, x: Tensor, y: Tensor, adj_x: bool = False, adj_y: bool = False) -> Tensor:
    """As tf.matmul: a plain MatMul where both are matrices."""
    if x._shape is not None and y._shape is not None and len(x._shape) == len(y._shape) == 2:
        x, y = conj(emit, x) if adj_x else x, conj(emit, y) if adj_y else y
        return emit("MatMul", x, y, transpose_a=adj_x, transpose_b=adj_y)
    return emit("BatchMatMulV2", x, y, adj_x=adj_x, adj_y=adj_y, name="MatMul")


def _batch_products(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor]:
    x, y = op._inputs
    adj_x, adj_y = op._attrs["adj_x"], op._attrs["adj_y"]
    if not adj_x and not adj_y:
        return [_batch_product(emit, dy, y, adj_y=True), _batch_product(emit, x, dy, adj_x=True)]
    if not adj_x:
        return [_batch_product(emit, dy, y), _batch_product(emit, dy, x, adj_x=True)]
    if not adj_y:
        return [_batch_product(emit, y, dy, adj_y=True), _batch_product(emit, x, dy)]
    return [
        _batch_product(emit, y, dy, adj_x=True, adj_y=True),
        _batch_product(emit, dy, x, adj_x=True, adj_y=True),
    ]


def _batch_v2_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor]:
    grads = _batch_products(emit, op, dy)
    x, y = op._inputs
    if _needs_no_sum(x._shape, y._shape):
        return grads
    sx, sy = emit.shape(x), emit.shape(y)
    rx, ry = emit("BroadcastGradientArgs", head(emit, sx, -2), head(emit, sy, -2))
    return [sum_over(emit, grads[0], rx, sx), sum_over(emit, grads[1], ry, sy)]


def _needs_no_sum(x: Shape, y: Shape) -> bool:
    """Whether the batch dimensions of x and y are known not to broadcast."""
    if x is None or y is None:
        return False
    if len(x) <= 2 and len(y) <= 2:
        return True
    return shapes.is_fully_defined(x[:-2]) and x[:-2] == y[:-2]


_FLAGS = "adj_x: bool = False, adj_y: bool = False, grad_x: bool = False, grad_y: bool = False"

batch_matmul = define_op(
    "BatchMatMul",
    inputs="x: T, y: T",
    outputs="output: T",
    attrs=f"T: {{bfloat16, half, float, double, int32, int64, complex64, complex128}}, {_FLAGS}",
    shape=_batch_shape,
    kernel=traceable(_batch_kernel),
    gradient=_batch_products,
    doc="Products of matrices, batch by batch, each adjoint first where asked.",
)

batch_matmul_v2 = define_op(
    "BatchMatMulV2",
    inputs="x: T, y: T",
    outputs="output: T",
    attrs="T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
    f"complex128}}, {_FLAGS}",
    shape=_batch_shape,
    kernel=traceable(_batch_kernel),
    gradient=_batch_v2_gradient,
    doc="As BatchMatMul, with batches that broadcast.",
)
