"""Records what a pretrained model gives in TensorFlow. Run with an interpreter that has TensorFlow:

    python tests/golden/record_files_pretrained.py

Writes tests/golden/data/files/basic_pitch.npz: every eighth frame of the outputs.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # TensorFlow's own kernels: oneDNN's differ from them by 6e-5
import numpy as np
import tensorflow.compat.v1 as tf

HERE = pathlib.Path(__file__).parent


def main() -> None:
    sys.modules["thalweg"] = tf  # the example's input, without thalweg
    path = HERE.parents[1] / "examples" / "transcribe.py"
    spec = importlib.util.spec_from_file_location("transcribe", path)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    tf.disable_v2_behavior()
    with tempfile.TemporaryDirectory() as unpacked, tf.Session() as session:
        folder = example.unpack(unpacked)
        signature = tf.saved_model.load(session, ["serve"], folder).signature_def["serving_default"]
        (given,) = signature.inputs.values()
        outputs = {name: info.name for name, info in signature.outputs.items()}
        values = session.run(outputs, {given.name: example.chord()})
    target = HERE / "data" / "files" / "basic_pitch.npz"
    np.savez_compressed(target, **{name: value[:, ::8] for name, value in values.items()})


if __name__ == "__main__":
    main()
