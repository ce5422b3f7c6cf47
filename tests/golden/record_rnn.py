"""Records what TensorFlow makes of tests/golden/rnn_programs.py. Run where TensorFlow is installed:

    python tests/golden/record_rnn.py

Writes tests/golden/data/rnn.npz. Nothing of thalweg is imported. The cells are those that TensorFlow's copy of
Keras 2 keeps, which are TensorFlow 1.15's.
"""

from __future__ import annotations

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import arrays  # noqa: E402
import rnn_programs  # noqa: E402


def main() -> None:
    import tensorflow.compat.v1 as tf
    from tensorflow.python.keras.layers.legacy_rnn import rnn_cell_impl

    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    tf.logging.set_verbosity(tf.logging.FATAL)
    data, variables, nodes = {}, {}, {}
    for name in rnn_programs.PROGRAMS:
        values, variables[name], made = rnn_programs.run(tf, rnn_cell_impl, name)
        data.update(values)
        if name not in rnn_programs.OTHER_NODES:
            nodes[name] = made
    path = HERE / "data" / "rnn.npz"
    arrays.save(path, data, {"tensorflow": tf.__version__, "variables": variables, "nodes": nodes})
    print(f"{len(rnn_programs.PROGRAMS)} programs, {len(data)} arrays, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
