"""Has TensorFlow train for five steps, for tests/library/test_training_resume.py. Run where TensorFlow is installed:

    python tests/golden/record_files_training.py

Writes tests/golden/data/files/training/: the checkpoint of step 5, and losses.json with the losses of the steps
after it. Nothing of thalweg is imported.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import files_training  # noqa: E402


def main() -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    target = HERE / "data" / "files" / "training"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        files_training.losses(tf, folder, 5)
        for path in pathlib.Path(folder).glob("model.ckpt-5.*"):
            shutil.copyfile(path, target / path.name)
        (target / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-5"\n')
        after = files_training.losses(tf, folder, 12)
    (target / "losses.json").write_text(json.dumps(after) + "\n")
    print(f"{len(after)} losses, {sum(p.stat().st_size for p in target.iterdir())} bytes")


if __name__ == "__main__":
    main()
