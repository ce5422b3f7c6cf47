"""Records TensorFlow's definitions of the ops that thalweg has. Run with an interpreter that has TensorFlow:

    thalweg ops | python tests/golden/record_opdefs.py

Names that TensorFlow doesn't know are left out. Writes tests/golden/data/opdefs.json.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent


def plain(value: Any) -> Any:
    """An AttrValue as JSON."""
    from tensorflow.python.framework import dtypes

    kind = value.WhichOneof("value")
    if kind == "list":
        fields = value.list.ListFields()
        return [] if not fields else [item(fields[0][0].name, v) for v in fields[0][1]]
    raw = getattr(value, kind)
    return item(kind, raw) if kind != "type" else dtypes.as_dtype(raw).name


def item(kind: str, raw: Any) -> Any:
    from tensorflow.python.framework import dtypes

    if kind == "type":
        return dtypes.as_dtype(raw).name
    if kind == "s":
        return raw.decode()
    if kind == "tensor":
        from tensorflow.python.framework import tensor_util

        array = tensor_util.MakeNdarray(raw)
        return {"dtype": array.dtype.name, "value": array.tolist()}
    if kind == "shape":
        return {"unknown_rank": True} if raw.unknown_rank else {"dim": [d.size for d in raw.dim]}
    return raw


def arg(a: Any) -> dict[str, Any]:
    from tensorflow.python.framework import dtypes

    result: dict[str, Any] = {"name": a.name}
    if a.type:
        result["type"] = dtypes.as_dtype(a.type).name
    for key in ("type_attr", "number_attr", "type_list_attr"):
        if getattr(a, key):
            result[key] = getattr(a, key)
    if a.is_ref:
        result["is_ref"] = True
    return result


def attr(a: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"name": a.name, "type": a.type}
    if a.HasField("default_value"):
        result["default"] = plain(a.default_value)
    if a.has_minimum:
        result["minimum"] = a.minimum
    if a.HasField("allowed_values"):
        result["allowed"] = plain(a.allowed_values)
    return result


def main() -> None:
    import tensorflow  # noqa: F401
    from tensorflow.python.framework import op_def_registry

    found = {}
    for name in sorted(sys.stdin.read().split()):
        definition = op_def_registry.get(name)
        if definition is None:
            continue
        found[name] = {
            "inputs": [arg(a) for a in definition.input_arg],
            "outputs": [arg(a) for a in definition.output_arg],
            "attrs": [attr(a) for a in definition.attr],
            "is_stateful": definition.is_stateful,
            "is_commutative": definition.is_commutative,
            "allows_uninitialized_input": definition.allows_uninitialized_input,
        }
    path = HERE / "data" / "opdefs.json"
    path.write_text(json.dumps(found, sort_keys=True, separators=(",", ":")) + "\n")
    print(f"{len(found)} definitions, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
