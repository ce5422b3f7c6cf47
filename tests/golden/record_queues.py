"""Records what TensorFlow makes of the programs in tests/golden/queue_programs.py. Run where TensorFlow is:

    python tests/golden/record_queues.py

Writes tests/golden/data/queues.json. Nothing of thalweg is imported. Each program runs in a process of its own:
TensorFlow aborts on some.
"""

from __future__ import annotations

import json
import multiprocessing
import pathlib
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import queue_programs  # noqa: E402
import queue_run  # noqa: E402


def one(name: str, out: Any) -> None:
    import tensorflow.compat.v1 as tf
    from tensorflow.python.ops import data_flow_ops

    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    tf.logging.set_verbosity(tf.logging.FATAL)
    out.put(queue_run.record(tf, data_flow_ops, queue_programs.PROGRAMS[name]))


def main() -> None:
    context = multiprocessing.get_context("fork")
    import tensorflow.compat.v1  # noqa: F401  # before the forks: it takes seconds

    recorded = {}
    for name in queue_programs.PROGRAMS:
        out = context.SimpleQueue()
        process = context.Process(target=one, args=(name, out))
        process.start()
        process.join(60)
        if process.exitcode != 0 or out.empty():
            print(f"{name}: no record (exit code {process.exitcode})")
            process.kill()
            continue
        recorded[name] = out.get()
    path = HERE / "data" / "queues.json"
    lines = [f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(recorded.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(recorded)} of {len(queue_programs.PROGRAMS)} programs, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
