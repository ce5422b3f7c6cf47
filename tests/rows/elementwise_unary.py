"""Rows of ops/elementwise_unary.py."""

import ml_dtypes
import numpy as np
from row import Row, floats, ints

NAN, INF = np.nan, np.inf
BF16 = ml_dtypes.bfloat16
#: op, where it is defined
SMOOTH = {
    "Square": (-2, 2), "Sqrt": (0.1, 4), "Rsqrt": (0.1, 4), "Reciprocal": (0.3, 3), "Inv": (0.3, 3),
    "Exp": (-3, 3), "Expm1": (-2, 2), "Log": (0.1, 5), "Log1p": (-0.8, 5), "Sin": (-4, 4), "Cos": (-4, 4),
    "Tan": (-1.3, 1.3), "Asin": (-0.9, 0.9), "Acos": (-0.9, 0.9), "Atan": (-3, 3), "Sinh": (-3, 3),
    "Cosh": (-3, 3), "Tanh": (-3, 3), "Asinh": (-3, 3), "Acosh": (1.2, 4), "Atanh": (-0.9, 0.9),
    "Sigmoid": (-5, 5), "Neg": (-2, 2),
}  # fmt: skip
REAL = {"Erf": (-2, 2), "Erfc": (-2, 2), "Erfinv": (-0.9, 0.9), "Lgamma": (0.2, 6), "Digamma": (0.5, 6), "Abs": (-2, 2)}
STEPS = ("Floor", "Ceil", "Round", "Rint", "Sign")
HALVES = np.array([-2.5, -1.5, -0.5, -0.2, 0.0, 0.5, 1.5, 2.5, 2.6], np.float32)
ODD = np.array([NAN, INF, -INF, 0.0], np.float32)


def _complex(*shape, seed=0):
    return (floats(*shape, seed=seed) + 1j * floats(*shape, seed=seed + 1)).astype(np.complex64)


ROWS = [
    *(Row(op, [floats(2, 3, low=a, high=b)]) for op, (a, b) in {**SMOOTH, **REAL}.items()),
    *(
        Row(op, [floats(5, low=a, high=b, dtype=np.float64, seed=3)], id="double", rtol=1e-9, atol=1e-12)
        for op, (a, b) in {**SMOOTH, **REAL}.items()
    ),
    *(
        Row(op, [floats(4, low=a, high=b, dtype=np.float16)], id="half", grad=(), rtol=2e-2, atol=2e-2)
        for op, (a, b) in {**SMOOTH, **REAL}.items()
        if op != "Erfinv"
    ),
    *(
        Row(op, [floats(4, low=a, high=b, dtype=BF16)], id="bfloat16", grad=(), rtol=3e-2, atol=3e-2)
        for op, (a, b) in {**SMOOTH, **REAL}.items()
        if op not in ("Erfinv", "Lgamma", "Digamma")
    ),
    *(Row(op, [_complex(4)], id="complex", rtol=1e-4, atol=1e-5) for op in SMOOTH if op not in ("Rsqrt",)),
    *(Row(op, [HALVES]) for op in STEPS),
    *(Row(op, [ODD], id="odd", grad=()) for op in (*STEPS, "Abs", "Exp", "Tanh", "Sigmoid", "Sqrt", "Log", "Neg")),
    *(Row(op, [ints(6)], id="int32") for op in ("Neg", "Abs", "Sign", "Square")),
    *(Row(op, [ints(6, dtype=np.int64)], id="int64") for op in ("Neg", "Abs", "Sign", "Square")),
    Row("Exp", [np.float32(1.5)], id="scalar"),
    Row("Exp", [np.zeros((0, 3), np.float32)], id="empty"),
    Row("Exp", [np.array([88.0, 89.0, -104.0, 0.0], np.float32)], id="range", grad=()),
    Row("Log", [np.array([0.0, -1.0, 1e-30, 3e38], np.float32)], id="edges", grad=()),
    Row("Sqrt", [np.array([0.0, -1.0, 1e-30], np.float32)], id="edges", grad=()),
    Row("Rsqrt", [np.array([0.0, -1.0, 4.0], np.float32)], id="edges", grad=()),
    Row("Reciprocal", [np.array([0.0, -4.0, INF], np.float32)], id="edges", grad=()),
    Row("Expm1", [np.array([1e-6, -1e-6], np.float32)], id="small"),
    Row("Log1p", [np.array([1e-6, -1e-6], np.float32)], id="small"),
    Row("Sigmoid", [np.array([-100.0, 100.0, 0.0], np.float32)], id="far", atol=1e-30),
    Row("Tanh", [np.array([-30.0, 30.0, 1e-4], np.float32)], id="far"),
    Row("Lgamma", [np.array([0.0, -1.0, -0.5, -2.7, 100.0], np.float32)], id="edges", grad=()),
    Row("Digamma", [np.array([0.0, -1.0, -0.5, 100.0], np.float32)], id="edges", grad=()),
    Row("Erfinv", [np.array([-1.0, 1.0, 0.0], np.float32)], id="edges", grad=()),
    Row("IsNan", [ODD]),
    Row("IsInf", [ODD]),
    Row("IsFinite", [ODD]),
    Row("IsNan", [ODD.astype(np.float16)], id="half"),
    Row("IsInf", [ODD.astype(BF16)], id="bfloat16"),
    Row("LogicalNot", [np.array([True, False])]),
    Row("Invert", [ints(5)]),
    Row("Invert", [np.array([0, 1, 255], np.uint8)], id="uint8"),
    *(
        Row(op, [floats(2, 3, low=0.2, high=0.9), floats(2, 3, seed=1)])
        for op in ("SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad")
    ),
    Row("InvGrad", [floats(2, 3, low=0.2, high=0.9), floats(2, 3, seed=1)]),
    *(
        Row(op, [_complex(3), _complex(3, seed=5)], id="complex", rtol=1e-4, atol=1e-5, grad=())
        for op in ("SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad")
    ),
]
