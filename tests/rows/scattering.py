"""Rows of ops/scattering.py."""

import numpy as np
from row import Row, floats, ints

I32 = np.int32
WORDS = np.array([[b"a", b"bc"], [b"", b"d"]], object)


def at(*values, dtype=I32):
    return np.array(values, dtype)


ROWS = [
    Row("GatherNd", [floats(3, 2), at([1, 0], [2, 1])]),
    Row("GatherNd", [floats(3, 2), at([2], [0], [2])], id="rows"),
    Row("GatherNd", [floats(2, 3, 4), at([[1, 0]], [[0, 2]], dtype=np.int64)], const=(1,), id="slices"),
    Row("GatherNd", [floats(3), at(2)], id="one", grad=()),
    Row("GatherNd", [floats(3), np.zeros((2, 0), I32)], id="whole", grad=()),
    Row("GatherNd", [floats(3, 2), np.zeros((0, 2), I32)], id="none"),
    Row("GatherNd", [WORDS, at([1, 1], [0, 1])], id="strings"),
    Row("GatherNd", [floats(3, 2), at([1, 0], [3, 1])], id="bad", error="InvalidArgumentError"),
    Row("GatherNd", [floats(3, 2), at([1, 0, 0])], id="deep", error="ValueError"),
    Row("ScatterNd", [at([3], [1], [3]), floats(3), at(5)], const=(2,)),
    Row("ScatterNd", [at([1, 0], [0, 2]), floats(2), at(2, 3)], const=(2,), id="matrix"),
    Row("ScatterNd", [at([2], [0]), floats(2, 3), at(4, 3)], id="rows_fed"),
    Row("ScatterNd", [at([1], dtype=np.int64), ints(1), at(3, dtype=np.int64)], const=(0, 2), id="int64"),
    Row("ScatterNd", [np.zeros((0, 1), I32), floats(0), at(3)], const=(2,), id="none"),
    Row("ScatterNd", [at([1], [1]), np.array([True, False]), at(3)], const=(2,), id="bool"),
    Row("ScatterNd", [at([1], [5]), floats(2), at(5)], const=(2,), id="bad", error="InvalidArgumentError"),
    Row("ScatterNd", [at([1], [4]), floats(3), at(5)], const=(2,), id="shapes", error="ValueError"),
    Row("TensorScatterUpdate", [floats(4), at([3], [1]), floats(2, seed=1)]),
    Row("TensorScatterUpdate", [floats(3, 2), at([2]), floats(1, 2, seed=1)], id="rows"),
    Row("TensorScatterUpdate", [WORDS, at([1, 0]), np.array([b"new"], object)], id="strings"),
    Row("TensorScatterUpdate", [floats(4), at([4]), floats(1)], id="bad", error="InvalidArgumentError"),
    Row("TensorScatterAdd", [floats(4), at([3], [1], [3]), floats(3, seed=1)]),
    Row("TensorScatterAdd", [ints(3, 2), at([2, 1], dtype=np.int64), ints(1, seed=1)], id="int32"),
    Row("TensorScatterAdd", [floats(4), at([-1]), floats(1)], id="bad", error="InvalidArgumentError"),
]
