"""Loading op rows and what TensorFlow gave for them."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from typing import Any

import numpy as np

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "rows"), str(TESTS / "golden")]

import arrays  # noqa: E402


def families() -> list[str]:
    """The files of rows."""
    return sorted(p.stem for p in (TESTS / "rows").glob("*.py") if p.stem not in ("row", "__init__"))


def load(family: str) -> list[tuple[Any, dict[str, Any], list[np.ndarray]]]:
    """(row, description, arrays) for every row of a family, as recorded from TensorFlow."""
    spec = importlib.util.spec_from_file_location(f"rows_{family}", TESTS / "rows" / f"{family}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    data, meta = arrays.load(TESTS / "golden" / "data" / f"ops_{family}.npz")
    result = []
    for row in module.ROWS:
        description = meta["rows"].get(row.name, {"missing": True})
        stored = []
        while f"{row.name}/{len(stored)}" in data:
            stored.append(data[f"{row.name}/{len(stored)}"])
        result.append((row, description, stored))
    return result
