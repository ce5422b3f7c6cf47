"""A little of the fuzzing in each run, and all inputs that once found something."""

from __future__ import annotations

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.fuzz import driver  # noqa: E402

KEPT = sorted(p for p in (HERE / "kept").glob("*/*") if p.is_file())


@pytest.mark.parametrize("name", driver.TARGETS)
def test_fuzz(name: str) -> None:
    outcomes, failed = driver.fuzz(driver.target(name), count=300, seconds=20, seed=0)
    assert not failed, f"see tests/fuzz/found/{name}"
    assert outcomes.total() > 0


@pytest.mark.parametrize("path", KEPT, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_kept(path: pathlib.Path) -> None:
    driver.run_one(driver.target(path.parent.name), path.read_bytes())
