"""Rows of ops/gathering.py."""

import numpy as np
from row import Row, floats, ints

I32 = np.int32
WORDS = np.array([b"a", b"bc", b"d"], object)


def at(*values, dtype=I32):
    return np.array(values, dtype)


ROWS = [
    Row("Gather", [floats(3, 2), at(2, 0, 2)]),
    Row("Gather", [floats(3, 2), at([0, 1], [2, 2], dtype=np.int64)], const=(1,), id="matrix"),
    Row("Gather", [floats(3), I32(1)], id="scalar"),
    Row("Gather", [floats(3, 2), np.zeros(0, I32)], id="none"),
    Row("Gather", [WORDS, at(2, 1)], id="strings"),
    Row("Gather", [floats(3, 2), at(1, 7, -1)], id="bad", error="InvalidArgumentError"),
    Row("GatherV2", [floats(3, 2), at(2, 0, 2), I32(0)], const=(2,)),
    Row("GatherV2", [floats(3, 4), at([3, 0], [1, 1]), I32(1)], const=(2,), id="axis"),
    Row("GatherV2", [floats(2, 3, 4), at(3, 3), I32(-1)], const=(2,), id="last"),
    Row("GatherV2", [floats(2, 3, 4), I32(1), np.int64(1)], const=(2,), id="scalar"),
    Row("GatherV2", [floats(3, 4), at(2, 2), I32(0)], id="axis_fed", grad=()),
    Row("GatherV2", [floats(2, 3), at([0, 2], [1, 1]), I32(1)], {"batch_dims": 1}, const=(2,), id="batch"),
    Row("GatherV2", [floats(2, 3, 4), at([0, 2], [1, 1]), I32(2)], {"batch_dims": 1}, const=(2,), id="batch_axis"),
    Row("GatherV2", [floats(2, 2, 3, 2), at([[0], [1]], [[2], [2]]), I32(2)], {"batch_dims": 2}, const=(2,), id="batch2"),
    Row("GatherV2", [floats(2, 3), at(1, 2), I32(1)], {"batch_dims": -1}, const=(2,), id="batch_all"),
    Row("GatherV2", [ints(5), at(4, 0, dtype=np.int16), I32(0)], const=(2,), id="int16"),
    Row("GatherV2", [WORDS, at([2], [1]), I32(0)], const=(2,), id="strings"),
    Row("GatherV2", [floats(0, 2), np.zeros(0, I32), I32(0)], const=(2,), id="empty", grad=()),
    Row("GatherV2", [floats(0, 2), at(0), I32(0)], const=(2,), id="empty_bad", error="InvalidArgumentError"),
    Row("GatherV2", [floats(3, 2), at([1, 0], [7, -1]), I32(0)], const=(2,), id="bad", error="InvalidArgumentError"),
    Row("GatherV2", [floats(3, 2), I32(-1), I32(0)], const=(2,), id="bad_scalar", error="InvalidArgumentError"),
    Row("GatherV2", [floats(3, 2), I32(1), I32(2)], const=(2,), id="bad_axis", error="ValueError"),
]
