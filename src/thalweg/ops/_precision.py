"""Kernels of 16-bit floats computed in float32 and rounded once. Private to the op families."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax


def is_narrow(x: Any) -> bool:
    """Whether an array holds float16 or bfloat16."""
    dtype = np.dtype(x.dtype)
    return dtype.itemsize == 2 and (dtype.kind == "f" or dtype.name == "bfloat16")


def in_float32(fn: Callable[..., Any]) -> Callable[..., Any]:
    """fn on arrays of one type, in float32 where they are 16-bit floats; results have the first array's type.

    Arrays of other types (labels) are handed on as they are.
    """

    @functools.wraps(fn)
    def kernel(*arrays: Any, **attrs: Any) -> Any:
        first = arrays[0]
        if not is_narrow(first):
            return fn(*arrays, **attrs)
        wide = [lax.convert_element_type(a, np.float32) if a.dtype == first.dtype else a for a in arrays]
        result = fn(*wide, **attrs)
        if isinstance(result, tuple):
            return tuple(lax.convert_element_type(r, first.dtype) for r in result)
        return lax.convert_element_type(result, first.dtype)

    return kernel


def single(value: float) -> float:
    """A float attribute as kernels see it: NodeDefs hold float32."""
    return float(np.float32(value))
