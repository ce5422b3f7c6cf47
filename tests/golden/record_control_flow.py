"""Records what TensorFlow computes in control_flow_programs.py and gradient_programs.py. Run where TensorFlow is installed:

    python tests/golden/record_control_flow.py

Writes tests/golden/data/control_flow.npz and gradients.npz. Nothing of thalweg is imported.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import arrays  # noqa: E402
import control_flow_programs  # noqa: E402
import gradient_programs  # noqa: E402


def main() -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    # without rewrites: one of TensorFlow's puts a constant outside of the loop that it belongs to
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    record(tf, control_flow_programs.PROGRAMS, config, "control_flow.npz")
    record(tf, gradient_programs.PROGRAMS, config, "gradients.npz")


def record(tf: Any, programs: dict[str, Any], config: Any, file: str) -> None:
    """Runs programs and writes down what they compute."""
    data = {}
    for name in programs:
        data.update(control_flow_programs.run(tf, name, config, programs))
    path = HERE / "data" / file
    arrays.save(path, data, {"tensorflow": tf.__version__})
    failed = {k: v[0].decode() for k, v in data.items() if k.endswith("/error")}
    print(f"{file}: {len(programs)} programs, {len(data)} arrays, {path.stat().st_size} bytes")
    print(failed)


if __name__ == "__main__":
    main()
