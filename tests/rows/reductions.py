"""Rows of ops/reductions.py."""

import ml_dtypes
import numpy as np
from row import Row, floats, ints

F = np.float32
REAL = ("Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm")
WHOLE = ("Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm")
TIES = np.array([[1, 3, 3], [2, 2, 2], [3, 1, 0]], F)
ZEROS = np.array([[0, 2, 3], [0, 0, 3], [4, 5, 6]], F)
TRUTH = np.array([[True, False], [True, True]])


def axes(*values, dtype=np.int32):
    return np.array(values, dtype)


ROWS = [
    *(Row(op, [floats(2, 3, 4), axes(1)], id="one", const=(1,)) for op in REAL),
    *(Row(op, [floats(2, 3, 4), axes(1)], {"keep_dims": True}, id="keep", const=(1,)) for op in REAL),
    *(Row(op, [floats(2, 3), axes(0, 1)], id="all", const=(1,)) for op in REAL),
    *(Row(op, [floats(2, 3, 4), axes(-1, 0)], id="two", const=(1,)) for op in REAL),
    *(Row(op, [floats(2, 3, 4), np.int32(-2)], id="scalar axis", const=(1,)) for op in REAL),
    *(Row(op, [floats(2, 3), axes(1, dtype=np.int64)], id="int64 axis", const=(1,)) for op in REAL),
    *(Row(op, [floats(2, 3), axes(1)], id="fed axis", grad=()) for op in REAL),
    *(Row(op, [floats(2, 3), axes()], id="no axis", const=(1,)) for op in REAL),
    *(Row(op, [F(1.5), axes()], id="scalar", const=(1,)) for op in REAL),
    *(Row(op, [floats(4, dtype=np.float64), axes(0)], id="double", const=(1,), rtol=1e-12) for op in REAL),
    *(Row(op, [floats(4, dtype=np.float16), axes(0)], id="half", const=(1,), rtol=1e-2, atol=1e-2) for op in REAL),
    *(Row(op, [floats(4, dtype=ml_dtypes.bfloat16), axes(0)], id="bfloat16", const=(1,), rtol=2e-2, atol=2e-2,
          grad=()) for op in REAL),
    *(Row(op, [ints(2, 5), axes(1)], id="int32", const=(1,)) for op in WHOLE),
    *(Row(op, [ints(2, 5, dtype=np.int64), axes(1)], id="int64", const=(1,)) for op in WHOLE if op != "EuclideanNorm"),
    *(Row(op, [np.zeros((0, 3), F), axes(0)], id="nothing", const=(1,)) for op in REAL),
    *(Row(op, [np.zeros((0,), np.int32), axes(0)], id="nothing int32", const=(1,)) for op in ("Sum", "Prod", "Max", "Min")),
    *(Row(op, [np.zeros((3, 0), F), axes(0)], id="empty", const=(1,)) for op in REAL),
    *(Row(op, [np.array([1, 2j, 3 + 1j], np.complex64), axes(0)], id="complex", const=(1,), grad=())
      for op in ("Sum", "Mean", "Prod")),
    *(Row(op, [np.array([1, np.nan, 3], F), axes(0)], id="nan", const=(1,), grad=()) for op in ("Max", "Min", "Sum")),
    *(Row(op, [TIES, axes(1)], id="ties", const=(1,)) for op in ("Max", "Min")),
    Row("Prod", [ZEROS, axes(1)], id="zeros", const=(1,)),
    Row("Prod", [ZEROS, axes(0)], {"keep_dims": True}, id="zeros keep", const=(1,)),
    Row("Mean", [np.array([100, 100, 100], np.int8), axes(0)], id="int8", const=(1,)),
    Row("Mean", [np.array([-3, -4, 0], np.int32), axes(0)], id="towards zero", const=(1,)),
    Row("Sum", [floats(2, 3), axes(2)], id="bad", const=(1,), error="ValueError"),
    Row("Sum", [floats(2, 3), axes(2)], id="bad fed", error="InvalidArgumentError"),
    Row("Sum", [floats(2, 3), axes(0, -2)], id="twice fed", error="InvalidArgumentError"),
    *(Row(op, [TRUTH, axes(1)], const=(1,)) for op in ("All", "Any")),
    *(Row(op, [TRUTH, axes(0, 1)], {"keep_dims": True}, id="keep", const=(1,)) for op in ("All", "Any")),
    *(Row(op, [np.zeros((0, 2), bool), axes(0)], id="nothing", const=(1,)) for op in ("All", "Any")),
    *(Row(op, [TIES, np.int32(1)], const=(1,)) for op in ("ArgMax", "ArgMin")),
    *(Row(op, [TIES, np.int32(-2)], {"output_type": "int32"}, id="int32", const=(1,)) for op in ("ArgMax", "ArgMin")),
    *(Row(op, [ints(3, 4), np.int64(0)], id="int input", const=(1,)) for op in ("ArgMax", "ArgMin")),
    *(Row(op, [np.array([[1, np.nan, 3], [np.nan, np.nan, np.nan]], F), np.int32(1)], id="nan", const=(1,))
      for op in ("ArgMax", "ArgMin")),
    *(Row(op, [np.zeros((0, 3), F), np.int32(0)], id="nothing", error="InvalidArgumentError")
      for op in ("ArgMax", "ArgMin")),
    Row("ArgMax", [TRUTH, np.int32(1)], id="bool", const=(1,)),
    Row("ArgMax", [TIES, np.int32(2)], id="bad", const=(1,), error="ValueError"),
]  # fmt: skip
