"""Records what TensorFlow does with wishes for devices that can't be met. Run where TensorFlow is:

    python tests/golden/record_placement.py

Writes tests/golden/data/placement.json: for each program of placement_programs.py, without and with soft placement,
the value, or the error's class and what its message says (see TELLING). Nothing of thalweg is imported.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import placement_programs  # noqa: E402

#: what is recorded of a message: which of these are in it
TELLING = (
    "Cannot assign a device for operation",
    "was explicitly assigned to",
    "available devices are [",
    "Make sure the device specification refers to a valid device",
    "Could not satisfy explicit device specification",
    "Cannot colocate nodes",
)


def run(tf: Any, program: Any, soft: bool) -> dict[str, Any]:
    """What becomes of a program."""
    config = tf.ConfigProto(allow_soft_placement=soft, device_count={"CPU": 2, "GPU": 0})
    with tf.Graph().as_default():
        try:
            fetch = program(tf)
            with tf.Session(config=config) as session:
                value = session.run(fetch)
        except Exception as e:
            text = str(e)
            says = [part for part in TELLING if part in text]
            node = getattr(getattr(e, "op", None), "name", None)
            return {"error": type(e).__name__, "says": says, "node": node}
        return {"value": value.decode() if isinstance(value, bytes) else float(value)}


def main() -> None:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    found = {
        name: {"hard": run(tf, build, False), "soft": run(tf, build, True)}
        for name, build in placement_programs.PROGRAMS.items()
    }
    lines = [f'"{name}": {json.dumps(row)}' for name, row in found.items()]
    (HERE / "data" / "placement.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"placement.json: {len(found)} programs")


if __name__ == "__main__":
    main()
