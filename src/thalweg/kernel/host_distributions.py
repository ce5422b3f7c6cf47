"""The draws of `distributions` in NumPy: for values that are needed once, such as variables' initial values.

Same state, same numbers: uniforms exactly; normals to the last bit nearly always (both take logarithm, sine
and cosine in float64 and round once). No compilation: 1M float32 truncated normals take about 60 ms on one
core, where compiling the traced form takes 400 ms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from thalweg.kernel.philox import group_words

Shape = Sequence[int]

_EPSILON = 1.0e-7  # the smallest number whose logarithm Box-Muller takes
_CUT = 2.0  # a truncated normal stays strictly inside (-_CUT, _CUT)
_CHUNK = 8192  # groups at a time: what a group passes through stays in the cache
_CALLS = 8  # groups of candidates for blocks that two don't fill (1e-17 are the odds that these don't)


def random_uniform(state: np.ndarray, shape: Shape, dtype: Any) -> np.ndarray:
    """Uniform in [0, 1) for float16, bfloat16, float32, float64."""
    dtype = np.dtype(dtype)

    def draw(group: np.ndarray) -> np.ndarray:
        words = group_words(state, group)
        if dtype == np.float64:
            return np.stack((_unit64(words[0], words[1]), _unit64(words[2], words[3])), axis=-1)
        return _unit(np.stack(words, axis=-1), dtype)

    return _in_chunks(draw, shape, dtype, _lanes(dtype), 1)


def random_standard_normal(state: np.ndarray, shape: Shape, dtype: Any) -> np.ndarray:
    """Normal with mean 0 and deviation 1; the two 16-bit types round what float32 gives."""
    dtype = np.dtype(dtype)
    return _in_chunks(lambda group: _candidates(state, group, dtype), shape, dtype, _lanes(dtype), 1)


def truncated_normal(state: np.ndarray, shape: Shape, dtype: Any) -> np.ndarray:
    """Normal with mean 0 and deviation 1, redrawn while outside (-2, 2).

    Each block of four outputs (two for float64) has a stream of its own, and takes the first candidates that
    pass. One group of candidates fills five blocks in six.
    """
    dtype = np.dtype(dtype)
    lanes = _lanes(dtype)

    def draw(first_group: np.ndarray) -> np.ndarray:
        out = _candidates(state, first_group, dtype)
        missing = np.flatnonzero(~(np.abs(out) < _CUT).all(axis=1))
        for calls in (2, _CALLS):
            if not missing.size:
                break
            group = first_group[missing, None] + np.arange(calls, dtype=np.uint64)
            seen = _candidates(state, group.reshape(-1), dtype).reshape(len(missing), calls * lanes)
            passes = np.abs(seen) < _CUT
            rank = np.cumsum(passes, axis=1)
            full = rank[:, -1] >= lanes
            chosen = (passes & (rank <= lanes))[full]
            out[missing[full]] = seen[full][chosen].reshape(-1, lanes)
            missing = missing[~full]
        return out

    return _in_chunks(draw, shape, dtype, lanes, 64 * lanes)


def _in_chunks(draw: Any, shape: Shape, dtype: np.dtype, lanes: int, stride: int) -> np.ndarray:
    """The rows that draw(groups) gives, [len(groups), lanes], of as many groups as fill the shape."""
    size = math.prod(shape)
    blocks = -(-size // lanes)
    out = np.empty((blocks, lanes), dtype)
    for begin, end in _spans(blocks):
        out[begin:end] = draw(np.arange(begin, end, dtype=np.uint64) * np.uint64(stride))
    return out.reshape(-1)[:size].reshape(tuple(shape))


def _spans(n: int) -> Iterator[tuple[int, int]]:
    for begin in range(0, n, _CHUNK):
        yield begin, min(begin + _CHUNK, n)


def _candidates(state: np.ndarray, group: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Normals [len(group), lanes]: in float64 for float64, else in float32."""
    a, b, c, d = group_words(state, group)
    if dtype == np.float64:
        radius = np.sqrt(-2.0 * np.log(np.maximum(_unit64(a, b), _EPSILON)))
        angle = (2 * math.pi) * _unit64(c, d)
        return np.stack((np.sin(angle) * radius, np.cos(angle) * radius), axis=-1)
    single = np.dtype(np.float32)
    unit = np.maximum(_unit(np.stack((a, c)), single), np.float32(_EPSILON))
    radius = np.sqrt(np.float32(-2) * np.log(unit.astype(np.float64)).astype(np.float32))
    angle = ((2 * math.pi) * _unit(np.stack((b, d)), single).astype(np.float64)).astype(np.float32)
    wide = angle.astype(np.float64)
    out = np.empty((len(group), 4), np.float32)
    for pair in range(2):
        np.multiply(np.sin(wide[pair]).astype(np.float32), radius[pair], out=out[:, 2 * pair])
        np.multiply(np.cos(wide[pair]).astype(np.float32), radius[pair], out=out[:, 2 * pair + 1])
    return out


def _unit(word: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The low mantissa bits of words as numbers in [0, 1)."""
    if dtype == np.float32:
        return (word & np.uint32(0x7FFFFF) | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)
    bits = 10 if dtype == np.float16 else 7
    return ((word & np.uint32(2**bits - 1)).astype(np.float32) * np.float32(2.0**-bits)).astype(dtype)


def _unit64(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    bits = (high & np.uint32(0xFFFFF)).astype(np.uint64) << np.uint64(32) | low
    unit: np.ndarray = (bits | np.uint64(0x3FF0000000000000)).view(np.float64) - 1.0
    return unit


def _lanes(dtype: np.dtype) -> int:
    return 2 if dtype == np.float64 else 4
