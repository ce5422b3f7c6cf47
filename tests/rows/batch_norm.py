"""Rows of ops/batch_norm.py."""

import numpy as np
from row import Row, floats

X = floats(3, 4, 5, 3) + np.float32(0.5)
S, O, M = floats(3, seed=1), floats(3, seed=2), floats(3, seed=3)
V = floats(3, low=0.2, high=2.0, seed=4)
NONE = np.zeros(0, np.float32)
DY = floats(3, 4, 5, 3, seed=5)
LOOSE = {"rtol": 1e-4, "atol": 2e-5}

ROWS = []
for version in ("", "V2", "V3"):
    name, third = f"FusedBatchNorm{version}", [NONE] if version == "V3" else []
    # the third reserve is scratch space of TensorFlow's own
    seen = {"outputs": (0, 1, 2, 3, 4)}
    ROWS += [
        Row(name, [X, S, O, NONE, NONE], {"epsilon": 1e-3}, grad=(0, 1, 2), **seen, **LOOSE),
        Row(name, [X, S, O, M, V], {"is_training": False}, id="inference", grad=(0, 1, 2), **seen, **LOOSE),
        Row(f"FusedBatchNormGrad{version}", [DY, X, S, M, V, *third], {"epsilon": 1e-3}, grad=(0, 1, 2), outputs=(0, 1, 2), **LOOSE),
        Row(
            f"FusedBatchNormGrad{version}",
            [DY, X, S, M, V, *third],
            {"is_training": False},
            id="inference",
            grad=(0, 1, 2),
            outputs=(0, 1, 2),
            **LOOSE,
        ),
    ]
ROWS += [
    Row("FusedBatchNormV3", [X, S, O, M, V], {"exponential_avg_factor": 0.25}, id="moving", grad=(), outputs=(0, 1, 2, 3, 4), **LOOSE),
    Row("FusedBatchNormV3", [X.astype(np.float16), S, O, NONE, NONE], id="half", grad=(), outputs=(0, 1, 2, 3, 4), **LOOSE),
    Row(
        "FusedBatchNormGradV3",
        [DY.transpose(0, 3, 1, 2), X.transpose(0, 3, 1, 2), S, M, V, NONE],
        {"data_format": "NCHW"},
        id="nchw",
        grad=(0, 1, 2),
        outputs=(0, 1, 2),
        **LOOSE,
    ),
    Row(
        "FusedBatchNormV3",
        [X.transpose(0, 3, 1, 2), S, O, M, V],
        {"data_format": "NCHW", "is_training": False},
        id="nchw_inference",
        grad=(0, 1, 2),
        outputs=(0, 1, 2, 3, 4),
        **LOOSE,
    ),
    Row("FusedBatchNormV3", [floats(3, 4, 5), S, O, M, V], id="rank", error="ValueError"),
    Row("FusedBatchNormV3", [X, floats(4), O, M, V], id="channels", error="ValueError"),
]
