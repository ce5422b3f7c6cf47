"""The cases on which optimizer ops are compared with TensorFlow's: made here, for who records and who tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

SCALARS = {
    "lr": 0.3, "alpha": 0.3, "beta1_power": 0.9**3, "beta2_power": 0.999**3, "beta1": 0.9, "beta2": 0.999,
    "epsilon": 1e-3, "rho": 0.9, "momentum": 0.8, "l1": 0.05, "l2": 0.2, "l2_shrinkage": 0.1, "lr_power": -0.5,
    "sign_decay": 0.7, "beta": 0.9, "logbase": 1.0, "global_step": 4,
}  # fmt: skip
#: (part of the op's name, what differs from the plain case)
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("Adam$|Momentum", {"use_nesterov": True}),
    ("Adagrad(V2)?$", {"update_slots": False}),
    ("Proximal|AdagradDA", {"l1": 0.0}),
    ("Ftrl", {"lr_power": -0.7}),
    ("Ftrl", {"multiply_linear_by_lr": True}),
    ("Ftrl", {"multiply_linear_by_lr": True, "lr_power": -0.7}),
    ("Ftrl", {"l1": 5.0}),
]


def cases(op: str, names: set[str]) -> list[tuple[str, str, dict[str, Any], list[int]]]:
    """(id, dtype, overrides, indices) of every case of an op with inputs and attributes of these names."""
    rows = [3, 0, 2] if "Sparse" in op else []
    result: list[tuple[str, str, dict[str, Any], list[int]]] = [
        ("float32", "float32", {}, rows),
        ("float64", "float64", {}, rows),
    ]
    if not rows and not re.search("AdagradDA|Proximal", op):  # they have no half kernels
        result.append(("half", "float16", {}, rows))
    if rows:
        result.append(("again", "float32", {}, [1, 3, 1, 1]))
    for i, (pattern, overrides) in enumerate(VARIANTS):
        if re.search(pattern, op) and overrides.keys() <= names:
            result.append((f"variant{i}", "float32", overrides, rows))
    return result


def inputs_of(
    names: Sequence[str], dtype: str, overrides: dict[str, Any], rows: Sequence[int]
) -> dict[str, np.ndarray]:
    """The value of each input: variables and gradients are matrices, the rest scalars."""
    rng = np.random.default_rng(7)
    values: dict[str, np.ndarray] = {}
    for name in names:
        if name == "indices":
            values[name] = np.array(rows, np.int32)
        elif name == "global_step":
            values[name] = np.array(SCALARS[name], np.int64)
        elif name in SCALARS:
            values[name] = np.array(overrides.get(name, SCALARS[name]), dtype)
        elif name in ("grad", "delta"):
            values[name] = (rng.random((len(rows) or 4, 3)) * 4 - 2).astype(dtype)
        elif name in ("var", "m", "mom", "linear", "gradient_accumulator"):
            values[name] = (rng.random((4, 3)) * 4 - 2).astype(dtype)
        elif name == "mg":  # ms - mg^2 is a variance
            values[name] = (rng.random((4, 3)) * 0.2).astype(dtype)
        else:
            values[name] = (rng.random((4, 3)) + 0.5).astype(dtype)
    return values


def slots_of(names: Sequence[str]) -> list[str]:
    """The inputs that are variables."""
    return [n for n in names if n not in {"indices", "grad", "delta", *SCALARS}]
