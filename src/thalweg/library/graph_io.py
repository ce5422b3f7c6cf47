"""Graphs to files. Source: TensorFlow's graph_io.py."""

from __future__ import annotations

import os
from typing import Any

from thalweg.graph.graph import Graph
from thalweg.library import gfile
from thalweg.library.meta_graph import write_message


def write_graph(graph_or_graph_def: Any, logdir: Any, name: str, as_text: bool = True) -> str:
    """Writes a graph as a GraphDef into the folder logdir, which is made where it isn't there.

    Returns the path. ValueError for a graph of 2 GB or more.
    """
    message = (
        graph_or_graph_def.as_graph_def() if isinstance(graph_or_graph_def, Graph) else graph_or_graph_def
    )
    folder = os.fspath(logdir)
    if not folder.startswith("gs:") and not gfile.IsDirectory(folder):
        gfile.MakeDirs(folder)
    return write_message(message, os.path.join(folder, name), as_text)
