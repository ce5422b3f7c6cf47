"""Records what TensorFlow's optimizer ops make of variables. Run where TensorFlow is installed:

    python tests/golden/record_training_ops.py

Writes tests/golden/data/training_ops.npz: for each case its inputs and the new values of its variables. Every
case runs on reference and on resource variables (where both ops exist), which must agree. Nothing of thalweg
is imported.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
from typing import Any

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import arrays  # noqa: E402

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


def op_names(registry: Any) -> list[str]:
    """Every optimizer op, the one on reference variables where there is one."""
    names = [n for n in registry if re.match(r"(Resource)?(Sparse)?Apply", n)]
    return sorted(n for n in names if not n.startswith("Resource") or n[len("Resource") :] not in names)


def cases(op_def: Any) -> list[tuple[str, str, dict[str, Any], list[int]]]:
    """(id, dtype, overrides, indices) of every case of an op."""
    rows = [3, 0, 2] if "Sparse" in op_def.name else []
    result: list[tuple[str, str, dict[str, Any], list[int]]] = [
        ("float32", "float32", {}, rows),
        ("float64", "float64", {}, rows),
    ]
    if not rows and not re.search("AdagradDA|Proximal", op_def.name):  # they have no half kernels
        result.append(("half", "float16", {}, rows))
    if rows:
        result.append(("again", "float32", {}, [1, 3, 1, 1]))
    known = {a.name for a in op_def.input_arg} | {a.name for a in op_def.attr}
    for i, (pattern, overrides) in enumerate(VARIANTS):
        if re.search(pattern, op_def.name) and overrides.keys() <= known:
            result.append((f"variant{i}", "float32", overrides, rows))
    return result


def inputs_of(op_def: Any, dtype: str, overrides: dict[str, Any], rows: list[int]) -> dict[str, np.ndarray]:
    """The value of each input: variables and gradients are matrices, the rest scalars."""
    rng = np.random.default_rng(7)
    values: dict[str, np.ndarray] = {}
    for arg in op_def.input_arg:
        if arg.name == "indices":
            values[arg.name] = np.array(rows, np.int32)
        elif arg.name == "global_step":
            values[arg.name] = np.array(SCALARS[arg.name], np.int64)
        elif arg.name in SCALARS:
            values[arg.name] = np.array(overrides.get(arg.name, SCALARS[arg.name]), dtype)
        elif arg.name in ("grad", "delta"):
            values[arg.name] = (rng.random((len(rows) or 4, 3)) * 4 - 2).astype(dtype)
        elif arg.name in ("var", "m", "mom", "linear", "gradient_accumulator"):
            values[arg.name] = (rng.random((4, 3)) * 4 - 2).astype(dtype)
        elif arg.name == "mg":  # ms - mg^2 is a variance
            values[arg.name] = (rng.random((4, 3)) * 0.2).astype(dtype)
        else:
            values[arg.name] = (rng.random((4, 3)) + 0.5).astype(dtype)
    return values


def run(tf: Any, name: str, slots: list[str], values: dict[str, np.ndarray], attrs: dict[str, Any]) -> list[Any]:
    """The new values of the variables."""
    resource = name.startswith("Resource")
    raw = tf.raw_ops
    with tf.Graph().as_default(), tf.Session() as session:
        arguments: dict[str, Any] = dict(values)
        for slot in slots:
            value = values[slot]
            if resource:
                handle = raw.VarHandleOp(dtype=value.dtype, shape=value.shape, shared_name=slot)
                session.run(raw.AssignVariableOp(resource=handle, value=value))
                arguments[slot] = handle
            else:
                reference = raw.VariableV2(dtype=value.dtype, shape=value.shape, shared_name=slot)
                session.run(raw.Assign(ref=reference, value=value))
                arguments[slot] = reference
        session.run(getattr(raw, name)(**arguments, **attrs))
        reads = [
            raw.ReadVariableOp(resource=arguments[s], dtype=values[s].dtype) if resource else arguments[s]
            for s in slots
        ]
        return session.run(reads)


def main() -> None:
    import tensorflow.compat.v1 as tf
    from tensorflow.python.framework import op_def_registry

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    index: dict[str, Any] = {}
    data: dict[str, np.ndarray] = {}
    for name in op_names(dir(tf.raw_ops)):
        op_def = op_def_registry.get(name)
        plain = {"indices", "grad", "delta", *SCALARS}
        slots = [a.name for a in op_def.input_arg if a.name not in plain]
        for case, dtype, overrides, rows in cases(op_def):
            values = inputs_of(op_def, dtype, overrides, rows)
            attrs = {k: v for k, v in overrides.items() if k not in SCALARS}
            results = run(tf, name, slots, values, attrs)
            if not name.startswith("Resource"):
                for a, b in zip(results, run(tf, f"Resource{name}", slots, values, attrs), strict=True):
                    np.testing.assert_array_equal(a, b, f"{name}.{case}")
            index[f"{name}.{case}"] = {"op": name, "attrs": attrs, "inputs": list(values), "slots": slots}
            data.update({f"{name}.{case}/in/{k}": v for k, v in values.items()})
            data.update({f"{name}.{case}/out/{k}": v for k, v in zip(slots, results, strict=True)})
    path = HERE / "data" / "training_ops.npz"
    arrays.save(path, data, {"cases": index, "tensorflow": tf.__version__})
    print(f"{len(index)} cases, {path.stat().st_size} bytes", json.dumps(sorted({v["op"] for v in index.values()})))


if __name__ == "__main__":
    main()
