"""A pretrained model made by others: Basic Pitch, which hears notes in sound (Spotify, Apache-2.0).

    pip install --no-deps basic-pitch       # 750 KB, with the model as a SavedModel of TensorFlow 2
    python examples/transcribe.py [FOLDER]

Plays three notes to the model, and prints which it hears. FOLDER: the SavedModel, if not that of the
installed package.
"""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import numpy as np

import thalweg as tf

RATE = 22050
SAMPLES = 43844  # what the model takes at once: two seconds
NOTES = {220.0: "A3", 277.18: "C#4", 329.63: "E4"}
NAMES = "C C# D D# E F F# G G# A A# B".split()


def chord() -> np.ndarray:
    """Three notes, each struck twice, and a little noise."""
    t = np.arange(SAMPLES) / RATE
    tones = sum(0.25 * np.sin(2 * np.pi * f * t) + 0.05 * np.sin(4 * np.pi * f * t) for f in NOTES)
    noise = np.random.RandomState(0).normal(0, 0.01, SAMPLES)
    return (tones * np.exp(-2 * (t % 1)) + noise).astype(np.float32).reshape(1, SAMPLES, 1)


def installed() -> pathlib.Path | None:
    """The model's folder in the installed package, which need not be importable."""
    spec = importlib.util.find_spec("basic_pitch")
    if spec is None or spec.origin is None:
        return None
    return pathlib.Path(spec.origin).parent / "saved_models" / "icassp_2022" / "nmp"


def main() -> None:
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else installed()
    if folder is None:
        sys.exit("the model comes with the package: pip install --no-deps basic-pitch")
    with tf.Session(graph=tf.Graph()) as session:
        message = tf.saved_model.load(session, [tf.saved_model.SERVING], str(folder))
        signature = message.signature_def["serving_default"]
        (given,) = signature.inputs.values()
        notes = session.run(signature.outputs["note"].name, {given.name: chord()})[0]  # frames x 88 keys
    heard = np.flatnonzero(notes.max(0) > 0.5) + 21  # MIDI numbers
    print("played:", ", ".join(NOTES.values()))
    print("heard: ", ", ".join(f"{NAMES[n % 12]}{n // 12 - 1}" for n in heard))


if __name__ == "__main__":
    main()
