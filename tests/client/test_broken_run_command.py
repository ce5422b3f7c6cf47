"""`python -m thalweg.cli run`: what scripts may import, and what they are told where something is missing."""

from __future__ import annotations

import pathlib
import subprocess
import sys

SCRIPT = """
import sys
import tensorflow as tf
from tensorflow.python.framework.tensor_util import MakeNdarray
from tensorflow.contrib.training import GreedyLoadBalancingStrategy
from tensorflow.python.client import device_lib
from tensorflow.python.ops import init_ops

assert [d.name for d in device_lib.list_local_devices() if d.device_type == "CPU"] == ["/device:CPU:0"]

assert init_ops.VarianceScaling is tf.variance_scaling_initializer
assert not hasattr(init_ops, "Foo")
for name in ("keras", "foo"):
    try:
        getattr(tf, name)
    except AttributeError as e:
        print(e)
try:
    import tensorflow.contrib.slim
except ImportError as e:
    print(e)
sys.exit(int(sys.argv[1]))
"""


def test_run(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, "-m", "thalweg.cli", "run", str(script), "3"], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 3, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0] == "tf.keras of TensorFlow 1.x is not part of thalweg"
    assert "nor has TensorFlow 1.15" in lines[1]
    assert lines[2].endswith("tf.contrib.slim of TensorFlow 1.x is not part of thalweg")
