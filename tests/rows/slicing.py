"""Rows of ops/slicing.py."""

import numpy as np
from row import Row, floats, ints

WORDS = np.array([[b"a", b"bc"], [b"", b"d"]], object)


def vec(*values, dtype=np.int32):
    return np.array(values, dtype).reshape(len(values))


ROWS = [
    Row("Slice", [floats(3, 4), vec(1, 0), vec(2, 3)], const=(1, 2)),
    Row("Slice", [floats(3, 4), vec(1, 2), vec(-1, -1)], const=(1, 2), id="rest"),
    Row("Slice", [floats(3, 4), vec(1, 2), vec(1, 2)], const=(2,), id="begin_fed"),
    Row("Slice", [floats(3, 4), vec(1, 2), vec(-1, 1)], const=(2,), id="begin_fed_rest"),
    Row("Slice", [ints(5), vec(2, dtype=np.int64), vec(3, dtype=np.int64)], id="fed"),
    Row("Slice", [floats(3, 4), vec(3, 0), vec(0, 4)], const=(1, 2), id="empty"),
    Row("Slice", [WORDS, vec(0, 1), vec(2, 1)], const=(1, 2), id="strings"),
    Row("Slice", [floats(3), vec(2), vec(2)], const=(1, 2), id="bad", error="ValueError"),
    Row("Slice", [floats(3), vec(2), vec(2)], const=(2,), id="run_bad", error="InvalidArgumentError"),
    Row("Slice", [floats(3), vec(-1), vec(2)], id="run_begin", error="InvalidArgumentError"),
]
