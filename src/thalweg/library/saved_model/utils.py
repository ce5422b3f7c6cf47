"""TensorInfo: what a signature says of a tensor."""

from __future__ import annotations

from typing import Any

from tensorboard.compat.proto import meta_graph_pb2, types_pb2

from thalweg.graph.composite import SparseTensor
from thalweg.graph.convert import get_default_graph
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation
from thalweg.library.proto_functions import prepend_name_scope


def build_tensor_info(tensor: Any) -> Any:
    """The TensorInfo of a tensor, variable or SparseTensor: names, dtype, static shape."""
    info = meta_graph_pb2.TensorInfo(dtype=tensor.dtype.base_dtype.as_datatype_enum)
    info.tensor_shape.CopyFrom(tensor.get_shape().as_proto())
    if isinstance(tensor, SparseTensor):
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    else:
        info.name = tensor.name
    return info


def build_tensor_info_from_op(op: Operation) -> Any:
    """The TensorInfo that names an operation."""
    return meta_graph_pb2.TensorInfo(dtype=types_pb2.DT_INVALID, name=op.name)


def get_tensor_from_tensor_info(
    tensor_info: Any, graph: Graph | None = None, import_scope: str | None = None
) -> Any:
    """The tensor, or SparseTensor, of a graph that a TensorInfo names.

    KeyError where the graph doesn't have it; ValueError for a TensorInfo that names none.
    """
    graph = graph or get_default_graph()
    find = lambda name: graph.get_tensor_by_name(prepend_name_scope(name, import_scope))
    encoding = tensor_info.WhichOneof("encoding")
    if encoding == "name":
        return find(tensor_info.name)
    if encoding == "coo_sparse":
        sparse = tensor_info.coo_sparse
        return SparseTensor(
            find(sparse.indices_tensor_name),
            find(sparse.values_tensor_name),
            find(sparse.dense_shape_tensor_name),
        )
    raise ValueError(f"Invalid TensorInfo.encoding: {encoding}")
