"""What it costs that a graph is on two devices: a scalar that crosses, in a step and in a loop, and 16 MB."""
import statistics
import time

import numpy as np

LARGE = 1 << 22  # floats
ITERATIONS = 200


def build(tf):
    x = tf.placeholder(tf.float32, [], name="x")
    m = dict(x=x)
    for devices in (1, 2):
        last = "/cpu:%d" % (devices - 1)
        with tf.device("/cpu:0"):
            y = tf.exp(-x)
        with tf.device(last):
            z = tf.tanh(y) + 1.0
        with tf.device("/cpu:0"):
            back = tf.sin(z)
        m["there%d" % devices], m["and_back%d" % devices] = z, back

        def body(i, v):
            with tf.device(last):
                return i + 1, tf.tanh(v) + x

        with tf.device("/cpu:0"):
            # a loop on one device would be compiled: its condition waits for Python here
            limit = tf.py_func(lambda: np.int32(ITERATIONS), [], tf.int32)
            limit.set_shape([])
            m["loop%d" % devices] = tf.while_loop(lambda i, v: i < limit, body, [tf.constant(0), x])[1]
    with tf.device("/cpu:0"):
        v = tf.Variable(tf.ones([LARGE]))
        large = v * x
        # a host op makes it a value of its own, rather than a part of what takes it
        first = tf.size(tf.unique(large[:1])[0]) - 1
        m["here"], m["read_here"] = tf.gather(large, first), v[3] * x
    with tf.device("/cpu:1"):
        m["there"], m["read_there"] = tf.gather(large, first), v[3] * x
    m["init"] = tf.global_variables_initializer()
    return m


def run(tf, b):
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.Graph().as_default(), tf.Session(config=config) as sess:
        m = build(tf)
        sess.run(m["init"])
        b.report("value", float(sess.run(m["and_back2"], {m["x"]: 0.5})), "check")
        how = dict(seconds=1.5, warmup=200, inner=100)
        for name in ("there1", "there2", "and_back1", "and_back2"):
            call = sess.make_callable(m[name], [m["x"]])
            b.latency(name + "_us", lambda: call(np.float32(0.5)), **how)
        for name in ("loop1", "loop2"):
            call = sess.make_callable(m[name], [m["x"]])
            b.latency(name + "_us_per_iteration", lambda: call(np.float32(0.5)), calls=ITERATIONS,
                      seconds=2, warmup=3)
        for metric, names in (("transfer", ("here", "there")), ("read", ("read_here", "read_there"))):
            transfer(b, metric, *(sess.make_callable(m[name], [m["x"]]) for name in names))


def transfer(b, metric, here, there, pairs=60):
    """What it takes longer that 16 MB cross: steps in turn, so that both have the same machine."""
    samples = []
    for i in range(pairs + 5):
        times = []
        for call in (here, there):
            start = time.perf_counter()
            call(np.float32(0.5))
            times.append(time.perf_counter() - start)
        if i >= 5:
            samples.append((times[1] - times[0]) * 1e3)
    samples.sort()
    b.report(metric + "_16MB_ms", statistics.median(samples), "ms", p10=samples[len(samples) // 10])
