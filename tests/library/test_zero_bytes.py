"""Strings that end in zero bytes come through every op whole: NumPy's own strings drop those bytes."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.graph.tensor_proto import proto_to_array

TEXT = b"ab\0\0"
MANY = [TEXT, b"\0", b"x"]


def example() -> bytes:
    message = tf.train.Example()
    message.features.feature["a"].bytes_list.value.append(TEXT)
    return message.SerializeToString()  # type: ignore[no-any-return]


def parsed() -> dict[str, Any]:
    return {
        "a": tf.FixedLenFeature([], tf.string),
        "none": tf.FixedLenFeature([], tf.string, TEXT),
        "rows": tf.FixedLenSequenceFeature([], tf.string, allow_missing=True),
    }


OPS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "parse_single_example": (lambda one, _: tf.parse_single_example(example(), parsed())["a"], TEXT),
    "a default": (lambda one, _: tf.parse_single_example(example(), parsed())["none"], TEXT),
    "padding": (
        lambda one, _: tf.parse_example(
            [example(), b""],
            {"a": tf.FixedLenSequenceFeature([], tf.string, allow_missing=True, default_value=TEXT)},
        )["a"],
        [[TEXT], [TEXT]],
    ),
    "gather": (lambda _, many: tf.gather(many, 0), TEXT),
    "gather_nd": (lambda _, many: tf.gather_nd(many, [0]), TEXT),
    "a place": (lambda _, many: many[0], TEXT),
    "a place of a constant": (lambda *_: tf.constant(MANY)[0], TEXT),
    "gather_nd of a constant": (lambda *_: tf.gather_nd(tf.constant(MANY), [0]), TEXT),
    "map_fn": (lambda _, many: tf.map_fn(lambda z: z, many), MANY),
    "TensorArray": (lambda _, many: tf.TensorArray(tf.string, 3).unstack(many).read(0), TEXT),
    "scatter": (
        lambda _, many: tf.TensorArray(tf.string, 3).scatter([2, 1, 0], many).gather([2, 0]),
        MANY[::2],
    ),
    "list": (
        lambda _, many: tf.raw_ops.TensorListGetItem(
            input_handle=tf.raw_ops.TensorListFromTensor(tensor=many, element_shape=np.zeros(0, np.int32)),
            index=0,
            element_shape=np.zeros(0, np.int32),
            element_dtype=tf.string,
        ),
        TEXT,
    ),
    "fill": (lambda one, _: tf.fill([2], one), [TEXT] * 2),
    "pad": (lambda _, many: tf.pad(many, [[0, 1]], constant_values=TEXT), [*MANY, TEXT]),
    "one_hot": (lambda one, _: tf.one_hot([0], 2, on_value=TEXT, off_value=b"\0"), [[TEXT, b"\0"]]),
    "py_func": (lambda one, _: tf.py_func(lambda x: x + b"\0", [one], tf.string), TEXT + b"\0"),
}


@pytest.mark.parametrize("name", OPS)
def test_op(name: str) -> None:
    build, want = OPS[name]
    with tf.Graph().as_default(), tf.Session() as session:
        one, many = tf.placeholder(tf.string, []), tf.placeholder(tf.string, [None])
        built = build(one, many)
        length = tf.decode_raw(built, tf.uint8) if isinstance(want, bytes) else built
        got, numbers = session.run([built, length], {one: TEXT, many: MANY})
    assert (got.tolist() if isinstance(want, list) else got) == want
    if isinstance(want, bytes):
        assert numbers.tobytes() == want


def test_pictures_in_records(tmp_path: pathlib.Path) -> None:
    """The usual program: raw pixels in an Example, black ones too, through a shuffling queue."""
    path = str(tmp_path / "a")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(5):
            message = tf.train.Example()
            message.features.feature["pixels"].bytes_list.value.append(bytes([i, 0, 0, 0]))
            writer.write(message.SerializeToString())
    with tf.Graph().as_default(), tf.Session() as session:
        _, record = tf.TFRecordReader().read(tf.train.string_input_producer([path], num_epochs=1))
        raw = tf.parse_single_example(record, {"pixels": tf.FixedLenFeature([], tf.string)})["pixels"]
        pixels = tf.reshape(tf.decode_raw(raw, tf.uint8), [2, 2])
        batch = tf.train.shuffle_batch([pixels], 5, capacity=10, min_after_dequeue=4)
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        assert sorted(session.run(batch)[:, 0, 0].tolist()) == [0, 1, 2, 3, 4]
        coord.request_stop()
        coord.join(threads)


def test_one_value_for_all() -> None:
    message = tf.make_tensor_proto([TEXT])
    message.tensor_shape.dim[0].size = 3
    assert proto_to_array(message).tolist() == [TEXT] * 3
