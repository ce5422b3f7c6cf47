"""Pools and their gradients as array formulas. Windows may lie along any axis but the batch (TensorFlow
pools over channels too). Pure and traceable; sizes are static.

A tie goes to the first maximum of the window, in the order of the axes; it gets the whole gradient, as in
TensorFlow's CPU kernels. A NaN in a window is its maximum (TensorFlow skips it).

Figures in comments: 2 cores of an EPYC (Zen 5), jax 0.10.2.
"""

import itertools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.ops._windows import pool_spans

_UNROLL = 16  # most window elements written out one by one; compile time grows with them


# ---- the choice of formulation ----


def _by_slices(spans):
    """Maximum of strided slices: one elementwise fusion. 128x28x28x32, 2x2: 0.3 ms; reshape and reduce 1.0;
    16x56x56x64, 3x3 stride 2: 0.9; reduce_window 4.4."""
    return math.prod(s.window for s in spans) <= _UNROLL


def _apart(spans):
    """Windows tile the input exactly: each element belongs to one window, and gradients are one elementwise
    pass.
    128x28x28x32, 2x2: 0.6 ms; what differentiating reduce_window gives takes 42."""
    return all(s.window == s.stride and s.low == s.high == 0 and s.out * s.stride == s.size for s in spans)


# ---- windows ----


def _padded(x, spans, fill):
    if any(s.low or s.high for s in spans):
        return lax.pad(x, np.asarray(fill, x.dtype), [(s.low, s.high, 0) for s in spans])
    return x


def _offsets(spans):
    return list(itertools.product(*(range(s.window) for s in spans)))


def _seen(padded, spans, offset):
    """Element `offset` of every window."""
    return lax.slice(
        padded,
        offset,
        [o + (s.out - 1) * s.stride + 1 for o, s in zip(offset, spans, strict=True)],
        [s.stride for s in spans],
    )


def _lowest(dtype):
    return -np.inf if jnp.issubdtype(dtype, jnp.floating) else np.iinfo(dtype).min


def _reduced(x, spans, initial, combine):
    """reduce_window, one axis after the other: window sums instead of window products of work."""
    for axis, s in enumerate(spans):
        if not s.trivial:
            one = [1] * len(spans)
            window, stride = list(one), list(one)
            window[axis], stride[axis] = s.window, s.stride
            pads = [(0, 0)] * len(spans)
            pads[axis] = (s.low, s.high)
            x = lax.reduce_window(x, np.asarray(initial, x.dtype), combine, window, stride, pads)
    return x


def _inside(spans, offset):
    """Where element `offset` of a window is not padding; None where that is everywhere."""
    mask = None
    for axis, (s, o) in enumerate(zip(spans, offset, strict=True)):
        if s.low or s.high:
            at = np.arange(s.out) * s.stride + o - s.low
            ok = ((at >= 0) & (at < s.size)).reshape([-1 if a == axis else 1 for a in range(len(spans))])
            mask = ok if mask is None else mask & ok
    return None if mask is None or mask.all() else mask


def _first(x, y, spans):
    """Number of the element, in row-major order, that is each window's first maximum (int32)."""
    offsets = _offsets(spans)
    p = _padded(x, spans, _lowest(x.dtype))
    first = lax.full(y.shape, len(offsets) - 1, np.int32)
    for number in reversed(range(len(offsets) - 1)):
        hit = lax.eq(_seen(p, spans, offsets[number]), y)
        mask = _inside(spans, offsets[number])
        if mask is not None:
            hit = lax.bitwise_and(hit, np.broadcast_to(mask, y.shape))
        first = lax.select(hit, lax.full(y.shape, number, np.int32), first)
    return first


def _spread(shape, spans, part):
    """Sum over the windows of part(number), an array with one element per window, put back on the input's
    elements.

    Elements of equal position modulo the stride are one dense sum of shifted parts; those are interleaved
    at the end.
    16x56x56x64, 3x3 stride 2: avg_pool_grad 0.9 ms, max_pool_grad 6 (select-and-scatter 38).
    """
    blocks = [max(-(-(s.low + s.size) // s.stride), s.out + -(-s.window // s.stride) - 1) for s in spans]
    numbers = {offset: n for n, offset in enumerate(_offsets(spans))}
    phases = {}
    for phase in itertools.product(*(range(s.stride) for s in spans)):
        total = None
        for shift in itertools.product(
            *(range(-(-(s.window - a) // s.stride)) for a, s in zip(phase, spans, strict=True))
        ):
            offset = tuple(a + m * s.stride for a, m, s in zip(phase, shift, spans, strict=True))
            value = part(numbers[offset])
            pads = [(m, b - s.out - m, 0) for m, b, s in zip(shift, blocks, spans, strict=True)]
            if any(p != (0, 0, 0) for p in pads):
                value = lax.pad(value, np.zeros((), value.dtype), pads)
            total = value if total is None else total + value
        phases[phase] = total
    sample = next(v for v in phases.values() if v is not None)
    values = {p: jnp.zeros_like(sample) if v is None else v for p, v in phases.items()}
    for axis in reversed(range(len(spans))):  # interleave the last axis first
        stride = spans[axis].stride
        merged = {}
        for phase in sorted({p[:axis] for p in values}):
            parts = [values[(*phase, a)] for a in range(stride)]
            merged[phase] = parts[0] if stride == 1 else _interleave(parts, axis)
        values = merged
    out = values[()]
    return lax.slice(out, [s.low for s in spans], [s.low + n for s, n in zip(spans, shape, strict=True)])


def _interleave(parts, axis):
    shape = parts[0].shape
    expanded = [lax.expand_dims(p, (axis + 1,)) for p in parts]
    return lax.reshape(
        lax.concatenate(expanded, axis + 1), (*shape[:axis], shape[axis] * len(parts), *shape[axis + 1 :])
    )


def _tiles(x, spans):
    """x of windows that lie apart, as [out, window, out, window, ...]."""
    return lax.reshape(x, [n for s in spans for n in (s.out, s.window)])


def _over_tiles(y):
    """An array with one element per window, to be combined with _tiles."""
    return lax.expand_dims(y, tuple(range(1, 2 * y.ndim, 2)))


def _tile_numbers(spans):
    """Row-major number of each element in its window, shaped to broadcast with _tiles."""
    numbers = np.arange(math.prod(s.window for s in spans), dtype=np.int32)
    return numbers.reshape([n for s in spans for n in (1, s.window)])


# ---- maximum ----


def max_pool(x, *, ksize, strides, padding, explicit_paddings=(), data_format="NHWC"):
    """MaxPool, and MaxPool3D with a five-letter data_format."""
    spans = pool_spans(x.shape, ksize, strides, padding, explicit_paddings, data_format)
    if not _by_slices(spans):
        return _reduced(x, spans, _lowest(x.dtype), lax.max)
    p = _padded(x, spans, _lowest(x.dtype))
    best = None
    for offset in _offsets(spans):
        seen = _seen(p, spans, offset)
        best = seen if best is None else lax.max(best, seen)
    return best


def max_pool_grad(
    orig_input, orig_output, grad, *, ksize, strides, padding, explicit_paddings=(), data_format="NHWC"
):
    """Gradient of max_pool: each window's gradient goes to its first maximum."""
    x, y = orig_input, orig_output
    spans = pool_spans(x.shape, ksize, strides, padding, explicit_paddings, data_format)
    _check_windows(spans, orig_output=y, grad=grad)
    zeros = lax.full(y.shape, 0, grad.dtype)
    if _apart(spans):
        if _by_slices(spans):
            first = _first(x, y, spans)
        else:
            count = math.prod(s.window for s in spans)
            first = jnp.min(
                jnp.where(_tiles(x, spans) == _over_tiles(y), _tile_numbers(spans), np.int32(count - 1)),
                tuple(range(1, 2 * x.ndim, 2)),
            )
        picked = jnp.where(
            _over_tiles(first) == _tile_numbers(spans), _over_tiles(grad), np.zeros((), grad.dtype)
        )
        return lax.reshape(picked, x.shape)
    # XLA fuses `first` into every part that reads it, and so computes it window-many times; neither a
    # barrier nor an operation it counts as expensive stops that (6 ms, where the two halves take 0.9 and
    # 1.0).
    first = _first(x, y, spans)
    return _spread(x.shape, spans, lambda n: lax.select(lax.eq(first, lax.full_like(first, n)), grad, zeros))


def max_pool_grad_grad(
    orig_input, orig_output, grad, *, ksize, strides, padding, explicit_paddings=(), data_format="NHWC"
):
    """Gradient of max_pool_grad with respect to its grad: what `grad` holds at each window's first
    maximum."""
    spans = pool_spans(orig_input.shape, ksize, strides, padding, explicit_paddings, data_format)
    _check_windows(spans, orig_output=orig_output)
    first = _first(orig_input, orig_output, spans)
    p = _padded(grad, spans, 0)
    return _choose(first, [_seen(p, spans, offset) for offset in _offsets(spans)])


def _choose(number, cases):
    out = cases[-1]
    for n in reversed(range(len(cases) - 1)):
        out = lax.select(lax.eq(number, lax.full_like(number, n)), cases[n], out)
    return out


def max_pool_with_argmax(x, *, ksize, strides, padding, include_batch_in_index=False, index_dtype=np.int64):
    """(max_pool(x), flat index of each maximum): ((b*H + y)*W + x)*C + c, without b unless
    include_batch_in_index."""
    spans = pool_spans(x.shape, ksize, strides, padding, (), "NHWC")
    y = max_pool(x, ksize=ksize, strides=strides, padding=padding)
    number = lax.convert_element_type(_first(x, y, spans), index_dtype)
    flat = jnp.zeros(y.shape, index_dtype)
    for axis, s in enumerate(spans):
        within = math.prod(t.window for t in spans[axis + 1 :])
        at = lax.broadcasted_iota(index_dtype, y.shape, axis) * s.stride - s.low
        if s.window > 1:
            at = at + (number // within) % s.window
        flat = flat * s.size + at if axis or include_batch_in_index else flat
    return y, flat


def _check_windows(spans, **arrays):
    want = [s.out for s in spans]
    for name, array in arrays.items():
        if list(array.shape) != want:
            raise ValueError(f"{name} must have shape {want}, the pool's output, got {list(array.shape)}")


# ---- average ----


def _counts(spans, dtype):
    """Number of input elements in each window, of shape [out] with 1 where an axis has no windows."""
    count = np.ones((1,) * len(spans))
    for axis, s in enumerate(spans):
        start = np.arange(s.out) * s.stride - s.low
        along = np.minimum(start + s.window, s.size) - np.maximum(start, 0)
        if not s.trivial:
            count = count * along.reshape([-1 if a == axis else 1 for a in range(len(spans))])
    return count.astype(dtype)


def _wide_type(dtype):
    return np.dtype(np.float32) if dtype.itemsize == 2 else dtype


def avg_pool(x, *, ksize, strides, padding, data_format="NHWC"):
    """AvgPool: padding counts neither in the sum nor in the number of elements."""
    spans = pool_spans(x.shape, ksize, strides, padding, (), data_format)
    dtype, x = x.dtype, lax.convert_element_type(x, _wide_type(x.dtype))
    if _by_slices(spans):
        p = _padded(x, spans, 0)
        total = None
        for offset in _offsets(spans):
            seen = _seen(p, spans, offset)
            total = seen if total is None else total + seen
    elif _apart(spans):
        total = jnp.sum(_tiles(x, spans), tuple(range(1, 2 * x.ndim, 2)))
    else:
        total = _reduced(x, spans, 0, lax.add)
    return lax.convert_element_type(total / _counts(spans, x.dtype), dtype)


def avg_pool_grad(orig_input_shape, grad, *, ksize, strides, padding, data_format="NHWC"):
    """Gradient of avg_pool for an input of the static shape `orig_input_shape`."""
    shape = tuple(orig_input_shape)
    spans = pool_spans(shape, ksize, strides, padding, (), data_format)
    _check_windows(spans, grad=grad)
    dtype, grad = grad.dtype, lax.convert_element_type(grad, _wide_type(grad.dtype))
    share = grad / _counts(spans, grad.dtype)
    if _apart(spans):
        tiles = [n for s in spans for n in (s.out, s.window)]
        out = lax.reshape(lax.broadcast_in_dim(share, tiles, tuple(range(0, len(tiles), 2))), shape)
    elif _by_slices(spans):
        out = _spread(shape, spans, lambda n: share)
    else:
        # The same sum as a window over `share` with gaps, one axis after the other.
        pads = [
            (s.window - 1 - s.low, s.size - 1 - (s.out - 1) * s.stride + s.low, s.stride - 1) for s in spans
        ]
        out = lax.pad(share, np.zeros((), share.dtype), pads)
        for axis, s in enumerate(spans):
            if s.window > 1:
                window = [s.window if a == axis else 1 for a in range(len(spans))]
                out = lax.reduce_window(
                    out, np.zeros((), out.dtype), lax.add, window, [1] * len(spans), "VALID"
                )
    return lax.convert_element_type(out, dtype)
