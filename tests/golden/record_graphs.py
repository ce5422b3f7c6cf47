"""Records the graphs that TensorFlow builds for tests/golden/programs*.py. Run where TensorFlow is installed:

    python tests/golden/record_graphs.py

Writes tests/golden/data/graphs*.json. Nothing of thalweg is imported.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import graph_programs  # noqa: E402
import graph_text  # noqa: E402
import programs_control_flow  # noqa: E402


def default_of(op: str, attribute: str) -> Any:
    """The default value of an op's attribute, None where it has none."""
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(op)
    for attr in definition.attr:
        if attr.name == attribute and attr.HasField("default_value"):
            return attr.default_value
    return None


def record(tf: Any, program: Any) -> dict[str, Any]:
    """The graph of one program."""
    with tf.Graph().as_default() as graph:
        program(tf)
        nodes = graph_text.nodes(graph.as_graph_def(), default_of, tf.make_ndarray)
        return {"nodes": nodes, "collections": graph_text.collections(graph)}


def write(tf: Any, found: dict[str, Any], name: str) -> None:
    """Records programs into the data file of that name."""
    recorded = {title: record(tf, program) for title, program in found.items()}
    graph_text.shorten(recorded)
    lines = []
    for title, graph in recorded.items():
        nodes = ",\n".join(json.dumps(n, separators=(",", ":")) for n in graph["nodes"])
        lines.append(f'"{title}":{{"collections":{json.dumps(graph["collections"])},"nodes":[\n{nodes}]}}')
    path = HERE / "data" / name
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    json.loads(path.read_text())
    count = sum(len(g["nodes"]) for g in recorded.values())
    print(f"{name}: {len(recorded)} programs, {count} nodes, {path.stat().st_size} bytes")


def main() -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    write(tf, graph_programs.PROGRAMS, "graphs.json")
    write(tf, programs_control_flow.PROGRAMS, "graphs_control_flow.json")


if __name__ == "__main__":
    main()
