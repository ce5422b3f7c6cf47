"""Records the graphs and values that TensorFlow gives for the cases of library sugar (tests/library/sugar).

    python tests/golden/record_sugar.py [family ...]

Run where TensorFlow is installed; nothing of thalweg is imported. Writes tests/golden/data/sugar_<family>.json.
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import sys
from typing import Any

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
CASES = HERE.parent / "library" / "sugar"
sys.path.insert(0, str(CASES))

import graph_text  # noqa: E402
import inputs  # noqa: E402

MAX_RECORDED = 64  # elements of a value


def load(path: pathlib.Path) -> Any:
    """A file of cases as a module."""
    spec = importlib.util.spec_from_file_location(f"sugar_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(tf: Any, attr: Any) -> Any:
    """An AttrValue as graph_text takes it."""
    kind = attr.WhichOneof("value")
    if kind == "list":
        field = next((f for f, v in attr.list.ListFields()), None)
        if field is None:
            return []
        values = list(getattr(attr.list, field.name))
        return [plain_one(tf, {"s": "s", "i": "i", "f": "f", "b": "b"}.get(field.name, field.name), v) for v in values]
    return plain_one(tf, kind, getattr(attr, kind))


def plain_one(tf: Any, kind: str, v: Any) -> Any:
    if kind == "type":
        return tf.as_dtype(v).name
    if kind == "shape":
        return None if v.unknown_rank else [d.size if d.size >= 0 else None for d in v.dim]
    if kind == "tensor":
        return tf.make_ndarray(v)
    if kind == "func":
        return v.name
    return v


def node_text(tf: Any, op: Any) -> str:
    """One operation of a TensorFlow graph as text."""
    definition = op.op_def
    inferred = {a.type_attr for a in definition.input_arg} | {a.number_attr for a in definition.input_arg}
    inferred |= {a.type_list_attr for a in definition.input_arg}
    defaults = {a.name: a.default_value for a in definition.attr if a.HasField("default_value")}
    attrs = {}
    for key, attr in op.node_def.attr.items():
        if key in inferred or (key in defaults and defaults[key] == attr):
            continue
        if (op.type == "Const" and key == "dtype") or key == "_has_manual_control_dependencies":
            continue
        attrs[key] = plain(tf, attr)
    names = [t.name for t in op.inputs] + [f"^{c.name}" for c in op.control_inputs]
    return graph_text.node(op.name, op.type, names, attrs)


def flat(value: Any) -> list[Any]:
    """The tensors and operations in a result."""
    if isinstance(value, list | tuple) and not hasattr(value, "dtype"):
        return [t for v in value for t in flat(v)]
    if hasattr(value, "indices") and hasattr(value, "values"):
        return [value.indices, value.values] + ([] if value.dense_shape is None else [value.dense_shape])
    return [] if value is None else [value]


def run(tf: Any, code: str) -> dict[str, Any]:
    """What a case gives: graph, result's names, types and shapes, values; or the class of its error."""
    names = inputs.used(code)
    with tf.Graph().as_default() as graph:
        scope = {"tf": tf, "np": np}
        feeds = {}
        for name in names:
            kind, shape, fed = inputs.INPUTS[name]
            scope[name] = tf.placeholder(kind, shape, name=name)
            feeds[scope[name]] = fed
        try:
            if code.startswith("r = "):
                exec(code, scope)
                result = scope["r"]
            else:
                result = eval(code, scope)
        except Exception as e:
            return {"error": type(e).__name__, "message": str(e)[:200]}
        lines = [graph_text.known_shapes(node_text(tf, op)) for op in graph.get_operations() if op.name not in names]
        record: dict[str, Any] = {"graph": lines}
        tensors = flat(result)
        if any(not hasattr(t, "name") for t in tensors):
            record["plain"] = repr(result)
            return record
        record["result"] = [
            graph_text.known_shapes(t.name) + f" {t.dtype.name} {graph_text.value(None if t.shape.rank is None else t.shape.as_list())}"
            if hasattr(t, "dtype")
            else t.name
            for t in tensors
        ]
        if not any(op.op_def.is_stateful and op.type != "Placeholder" for op in graph.get_operations()):
            record["values"] = values(tf, tensors, feeds)
        return record


def values(tf: Any, tensors: list[Any], feeds: dict[Any, Any]) -> Any:
    """The values of a result, as nested lists; None for those that are too large or don't compute."""
    try:
        with tf.Session() as session:
            computed = session.run([t for t in tensors if hasattr(t, "dtype")], feeds)
    except Exception as e:
        return type(e).__name__
    return [encode(np.asarray(v)) for v in computed]


def encode(v: np.ndarray) -> Any:
    if v.size > MAX_RECORDED:
        return None
    if v.dtype.kind == "c":
        return [[float(f"{e:.7g}") for e in (c.real, c.imag)] for c in v.ravel()]
    if v.dtype.kind in "OS":
        return np.array([b.decode() for b in v.ravel()], object).reshape(v.shape).tolist()
    if v.dtype.kind in "fV":
        return json.loads(json.dumps(np.vectorize(lambda f: float(f"{float(f):.7g}"))(v).tolist())) if v.size else v.tolist()
    return v.tolist()


def main() -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    for path in sorted(CASES.glob("cases_*.py")):
        family = path.stem.removeprefix("cases_")
        if sys.argv[1:] and family not in sys.argv[1:]:
            continue
        module = load(path)
        records = {code: run(tf, code) for code in module.CASES}
        text = ",\n".join(f"{json.dumps(code)}: {json.dumps(record)}" for code, record in records.items())
        (HERE / "data" / f"sugar_{family}.json").write_text("{\n" + text + "\n}\n")
        print(family, len(records), "cases")


if __name__ == "__main__":
    main()
