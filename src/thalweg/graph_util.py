"""tf.graph_util: graphs cut and frozen."""

from thalweg.graph.importer import import_graph_def
from thalweg.library.graph_util import (
    convert_variables_to_constants,
    extract_sub_graph,
    must_run_on_cpu,
    remove_training_nodes,
    tensor_shape_from_node_def_name,
)
from thalweg.library.missing import missing

__getattr__ = missing(__name__)

__all__ = [
    "convert_variables_to_constants",
    "extract_sub_graph",
    "import_graph_def",
    "must_run_on_cpu",
    "remove_training_nodes",
    "tensor_shape_from_node_def_name",
]
