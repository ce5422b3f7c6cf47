"""Layers of one op or two: biases, losses of tensors, top_k, zero_fraction."""

from __future__ import annotations

from typing import Any

from thalweg.base import dtypes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import scope
from thalweg.library.array_ops import size
from thalweg.library.casting import cast
from thalweg.library.matrix_ops import matmul
from thalweg.library.reduction_ops import count_nonzero


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """value plus a vector along its channels: the last axis, or the second ("NCHW", "NC...")."""
    with scope(name, "BiasAdd") as named:
        if data_format is not None:
            if data_format.startswith("NC"):
                data_format = "NCHW"
            elif data_format.startswith("N") and data_format.endswith("C"):
                data_format = "NHWC"
            else:
                raise ValueError(f"data_format must be of the form `N...C` or `NC...`, got {data_format!r}")
        value = convert_to_tensor(value, name="input")
        bias = convert_to_tensor(bias, value.dtype.base_dtype, name="bias")
        return emit("BiasAdd", value, bias, data_format=data_format, name=named)


def bias_add_v1(value: Any, bias: Any, name: str | None = None) -> Tensor:
    """value plus a vector along its last axis, by an op of older graphs."""
    with scope(name, "BiasAddV1") as named:
        value = convert_to_tensor(value, name="input")
        bias = convert_to_tensor(bias, value.dtype.base_dtype, name="bias")
        return emit("BiasAddV1", value, bias, name=named)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """x weights + biases."""
    with scope(name, "xw_plus_b") as named:
        x, weights, biases = _layer(x, weights, biases)
        return bias_add(matmul(x, weights), biases, name=named)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """relu(x weights + biases)."""
    with scope(name, "relu_layer") as named:
        x, weights, biases = _layer(x, weights, biases)
        return emit("Relu", bias_add(matmul(x, weights), biases), name=named)


def _layer(x: Any, weights: Any, biases: Any) -> tuple[Tensor, Tensor, Tensor]:
    return (
        convert_to_tensor(x, name="x"),
        convert_to_tensor(weights, name="weights"),
        convert_to_tensor(biases, name="biases"),
    )


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half the sum of squares."""
    return emit("L2Loss", t, name=name)


def top_k(input: Any, k: Any = 1, sorted: bool = True, name: str | None = None) -> Any:
    """(values, indices) of the k greatest along the last axis; of equal ones, the first."""
    return emit("TopKV2", input, k, sorted=sorted, name=name)


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether the score of each row's target is among the k greatest of the row."""
    with scope(name, "in_top_k"):
        return emit("InTopKV2", predictions, targets, k)


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The share of zeros, as float32; NaN of an empty tensor."""
    with scope(name, "zero_fraction"):
        value = convert_to_tensor(value, name="value")
        total = size(value, out_type=dtypes.int64)
        nonzero = count_nonzero(value)
        with scope(None, "counts_to_fraction"):
            fraction = cast(total - nonzero, dtypes.float32) / cast(total, dtypes.float32)
        return emit("Identity", fraction, name="fraction")
