"""What is in a graph file: summed up, as text, as a picture. Works on messages: no op needs to be built."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError
from tensorboard.compat.proto import graph_pb2, meta_graph_pb2, types_pb2

from thalweg.formats.protos.saved_model_pb2 import SavedModel
from thalweg.graph.registry import find

_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")
#: fed from outside
_INPUTS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")
#: what each variable has beside it
_UPKEEP = ("Assign", "AssignVariableOp", "IsVariableInitialized", "ReadVariableOp", "VarIsInitializedOp")
#: constants of more elements than this count as parameters
_LARGE = 16


@dataclass
class GraphFile:
    """A graph in a file, with what comes beside it in a MetaGraph."""

    title: str
    graph_def: Any
    signatures: dict[str, Any] = field(default_factory=dict)
    collections: dict[str, Any] = field(default_factory=dict)


def read(path: str) -> list[GraphFile]:
    """The graphs in a file: a GraphDef, a MetaGraph, or a SavedModel (its folder will do), binary or text.

    OSError where there is no file, ValueError where it holds none of these.
    """
    if os.path.isdir(path):
        inside = [os.path.join(path, n) for n in ("saved_model.pb", "saved_model.pbtxt")]
        found = [p for p in inside if os.path.exists(p)]
        if not found:
            raise ValueError(f"the folder {path} holds no saved_model.pb or saved_model.pbtxt")
        path = found[0]
    with open(path, "rb") as file:
        data = file.read()
    name = os.path.basename(path)
    kinds: list[Any] = [graph_pb2.GraphDef, meta_graph_pb2.MetaGraphDef, SavedModel]
    if name.endswith(".meta"):
        kinds = [kinds[1], kinds[0]]
    elif name.startswith("saved_model."):
        kinds = [kinds[2]]
    for kind in kinds:
        message = _parsed(kind, data)
        if message is not None:
            return list(_graphs(name, message))
    raise ValueError(f"{path} holds no GraphDef, MetaGraphDef or SavedModel")


def _parsed(kind: Any, data: bytes) -> Any:
    """The message, if data is one with something in it."""
    for parse in (lambda m: m.ParseFromString(data), lambda m: text_format.Parse(data.decode(), m)):
        message = kind()
        try:
            parse(message)
        except (DecodeError, UnicodeDecodeError, text_format.ParseError, RecursionError):
            continue
        holds = {"GraphDef": "node", "MetaGraphDef": "graph_def", "SavedModel": "meta_graphs"}[kind.__name__]
        if any(f.name == holds for f, _ in message.ListFields()):
            return message
    return None


def _graphs(name: str, message: Any) -> Iterator[GraphFile]:
    if isinstance(message, graph_pb2.GraphDef):
        yield GraphFile(name, message)
    elif isinstance(message, meta_graph_pb2.MetaGraphDef):
        yield GraphFile(name, message.graph_def, dict(message.signature_def), dict(message.collection_def))
    else:
        for meta_graph in message.meta_graphs:
            tags = ", ".join(meta_graph.meta_info_def.tags)
            yield GraphFile(
                f"{name} [{tags}]",
                meta_graph.graph_def,
                dict(meta_graph.signature_def),
                dict(meta_graph.collection_def),
            )


# ---- what nodes are --------------------------------------------------------------------------------------


def dtype_name(enum: int) -> str:
    """ "float" for DT_FLOAT."""
    return (
        types_pb2.DataType.Name(enum).removeprefix("DT_").lower()
        if enum in types_pb2.DataType.values()
        else str(enum)
    )


def shape_text(shape: Any) -> str:
    """ "[?, 3]"."""
    if shape.unknown_rank:
        return "?"
    return "[" + ", ".join("?" if d.size < 0 else str(d.size) for d in shape.dim) + "]"


def elements(shape: Any) -> int | None:
    """The number of elements, where it is known."""
    if shape.unknown_rank or any(d.size < 0 for d in shape.dim):
        return None
    n = 1
    for d in shape.dim:
        n *= d.size
    return n


def outputs(graph_def: Any) -> list[Any]:
    """The nodes that nobody uses, without what initialises and reads variables."""
    used = {i.lstrip("^").partition(":")[0] for n in graph_def.node for i in n.input}
    return [
        n
        for n in graph_def.node
        if n.name not in used and n.op not in (*_VARIABLES, *_INPUTS, *_UPKEEP, "Const")
    ]


def parameters(graph_def: Any) -> list[tuple[str, str, str, int | None]]:
    """(name, kind, type and shape, number of elements) of variables and of larger constants."""
    result = []
    for node in graph_def.node:
        if node.op in _VARIABLES:
            dtype, shape = node.attr["dtype"].type, node.attr["shape"].shape
        elif node.op == "Const":
            dtype, shape = node.attr["dtype"].type, node.attr["value"].tensor.tensor_shape
            if (elements(shape) or 0) <= _LARGE:
                continue
        else:
            continue
        kind = "constant" if node.op == "Const" else "variable"
        result.append((node.name, kind, f"{dtype_name(dtype)} {shape_text(shape)}", elements(shape)))
    return result


def op_counts(graph_def: Any) -> Counter[str]:
    """How many nodes there are of each op, those of functions included."""
    counts = Counter(n.op for n in graph_def.node)
    for function in graph_def.library.function:
        counts.update(n.op for n in function.node_def)
    return counts


def unknown_ops(graph_def: Any) -> list[str]:
    """The ops that thalweg doesn't have."""
    functions = {f.signature.name for f in graph_def.library.function}
    return sorted(op for op in op_counts(graph_def) if op not in functions and find(op) is None)


def as_text(graph_def: Any) -> Iterator[str]:
    """A line for each node, and for those of functions: name = Op(inputs) device."""
    yield from _lines(graph_def.node, "")
    for function in graph_def.library.function:
        signature = function.signature
        args = ", ".join(a.name for a in signature.input_arg)
        yield ""
        yield f"function {signature.name}({args}):"
        yield from _lines(function.node_def, "  ")
        yield f"  return {', '.join(f'{k}={v}' for k, v in sorted(function.ret.items()))}"


def _lines(nodes: Iterable[Any], indent: str) -> Iterator[str]:
    for node in nodes:
        device = f"  on {node.device}" if node.device else ""
        yield f"{indent}{node.name} = {node.op}({', '.join(node.input)}){_told(node)}{device}"


def _told(node: Any) -> str:
    """The attributes that say most."""
    parts = []
    for key in ("dtype", "T"):
        if key in node.attr and node.attr[key].type:
            parts.append(dtype_name(node.attr[key].type))
    if "shape" in node.attr and node.attr["shape"].WhichOneof("value") == "shape":
        parts.append(shape_text(node.attr["shape"].shape))
    if "value" in node.attr and node.attr["value"].WhichOneof("value") == "tensor":
        parts.append(shape_text(node.attr["value"].tensor.tensor_shape))
    parts += [f"{k}={v.func.name}" for k, v in sorted(node.attr.items()) if v.WhichOneof("value") == "func"]
    return "  " + " ".join(parts) if parts else ""


# ---- a picture -------------------------------------------------------------------------------------------

_COLORS = {"Const": "#eeeeee", **dict.fromkeys(_VARIABLES, "#ffe0b0"), **dict.fromkeys(_INPUTS, "#d0e8ff")}


def as_dot(graph_def: Any, limit: int) -> str:
    """The graph in graphviz's language: name scopes as boxes, control edges dotted.

    ValueError for more nodes than `limit`.
    """
    if len(graph_def.node) > limit:
        raise ValueError(f"{len(graph_def.node)} nodes are too many for a picture: at most {limit} (--limit)")
    lines = ["digraph {", "rankdir=BT; node [shape=box style=filled fillcolor=white fontsize=10 height=0.2];"]
    tree: dict[str, Any] = {}
    for i, node in enumerate(graph_def.node):
        *scopes, last = node.name.split("/")
        at = tree
        for scope in scopes:
            at = at.setdefault("/" + scope, {})
        color = _COLORS.get(node.op, "white")
        label = _quoted(last if last == node.op else "\n".join((last, node.op)))
        at[str(i)] = f'n{i} [label={label} fillcolor="{color}"];'
    lines += _boxes(tree, iter(range(len(graph_def.node) * 8)))
    number = {node.name: i for i, node in enumerate(graph_def.node)}
    for i, node in enumerate(graph_def.node):
        for text in node.input:
            source = number.get(text.lstrip("^").partition(":")[0])
            if source is not None:
                style = " [style=dotted]" if text.startswith("^") else ""
                back = " [constraint=false]" if graph_def.node[source].op == "NextIteration" else style
                lines.append(f"n{source} -> n{i}{back};")
    return "\n".join([*lines, "}"])


def _boxes(tree: dict[str, Any], numbers: Iterator[int], depth: int = 0) -> list[str]:
    lines = []
    for key, value in tree.items():
        if isinstance(value, str):
            lines.append(value)
        elif depth > 50:
            lines += _boxes(value, numbers, depth) if len(value) > 1 else []
        else:
            inner = _boxes(value, numbers, depth + 1)
            lines += [f"subgraph cluster_{next(numbers)} {{ label={_quoted(key[1:])};", *inner, "}"]
    return lines


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
