"""Rows of ops/searching.py."""

import numpy as np
from row import Row, floats, ints

I32 = np.int32
WORDS = np.array([b"b", b"a", b"b", b""], object)
TIES = np.array([[1, 3, 3, 2], [5, 5, 5, 5]], np.float32)
PREDICTIONS = np.array([[0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [np.nan, 0, 1], [0.2, 0.5, np.inf]], np.float32)

ROWS = [
    Row("Where", [np.array([[True, False], [True, True]])]),
    Row("Where", [np.array([0, 2, -1], np.float32)], id="float"),
    Row("Where", [np.zeros((0, 2), bool)], id="empty"),
    Row("Unique", [np.array([3, 1, 3, 2, 1], I32)]),
    Row("Unique", [WORDS], {"out_idx": "int64"}, id="strings"),
    Row("Unique", [np.array([1, np.nan, np.nan, 1], np.float32)], id="nan", grad=()),
    Row("Unique", [ints(2, 2)], id="bad", error="ValueError"),
    Row("UniqueWithCounts", [np.array([3, 1, 3, 2, 1], np.int64)]),
    Row("UniqueWithCounts", [WORDS], id="strings"),
    Row("UniqueWithCounts", [np.zeros(0, I32)], id="empty"),
    Row("ListDiff", [np.array([1, 2, 3, 2, 4], I32), np.array([2, 5], I32)]),
    Row("ListDiff", [WORDS, np.array([b"b"], object)], {"out_idx": "int64"}, id="strings"),
    Row("TopKV2", [floats(2, 5), I32(3)], const=(1,)),
    Row("TopKV2", [TIES, I32(3)], const=(1,), id="ties"),
    Row("TopKV2", [ints(6), I32(2)], id="fed"),
    Row("TopKV2", [ints(6, low=0, high=250, dtype=np.uint8), I32(6)], const=(1,), id="uint8"),
    Row("TopKV2", [floats(2, 3), I32(0)], const=(1,), id="none", grad=()),
    Row("TopKV2", [floats(2, 3), I32(4)], const=(1,), id="bad", error="ValueError"),
    Row("TopKV2", [floats(2, 3), I32(4)], id="run_bad", error="InvalidArgumentError"),
    Row("InTopK", [PREDICTIONS, np.array([1, 0, 2, 1], I32)], {"k": 2}, grad=()),
    Row("InTopK", [TIES, np.array([3, 9])], {"k": 3}, id="outside", grad=()),
    Row("InTopKV2", [TIES, np.array([1, 0], I32), I32(1)], grad=()),
]
