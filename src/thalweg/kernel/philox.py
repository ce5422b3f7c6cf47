"""Philox 4x32-10 as TensorFlow's random kernels lay it out: state, words, and how far an execution moves it.

A state is ``uint32[6]``: the four words of a 128-bit counter, low word first, then the two words of the key.
It enters a kernel as an array, so one executable serves every step; between executions the host moves
it with `advance`. A *group* is what one counter value gives: four 32-bit words.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Layout, seeding and reservation
are TensorFlow's, pinned by tests/kernel/test_philox.py against recorded numbers.
"""

import math
import os
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_MASK32 = 0xFFFFFFFF

# Groups that an execution sets aside for each output, whatever it really uses. TensorFlow's constant.
_RESERVED_GROUPS_PER_OUTPUT = 256
_PER_OUTPUT_OPS = frozenset(
    {
        "RandomUniform",
        "RandomUniformInt",
        "RandomStandardNormal",
        "TruncatedNormal",
        "RandomGamma",
        "RandomPoisson",
        "RandomPoissonV2",
    }
)


# --- seeds and state, on the host ---------------------------------------------------------------------------


def initial_state(seed: int, seed2: int) -> np.ndarray:
    """uint32[6] for the attributes (seed, seed2); both zero draws them from the operating system."""
    if seed == 0 and seed2 == 0:
        seed, seed2 = (int.from_bytes(os.urandom(8), "little") for _ in range(2))
    words = (0, 0, seed2 & _MASK32, (seed2 >> 32) & _MASK32, seed & _MASK32, (seed >> 32) & _MASK32)
    return np.array(words, np.uint32)


def advance(state: np.ndarray, op_type: str, shape: int | Sequence[int]) -> np.ndarray:
    """The state after one execution of `op_type`; a new array.

    `shape` is the output's (or its number of elements). For Multinomial it is (batch, samples); for
    RandomShuffle it is the shape of what is shuffled. The element type does not matter: TensorFlow reserves
    by the output, not the bit.
    """
    groups = reserved_groups(op_type, shape)
    if not groups:
        return state.copy()
    words = [int(word) for word in state]
    counter = words[0] | words[1] << 32 | words[2] << 64 | words[3] << 96
    counter += groups
    words[:4] = [(counter >> shift) & _MASK32 for shift in (0, 32, 64, 96)]
    return np.array(words, np.uint32)


def advanced(state: Any, groups: int) -> Any:
    """The state `groups` groups further on, traceable: what `advance` gives on the host."""
    words, carry = [], np.uint32(0)
    for number, shift in enumerate((0, 32, 64, 96)):
        word = state[number] + np.uint32((groups >> shift) & _MASK32)
        overflow = word < state[number]
        word = word + carry
        carry = (overflow | (word < carry)).astype(np.uint32)
        words.append(word)
    return jnp.stack([*words, state[4], state[5]])


def reserved_groups(op_type: str, shape: int | Sequence[int]) -> int:
    """How many groups one execution of `op_type` sets aside."""
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    elements = math.prod(dims)
    if op_type in _PER_OUTPUT_OPS:
        return elements * _RESERVED_GROUPS_PER_OUTPUT
    if op_type == "Multinomial":
        batch, samples = dims
        # A sample takes a double, two words; a batch row is rounded up to whole groups.
        return batch * (-(-samples // 4) * 4) * 2 * _RESERVED_GROUPS_PER_OUTPUT if elements else 0
    if op_type == "RandomShuffle":
        return -(-(dims[0] - 1) // 4) if dims and elements > 1 else 0
    raise ValueError(f"{op_type} is not an op that draws from a Philox state")


# --- words --------------------------------------------------------------------------------------------------


def group_words(state: Any, group: Any, *, rolled: bool = False) -> tuple[Any, Any, Any, Any]:
    """The four uint32 words of each group in `group` (uint64, any shape), counted from the state's counter.

    Works on NumPy arrays and, inside a scope that allows 64-bit types, on traced ones. The ten rounds stand
    unrolled over all groups at once: a loop over rounds would send every word through memory ten times.
    `rolled` (traced only) makes that loop all the same, for a few groups in code where compile time counts.
    """
    low, high = _low(group), _high(group)
    c0 = state[0] + low
    c1 = state[1] + high
    carry0 = c0 < low
    carry1 = c1 < high
    c1 = c1 + carry0
    carry1 = carry1 | (carry0 & (c1 == 0))
    c2 = state[2] + carry1
    c3 = state[3] + (carry1 & (c2 == 0))
    words: tuple[Any, Any, Any, Any] = (c0, c1, c2, c3)
    if rolled:

        def step(number: Any, words: Any) -> Any:
            number = number.astype(np.uint32)
            keys = (
                state[4] + number * np.uint32(_KEY_STEPS[0]),
                state[5] + number * np.uint32(_KEY_STEPS[1]),
            )
            return _round(words, keys)

        words = jax.lax.fori_loop(np.int32(0), np.int32(_ROUNDS), step, words)
        return words
    for number in range(_ROUNDS):
        words = _round(words, (_key(state[4], number, 0), _key(state[5], number, 1)))
    return words


def _round(words: tuple[Any, Any, Any, Any], keys: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    c0, c1, c2, c3 = words
    p0 = c0.astype(np.uint64) * _MULTIPLIERS[0]
    p1 = c2.astype(np.uint64) * _MULTIPLIERS[1]
    return _high(p1) ^ c1 ^ keys[0], _low(p1), _high(p0) ^ c3 ^ keys[1], _low(p0)


def random_bits(state: Any, n: int) -> jax.Array:
    """`n` words as uint32[n], in stream order: traceable; `state` is a uint32[6] array."""
    with jax.enable_x64(True):
        return interleave(group_words(state, group_range(-(-n // 4))))[:n]


def host_bits(state: np.ndarray, n: int) -> np.ndarray:
    """What `random_bits` gives, in NumPy on the host."""
    words = group_words(state, np.arange(-(-n // 4), dtype=np.uint64))
    return np.stack(words, axis=-1).reshape(-1)[:n]


def group_range(groups: int, stride: int = 1) -> jax.Array:
    """uint64[groups]: 0, stride, 2 * stride ...; needs a scope that allows 64-bit types."""
    return jax.lax.iota(np.uint64, groups) * np.uint64(stride)


def interleave(columns: Sequence[Any]) -> jax.Array:
    """[columns[0][0], columns[1][0], ..., columns[0][1], ...] for arrays of one shape [n].

    By selecting on a lane number: XLA's CPU backend fuses that with what makes the columns, one pass, where a
    stack or concatenate recomputes them (measured 5 to 50 times slower on Philox words).
    """
    groups, lanes = columns[0].shape[0], len(columns)
    lane = jax.lax.broadcasted_iota(np.int32, (groups, lanes), 1)
    out = jnp.broadcast_to(columns[-1][:, None], (groups, lanes))
    for number in range(lanes - 2, -1, -1):
        out = jnp.where(lane == number, columns[number][:, None], out)
    return out.reshape(-1)


def _key(word: Any, step: int, which: int) -> Any:
    # Products are taken modulo 2**32 in Python: NumPy warns when scalars overflow.
    if isinstance(word, np.uint32):
        return np.uint32((int(word) + step * _KEY_STEPS[which]) & _MASK32)
    return word + np.uint32((step * _KEY_STEPS[which]) & _MASK32)


def _low(wide: Any) -> Any:
    return wide.astype(np.uint32)


def _high(wide: Any) -> Any:
    return (wide >> np.uint64(32)).astype(np.uint32)
