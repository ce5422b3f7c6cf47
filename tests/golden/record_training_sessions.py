"""Records what TensorFlow makes of the programs in tests/golden/training_session_programs.py. Run where it is:

    python tests/golden/record_training_sessions.py [program ...]

Writes tests/golden/data/training_sessions.json. Nothing of thalweg is imported. Each program runs in a process of
its own.
"""

from __future__ import annotations

import json
import multiprocessing
import pathlib
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import training_session_programs  # noqa: E402
import training_session_run  # noqa: E402


def one(name: str, out: Any) -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    tf.logging.set_verbosity(tf.logging.FATAL)
    out.put(training_session_run.record(tf, training_session_programs.PROGRAMS[name]))


def main() -> None:
    context = multiprocessing.get_context("fork")
    import tensorflow.compat.v1  # noqa: F401  # before the forks: it takes seconds

    path = HERE / "data" / "training_sessions.json"
    names = sys.argv[1:] or list(training_session_programs.PROGRAMS)
    recorded = json.loads(path.read_text()) if sys.argv[1:] else {}
    for name in names:
        out = context.SimpleQueue()
        process = context.Process(target=one, args=(name, out))
        process.start()
        process.join(60)
        if process.exitcode != 0 or out.empty():
            print(f"{name}: no record (exit code {process.exitcode})")
            process.kill()
            continue
        recorded[name] = out.get()
    lines = [f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(recorded.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(recorded)} of {len(training_session_programs.PROGRAMS)} programs, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
