"""Data-parallel training: the digits net in a tower per device, checked against one device.

    python examples/data_parallel.py [--devices 4] [--steps 40] [--batch 128] [--seed 7]

Each tower has a part of the batch and the same variables, which live on the first device. One step computes
all towers' gradients at once, averages them and applies the mean: the synchronous scheme of the TensorFlow
white paper (section 7). The same net is then trained by one device on whole batches; every step's loss is
compared.
"""

import argparse
import sys
import time
from collections.abc import Callable

import digits
import numpy as np
from rich.console import Console

import thalweg as tf


def loss_of(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """The digits net's mean loss (examples/digits.py, without dropout)."""
    h = digits.convolution(images, 32, "conv1")
    h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    h = digits.convolution(h, 64, "conv2")
    h = tf.reshape(h, [-1, 4 * 4 * 64])
    logits = digits.dense(tf.nn.relu(digits.dense(h, 128, "dense")), 10, "logits")
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def tower_device(device: str, keeper: str) -> Callable[[tf.Operation], str]:
    """Where a tower's operations go: variables to the keeper of all towers' variables."""
    return lambda op: keeper if op.type in ("VariableV2", "VarHandleOp") else device


def build(devices: list[str], seed: int) -> tuple[tf.Graph, dict[str, tf.Tensor]]:
    """A graph that trains on the mean of the devices' losses. The first device keeps the variables."""
    graph = tf.Graph()
    with graph.as_default(), tf.device(devices[0]):
        tf.set_random_seed(seed)
        x = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
        y = tf.placeholder(tf.int64, [None], name="digits")
        optimizer = tf.train.MomentumOptimizer(0.02, 0.9)
        losses, towers = [], []
        parts = zip(devices, tf.split(x, len(devices)), tf.split(y, len(devices)), strict=True)
        for i, (device, images, labels) in enumerate(parts):
            where = tower_device(device, devices[0])
            with tf.variable_scope("net", reuse=i > 0), tf.name_scope(f"tower_{i}"), tf.device(where):
                losses.append(loss_of(images, labels))
                towers.append(optimizer.compute_gradients(losses[-1]))
        mean = [
            (tf.add_n([g for g, _ in same]) / len(same), same[0][1]) for same in zip(*towers, strict=True)
        ]
        return graph, {
            "x": x,
            "y": y,
            "loss": tf.add_n(losses) / len(losses),
            "train": optimizer.apply_gradients(mean),
            "start": tf.global_variables_initializer(),
        }


def train(
    devices: list[str], batches: list[tuple[np.ndarray, np.ndarray]], seed: int
) -> tuple[list[float], float]:
    """The loss of every step, and the seconds per step (the first ones, which compile, left out)."""
    graph, m = build(devices, seed)
    config = tf.ConfigProto(device_count={"CPU": len(devices)})
    with tf.Session(graph=graph, config=config) as sess:
        sess.run(m["start"])
        losses, times = [], []
        for images, labels in batches:
            start = time.perf_counter()
            losses.append(float(sess.run([m["loss"], m["train"]], {m["x"]: images, m["y"]: labels})[0]))
            times.append(time.perf_counter() - start)
    return losses, float(np.median(times))


def main() -> int:
    """Trains both ways and compares. The exit status is 0 where every step agrees."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()

    images, labels, _, _ = digits.load(args.seed)
    rng = np.random.default_rng(args.seed)
    batches = []
    for _ in range(args.steps):
        rows = rng.choice(len(images), args.batch - args.batch % args.devices, replace=False)
        batches.append((images[rows], labels[rows]))
    towers, tower_time = train([f"/cpu:{i}" for i in range(args.devices)], batches, args.seed)
    single, single_time = train(["/cpu:0"], batches, args.seed)

    apart = max(abs(a - b) / b for a, b in zip(towers, single, strict=True))
    console = Console()
    console.print(
        f"loss after {args.steps} steps: {towers[-1]:.4f} in {args.devices} towers, "
        f"{single[-1]:.4f} on one device\n"
        f"largest difference of any step's loss: {apart:.1e} of it\n"
        f"{1e3 * tower_time:.1f} ms per step in towers, {1e3 * single_time:.1f} ms on one device "
        "(they share this machine's cores)"
    )
    return 0 if apart < 1e-3 and towers[-1] < 0.7 * towers[0] else 1


if __name__ == "__main__":
    sys.exit(main())
