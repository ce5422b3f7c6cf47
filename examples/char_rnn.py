"""Trains a recurrent net to write like the King James Bible, letter by letter, and has it write.

    python examples/char_rnn.py [--steps 1500] [--units 192] [--letters 400] [--temperature 0.6] [--seed 7]

An LSTM reads 540,000 letters (examples/data) through dynamic_rnn, 48 at a time in 48 places of the text at
once, its state carried on from each step to the next; then it writes by itself inside a while_loop. Both
loops are nodes of the graph. Change the import to `import tensorflow.compat.v1 as tf` and it runs on
TensorFlow 1.x.
"""

import argparse
import gzip
import math
import pathlib
import sys
import time

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import thalweg as tf

DATA = pathlib.Path(__file__).parent / "data" / "kjv.txt.gz"
TIMES = 48
BATCH = 48


def load() -> tuple[str, np.ndarray, np.ndarray]:
    """The alphabet; and the text as numbers of its letters: what to train on [BATCH, n], what to test on."""
    with gzip.open(DATA, "rt", encoding="ascii") as f:
        text = f.read()
    alphabet = "".join(sorted(set(text)))
    numbers = np.array([alphabet.index(letter) for letter in text], np.int32)
    held_out = len(numbers) // 20
    columns = (len(numbers) - held_out) // BATCH
    return alphabet, numbers[: columns * BATCH].reshape(BATCH, columns), numbers[columns * BATCH :]


class Model:
    """The net: letters in, for each the scores of the next one out."""

    def __init__(self, letters: int, units: int) -> None:
        self.units = units
        self.cell = tf.nn.rnn_cell.LSTMCell(units, name="lstm")
        self.embedding = tf.get_variable("embedding", [letters, 48])
        self.w = tf.get_variable("w", [units, letters])
        self.b = tf.get_variable("b", [letters], initializer=tf.zeros_initializer())

    def scores(self, h: tf.Tensor) -> tf.Tensor:
        """[n, units] to [n, letters]."""
        return tf.matmul(h, self.w) + self.b

    def read(self, text: tf.Tensor, state: tf.nn.rnn_cell.LSTMStateTuple) -> tuple[tf.Tensor, tf.Tensor]:
        """Reads text [batch, time + 1]: (mean loss of foretelling each next letter, the last state)."""
        inputs = tf.nn.embedding_lookup(self.embedding, text[:, :-1])
        outputs, state = tf.nn.dynamic_rnn(self.cell, inputs, initial_state=state)
        scores = self.scores(tf.reshape(outputs, [-1, self.units]))
        labels = tf.reshape(text[:, 1:], [-1])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
        return tf.reduce_mean(losses), state

    def write(self, first: tf.Tensor, count: tf.Tensor, temperature: tf.Tensor) -> tf.Tensor:
        """Writes `count` letters after `first` (a number), each drawn by its score: their numbers."""

        def body(i: tf.Tensor, letter: tf.Tensor, state: tf.Tensor, written: tf.TensorArray) -> list:
            h, state = self.cell(tf.nn.embedding_lookup(self.embedding, letter), state)
            letter = tf.multinomial(self.scores(h) / temperature, 1, output_dtype=tf.int32)[:, 0]
            return [i + 1, letter, state, written.write(i, letter)]

        start = [
            tf.constant(0),
            tf.reshape(first, [1]),
            self.cell.zero_state(1, tf.float32),
            tf.TensorArray(tf.int32, size=count, element_shape=[1]),
        ]
        *_, written = tf.while_loop(lambda i, *_: i < count, body, start, back_prop=False)
        return tf.reshape(written.stack(), [-1])


def build(letters: int, units: int, steps: int) -> dict[str, tf.Tensor]:
    """The graph: inputs, loss, training step, sample."""
    model = Model(letters, units)
    text = tf.placeholder(tf.int32, [None, None], name="text")
    zeros = model.cell.zero_state(tf.shape(text)[0], tf.float32)
    state = tf.nn.rnn_cell.LSTMStateTuple(
        *(tf.placeholder_with_default(z, [None, units]) for z in zeros)  # fed, from the second step on
    )
    loss, last = model.read(text, state)
    step = tf.train.get_or_create_global_step()
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    optimizer = tf.train.AdamOptimizer(tf.train.cosine_decay(6e-3, step, steps))
    train = optimizer.apply_gradients(zip(gradients, variables, strict=True), step)
    first = tf.placeholder(tf.int32, [], name="first")
    count = tf.placeholder(tf.int32, [], name="count")
    temperature = tf.placeholder(tf.float32, [], name="temperature")
    sample = model.write(first, count, temperature)
    return {
        "text": text, "state": state, "loss": loss, "last": last, "train": train, "step": step,
        "first": first, "count": count, "temperature": temperature, "sample": sample,
    }  # fmt: skip


def main() -> int:
    """Trains, shows the progress, and writes. The exit status is 0 where the net learned the text's ways."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--units", type=int, default=192)
    parser.add_argument("--letters", type=int, default=400)
    parser.add_argument("--temperature", type=float, default=0.6)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()

    alphabet, train_text, test_text = load()
    tf.set_random_seed(args.seed)
    m = build(len(alphabet), args.units, args.steps)
    console = Console()
    console.print(
        f"{train_text.size:,} letters to learn from, {len(test_text):,} held out, an alphabet of "
        f"{len(alphabet)}; {len(tf.get_default_graph().get_operations())} operations in the graph"
    )
    columns = (
        TextColumn("step {task.completed}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[bits]:.3f} bits per letter"),
    )
    with tf.Session() as sess, Progress(*columns, console=console) as progress:
        sess.run(tf.global_variables_initializer())
        bar = progress.add_task("", total=args.steps, bits=math.log2(len(alphabet)))
        start = time.perf_counter()
        bits, state = math.log2(len(alphabet)), None
        chunks = (train_text.shape[1] - 1) // TIMES
        for i in range(args.steps):
            at = i % chunks * TIMES
            feed = {m["text"]: train_text[:, at : at + TIMES + 1]}
            if state is not None and at > 0:
                feed[m["state"]] = state
            _, loss, state = sess.run([m["train"], m["loss"], m["last"]], feed)
            bits += 0.05 * (loss / math.log(2) - bits)
            progress.update(bar, advance=1, bits=bits)
        took = time.perf_counter() - start
        held_out = test_text[: len(test_text) // 500 * 500].reshape(-1, 500)
        test_bits = sess.run(m["loss"], {m["text"]: held_out}) / math.log(2)
        feed = {m["count"]: args.letters, m["temperature"]: args.temperature}
        written = sess.run(m["sample"], feed | {m["first"]: alphabet.index("A")})
    console.print(
        f"[bold]{test_bits:.3f} bits[/] per unseen letter (guessing takes {math.log2(len(alphabet)):.2f}) "
        f"after {args.steps} steps in {took:.1f} s ({args.steps / took:.1f} steps/s). It writes:\n"
    )
    console.print("A" + "".join(alphabet[n] for n in written), style="italic", highlight=False, markup=False)
    console.print(
        f"\nWhat ran: dynamic_rnn, {TIMES} times forward and back a step; the sample in one Session.run, a "
        "while_loop that draws each letter.\n"
        "Next: --steps 4000 --units 256; --temperature 1; docs/porting.md."
    )
    return 0 if test_bits < 2.6 else 1


if __name__ == "__main__":
    sys.exit(main())
