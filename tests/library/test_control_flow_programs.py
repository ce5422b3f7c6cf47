"""Branches and loops beside TensorFlow: the same programs run, values, gradients and errors compared.

tests/golden/control_flow_programs.py gathers the programs; tests/golden/record_control_flow.py recorded what
TensorFlow makes of them.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import thalweg as tf

GOLDEN = Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))

import arrays  # noqa: E402
import control_flow_programs  # noqa: E402

RECORDED, _ = arrays.load(GOLDEN / "data" / "control_flow.npz")


@pytest.mark.parametrize("name", control_flow_programs.PROGRAMS)
def test_program(name: str) -> None:
    got = control_flow_programs.run(tf, name)
    wanted = {key: value for key, value in RECORDED.items() if key.startswith(f"{name}/")}
    assert got.keys() == wanted.keys()
    for key, value in wanted.items():
        assert got[key].dtype == value.dtype, key
        if value.dtype.kind == "O":
            assert got[key].tolist() == value.tolist(), key
        else:
            np.testing.assert_allclose(got[key], value, rtol=2e-5, atol=1e-6, err_msg=key)
