"""Programs that read records, text and pictures: run on TensorFlow to record, and on thalweg to compare.

Each gets the tf module and the folder of files, and returns arrays by name; the order of what it returns is fixed.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

COUNT = 40


def feature(train: Any, values: Any, kind: str = "") -> Any:
    """A Feature of a list of bytes, floats or integers; kind: of an empty one."""
    first = values[0] if len(values) else {"bytes": b"", "float": 0.0}.get(kind, 0)
    if isinstance(first, bytes):
        return train.Feature(bytes_list=train.BytesList(value=values))
    if isinstance(first, (float, np.floating)):
        return train.Feature(float_list=train.FloatList(value=values))
    return train.Feature(int64_list=train.Int64List(value=values))


def examples(train: Any) -> list[bytes]:
    """Serialised examples: some features are missing in some, some lists are empty."""
    rng = np.random.default_rng(7)
    result = []
    for i in range(COUNT):
        values = {
            "id": [i],
            "big": rng.integers(-(2**62), 2**62, 3).tolist(),
            "point": rng.random(4).astype(np.float32),
            "word": [b"word %d" % i],
            "ids": rng.integers(0, 1000, i % 5).tolist(),
            "words": [b"x" * k for k in range(i % 3)] or [b"only"],
            "rows": rng.random(2 * (i % 4)).astype(np.float32) if i % 4 else [0.5, 0.25],
            "positions": np.sort(rng.choice(50, i % 6, replace=False)).tolist(),
            "weights": rng.random(i % 6).astype(np.float32) if i % 6 else [],
        }
        if i % 6 == 0:
            del values["weights"], values["positions"]
        if i % 7 == 3:
            del values["ids"], values["rows"]
        if i % 5 == 2:
            del values["point"]
        features = {k: feature(train, v, "float" if k in ("rows", "weights") else "") for k, v in values.items()}
        if i % 11 == 5:
            features["word"] = train.Feature()
        result.append(train.Example(features=train.Features(feature=features)).SerializeToString(deterministic=True))
    return result


def sequences(train: Any) -> list[bytes]:
    """Serialised sequence examples of different lengths."""
    rng = np.random.default_rng(8)
    result = []
    for i in range(6):
        context = {"label": feature(train, [i]), "tags": feature(train, [b"t%d" % k for k in range(i % 3)], "bytes")}
        steps = [feature(train, rng.random(2).astype(np.float32)) for _ in range(i)]
        tokens = [feature(train, [int(k) for k in rng.integers(0, 9, k % 3)]) for k in range(i + 1)]
        lists = {"tokens": train.FeatureList(feature=tokens)}
        if i != 3:
            lists["steps"] = train.FeatureList(feature=steps)
        message = train.SequenceExample(
            context=train.Features(feature=context), feature_lists=train.FeatureLists(feature_list=lists)
        )
        result.append(message.SerializeToString(deterministic=True))
    return result


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Tensors and SparseTensorValues by name, as arrays."""
    result = {}
    for key, value in sorted(values.items()):
        if hasattr(value, "dense_shape"):
            result[f"{prefix}{key}.indices"] = value.indices
            result[f"{prefix}{key}.values"] = value.values
            result[f"{prefix}{key}.shape"] = value.dense_shape
        else:
            result[f"{prefix}{key}"] = value
    return result


def features(tf: Any) -> dict[str, Any]:
    """What is asked of the examples."""
    return {
        "id": tf.FixedLenFeature([], tf.int64),
        "big": tf.FixedLenFeature([3], tf.int64),
        "point": tf.FixedLenFeature([2, 2], tf.float32, [[0.0, 1.0], [2.0, 3.0]]),
        "word": tf.FixedLenFeature([1], tf.string, "none"),
        "ids": tf.VarLenFeature(tf.int64),
        "words": tf.VarLenFeature(tf.string),
        "rows": tf.FixedLenSequenceFeature([2], tf.float32, allow_missing=True, default_value=-1),
        "cells": tf.SparseFeature("positions", "weights", tf.float32, 50),
    }


def all_records(tf: Any, path: pathlib.Path, kind: str = "") -> list[bytes]:
    """The records of a file."""
    options = tf.python_io.TFRecordOptions(kind) if kind else None
    return list(tf.python_io.tf_record_iterator(str(path), options))


def parse_batch(tf: Any, files: pathlib.Path) -> dict[str, Any]:
    """parse_example of all examples."""
    parsed = tf.parse_example(all_records(tf, files / "examples.tfrecord"), features(tf))
    with tf.Session() as session:
        return flat(session.run(parsed))


def parse_singles(tf: Any, files: pathlib.Path) -> dict[str, Any]:
    """parse_single_example of the first few."""
    serialized = tf.placeholder(tf.string, [])
    parsed = tf.parse_single_example(serialized, features(tf))
    result = {}
    with tf.Session() as session:
        for i, record in enumerate(all_records(tf, files / "examples.tfrecord")[:8]):
            result.update(flat(session.run(parsed, {serialized: record}), f"{i}."))
    return result


def parse_sequences(tf: Any, files: pathlib.Path) -> dict[str, Any]:
    """parse_sequence_example of all, and one by one."""
    context = {"label": tf.FixedLenFeature([], tf.int64), "tags": tf.VarLenFeature(tf.string)}
    lists = {
        "steps": tf.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
        "tokens": tf.VarLenFeature(tf.int64),
    }
    records = all_records(tf, files / "sequences.tfrecord")
    parts = tf.io.parse_sequence_example(records, context, lists)
    serialized = tf.placeholder(tf.string, [])
    single = tf.parse_single_sequence_example(serialized, context, lists)
    result = {}
    with tf.Session() as session:
        for name, values in zip(("context", "lists", "lengths"), session.run(parts), strict=True):
            result.update(flat(values, f"batch.{name}."))
        for i, record in enumerate(records):
            for name, values in zip(("context", "lists"), session.run(single, {serialized: record}), strict=True):
                result.update(flat(values, f"{i}.{name}."))
    return result


def read_compressed(tf: Any, files: pathlib.Path) -> dict[str, Any]:
    """The records of the compressed files."""
    result = {}
    for name, kind in (("tfrecord", ""), ("zlib", "ZLIB"), ("gzip", "GZIP")):
        records = np.empty(COUNT, object)
        records[:] = all_records(tf, files / f"examples.{name}", kind)
        result[name] = records
    return result


def read_through_queue(tf: Any, files: pathlib.Path) -> dict[str, Any]:
    """A reader of each compression, record by record and in pieces, over a queue of two files."""
    result = {}
    for kind, name in (("", "tfrecord"), ("GZIP", "gzip")):
        paths = [str(files / f"examples.{name}")] * 2
        queue = tf.FIFOQueue(4, [tf.string], shapes=[[]])
        fill, close = queue.enqueue_many([paths]), queue.close()
        reader = tf.TFRecordReader(options=tf.python_io.TFRecordOptions(kind) if kind else None)
        one, many = reader.read(queue), reader.read_up_to(queue, 15)
        counts = [reader.num_records_produced(), reader.num_work_units_completed()]
        with tf.Session() as session:
            session.run(fill)
            session.run(close)
            key, value = session.run(list(one))
            result[f"{name}.key"], result[f"{name}.value"] = np.array(key[-8:], object), np.array(value, object)
            sizes = []
            while True:
                try:
                    sizes.append(len(session.run(many)[1]))
                except tf.errors.OutOfRangeError:
                    break
            result[f"{name}.sizes"] = np.array(sizes)
            result[f"{name}.counts"] = np.array(session.run(counts))
    return result


PROGRAMS = {
    f.__name__: f for f in (parse_batch, parse_singles, parse_sequences, read_compressed, read_through_queue)
}


def decodings(names: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(picture, op, options) of everything that is decoded; dtypes by name."""
    for name in sorted(names):
        kind = name.rpartition(".")[2]
        if kind in ("gif", "bmp") and name != "top_down.bmp":  # TensorFlow 2.21 dies of that one
            yield name, "decode_image", {"dtype": "uint16"}
        elif name in ("rgb.png", "rgb16.png", "grey4.png"):
            yield name, "decode_image", {"dtype": "float32"}
        if kind == "jpg":
            yield name, "decode_jpeg", {}
            yield name, "decode_jpeg", {"channels": 1}
            yield name, "decode_jpeg", {"dct_method": "INTEGER_ACCURATE"}
            yield name, "decode_jpeg", {"fancy_upscaling": False}
            for ratio in (2, 4, 8):
                yield name, "decode_jpeg", {"ratio": ratio}
            yield name, "extract_jpeg_shape", {}
            yield name, "decode_and_crop_jpeg", {"crop_window": [3, 5, 10, 12]}
        elif kind == "png":
            for channels in (0, 1, 3, 4):
                yield name, "decode_png", {"channels": channels}
                if channels < 2:
                    yield name, "decode_png", {"channels": channels, "dtype": "uint16"}
        elif kind == "gif":
            yield name, "decode_gif", {}
            yield name, "decode_image", {"expand_animations": False}
        elif kind == "bmp" and not name.startswith("grey"):
            yield name, "decode_bmp", {}
            yield name, "decode_bmp", {"channels": 4}


def label(name: str, op: str, options: dict[str, Any]) -> str:
    """The name of a result."""
    words = [getattr(v, "name", v) for v in options.values()]
    return " ".join([name, op, *(f"{k}={w}" for k, w in zip(options, words, strict=True))])
