"""How well a step's time is predicted after one measured run, on two virtual CPU devices.

Nets whose layers are on /cpu:0 and /cpu:1 by tf.device. After warm-up one step is traced, a cost model takes
it over, and the placer's simulation says how long a step will take. Compared with the median of steps that
aren't traced. Since one traced run may be a slow one, that is done several times, in turns with steps that
aren't traced: the table has the median of the predictions, each from one run, and the lowest and highest.
"""
import statistics
import time

import data
import numpy as np
from placement_graphs import dense
from programs import cnn_train, lstm_train

# turns of steps that aren't traced and one that is; those before are for warming up
WARM, TURNS, STEPS = 3, 11, 4



def mlp(tf):
    """784-512-512-10, batch 128, SGD: the first layer here, the others there."""
    x = tf.placeholder(tf.float32, [128, 784])
    y = tf.placeholder(tf.int64, [128])
    h = x
    for i, (w, bias) in enumerate(data.mlp_weights()):
        with tf.device("/cpu:%d" % (i > 0)):
            h = tf.matmul(h, tf.Variable(w)) + tf.Variable(bias)
            h = h if i == 2 else tf.nn.relu(h)
    with tf.device("/cpu:1"):
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=h))
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, colocate_gradients_with_ops=True)
    images, labels = data.image_batches(128, (784,))[0]
    return [loss, train], {x: images, y: labels}


def convnet(tf):
    """The net of cnn_train, Adam: convolutions here, dense layers there."""
    x = tf.placeholder(tf.float32, [cnn_train.BATCH, 784])
    y = tf.placeholder(tf.float32, [cnn_train.BATCH, 10])
    weights = data.cnn_weights()
    h = tf.reshape(x, [-1, 28, 28, 1])
    with tf.device("/cpu:0"):
        for w, bias in weights[:2]:
            h = tf.nn.relu(tf.nn.conv2d(h, tf.Variable(w), [1, 1, 1, 1], "SAME") + tf.Variable(bias))
            h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    with tf.device("/cpu:1"):
        (w3, b3), (w4, b4) = weights[2:]
        h = tf.nn.relu(tf.matmul(tf.reshape(h, [-1, 7 * 7 * 64]), tf.Variable(w3)) + tf.Variable(b3))
        logits = tf.matmul(h, tf.Variable(w4)) + tf.Variable(b4)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))
    train = tf.train.AdamOptimizer(1e-4).minimize(loss, colocate_gradients_with_ops=True)
    images, labels = data.image_batches(cnn_train.BATCH, (784,))[0]
    return [loss, train], {x: images, y: np.eye(10, dtype=np.float32)[labels]}


def lstm(tf):
    """The word LSTM of lstm_train, a while_loop: the loop here, the softmax there."""
    c = lstm_train.C
    n, t, hidden = c["batch"], c["T"], c["hidden"]
    x = tf.placeholder(tf.int32, [n, t])
    y = tf.placeholder(tf.int32, [n, t])
    with tf.device("/cpu:0"):
        w = {k: tf.Variable(v, name=k) for k, v in data.lstm_weights().items() if not k.startswith("softmax")}
        inputs = tf.nn.embedding_lookup(w["embedding"], tf.transpose(x))
        zero = tf.zeros([n, hidden])
        outputs, _, _ = lstm_train.lstm(tf, inputs, zero, zero, w["kernel"], w["bias"])
    with tf.device("/cpu:1"):
        s = {k: tf.Variable(v, name=k) for k, v in data.lstm_weights().items() if k.startswith("softmax")}
        logits = tf.matmul(tf.reshape(outputs, [-1, hidden]), s["softmax_w"]) + s["softmax_b"]
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.reshape(tf.transpose(y), [-1]), logits=logits))
    train = tf.train.GradientDescentOptimizer(1.0).minimize(loss, colocate_gradients_with_ops=True)
    words, after = data.lstm_batches()[0]
    return [loss, train], {x: words, y: after}


def model_parallel(tf, layers=4, steps=8, batch=64, hidden=256):
    """An LSTM of 4 layers, unrolled over 8 steps, SGD: two layers here, two there."""
    first = [tf.placeholder(tf.float32, [batch, hidden]) for _ in range(steps)]
    xs = first
    for i in range(layers):
        with tf.device("/cpu:%d" % (i >= layers // 2)), tf.variable_scope("layer%d" % i):
            w = tf.get_variable("w", [2 * hidden, 4 * hidden])
            b = tf.get_variable("b", [4 * hidden], initializer=tf.zeros_initializer())
            c = h = tf.zeros([batch, hidden])
            ys = []
            for x in xs:
                gi, gj, gf, go = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), w), b), 4, 1)
                c = c * tf.sigmoid(gf + 1.0) + tf.sigmoid(gi) * tf.tanh(gj)
                h = tf.tanh(c) * tf.sigmoid(go)
                ys.append(h)
            xs = ys
    with tf.device("/cpu:1"):
        loss = tf.reduce_mean(tf.square(dense(tf, tf.concat(xs, 0), 100)))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, colocate_gradients_with_ops=True)
    rng = np.random.default_rng(1)
    return [loss, train], {x: data.normal(rng, (batch, hidden), 1.0) for x in first}


PROGRAMS = {"MLP": mlp, "convnet": convnet, "LSTM in a loop": lstm, "LSTM by layers": model_parallel}


def explain(tf, graph, fetches, config, costs=None):
    """Predicted seconds of a step."""
    return tf.placement.explain(graph, fetches, config=config, costs=costs, alternatives=0).step_time


def run(tf, b):
    config = tf.ConfigProto(device_count={"CPU": 2})
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    for name, build in PROGRAMS.items():
        with tf.Graph().as_default() as graph, tf.Session(config=config) as session:
            fetches, feeds = build(tf)
            session.run(tf.global_variables_initializer())
            estimate = explain(tf, graph, fetches, config)
            traced, took = [], []
            for turn in range(-WARM, TURNS):
                session.run(fetches, feeds)  # leaves updates behind, which the next step waits for
                start = time.perf_counter()
                for _ in range(STEPS):
                    session.run(fetches, feeds)
                took.append((time.perf_counter() - start) / STEPS)
                metadata = tf.RunMetadata()
                session.run(fetches, feeds, options, metadata)
                traced.append(metadata)
            predicted = []
            for metadata in traced[WARM:]:
                costs = tf.placement.measure(graph, metadata)
                predicted.append(explain(tf, graph, fetches, config, costs))
            b.report(f"{name}: measured", statistics.median(took[WARM:]) * 1e3, "ms")
            b.report(f"{name}: predicted", statistics.median(predicted) * 1e3, "ms")
            b.report(f"{name}: lowest", min(predicted) * 1e3, "ms")
            b.report(f"{name}: highest", max(predicted) * 1e3, "ms")
            b.report(f"{name}: estimate", estimate * 1e3, "ms")
