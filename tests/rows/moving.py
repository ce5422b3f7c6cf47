"""Rows of ops/moving.py."""

import numpy as np
from row import Row, floats, ints

I32 = np.int32
WORDS = np.array([[b"a", b"bc"], [b"", b"d"]], object)
COMPLEX = (floats(2, 3) + 1j * floats(2, 3, seed=1)).astype(np.complex64)


def vec(*values, dtype=I32):
    return np.array(values, dtype).reshape(len(values))


ROWS = [
    Row("Tile", [floats(2, 3), vec(2, 3)], const=(1,)),
    Row("Tile", [floats(2), vec(3, dtype=np.int64)], id="fed"),
    Row("Tile", [floats(2, 3), vec(0, 2)], const=(1,), id="none"),
    Row("Tile", [floats(), vec()], const=(1,), id="scalar"),
    Row("Tile", [WORDS, vec(1, 2)], const=(1,), id="strings"),
    Row("Tile", [floats(2), vec(-1)], id="bad", error="InvalidArgumentError"),
    Row("Tile", [floats(2), vec(1, 2)], const=(1,), id="rank", error="ValueError"),
    Row("Transpose", [floats(2, 3, 4), vec(2, 0, 1)], const=(1,)),
    Row("Transpose", [floats(2, 3), vec(1, 0, dtype=np.int64)], id="fed"),
    Row("Transpose", [floats(), vec()], const=(1,), id="scalar"),
    Row("Transpose", [WORDS, vec(1, 0)], const=(1,), id="strings"),
    Row("Transpose", [ints(2, 3), vec(-1, 0)], const=(1,), id="negative"),
    Row("Transpose", [floats(2, 3), vec(0, 0)], id="bad", error="InvalidArgumentError"),
    Row("ConjugateTranspose", [COMPLEX, vec(1, 0)], const=(1,), grad=()),
    Row("ConjugateTranspose", [floats(2, 3), vec(1, 0)], const=(1,), id="real"),
    Row("InvertPermutation", [vec(2, 0, 1)]),
    Row("InvertPermutation", [vec(3, 1, 0, 2, dtype=np.int64)], const=(0,), id="const"),
    Row("InvertPermutation", [vec(2, 0, 3)], id="bad", error="InvalidArgumentError"),
    Row("InvertPermutation", [vec(2, 2, 0)], id="twice", error="InvalidArgumentError"),
    Row("Reverse", [floats(2, 3), np.array([False, True])], const=(1,)),
    Row("Reverse", [ints(3), np.array([True])], id="fed"),
    Row("ReverseV2", [floats(2, 3), vec(0, -1)], const=(1,)),
    Row("ReverseV2", [floats(2, 3), vec(1)], id="fed"),
    Row("ReverseV2", [floats(2, 3), vec()], const=(1,), id="none"),
    Row("ReverseV2", [WORDS, vec(1)], const=(1,), id="strings"),
    Row("ReverseV2", [floats(2, 3), vec(2)], const=(1,), id="bad", error="ValueError"),
    Row("ReverseSequence", [floats(3, 4, 2), vec(2, 4, 0)], {"seq_dim": 1}),
    Row("ReverseSequence", [floats(4, 2, 3), vec(1, 2, 3, dtype=np.int64)], {"seq_dim": 0, "batch_dim": 2}, id="other"),
    Row("ReverseSequence", [WORDS, vec(2, 1)], {"seq_dim": 1}, id="strings"),
    Row("ReverseSequence", [floats(2, 3), vec(4, 1)], {"seq_dim": 1}, id="bad", error="InvalidArgumentError"),
]
