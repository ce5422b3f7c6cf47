"""Training graphs to be placed: `GRAPHS` has their builders, each from tf to what a step fetches.

Layers are built in scopes called "layer3" (ResNet: "s2b1"): what an expert would split by.
"""

import numpy as np
from programs import graph_build


def dense(tf, x, size, name="dense"):
    with tf.variable_scope(name):
        w = tf.get_variable("w", [int(x.shape[-1]), size])
        b = tf.get_variable("b", [size], initializer=tf.zeros_initializer())
        return tf.matmul(x, w) + b


def cross_entropy(tf, logits, n):
    labels = tf.placeholder(tf.int64, [n])
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def resnet50(tf):
    """ResNet-50, batch 32, momentum."""
    loss = graph_build.build(tf)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return loss, tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)


def inception(tf):
    """Nine modules of four branches each, as in GoogLeNet; batch 32, SGD."""

    def conv(x, filters, size, name):
        with tf.variable_scope(name):
            w = tf.get_variable("w", [size, size, int(x.shape[3]), filters])
            b = tf.get_variable("b", [filters], initializer=tf.zeros_initializer())
            return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), b))

    def pool(x, stride):
        return tf.nn.max_pool(x, [1, 3, 3, 1], [1, stride, stride, 1], "SAME")

    x = tf.placeholder(tf.float32, [32, 112, 112, 64])
    with tf.variable_scope("layer0"):
        x = pool(conv(pool(x, 2), 192, 3, "stem"), 2)
    for i in range(9):
        with tf.variable_scope(f"layer{i + 1}"):
            if i in (2, 7):
                x = pool(x, 2)
            f = 32 + 8 * i
            x = tf.concat([
                conv(x, 2 * f, 1, "a"),
                conv(conv(x, 2 * f, 1, "b1"), 3 * f, 3, "b2"),
                conv(conv(x, f, 1, "c1"), 2 * f, 5, "c2"),
                conv(pool(x, 1), f, 1, "d"),
            ], 3)
    loss = cross_entropy(tf, dense(tf, tf.reduce_mean(x, [1, 2]), 1000), 32)
    return loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)


def lstm8(tf, layers=8, steps=10, batch=64, hidden=1024):
    """An LSTM of 8 layers, unrolled over 10 steps, SGD."""
    xs = [tf.placeholder(tf.float32, [batch, hidden]) for _ in range(steps)]
    for i in range(layers):
        with tf.variable_scope(f"layer{i}"):
            w = tf.get_variable("w", [2 * hidden, 4 * hidden])
            b = tf.get_variable("b", [4 * hidden], initializer=tf.zeros_initializer())
            c = h = tf.zeros([batch, hidden])
            ys = []
            for x in xs:
                z = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), w), b)
                gi, gj, gf, go = tf.split(z, 4, 1)
                c = c * tf.sigmoid(gf + 1.0) + tf.sigmoid(gi) * tf.tanh(gj)
                h = tf.tanh(c) * tf.sigmoid(go)
                ys.append(h)
            xs = ys
    loss = cross_entropy(tf, dense(tf, tf.concat(xs, 0), 1000), batch * steps)
    return loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)


def transformer(tf, layers=6, batch=16, length=128, width=512, heads=8, words=16000):
    """A language model of 6 Transformer layers, batch 16 of 128 words, Adam."""

    def norm(x, name):
        with tf.variable_scope(name):
            scale = tf.get_variable("scale", [width], initializer=tf.ones_initializer())
            mean = tf.reduce_mean(x, [-1], keepdims=True)
            variance = tf.reduce_mean(tf.square(x - mean), [-1], keepdims=True)
            return (x - mean) * tf.rsqrt(variance + 1e-6) * scale

    def split(x):
        return tf.transpose(tf.reshape(x, [batch, length, heads, width // heads]), [0, 2, 1, 3])

    ids = tf.placeholder(tf.int32, [batch, length])
    with tf.variable_scope("layer0"):
        table = tf.get_variable("embedding", [words, width])
        x = tf.reshape(tf.nn.embedding_lookup(table, ids), [batch * length, width])
    for i in range(layers):
        with tf.variable_scope(f"layer{i + 1}"):
            y = norm(x, "n1")
            q, k, v = (split(dense(tf, y, width, name)) for name in "qkv")
            scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * (heads / width) ** 0.5)
            y = tf.transpose(tf.matmul(scores, v), [0, 2, 1, 3])
            x = x + dense(tf, tf.reshape(y, [batch * length, width]), width, "out")
            x = x + dense(tf, tf.nn.relu(dense(tf, norm(x, "n2"), 4 * width, "f1")), width, "f2")
    with tf.variable_scope(f"layer{layers + 1}"):
        loss = cross_entropy(tf, dense(tf, norm(x, "n"), words), batch * length)
    return loss, tf.train.AdamOptimizer().minimize(loss)


def wide_and_deep(tf, tables=16, rows=200_000, width=64, batch=4096):
    """16 embeddings of 51 MB into a net of four layers, and weights of crossed features; Adagrad."""
    ids = tf.placeholder(tf.int32, [batch, tables])
    embedded, wide = [], []
    for i, column in enumerate(tf.unstack(ids, axis=1)):
        with tf.variable_scope(f"layer{i}"):
            table = tf.get_variable("embedding", [rows, width])
            embedded.append(tf.nn.embedding_lookup(table, column))
            weights = tf.get_variable("wide", [rows, 1])
            wide.append(tf.nn.embedding_lookup(weights, column))
    x = tf.concat(embedded, 1)
    for i, size in enumerate((2048, 1024, 512, 256)):
        with tf.variable_scope(f"layer{tables + i}"):
            x = tf.nn.relu(dense(tf, x, size))
    with tf.variable_scope(f"layer{tables + 4}"):
        logits = dense(tf, x, 1) + tf.add_n(wide)
        labels = tf.placeholder(tf.float32, [batch, 1])
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    return loss, tf.train.AdagradOptimizer(0.05).minimize(loss)


def random_layers(tf, layers=24, wide=12, batch=256, seed=5):
    """Random: each of up to 12 nodes of a layer takes 1 to 3 of the two layers before; SGD."""
    rng = np.random.default_rng(seed)
    before = [[], [tf.placeholder(tf.float32, [batch, 512]) for _ in range(4)]]
    for i in range(layers):
        made = []
        with tf.variable_scope(f"layer{i}"):
            for j in range(int(rng.integers(3, wide + 1))):
                pool = before[-1] + before[-2]
                taken = rng.choice(len(pool), int(rng.integers(1, 4)), replace=False)
                same = {}
                for k in taken.tolist():
                    same.setdefault(int(pool[k].shape[1]), []).append(pool[k])
                size = int(rng.choice((256, 512, 1024)))
                parts = [
                    tf.matmul(tf.add_n(xs) if len(xs) > 1 else xs[0], tf.get_variable(f"w{j}_{n}", [n, size]))
                    for n, xs in same.items()
                ]
                made.append(tf.tanh(tf.add_n(parts) if len(parts) > 1 else parts[0]))
        before.append(made)
    loss = tf.add_n([tf.reduce_mean(tf.square(y)) for y in before[-1] + before[-2]])
    return loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)


GRAPHS = {
    "ResNet-50": resnet50,
    "Inception": inception,
    "8-layer LSTM": lstm8,
    "Transformer": transformer,
    "Wide & deep": wide_and_deep,
    "Random layers": random_layers,
}
