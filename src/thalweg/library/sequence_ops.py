"""Numbers in a row: range and linspace."""

from __future__ import annotations

from typing import Any

from thalweg.base import dtypes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import scope
from thalweg.library.casting import cast

_WIDENING = [
    dtypes.int32,
    dtypes.int64,
    dtypes.float16,
    dtypes.bfloat16,
    dtypes.float32,
    dtypes.float64,
]


def range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = "range"
) -> Tensor:
    """start, start + delta ... below limit; range(limit) starts at 0.

    dtype: of the result; the widest of the arguments' types where not given.
    """
    if limit is None:
        start, limit = 0, start
    with scope(name, "Range") as named:
        wanted = None if dtype is None else dtypes.as_dtype(dtype)
        parts = [
            v if isinstance(v, Tensor) else convert_to_tensor(v, wanted, name=n)
            for v, n in ((start, "start"), (limit, "limit"), (delta, "delta"))
        ]
        if wanted is None:
            kinds = [t.dtype.base_dtype for t in parts]
            for kind in kinds:
                if kind not in _WIDENING:
                    raise TypeError(f"range takes integers or floats, got {kind.name}")
            wanted = max(kinds, key=_WIDENING.index)
        return emit("Range", *(cast(t, wanted) for t in parts), name=named)


def linspace(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """num numbers from start to stop, both included, at equal distances."""
    return emit("LinSpace", start, stop, num, name=name)


lin_space = linspace
