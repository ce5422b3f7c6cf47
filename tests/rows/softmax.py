"""Rows of ops/softmax.py and ops/local_response.py."""

import ml_dtypes
import numpy as np
from row import Row, floats

LOGITS = np.array([[1000.0, 0.0, -1000.0], [0.5, 0.5, 0.5], [-2.0, 3.0, 1.0]], np.float32)
LABELS = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], np.float32)
INFINITE = np.array([[0.0, -np.inf, 1.0], [-np.inf, 2.0, 2.0]], np.float32)
IMAGES = floats(2, 3, 4, 7)

ROWS = []
for op in ("Softmax", "LogSoftmax"):
    ROWS += [
        Row(op, [LOGITS]),
        Row(op, [floats(2, 3, 4, dtype=np.float64)], id="double"),
        Row(op, [floats(5)], id="vector"),
        Row(op, [floats(2, 6, dtype=np.float16)], id="half", atol=3e-3),
        Row(op, [floats(2, 6).astype(ml_dtypes.bfloat16)], id="bfloat16", rtol=2e-2, atol=1e-2),
        Row(op, [floats(0, 3)], id="no_rows"),
        Row(op, [floats(2, 0)], id="no_classes"),
        Row(op, [INFINITE], id="infinite", grad=()),
        Row(op, [np.float32(1)], id="scalar", error="ValueError"),
    ]
ROWS += [
    Row("SoftmaxCrossEntropyWithLogits", [floats(3, 4), floats(3, 4, low=0, high=1, seed=1)]),
    Row("SoftmaxCrossEntropyWithLogits", [LOGITS, LABELS], id="large", grad=()),
    Row(
        "SoftmaxCrossEntropyWithLogits",
        [floats(3, 4, dtype=np.float64), floats(3, 4, low=0, high=1, seed=1, dtype=np.float64)],
        id="double",
    ),
    Row(
        "SoftmaxCrossEntropyWithLogits",
        [floats(3, 4, dtype=np.float16), floats(3, 4, low=0, high=1, seed=1, dtype=np.float16)],
        id="half",
        grad=(),
        atol=3e-3,
    ),
    Row("SoftmaxCrossEntropyWithLogits", [floats(3, 4), floats(1, 4, low=0, high=1)], id="broadcast", grad=()),
    Row("SoftmaxCrossEntropyWithLogits", [floats(0, 4), floats(0, 4)], id="empty", grad=()),
    Row("SoftmaxCrossEntropyWithLogits", [floats(3, 4), floats(3, 5)], id="classes", error="ValueError"),
    Row("SoftmaxCrossEntropyWithLogits", [floats(4), floats(4)], id="vectors", error="ValueError"),
    Row("SparseSoftmaxCrossEntropyWithLogits", [floats(4, 3), np.array([0, 2, 1, 2], np.int64)]),
    Row("SparseSoftmaxCrossEntropyWithLogits", [floats(4, 3), np.array([0, 2, 1, 2], np.int32)], id="int32"),
    Row("SparseSoftmaxCrossEntropyWithLogits", [LOGITS, np.array([0, 2, 1], np.int32)], id="large", grad=()),
    Row(
        "SparseSoftmaxCrossEntropyWithLogits",
        [floats(4, 3, dtype=np.float16), np.array([0, 2, 1, 2], np.int64)],
        id="half",
        grad=(),
        atol=3e-3,
    ),
    Row("SparseSoftmaxCrossEntropyWithLogits", [floats(0, 3), np.zeros(0, np.int32)], id="empty", grad=()),
    Row(
        "SparseSoftmaxCrossEntropyWithLogits",
        [floats(2, 10), np.array([3, 10], np.int32)],
        id="label",
        error="InvalidArgumentError",
    ),
    Row(
        "SparseSoftmaxCrossEntropyWithLogits",
        [floats(2, 10), np.array([-1, 0], np.int64)],
        id="negative",
        error="InvalidArgumentError",
    ),
    Row(
        "SparseSoftmaxCrossEntropyWithLogits",
        [floats(2, 3), np.zeros(3, np.int32)],
        id="rows",
        error="ValueError",
    ),
    Row("L2Loss", [floats(2, 3)]),
    Row("L2Loss", [floats(3, 3, 4, 5, dtype=np.float64)], id="double"),
    Row("L2Loss", [floats(7, dtype=np.float16)], id="half"),
    Row("L2Loss", [np.float32(3)], id="scalar"),
    Row("L2Loss", [floats(0, 2)], id="empty"),
    Row("LRN", [IMAGES], {"depth_radius": 2, "bias": 2.0, "alpha": 0.1, "beta": 0.75}),
    Row("LRN", [IMAGES], id="defaults"),
    Row("LRN", [floats(1, 2, 2, 5, dtype=np.float16)], id="half", rtol=1e-2, atol=3e-3),
    Row("LRN", [floats(2, 3, 4)], id="rank", error="ValueError"),
    Row(
        "LRNGrad",
        [floats(2, 3, 4, 7, seed=1), IMAGES, floats(2, 3, 4, 7, seed=2)],
        {"depth_radius": 2, "alpha": 0.1, "beta": 0.75},
        grad=(),
    ),
]
