"""Event files both ways: what one of TensorFlow and thalweg writes, the other one reads.

`write` is run by either; `read` gives what is compared. See check_files.py and record_files_events.py.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from typing import Any

import numpy as np

IMAGES = {
    "positive": np.linspace(0.25, 7.0, 2 * 3 * 3, dtype=np.float32).reshape(1, 2, 3, 3),
    "negative": np.linspace(-3.0, 2.0, 2 * 3, dtype=np.float32).reshape(1, 2, 3, 1),
    "tiny": np.full((1, 2, 2, 1), 1e-9, np.float32),
    "not finite": np.array([np.nan, 1.0, np.inf, 2.0, 3.0, -np.inf, 4.0, 0.5], np.float32).reshape(1, 2, 2, 2)[..., [0, 1, 0]],
    "half": np.linspace(-1.0, 4.0, 12).astype(np.float16).reshape(1, 2, 2, 3),
    "double": np.linspace(-2.0, 9.0, 16).reshape(1, 2, 2, 4),
    "bytes": np.arange(0, 256, 16, dtype=np.uint8).reshape(1, 2, 2, 4),
}


def write(tf: Any, folder: str) -> None:
    """An event file with all kinds of events and summaries."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [8], "x")
        tf.summary.scalar("scalar", x[0])
        tf.summary.histogram("histogram", x, family="fam")
        tf.summary.audio("sound", tf.reshape(x / 10.0, [1, 4, 2]), 8000)
        tf.summary.text("words", tf.constant(["a", "b\u00e4"]))
        tf.summary.tensor_summary("tensor", tf.cast(x, tf.int32), summary_description="d", display_name="shown")
        for name, image in IMAGES.items():
            tf.summary.image(name.replace(" ", "_"), tf.constant(image))
        merged = tf.summary.merge_all()
        writer = tf.summary.FileWriter(folder, session.graph)
        for step in range(3):
            writer.add_summary(session.run(merged, {x: np.arange(8.0) - step}), step)
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(merged, {x: np.arange(8.0)}, options=options, run_metadata=metadata)
        writer.add_run_metadata(metadata, "traced", 3)
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.CHECKPOINT, checkpoint_path="/tmp/x"), 4)
        writer.close()


def read(tf: Any, folder: str, decode: Callable[[bytes], Any]) -> list[Any]:
    """What is in the file: by event, what doesn't change from run to run. decode: makes pixels of a PNG."""
    (path,) = glob.glob(os.path.join(folder, "events.out.tfevents.*"))
    found = []
    for event in tf.train.summary_iterator(path):
        kind = event.WhichOneof("what")
        if kind == "summary":
            found.append([kind, event.step, [_value(v, decode) for v in event.summary.value]])
        elif kind == "graph_def":
            graph = tf.GraphDef.FromString(event.graph_def)
            found.append([kind, event.step, [[n.name, n.op, list(n.input)] for n in graph.node]])
        elif kind == "session_log":
            found.append([kind, event.step, event.session_log.status, event.session_log.checkpoint_path])
        elif kind == "file_version":
            found.append([kind, event.file_version])
        else:
            found.append([kind, event.step])
    return found


def _value(value: Any, decode: Callable[[bytes], Any]) -> list[Any]:
    kind = value.WhichOneof("value")
    metadata = [value.metadata.display_name, value.metadata.summary_description, value.metadata.plugin_data.plugin_name]
    message = getattr(value, kind)
    if kind == "simple_value":
        content: Any = message
    elif kind == "image":
        content = [message.height, message.width, message.colorspace, np.asarray(decode(message.encoded_image_string)).reshape(-1).tolist()]
    else:
        content = message.SerializeToString().hex()
    return [value.tag, kind, metadata, content]


def check(tf: Any, folder: str, other: str) -> str:
    """Compares the file in `folder` with one that this process writes into `other`; returns a report."""

    def decode(png: bytes) -> Any:
        with tf.Graph().as_default(), tf.Session() as session:
            return session.run(tf.image.decode_png(png))

    write(tf, other)
    ours, theirs = read(tf, folder, decode), read(tf, other, decode)
    assert len(ours) == len(theirs), (len(ours), len(theirs))
    for mine, yours in zip(ours, theirs, strict=True):
        assert mine == yours, (mine, yours)
    values = sum(len(e[2]) for e in ours if e[0] == "summary")
    return f"event file: {len(ours)} events, {values} summary values, all as TensorFlow writes them"
