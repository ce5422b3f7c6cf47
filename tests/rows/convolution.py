"""Rows of ops/convolution.py."""

import ml_dtypes
import numpy as np
from row import Row, floats, ints

ONE = [1, 1, 1, 1]
TWO = [1, 2, 2, 1]
X, W = floats(2, 6, 7, 3), floats(3, 3, 3, 4, seed=1)
SAME = {"strides": ONE, "padding": "SAME"}
DEEP, CUBE = floats(1, 4, 5, 4, 2), floats(2, 3, 2, 2, 3, seed=1)


def sizes(*n: int) -> np.ndarray:
    return np.array(n, np.int32)


ROWS = [
    Row("Conv2D", [X, W], SAME, atol=1e-5),
    Row("Conv2D", [X, W], {"strides": TWO, "padding": "VALID"}, id="valid", atol=1e-5),
    Row("Conv2D", [X, W], {"strides": [1, 2, 3, 1], "padding": "SAME"}, id="strides", atol=1e-5),
    Row("Conv2D", [X, W], SAME | {"dilations": TWO}, id="dilated", grad=(), atol=1e-5),
    Row(
        "Conv2D",
        [X, W],
        {"strides": TWO, "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]},
        id="explicit",
        atol=1e-5,
    ),
    Row("Conv2D", [floats(2, 6, 7, 5), floats(1, 1, 5, 4, seed=1)], SAME, id="one_by_one", atol=1e-5),
    Row("Conv2D", [floats(2, 6, 7, 1), floats(3, 3, 1, 8, seed=1)], SAME, id="one_channel", atol=1e-5),
    Row("Conv2D", [floats(1, 5, 5, 3, dtype=np.float64), W[..., :2].astype(np.float64)], SAME, id="double", atol=1e-5),
    Row("Conv2D", [X[:1].astype(np.float16), W.astype(np.float16)], SAME, id="half", grad=(), atol=2e-2),
    Row("Conv2D", [X[:1].astype(ml_dtypes.bfloat16), W.astype(ml_dtypes.bfloat16)], SAME, id="bfloat16", grad=(), atol=0.2),
    Row("Conv2D", [ints(1, 4, 4, 2), ints(2, 2, 2, 3)], SAME, id="int32"),
    # (TensorFlow with oneDNN gives an empty result the shape of its input)
    Row("Conv2D", [floats(0, 6, 7, 3), W], SAME, id="empty", grad=(), outputs=()),
    Row("Conv2D", [X, floats(7, 3, 3, 4)], {"strides": ONE, "padding": "VALID"}, id="window", error="ValueError"),
    Row("Conv2D", [X, floats(3, 3, 2, 4)], SAME, id="depth", error="ValueError"),
    Row("Conv2D", [X[0], W], SAME, id="rank", error="ValueError"),
    Row("Conv2D", [X, W], {"strides": [1, 1, 1], "padding": "SAME"}, id="three_strides", error="ValueError"),
    Row(
        "Conv2DBackpropInput",
        [sizes(2, 6, 7, 3), W, floats(2, 3, 4, 4, seed=2)],
        {"strides": TWO, "padding": "SAME"},
        const=(0,),
        atol=1e-5,
    ),
    Row(
        "Conv2DBackpropInput",
        [sizes(2, 6, 7, 3), W, floats(2, 2, 3, 4, seed=2)],
        {"strides": TWO, "padding": "VALID"},
        id="fed_sizes",
        grad=(),
        atol=1e-5,
    ),
    Row("Conv2DBackpropInput", [sizes(6, 7), W, floats(2, 6, 7, 4, seed=2)], SAME, id="spatial", const=(0,), grad=(), atol=1e-5),
    Row(
        "Conv2DBackpropFilter",
        [X, sizes(3, 3, 3, 4), floats(2, 3, 4, 4, seed=2)],
        {"strides": TWO, "padding": "SAME"},
        const=(1,),
        atol=1e-5,
    ),
    Row(
        "DepthwiseConv2dNative",
        [X, floats(3, 3, 3, 2, seed=1)],
        {"strides": ONE, "padding": "SAME"},
        atol=1e-5,
    ),
    Row("DepthwiseConv2dNative", [X, floats(2, 3, 3, 1, seed=1)], {"strides": TWO, "padding": "VALID"}, id="valid", atol=1e-5),
    Row("DepthwiseConv2dNative", [X, floats(3, 3, 2, 1)], SAME, id="depth", error="ValueError"),
    Row(
        "DepthwiseConv2dNativeBackpropInput",
        [sizes(2, 6, 7, 3), floats(3, 3, 3, 2), floats(2, 3, 4, 6, seed=2)],
        {"strides": TWO, "padding": "SAME"},
        const=(0,),
        atol=1e-5,
    ),
    Row(
        "DepthwiseConv2dNativeBackpropFilter",
        [X, sizes(3, 3, 3, 2), floats(2, 3, 4, 6, seed=2)],
        {"strides": TWO, "padding": "SAME"},
        const=(1,),
        atol=1e-5,
    ),
    Row("Conv3D", [DEEP, CUBE], {"strides": [1, 1, 2, 1, 1], "padding": "SAME"}, atol=1e-5),
    Row("Conv3D", [DEEP, CUBE], {"strides": [1] * 5, "padding": "VALID"}, id="valid", grad=(), atol=1e-5),
    Row(
        "Conv3DBackpropInputV2",
        [sizes(1, 4, 5, 4, 2), CUBE, floats(1, 3, 3, 3, 3)],
        {"strides": [1] * 5, "padding": "VALID"},
        const=(0,),
        atol=1e-5,
    ),
    Row(
        "Conv3DBackpropFilterV2",
        [DEEP, sizes(2, 3, 2, 2, 3), floats(1, 3, 3, 3, 3)],
        {"strides": [1] * 5, "padding": "VALID"},
        const=(1,),
        atol=1e-5,
    ),
]
