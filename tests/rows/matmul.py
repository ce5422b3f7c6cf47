"""Rows of ops/matmul.py."""

import ml_dtypes
import numpy as np
from row import Row, floats, ints

ADJOINTS = [(x, y) for x in (False, True) for y in (False, True)]


def _complex(*shape, seed=0):
    return (floats(*shape, seed=seed) + 1j * floats(*shape, seed=seed + 1)).astype(np.complex64)


def _factors(make, x, y):
    """Matrices for a product of [2, 3] and [3, 4], each transposed where asked."""
    a, b = make(5, 2, 3), make(5, 3, 4, seed=3)
    return [a.swapaxes(1, 2) if x else a, b.swapaxes(1, 2) if y else b]


ROWS = [
    Row("MatMul", [floats(2, 3), floats(3, 4, seed=1)]),
    Row("MatMul", [floats(3, 2), floats(4, 3, seed=1)], {"transpose_a": True, "transpose_b": True}, id="both"),
    Row("MatMul", [floats(3, 2), floats(3, 4, seed=1)], {"transpose_a": True}, id="a"),
    Row("MatMul", [floats(2, 3), floats(4, 3, seed=1)], {"transpose_b": True}, id="b"),
    Row("MatMul", [ints(2, 3), ints(3, 2)], id="int32"),
    Row("MatMul", [ints(2, 3, dtype=np.int64), ints(3, 2, dtype=np.int64)], id="int64"),
    Row("MatMul", [_complex(2, 3), _complex(3, 4, seed=3)], id="complex"),
    Row("MatMul", [floats(2, 3, dtype=np.float64), floats(3, 4, dtype=np.float64)], id="double", rtol=1e-12),
    *(
        Row("MatMul", [floats(2, 30, dtype=t), floats(30, 3, dtype=t, seed=1)], id=t.__name__, rtol=1e-2, atol=3e-2)
        for t in (np.float16, ml_dtypes.bfloat16)
    ),
    Row("MatMul", [floats(0, 3), floats(3, 2)], id="empty"),
    Row("MatMul", [floats(2, 0), floats(0, 2)], id="nothing inside"),
    Row("MatMul", [floats(2, 3), floats(4, 2)], id="bad", error="ValueError"),
    *(
        Row(op, _factors(make, x, y), {"adj_x": x, "adj_y": y}, id=f"{x} {y} {kind}")
        for op in ("BatchMatMul", "BatchMatMulV2")
        for x, y in ADJOINTS
        for kind, make in (("real", floats), ("complex", _complex))
    ),
    Row("BatchMatMulV2", [floats(2, 3), floats(3, 4, seed=1)], id="matrices"),
    Row("BatchMatMulV2", [floats(5, 1, 2, 3), floats(4, 3, 2, seed=1)], id="broadcast"),
    Row("BatchMatMulV2", [floats(2, 3), floats(4, 3, 2, seed=1)], id="one and many"),
    Row("BatchMatMulV2", [ints(2, 2, 3), ints(2, 3, 2)], id="int32"),
    Row("BatchMatMulV2", [floats(0, 2, 3), floats(0, 3, 2)], id="empty"),
    Row("BatchMatMulV2", [floats(2, 2, 3), floats(2, 4, 2)], id="bad", error="ValueError"),
    Row("BatchMatMulV2", [floats(2, 2, 3), floats(3, 3, 2)], id="bad batch", error="ValueError"),
    Row("BatchMatMul", [floats(2, 2, 3), floats(1, 3, 2)], id="bad batch", error="ValueError"),
]
