"""Rows of ops/filling.py."""

import numpy as np
from row import Row, floats, ints

I32, F32 = np.int32, np.float32
WORDS = np.array([[b"a", b"bc"]], object)


def span(start, limit, delta, dtype=I32):
    return [np.array(v, dtype) for v in (start, limit, delta)]


ROWS = [
    Row("Fill", [np.array([2, 3], I32), F32(1.5)], const=(0,)),
    Row("Fill", [np.array([2, 0], np.int64), I32(4)], id="fed"),
    Row("Fill", [np.array([], I32), F32(2)], const=(0,), id="scalar"),
    Row("Fill", [np.array([2], I32), np.array(b"w", object)], const=(0,), id="strings"),
    Row("Fill", [np.array([-1], I32), F32(2)], const=(0,), id="bad", error="ValueError"),
    Row("Fill", [np.array([-1], I32), F32(2)], id="run_bad", error="InvalidArgumentError"),
    Row("ZerosLike", [floats(2, 3)], grad=()),
    Row("ZerosLike", [WORDS], id="strings"),
    Row("ZerosLike", [np.array([True])], id="bool"),
    Row("OnesLike", [floats(2, 3)], grad=()),
    Row("OnesLike", [ints(0, dtype=np.uint8)], id="uint8"),
    Row("OneHot", [np.array([0, 2, -1, 5], I32), I32(3), F32(1), F32(0)], const=(1,), grad=()),
    Row("OneHot", [np.array([[0, 1]]), I32(3), I32(7), I32(-7)], {"axis": 0}, const=(1, 2, 3), id="first"),
    Row("OneHot", [np.array([[0, 1]], np.uint8), I32(2), F32(1), F32(0)], {"axis": 1}, id="middle", grad=()),
    Row("OneHot", [I32(1), I32(3), np.array(True), np.array(False)], const=(1,), id="scalar"),
    Row("OneHot", [np.array([1, 0]), I32(2), np.array(b"y", object), np.array(b"n", object)], const=(1,), id="strings"),
    Row("OneHot", [I32(1), I32(-3), F32(1), F32(0)], const=(1,), id="bad", error="ValueError"),
    Row("Range", span(2, 11, 3), const=(0, 1, 2)),
    Row("Range", span(5, -2, -3), id="down_fed"),
    Row("Range", span(3, 3, 1), id="empty"),
    Row("Range", span(0, 1, 0.1, F32), const=(0, 1, 2), id="float", grad=()),
    Row("Range", span(-1, 2, 0.3, np.float64), id="double", grad=()),
    Row("Range", span(1, 6, 2, np.int64), const=(0, 1, 2), id="int64"),
    Row("Range", span(0, 3, 0), const=(0, 1, 2), id="zero", error="ValueError"),
    Row("Range", span(3, 0, 1), const=(0, 1, 2), id="bad", error="ValueError"),
    Row("Range", span(3, 0, 1), id="run_bad", error="InvalidArgumentError"),
    Row("LinSpace", [F32(1), F32(2), I32(7)], const=(2,), grad=()),
    Row("LinSpace", [np.float64(0), np.float64(-10), I32(4)], id="double", grad=()),
    Row("LinSpace", [F32(3), F32(9), I32(1)], const=(2,), id="one", grad=()),
    Row("LinSpace", [F32(3), F32(9), I32(0)], const=(2,), id="bad", error="ValueError"),
]
