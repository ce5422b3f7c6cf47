"""Rows of ops/diagonals.py."""

import numpy as np
from row import Row, floats, ints

I64 = np.int64

ROWS = [
    Row("Diag", [floats(3)]),
    Row("Diag", [ints(2, 2)], id="matrix"),
    Row("DiagPart", [floats(3, 3)]),
    Row("DiagPart", [ints(2, 2, 2, 2)], id="rank4"),
    Row("DiagPart", [floats(2, 3)], id="bad", error="ValueError"),
    Row("MatrixDiag", [floats(2, 3)]),
    Row("MatrixDiag", [ints(3)], id="int32"),
    Row("MatrixDiagPart", [floats(2, 3, 3)]),
    Row("MatrixDiagPart", [floats(2, 4)], id="wide"),
    Row("MatrixDiagPart", [floats(4, 2)], id="tall"),
    Row("MatrixDiagPart", [ints(0, 2)], id="empty"),
    Row("MatrixSetDiag", [floats(2, 3, 3), floats(2, 3, seed=1)]),
    Row("MatrixSetDiag", [floats(2, 4), floats(2, seed=1)], id="wide"),
    Row("MatrixSetDiag", [ints(4, 2), ints(2, seed=1)], id="tall"),
    Row("MatrixSetDiag", [floats(3, 3), floats(2)], id="bad", error="ValueError"),
    Row("MatrixBandPart", [floats(2, 3, 4), I64(1), I64(-1)], const=(1, 2)),
    Row("MatrixBandPart", [floats(4, 3), np.int32(0), np.int32(1)], id="fed"),
    Row("MatrixBandPart", [ints(3, 3), I64(-1), I64(0)], const=(1, 2), id="lower"),
    Row("MatrixBandPart", [floats(3, 3), I64(5), I64(0)], id="bad", error="InvalidArgumentError"),
]
