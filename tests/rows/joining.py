"""Rows of ops/joining.py."""

import numpy as np
from row import Row, floats, ints

WORDS = np.array([[b"a", b"bc"], [b"", b"d"]], object)
I32 = np.int32

ROWS = [
    Row("Concat", [I32(1), [floats(2, 3), floats(2, 1, seed=1)]], const=(0,)),
    Row("Concat", [I32(0), [floats(2, 3), floats(1, 3, seed=1), floats(0, 3)]], const=(0,), id="three"),
    Row("ConcatV2", [[floats(2, 3), floats(2, 1, seed=1)], I32(-1)], const=(1,)),
    Row("ConcatV2", [[floats(2, 3), floats(1, 3, seed=1)], np.int64(0)], const=(1,), id="rows", grad=()),
    Row("ConcatV2", [[ints(2), ints(0), ints(3, seed=1)], I32(0)], id="fed"),
    Row("ConcatV2", [[WORDS, WORDS], I32(1)], const=(1,), id="strings"),
    Row("ConcatV2", [[np.array([True]), np.array([False])], I32(0)], const=(1,), id="bool"),
    Row("ConcatV2", [[floats(1, 2, seed=i) for i in range(18)], I32(0)], const=(1,), id="many"),
    Row("ConcatV2", [[floats(2, 3), floats(2, 1)], I32(0)], const=(1,), id="bad", error="ValueError"),
    Row("ConcatV2", [[floats(), floats()], I32(0)], const=(1,), id="scalars", error="ValueError"),
    Row("ConcatV2", [[floats(2, 3), floats(2, 1)], I32(0)], id="run_bad", error="InvalidArgumentError"),
    Row("ConcatOffset", [I32(1), [np.array([2, 3], I32), np.array([2, 4], I32), np.array([2, 0], I32)]], const=(0,)),
    Row("Pack", [[floats(2, 3), floats(2, 3, seed=1)]]),
    Row("Pack", [[floats(2, 3), floats(2, 3, seed=1)]], {"axis": -1}, id="last"),
    Row("Pack", [[floats(), floats(seed=1), floats(seed=2)]], id="scalars"),
    Row("Pack", [[WORDS, WORDS]], {"axis": 1}, id="strings"),
    Row("Pack", [[ints(0), ints(0)]], {"axis": 1}, id="empty"),
    Row("Pack", [[floats(2), floats(3)]], id="bad", error="ValueError"),
    Row("Unpack", [floats(2, 3)], {"num": 2}),
    Row("Unpack", [floats(2, 3)], {"num": 3, "axis": -1}, id="last"),
    Row("Unpack", [WORDS], {"num": 2, "axis": 1}, id="strings"),
    Row("Unpack", [ints(3)], {"num": 3}, id="int32"),
    Row("Unpack", [floats(2, 3)], {"num": 3}, id="bad", error="ValueError"),
    Row("Split", [I32(1), floats(2, 6)], {"num_split": 3}, const=(0,)),
    Row("Split", [I32(-2), floats(4, 3)], {"num_split": 2}, id="fed"),
    Row("Split", [I32(0), WORDS], {"num_split": 2}, const=(0,), id="strings"),
    Row("Split", [I32(0), floats(2, 6)], {"num_split": 1}, const=(0,), grad=(), id="one"),
    Row("Split", [I32(1), floats(2, 5)], {"num_split": 3}, const=(0,), id="bad", error="ValueError"),
    Row("Split", [I32(1), floats(2, 5)], {"num_split": 3}, id="run_bad", error="InvalidArgumentError"),
    Row("SplitV", [floats(5, 2), np.array([1, 4]), I32(0)], {"num_split": 2}, const=(1, 2)),
    Row("SplitV", [floats(2, 5), np.array([2, -1, 0], I32), I32(-1)], {"num_split": 3}, const=(1, 2), id="rest"),
    Row("SplitV", [ints(5), np.array([2, 3]), I32(0)], {"num_split": 2}, id="fed"),
    Row("SplitV", [WORDS, np.array([0, 2]), I32(0)], {"num_split": 2}, const=(1, 2), id="strings"),
    Row("SplitV", [floats(5), np.array([1, 3]), I32(0)], {"num_split": 2}, const=(1, 2), id="bad", error="ValueError"),
    Row("SplitV", [floats(5), np.array([1, 3]), I32(0)], {"num_split": 2}, id="run_bad", error="InvalidArgumentError"),
]
