"""Trains a convolutional net on real handwritten digits: a TensorFlow 1.x program, run by thalweg.

    python examples/digits.py [--epochs 12] [--batch 64] [--seed 7]

1,797 images (examples/data), a fifth held out. Prints a progress bar, loss and accuracy, and says at the
end what it did. Change the import to `import tensorflow.compat.v1 as tf` and it runs on TensorFlow.
"""

import argparse
import gzip
import pathlib
import sys
import time

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import thalweg as tf

DATA = pathlib.Path(__file__).parent / "data" / "digits.csv.gz"


def load(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images [n, 8, 8, 1] in [0, 1] and digits: four fifths to train on, one to test on."""
    with gzip.open(DATA, "rt") as f:
        table = np.loadtxt(f, delimiter=",", dtype=np.float32)
    table = table[np.random.default_rng(seed).permutation(len(table))]
    images, digits = table[:, :64].reshape(-1, 8, 8, 1) / 16.0, table[:, 64].astype(np.int64)
    held_out = len(table) // 5
    return images[held_out:], digits[held_out:], images[:held_out], digits[:held_out]


def convolution(x: tf.Tensor, filters: int, name: str) -> tf.Tensor:
    """A 3x3 convolution with a bias and a rectifier."""
    with tf.variable_scope(name):
        w = tf.get_variable(
            "w", [3, 3, int(x.shape[3]), filters], initializer=tf.glorot_uniform_initializer()
        )
        b = tf.get_variable("b", [filters], initializer=tf.zeros_initializer())
        return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), b))


def dense(x: tf.Tensor, units: int, name: str) -> tf.Tensor:
    """A matrix product and a bias."""
    with tf.variable_scope(name):
        w = tf.get_variable("w", [int(x.shape[1]), units], initializer=tf.glorot_uniform_initializer())
        b = tf.get_variable("b", [units], initializer=tf.zeros_initializer())
        return tf.matmul(x, w) + b


def build(train_size: int, batch: int) -> dict[str, tf.Tensor]:
    """The graph: inputs, loss, training step, accuracy."""
    x = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
    y = tf.placeholder(tf.int64, [None], name="digits")
    keep = tf.placeholder_with_default(1.0, [], name="keep")
    h = convolution(x, 32, "conv1")
    h = convolution(h, 32, "conv2")
    h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    h = convolution(h, 64, "conv3")
    h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    h = tf.reshape(h, [-1, 2 * 2 * 64])
    h = tf.nn.dropout(tf.nn.relu(dense(h, 128, "dense")), keep_prob=keep)
    logits = dense(h, 10, "logits")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(2e-3, step, 3 * train_size // batch, 0.7, staircase=True)
    train = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
    return {"x": x, "y": y, "keep": keep, "loss": loss, "train": train, "accuracy": accuracy, "step": step}


def main() -> int:
    """Trains, shows the progress, and says what came out. The exit status is 0 above 98 %."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()

    images, digits, test_images, test_digits = load(args.seed)
    tf.set_random_seed(args.seed)
    m = build(len(images), args.batch)
    test = {m["x"]: test_images, m["y"]: test_digits}
    per_epoch = len(images) // args.batch
    rng = np.random.default_rng(args.seed)
    console = Console()
    console.print(
        f"{len(images)} digits to learn from, {len(test_images)} held out; "
        f"{len(tf.get_default_graph().get_operations())} operations in the graph"
    )
    columns = (
        TextColumn("epoch {task.fields[epoch]:2d}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("loss {task.fields[loss]:.4f}  held out {task.fields[accuracy]:.2%}"),
    )
    with tf.Session() as sess, Progress(*columns, console=console) as progress:
        sess.run(tf.global_variables_initializer())
        bar = progress.add_task("", total=args.epochs * per_epoch, epoch=0, loss=float("nan"), accuracy=0.0)
        start = time.perf_counter()
        for epoch in range(args.epochs):
            order = rng.permutation(len(images))
            for i in range(per_epoch):
                rows = order[i * args.batch : (i + 1) * args.batch]
                feed = {m["x"]: images[rows], m["y"]: digits[rows], m["keep"]: 0.6}
                _, loss = sess.run([m["train"], m["loss"]], feed)
                progress.update(bar, advance=1, epoch=epoch + 1, loss=float(loss))
            progress.update(bar, accuracy=float(sess.run(m["accuracy"], test)))
        took = time.perf_counter() - start
        accuracy, steps = sess.run([m["accuracy"], m["step"]], test)
    console.print(
        f"[bold]{accuracy:.2%}[/] of {len(test_images)} unseen digits read right after {steps} steps "
        f"in {took:.1f} s ({steps / took:.0f} steps/s)."
    )
    console.print(
        "What ran: one XLA executable per step (forward, gradients and Adam together), variables updated in "
        "place.\nNext: --epochs 40 --batch 32; `thalweg run` with a script of yours; docs/porting.md."
    )
    return 0 if accuracy > 0.98 else 1


if __name__ == "__main__":
    sys.exit(main())
