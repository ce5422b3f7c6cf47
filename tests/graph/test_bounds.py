"""Sizes that a graph only claims, and sums of very many terms."""

from __future__ import annotations

import numpy as np
import pytest

import thalweg as tf


def test_one_value_for_a_shape() -> None:
    for value in (1.5, 7, b"a", True):
        message = tf.make_tensor_proto(value, shape=[4000, 300])
        assert message.ByteSize() < 30
        assert (tf.make_ndarray(message) == np.full([4000, 300], value, object)).all()


def test_a_sum_of_many_terms() -> None:
    """As one chain it overflowed the stack of XLA's compiler."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        assert session.run(tf.add_n([x] * 12000), {x: 1.0}) == 12000.0


def test_a_fetch_that_memory_cannot_hold() -> None:
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(tf.errors.ResourceExhaustedError):
        session.run(tf.zeros([10**7, 10**7]))


def test_a_type_that_a_list_does_not_allow() -> None:
    with tf.Graph().as_default(), pytest.raises(TypeError, match="int32 not in list of allowed values"):
        tf.parse_example([b""], {"a": tf.FixedLenFeature([], tf.int32)})
