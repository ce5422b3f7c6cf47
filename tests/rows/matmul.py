"""Rows of ops/matmul.py."""

from row import Row, floats, ints

ROWS = [
    Row("MatMul", [floats(2, 3), floats(3, 4, seed=1)]),
    Row("MatMul", [floats(3, 2), floats(4, 3, seed=1)], {"transpose_a": True, "transpose_b": True}, id="both"),
    Row("MatMul", [floats(3, 2), floats(3, 4, seed=1)], {"transpose_a": True}, id="a"),
    Row("MatMul", [floats(2, 3), floats(4, 3, seed=1)], {"transpose_b": True}, id="b"),
    Row("MatMul", [ints(2, 3), ints(3, 2)], id="int32"),
    Row("MatMul", [floats(0, 3), floats(3, 2)], id="empty"),
    Row("MatMul", [floats(2, 3), floats(4, 2)], id="bad", error="ValueError"),
]
