"""Rows of ops/shapes.py."""

import ml_dtypes
import numpy as np
from row import Row, floats, ints


def vec(*values, dtype=np.int32):
    return np.array(values, dtype).reshape(len(values))


WORDS = np.array([[b"a", b"bc"], [b"", b"d"]], object)

ROWS = [
    Row("Shape", [floats(2, 0, 3)]),
    Row("Shape", [ints(4)], {"out_type": "int64"}, id="int64"),
    Row("Shape", [WORDS], id="strings"),
    Row("ShapeN", [[floats(2, 3), floats(), floats(0)]]),
    Row("Size", [floats(2, 5)]),
    Row("Size", [floats()], {"out_type": "int64"}, id="int64"),
    Row("Rank", [floats(2, 5, 1)]),
    Row("Reshape", [floats(2, 6), vec(3, -1)], const=(1,)),
    Row("Reshape", [floats(2, 6), vec(4, 3)], id="fed"),
    Row("Reshape", [floats(0, 6), vec(2, -1)], const=(1,), id="empty"),
    Row("Reshape", [floats(0, 6), vec(5, -1)], id="empty_fed"),
    Row("Reshape", [floats(1), vec()], const=(1,), id="scalar"),
    Row("Reshape", [WORDS, vec(4, dtype=np.int64)], const=(1,), id="strings"),
    Row("Reshape", [floats(2, 3, dtype=ml_dtypes.bfloat16), vec(6)], const=(1,), id="bfloat16"),
    Row("Reshape", [floats(2, 6), vec(5, -1)], const=(1,), id="built_bad", error="ValueError"),
    Row("Reshape", [floats(2, 6), vec(5, -1)], id="run_bad", error="InvalidArgumentError"),
    Row("Reshape", [floats(2, 6), vec(5)], id="run_size", error="InvalidArgumentError"),
    Row("Reshape", [floats(2, 6), vec(-1, -1)], id="two", error="InvalidArgumentError"),
    Row("Reshape", [floats(2, 6), vec(-2, 6)], id="negative", error="InvalidArgumentError"),
    Row("Reshape", [floats(0, 6), vec(0, -1)], id="two_zeros"),
    Row("Reshape", [floats(4, 0, 3), vec(2, -1, 0)], id="zeros_apart"),
    Row("Reshape", [floats(2, 6), vec(0, -1)], id="zero_asked", error="InvalidArgumentError"),
    Row("ExpandDims", [floats(2, 3), np.int32(0)], const=(1,)),
    Row("ExpandDims", [floats(2, 3), np.int32(-1)], const=(1,), id="last"),
    Row("ExpandDims", [floats(2, 3), np.int32(-2)], id="fed"),
    Row("ExpandDims", [WORDS, np.int64(1)], const=(1,), id="strings"),
    Row("ExpandDims", [floats(2, 3), np.int32(4)], const=(1,), id="bad", error="ValueError"),
    Row("Squeeze", [floats(1, 3, 1)]),
    Row("Squeeze", [floats(1, 3, 1)], {"squeeze_dims": [-1]}, id="last"),
    Row("Squeeze", [floats(1, 3, 1)], {"squeeze_dims": [0, 2]}, id="both"),
    Row("Squeeze", [WORDS[:1]], {"squeeze_dims": [0]}, id="strings"),
    Row("Squeeze", [floats(1, 3)], {"squeeze_dims": [1]}, id="bad", error="ValueError"),
    Row("EnsureShape", [floats(2, 3)], {"shape": [2, None]}),
    Row("EnsureShape", [floats(2, 3)], {"shape": [3, None]}, id="bad", error="ValueError"),
    Row("BroadcastTo", [floats(3, 1), vec(2, 3, 4)], const=(1,)),
    Row("BroadcastTo", [floats(3), vec(2, 3, dtype=np.int64)], id="fed"),
    Row("BroadcastTo", [floats(), vec(2)], const=(1,), id="scalar"),
    Row("BroadcastTo", [floats(1, 3), vec(0, 3)], const=(1,), id="empty"),
    Row("BroadcastTo", [ints(2, 1), vec(2, 3)], const=(1,), id="int32"),
    Row("BroadcastTo", [floats(2), vec(3)], const=(1,), id="bad", error="ValueError"),
    Row("BroadcastTo", [floats(2), vec(3)], id="run_bad", error="InvalidArgumentError"),
    Row("BroadcastArgs", [vec(2, 1), vec(5, 1, 4)]),
    Row("BroadcastArgs", [vec(3), vec(4)], id="bad", error="InvalidArgumentError"),
]
