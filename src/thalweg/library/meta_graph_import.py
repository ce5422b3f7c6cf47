"""tf.train.import_meta_graph: a MetaGraph into the default graph, with its Saver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorboard.compat.proto import meta_graph_pb2

from thalweg.library import tf_logging
from thalweg.library.meta_graph import import_scoped_meta_graph_with_return_elements, read_meta_graph_file
from thalweg.library.saver import Saver
from thalweg.library.variables import saveable_objects


def import_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None, **kwargs: Any
) -> Saver | None:
    """Adds a MetaGraph (a message, or the path of a file) to the default graph.

    Returns its Saver; one of all variables where it has none; None where there is nothing to restore.
    Errors: see import_scoped_meta_graph, read_meta_graph_file.
    """
    return import_meta_graph_with_return_elements(meta_graph_or_file, clear_devices, import_scope, **kwargs)[
        0
    ]


def import_meta_graph_with_return_elements(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    return_elements: Sequence[str] | None = None,
    **kwargs: Any,
) -> tuple[Saver | None, list[Any] | None]:
    """The same, with elements of the MetaGraph (see import_graph_def)."""
    if isinstance(meta_graph_or_file, meta_graph_pb2.MetaGraphDef):
        message = meta_graph_or_file
    else:
        message = read_meta_graph_file(meta_graph_or_file)
    variables, elements = import_scoped_meta_graph_with_return_elements(
        message, clear_devices, import_scope=import_scope, return_elements=return_elements, **kwargs
    )
    return _saver(message, import_scope, variables), elements


def _saver(message: Any, import_scope: str | None, variables: dict[str, Any]) -> Saver | None:
    if message.HasField("saver_def"):
        scope = import_scope
        for name, variable in variables.items():  # the scope may have been made unique
            scope = variable.name[: -len(name)].rstrip("/")
            break
        return Saver(saver_def=message.saver_def, name=scope)
    if saveable_objects(import_scope):
        return Saver()
    tf_logging.info("Saver not created because there are no variables in the graph to restore")
    return None
