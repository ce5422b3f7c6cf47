"""Records the programs of loop_programs.py: TensorFlow's GraphDefs and values. Run where it is installed:

    python tests/golden/record_loop_graphs.py

Writes tests/golden/data/loop_graphs.npz. Nothing of thalweg is imported.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import arrays  # noqa: E402
import loop_programs  # noqa: E402


def record(tf: Any, build: Any, runs: Any) -> tuple[bytes, list[str], str, list[list[Any]]]:
    """The GraphDef, the names of the fetches and of the initializer, and the values of each run."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        fetches = tf.nest.flatten(build(tf))
        init = tf.global_variables_initializer()
        session.run(init)
        values = [session.run(fetches, {f"{k}:0": v for k, v in feeds.items()}) for feeds in runs]
        return graph.as_graph_def().SerializeToString(deterministic=True), [t.name for t in fetches], init.name, values


def main() -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    data: dict[str, np.ndarray] = {}
    meta: dict[str, Any] = {}
    for title, (build, runs) in loop_programs.PROGRAMS.items():
        graph, fetches, init, values = record(tf, build, runs)
        data[f"{title}/graph"] = np.frombuffer(graph, np.uint8)
        for i, run in enumerate(values):
            for j, value in enumerate(run):
                data[f"{title}/{i}/{j}"] = np.asarray(value)
        meta[title] = {"fetches": fetches, "init": init}
    path = HERE / "data" / "loop_graphs.npz"
    arrays.save(path, data, meta)
    print(f"{path.name}: {len(meta)} programs, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
