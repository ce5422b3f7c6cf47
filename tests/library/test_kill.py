"""Training that is killed again and again ends as training that isn't.

THALWEG_KILLS says how often (3 for each way of saving; the documented run has 50). After each kill the latest
checkpoint must be whole, and hold what the undisturbed run had after that step, bit by bit.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import thalweg as tf

sys.path.insert(0, str(Path(__file__).parent))

from kill_training import digest

PROGRAM = Path(__file__).parent / "kill_training.py"
SOURCE = Path(__file__).parent.parent.parent / "src"
KILLS = int(os.environ.get("THALWEG_KILLS", "3"))
STEPS = 12 + 6 * KILLS


class _Server:
    """Starts the program's processes (see kill_training.py)."""

    def __init__(self, cache: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "XDG_CACHE_HOME": str(cache)}
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def start(self, *arguments: Any) -> int:
        """A new process; returns when it is about to take its first step."""
        assert self._process.stdin is not None
        print(*arguments, file=self._process.stdin, flush=True)
        pid, begun = 0, False
        while not (pid and begun):  # of two processes: in any order
            line = self.line()
            begun = begun or line == "begun"
            if line.startswith("pid "):
                pid = int(line.split()[1])
            assert line != "ended"
        return pid

    def line(self) -> str:
        """The next line of output."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server is gone"
        return line.strip()

    def wait(self) -> None:
        """Waits for the process's end."""
        while (line := self.line()) != "ended":
            assert line.startswith("step "), line

    def close(self) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]
        assert self._process.wait(60) == 0
        self._process.stdout.close()  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    server = _Server(tmp_path_factory.mktemp("cache"))
    yield server
    server.close()


def _step_of(folder: Path, expected: dict[str, str]) -> int:
    """The step of the latest checkpoint, which must be whole and right; 0 without one."""
    latest = tf.train.latest_checkpoint(folder)
    if latest is None:
        assert not (folder / "checkpoint").exists()
        return 0
    reader = tf.train.NewCheckpointReader(latest)
    values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    with tf.Graph().as_default():
        whole = values.pop("w2")
        for suffix in ("Adam", "Adam_1"):
            values.update(_parts(f"w2/{suffix}", values.pop(f"w2/{suffix}")))
        values.update(_parts("w2", whole))
    step = int(values["global_step"])
    assert digest(values) == expected[str(step)], f"step {step}"
    return step


def _parts(name: str, whole: Any) -> dict[str, Any]:
    """The slices of a partitioned variable, by the names that they have in the graph."""
    base, _, slot = name.partition("/")
    ends = [0, 500, 1000, 1500]
    suffix = f"/{slot}" if slot else ""
    return {f"{base}/part_{i}{suffix}": whole[a:b] for i, (a, b) in enumerate(pairwise(ends))}


@pytest.mark.timeout(120 + 20 * KILLS)
@pytest.mark.parametrize("kind", ["numbered", "same", "sharded"])
def test_killed_training_ends_as_undisturbed_training(tmp_path: Path, server: _Server, kind: str) -> None:
    folder, digests = tmp_path / "checkpoints", tmp_path / "digests.json"
    folder.mkdir()
    # twice: the second run finds the compiled code on the disk, as all later ones do
    for _ in range(2):
        server.start(folder, STEPS, kind, digests)
        server.wait()
        assert tf.train.latest_checkpoint(folder).startswith(str(folder / "model"))
        _empty(folder)
    expected = json.loads(digests.read_text())
    rng = random.Random(KILLS)
    steps, killed = [0], 0
    while killed < KILLS:
        pid = server.start(folder, STEPS, kind)
        told = ""
        for _ in range(rng.choice((0, 1, 1, 3))):
            told = told if told == "ended" else server.line()
        time.sleep(rng.uniform(0, 0.06))  # two steps or so
        if told != "ended":
            os.kill(pid, signal.SIGKILL)  # nobody else can have the number: the server waits for it
            server.wait()
            killed += 1
        steps.append(_step_of(folder, expected))
        assert steps[-1] >= steps[-2]
        if told == "ended" or steps[-1] == STEPS:
            _empty(folder)
            steps.append(0)
    server.start(folder, STEPS, kind)
    server.wait()
    assert _step_of(folder, expected) == STEPS
    print(f"{kind}: killed {killed} times, at steps {steps}")


def _empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
