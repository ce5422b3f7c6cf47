"""Training programs for record_training.py and tests/library/test_training_runs.py. Each takes `tf`.

A program returns (loss, train op, variables, feeds): feeds(step) gives what to feed at a step. The numbers come
from NumPy generators with fixed seeds, so both sides train on the same data from the same weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graph_programs import OPTIMIZERS, training_step

Training = tuple[Any, Any, list[Any], Callable[[int], dict[Any, np.ndarray]]]

STEPS = 100
SHOWN = (1, 10, 100)  # the weights are compared after these numbers of steps


def _random(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def mlp(tf: Any) -> Training:
    """Two layers, softmax, Adam with a decaying rate, clipped gradients."""
    x = tf.placeholder(tf.float32, [None, 6])
    y = tf.placeholder(tf.int64, [None])
    w1 = tf.Variable(_random(1, 6, 8, scale=0.4))
    b1 = tf.Variable(tf.zeros([8]))
    w2 = tf.Variable(_random(2, 8, 3, scale=0.4))
    b2 = tf.Variable(tf.zeros([3]))
    logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.AdamOptimizer(tf.train.exponential_decay(0.02, step, 10, 0.9, staircase=True))
    grads, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, _ = tf.clip_by_global_norm(grads, 1.0)
    train = optimizer.apply_gradients(zip(clipped, variables, strict=True), global_step=step)

    def feeds(i: int) -> dict[Any, np.ndarray]:
        values = _random(1000 + i, 16, 6)
        return {x: values, y: (values[:, :3] + values[:, 3:]).argmax(1)}

    return loss, train, [w1, b1, w2, b2], feeds


def convnet(tf: Any) -> Training:
    """Convolutions, pooling, a dense layer, momentum."""
    x = tf.placeholder(tf.float32, [None, 8, 8, 1])
    y = tf.placeholder(tf.float32, [None, 2])
    filters = tf.get_variable("filters", initializer=_random(3, 3, 3, 1, 4, scale=0.3))
    bias = tf.get_variable("bias", [4], initializer=tf.constant_initializer(0.1))
    deeper = tf.get_variable("deeper", initializer=_random(4, 3, 3, 4, 4, scale=0.2))
    w = tf.get_variable("w", initializer=_random(5, 16, 2, scale=0.3))
    value = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, filters, strides=[1, 1, 1, 1], padding="SAME"), bias))
    value = tf.nn.max_pool(value, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    value = tf.tanh(tf.nn.conv2d(value, deeper, strides=[1, 2, 2, 1], padding="SAME"))
    logits = tf.matmul(tf.reshape(value, [-1, 16]), w)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits))
    train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)

    def feeds(i: int) -> dict[Any, np.ndarray]:
        images = _random(2000 + i, 8, 8, 8, 1)
        bright = images[:, :4].sum((1, 2, 3)) > images[:, 4:].sum((1, 2, 3))
        return {x: images, y: np.stack([bright, ~bright], 1).astype(np.float32)}

    return loss, train, [filters, bias, deeper, w], feeds


def embedding(tf: Any) -> Training:
    """A table with sparse gradients, resource variables, Adagrad."""
    ids = tf.placeholder(tf.int32, [None, 3])
    y = tf.placeholder(tf.float32, [None])
    with tf.variable_scope("model", use_resource=True):
        table = tf.get_variable("table", initializer=_random(6, 20, 4, scale=0.5))
        w = tf.get_variable("w", initializer=_random(7, 4, 1, scale=0.5))
    vectors = tf.reduce_mean(tf.nn.embedding_lookup(table, ids), 1)
    logits = tf.squeeze(tf.matmul(vectors, w), [1])
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
    train = tf.train.AdagradOptimizer(0.3).minimize(loss)

    def feeds(i: int) -> dict[Any, np.ndarray]:
        values = np.random.default_rng(3000 + i).integers(0, 20, (8, 3)).astype(np.int32)
        return {ids: values, y: (values.sum(1) % 2).astype(np.float32)}

    return loss, train, [table, w], feeds


PROGRAMS: dict[str, Callable[[Any], Training]] = {"mlp": mlp, "convnet": convnet, "embedding": embedding}


def run(tf: Any, name: str) -> dict[str, np.ndarray]:
    """Trains a program: the losses of all steps, and the weights after some."""
    result: dict[str, np.ndarray] = {}
    losses = []
    with tf.Graph().as_default():
        loss, train, variables, feeds = PROGRAMS[name](tf)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for i in range(1, STEPS + 1):
                losses.append(session.run([loss, train], feeds(i))[0])
                if i in SHOWN:
                    for n, value in enumerate(session.run(variables)):
                        result[f"{name}/{i}/{n}"] = value
    result[f"{name}/losses"] = np.array(losses, np.float32)
    return result


KINDS = ("reference", "resource")


def run_optimizer(tf: Any, optimizer: str, kind: str, steps: int = 5) -> dict[str, np.ndarray]:
    """The variables of `training_step` after some steps of an optimizer."""
    with tf.Graph().as_default():
        train, variables = training_step(tf, optimizer, kind == "resource")
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(steps):
                session.run(train)
            values = session.run(variables)
    return {f"{optimizer}/{kind}/{n}": value for n, value in enumerate(values)}


OPTIMIZER_RUNS = [(optimizer, kind) for optimizer in OPTIMIZERS for kind in KINDS]


DECAYS: dict[str, Callable[[Any, Any], Any]] = {
    "exponential": lambda tf, step: tf.train.exponential_decay(0.1, step, 10, 0.9),
    "exponential_staircase": lambda tf, step: tf.train.exponential_decay(0.1, step, 10, 0.9, staircase=True),
    "natural_exp": lambda tf, step: tf.train.natural_exp_decay(0.1, step, 10, 0.5),
    "inverse_time": lambda tf, step: tf.train.inverse_time_decay(0.1, step, 10, 0.5),
    "inverse_time_staircase": lambda tf, step: tf.train.inverse_time_decay(0.1, step, 10, 0.5, staircase=True),
    "polynomial": lambda tf, step: tf.train.polynomial_decay(0.1, step, 20, 0.01, power=2.0),
    "polynomial_cycle": lambda tf, step: tf.train.polynomial_decay(0.1, step, 20, 0.01, power=0.5, cycle=True),
    "piecewise": lambda tf, step: tf.train.piecewise_constant(step, [5, 10, 30], [1.0, 0.5, 0.25, 0.125]),
    "cosine": lambda tf, step: tf.train.cosine_decay(0.1, step, 30, alpha=0.1),
    "restarts": lambda tf, step: tf.train.cosine_decay_restarts(0.1, step, 7, m_mul=0.8),
    "restarts_as_long": lambda tf, step: tf.train.cosine_decay_restarts(0.1, step, 7, t_mul=1.0, m_mul=0.5),
    "linear_cosine": lambda tf, step: tf.train.linear_cosine_decay(0.1, step, 30),
}


def run_decay(tf: Any, decay: str) -> np.ndarray:
    """A learning rate at the steps 0 to 49."""
    with tf.Graph().as_default():
        step = tf.placeholder(tf.int64, [])
        rate = DECAYS[decay](tf, step)
        with tf.Session() as session:
            return np.array([session.run(rate, {step: i}) for i in range(50)], np.float32)
