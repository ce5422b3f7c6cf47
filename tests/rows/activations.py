"""Rows of ops/activations.py and ops/bias.py."""

import ml_dtypes
import numpy as np
from row import Row, floats, ints

X = np.array([-90.0, -3.5, -1.0, -1e-3, 0.0, 1e-3, 0.5, 1.0, 6.0, 7.0, 90.0, np.inf, -np.inf], np.float32)
FINITE = X[:-2]
DY = floats(11, seed=1)

ROWS = []
for op in ("Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign"):
    ROWS += [
        Row(op, [FINITE]),
        Row(op, [floats(2, 3, dtype=np.float64)], id="double"),
        Row(op, [floats(5, dtype=np.float16)], id="half", rtol=1e-2, atol=2e-3),
        Row(op, [floats(5).astype(ml_dtypes.bfloat16)], id="bfloat16", rtol=2e-2, atol=1e-2),
        Row(op, [np.float32(-0.5)], id="scalar"),
        Row(op, [floats(0, 2)], id="empty"),
    ]
ROWS += [
    Row("Relu", [X], id="infinite", grad=()),
    Row("Softplus", [X], id="infinite", grad=()),
    Row("Elu", [X], id="infinite", grad=()),
    Row("Relu", [ints(2, 3)], id="int32"),
    Row("Relu", [ints(2, 3, low=0, dtype=np.uint8)], id="uint8"),
    Row("Relu6", [ints(2, 3, low=-9, high=9, dtype=np.int64)], id="int64"),
    Row("LeakyRelu", [FINITE], {"alpha": 0.1}, id="alpha"),
    Row("LeakyRelu", [floats(4, dtype=np.float64)], {"alpha": 0.1}, id="alpha_double"),
    Row("LeakyRelu", [FINITE], {"alpha": 1.5}, id="steep"),
    Row("LeakyRelu", [FINITE], {"alpha": -0.5}, id="bent"),
]
for op in ("ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SoftplusGrad"):
    ROWS += [
        Row(op, [DY, FINITE] if op not in ("EluGrad", "SeluGrad", "SoftplusGrad") else [DY, floats(11, seed=2)]),
        Row(op, [floats(2, 3, dtype=np.float64), floats(2, 3, seed=2, dtype=np.float64)], id="double"),
        Row(op, [floats(5, dtype=np.float16), floats(5, seed=2, dtype=np.float16)], id="half", rtol=1e-2, atol=5e-3),
        Row(op, [floats(2, 3), floats(2, 4)], id="shapes", error="ValueError"),
    ]
ROWS += [
    Row("SoftsignGrad", [DY, FINITE], grad=()),
    Row("SoftsignGrad", [floats(3, dtype=np.float16), floats(3, dtype=np.float16)], id="half", grad=(), rtol=1e-2),
    Row("LeakyReluGrad", [DY, FINITE], {"alpha": 0.1}, id="alpha"),
    Row("ReluGrad", [ints(4), ints(4, seed=1)], id="int32"),
    Row("BiasAdd", [floats(2, 3), floats(3, seed=1)]),
    Row("BiasAdd", [floats(2, 4, 5, 3), floats(3, seed=1)], id="images"),
    Row("BiasAdd", [floats(2, 3, 4, 5), floats(3, seed=1)], {"data_format": "NCHW"}, id="nchw"),
    Row("BiasAdd", [floats(2, 3, 4), floats(3, seed=1)], {"data_format": "NCHW"}, id="ncw"),
    Row("BiasAdd", [floats(2, 3, 2, 4, 5), floats(3, seed=1)], {"data_format": "NCHW"}, id="ncdhw"),
    Row("BiasAdd", [ints(2, 3), ints(3, seed=1)], id="int32"),
    Row("BiasAdd", [floats(2, 3, dtype=np.float16), floats(3, seed=1, dtype=np.float16)], id="half"),
    Row("BiasAdd", [floats(0, 3), floats(3, seed=1)], id="empty"),
    Row("BiasAdd", [floats(2, 3), floats(4)], id="size", error="ValueError"),
    Row("BiasAdd", [floats(3), floats(3)], id="vector", error="ValueError"),
    Row("BiasAdd", [floats(2, 3), floats(1, 3)], id="bias_rank", error="ValueError"),
    Row("BiasAddV1", [floats(2, 3, 4), floats(4, seed=1)]),
    Row("BiasAddGrad", [floats(2, 3)]),
    Row("BiasAddGrad", [floats(4, 2, 3, 5)], id="images"),
    Row("BiasAddGrad", [floats(2, 3, 4, 5)], {"data_format": "NCHW"}, id="nchw"),
    Row("BiasAddGrad", [floats(2, 3, dtype=np.float64)], id="double"),
    Row("BiasAddGrad", [floats(2, 3, dtype=np.float16)], id="half"),
    Row("BiasAddGrad", [ints(2, 3)], id="int32"),
    Row("BiasAddGrad", [floats(0, 3)], id="empty"),
    Row("BiasAddGrad", [floats(3)], id="vector", error="ValueError"),
]
