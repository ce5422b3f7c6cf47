"""Records what TensorFlow makes of the training programs in tests/golden/training.py. Run where TensorFlow is:

    python tests/golden/record_training.py

Writes tests/golden/data/training.npz. Nothing of thalweg is imported.
"""

from __future__ import annotations

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import arrays  # noqa: E402
import training  # noqa: E402


def main() -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    data = {}
    for name in training.PROGRAMS:
        data.update(training.run(tf, name))
    for optimizer, kind in training.OPTIMIZER_RUNS:
        data.update(training.run_optimizer(tf, optimizer, kind))
    for decay in training.DECAYS:
        data[f"decay/{decay}"] = training.run_decay(tf, decay)
    path = HERE / "data" / "training.npz"
    arrays.save(path, data, {"tensorflow": tf.__version__})
    print(f"{len(data)} arrays, {path.stat().st_size} bytes")
    for name in training.PROGRAMS:
        print(name, data[f"{name}/losses"][[0, 9, -1]])


if __name__ == "__main__":
    main()
