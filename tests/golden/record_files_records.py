"""Records TFRecord files and what TensorFlow makes of them, of text and of pictures. Run where TensorFlow is:

    python tests/golden/record_files_records.py

Writes to tests/golden/data/files: examples.tfrecord, .zlib and .gzip, sequences.tfrecord, records.npz (what the
reader ops and parse_example gave) and pictures_decoded.npz (the pictures of make_pictures.py). Nothing of thalweg
is imported.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
FILES = HERE / "data" / "files"
sys.path.insert(0, str(HERE))

import arrays  # noqa: E402
import record_programs  # noqa: E402


def write_records(tf: Any) -> None:
    """The record files."""
    examples = record_programs.examples(tf.train)
    for name, options in (("tfrecord", None), ("zlib", "ZLIB"), ("gzip", "GZIP")):
        kind = None if options is None else getattr(tf.python_io.TFRecordCompressionType, options)
        with tf.python_io.TFRecordWriter(
            str(FILES / f"examples.{name}"), tf.python_io.TFRecordOptions(kind) if kind else None
        ) as writer:
            for example in examples:
                writer.write(example)
    with tf.python_io.TFRecordWriter(str(FILES / "sequences.tfrecord")) as writer:
        for example in record_programs.sequences(tf.train):
            writer.write(example)


def pictures(tf: Any) -> dict[str, np.ndarray]:
    """What the decoding ops give for every picture."""
    results = {}
    with np.load(FILES / "pictures.npz") as data:
        files = {k: data[k].tobytes() for k in data.files}
    for name, op, options in record_programs.decodings(files):
        with tf.Graph().as_default(), tf.Session() as session:
            options = {k: getattr(tf, v) if k == "dtype" else v for k, v in options.items()}
            image = getattr(tf.image, op)(files[name], **options)
            try:
                value = session.run(image)
            except tf.errors.OpError as e:
                value = np.array(type(e).__name__.encode(), object)
            results[record_programs.label(name, op, options)] = value
    return results


def main() -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    FILES.mkdir(parents=True, exist_ok=True)
    write_records(tf)
    values = {}
    for name, program in record_programs.PROGRAMS.items():
        with tf.Graph().as_default():
            for key, value in program(tf, FILES).items():
                values[f"{name}/{key}"] = np.asarray(value)
    arrays.save(FILES / "records.npz", values, {"tensorflow": tf.__version__})
    decoded = pictures(tf)
    arrays.save(FILES / "pictures_decoded.npz", decoded, {"tensorflow": tf.__version__})
    for path in sorted(FILES.glob("*record*")) + sorted(FILES.glob("pictures*")) + sorted(FILES.glob("examples*")):
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
