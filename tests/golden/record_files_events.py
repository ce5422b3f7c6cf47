"""Has TensorFlow write an event file, for tests/library/test_event_files.py. Run where TensorFlow is installed:

    python tests/golden/record_files_events.py

Writes tests/golden/data/files/events.tfevents, and in events.json what is in it. Nothing of thalweg is imported.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import sys
import tempfile
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import files_events  # noqa: E402


def main() -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()

    def decode(png: bytes) -> Any:
        with tf.Graph().as_default(), tf.Session() as session:
            return session.run(tf.image.decode_png(png))

    target = HERE / "data" / "files"
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        files_events.write(tf, folder)
        events = files_events.read(tf, folder, decode)
        (path,) = pathlib.Path(folder).iterdir()
        shutil.copyfile(path, target / "events.tfevents")
    lines = [json.dumps(event) for event in events]
    (target / "events.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(f"{len(events)} events, {(target / 'events.tfevents').stat().st_size} bytes")


if __name__ == "__main__":
    main()
