"""Records what TensorFlow's optimizer ops make of variables. Run where TensorFlow is installed:

    python tests/golden/record_training_ops.py

Writes tests/golden/data/training_ops.npz: the new values of the variables of each case of training_cases.py.
Every case runs on reference and on resource variables (where both ops exist), which must agree. Nothing of
thalweg is imported.
"""

from __future__ import annotations

import pathlib
import re
import sys
from typing import Any

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import arrays  # noqa: E402
from training_cases import cases, inputs_of, slots_of  # noqa: E402


def op_names(registry: Any) -> list[str]:
    """Every optimizer op, the one on reference variables where there is one."""
    names = [n for n in registry if re.match(r"(Resource)?(Sparse)?Apply", n)]
    return sorted(n for n in names if not n.startswith("Resource") or n[len("Resource") :] not in names)


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
        names = [a.name for a in op_def.input_arg]
        slots = slots_of(names)
        for case, dtype, overrides, rows in cases(name, {*names, *(a.name for a in op_def.attr)}):
            values = inputs_of(names, dtype, overrides, rows)
            attrs = {k: v for k, v in overrides.items() if k not in names}
            results = run(tf, name, slots, values, attrs)
            if not name.startswith("Resource"):
                for a, b in zip(results, run(tf, f"Resource{name}", slots, values, attrs), strict=True):
                    np.testing.assert_array_equal(a, b, f"{name}.{case}")
            index.setdefault(name, []).append([case, dtype, overrides, rows])
            data[f"{name}.{case}"] = np.stack(results)
    path = HERE / "data" / "training_ops.npz"
    arrays.save(path, data, {"ops": index, "tensorflow": tf.__version__})
    print(f"{len(data)} cases of {len(index)} ops, {path.stat().st_size} bytes: {', '.join(index)}")


if __name__ == "__main__":
    main()
