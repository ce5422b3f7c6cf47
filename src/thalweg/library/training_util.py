"""The global step: the variable that counts training steps."""

from __future__ import annotations

from typing import Any

from thalweg.base import dtypes
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Tensor
from thalweg.library import tf_logging
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.initializers import zeros_initializer
from thalweg.library.variable_scope import get_variable
from thalweg.library.variables import Variable, VariableAggregation

#: the collection with the tensor that hooks read the global step by
_GLOBAL_STEP_READ = "global_step_read_op_cache"

__all__ = [
    "assert_global_step",
    "create_global_step",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "global_step_for",
]


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The number of steps so far, as `sess` knows it."""
    return int(sess.run(global_step_tensor))


def get_global_step(graph: Graph | None = None) -> Any:
    """The only member of the collection GLOBAL_STEP, else the tensor "global_step:0", else None.

    Errors: TypeError where it is no integer scalar.
    """
    graph = graph or get_default_graph()
    listed = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(listed) > 1:
        tf_logging.error("Multiple tensors in global_step collection.")
        return None
    if listed:
        found = listed[0]
    else:
        try:
            found = graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
    assert_global_step(found)
    return found


def create_global_step(graph: Graph | None = None) -> Any:
    """The variable "global_step", made. ValueError where the graph has one already."""
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default(), graph.name_scope(None):
        return get_variable(
            GraphKeys.GLOBAL_STEP,
            shape=[],
            dtype=dtypes.int64,
            initializer=zeros_initializer(),
            trainable=False,
            aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The graph's global step, made where there is none."""
    graph = graph or get_default_graph()
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def assert_global_step(global_step_tensor: Any) -> None:
    """TypeError for what is no variable or tensor, no integer, or no scalar."""
    if not isinstance(global_step_tensor, Variable | Tensor):
        raise TypeError(f'Existing "global_step" must be a Variable or Tensor: {global_step_tensor}.')
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise TypeError(f'Existing "global_step" does not have integer type: {global_step_tensor.dtype}')
    shape = global_step_tensor.shape
    if shape.rank != 0 and shape.is_fully_defined():
        raise TypeError(f'Existing "global_step" is not scalar: {shape}')


def _global_step_read(graph: Graph | None = None) -> Any:
    """A tensor with the graph's global step, made once; None where there is no global step.

    It is a copy: fetched beside the training it is the step from before, whatever the variable's kind.
    """
    graph = graph or get_default_graph()
    cached = graph.get_collection(_GLOBAL_STEP_READ)
    if cached:
        return cached[0]
    step = get_global_step(graph)
    if step is None:
        return None
    with graph.as_default(), graph.name_scope(None), graph.name_scope(step.op.name + "/"):
        read = emit("AddV2", step, 0, name="add")
    graph.add_to_collection(_GLOBAL_STEP_READ, read)
    return read


def global_step_for(hook: str) -> Any:
    """The tensor of the global step, for a hook of this name. RuntimeError where there is no global step."""
    read = _global_step_read()
    if read is None:
        raise RuntimeError(f"Global step should be created to use {hook}.")
    return read


# programs of TensorFlow 1.x that write hooks of their own use this
_get_or_create_global_step_read = _global_step_read
