"""Model-parallel training: an LSTM with a layer per device, checked against the same net on one device.

    python examples/model_parallel_lstm.py [--layers 3] [--units 128] [--steps 30] [--dynamic] [--seed 7]

The layers work on different letters at the same time: while layer 2 reads letter 5, layer 1 reads letter 6
(the TensorFlow white paper, section 7, figure 8). What passes between them crosses once per letter by Send
and Recv. With --dynamic the net is a while_loop over several devices in place of an unrolled one.
"""

import argparse
import sys
import time

import char_rnn
import numpy as np
from rich.console import Console

import thalweg as tf

TIMES = 12
BATCH = 32


def build(
    devices: list[str], letters: int, units: int, dynamic: bool, seed: int
) -> tuple[tf.Graph, dict[str, tf.Tensor]]:
    """A graph that learns to foretell the next letter: layer i on device i, the rest with the last layer."""
    graph = tf.Graph()
    with graph.as_default(), tf.device(devices[-1]):
        tf.set_random_seed(seed)
        text = tf.placeholder(tf.int32, [BATCH, TIMES + 1], name="text")
        with tf.device(devices[0]):
            embedding = tf.get_variable("embedding", [letters, 48])
            inputs = tf.nn.embedding_lookup(embedding, text[:, :-1])
        cells = [
            tf.nn.rnn_cell.DeviceWrapper(tf.nn.rnn_cell.LSTMCell(units, name=f"lstm_{i}"), device)
            for i, device in enumerate(devices)
        ]
        cell = tf.nn.rnn_cell.MultiRNNCell(cells)
        if dynamic:
            outputs, _ = tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
        else:
            outputs = tf.stack(tf.nn.static_rnn(cell, tf.unstack(inputs, axis=1), dtype=tf.float32)[0], 1)
        scores = tf.tensordot(outputs, tf.get_variable("w", [units, letters]), 1)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=text[:, 1:], logits=scores)
        )
        optimizer = tf.train.GradientDescentOptimizer(1.0)
        train = optimizer.minimize(loss, colocate_gradients_with_ops=True)
        return graph, {"text": text, "loss": loss, "train": train, "start": tf.global_variables_initializer()}


def train(
    graph: tf.Graph, m: dict[str, tf.Tensor], devices: int, batches: list[np.ndarray]
) -> tuple[list[float], float]:
    """The loss of every step, and the median seconds per step."""
    # soft: what a gradient in the loop takes from two layers is tied to both of their devices
    config = tf.ConfigProto(device_count={"CPU": devices}, allow_soft_placement=True)
    with tf.Session(graph=graph, config=config) as sess:
        sess.run(m["start"])
        losses, times = [], []
        for batch in batches:
            start = time.perf_counter()
            losses.append(float(sess.run([m["loss"], m["train"]], {m["text"]: batch})[0]))
            times.append(time.perf_counter() - start)
    return losses, float(np.median(times))


def main() -> int:
    """Trains both ways and compares. The exit status is 0 where every step agrees."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--units", type=int, default=128)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--dynamic", action="store_true", help="a while_loop in place of an unrolled net")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()

    alphabet, text, _ = char_rnn.load()
    rng = np.random.default_rng(args.seed)
    batches = []
    for _ in range(args.steps):
        at = rng.integers(0, text.shape[1] - TIMES - 1)
        batches.append(text[:BATCH, at : at + TIMES + 1])
    results = []
    for devices in ([f"/cpu:{i}" for i in range(args.layers)], ["/cpu:0"] * args.layers):
        graph, m = build(devices, len(alphabet), args.units, args.dynamic, args.seed)
        results.append(train(graph, m, args.layers, batches))
    (split, split_time), (single, single_time) = results

    apart = max(abs(a - b) / b for a, b in zip(split, single, strict=True))
    console = Console()
    console.print(
        f"loss: {split[0]:.3f} at first, {split[-1]:.3f} after {args.steps} steps with a layer per device; "
        f"{single[-1]:.3f} on one device\n"
        f"largest difference of any step's loss: {apart:.1e} of it\n"
        f"{1e3 * split_time:.1f} ms per step over {args.layers} devices, {1e3 * single_time:.1f} ms on one "
        "(they share this machine's cores)"
    )
    return 0 if apart < 1e-3 and split[-1] < split[0] else 1


if __name__ == "__main__":
    sys.exit(main())
