"""Between a queue's elements and arrays: single components, batches, padded batches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from thalweg.runtime.queue_stores import Element


def components_of(element: Element) -> list[np.ndarray]:
    """The components of one element, as arrays."""
    components, i = element
    if i < 0:
        return list(components)
    return [c[i, ...] for c in components]


def stacked(elements: list[Element], component: int, shape: Any, dtype: np.dtype) -> np.ndarray:
    """One component of all elements, all of one shape, along a new first dimension. Not to be changed: where
    the elements are one whole batch, it is that batch."""
    at, n = 0, len(elements)
    out = _whole(elements, component)
    if out is not None:
        return out
    out = _aligned((n, *shape), dtype)
    while at < n:
        components, i = elements[at]
        array = components[component]
        if i < 0:
            out[at, ...] = array
            at += 1
            continue
        end = at + 1  # neighbours from the same batch are copied together
        while end < n and elements[end][0] is components and elements[end][1] == i + end - at:
            end += 1
        out[at:end] = array[i : i + end - at]
        at = end
    return out


def _whole(elements: list[Element], component: int) -> np.ndarray | None:
    """The batch that the elements are, in order, if they are one."""
    if not elements:
        return None
    components, first = elements[0]
    if first != 0 or len(components[component]) != len(elements):
        return None
    if any(c is not components or i != at for at, (c, i) in enumerate(elements)):
        return None
    return components[component]


#: XLA reads NumPy memory that is aligned so in place; other memory it copies
_ALIGNMENT = 64


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An empty array in memory that XLA reads in place."""
    nbytes = math.prod(shape) * dtype.itemsize
    if dtype.kind == "O" or nbytes < 1 << 14:
        return np.empty(shape, dtype)
    memory = np.empty(nbytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + nbytes].view(dtype).reshape(shape)


def padded(elements: list[Element], component: int, shape: Any, dtype: np.dtype) -> np.ndarray:
    """As stacked, for elements of different sizes: padded at the end with zeros (empty strings)."""
    arrays = [c[component] if i < 0 else c[component][i, ...] for c, i in elements]
    dims = []
    for axis, declared in enumerate(shape):
        sizes = [a.shape[axis] for a in arrays]
        dims.append(max(sizes, default=0) if declared is None else declared)
    out = np.full((len(arrays), *dims), b"" if dtype.kind == "O" else 0, dtype)
    for row, array in zip(out, arrays, strict=True) if dims else ():
        row[tuple(slice(0, d) for d in array.shape)] = array
    if not dims:
        for i, array in enumerate(arrays):
            out[i, ...] = array
    return out
