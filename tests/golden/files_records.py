"""Record files and pictures: what thalweg writes, TensorFlow reads. See check_files.py."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import numpy as np
import record_programs

KINDS = (("tfrecord", ""), ("zlib", "ZLIB"), ("gzip", "GZIP"))


def picture(channels: int, dtype: Any = np.uint8) -> np.ndarray:
    """Smooth colours."""
    y, x = np.mgrid[:24, :32]
    waves = np.stack([np.sin(x / (4.0 + c)) + np.cos(y / 5.0) for c in range(channels)], -1)
    return ((waves / 4 + 0.5) * np.iinfo(dtype).max).astype(dtype)


def pictures(tf: Any) -> dict[str, Any]:
    """Encoded pictures, as nodes."""
    made = {"rgb.jpg": tf.image.encode_jpeg(picture(3)), "grey.jpg": tf.image.encode_jpeg(picture(1), quality=80)}
    for channels in (1, 2, 3, 4):
        made[f"{channels}.png"] = tf.image.encode_png(picture(channels))
        made[f"{channels}.16.png"] = tf.image.encode_png(picture(channels, np.uint16))
    return made


def write(tf: Any, folder: str) -> None:
    """Examples in all compressions, sequences, serialised tensors, pictures."""
    for name, kind in KINDS:
        options = tf.python_io.TFRecordOptions(kind) if kind else None
        with tf.python_io.TFRecordWriter(os.path.join(folder, f"examples.{name}"), options) as writer:
            for record in record_programs.examples(tf.train):
                writer.write(record)
    with tf.python_io.TFRecordWriter(os.path.join(folder, "sequences.tfrecord")) as writer:
        for record in record_programs.sequences(tf.train):
            writer.write(record)
    with tf.Graph().as_default(), tf.Session() as session:
        made = pictures(tf)
        made["tensor"] = tf.io.serialize_tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
        for name, data in session.run(made).items():
            session.run(tf.write_file(os.path.join(folder, name), data))


def check(tf: Any, folder: str, other: str) -> str:
    """Reads the same values from both folders."""
    write(tf, other)
    count = 0
    for name, program in record_programs.PROGRAMS.items():
        with tf.Graph().as_default():
            mine = program(tf, pathlib.Path(folder))
        with tf.Graph().as_default():
            theirs = program(tf, pathlib.Path(other))
        assert mine.keys() == theirs.keys()
        for key, value in theirs.items():
            np.testing.assert_array_equal(mine[key], value, f"{name} {key}")
            count += 1
    with tf.Graph().as_default(), tf.Session() as session:
        for name in pictures(tf):
            files = [tf.read_file(os.path.join(f, name)) for f in (folder, other)]
            dtype = tf.uint16 if ".16." in name else tf.uint8
            mine, theirs = session.run([tf.image.decode_image(f, dtype=dtype) for f in files])
            far = np.abs(mine.astype(int) - theirs).max()
            assert far <= (3 if name.endswith("jpg") else 0), (name, far)
        tensor = session.run(tf.parse_tensor(tf.read_file(os.path.join(folder, "tensor")), tf.float32))
        np.testing.assert_array_equal(tensor, np.arange(6).reshape(2, 3))
    return f"records: {count} arrays out of Examples and SequenceExamples, {len(pictures(tf))} pictures, one tensor agree"
