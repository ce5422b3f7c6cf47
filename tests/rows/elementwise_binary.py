"""Rows of ops/elementwise_binary.py."""

import ml_dtypes
import numpy as np
from row import Row, floats, ints

NAN, INF = np.nan, np.inf
BF16 = ml_dtypes.bfloat16
F, D = np.float32, np.float64
SMOOTH = ("AddV2", "Add", "Sub", "Mul", "MulNoNan", "Div", "RealDiv", "DivNoNan", "Maximum", "Minimum",
          "SquaredDifference", "FloorMod")  # fmt: skip
WHOLE = ("AddV2", "Add", "Sub", "Mul", "Div", "FloorDiv", "TruncateDiv", "FloorMod", "Mod", "TruncateMod",
         "Maximum", "Minimum")  # fmt: skip
SIGNS = [np.array([7, -7, 7, -7, 6], np.int32), np.array([2, 2, -2, -2, 3], np.int32)]
REAL_SIGNS = [np.array([7.5, -7.5, 7.5, -7.5, 6, 5.5, -5.5], F), np.array([2, 2, -2, -2, 3, -INF, INF], F)]
ZERO = np.array([1, 2, 0], np.int32)


def _complex(*shape, seed=0):
    return (floats(*shape, seed=seed) + 1j * floats(*shape, seed=seed + 1)).astype(np.complex64)


ROWS = [
    *(Row(op, [floats(2, 3), floats(2, 3, seed=1)]) for op in SMOOTH),
    *(Row(op, [floats(2, 1, 3), floats(4, 1, seed=1)], id="broadcast") for op in SMOOTH),
    *(Row(op, [floats(2, 3), np.float32(0.7)], id="scalar") for op in SMOOTH),
    *(Row(op, [np.float32(0.7), floats(3, seed=1)], id="left") for op in SMOOTH),
    *(Row(op, [floats(3), floats(1, 3, seed=1)], id="rank", rtol=1e-4) for op in ("AddV2", "Mul")),
    *(Row(op, [floats(3, dtype=D), floats(3, dtype=D, seed=1)], id="double", rtol=1e-12) for op in SMOOTH),
    *(
        Row(op, [floats(3, dtype=np.float16), floats(3, dtype=np.float16, seed=1)], id="half", rtol=1e-2, atol=1e-2)
        for op in SMOOTH
    ),
    *(
        Row(op, [floats(3, dtype=BF16), floats(3, dtype=BF16, seed=1)], id="bfloat16", rtol=2e-2, atol=2e-2, grad=())
        for op in SMOOTH
    ),
    *(
        Row(op, [_complex(3), _complex(3, seed=5)], id="complex")
        for op in ("AddV2", "Sub", "Mul", "RealDiv", "Div", "DivNoNan", "SquaredDifference", "MulNoNan")
    ),
    *(Row(op, SIGNS, id="int32") for op in WHOLE),
    *(Row(op, [s.astype(np.int64) for s in SIGNS], id="int64") for op in WHOLE),
    *(Row(op, [SIGNS[0], SIGNS[1]], id="known", const=(1,)) for op in ("FloorDiv", "FloorMod", "Div")),
    *(
        Row(op, [np.array([7, 250, 9], np.uint8), np.array([2, 9, 4], np.uint8)], id="uint8")
        for op in ("AddV2", "Sub", "Mul", "FloorDiv", "FloorMod", "Maximum")
    ),
    *(Row(op, [ints(0, 3), ints(3)], id="empty") for op in ("AddV2", "Mul")),
    *(Row(op, REAL_SIGNS, id="signs", grad=()) for op in ("FloorDiv", "FloorMod", "Mod", "TruncateMod")),
    *(
        Row(op, [ZERO, ZERO], id="zero", error="InvalidArgumentError")
        for op in ("Div", "FloorDiv", "TruncateDiv", "FloorMod", "Mod", "TruncateMod")
    ),
    Row("FloorDiv", [np.array([1, -1, 0], F), np.zeros(3, F)], id="real zero"),
    Row("Add", [np.array([b"a", b""], object), np.array(b"x", object)], id="string"),
    Row("AddV2", [floats(2), floats(3)], id="bad", error="ValueError"),
    Row("AddV2", [floats(2, 2), floats(3)], id="bad rank", error="ValueError"),
    *(
        Row(op, [np.array([NAN, 1, NAN, INF], F), np.array([1, NAN, NAN, -INF], F)], id="nan", grad=())
        for op in ("Maximum", "Minimum")
    ),
    *(Row(op, [np.array([1, 2, 3], F), np.array([1, 3, 2], F)], id="ties") for op in ("Maximum", "Minimum")),
    Row("MulNoNan", [np.array([NAN, INF, 2], F), np.array([0, 0, 3], F)], id="nan", grad=()),
    Row("DivNoNan", [np.array([NAN, 1, 2], F), np.array([0, 0, 4], F)], id="nan", grad=()),
    Row("Pow", [floats(2, 3, low=0.2, high=3), floats(2, 3, seed=1)]),
    Row("Pow", [floats(2, 3, low=0.2, high=3), np.float32(2)], id="scalar"),
    Row("Pow", [np.array([-2, -2, 0, 0, 2], F), np.array([2, 0.5, 0, 2, -1], F)], id="edges", grad=()),
    Row("Pow", [np.array([-2, 0, 3], F), np.array([2, 2, 2], F)], id="not positive"),
    Row("Pow", [floats(3, low=0.2, high=3, dtype=D), floats(3, dtype=D)], id="double", rtol=1e-10),
    Row("Pow", [_complex(3), _complex(3, seed=5)], id="complex", rtol=1e-4, atol=1e-4),
    Row("Pow", [np.array([2, 0, -3, 7], np.int32), np.array([31, 0, 3, 20], np.int32)], id="int32"),
    Row("Pow", [np.array([2, 0, -3], np.int64), np.array([40, 0, 3], np.int64)], id="int64", const=(1,)),
    Row("Pow", [np.array([2], np.int32), np.array([-1], np.int32)], id="negative", error="InvalidArgumentError"),
    Row("SquaredDifference", [ints(4), ints(4, seed=1)], id="int32"),
    Row("Atan2", [floats(2, 3), floats(2, 3, seed=1)]),
    Row("Atan2", [floats(2, 1), floats(3, seed=1)], id="broadcast"),
    Row("Atan2", [np.array([0, 0, 1, -1], F), np.array([-1, 1, 0, 0], F)], id="axes"),
    *(Row(op, [floats(2, 3), floats(2, 3, low=0.2, high=3, seed=1)]) for op in ("Xdivy", "Xlogy", "Xlog1py")),
    *(
        Row(op, [np.array([0, 0, 1, 2], F), np.array([0, NAN, 0, 3], F)], id="zero", grad=())
        for op in ("Xdivy", "Xlogy", "Xlog1py")
    ),
    *(Row(op, [floats(2, 1), floats(3, low=0.2, high=3, seed=1)], id="broadcast") for op in ("Xdivy", "Xlogy")),
    Row("Polygamma", [np.array([1, 2, 3], F), floats(3, low=0.5, high=4)], rtol=1e-4),
    Row("Zeta", [floats(3, low=1.5, high=4), floats(3, low=0.5, high=4, seed=1)], grad=(), rtol=1e-4),
    *(Row(op, [ints(6), ints(6, seed=1)]) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    *(
        Row(op, [np.array([7, 200], np.uint8), np.uint8(85)], id="uint8")
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
    ),
    Row("LeftShift", [np.array([1, 1, -3, 1], np.int32), np.array([3, 31, 2, 0], np.int32)]),
    Row("RightShift", [np.array([-8, 8, -8, 1], np.int32), np.array([1, 2, 31, 0], np.int32)]),
    Row("RightShift", [np.array([200, 8], np.uint8), np.array([1, 7], np.uint8)], id="uint8"),
    Row("LeftShift", [np.array([1, 1], np.int32), np.array([40, -1], np.int32)], id="clamped"),
    Row("RightShift", [np.array([8, -8], np.int32), np.array([40, -1], np.int32)], id="clamped"),
]
