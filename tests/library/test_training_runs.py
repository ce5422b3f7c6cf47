"""Training step by step beside TensorFlow: the same programs, data and weights, recorded and compared.

tests/golden/training.py holds the programs; tests/golden/record_training.py recorded what TensorFlow makes of
them: 100 losses and the weights after 1, 10 and 100 steps, five steps of every optimizer on a dense and a sparse
gradient, and learning rates at 50 steps.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import thalweg as tf

GOLDEN = Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))

import arrays  # noqa: E402
import training  # noqa: E402

RECORDED, _ = arrays.load(GOLDEN / "data" / "training.npz")


@pytest.mark.parametrize("name", training.PROGRAMS)
def test_training(name: str) -> None:
    got = training.run(tf, name)
    wanted = {key: value for key, value in RECORDED.items() if key.startswith(f"{name}/")}
    assert got.keys() == wanted.keys()
    for key, value in wanted.items():
        np.testing.assert_allclose(got[key], value, rtol=1e-4, atol=1e-5, err_msg=key)


@pytest.mark.parametrize(("optimizer", "kind"), training.OPTIMIZER_RUNS)
def test_optimizer(optimizer: str, kind: str) -> None:
    for key, value in training.run_optimizer(tf, optimizer, kind).items():
        np.testing.assert_allclose(value, RECORDED[key], rtol=1e-5, atol=1e-6, err_msg=key)


@pytest.mark.parametrize("decay", training.DECAYS)
def test_learning_rate(decay: str) -> None:
    np.testing.assert_allclose(training.run_decay(tf, decay), RECORDED[f"decay/{decay}"], rtol=2e-5, atol=1e-7)
