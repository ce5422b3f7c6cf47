"""Wishes for devices that can't be met: as TensorFlow (tests/golden/record_placement.py)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import thalweg as tf

GOLDEN = Path(__file__).parent.parent / "golden"


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, GOLDEN / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAMS = _load("placement_programs").PROGRAMS
RECORDED = json.loads((GOLDEN / "data" / "placement.json").read_text())


def test_every_program_is_recorded() -> None:
    assert set(PROGRAMS) == set(RECORDED)


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_tensorflow(name: str, soft: bool) -> None:
    expected = RECORDED[name]["soft" if soft else "hard"]
    config = tf.ConfigProto(allow_soft_placement=soft, device_count={"CPU": 2})
    with tf.Graph().as_default():
        fetch = PROGRAMS[name](tf)
        with tf.Session(config=config) as session:
            if "value" in expected:
                value = session.run(fetch)
                assert (value.decode() if isinstance(value, bytes) else float(value)) == expected["value"]
                return
            with pytest.raises(getattr(tf.errors, expected["error"])) as caught:
                session.run(fetch)
    for part in expected["says"]:
        assert part in str(caught.value)
    if expected["node"]:
        assert caught.value.op.name == expected["node"]
