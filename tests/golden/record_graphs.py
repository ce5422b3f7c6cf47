"""Records the graphs that TensorFlow builds for tests/golden/programs.py. Run where TensorFlow is installed:

    python tests/golden/record_graphs.py

Writes tests/golden/data/graphs.json. Nothing of thalweg is imported.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import graph_text  # noqa: E402
from programs import PROGRAMS  # noqa: E402


def default_of(op: str, attribute: str) -> Any:
    """The default value of an op's attribute, None where it has none."""
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(op)
    for attr in definition.attr:
        if attr.name == attribute and attr.HasField("default_value"):
            return attr.default_value
    return None


def record(tf: Any, name: str) -> dict[str, Any]:
    """The graph of one program."""
    with tf.Graph().as_default() as graph:
        PROGRAMS[name](tf)
        nodes = graph_text.nodes(graph.as_graph_def(), default_of, tf.make_ndarray)
        return {"nodes": nodes, "collections": graph_text.collections(graph)}


def main() -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    recorded = {name: record(tf, name) for name in PROGRAMS}
    graph_text.shorten(recorded)
    lines = []
    for name, graph in recorded.items():
        nodes = ",\n".join(json.dumps(n, separators=(",", ":")) for n in graph["nodes"])
        lines.append(f'"{name}":{{"collections":{json.dumps(graph["collections"])},"nodes":[\n{nodes}]}}')
    path = HERE / "data" / "graphs.json"
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    json.loads(path.read_text())
    print(f"{len(recorded)} programs, {sum(len(g['nodes']) for g in recorded.values())} nodes, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
