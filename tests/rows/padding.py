"""Rows of ops/padding.py."""

import numpy as np
from row import Row, floats, ints

WORDS = np.array([[b"a", b"bc"]], object)


def pads(*rows, dtype=np.int32):
    return np.array(rows, dtype).reshape(len(rows), 2)


ROWS = [
    Row("Pad", [floats(2, 3), pads([1, 0], [0, 2])], const=(1,)),
    Row("Pad", [floats(2), pads([1, 2], dtype=np.int64)], id="fed"),
    Row("Pad", [ints(0, 2), pads([1, 1], [0, 0])], const=(1,), id="empty"),
    Row("Pad", [floats(), pads()], const=(1,), id="scalar"),
    Row("Pad", [np.array([True]), pads([1, 1])], const=(1,), id="bool"),
    Row("Pad", [floats(2), pads([-1, 0])], const=(1,), id="bad", error="ValueError"),
    Row("Pad", [floats(2), pads([-1, 0])], id="run_bad", error="InvalidArgumentError"),
    Row("PadV2", [floats(2, 3), pads([1, 0], [0, 2]), np.float32(7)], const=(1,), grad=(0,)),
    Row("PadV2", [ints(2), pads([1, 2]), np.int32(-1)], const=(1, 2), id="int32"),
    Row("PadV2", [WORDS, pads([1, 0], [0, 1]), np.array(b"-", object)], const=(1,), id="strings"),
    Row("MirrorPad", [floats(3, 4), pads([2, 1], [0, 3])], {"mode": "REFLECT"}, const=(1,), id="reflect"),
    Row("MirrorPad", [floats(3, 4), pads([3, 1], [0, 4])], {"mode": "SYMMETRIC"}, const=(1,), id="symmetric"),
    Row("MirrorPad", [ints(3), pads([1, 1])], {"mode": "SYMMETRIC"}, id="fed"),
    Row("MirrorPad", [floats(3), pads([3, 0])], {"mode": "REFLECT"}, id="bad", error="InvalidArgumentError"),
    Row("MirrorPadGrad", [floats(6, 7), pads([2, 1], [0, 3])], {"mode": "REFLECT"}, const=(1,), id="reflect"),
    Row("MirrorPadGrad", [floats(7), pads([2, 2])], {"mode": "SYMMETRIC"}, const=(1,), id="symmetric"),
]
