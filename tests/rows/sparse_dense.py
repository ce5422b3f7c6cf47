"""Rows of ops/sparse_dense.py."""

import numpy as np
from row import Row, floats

I32, I64, F32 = np.int32, np.int64, np.float32
CELLS = np.array([[0, 1], [1, 0], [1, 2]], I64)
SHAPE = np.array([2, 3], I64)

ROWS = [
    Row("SparseToDense", [CELLS, SHAPE, floats(3), F32(-1)], const=(1,)),
    Row("SparseToDense", [np.array([1, 3], I32), np.array([5], I32), I32(4), I32(0)], id="vector"),
    Row("SparseToDense", [I32(2), np.array([4], I32), F32(1), F32(0)], id="scalar", grad=()),
    Row("SparseToDense", [CELLS, SHAPE, np.array([b"x", b"y", b"z"], object), np.array(b"", object)], id="strings"),
    Row("SparseToDense", [CELLS[::-1].copy(), SHAPE, floats(3), F32(0)], {"validate_indices": False}, id="loose"),
    Row("SparseToDense", [CELLS[::-1].copy(), SHAPE, floats(3), F32(0)], id="order", error="InvalidArgumentError"),
    Row("SparseToDense", [CELLS[[0, 0]], SHAPE, floats(2), F32(0)], id="twice", error="InvalidArgumentError"),
    Row("SparseToDense", [CELLS, SHAPE - 1, floats(3), F32(0)], id="bad", error="InvalidArgumentError"),
    Row("SparseTensorDenseMatMul", [CELLS, floats(3), SHAPE, floats(3, 4)], const=(2,)),
    Row("SparseTensorDenseMatMul", [CELLS, floats(3), SHAPE, floats(2, 4)], {"adjoint_a": True}, const=(2,), id="a"),
    Row("SparseTensorDenseMatMul", [CELLS, floats(3), SHAPE, floats(4, 3)], {"adjoint_b": True}, const=(2,), id="b"),
    Row("SparseTensorDenseMatMul", [CELLS, floats(3), SHAPE, floats(4, 2)], {"adjoint_a": True, "adjoint_b": True},
        id="both"),
    Row("SparseTensorDenseMatMul", [CELLS.astype(I32)[:0], floats(0), SHAPE, floats(3, 2)], const=(2,), id="empty"),
    Row("SparseTensorDenseMatMul", [CELLS, floats(3), SHAPE, floats(4, 2)], const=(2,), id="inner", error="ValueError"),
    Row("SparseTensorDenseMatMul", [CELLS + 1, floats(3), SHAPE, floats(3, 2)], const=(2,), id="bad",
        error="InvalidArgumentError"),
]
