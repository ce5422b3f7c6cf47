"""Slice. Source: TensorFlow's array_ops.cc, array_grad.py."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.base.shape import Dim, Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import MAX_RANK, ShapeContext, constant_value, constant_value_as_shape
from thalweg.kernel import checks
from thalweg.kernel.convention import traceable
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, ints, is_host
from thalweg.ops._emitting import concat, stack
from thalweg.ops._types import INDEX


def _slice_shape(c: ShapeContext) -> list[Shape]:
    s, begin, size = c.shape(0), c.value(1), c.value(2)
    lengths = [v[0] for v in (c.with_rank(1, 1), c.with_rank(2, 1)) if v is not None and v[0] is not None]
    rank = len(s) if s is not None else next(iter(lengths), None)
    if rank is None or rank > MAX_RANK:
        return [None]
    for n in lengths:
        if n != rank:
            raise ValueError(f"begin and size must have one element per dimension: expected {rank}, got {n}")
    if size is None:
        partial = c.value_as_shape(2)
        # an unknown size may be -1; what is known is a size
        return [partial if partial is not None else (None,) * rank]
    source: tuple[Dim, ...] = s if s is not None else (None,) * rank
    starts: list[Dim] = [None] * rank if begin is None else list(ints(begin))
    each = zip(source, starts, ints(size), strict=True)
    return [tuple(_taken(i, n, b, k) for i, (n, b, k) in enumerate(each))]


def _taken(dim: int, n: Dim, begin: Dim, size: int) -> Dim:
    if size < -1:
        raise ValueError(f"size[{dim}] must be >= -1, got {size}")
    if begin is not None and (begin < 0 or (n is not None and begin > n)):
        raise ValueError(f"Expected begin[{dim}] in [0, {n}], but got {begin}")
    if size == -1:
        return None if n is None or begin is None else n - begin
    if n is not None and size > n - (begin or 0):
        raise ValueError(f"Expected size[{dim}] in [0, {n - (begin or 0)}], but got {size}")
    return size


def _slice_static(op: Operation) -> tuple[str, ...]:
    """begin may be computed by the step where no size means "up to the end"."""
    size = constant_value_as_shape(op._inputs[2])
    return ("size",) if size is not None and None not in size else ("begin", "size")


def _slice_kernel(x: Any, begin: Any, size: Any) -> Any:
    shape, sizes = np.shape(x), ints(size)
    fail_unless(
        len(sizes) == len(shape) == np.shape(begin)[0],
        lambda: f"Expected begin and size arguments to be 1-D tensors of size {len(shape)}, but got "
        f"{np.shape(begin)} and ({len(sizes)},)",
    )
    if not is_host(begin):
        return _traced_slice(x, begin, shape, sizes)
    starts = ints(begin)
    limits = []
    for i, (n, b, k) in enumerate(zip(shape, starts, sizes, strict=True)):
        fail_unless(0 <= b <= n, lambda i=i, n=n, b=b: f"Expected begin[{i}] in [0, {n}], but got {b}")
        k = n - b if k == -1 else k
        fail_unless(
            0 <= k <= n - b, lambda i=i, n=n, b=b, k=k: f"Expected size[{i}] in [0, {n - b}], but got {k}"
        )
        limits.append(b + k)
    return arrays.strided(x, starts, limits)


def _traced_slice(x: Any, begin: Any, shape: tuple[int, ...], sizes: list[int]) -> Any:
    for i, (n, k) in enumerate(zip(shape, sizes, strict=True)):
        fail_unless(0 <= k <= n, lambda i=i, n=n, k=k: f"Expected size[{i}] in [0, {n}], but got {k}")
    room = np.array([n - k for n, k in zip(shape, sizes, strict=True)], begin.dtype)

    def message(starts: np.ndarray) -> str:
        i = int(np.argmax((starts < 0) | (starts > room)))
        if not 0 <= starts[i] <= shape[i]:
            return f"Expected begin[{i}] in [0, {shape[i]}], but got {starts[i]}"
        return f"Expected size[{i}] in [0, {shape[i] - starts[i]}], but got {sizes[i]}"

    checks.require(jnp.all((begin >= 0) & (begin <= room)), message, begin)
    return lax.dynamic_slice(x, [begin[i] for i in range(len(shape))], sizes)


def _slice_value(op: Operation) -> Shape:
    known = constant_value_as_shape(op._inputs[0])
    begin, size = (constant_value(t) for t in op._inputs[1:])
    if known is None or begin is None or size is None or begin.size != 1:
        return None
    b, k = ints(begin)[0], ints(size)[0]
    return known[b:] if k == -1 else known[b : b + k]


def _slice_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    """Padding: begin zeros before, and what is left of the input behind."""
    x, begin, _ = op.inputs
    kind = begin._dtype.base_dtype
    rank = emit.rank(x)
    taken = emit.shape(op.outputs[0], out_type=kind)
    shape = stack(emit, [rank, 1])
    before = emit("Reshape", begin, shape)
    rest = emit("Sub", emit.shape(x, out_type=kind), taken, name="sub")
    after = emit("Reshape", emit("Sub", rest, begin, name="sub"), shape)
    return [emit("Pad", dy, concat(emit, [before, after], 1)), None, None]


define_op(
    "Slice",
    inputs="input: T, begin: Index, size: Index",
    outputs="output: T",
    attrs=f"T: type, Index: {INDEX}",
    shape=_slice_shape,
    kernel=traceable(
        _slice_kernel,
        host=_slice_kernel,
        static=_slice_static,
        may_fail=lambda op: constant_value(op._inputs[1]) is None,
    ),
    gradient=_slice_gradient,
    shape_value=_slice_value,
    doc="size elements from begin on along each dimension; -1: up to the end.",
)
