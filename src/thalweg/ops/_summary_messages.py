"""What the kernels of summary ops share."""

from __future__ import annotations

from typing import Any

import numpy as np


def serialized(message: Any) -> np.ndarray:
    """A message as a scalar string tensor."""
    result = np.empty((), object)
    result[()] = message.SerializeToString()
    return result


def tag_of(tag: Any) -> str:
    """The text of a scalar string tensor. ValueError for other shapes."""
    if np.ndim(tag):
        raise ValueError(f"tag must be scalar, but its shape is {list(np.shape(tag))}")
    text: bytes = np.asarray(tag).item()
    return text.decode("utf-8", "replace")


def series_tag(tag: str, kind: str, i: int, limit: int) -> str:
    """The tag of element i of a batch: it depends on how many may be written, not on how many are."""
    return f"{tag}/{kind}/{i}" if limit > 1 else f"{tag}/{kind}"
