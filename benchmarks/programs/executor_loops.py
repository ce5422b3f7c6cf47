"""What the executor itself costs: loops that are not compiled, and small steps with a branch.

loop       10,000 iterations of next to nothing; the session is told to leave loops to the executor
growth     resident memory gained while it runs 20 more times: nothing accumulates
subgraph   a small graph with a conditional (two numbers fed, one fetched) through make_callable
"""
import numpy as np
from programs import while_overhead

N = while_overhead.N


def config(tf):
    """Rewrites of loops are off: for thalweg, loops and conditionals run node by node."""
    made = tf.ConfigProto()
    rewrite = made.graph_options.rewrite_options
    rewrite.loop_optimization = type(rewrite).OFF
    return made


def resident_mb():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096 / 1e6


def build(tf):
    x = tf.placeholder(tf.float32, [])
    y = tf.placeholder(tf.float32, [])
    branch = tf.cond(x > y, lambda: x * 2.0 - y, lambda: y * 0.5 + x)
    return dict(x=x, y=y, branch=branch, loop=while_overhead.loop(tf, x))


def step(sess, m):
    return sess.run(m["loop"], {m["x"]: 1.0})


def run(tf, b):
    with tf.Graph().as_default(), tf.Session(config=config(tf)) as sess:
        m = build(tf)
        b.report("loop_value", float(step(sess, m)), "check")
        b.latency("loop_us_per_iteration", lambda: step(sess, m), calls=N, seconds=3, warmup=2)
        before = resident_mb()
        for _ in range(20):
            step(sess, m)
        b.report("loop_growth_mb", resident_mb() - before, "MB")
        call = sess.make_callable(m["branch"], [m["x"], m["y"]])
        one, two = np.float32(1), np.float32(2)
        b.report("subgraph_value", float(call(one, two)) + float(call(two, one)), "check")
        b.rate("subgraph_runs_per_s", lambda: [call(one, two) for _ in range(500)], calls=500,
               unit="runs/s", seconds=2, warmup=1)
    with tf.Graph().as_default(), tf.Session() as sess:
        m = build(tf)
        call = sess.make_callable(m["branch"], [m["x"], m["y"]])
        b.rate("compiled_subgraph_runs_per_s", lambda: [call(one, two) for _ in range(500)], calls=500,
               unit="runs/s", seconds=2, warmup=5)
