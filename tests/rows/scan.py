"""Rows of ops/scan.py. TensorFlow's gradient of Cumprod is wrong at zeros: tests/ops/test_scan.py has those."""

import numpy as np
from row import Row, floats, ints

X = floats(3, 4, low=0.5, high=2)
MODES = [{"exclusive": e, "reverse": r} for e in (False, True) for r in (False, True)]

ROWS = [
    *(Row(op, [X, np.int32(1)], m, id=f"{m['exclusive']} {m['reverse']}", const=(1,), rtol=1e-4)
      for op in ("Cumsum", "Cumprod") for m in MODES),
    *(Row(op, [X, np.int32(-2)], id="negative axis", const=(1,), rtol=1e-4) for op in ("Cumsum", "Cumprod")),
    *(Row(op, [X, np.int64(0)], id="int64 axis", const=(1,), rtol=1e-4) for op in ("Cumsum", "Cumprod")),
    *(Row(op, [ints(5), np.int32(0)], {"exclusive": True}, id="int32") for op in ("Cumsum", "Cumprod")),
    *(Row(op, [np.zeros((0, 2), np.float32), np.int32(0)], {"exclusive": True}, id="empty", grad=())
      for op in ("Cumsum", "Cumprod")),
    *(Row(op, [X, np.int32(3)], id="bad", error="InvalidArgumentError") for op in ("Cumsum", "Cumprod")),
]  # fmt: skip
