"""Rows of ops/comparison.py."""

import numpy as np
from row import Row, floats, ints

F = np.float32
ORDER = ("Less", "LessEqual", "Greater", "GreaterEqual")
EQUAL = ("Equal", "NotEqual")
NANS = [np.array([1, np.nan, 2, np.inf], F), np.array([1, np.nan, 3, np.inf], F)]
YES = np.array([True, False, True])

ROWS = [
    *(Row(op, [ints(2, 3, low=0, high=3), ints(3, low=0, high=3, seed=1)]) for op in (*ORDER, *EQUAL)),
    *(Row(op, NANS, id="nan") for op in (*ORDER, *EQUAL)),
    *(Row(op, [floats(2, 2).astype(np.float16), np.float16(0)], id="half") for op in (*ORDER, *EQUAL)),
    *(Row(op, [ints(4, dtype=np.int64), np.int64(0)], id="int64") for op in (*ORDER, *EQUAL)),
    *(Row(op, [YES, np.array([True, True, False])], id="bool") for op in EQUAL),
    *(Row(op, [np.array([1 + 2j, 1], np.complex64), np.complex64(1)], id="complex") for op in EQUAL),
    *(Row(op, [np.array([b"a", b"b"], object), np.array(b"a", object)], id="string") for op in EQUAL),
    *(Row(op, [ints(2), ints(3)], {"incompatible_shape_error": False}, id="unlike") for op in EQUAL),
    *(Row(op, [ints(2), ints(3)], id="bad", error="ValueError") for op in ("Less", "Equal")),
    *(Row(op, [YES, np.array([True, True, False])]) for op in ("LogicalAnd", "LogicalOr")),
    *(Row(op, [YES[:, None], YES], id="broadcast") for op in ("LogicalAnd", "LogicalOr")),
    Row("ApproximateEqual", [np.array([1, 2, 3], F), np.array([1.05, 2.2, 3], F)], {"tolerance": 0.1}),
    Row("ApproximateEqual", [floats(3, dtype=np.float64), floats(3, dtype=np.float64)], id="double"),
    Row("ApproximateEqual", [ints(3), ints(1)], id="bad", error="ValueError"),
    Row("Select", [YES, floats(3), floats(3, seed=1)]),
    Row("Select", [YES, floats(3, 2), floats(3, 2, seed=1)], id="rows"),
    Row("Select", [np.array(True), floats(3, 2), floats(3, 2, seed=1)], id="scalar"),
    Row("Select", [YES, ints(3), ints(3, seed=1)], id="int32"),
    Row("Select", [YES, np.array([b"a", b"b", b"c"], object), np.array([b"x", b"y", b"z"], object)], id="string"),
    Row("Select", [YES[:1], ints(3, 2), ints(3, 2)], id="bad", error="ValueError"),
    Row("SelectV2", [YES, floats(3), floats(3, seed=1)]),
    Row("SelectV2", [YES, floats(2, 1), floats(3, seed=1)], id="broadcast"),
    Row("SelectV2", [YES, F(2), floats(3, seed=1)], id="scalar"),
    Row("SelectV2", [np.array(False), floats(2, 1), F(1)], id="one"),
    Row("SelectV2", [YES, np.array([b"a"], object), np.array(b"x", object)], id="string"),
    Row("SelectV2", [YES, floats(2), floats(3)], id="bad", error="ValueError"),
    Row("ClipByValue", [floats(2, 3), F(-0.5), F(0.7)]),
    Row("ClipByValue", [floats(2, 3), floats(2, 3, low=-2, high=-1), floats(2, 3, low=0, high=1)], id="each"),
    Row("ClipByValue", [np.array([-9, 0, 9], F), F(3), F(1)], id="crossed", grad=()),
    Row("ClipByValue", [np.array([np.nan, 1], F), F(0), F(1)], id="nan", grad=()),
    Row("ClipByValue", [ints(5), np.int32(-2), np.int32(2)], id="int32"),
    Row("BroadcastGradientArgs", [np.array([1, 2], np.int32), np.array([1, 1], np.int32)]),
    Row("BroadcastGradientArgs", [np.array([1, 2], np.int32), np.array([1, 2], np.int32)], id="same"),
    Row("BroadcastGradientArgs", [np.zeros(0, np.int32), np.array([1, 2], np.int32)], id="scalar"),
    Row("BroadcastGradientArgs", [np.array([2, 1, 3], np.int64), np.array([1], np.int64)], id="int64"),
    Row("BroadcastGradientArgs", [np.array([4, 1, 3, 1], np.int32), np.array([2, 1, 5], np.int32)], id="both"),
    Row("BroadcastGradientArgs", [np.array([0, 1], np.int32), np.array([1, 4], np.int32)], id="empty"),
    Row("BroadcastGradientArgs", [np.array([2], np.int32), np.array([3], np.int32)], id="bad",
        error="InvalidArgumentError"),
]  # fmt: skip
