"""Checkpoints: what thalweg's Saver and ops wrote, read by TensorFlow's. See check_files.py."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import checkpoint_values as cv
import numpy as np


def _variables(tf: Any, fill: bool, use_resource: bool) -> dict[str, Any]:
    """A variable for each value, by the name to save it under; a partitioned one over two devices."""
    result = {}
    for i, (name, value) in enumerate(cv.values().items()):
        start = value if fill else np.zeros_like(value) if value.dtype != object else np.full(value.shape, b"", object)
        result[name] = tf.Variable(tf.constant(start), name=f"v{i}", use_resource=use_resource)
    parts = []
    for i, spec in enumerate(cv.ROWS):
        with tf.device(f"/cpu:{i % 2}"):
            start = cv.cut(cv.partitioned(), spec) * fill
            part = tf.Variable(start, name=f"rows/part_{i}", use_resource=use_resource)
        offset = [0, 3, 6, 8][i]
        part._set_save_slice_info(tf.Variable.SaveSliceInfo("rows", [10, 6], [offset, 0], list(start.shape)))
        parts.append(part)
    return {**result, "rows": parts}


def write(tf: Any, folder: str) -> None:
    """Checkpoints of reference and resource variables, plain and sharded, the same path twice; and of version 1."""
    for use_resource in (False, True):
        for sharded in (False, True):
            with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
                saver = tf.train.Saver(_variables(tf, True, use_resource), sharded=sharded, max_to_keep=1)
                session.run(tf.global_variables_initializer())
                path = os.path.join(folder, f"{'resource' if use_resource else 'ref'}{'_sharded' if sharded else ''}")
                for _ in range(2):
                    saver.save(session, path, write_meta_graph=False, latest_filename="state")


    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        kept = {n: v for n, v in _variables(tf, True, False).items() if n in cv.values(cv.NUMBERS_V1)}
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver(kept, write_version=tf.train.SaverDef.V1)
        saver.save(session, os.path.join(folder, "version_1"), write_meta_graph=False, write_state=False)


def check(tf: Any, folder: str, other: str) -> str:
    """TensorFlow restores each into variables, reads it without a graph, and finds the latest by the state file."""
    write(tf, other)
    count = same = 0
    names = sorted(n.removesuffix(".index") for n in os.listdir(folder) if n.endswith(".index"))
    assert names == ["ref", "ref_sharded", "resource", "resource_sharded"], names
    for name in names:
        path = os.path.join(folder, name)
        reader = tf.train.NewCheckpointReader(path)
        expected = {**cv.values(), "rows": cv.partitioned()}
        assert sorted(reader.get_variable_to_shape_map()) == sorted(expected)
        with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            variables = _variables(tf, False, name.startswith("resource"))
            tf.train.Saver(variables).restore(session, path)
            for key, value in expected.items():
                restored = session.run(variables[key])
                if key == "rows":
                    restored = np.concatenate(restored)
                for found in (restored, reader.get_tensor(key)):
                    found = np.asarray(found)
                    equal = found.tolist() == value.tolist() if value.dtype == object else found.tobytes() == value.tobytes()
                    assert equal and found.shape == value.shape, (name, key)
                    count += 1
        for file in Path(folder).glob(f"{name}.*"):
            same += file.read_bytes() == (Path(other) / file.name).read_bytes()
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        kept = {n: v for n, v in _variables(tf, False, False).items() if n in cv.values(cv.NUMBERS_V1)}
        tf.train.Saver(kept).restore(session, os.path.join(folder, "version_1"))
        for key, variable in kept.items():
            found, value = np.asarray(session.run(variable)), cv.values()[key]
            assert found.tolist() == value.tolist() or np.array_equal(found, value, equal_nan=True), key
            count += 1
    same += (Path(folder) / "version_1").read_bytes() == (Path(other) / "version_1").read_bytes()
    assert tf.train.latest_checkpoint(folder, "state") == os.path.join(folder, "resource_sharded")
    files = len(list(Path(folder).glob("re*.*"))) + 1
    return f"checkpoints: {count} tensors of {len(names) + 1} checkpoints equal; {same} of {files} files are TensorFlow's byte by byte"
