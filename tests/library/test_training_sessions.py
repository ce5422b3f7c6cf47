"""Programs that train in sessions with hooks beside TensorFlow: tests/golden/record_training_sessions.py."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

import thalweg as tf

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import training_session_programs  # noqa: E402
import training_session_run  # noqa: E402

RECORDED = json.loads((GOLDEN / "data" / "training_sessions.json").read_text())


@pytest.mark.parametrize("name", sorted(training_session_programs.PROGRAMS))
def test_program(name: str) -> None:
    got = training_session_run.record(tf, training_session_programs.PROGRAMS[name])
    assert json.loads(json.dumps(got)) == RECORDED[name]
