"""Rows of ops/conversion.py."""

import ml_dtypes
import numpy as np
from row import Row, floats, ints

BF16 = ml_dtypes.bfloat16
F = np.float32
X = np.array([-1.7, -0.5, 0.0, 0.5, 1.7, 100.2], F)
TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "float16", "bfloat16", "float32", "float64",
         "complex64", "complex128")  # fmt: skip

ROWS = [
    *(Row("Cast", [X], {"DstT": t}, id=f"float32 to {t}", rtol=1e-3 if "16" in t else 1e-5) for t in TYPES),
    *(Row("Cast", [np.array([-300, -1, 0, 1, 300], np.int32)], {"DstT": t}, id=f"int32 to {t}") for t in TYPES),
    *(Row("Cast", [np.array([True, False])], {"DstT": t}, id=f"bool to {t}") for t in TYPES),
    *(Row("Cast", [np.array([1 + 2j, 2j], np.complex64)], {"DstT": t}, id=f"complex64 to {t}", grad=())
      for t in ("float32", "int32", "bool", "complex128")),
    *(Row("Cast", [X.astype(BF16)], {"DstT": t}, id=f"bfloat16 to {t}") for t in ("float32", "int32", "float16")),
    *(Row("Cast", [X.astype(np.float16)], {"DstT": t}, id=f"half to {t}") for t in ("float32", "int32", "bfloat16")),
    Row("Cast", [np.array([1.5, 2.5], np.float64)], {"DstT": "float32"}, id="double to float32"),
    Row("Cast", [np.array([1.0078124, 3.99999, -3.99999], F)], {"DstT": "bfloat16", "Truncate": True}, id="truncate"),
    Row("Cast", [np.array([1 + 1e-12, 1 / 3], np.float64)], {"DstT": "float32", "Truncate": True}, id="truncate double"),
    Row("Cast", [np.array([256.5, 300, -1.5, 255], F)], {"DstT": "uint8"}, id="wraps"),
    Row("Cast", [np.float32(3.7)], {"DstT": "int32"}, id="scalar"),
    Row("Cast", [np.zeros((0, 2), F)], {"DstT": "int32"}, id="empty"),
    Row("Cast", [np.array([b"1"], object)], {"DstT": "float32"}, id="string", error="UnimplementedError"),
    Row("Bitcast", [floats(2, 3)], {"type": "int32"}),
    Row("Bitcast", [floats(2, 3)], {"type": "uint16"}, id="smaller"),
    Row("Bitcast", [floats(2, 3)], {"type": "uint8"}, id="bytes"),
    Row("Bitcast", [ints(2, 4, low=0, high=255, dtype=np.uint8)], {"type": "int32"}, id="larger"),
    Row("Bitcast", [np.array([1 + 2j], np.complex64)], {"type": "float32"}, id="complex parts", grad=()),
    Row("Bitcast", [np.array([1 + 2j], np.complex64)], {"type": "int64"}, id="complex to int64"),
    Row("Bitcast", [floats(3, 2)], {"type": "complex64"}, id="to complex", grad=()),
    Row("Bitcast", [ints(3, dtype=np.int64)], {"type": "complex64"}, id="int64 to complex"),
    Row("Bitcast", [floats(2, 3)], {"type": "float64"}, id="bad", error="ValueError"),
]  # fmt: skip
