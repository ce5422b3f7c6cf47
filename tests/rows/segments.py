"""Rows of ops/segments.py."""

import numpy as np
from row import Row, floats, ints

F = np.float32
SORTED = ("SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd")
UNSORTED = ("UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd")
IDS = np.array([0, 0, 2, 3, 3], np.int32)
ANY = np.array([2, 0, -1, 2, 0], np.int32)
ZEROS = np.array([0, 2, 3, 0, 5], F)
N = np.int32(4)

ROWS = [
    *(Row(op, [floats(5, 2), IDS]) for op in SORTED),
    *(Row(op, [floats(5, 2), IDS.astype(np.int64)], id="known", const=(1,)) for op in SORTED),
    *(Row(op, [ints(5, 2), IDS], id="int32") for op in SORTED),
    *(Row(op, [np.zeros((0, 2), F), IDS[:0]], id="empty", grad=()) for op in SORTED),
    *(Row(op, [floats(2), np.array([1, 0], np.int32)], id="not sorted", error="InvalidArgumentError") for op in SORTED),
    *(Row(op, [floats(2), np.array([-1, 0], np.int32)], id="negative", error="InvalidArgumentError") for op in SORTED),
    Row("SegmentSum", [floats(2), IDS[:1]], id="length", error="ValueError"),
    Row("SegmentProd", [ZEROS, np.array([0, 0, 0, 1, 1], np.int32)], id="zeros"),
    *(Row(op, [np.array([1, 1, 0], F), np.array([0, 0, 0], np.int32)], id="ties") for op in ("SegmentMax", "SegmentMin")),
    *(Row(op, [floats(5, 2), ANY, N]) for op in UNSORTED),
    *(Row(op, [floats(5, 2), ANY, N], id="known", const=(1, 2)) for op in UNSORTED),
    *(Row(op, [floats(5), ANY.astype(np.int64), np.int64(3)], id="int64", const=(2,)) for op in UNSORTED),
    *(Row(op, [ints(5, 2), ANY, N], id="int32") for op in UNSORTED),
    *(Row(op, [floats(2, 3, 2), np.array([[0, 1, 0], [1, 1, -1]], np.int32), N], id="matrix of ids", const=(2,))
      for op in UNSORTED),
    *(Row(op, [floats(2), np.array([0, 5], np.int32), N], id="out of range", error="InvalidArgumentError")
      for op in UNSORTED),
    *(Row(op, [floats(2).astype(np.float16), np.array([0, 1], np.int32), N], id="half", grad=()) for op in UNSORTED),
    Row("UnsortedSegmentSum", [floats(2), np.array([0, 1], np.int32), np.int32(-1)], id="bad", const=(2,),
        error="ValueError"),
    Row("UnsortedSegmentProd", [ZEROS, ANY, N], id="zeros"),
    *(Row(op, [np.array([1, 1, 0], F), np.array([1, 1, 1], np.int32), N], id="ties")
      for op in ("UnsortedSegmentMax", "UnsortedSegmentMin")),
    Row("Bincount", [np.array([1, 5, 1], np.int32), np.int32(3), np.zeros(0, F)], grad=()),
    Row("Bincount", [np.array([1, 5, 1], np.int32), np.int32(3), np.zeros(0, np.int32)], id="int32", const=(1,)),
    Row("Bincount", [np.array([1, 5, 1], np.int32), np.int32(3), np.array([2, 3, 4], F)], id="weights", grad=()),
    Row("Bincount", [np.array([1, -5], np.int32), np.int32(3), np.zeros(0, F)], id="negative", grad=(),
        error="InvalidArgumentError"),
]  # fmt: skip
