"""A graph as text, one node a line, the same for TensorFlow's GraphDefs and for thalweg's graphs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np


def node(name: str, op: str, inputs: list[str], attrs: dict[str, Any]) -> str:
    """`name = Op(inputs) attr=value ...`; attrs holds what differs from the default, in plain Python values."""
    shown = "".join(f" {k}={value(v)}" for k, v in sorted(attrs.items()))
    return f"{name} = {op}({', '.join(i.removesuffix(':0') for i in inputs)}){shown}"


def value(v: Any) -> str:
    """An attribute: numbers, strings, lists, arrays, shapes as tuples, types by name."""
    if isinstance(v, np.ndarray):
        flat = [v_.decode() if isinstance(v_, bytes) else number(v_) for v_ in v.ravel()[:12]]
        kind = "string" if v.dtype == object else v.dtype.name
        same = v.size > 1 and len(set(map(str, v.ravel()))) == 1
        shown = f"{flat[0]}..." if same else " ".join(map(str, flat)) + (" ..." if v.size > 12 else "")
        return f"{kind}{list(v.shape)}[{shown}]"
    if isinstance(v, bytes):
        return repr(v.decode())
    if isinstance(v, list | tuple):
        return "[" + " ".join(value(e) for e in v) + "]"
    if v is None:
        return "?"
    return str(number(v))


def number(v: Any) -> Any:
    """Floats with seven digits, so that float32 values read the same from both sides."""
    if isinstance(v, float | np.floating):
        return f"{float(v):.6g}"
    if isinstance(v, np.generic):
        return v.item() if v.dtype.kind in "biu" else str(v)
    return v


def known_shapes(text: str) -> str:
    """The constant of a known shape is "Shape" in TensorFlow 1.x and "Shape/shape_as_tensor" later: the same here."""
    return re.sub(r"\b(\w*Shape(_\d+)?)/shape_as_tensor\b", r"\1", text)
