"""Rows of ops/partitioning.py."""

import numpy as np
from row import Row, floats, ints

I32 = np.int32
WORDS = np.array([b"b", b"a", b"c"], object)


def at(*values):
    return np.array(values, I32)


ROWS = [
    Row("DynamicPartition", [floats(4, 2), at(1, 0, 1, 2)], {"num_partitions": 3}, id="rows"),
    Row("DynamicPartition", [ints(2, 2), at([0, 1], [1, 1])], {"num_partitions": 2}, id="matrix"),
    Row("DynamicPartition", [WORDS, at(0, 0, 1)], {"num_partitions": 2}, id="strings"),
    Row("DynamicPartition", [floats(2), at(0, 2)], {"num_partitions": 2}, id="bad", error="InvalidArgumentError"),
    Row("DynamicStitch", [[at(0, 2), at(1)], [floats(2, 3), floats(1, 3, seed=1)]]),
    Row("DynamicStitch", [[at(0, 2), at(1, 0)], [floats(2), floats(2, seed=1)]], const=(0,), id="const"),
    Row("DynamicStitch", [[at([0, 1]), I32(2)], [ints(1, 2), I32(9)]], id="shapes"),
    Row("DynamicStitch", [[at(0, 1)], [WORDS[:2]]], id="strings"),
    Row("DynamicStitch", [[at(-1)], [floats(1)]], id="bad", error="InvalidArgumentError"),
    Row("ParallelDynamicStitch", [[at(0, 2), at(1)], [floats(2, 3), floats(1, 3, seed=1)]]),
]
