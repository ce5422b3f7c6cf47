"""The first training step of a fresh process, with nothing compiled before and (for thalweg) with what an
earlier process left in the disk cache of executables."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

ONE = """
import sys, time
sys.path.insert(0, sys.argv[2])
from bench import load_backend
tf = load_backend(sys.argv[1])
from programs import cnn_train, mlp_train
name = sys.argv[3]
with tf.Graph().as_default(), tf.Session() as sess:
    m = cnn_train.build(tf) if name == "cnn" else mlp_train.build(tf, name[4:])
    sess.run(m["init"])
    program = cnn_train if name == "cnn" else mlp_train
    start = time.perf_counter()
    program.step(sess, m, 0)
    print(time.perf_counter() - start, flush=True)
    for i in range(1, 6):  # what is compiled on the side is ready and kept
        program.step(sess, m, i)
"""


def build(tf):
    return None


def step(backend, name, cache):
    """Seconds of the first training step."""
    env = dict(os.environ, XDG_CACHE_HOME=cache)
    out = subprocess.run([sys.executable, "-c", ONE, backend, HERE, name], env=env, check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return float(out.split()[0])


def run(tf, b):
    for name in ("mlp_sgd", "mlp_adam", "cnn"):
        cold, warm = [], []
        for _ in range(3):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(step(tf.__name__, name, cache))
                warm.append(step(tf.__name__, name, cache))
        b.report(name + "_cold_s", sorted(cold)[1], "s")
        b.report(name + "_warm_s", sorted(warm)[1], "s")
