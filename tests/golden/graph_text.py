"""Graphs as plain values, the same for TensorFlow's and thalweg's GraphDef messages.

A node is [name, op, inputs, device, attributes]; attributes that have their default value are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

Node = list[Any]
DefaultOf = Callable[[str, str], Any]  # (op type, attribute) -> AttrValue or None

_LONG = 12  # elements of a constant that are written out


def nodes(graph_def: Any, default_of: DefaultOf, to_array: Callable[[Any], np.ndarray]) -> list[Node]:
    """The nodes of a GraphDef in its order. to_array: makes an array of a TensorProto."""
    return [
        [
            n.name,
            n.op,
            list(n.input),
            n.device,
            {
                key: value
                for key in sorted(n.attr)
                if (value := attribute(n.attr[key], to_array)) != _plain(default_of(n.op, key), to_array)
            },
        ]
        for n in graph_def.node
    ]


def _plain(default: Any, to_array: Callable[[Any], np.ndarray]) -> Any:
    return None if default is None else attribute(default, to_array)


def attribute(value: Any, to_array: Callable[[Any], np.ndarray]) -> Any:
    """An AttrValue as a plain value that says its kind."""
    kind = value.WhichOneof("value")
    if kind == "list":
        found = [(f, list(getattr(value.list, f))) for f in ("s", "i", "f", "b", "type", "shape", "tensor", "func")]
        return [_field(f, v, to_array) for f, items in found for v in items]
    return _field(kind, getattr(value, kind) if kind else None, to_array)


def _field(kind: Any, value: Any, to_array: Callable[[Any], np.ndarray]) -> Any:
    if kind == "s":
        return value.decode("latin1")
    if kind == "type":
        return f"type {value}"
    if kind == "f":
        return float(np.float32(value))
    if kind == "shape":
        return _shape(value)
    if kind == "tensor":
        return _constant(to_array(value))
    if kind == "func":
        return f"function {value.name}"
    return value


def _shape(shape: Any) -> str:
    if shape.unknown_rank:
        return "shape ?"
    return "shape [" + ",".join("?" if d.size < 0 else str(d.size) for d in shape.dim) + "]"


def _constant(array: np.ndarray) -> str:
    array = np.asarray(array)
    if array.dtype.kind in "OSU":
        shown = [v if isinstance(v, bytes) else str(v).encode() for v in array.flat]
        return f"string {list(array.shape)} {shown}"
    if array.size and (array == array.flat[0]).all() and array.size > 1:
        return f"{array.dtype.name} {list(array.shape)} all {array.flat[0]}"
    if array.size > _LONG:
        digest = hashlib.sha1(np.ascontiguousarray(array).tobytes()).hexdigest()[:12]
        return f"{array.dtype.name} {list(array.shape)} sha1 {digest}"
    return f"{array.dtype.name} {list(array.shape)} {[str(v) for v in array.flat]}"


def shorten(recorded: dict[str, dict[str, Any]]) -> None:
    """Replaces nodes that an earlier program has too by the number of program and node, in place."""
    seen: dict[str, list[int]] = {}
    for p, graph in enumerate(recorded.values()):
        for n, node in enumerate(graph["nodes"]):
            first = seen.setdefault(repr(node), [p, n])
            if first != [p, n]:
                graph["nodes"][n] = first


def expand(recorded: dict[str, dict[str, Any]]) -> None:
    """Undoes `shorten`."""
    graphs = list(recorded.values())
    for graph in graphs:
        graph["nodes"] = [
            graphs[node[0]]["nodes"][node[1]] if isinstance(node[0], int) else node for node in graph["nodes"]
        ]


def collections(graph: Any) -> dict[str, list[str]]:
    """The names of what is in each public collection, in order."""
    result = {}
    for key in sorted(graph.get_all_collection_keys()):
        if not key.startswith("_"):
            result[key] = [getattr(v, "name", str(v)) for v in graph.get_collection(key)]
    return result
