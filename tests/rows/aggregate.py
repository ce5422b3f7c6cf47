"""Rows of ops/aggregate.py."""

import numpy as np
from row import Row, floats, ints

ROWS = [
    Row("AddN", [[floats(2, 3), floats(2, 3, seed=1), floats(2, 3, seed=2)]]),
    Row("AddN", [[floats(2)]], id="one"),
    Row("AddN", [[ints(3), ints(3, seed=1)]], id="int32"),
    Row("AddN", [[np.float32(1), np.float32(2)]], id="scalar"),
    Row("AddN", [[floats(2), floats(3)]], id="bad", error="ValueError"),
    Row("AccumulateNV2", [[floats(2, 3), floats(2, 3, seed=1)]], {"shape": [2, 3]}),
]
