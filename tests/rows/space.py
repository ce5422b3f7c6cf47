"""Rows of ops/space.py."""

import numpy as np
from row import Row, floats, ints

I32 = np.int32

ROWS = [
    Row("SpaceToDepth", [floats(2, 4, 6, 3)], {"block_size": 2}),
    Row("SpaceToDepth", [ints(1, 3, 3, 1)], {"block_size": 3}, id="int32"),
    Row("SpaceToDepth", [floats(1, 3, 4, 1)], {"block_size": 2}, id="bad", error="ValueError"),
    Row("DepthToSpace", [floats(2, 2, 3, 8)], {"block_size": 2}),
    Row("DepthToSpace", [floats(1, 2, 2, 3)], {"block_size": 2}, id="bad", error="ValueError"),
    Row("SpaceToBatchND", [floats(2, 4, 3, 2), np.array([2, 2], I32), np.array([[0, 0], [1, 0]], I32)], const=(1, 2)),
    Row("SpaceToBatchND", [floats(1, 4), np.array([2], I32), np.array([[1, 1]], I32)], id="fed"),
    Row("SpaceToBatchND", [ints(1, 3), np.array([2], I32), np.array([[0, 0]], I32)], const=(1, 2), id="bad",
        error="ValueError"),
    Row("BatchToSpaceND", [floats(8, 2, 2, 2), np.array([2, 2], I32), np.array([[0, 0], [1, 0]], I32)], const=(1, 2)),
    Row("BatchToSpaceND", [floats(2, 3), np.array([2], I32), np.array([[1, 1]], I32)], id="fed"),
    Row("BatchToSpaceND", [floats(3, 2), np.array([2], I32), np.array([[0, 0]], I32)], const=(1, 2), id="bad",
        error="ValueError"),
]
