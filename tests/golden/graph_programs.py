"""TF 1.x programs that build graphs. Each takes the module `tf`: TensorFlow's own, or thalweg.

record_graphs.py writes down the graphs that TensorFlow builds; tests/graph/test_recorded_graphs.py compares
thalweg's with them node by node. A program builds into the default graph; it runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[[Any], None]

PROGRAMS: dict[str, Program] = {}


def program(build: Program) -> Program:
    """Adds a program under its function's name."""
    PROGRAMS[build.__name__] = build
    return build


def _weights(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape)).reshape(shape) % 7 / 8 - 0.25).astype(np.float32)


# ---- models ----------------------------------------------------------------------------------------------


@program
def mlp_sgd(tf: Any) -> None:
    """Plain variables, operators, a softmax loss, gradient descent, an initialiser and accuracy."""
    x = tf.placeholder(tf.float32, [None, 6], name="x")
    y = tf.placeholder(tf.int64, [None], name="y")
    w1 = tf.Variable(_weights(6, 5), name="w1")
    b1 = tf.Variable(tf.zeros([5]), name="b1")
    w2 = tf.Variable(_weights(5, 3))
    b2 = tf.Variable(tf.zeros([3]))
    hidden = tf.nn.relu(tf.matmul(x, w1) + b1)
    logits = tf.matmul(hidden, w2) + b2
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    correct = tf.equal(tf.argmax(logits, 1), y)
    tf.reduce_mean(tf.cast(correct, tf.float32), name="accuracy")
    tf.global_variables_initializer()


@program
def mlp_adam(tf: Any) -> None:
    """get_variable in variable scopes, reuse, a global step, Adam."""
    x = tf.placeholder(tf.float32, [4, 6])

    def layer(value: Any, size: int) -> Any:
        inputs = value.get_shape().as_list()[-1]
        w = tf.get_variable("weights", [inputs, size], initializer=tf.constant_initializer(0.1))
        b = tf.get_variable("biases", [size], initializer=tf.zeros_initializer())
        return tf.nn.bias_add(tf.matmul(value, w), b)

    def model(value: Any) -> Any:
        with tf.variable_scope("first"):
            value = tf.tanh(layer(value, 5))
        with tf.variable_scope("second"):
            return layer(value, 2)

    with tf.variable_scope("model"):
        out = model(x)
    with tf.variable_scope("model", reuse=True):
        again = model(x * 2.0)
    loss = tf.reduce_mean(tf.square(out - again), name="loss")
    step = tf.train.get_or_create_global_step()
    tf.train.AdamOptimizer(1e-3).minimize(loss, global_step=step)
    tf.global_variables_initializer()


@program
def convnet_momentum(tf: Any) -> None:
    """Convolutions, pooling, reshapes, dense labels, momentum."""
    images = tf.placeholder(tf.float32, [None, 64])
    labels = tf.placeholder(tf.float32, [None, 4])
    value = tf.reshape(images, [-1, 8, 8, 1])
    for i, (inputs, outputs) in enumerate([(1, 2), (2, 3)]):
        with tf.name_scope(f"conv{i}"):
            filters = tf.Variable(_weights(3, 3, inputs, outputs), name="filters")
            value = tf.nn.conv2d(value, filters, strides=[1, 1, 1, 1], padding="SAME")
            value = tf.nn.relu(tf.nn.bias_add(value, tf.Variable(tf.zeros([outputs]), name="bias")))
            value = tf.nn.max_pool(value, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    flat = tf.reshape(value, [-1, 12])
    logits = tf.matmul(flat, tf.Variable(_weights(12, 4)))
    losses = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    tf.train.MomentumOptimizer(0.01, 0.9).minimize(tf.reduce_mean(losses))


@program
def embedding_adagrad(tf: Any) -> None:
    """A table of embeddings, whose gradient is sparse."""
    ids = tf.placeholder(tf.int32, [None, 3])
    table = tf.get_variable("table", [20, 4], initializer=tf.ones_initializer())
    vectors = tf.nn.embedding_lookup(table, ids)
    scores = tf.reduce_sum(vectors * vectors, axis=[1, 2])
    tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_mean(tf.sigmoid(scores)))


@program
def resource_variables(tf: Any) -> None:
    """Resource variables: reads, updates, gradients."""
    with tf.variable_scope("scope", use_resource=True):
        w = tf.get_variable("w", [3, 2], initializer=tf.constant_initializer(0.5))
        v = tf.Variable(_weights(2), use_resource=True, name="v")
    x = tf.placeholder(tf.float32, [None, 3])
    loss = tf.reduce_sum(tf.matmul(x, w) * v)
    update = tf.assign_add(v, [1.0, 2.0])
    with tf.control_dependencies([update]):
        tf.identity(v.read_value(), name="after")
    w.assign(w * 0.5)
    tf.train.GradientDescentOptimizer(tf.constant(0.1)).minimize(loss)
    tf.global_variables_initializer()


# ---- parts of programs -----------------------------------------------------------------------------------


@program
def scopes_and_collections(tf: Any) -> None:
    """Name scopes, control dependencies, devices, colocation, collections."""
    with tf.name_scope("outer"):
        a = tf.constant(1.0, name="a")
        with tf.name_scope("inner"):
            b = tf.add(a, 2.0, name="b")
        with tf.name_scope("inner") as again:
            c = tf.multiply(a, b)
    with tf.name_scope(again):
        d = tf.subtract(c, 1.0, name="d")
    with tf.device("/cpu:0"):
        e = tf.identity(d, name="e")
        with tf.device("/job:worker/task:3"):
            tf.identity(e)
    with tf.control_dependencies([a, e.op]):
        f = tf.identity(b, name="f")
        tf.no_op(name="nothing")
    with tf.colocate_with(f):
        g = tf.constant([1, 2, 3], name="g")
    both = tf.group(e, f, name="both")
    h, _ = tf.tuple([a, b], control_inputs=[both])
    tf.add_to_collection("mine", h)
    tf.add_to_collection("mine", g)
    tf.add_to_collection(tf.GraphKeys.LOSSES, c)
    tf.Variable(1.0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES], name="local")
    tf.local_variables_initializer()


@program
def random_initialisers(tf: Any) -> None:
    """Random ops and initialisers, with graph and op seeds."""
    tf.set_random_seed(42)
    tf.Variable(tf.random_normal([3, 2], stddev=0.1), name="normal")
    tf.Variable(tf.truncated_normal([3, 2], mean=1.0, seed=7), name="truncated")
    tf.Variable(tf.random_uniform([3], -1.0, 1.0), name="uniform")
    tf.random_uniform([], 0, 10, tf.int32, name="dice")
    tf.get_variable("glorot", [4, 3])
    tf.get_variable("glorot_normal", [4, 3], initializer=tf.glorot_normal_initializer())
    tf.get_variable("scaled", [4, 3], initializer=tf.variance_scaling_initializer(mode="fan_out", seed=3))
    tf.get_variable("random_normal", [2], initializer=tf.random_normal_initializer(stddev=0.5))
    tf.get_variable("random_uniform", [2], initializer=tf.random_uniform_initializer(-0.5, 0.5))
    tf.get_variable("counts", [2], dtype=tf.int32)
    tf.random_shuffle(tf.range(10))


@program
def losses(tf: Any) -> None:
    """tf.losses with weights, and the sum of them."""
    labels = tf.placeholder(tf.float32, [4, 3])
    predictions = tf.placeholder(tf.float32, [4, 3])
    tf.losses.mean_squared_error(labels, predictions)
    tf.losses.softmax_cross_entropy(labels, predictions)
    tf.losses.get_total_loss()


@program
def decay(tf: Any) -> None:
    """A learning rate that decays with the global step."""
    step = tf.Variable(0, trainable=False, name="global_step")
    rate = tf.train.exponential_decay(0.1, step, 100, 0.96, staircase=True)
    v = tf.Variable([1.0, 2.0])
    loss = tf.reduce_sum(v**2)
    tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
    tf.train.inverse_time_decay(0.1, step, 100, 0.5)
    tf.train.polynomial_decay(0.1, step, 100, power=2.0)
    tf.train.natural_exp_decay(0.1, step, 100, 0.5, name="natural")
    tf.train.cosine_decay(0.1, step, 100)


@program
def clipped_gradients(tf: Any) -> None:
    """compute_gradients, clip_by_global_norm, apply_gradients; clipping by value and norm."""
    v = tf.Variable([1.0, 2.0], name="v")
    w = tf.Variable([[1.0], [2.0]], name="w")
    loss = tf.reduce_sum(tf.exp(v) * tf.matmul(tf.reshape(v, [1, 2]), w))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    grads, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, _ = tf.clip_by_global_norm(grads, 5.0)
    optimizer.apply_gradients(zip(clipped, variables, strict=True), name="apply")
    tf.clip_by_value(v, -1.0, 1.0)
    tf.clip_by_norm(w, 2.0)


@program
def gates(tf: Any) -> None:
    """Gating, aggregation of gradients, colocated gradients."""
    v = tf.Variable([1.0, 2.0], name="v")
    w = tf.Variable([3.0, 4.0], name="w")
    loss = tf.reduce_sum(v * w + v / w)
    for gate in (tf.train.Optimizer.GATE_NONE, tf.train.Optimizer.GATE_OP, tf.train.Optimizer.GATE_GRAPH):
        tf.train.GradientDescentOptimizer(0.1).minimize(
            loss, gate_gradients=gate, colocate_gradients_with_ops=True, aggregation_method=tf.AggregationMethod.ADD_N
        )


@program
def slices_and_operators(tf: Any) -> None:
    """Indexing and Python's operators, and their gradients."""
    x = tf.placeholder(tf.float32, [None, 4, 5], name="x")
    parts = [x[0], x[:, 1], x[1:3, ..., ::2], x[:, tf.newaxis, -1], x[tf.shape(x)[0] - 1, 2:, 3]]
    a, b = parts[1], x[:, 2]
    values = [a + b, a - 1, 2 * a, a / b, a // 2.0, a % b, a**2, -a, abs(a), 1.0 / a, 3 - a]
    truths = [a < b, a <= 1, a > b, a >= 0.5, (a < b) & (a > 0), (a < b) | (b > 0), ~(a < b), (a < 1) ^ (b < 1)]
    n = tf.range(4)
    values += [tf.cast(v, tf.float32) for v in (n + 1, n // 2, n % 3, n / 2, n * n)]
    tf.stack([tf.reduce_sum(v) for v in values])
    tf.stack([tf.reduce_any(t) for t in truths])
    tf.gradients([tf.reduce_sum(p) for p in parts] + values[:6], x)


@program
def shapes(tf: Any) -> None:
    """Shapes known and unknown, joining and splitting, and their gradients."""
    x = tf.placeholder(tf.float32, [None, 6], name="x")
    rows = tf.shape(x)[0]
    y = tf.reshape(x, tf.stack([rows, 2, 3]))
    z = tf.transpose(y, [0, 2, 1])
    a, b, c = tf.split(x, 3, axis=1)
    joined = tf.concat([a, c, tf.tile(b, [1, 2])], 1)
    tf.fill([rows, 2], 1.5)
    tf.zeros_like(x), tf.ones_like(b), tf.one_hot(tf.constant([0, 2]), 3), tf.expand_dims(x, -1)
    first = tf.squeeze(tf.slice(z, [0, 0, 0], [-1, 1, 2]), [1])
    stacked = tf.stack(tf.unstack(y, axis=1), axis=2)
    tf.where(x > 0, x, tf.zeros_like(x))
    total = tf.reduce_sum(joined) + tf.reduce_mean(first) + tf.reduce_max(stacked) + tf.reduce_mean(z)
    tf.gradients(total, x)


@program
def averages(tf: Any) -> None:
    """Moving averages of tensors; those of variables start from a conditional in TensorFlow."""
    step = tf.train.get_or_create_global_step()
    v = tf.get_variable("v", initializer=tf.constant_initializer(1.0), shape=[2])
    total = tf.reduce_sum(v, name="total")
    tf.train.ExponentialMovingAverage(0.99, num_updates=step).apply([total])
    tf.train.ExponentialMovingAverage(0.9, zero_debias=True, name="mean").apply([total])


# ---- every optimizer, on a dense and a sparse gradient, with both kinds of variable ----------------------

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "gradient_descent": lambda tf: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda tf: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda tf: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda tf: tf.train.AdagradOptimizer(0.1),
    "adam": lambda tf: tf.train.AdamOptimizer(0.1),
    "rmsprop": lambda tf: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "rmsprop_centered": lambda tf: tf.train.RMSPropOptimizer(0.1, centered=True),
    "adadelta": lambda tf: tf.train.AdadeltaOptimizer(0.5),
    "ftrl": lambda tf: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "ftrl_shrinkage": lambda tf: tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1),
    "proximal_gradient_descent": lambda tf: tf.train.ProximalGradientDescentOptimizer(0.1, 0.01, 0.02),
    "proximal_adagrad": lambda tf: tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
    "adagrad_da": lambda tf: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step()),
}


def training_step(tf: Any, optimizer: str, use_resource: bool) -> tuple[Any, list[Any]]:
    """One optimizer on a table (sparse gradient, with rows that repeat) and a matrix. (train op, variables)."""
    table = tf.Variable(_weights(5, 3), name="table", use_resource=use_resource)
    w = tf.Variable(_weights(3, 2), name="w", use_resource=use_resource)
    rows = tf.gather(table, tf.constant([3, 0, 3], name="ids"))
    loss = tf.reduce_sum(tf.square(tf.matmul(rows, w) - 1.0), name="loss")
    step = tf.train.get_or_create_global_step()
    return OPTIMIZERS[optimizer](tf).minimize(loss, global_step=step), [table, w]


for _name in OPTIMIZERS:
    if _name.startswith("ftrl"):
        continue  # TensorFlow 2.21 has another argument, beta, and other nodes: see test_optimizers.py
    for _kind in ("reference", "resource"):
        PROGRAMS[f"optimizer_{_name}_{_kind}"] = (
            lambda tf, name=_name, kind=_kind: training_step(tf, name, kind == "resource") and None
        )
