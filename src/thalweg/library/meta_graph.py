"""MetaGraphs: a graph with its collections, so that a program can go on where another stopped.

Source: TensorFlow's framework/meta_graph.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from google.protobuf import any_pb2, text_format
from google.protobuf.message import DecodeError, Message
from tensorboard.compat.proto import graph_pb2, meta_graph_pb2, op_def_pb2

from thalweg.graph import registry
from thalweg.graph.convert import get_default_graph
from thalweg.graph.graph import Graph
from thalweg.graph.graphdef import op_def_proto
from thalweg.graph.importer import import_graph_def
from thalweg.graph.tensor_proto import MAX_BYTES
from thalweg.library import context_protos as _
from thalweg.library import gfile, tf_logging
from thalweg.library import variable_protos as __
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.proto_functions import (
    collection_proto_type,
    from_proto_function,
    in_scope,
    prepend_name_scope,
    strip_name_scope,
    to_proto_function,
)

#: what a MetaGraph says of the program that wrote it
VERSION, GIT_VERSION = "1.15.5", "thalweg"

_UNBOUND = "$unbound_inputs_"
_FUNCTION_CALLS = ("PartitionedCall", "StatefulPartitionedCall")


# ---- files -----------------------------------------------------------------------------------------------


def read_meta_graph_file(filename: Any) -> Any:
    """The MetaGraphDef in a file, binary or text.

    OSError where there is no file, or it holds no MetaGraphDef, as TensorFlow.
    """
    path = os.fspath(filename)
    if not gfile.Exists(path):
        raise OSError(f"File {path} does not exist.")
    return parse_message(gfile.GFile(path, "rb").read(), meta_graph_pb2.MetaGraphDef, path)


def parse_message(data: bytes, kind: Any, path: str, text_only: bool = False) -> Any:
    """The message of a file's bytes, binary or else text. OSError that names the file."""
    message = kind()
    reason: Exception | None = None
    if not text_only:
        try:
            message.ParseFromString(data)
            return message
        except DecodeError as e:
            reason = e
    message = kind()
    try:
        text_format.Parse(data.decode(), message)
    except (UnicodeDecodeError, text_format.ParseError, RecursionError) as e:
        reason = e if reason is None or text_only else reason
        raise OSError(
            f"Cannot parse file {path}: {reason} ({len(data)} bytes are no {kind.__name__})"
        ) from None
    return message


def write_message(message: Message, path: str, as_text: bool = False) -> str:
    """Writes a message to a file, beside it first; returns the path. ValueError where it is over 2 GB."""
    data = text_format.MessageToString(message).encode() if as_text else serialized(message)
    aside = f"{path}.tmp{os.getpid()}"
    with gfile.GFile(aside, "wb") as file:
        file.write(data)
    gfile.Rename(aside, path, overwrite=True)
    return path


def serialized(message: Message) -> bytes:
    """The bytes of a message. ValueError where it is over 2 GB."""
    try:
        return message.SerializeToString(deterministic=True)
    except Exception as e:  # upb's error for what is too large has no class of its own
        raise ValueError(f"{type(message).__name__} cannot be larger than 2GB: {e}") from None


# ---- ops and attributes ----------------------------------------------------------------------------------


def ops_used_by_graph_def(graph_def: Any) -> list[str]:
    """The types of the ops of a graph and of the functions that it calls."""
    functions = {f.signature.name: f for f in graph_def.library.function}
    used: set[str] = set()
    pending: list[Any] = [graph_def.node]
    while pending:
        for node in pending.pop():
            names = [node.op]
            if node.op in _FUNCTION_CALLS:
                names.append(node.attr["f"].func.name)
            for name in names:
                if name in functions and name not in used:
                    pending.append(functions[name].node_def)
                used.add(name)
    return [op for op in used if op not in functions]


def stripped_op_list_for_graph(graph_def: Any) -> Any:
    """The definitions of the ops that a graph uses, as an OpList; without those that aren't registered."""
    records = (registry.find(op) for op in sorted(ops_used_by_graph_def(graph_def)))
    result = op_def_pb2.OpList()
    for record in records:
        if record is not None:
            proto = op_def_proto(record.definition)
            proto.summary = ""
            result.op.append(proto)
    return result


def strip_graph_default_valued_attrs(meta_graph_def: Any) -> None:
    """Drops the attributes that have their default, and notes that it was done."""
    functions = {f.signature.name for f in meta_graph_def.graph_def.library.function}
    defaults: dict[str, dict[str, Any]] = {}

    def strip(node: Any) -> None:
        if node.op in functions:
            return
        if node.op not in defaults:
            record = registry.find(node.op)
            attrs = [] if record is None else op_def_proto(record.definition).attr
            defaults[node.op] = {a.name: a.default_value for a in attrs if a.HasField("default_value")}
        for name, default in defaults[node.op].items():
            if name in node.attr and node.attr[name] == default:
                del node.attr[name]

    for node in meta_graph_def.graph_def.node:
        strip(node)
    for function in meta_graph_def.graph_def.library.function:
        for node in function.node_def:
            strip(node)
    meta_graph_def.meta_info_def.stripped_default_attrs = True


# ---- collections -----------------------------------------------------------------------------------------


def _kind(element: Any) -> str:
    """The field of CollectionDef for elements like this one."""
    if isinstance(element, str | bytes):
        return "bytes_list"
    if isinstance(element, int):
        return "int64_list"
    if isinstance(element, float):
        return "float_list"
    if isinstance(element, any_pb2.Any):
        return "any_list"
    return "node_list"


def _included(element: Any, export_scope: str | None, exclude_nodes: Iterable[str] | None) -> bool:
    """Whether a node (or what has its name) is exported."""
    name = element if isinstance(element, str) else getattr(element, "name", None)
    if not isinstance(name, str):
        return True  # numbers, bytes
    name = strip_name_scope(name, None).partition(":")[0]
    if exclude_nodes and name in exclude_nodes:
        return False
    return name.startswith(_UNBOUND) or in_scope(name, export_scope)


def add_collection_def(
    meta_graph_def: Any,
    key: Any,
    graph: Graph | None = None,
    export_scope: str | None = None,
    exclude_nodes: Iterable[str] | None = None,
    override_contents: Sequence[Any] | None = None,
) -> None:
    """Adds a collection to a MetaGraphDef. One that has no message form is left out, with a warning."""
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"graph must be of type Graph. Received type: {type(graph)}.")
    if not isinstance(key, str | bytes):
        tf_logging.warning(
            "Only collections with string type keys will be serialized. This key has %s", type(key)
        )
        return
    graph = graph or get_default_graph()
    elements = list(graph.get_collection(key) if override_contents is None else override_contents)
    elements = [e for e in elements if _included(e, export_scope, exclude_nodes)]
    if not elements:
        return
    proto = meta_graph_pb2.CollectionDef()
    try:
        _fill_collection(proto, str(key), elements, export_scope)
    except Exception as e:  # whatever a program put into its collections
        tf_logging.warning(
            "Issue encountered when serializing %s.\nType is unsupported, or the types of the items don't "
            "match field type in CollectionDef. Note this is a warning and probably safe to ignore.\n%s",
            key,
            e,
        )
        return
    meta_graph_def.collection_def[key].CopyFrom(proto)


def _fill_collection(proto: Any, key: str, elements: list[Any], export_scope: str | None) -> None:
    to_proto = to_proto_function(key)
    if to_proto is not None:
        proto.bytes_list.SetInParent()
        for element in elements:
            message = to_proto(element, export_scope=export_scope)
            if message is not None:
                if not isinstance(message, collection_proto_type(key)):
                    raise TypeError(f"to_proto gave a {type(message).__name__}")
                proto.bytes_list.value.append(message.SerializeToString(deterministic=True))
        return
    kind = _kind(elements[0])
    values = getattr(proto, kind).value
    if kind == "node_list":
        values.extend(
            strip_name_scope(e.name, export_scope) for e in elements if in_scope(e.name, export_scope)
        )
    elif kind == "bytes_list":
        values.extend(e if isinstance(e, bytes) else e.encode() for e in elements)
    else:
        values.extend(elements)


# ---- export ----------------------------------------------------------------------------------------------


def create_meta_graph_def(
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Sequence[Any] | None = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    exclude_nodes: Iterable[str] | None = None,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
) -> Any:
    """A MetaGraphDef of a graph and its collections.

    collection_list: the keys of the collections to take; all where None. clear_extraneous_savers: of the
    savers only the one in saver_def. TypeError for arguments of another kind.
    """
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"graph must be of type Graph. Received type: {type(graph)}.")
    if meta_info_def is not None and not isinstance(meta_info_def, meta_graph_pb2.MetaGraphDef.MetaInfoDef):
        raise TypeError(f"meta_info_def must be of type MetaInfoDef. Received type: {type(meta_info_def)}.")
    if graph_def is not None and not isinstance(graph_def, graph_pb2.GraphDef):
        raise TypeError(f"graph_def must be of type GraphDef. Received type: {type(graph_def)}.")
    graph = graph or get_default_graph()
    result = meta_graph_pb2.MetaGraphDef()
    if meta_info_def is not None:
        result.meta_info_def.CopyFrom(meta_info_def)
    result.meta_info_def.tensorflow_version = VERSION
    result.meta_info_def.tensorflow_git_version = GIT_VERSION
    result.graph_def.MergeFrom(graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def)
    if not result.meta_info_def.stripped_op_list.op:
        result.meta_info_def.stripped_op_list.MergeFrom(stripped_op_list_for_graph(result.graph_def))
    if strip_default_attrs:
        strip_graph_default_valued_attrs(result)
    if saver_def is not None:
        result.saver_def.MergeFrom(saver_def)
    for key in graph.get_all_collection_keys() if collection_list is None else collection_list:
        only = None
        if clear_extraneous_savers and key == GraphKeys.SAVERS:
            only = [] if saver_def is None else _savers_of(graph, saver_def)
        add_collection_def(result, key, graph, export_scope, exclude_nodes, only)
    return result


def _savers_of(graph: Graph, saver_def: Any) -> list[Any]:
    """The savers of a graph that are described by saver_def."""
    name = saver_def.filename_tensor_name
    return [s for s in graph.get_collection(GraphKeys.SAVERS) if s.to_proto().filename_tensor_name == name]


def export_scoped_meta_graph(
    filename: Any = None,
    graph_def: Any = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    as_text: bool = False,
    unbound_inputs_col_name: str = "unbound_inputs",
    clear_devices: bool = False,
    saver_def: Any = None,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> tuple[Any, dict[str, Any]]:
    """A MetaGraphDef of what is under a name scope, and the variables in it by their names there.

    Inputs from outside of the scope get the prefix "$unbound_inputs_"; their names are in a collection.
    Written to filename where one is given. Errors: ValueError for a graph of 2 GB or more.
    """
    graph = graph or get_default_graph()
    exclude = kwargs.pop("exclude_nodes", None)
    whole = graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def
    unbound: list[str] = []
    if export_scope or clear_devices or exclude:
        part = graph_pb2.GraphDef()
        part.versions.CopyFrom(whole.versions)
        part.library.CopyFrom(whole.library)
        for node in whole.node:
            if _included(node.name, export_scope, exclude):
                part.node.append(_scoped_node(node, export_scope, unbound, clear_devices))
        whole = part
    if sum(len(n.attr["value"].tensor.tensor_content) for n in whole.node if n.op == "Const") >= MAX_BYTES:
        raise ValueError("GraphDef cannot be larger than 2GB.")
    if unbound:
        graph.clear_collection(unbound_inputs_col_name)
        for name in dict.fromkeys(unbound):
            graph.add_to_collection(unbound_inputs_col_name, name)
    result = create_meta_graph_def(
        graph_def=whole,
        graph=graph,
        export_scope=export_scope,
        exclude_nodes=exclude,
        saver_def=saver_def,
        clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs,
        **kwargs,
    )
    variables = graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=export_scope)
    if filename:
        write_message(result, os.fspath(filename), as_text)
    return result, {
        strip_name_scope(v.name, export_scope): v for v in variables if _included(v, export_scope, exclude)
    }


def _scoped_node(node: Any, export_scope: str | None, unbound: list[str], clear_devices: bool) -> Any:
    """A node as it is exported: names without the scope, inputs from outside marked."""
    result = type(node)()
    result.CopyFrom(node)
    result.name = strip_name_scope(node.name, export_scope)
    for i, text in enumerate(node.input):
        if export_scope and not text.lstrip("^").startswith(export_scope):
            mark = "^" if text.startswith("^") else ""
            result.input[i] = mark + _UNBOUND + text.removeprefix("^")
            unbound.append(result.input[i])
        else:
            result.input[i] = strip_name_scope(text, export_scope)
    if "_class" in node.attr:
        groups = [g.decode() for g in node.attr["_class"].list.s]
        kept = [g for g in groups if not export_scope or g.partition("@")[2].startswith(export_scope)]
        result.attr["_class"].list.s[:] = [strip_name_scope(g, export_scope).encode() for g in kept]
    if node.op in ("Enter", "RefEnter") and export_scope:
        frame = node.attr["frame_name"].s.decode()
        if frame.startswith(export_scope):
            result.attr["frame_name"].s = strip_name_scope(frame, export_scope).encode()
    if clear_devices:
        result.device = ""
    return result


def export_meta_graph(
    filename: Any = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Sequence[Any] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> Any:
    """The MetaGraphDef of a graph (tf.train.export_meta_graph), written to filename where one is given.

    See export_scoped_meta_graph and create_meta_graph_def.
    """
    return export_scoped_meta_graph(
        filename,
        graph_def,
        graph,
        export_scope,
        as_text,
        clear_devices=clear_devices,
        saver_def=saver_def,
        clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs,
        meta_info_def=meta_info_def,
        collection_list=collection_list,
        **kwargs,
    )[0]


# ---- import ----------------------------------------------------------------------------------------------


def import_scoped_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
    input_map: dict[str, Any] | None = None,
    unbound_inputs_col_name: str = "unbound_inputs",
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
) -> dict[str, Any]:
    """Adds a MetaGraph to a graph; returns its variables by their names without the scope."""
    return import_scoped_meta_graph_with_return_elements(
        meta_graph_or_file,
        clear_devices,
        graph,
        import_scope,
        input_map,
        unbound_inputs_col_name,
        restore_collections_predicate,
    )[0]


def import_scoped_meta_graph_with_return_elements(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
    input_map: dict[str, Any] | None = None,
    unbound_inputs_col_name: str = "unbound_inputs",
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
    return_elements: Sequence[str] | None = None,
) -> tuple[dict[str, Any], list[Any] | None]:
    """Adds a MetaGraph's nodes and collections to a graph.

    import_scope: the name scope for all of it. input_map: tensors in place of inputs; all unbound inputs must
    be in it (ValueError). return_elements: see import_graph_def.
    Returns the variables by their names without the scope, and the elements.
    """
    if isinstance(meta_graph_or_file, meta_graph_pb2.MetaGraphDef):
        message = meta_graph_or_file
    else:
        message = read_meta_graph_file(meta_graph_or_file)
    _check_bound(message, unbound_inputs_col_name, input_map or {})
    graph = graph or get_default_graph()
    with graph.as_default():
        graph_def = message.graph_def
        if clear_devices:
            graph_def = graph_pb2.GraphDef()
            graph_def.CopyFrom(message.graph_def)
            for node in graph_def.node:
                node.device = ""
        scope = graph.unique_name(import_scope or "", mark_as_used=False)
        op_list = message.meta_info_def.stripped_op_list if message.HasField("meta_info_def") else None
        elements = import_graph_def(
            graph_def, input_map, return_elements, import_scope or scope, producer_op_list=op_list
        )
        _restore_collections(graph, message, scope, unbound_inputs_col_name, restore_collections_predicate)
        variables = graph.get_collection(
            GraphKeys.GLOBAL_VARIABLES, scope=re.escape(scope) if scope else None
        )
        return {strip_name_scope(v.name, scope): v for v in variables}, elements


def _check_bound(message: Any, collection: str, input_map: dict[str, Any]) -> None:
    if collection not in message.collection_def:
        return
    names = [n.decode() for n in message.collection_def[collection].bytes_list.value]
    missing = [n for n in names if n not in input_map]
    if missing:
        raise ValueError(
            f"Graph contains unbound inputs: {','.join(names)}. Must provide these inputs through input_map; "
            f"missing: {','.join(missing)}"
        )


def _restore_collections(
    graph: Graph, message: Any, scope: str, unbound: str, wanted: Callable[[str], bool]
) -> None:
    variables: dict[bytes, Any] = {}  # one object in all of its collections
    keys = sorted(message.collection_def)
    old = _before_trainable(message.meta_info_def.tensorflow_version)
    if old and GraphKeys.TRAINABLE_VARIABLES in keys:
        keys.remove(GraphKeys.TRAINABLE_VARIABLES)
        keys.insert(0, GraphKeys.TRAINABLE_VARIABLES)
    for key in keys:
        proto = message.collection_def[key]
        if key == unbound or not wanted(key):
            continue
        kind = proto.WhichOneof("kind")
        if kind is None:
            tf_logging.error("Cannot identify data type for collection %s. Skipping.", key)
            continue
        from_proto = from_proto_function(key)
        proto_type = collection_proto_type(key)
        if from_proto is not None and proto_type is not None and kind == "bytes_list":
            for data in proto.bytes_list.value:
                element = variables.get(data) if key in GraphKeys._VARIABLE_COLLECTIONS else None
                if element is None:
                    trainable = old and key == GraphKeys.TRAINABLE_VARIABLES
                    element = _from_bytes(data, proto_type, from_proto, scope, key, trainable)
                    if key in GraphKeys._VARIABLE_COLLECTIONS:
                        variables[data] = element
                graph.add_to_collection(key, element)
            continue
        for value in getattr(proto, kind).value:
            graph.add_to_collection(key, _plain_element(graph, kind, value, scope))


def _before_trainable(version: str) -> bool:
    """Whether a TensorFlow wrote a MetaGraph whose variables don't say yet whether they are trainable."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return match is not None and (int(match[1]), int(match[2])) < (1, 9)


def _from_bytes(
    data: bytes, kind: Any, from_proto: Callable[..., Any], scope: str, key: str, trainable: bool
) -> Any:
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError as e:
        raise ValueError(
            f"collection '{key}' holds {len(data)} bytes that are no {kind.__name__}: {e}"
        ) from None
    if trainable:
        message.trainable = True
    return from_proto(message, import_scope=scope)


def _plain_element(graph: Graph, kind: str, value: Any, scope: str) -> Any:
    """An element that is no message of a registered collection."""
    if kind == "node_list":
        return graph.as_graph_element(prepend_name_scope(value, scope))
    if kind == "int64_list":
        return int(value)
    if kind == "bytes_list" and scope:  # TensorFlow takes every string for a name
        try:
            return prepend_name_scope(value.decode(), scope)
        except UnicodeDecodeError:
            return value
    return value


def copy_scoped_meta_graph(
    from_scope: str, to_scope: str, from_graph: Graph | None = None, to_graph: Graph | None = None
) -> dict[str, Any]:
    """Copies what is under one name scope to another one. ValueError where both are the same."""
    from_graph = from_graph or get_default_graph()
    to_graph = to_graph or get_default_graph()
    if from_graph is to_graph and from_scope == to_scope:
        raise ValueError(
            "'from_scope' and 'to_scope' need to be different when performing copy in the same graph: "
            f"{from_scope}"
        )
    message, variables = export_scoped_meta_graph(export_scope=from_scope, graph=from_graph)
    imported = import_scoped_meta_graph(message, graph=to_graph, import_scope=to_scope)
    return {name: imported[name] for name in variables}
