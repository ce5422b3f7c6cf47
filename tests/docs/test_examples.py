"""The examples that check themselves run, in a few steps: each is a program of its own, with its exit status."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize(
    "command",
    [
        "data_parallel.py",
        "model_parallel_lstm.py --layers 2 --units 24 --steps 12",
        "model_parallel_lstm.py --layers 2 --units 24 --steps 12 --dynamic",
    ],
)
def test_example(command: str) -> None:
    name, *args = command.split()
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *args],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
