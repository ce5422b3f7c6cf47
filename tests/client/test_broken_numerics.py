"""Clusters compute what is written: XLA's algebra must not move overflows, NaN or infinities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import thalweg as tf

OP_BY_OP = tf.ConfigProto()
OP_BY_OP.graph_options.optimizer_options.global_jit_level = -1

X = np.array([100.0, -100.0, -1.0, 0.0, 1e-25, 1e30, np.nan, np.inf, -np.inf], np.float32)
Y = np.array([-100.0, 100.0, 2.0, 3.0, 1e-25, 1e30, 1.0, 0.0, 1.0], np.float32)

FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "exp_times_exp": lambda x, y: tf.exp(x) * tf.exp(y),
    "log_of_exp": lambda x, y: tf.log(tf.exp(x)),
    "log_of_identity_of_exp": lambda x, y: tf.log(tf.identity(tf.exp(x))),
    "log_of_pow": lambda x, y: tf.log(tf.pow(x, y)),
    "pow_of_exp": lambda x, y: tf.pow(tf.exp(x), y),
    "pow_of_pow": lambda x, y: tf.pow(tf.pow(x, 2.0), 0.5),
    "div_of_div": lambda x, y: x / y / y,
    "div_by_div": lambda x, y: x / (y / x),
    "div_of_divs": lambda x, y: (x / y) / (y / x),
    "sqrt_of_product": lambda x, y: tf.sqrt(x * x),
    "sqrt_of_square": lambda x, y: tf.sqrt(tf.square(x)),
    "constants_around_reshape": lambda x, y: tf.reshape(x + 1e8, [-1, 1]) - 1e8,
    "constants_around_reverse": lambda x, y: tf.reverse(x * 1e30, [0]) * 1e-30,
    "mask": lambda x, y: tf.cast(y > 1.5, tf.float32) * x,
    "mask_of_quotient": lambda x, y: tf.cast(y > 500.0, tf.float32) / tf.reduce_sum(tf.cast(y > 1e35, tf.float32)),
    "gradient_of_max": lambda x, y: tf.gradients(tf.reduce_max(x), x)[0],
    "gradient_of_quotient": lambda x, y: tf.gradients(x / y, y)[0],
}


@pytest.mark.parametrize("name", FORMULAS)
def test_clusters_compute_what_is_written(name: str) -> None:
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
        result = FORMULAS[name](x, y)
        with tf.Session() as clusters, tf.Session(config=OP_BY_OP) as ops:
            got, want = (s.run(result, {x: X, y: Y}) for s in (clusters, ops))
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_mask_hides_no_nan(dtype: str) -> None:
    with tf.Graph().as_default():
        mask = tf.placeholder(tf.bool, [3])
        x = tf.placeholder(dtype, [3])
        product = tf.cast(mask, dtype) * x
        with tf.Session() as session:
            got = session.run(product, {mask: [False, True, False], x: [np.nan, np.nan, np.inf]})
    assert np.isnan(got.astype(np.float32)).all()


def test_constant_labels() -> None:
    with tf.Graph().as_default():
        logits = tf.placeholder(tf.float32, [2, 2])
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1], logits=logits)
        bad = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2], logits=logits)
        with tf.Session() as session:
            values = {logits: [[1.0, 2.0], [3.0, 4.0]]}
            np.testing.assert_allclose(session.run(loss, values), [1.3132617, 0.3132617], rtol=1e-5)
            with pytest.raises(tf.errors.InvalidArgumentError, match="label value of 2"):
                session.run(bad, values)
