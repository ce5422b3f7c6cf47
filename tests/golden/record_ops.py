"""Records what TensorFlow gives for the op rows (tests/rows). Run where TensorFlow is installed:

    python tests/golden/record_ops.py [family ...]

Writes tests/golden/data/ops_<family>.npz: outputs, static shapes, gradients or error classes, per row.
Nothing of thalweg is imported.
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import sys
from typing import Any

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROWS = HERE.parent / "rows"
sys.path.insert(0, str(ROWS))
sys.path.insert(0, str(HERE))

import arrays  # noqa: E402
from row import Row, weights  # noqa: E402


def load(family: str) -> list[Row]:
    """The rows of one file."""
    spec = importlib.util.spec_from_file_location(f"rows_{family}", ROWS / f"{family}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows: list[Row] = module.ROWS
    names = [r.name for r in rows]
    double = {n for n in names if names.count(n) > 1}
    if double:
        raise ValueError(f"rows/{family}.py: two rows are called {sorted(double)}")
    return rows


def run(tf: Any, row: Row) -> tuple[dict[str, Any], list[np.ndarray]]:
    """What a row gives: a description, and the arrays that it refers to by position."""
    from tensorflow.python.framework import op_def_library  # raw_ops renames some arguments

    stored: list[np.ndarray] = []
    with tf.Graph().as_default():
        try:
            fed: dict[Any, Any] = {}
            flat: list[Any] = []
            arguments = []
            for i, value in enumerate(row.inputs):
                many = value if isinstance(value, list) else [value]
                tensors = []
                for v in many:
                    v = np.asarray(v)
                    kind = tf.string if v.dtype == object else tf.as_dtype(v.dtype)
                    if i in row.const:
                        tensors.append(tf.constant(v, kind))
                    else:
                        tensors.append(tf.placeholder(kind, v.shape))
                        fed[tensors[-1]] = v
                flat.extend(tensors)
                arguments.append(tensors if isinstance(value, list) else tensors[0])
            names = argument_names(row.op)
            kinds = attr_kinds(row.op)
            attrs = {k: as_dtypes(tf, v) if "type" in kinds[k] else v for k, v in row.attrs.items()}
            defaults = dict.fromkeys(with_defaults(row.op))
            inputs = dict(zip(names, arguments, strict=True))
            result = op_def_library.apply_op(row.op, **inputs, **{**defaults, **attrs})
            op = first_op(tf, result)
            outputs = list(op.outputs)
            shapes = [None if t.shape.rank is None else t.shape.as_list() for t in outputs]
            gradients = gradient_tensors(tf, row, outputs, flat)
            with tf.Session() as session:
                values = session.run(outputs, fed)
                grads = session.run([g for g in gradients if g is not None], fed)
        except Exception as e:
            if row.error is None:
                raise
            return {"error": type(e).__name__, "message": str(e)[:300]}, []
    if row.error is not None:
        raise AssertionError(f"{row.name}: expected {row.error}, TensorFlow gave values")
    stored.extend(np.asarray(v) for v in values)
    stored.extend(np.asarray(g) for g in grads)
    present = [g is not None for g in gradients]
    return {"outputs": len(values), "shapes": shapes, "gradients": present}, stored


def argument_names(op: str) -> list[str]:
    """The input names of an op, in order."""
    from tensorflow.python.framework import op_def_registry

    return [a.name for a in op_def_registry.get(op).input_arg]


def with_defaults(op: str) -> list[str]:
    """The attributes of an op that have a default value and don't follow from its inputs."""
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(op)
    inferred = {n for a in definition.input_arg for n in (a.type_attr, a.number_attr, a.type_list_attr)}
    return [a.name for a in definition.attr if a.HasField("default_value") and a.name not in inferred]


def attr_kinds(op: str) -> dict[str, str]:
    """The type of each attribute of an op."""
    from tensorflow.python.framework import op_def_registry

    return {a.name: a.type for a in op_def_registry.get(op).attr}


def as_dtypes(tf: Any, value: Any) -> Any:
    """dtype names as dtypes."""
    return [tf.as_dtype(v) for v in value] if isinstance(value, (list, tuple)) else tf.as_dtype(value)


def first_op(tf: Any, result: Any) -> Any:
    """The operation that made the outputs; the first of them may be empty lists."""
    if isinstance(result, (list, tuple)):
        return next((op for r in result if (op := first_op(tf, r)) is not None), None)
    return result if isinstance(result, tf.Operation) else result.op


def gradient_tensors(tf: Any, row: Row, outputs: list[Any], flat: list[Any]) -> list[Any]:
    """tf.gradients of the weighted floating outputs, dense, for each position of row.grad."""
    real = [t for t in outputs if t.dtype.is_floating or t.dtype.is_complex]
    positions = row.grad
    if positions is None:
        positions = tuple(i for i, t in enumerate(flat) if t.dtype.is_floating or t.dtype.is_complex)
    if not real or not positions:
        return []
    ys = [tf.constant(weights(tuple(t.shape.as_list())), t.dtype) if t.shape.is_fully_defined()
          else tf.ones_like(t) for t in real]
    grads = tf.gradients(real, [flat[i] for i in positions], grad_ys=ys)
    return [None if g is None else tf.convert_to_tensor(g) for g in grads]


def main() -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    families = sys.argv[1:] or sorted(p.stem for p in ROWS.glob("*.py") if p.stem not in ("row", "__init__"))
    for family in families:
        index: dict[str, Any] = {}
        data: dict[str, np.ndarray] = {}
        for row in load(family):
            try:
                description, stored = run(tf, row)
            except Exception as e:
                raise RuntimeError(f"row {row.name} of {family}: {e}") from e
            index[row.name] = description
            for i, array in enumerate(stored):
                data[f"{row.name}/{i}"] = array
        path = HERE / "data" / f"ops_{family}.npz"
        arrays.save(path, data, {"rows": index, "tensorflow": tf.__version__})
        print(f"{family}: {len(index)} rows, {path.stat().st_size} bytes")
        for name, description in index.items():
            if "error" in description:
                print(f"  {name}: {description['error']}: {json.dumps(description['message'])[:120]}")


if __name__ == "__main__":
    main()
