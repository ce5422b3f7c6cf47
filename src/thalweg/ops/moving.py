"""Elements moved about: Tile, Transpose, Reverse. Source: TensorFlow's array_ops.cc, array_grad.py."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.base import shape as shapes
from thalweg.base.shape import Dim, Shape
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import MAX_RANK, ShapeContext, constant_value
from thalweg.kernel import checks
from thalweg.kernel.convention import traceable
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, ints, is_host, normal_axis, shape_text
from thalweg.ops._emitting import concat, element, stack, tail
from thalweg.ops._types import INDEX

_REVERSIBLE = (
    "{uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, "
    "complex64, complex128, string}"
)
_REVERSIBLE_V2 = (
    "{uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, "
    "complex64, complex128, string}"
)

# ---- Tile ---------------------------------------------------------------------------------------------


def _tile_shape(c: ShapeContext) -> list[Shape]:
    s, multiples = c.shape(0), c.value_as_shape(1)
    count = c.with_rank(1, 1)
    assert count is not None
    if s is None:
        return [None if multiples is None else (None,) * len(multiples)]
    if count[0] not in (None, len(s)):
        raise ValueError(f"Shape must be rank {count[0]} but is rank {len(s)}: one multiple a dimension")
    if multiples is None:
        return [(None,) * len(s)]
    return [tuple(_times(n, m) for n, m in zip(s, multiples, strict=True))]


def _times(n: Dim, m: Dim) -> Dim:
    return None if n is None or m is None else n * m


def _tile_kernel(x: Any, multiples: Any) -> Any:
    s, counts = np.shape(x), ints(multiples)
    fail_unless(
        len(counts) == len(s),
        lambda: f"Expected multiples argument to be a vector of length {len(s)} but got length {len(counts)}",
    )
    for i, m in enumerate(counts):
        fail_unless(m >= 0, lambda i=i, m=m: f"Expected multiples[{i}] >= 0, but got {m}")
    if all(m == 1 for m in counts):
        return x
    between = [d for n in s for d in (1, n)]
    wide = [d for n, m in zip(s, counts, strict=True) for d in (m, n)]
    spread = arrays.broadcast_to(arrays.reshape(x, between), wide)
    return arrays.reshape(spread, [n * m for n, m in zip(s, counts, strict=True)])


def _tile_gradient(emit: Emitter, op: Operation, grad: Any) -> list[Tensor | None]:
    """Summed over the repetitions: [m0, n0, m1, n1 ...] along the even dimensions."""
    x, multiples = op.inputs
    shape = emit.shape(x, out_type=multiples._dtype.base_dtype)
    pairs = emit("Transpose", stack(emit, [multiples, shape]), [1, 0], name="transpose")
    split = emit("Reshape", pairs, [-1])
    axes = emit("Range", 0, emit.size(split), 2, name="range")
    if isinstance(grad, IndexedSlices):
        rows = emit("Cast", element(emit, shape, 0), DstT=grad.indices.dtype)
        at = emit("FloorMod", grad.indices, rows, name="mod")
        grad = emit("UnsortedSegmentSum", grad.values, at, rows)
        split = concat(emit, [emit.constant([1], split._dtype), tail(emit, split, 1)], 0)
    result = emit("Sum", emit("Reshape", grad, split), axes)
    result.set_shape(x.shape)
    return [result, None]


define_op(
    "Tile",
    inputs="input: T, multiples: Tmultiples",
    outputs="output: T",
    attrs=f"T: type, Tmultiples: {INDEX} = int32",
    shape=_tile_shape,
    kernel=traceable(_tile_kernel, host=_tile_kernel, static=("multiples",)),
    gradient=_tile_gradient,
    doc="Its input repeated multiples[i] times along dimension i.",
)

# ---- Transpose ----------------------------------------------------------------------------------------


def _permutation(perm: list[int], rank: int) -> list[int] | None:
    """The axes counted from the front, or None where they are no permutation."""
    if len(perm) != rank:
        return None
    axes = [p + rank if p < 0 else p for p in perm]
    return axes if sorted(axes) == list(range(rank)) else None


def _transpose_shape(c: ShapeContext) -> list[Shape]:
    s, perm = c.shape(0), c.value(1)
    count = c.shape(1)
    if perm is not None:
        axes = _permutation(ints(perm), perm.size if s is None else len(s))
        if axes is None:
            raise ValueError(
                f"perm {ints(perm)} is not a permutation of the dimensions of {shapes.format_shape(s)}"
            )
        return [(None,) * len(axes) if s is None else tuple(s[p] for p in axes)]
    if s is not None:
        if count is not None and len(count) == 1 and count[0] not in (None, len(s)):
            raise ValueError(f"perm has {count[0]} elements for an input of rank {len(s)}")
        return [(None,) * len(s)]
    if count is None or len(count) != 1 or count[0] is None or count[0] > MAX_RANK:
        return [None]
    return [(None,) * count[0]]


def _transpose_kernel(x: Any, perm: Any) -> Any:
    axes = _permutation(ints(perm), np.ndim(x))
    fail_unless(
        axes is not None,
        lambda: f"transpose expects a permutation of the {np.ndim(x)} dimensions of the input, got "
        f"{ints(perm)}",
    )
    return arrays.transpose(x, axes or [])


def _conjugate_transpose_kernel(x: Any, perm: Any) -> Any:
    result = _transpose_kernel(x, perm)
    if x.dtype.kind != "c":
        return result
    return np.conj(result) if is_host(result) else lax.conj(result)


def _transpose_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    back = emit("InvertPermutation", op.inputs[1])
    kind = op.type if dy._dtype.is_complex else "Transpose"
    return [emit(kind, dy, back, name="transpose"), None]


define_op(
    "Transpose",
    inputs="x: T, perm: Tperm",
    outputs="y: T",
    attrs=f"T: type, Tperm: {INDEX} = int32",
    shape=_transpose_shape,
    kernel=traceable(_transpose_kernel, host=_transpose_kernel, static=("perm",)),
    gradient=_transpose_gradient,
    doc="x with its dimensions in the order perm.",
)

define_op(
    "ConjugateTranspose",
    inputs="x: T, perm: Tperm",
    outputs="y: T",
    attrs=f"T: type, Tperm: {INDEX} = int32",
    shape=_transpose_shape,
    kernel=traceable(_conjugate_transpose_kernel, host=_conjugate_transpose_kernel, static=("perm",)),
    gradient=_transpose_gradient,
    doc="The complex conjugate of x with its dimensions in the order perm.",
)


def _invert_permutation_kernel(x: Any) -> Any:
    n = np.shape(x)[0]
    if is_host(x):
        checks.require(sorted(x.tolist()) == list(range(n)), _no_permutation, x)
        result = np.empty(n, x.dtype)
        result[x] = np.arange(n, dtype=x.dtype)
        return result
    ordered, inverse = lax.sort([x, lax.iota(x.dtype, n)], num_keys=1)
    checks.require(jnp.all(ordered == lax.iota(x.dtype, n)), _no_permutation, x)
    return inverse


def _no_permutation(x: np.ndarray) -> str:
    for i in x.tolist():
        if not 0 <= i < x.size:
            return f"{i} is not between 0 and {x.size}"
    return f"{next(i for i in x.tolist() if x.tolist().count(i) > 1)} is duplicated in the input."


define_op(
    "InvertPermutation",
    inputs="x: T",
    outputs="y: T",
    attrs=f"T: {INDEX} = int32",
    shape=lambda c: [c.with_rank(0, 1)],
    kernel=traceable(
        _invert_permutation_kernel,
        host=_invert_permutation_kernel,
        may_fail=lambda op: constant_value(op._inputs[0]) is None,
    ),
    gradient=NotDifferentiable("a permutation is integers"),
    doc="The inverse of a permutation of 0 ... n-1.",
)

# ---- Reverse ------------------------------------------------------------------------------------------


def _reverse_shape(c: ShapeContext) -> list[Shape]:
    s, dims = c.shape(0), c.with_rank(1, 1)
    assert dims is not None
    if s is not None and dims[0] not in (None, len(s)):
        raise ValueError(f"dims must have one element per dimension of the input: {dims[0]} and {len(s)}")
    return [s if s is not None or dims[0] is None or dims[0] > MAX_RANK else (None,) * dims[0]]


def _reverse_kernel(tensor: Any, dims: Any) -> Any:
    fail_unless(
        np.shape(dims) == (np.ndim(tensor),),
        lambda: f"'dims' must have a length equal to the number of dimensions of the input, "
        f"{np.ndim(tensor)}: got shape {shape_text(np.shape(dims))}",
    )
    return arrays.reverse(tensor, [i for i, d in enumerate(dims.tolist()) if d])


def _reverse_v2_axes(axes: list[int], rank: int) -> list[int]:
    result = []
    for i, a in enumerate(axes):
        if not -rank <= a < rank:
            raise ValueError(f"'axis'[{i}] = {a} is out of valid range [{-rank}, {rank - 1}]")
        result.append(a % rank)
    if len(set(result)) != len(result):
        twice = next(a for a in result if result.count(a) > 1)
        raise ValueError(f"axis {twice} specified more than once.")
    return result


def _reverse_v2_shape(c: ShapeContext) -> list[Shape]:
    s, axes = c.shape(0), c.value(1)
    if s is not None and axes is not None:
        _reverse_v2_axes(ints(axes), len(s))
    return [s]


def _reverse_v2_kernel(tensor: Any, axis: Any) -> Any:
    try:
        axes = _reverse_v2_axes(ints(axis), np.ndim(tensor))
    except ValueError as error:
        text = str(error)
        fail_unless(False, lambda: text)
        raise
    return arrays.reverse(tensor, axes)


define_op(
    "Reverse",
    inputs="tensor: T, dims: bool",
    outputs="output: T",
    attrs=f"T: {_REVERSIBLE}",
    shape=_reverse_shape,
    kernel=traceable(_reverse_kernel, host=_reverse_kernel, static=("dims",)),
    gradient=lambda emit, op, dy: [emit("Reverse", dy, op.inputs[1]), None],
    doc="Its input back to front along the dimensions for which dims is true.",
)

define_op(
    "ReverseV2",
    inputs="tensor: T, axis: Tidx",
    outputs="output: T",
    attrs=f"Tidx: {INDEX} = int32, T: {_REVERSIBLE_V2}",
    shape=_reverse_v2_shape,
    kernel=traceable(_reverse_v2_kernel, host=_reverse_v2_kernel, static=("axis",)),
    gradient=lambda emit, op, dy: [emit("ReverseV2", dy, op.inputs[1]), None],
    doc="Its input back to front along these axes.",
)


def _reverse_sequence_shape(c: ShapeContext) -> list[Shape]:
    s, lengths = c.shape(0), c.with_rank(1, 1)
    seq, batch = c.attr("seq_dim"), c.attr("batch_dim")
    if s is None or lengths is None:
        return [s]
    for name, d in (("seq_dim", seq), ("batch_dim", batch)):
        if not -len(s) <= d < len(s):
            raise ValueError(f"{name} must be < input rank: {d} vs. {len(s)}")
    merged = shapes.merge((s[batch],), lengths)
    assert merged is not None
    batch %= len(s)
    return [(*s[:batch], merged[0], *s[batch + 1 :])]


def _reverse_sequence_kernel(x: Any, seq_lengths: Any, *, seq_dim: int, batch_dim: int) -> Any:
    rank = np.ndim(x)
    seq, batch = normal_axis(seq_dim, rank, "seq_dim"), normal_axis(batch_dim, rank, "batch_dim")
    fail_unless(seq != batch, lambda: f"batch_dim == seq_dim == {seq}")
    n, time = np.shape(x)[batch], np.shape(x)[seq]
    fail_unless(
        np.shape(seq_lengths) == (n,),
        lambda: f"Length of seq_lens != input.dims({batch}), ({shape_text(np.shape(seq_lengths))} vs. {n})",
    )
    _require_lengths(seq_lengths, time, seq)
    if 0 in np.shape(x):
        return x
    front = [batch, seq, *[d for d in range(rank) if d not in (batch, seq)]]
    back = [front.index(d) for d in range(rank)]
    moved = arrays.transpose(x, front)
    steps = np.arange(time, dtype=seq_lengths.dtype)[None, :]
    lengths = arrays.reshape(seq_lengths, (n, 1))
    places: Any
    if is_host(x, seq_lengths):
        places = np.where(steps < lengths, lengths - 1 - steps, steps)
        return np.transpose(np.asarray(moved)[np.arange(n)[:, None], places], back)
    places = jnp.where(steps < lengths, lengths - 1 - steps, steps)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(2, rank)),
        collapsed_slice_dims=(1,),
        start_index_map=(1,),
        operand_batching_dims=(0,),
        start_indices_batching_dims=(0,),
    )
    sizes = (1, 1, *np.shape(moved)[2:])
    mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS
    return lax.transpose(lax.gather(moved, places[..., None], numbers, sizes, mode=mode), tuple(back))


def _require_lengths(lengths: Any, time: int, seq: int) -> None:
    def message(values: np.ndarray) -> str:
        i = int(np.argmax((values < 0) | (values > time)))
        if values[i] < 0:
            return f"seq_lens({i}) < 0"
        return f"seq_lens({i}) > input.dims({seq})"

    inside = (lengths >= 0) & (lengths <= time)
    checks.require(np.bool_(inside.all()) if is_host(lengths) else jnp.all(inside), message, lengths)


def _reverse_sequence_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor | None]:
    seq, batch = op._attrs["seq_dim"], op._attrs["batch_dim"]
    return [emit("ReverseSequence", dy, op.inputs[1], seq_dim=seq, batch_dim=batch), None]


define_op(
    "ReverseSequence",
    inputs="input: T, seq_lengths: Tlen",
    outputs="output: T",
    attrs=f"seq_dim: int, batch_dim: int = 0, T: type, Tlen: {INDEX} = int64",
    shape=_reverse_sequence_shape,
    kernel=traceable(
        _reverse_sequence_kernel,
        host=_reverse_sequence_kernel,
        may_fail=lambda op: constant_value(op._inputs[1]) is None,
    ),
    gradient=_reverse_sequence_gradient,
    doc="The first seq_lengths[b] elements of each batch b back to front along seq_dim.",
)

