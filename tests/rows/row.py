"""The form of an op row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """One call of one op.

    inputs: one value per input argument: a NumPy array (its dtype is the tensor's; dtype=object for bytes),
        or a list of arrays for a list argument. bfloat16 arrays: ml_dtypes.bfloat16.
    attrs: by name, as tf.raw_ops takes them; dtypes as strings ("float32").
    id: tells rows of one op apart in test names and in the golden file; unique within an op.
    const: positions of arguments given as constants; the others are fed through placeholders.
    grad: positions (in the flat list of input tensors) that get a gradient; None: every floating input,
        () none. Gradients are taken of all floating outputs, weighted by `weights(shape)`.
    outputs: positions of outputs compared; None: all.
    error: the name of the error class that running (or building) must raise, in place of values.
    """

    op: str
    inputs: list[Any] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    const: tuple[int, ...] = ()
    grad: tuple[int, ...] | None = None
    outputs: tuple[int, ...] | None = None
    rtol: float = 1e-5
    atol: float = 1e-6
    error: str | None = None

    @property
    def name(self) -> str:
        """Unique among all rows."""
        return f"{self.op}.{self.id}" if self.id else self.op


def weights(shape: tuple[int, ...]) -> np.ndarray:
    """Fixed, uneven weights for the outputs whose gradient is taken."""
    n = int(np.prod(shape, dtype=np.int64))
    return (np.cos(np.arange(n) * 1.7) + 0.3).reshape(shape)


def floats(*shape: int, low: float = -2.0, high: float = 2.0, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Reproducible numbers between low and high."""
    rng = np.random.default_rng(seed)
    return (rng.random(shape) * (high - low) + low).astype(dtype)


def ints(*shape: int, low: int = -5, high: int = 6, dtype: Any = np.int32, seed: int = 0) -> np.ndarray:
    """Reproducible integers in [low, high)."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)
