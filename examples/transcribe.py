"""A pretrained model made by others: Basic Pitch, which hears notes in sound (Spotify, Apache-2.0).

    python examples/transcribe.py

The model is a SavedModel of TensorFlow 2 as the package basic-pitch 0.4.0 ships it (examples/data, with its
licence). Plays three notes to it, and prints which it hears.
"""

from __future__ import annotations

import pathlib
import tempfile
import zipfile

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


def unpack(folder: str) -> str:
    """Unpacks the SavedModel into a folder; returns where it is."""
    with zipfile.ZipFile(pathlib.Path(__file__).parent / "data" / "basic_pitch.zip") as archive:
        archive.extractall(folder)
    return f"{folder}/basic_pitch"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, tf.Session(graph=tf.Graph()) as session:
        message = tf.saved_model.load(session, [tf.saved_model.SERVING], unpack(folder))
        signature = message.signature_def["serving_default"]
        (given,) = signature.inputs.values()
        notes = session.run(signature.outputs["note"].name, {given.name: chord()})[0]  # frames x 88 keys
    heard = np.flatnonzero(notes.max(0) > 0.5) + 21  # MIDI numbers
    print("played:", ", ".join(NOTES.values()))
    print("heard: ", ", ".join(f"{NAMES[n % 12]}{n // 12 - 1}" for n in heard))


if __name__ == "__main__":
    main()
