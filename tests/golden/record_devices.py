"""Records where TensorFlow's nodes ask to be, for tests/golden/device_programs.py. Run where TensorFlow is:

    python tests/golden/record_devices.py

Writes tests/golden/data/devices.json: of each program its nodes as [name, device, colocation groups], of each
broken one the error's class. Nothing of thalweg is imported.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import device_programs  # noqa: E402


def nodes(graph: Any) -> list[list[Any]]:
    """The nodes that a program built, in the order of their making."""
    groups = ([g.decode() for g in op.colocation_groups()] for op in graph.get_operations())
    return [
        [op.name, op.device, [g for g in found if g != f"loc:@{op.name}"]]
        for op, found in zip(graph.get_operations(), groups, strict=True)
    ]


def record(tf: Any, program: Any) -> list[list[Any]]:
    """The nodes of one program, and the constant of what its functions saw."""
    with tf.Graph().as_default() as graph:
        program(tf)
        return nodes(graph)


def record_error(tf: Any, program: Any) -> str:
    """The class of the error that a program raises; "" where it raises none."""
    with tf.Graph().as_default():
        try:
            program(tf)
        except Exception as e:
            return type(e).__name__
    return ""


def main() -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    programs = {name: record(tf, program) for name, program in device_programs.PROGRAMS.items()}
    errors = {name: record_error(tf, program) for name, program in device_programs.BROKEN.items()}
    lines = [f'"{name}":{json.dumps(found, separators=(",", ":"))}' for name, found in programs.items()]
    path = HERE / "data" / "devices.json"
    text = "{\n" + ",\n".join(lines) + f',\n"errors":{json.dumps(errors, indent=0)}\n}}\n'
    json.loads(text)
    path.write_text(text)
    print(f"devices.json: {len(programs)} programs, {len(errors)} errors, {len(text)} bytes")


if __name__ == "__main__":
    main()
