"""Rows of ops/complex_parts.py."""

import numpy as np
from row import Row, floats

Z = (floats(2, 3) + 1j * floats(2, 3, seed=1)).astype(np.complex64)
Z128 = Z.astype(np.complex128)

ROWS = [
    *(Row(op, [Z]) for op in ("Real", "Imag", "Angle", "ComplexAbs")),
    *(Row(op, [Z128], {"Tout": "float64"}, id="double") for op in ("Real", "Imag", "Angle", "ComplexAbs")),
    Row("ComplexAbs", [np.array([0, 3 + 4j], np.complex64)], id="zero"),
    Row("Conj", [Z]),
    Row("Complex", [floats(2, 3), floats(2, 3, seed=1)]),
    Row("Complex", [floats(2, 3), floats(3, seed=1)], id="broadcast"),
    Row("Complex", [floats(2, dtype=np.float64), floats(2, dtype=np.float64)], {"Tout": "complex128"}, id="double"),
]
