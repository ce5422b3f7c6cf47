"""Queue programs beside TensorFlow: values, errors, static shapes, and the names of nodes.

tests/golden/queue_programs.py holds the programs; tests/golden/record_queues.py recorded what TensorFlow makes of
them.
"""

import json
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

import thalweg as tf
from thalweg.library import data_flow, staging

GOLDEN = Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))

import queue_programs  # noqa: E402
import queue_run  # noqa: E402

RECORDED = json.loads((GOLDEN / "data" / "queues.json").read_text())

FLOW = types.SimpleNamespace(Barrier=data_flow.Barrier, StagingArea=staging.StagingArea)

#: notes in which thalweg differs from TensorFlow on purpose: (program, number of the note), why
NOTES_DIFFER: dict[tuple[str, int], str] = {}

#: programs whose nodes differ, and why
NODES_DIFFER: dict[str, str] = {
    "fifo_gradient": "TensorFlow 2.21 names the gradients of ys otherwise than 1.15",
    "partial_run": "TensorFlow 2.21 leaves a scale of 1 out of random_uniform",
    "produce_strings": "TensorFlow 2.21 names the data of an Assert otherwise than 1.15",
    "runner_errors": "the same",
}



def _threads() -> set[threading.Thread]:
    """The threads there are, without the ones that thalweg keeps for compiling."""
    return {t for t in threading.enumerate() if not t.name.startswith("thalweg-compile")}


@pytest.mark.parametrize("name", queue_programs.PROGRAMS)
def test_program(name: str) -> None:
    before = _threads()
    got = json.loads(json.dumps(queue_run.record(tf, FLOW, queue_programs.PROGRAMS[name])))
    wanted = RECORDED[name]
    assert len(got["notes"]) == len(wanted["notes"])
    for i, (mine, theirs) in enumerate(zip(got["notes"], wanted["notes"], strict=True)):
        if (name, i) not in NOTES_DIFFER:
            assert mine == theirs, f"note {i}"
    if name not in NODES_DIFFER:
        assert got["nodes"] == wanted["nodes"]
    assert _threads() <= before


def test_every_program_was_recorded() -> None:
    assert set(RECORDED) == set(queue_programs.PROGRAMS)


def test_every_difference_is_one() -> None:
    known: Any = {name for name, _ in NOTES_DIFFER} | set(NODES_DIFFER)
    assert known <= set(RECORDED)
