"""Traceable draws from a Philox state, number for number what TensorFlow's CPU kernels give.

Every function takes `state`, a ``uint32[6]`` array (see `philox`), a static shape and a dtype, and may be
traced with 64-bit types on or off: it opens its own scope. Bits, integers and uniforms are exact. float32
normals take logarithm, sine and cosine in float64 and round once, as the C library TensorFlow calls does, so
they nearly always agree to the last bit: a truncated normal needs that, since one candidate on the other side
of the cut shifts its group.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.kernel.philox import group_range, group_words, host_bits, interleave

_EPSILON = 1.0e-7  # the smallest number whose logarithm Box-Muller takes
_CUT = 2.0  # a truncated normal stays strictly inside (-_CUT, _CUT)
_TAIL_ROW = 1024

Shape = tuple[int, ...]
Locate = Callable[[Any], tuple[Any, Any]]  # blocks -> (their state words, their places in those streams)


# --- uniform ------------------------------------------------------------------------------------------------


def random_uniform(state: Any, shape: Shape, dtype: Any) -> jax.Array:
    """Uniform in [0, 1) for float16, bfloat16, float32, float64."""
    dtype, size = np.dtype(dtype), math.prod(shape)
    with jax.enable_x64(True):
        if dtype == np.float64:
            a, b, c, d = group_words(state, group_range(-(-size // 2)))
            return interleave((_unit64(a, b), _unit64(c, d)))[:size].reshape(shape)
        bits = interleave(group_words(state, group_range(-(-size // 4))))
        out: jax.Array = _unit(bits, dtype)[:size].reshape(shape)
        return out


def random_uniform_int(state: Any, shape: Shape, lo: Any, hi: Any) -> jax.Array:
    """Integers in [lo, hi) of the bounds' type, int32 or int64 (scalars). The caller checks that lo < hi."""
    size = math.prod(shape)
    with jax.enable_x64(True):
        wide = np.dtype(lo.dtype) == np.int64
        unsigned = np.uint64 if wide else np.uint32
        start = lax.convert_element_type(lo, unsigned)
        span = lax.convert_element_type(hi, unsigned) - start
        if wide:
            a, b, c, d = group_words(state, group_range(-(-size // 2)))
            bits = interleave((_join(b, a), _join(d, c)))
        else:
            bits = interleave(group_words(state, group_range(-(-size // 4))))
        return (start + bits % span).astype(lo.dtype)[:size].reshape(shape)


def _unit(word: Any, dtype: np.dtype) -> Any:
    """The low mantissa bits of a word as a number in [0, 1)."""
    if dtype == np.float32:
        one = np.uint32(0x3F800000)
        return lax.bitcast_convert_type(word & np.uint32(0x7FFFFF) | one, np.float32) - np.float32(1)
    bits = 10 if dtype == np.float16 else 7
    return ((word & np.uint32(2**bits - 1)).astype(np.float32) * np.float32(2.0**-bits)).astype(dtype)


def _unit64(high: Any, low: Any) -> Any:
    one = np.uint64(0x3FF0000000000000)
    return lax.bitcast_convert_type(_join(high & np.uint32(0xFFFFF), low) | one, np.float64) - np.float64(1)


def _join(high: Any, low: Any) -> Any:
    return high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)


# --- normal -------------------------------------------------------------------------------------------------


def random_standard_normal(state: Any, shape: Shape, dtype: Any) -> jax.Array:
    """Normal with mean 0 and deviation 1; the two 16-bit types round what float32 gives."""
    return random_standard_normals(jnp.asarray(state)[None], [shape], dtype)[0]


def truncated_normal(state: Any, shape: Shape, dtype: Any) -> jax.Array:
    """Normal with mean 0 and deviation 1, redrawn while outside (-2, 2)."""
    return truncated_normals(jnp.asarray(state)[None], [shape], dtype)[0]


def random_standard_normals(states: Any, shapes: Sequence[Shape], dtype: Any) -> list[jax.Array]:
    """`random_standard_normal` for each row of states (uint32[k, 6]) and its shape, in one piece of code."""
    dtype = np.dtype(dtype)
    with jax.enable_x64(True):
        locate, blocks = _streams(states, shapes, _lanes(dtype))
        out = _candidates(locate, lax.iota(np.int64, blocks), 1, 1, dtype)
        return _split(out, shapes, dtype)


def truncated_normals(states: Any, shapes: Sequence[Shape], dtype: Any) -> list[jax.Array]:
    """`truncated_normal` for each row of states (uint32[k, 6]) and its shape, in one piece of code.

    Each block of four outputs (two for float64) has a stream of its own and takes the first candidates that
    pass. All blocks look at two groups of candidates; the few blocks that need more (ten in a million; 4 in
    10,000 for float64) are done again one by one.
    """
    dtype = np.dtype(dtype)
    lanes = _lanes(dtype)
    with jax.enable_x64(True):
        locate, blocks = _streams(states, shapes, lanes)
        seen = _candidates(locate, lax.iota(np.int64, blocks), 64 * lanes, 2, dtype)
        # Which candidates pass, as bits; a table says where the first ones that do are.
        passes = jnp.abs(seen) < _CUT
        bit = np.int32(1) << lax.broadcasted_iota(np.int32, (1, 2 * lanes), 1)
        mask = jnp.sum(jnp.where(passes, bit, 0), axis=1, dtype=np.int32)
        places = jnp.asarray(_first_set_bits(2 * lanes, lanes)).at[mask].get(mode="promise_in_bounds")
        lane = lax.broadcasted_iota(np.int32, (1, lanes), 1)
        index = (places[:, None] >> (3 * lane)) & 7
        first = lax.broadcasted_iota(np.int64, (blocks, 1), 0) * (2 * lanes)
        out = seen.reshape(-1).at[first + index].get(mode="promise_in_bounds")
        if blocks:
            out = _redo_missing(locate, out, lax.population_count(mask) < lanes, dtype)
        return _split(out, shapes, dtype)


def _redo_missing(locate: Locate, out: Any, missing: Any, dtype: np.dtype) -> Any:
    """Redo the blocks marked in `missing`, one at a time, with candidates enough for any (1e-17 are the
    odds).

    The marks lie in rows with a mark for each row, so that finding the next block reads two short vectors.
    """
    blocks, lanes = out.shape
    rows = -(-blocks // _TAIL_ROW)
    missing = jnp.pad(missing, (0, rows * _TAIL_ROW - blocks)).reshape(rows, _TAIL_ROW)
    zero = np.int32(0)

    def redo(carry: Any) -> Any:
        out, missing, row_missing = carry
        row = _first(row_missing)
        marks = lax.dynamic_index_in_dim(missing, row, keepdims=False)
        column = _first(marks)
        block = row * _TAIL_ROW + column
        value = _candidates(locate, block[None].astype(np.int64), 64 * lanes, 8, dtype, rolled=True)[0]
        passes = jnp.abs(value) < _CUT
        square = (value.size, value.size)
        earlier = lax.broadcasted_iota(np.int32, square, 1) < lax.broadcasted_iota(np.int32, square, 0)
        rank = jnp.sum(earlier & passes[None, :], axis=1, dtype=np.int32)
        wanted = passes & (rank == lax.broadcasted_iota(np.int32, (lanes, 1), 0))
        fresh = jnp.sum(jnp.where(wanted, value, 0), axis=1, dtype=out.dtype)
        marks = marks & (lax.iota(np.int32, _TAIL_ROW) != column)
        return (
            lax.dynamic_update_slice(out, fresh[None], (block, zero)),
            lax.dynamic_update_slice(missing, marks[None], (row, zero)),
            lax.dynamic_update_slice(row_missing, jnp.any(marks)[None], (row,)),
        )

    carry = (out, missing, jnp.any(missing, axis=1))
    return lax.while_loop(lambda carry: jnp.any(carry[2]), redo, carry)[0]


def _first(flags: Any) -> Any:
    size = flags.shape[0]
    return jnp.min(jnp.where(flags, lax.iota(np.int32, size), np.int32(size - 1)))


def _first_set_bits(bits: int, count: int) -> np.ndarray:
    """int32[2**bits]: for each mask the places of its first `count` set bits, three bits a place."""
    table = np.zeros(1 << bits, np.int32)
    for mask in range(1 << bits):
        places = [place for place in range(bits) if mask >> place & 1][:count]
        table[mask] = sum(place << 3 * number for number, place in enumerate(places))
    return table


def _streams(states: Any, shapes: Sequence[Shape], lanes: int) -> tuple[Locate, int]:
    """For outputs laid end to end: how to find a block's state and place in its stream; how many blocks."""
    ends = np.cumsum([-(-math.prod(shape) // lanes) for shape in shapes], dtype=np.int64)
    states = jnp.asarray(states)
    if len(shapes) == 1:
        return lambda block: (states[0], block), int(ends[-1])
    starts = np.concatenate([[0], ends[:-1]])

    def locate(block: Any) -> tuple[Any, Any]:
        owner = jnp.sum(block[..., None] >= ends[:-1], axis=-1, dtype=np.int32)
        words = [states[:, word].at[owner].get(mode="promise_in_bounds") for word in range(6)]
        return words, block - jnp.asarray(starts).at[owner].get(mode="promise_in_bounds")

    return locate, int(ends[-1])


def _split(out: Any, shapes: Sequence[Shape], dtype: np.dtype) -> list[jax.Array]:
    """The outputs laid end to end in blocks [blocks, lanes], apart and in their shapes."""
    lanes, begin, parts = out.shape[1], 0, []
    flat = out.reshape(-1).astype(dtype)
    for shape in shapes:
        size = math.prod(shape)
        parts.append(lax.slice(flat, (begin,), (begin + size,)).reshape(shape))
        begin += -(-size // lanes) * lanes
    return parts


def _candidates(
    locate: Locate, block: Any, stride: int, calls: int, dtype: np.dtype, *, rolled: bool = False
) -> Any:
    """[blocks, calls * lanes] normals: from the first `calls` groups of blocks that lie `stride` groups
    apart.

    The pair within a group is an axis, not a second copy of the code: it halves compilation and runs faster.
    """
    count = block.shape[0]
    state, place = locate(block)
    state = [word[:, None] if word.ndim else word for word in state]
    group = (place * stride).astype(np.uint64)[:, None] + lax.broadcasted_iota(np.uint64, (count, calls), 1)
    a, b, c, d = group_words(state, group, rolled=rolled)
    if dtype == np.float64:
        pair = _box_muller64(a, b, c, d)
    else:
        pair = _box_muller(_alternate(a, c), _alternate(b, d))
    return _alternate(*pair).reshape(count, calls * _lanes(dtype))


def _alternate(first: Any, second: Any) -> Any:
    """The two stacked on a new last axis, in the form XLA fuses (see philox.interleave)."""
    lane = lax.broadcasted_iota(np.int32, (*first.shape, 2), first.ndim)
    return jnp.where(lane == 0, first[..., None], second[..., None])


def _lanes(dtype: np.dtype) -> int:
    return 2 if dtype == np.float64 else 4


def _box_muller64(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    radius = jnp.sqrt(-2.0 * jnp.log(jnp.maximum(_unit64(a, b), _EPSILON)))
    angle = (2 * math.pi) * _unit64(c, d)
    return jnp.sin(angle) * radius, jnp.cos(angle) * radius


def _box_muller(a: Any, b: Any) -> tuple[Any, Any]:
    unit = jnp.maximum(_unit(a, np.dtype(np.float32)), np.float32(_EPSILON))
    radius = jnp.sqrt(np.float32(-2) * _log(unit))
    angle = ((2 * math.pi) * _unit(b, np.dtype(np.float32)).astype(np.float64)).astype(np.float32)
    sine, cosine = _sincos(angle)
    return sine * radius, cosine * radius


def _log(x: Any) -> Any:
    """log of positive, normal float32, through float64: x = 2**k * m with m in [sqrt(1/2), sqrt(2))."""
    bits = lax.bitcast_convert_type(x, np.int32)
    exponent = (bits - np.int32(0x3F3504F3)) >> np.int32(23)
    m = lax.bitcast_convert_type(bits - (exponent << np.int32(23)), np.float32).astype(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = _polynomial(z, [2.0 / (2 * i + 1) for i in range(7)])
    return (exponent.astype(np.float64) * math.log(2.0) + s * series).astype(np.float32)


def _sincos(x: Any) -> tuple[Any, Any]:
    """sin and cos of float32 in [0, 2 pi], through float64."""
    wide = x.astype(np.float64)
    quadrant = (wide * (2 / math.pi) + 0.5).astype(np.int32)
    r = wide - quadrant.astype(np.float64) * (math.pi / 2)
    z = r * r
    sine = r * _polynomial(z, [(-1) ** i / math.factorial(2 * i + 1) for i in range(7)])
    cosine = _polynomial(z, [(-1) ** i / math.factorial(2 * i) for i in range(8)])
    swap = (quadrant & 1) == 1
    first, second = jnp.where(swap, cosine, sine), jnp.where(swap, sine, cosine)
    first = jnp.where((quadrant & 2) == 0, first, -first)
    second = jnp.where(((quadrant + 1) & 2) == 0, second, -second)
    return first.astype(np.float32), second.astype(np.float32)


def _polynomial(z: Any, coefficients: list[float]) -> Any:
    value = jnp.full_like(z, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * z + coefficient
    return value


# --- multinomial --------------------------------------------------------------------------------------------


def multinomial(state: Any, logits: Any, num_samples: int, dtype: Any = np.int64) -> jax.Array:
    """[batch, num_samples] class numbers of `dtype` (int32, int64), drawn by each row's unnormalised log
    odds.

    TensorFlow may cut a large batch among its threads, and the numbers then depend on the cut: this is what
    one thread gives, row after row from one stream.
    """
    batch, _ = logits.shape
    with jax.enable_x64(True):
        wide = lax.convert_element_type(logits, np.float64)
        finite = jnp.isfinite(wide)
        top = jnp.max(jnp.where(finite, wide, -np.inf), axis=1, keepdims=True)
        odds = jnp.cumsum(jnp.where(finite, jnp.exp(wide - top), 0.0), axis=1)
        draws = random_uniform(state, (batch, num_samples), np.float64) * odds[:, -1:]
        found = jnp.sum(odds[:, None, :] <= draws[:, :, None], axis=2, dtype=np.int64)
        return found.astype(dtype)


# --- shuffles, on the host ----------------------------------------------------------------------------------


def shuffle_permutation(state: np.ndarray, size: int) -> np.ndarray:
    """int64[size]: output row i of RandomShuffle is input row permutation[i].

    Host code, as each swap needs the last one.
    """
    order = list(range(size))
    words = host_bits(state, max(size - 1, 0)).astype(np.int64)
    targets = (np.arange(len(words)) + words % np.arange(size, 1, -1)).tolist() if len(words) else []
    for i, j in enumerate(targets):
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)
