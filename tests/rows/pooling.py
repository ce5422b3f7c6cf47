"""Rows of ops/pooling.py."""

import numpy as np
from row import Row, floats, ints

X = floats(2, 6, 7, 3)
TIES = ints(1, 5, 6, 2, low=0, high=3).astype(np.float32)
HOW = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
OVER = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": "VALID"}
DEEP = floats(1, 4, 5, 4, 2)
CUBE = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}


def sizes(*n: int) -> np.ndarray:
    return np.array(n, np.int32)


def pooled(x: np.ndarray, k: int) -> np.ndarray:
    """The maxima of windows of k by k that lie apart."""
    n, h, w, c = x.shape
    return x.reshape(n, h // k, k, w // k, k, c).max((2, 4))


EVEN = ints(1, 4, 6, 2, low=0, high=3).astype(np.float32)

ROWS = [
    Row("MaxPool", [X], HOW),
    Row("MaxPool", [X], OVER, id="valid"),
    Row("MaxPool", [TIES], OVER, id="ties"),
    Row("MaxPool", [X], {"ksize": [1, 1, 1, 3], "strides": [1, 1, 1, 3], "padding": "VALID"}, id="channels", grad=()),
    Row("MaxPool", [ints(1, 4, 4, 1)], HOW, id="int32"),
    Row("MaxPool", [X.astype(np.float16)], HOW, id="half"),
    Row("MaxPool", [X.astype(np.float64)], HOW, id="double"),
    Row(
        "MaxPool",
        [X],
        OVER | {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 1, 1, 0, 0]},
        id="explicit",
    ),
    Row("MaxPool", [floats(1, 2, 2, 1)], OVER, id="window", error="ValueError"),
    Row("MaxPool", [floats(2, 2, 1)], HOW, id="rank", error="ValueError"),
    Row("MaxPoolV2", [X, sizes(1, 2, 2, 1), sizes(1, 2, 2, 1)], {"padding": "SAME"}, const=(1, 2)),
    Row("MaxPoolV2", [X, sizes(1, 2, 2, 1), sizes(1, 1, 2, 1)], {"padding": "VALID"}, id="fed"),
    Row("MaxPoolGrad", [EVEN, pooled(EVEN, 2), floats(1, 2, 3, 2)], HOW, grad=(0, 1, 2)),
    Row(
        "MaxPoolGradV2",
        [EVEN, pooled(EVEN, 2), floats(1, 2, 3, 2), sizes(1, 2, 2, 1), sizes(1, 2, 2, 1)],
        {"padding": "VALID"},
        const=(3, 4),
        grad=(0, 1, 2),
    ),
    Row("MaxPoolGradGrad", [EVEN, pooled(EVEN, 2), floats(1, 4, 6, 2)], HOW, grad=(0, 1, 2)),
    Row(
        "MaxPoolGradGradV2",
        [EVEN, pooled(EVEN, 2), floats(1, 4, 6, 2), sizes(1, 2, 2, 1), sizes(1, 2, 2, 1)],
        {"padding": "VALID"},
        const=(3, 4),
        grad=(),
    ),
    Row("MaxPoolWithArgmax", [X], HOW),
    Row("MaxPoolWithArgmax", [X], OVER | {"include_batch_in_index": True, "Targmax": "int32"}, id="batch", grad=()),
    Row(
        "MaxPoolGradWithArgmax",
        [X, floats(2, 3, 4, 3), (np.arange(72, dtype=np.int64) // 2 * 7 % 126).reshape(2, 3, 4, 3)],
        HOW,
        grad=(),
    ),
    Row("AvgPool", [X], HOW),
    Row("AvgPool", [X], OVER, id="valid"),
    Row("AvgPool", [X], {"ksize": [1, 3, 3, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}, id="overlap"),
    Row("AvgPool", [X.astype(np.float16)], HOW, id="half"),
    Row("AvgPool", [X.astype(np.float64)], HOW, id="double"),
    Row("AvgPool", [floats(1, 2, 2, 1)], OVER, id="window", error="ValueError"),
    Row("AvgPoolGrad", [sizes(2, 6, 7, 3), floats(2, 3, 4, 3)], HOW, const=(0,)),
    Row("AvgPoolGrad", [sizes(2, 6, 7, 3), floats(2, 2, 6, 3)], OVER, id="fed", grad=()),
    Row("MaxPool3D", [DEEP], CUBE),
    Row("AvgPool3D", [DEEP], CUBE),
    Row("MaxPool3DGrad", [DEEP, floats(1, 2, 3, 2, 2) * 0 + 9, floats(1, 2, 3, 2, 2)], CUBE, grad=(), outputs=()),
    Row("AvgPool3DGrad", [sizes(1, 4, 5, 4, 2), floats(1, 2, 3, 2, 2)], CUBE, const=(0,)),
]
