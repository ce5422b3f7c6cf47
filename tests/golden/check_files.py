"""Has TensorFlow read what thalweg writes. In two steps, each with the one that is installed:

    python tests/golden/check_files.py write FOLDER    # thalweg writes files of all kinds
    python tests/golden/check_files.py check FOLDER    # TensorFlow reads them, and compares with its own

Each kind of file is a module in PARTS: `write(tf, folder)` writes, with either; `check(tf, folder, other)` is run by
TensorFlow, compares what thalweg wrote into `folder` with what it writes itself into the empty folder `other`, and
returns a line that says what was compared. It raises where something differs.
"""

from __future__ import annotations

import importlib
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

PARTS = ["files_checkpoints", "files_events", "files_graphs", "files_records", "files_training"]


def main() -> None:
    step, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if step == "write":
        import thalweg as tf
    else:
        import tensorflow.compat.v1 as tf

        tf.disable_v2_behavior()
        tf.disable_control_flow_v2()
    for name in PARTS:
        part = importlib.import_module(name)
        where = folder / name
        if step == "write":
            where.mkdir(parents=True)
            part.write(tf, str(where))
            print(f"{name}: {len(list(where.iterdir()))} files")
        else:
            with tempfile.TemporaryDirectory() as other:
                print(part.check(tf, str(where), other))


if __name__ == "__main__":
    main()
