"""Makes checkpoints with TensorFlow, and records the nodes of its Savers. Run where TensorFlow is installed:

    python tests/golden/record_files_checkpoints.py

Writes tests/golden/data/files/checkpoints/: version 2 with every type (v2), by Saver in two shards (sharded),
version 1 in one file and in two (v1, v1-?????-of-00002), an object-based one of TensorFlow 2 (objects), and the
graphs (graphs.json). Nothing of thalweg is imported.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "data" / "files" / "checkpoints"
sys.path.insert(0, str(HERE))

import checkpoint_programs  # noqa: E402
import checkpoint_values as cv  # noqa: E402
import record_graphs  # noqa: E402


def version_2(tf: Any) -> None:
    """Every type, and tensors in slices, in one data file."""
    entries = [(name, "", value) for name, value in cv.values().items()]
    entries += [("rows", spec, cv.cut(cv.partitioned(), spec)) for spec in cv.ROWS]
    entries += [("grid", spec, cv.cut(cv.partitioned(), spec)) for spec in cv.GRID]
    names, specs, values = zip(*entries, strict=True)
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = [tf.constant(v) for v in values]
        session.run(
            tf.raw_ops.SaveV2(
                prefix=str(FOLDER / "v2"), tensor_names=names, shape_and_slices=specs, tensors=tensors
            )
        )


def sharded(tf: Any) -> None:
    """By a Saver, a shard for each of two devices, a partitioned variable in both."""
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        whole = cv.partitioned()
        parts = []
        for i, spec in enumerate(cv.ROWS):
            with tf.device(f"/cpu:{i % 2}"):
                part = tf.Variable(cv.cut(whole, spec), name=f"rows/part_{i}")
            start = [0, 3, 6, 8][i]
            part._set_save_slice_info(
                tf.Variable.SaveSliceInfo("rows", list(whole.shape), [start, 0], list(part.shape.as_list()))
            )
            parts.append(part)
        with tf.device("/cpu:1"):
            bias = tf.Variable(cv.number("int64"), name="bias")
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver([*parts, bias], sharded=True)
        saver.save(session, str(FOLDER / "sharded"), write_meta_graph=False, write_state=False)


def version_1(tf: Any) -> None:
    """Table files: one, and the same tensors in two files with a tensor in slices over both."""
    entries = [(name, "", value) for name, value in cv.values(cv.NUMBERS_V1).items() if name != "shapes/empty"]
    entries += [("rows", spec, cv.cut(cv.partitioned(), spec)) for spec in cv.ROWS]
    half = len(entries) - 2
    for file, part in (("v1", entries), ("v1-00000-of-00002", entries[:half]), ("v1-00001-of-00002", entries[half:])):
        names, specs, values = zip(*part, strict=True)
        with tf.Graph().as_default(), tf.Session() as session:
            data = [tf.constant(v) for v in values]
            session.run(
                tf.raw_ops.SaveSlices(
                    filename=str(FOLDER / file), tensor_names=names, shapes_and_slices=specs, data=data
                )
            )


OBJECTS = """
import sys
import tensorflow as tf
class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.kernel = tf.Variable([[1.0, 2.0]], name="kernel")
        self.bias = tf.Variable([3.0], name="bias")
tf.train.Checkpoint(model=Model()).write(sys.argv[1])
"""


def main() -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    from tensorflow.python.training.saver import BaseSaverBuilder

    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    version_2(tf)
    sharded(tf)
    version_1(tf)
    subprocess.run([sys.executable, "-c", OBJECTS, str(FOLDER / "objects")], check=True)
    os.chdir(HERE.parent.parent)
    tf.BaseSaverBuilder = BaseSaverBuilder
    record_graphs.write(tf, checkpoint_programs.PROGRAMS, "files/checkpoints/graphs.json")
    for path in sorted(FOLDER.iterdir()):
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
