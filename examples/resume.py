"""Training that survives being killed: a tf.train.MonitoredTrainingSession goes on from its last checkpoint.

    python examples/resume.py [--kills 3] [--steps 150]

Trains the net of examples/digits.py twice, each time in a process of its own. The first training is killed
(SIGKILL) at random moments and started again. The second one is left alone. Both end with the same weights,
bit for bit. `train` below is a TensorFlow 1.x program: it does nothing special to be resumable.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import numpy as np
from digits import build, load
from rich.console import Console

import thalweg as tf

BATCH = 64


def train(folder: str, steps: int) -> None:
    """Trains up to a step, saving into the folder: from the last checkpoint there, where there is one."""
    images, digits, _, _ = load(seed=7)
    tf.set_random_seed(7)
    # without dropout: how far a random op has come isn't part of a checkpoint
    m = build(len(images), BATCH)
    tf.summary.scalar("loss", m["loss"])
    per_epoch = len(images) // BATCH

    def step(step_context: "tf.train.MonitoredSession.StepContext") -> None:
        # the batch follows from the global step, so a resumed training sees the same data
        epoch, i = divmod(int(step_context.session.run(m["step"])), per_epoch)
        rows = np.random.default_rng(epoch).permutation(len(images))[i * BATCH : (i + 1) * BATCH]
        step_context.run_with_hooks(m["train"], {m["x"]: images[rows], m["y"]: digits[rows]})

    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=folder,
        save_checkpoint_steps=10,
        save_summaries_steps=None,
        hooks=[tf.train.StopAtStepHook(last_step=steps)],
    ) as session:
        while not session.should_stop():
            session.run_step_fn(step)


def start(folder: pathlib.Path, steps: int) -> subprocess.Popen[bytes]:
    """`train` in a process of its own."""
    return subprocess.Popen([sys.executable, __file__, "--train", str(folder), "--steps", str(steps)])


def saved_step(folder: pathlib.Path) -> int:
    """The step of the latest checkpoint; -1 where there is none."""
    latest = tf.train.latest_checkpoint(str(folder))
    return -1 if latest is None else int(latest.rpartition("-")[2])


def train_with_kills(folder: pathlib.Path, steps: int, kills: int, console: Console) -> int:
    """Trains; kills the training up to so many times while it is under way. Returns how often it did."""
    done = 0
    while True:
        process, before = start(folder, steps), saved_step(folder)
        if done < kills:
            while process.poll() is None and saved_step(folder) <= before:
                time.sleep(0.02)
            time.sleep(random.uniform(0.0, 0.3))
            if process.poll() is None:
                process.kill()
                process.wait()
                done += 1
                console.print(f"killed after its checkpoint of step {saved_step(folder)}")
                continue
        if process.wait() != 0:
            raise RuntimeError(f"the training failed: exit status {process.returncode}")
        return done


def weights(folder: pathlib.Path) -> dict[str, np.ndarray]:
    """All variables of the latest checkpoint."""
    reader = tf.train.load_checkpoint(str(folder))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def main() -> int:
    """Trains both ways and compares. The exit status is 0 where the weights are the same."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--train", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.train:
        train(args.train, args.steps)
        return 0
    console = Console()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        console.print("compiling")  # the first runs of a step may round otherwise than code from the cache
        start(folder / "first", 4).wait()
        kills = train_with_kills(folder / "killed", args.steps, args.kills, console)
        start(folder / "whole", args.steps).wait()
        killed, whole = weights(folder / "killed"), weights(folder / "whole")
    same = killed.keys() == whole.keys() and all(np.array_equal(killed[n], whole[n]) for n in whole)
    result = "the same, bit for bit" if same else "DIFFERENT"
    steps = int(whole["global_step"])
    console.print(
        f"[bold]{len(whole)} variables after {steps} steps, killed {kills} times and left alone: {result}."
    )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
