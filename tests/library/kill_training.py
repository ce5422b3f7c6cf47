"""A program that trains, saves after each step, and goes on where it was cut off. See test_kill.py.

    python kill_training.py FOLDER STEPS numbered|same|sharded [DIGESTS]
    python kill_training.py --serve

Writes STEPS steps' checkpoints into FOLDER and ends; with DIGESTS, writes a digest of all variables after each
step into that file. Prints "step N" when a step is saved, "begun" before the first.

With --serve it takes such arguments from lines of its input. Each is run by a process of its own, made by a
fork, since starting Python takes longer than training: "pid N" says which, "ended" that it has ended.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys

import numpy as np

import thalweg as tf


def say(line: str) -> None:
    """A line of output in one write: whole, also where the process is killed."""
    os.write(1, f"{line}\n".encode())


def digest(values: dict[str, np.ndarray]) -> str:
    """A digest of variables by name."""
    sha = hashlib.sha256()
    for name in sorted(values):
        sha.update(name.encode() + np.ascontiguousarray(values[name]).tobytes())
    return sha.hexdigest()


def main(folder: str, steps: int, kind: str, digests: str | None) -> None:
    x = tf.placeholder(tf.float32, [16, 64])
    y = tf.placeholder(tf.float32, [16, 1])
    hidden = tf.nn.tanh(tf.matmul(x, tf.get_variable("w1", [64, 1500])) + tf.get_variable("b1", [1500]))
    part = tf.get_variable("w2", [1500, 64], partitioner=tf.fixed_size_partitioner(3), use_resource=True)
    hidden = tf.nn.tanh(tf.matmul(hidden, part))
    loss = tf.reduce_mean(tf.square(tf.matmul(hidden, tf.get_variable("w3", [64, 1])) - y))
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(1e-3).minimize(loss, global_step=step)
    saver = tf.train.Saver(max_to_keep=2, sharded=kind == "sharded")
    found: dict[int, str] = {}
    with tf.Session() as session:
        latest = tf.train.latest_checkpoint(folder)
        if latest is None:
            session.run(tf.global_variables_initializer())
        else:
            saver.restore(session, latest)
            saver.recover_last_checkpoints(tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths)
        say("begun")
        n = int(session.run(step))
        while n < steps:
            rng = np.random.RandomState(n)
            session.run(train, {x: rng.standard_normal((16, 64)), y: rng.standard_normal((16, 1))})
            n += 1
            saver.save(session, f"{folder}/model", global_step=None if kind == "same" else n, write_meta_graph=n == 1)
            say(f"step {n}")
            if digests:
                names = tf.global_variables()
                found[n] = digest({v.op.name: value for v, value in zip(names, session.run(names), strict=True)})
    if digests:
        with open(digests, "w") as file:
            json.dump(found, file)


def train(arguments: list[str]) -> None:
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        main(arguments[0], int(arguments[1]), arguments[2], arguments[3] if len(arguments) > 3 else None)


def serve() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            train(line.split())
            os._exit(0)
        say(f"pid {pid}")
        os.waitpid(pid, 0)
        say("ended")


if __name__ == "__main__":
    serve() if sys.argv[1] == "--serve" else train(sys.argv[1:])
