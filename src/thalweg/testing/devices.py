"""A device type of our own: what a program that adds one writes, and what tests of mixed devices run on.

Importing this module registers the type TOY. A session has such devices where its config asks for them:

    config = tf.ConfigProto(device_count={"TOY": 2})
    with tf.device("/device:TOY:1"): ...

TOY is a modelled accelerator: for the placer it multiplies matrices twenty times as fast as a CPU and holds
16 MiB; what really computes is a virtual CPU device of its own. It has kernels for a few ops of float32
only. Its Relu runs on the host, so that both kinds of kernels of a device are met.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from jax import lax

from thalweg.base import dtypes
from thalweg.graph.registry import register_kernel
from thalweg.kernel.convention import Kernel, host, traceable
from thalweg.runtime.device import DeviceType, register_device_type

TOY = DeviceType("TOY", flops=1e12, bandwidth=1e11, overhead=2e-6, memory=16 << 20)

#: how often TOY's kernels were called, by op: a compiled one when it is traced, one on the host when it runs
calls: Counter[str] = Counter()


def _binary(op: str, function: Any) -> Kernel:
    def fn(x: Any, y: Any) -> Any:
        calls[op] += 1
        shape = np.broadcast_shapes(x.shape, y.shape)
        last = len(shape)
        return function(*(lax.broadcast_in_dim(v, shape, range(last - v.ndim, last)) for v in (x, y)))

    return traceable(fn)


def _matmul(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    calls["MatMul"] += 1
    contracted = ((0 if transpose_a else 1,), (1 if transpose_b else 0,))
    return lax.dot_general(a, b, (contracted, ((), ())))


def _identity(x: Any) -> Any:
    calls["Identity"] += 1
    return x


def _relu(features: np.ndarray) -> np.ndarray:
    calls["Relu"] += 1
    return np.maximum(features, np.float32(0))


def _register() -> None:
    register_device_type(TOY)
    kernels = {
        "MatMul": traceable(_matmul),
        "Add": _binary("Add", lax.add),
        "AddV2": _binary("AddV2", lax.add),
        "Mul": _binary("Mul", lax.mul),
        "Sub": _binary("Sub", lax.sub),
        "Identity": traceable(_identity),
        "Relu": host(_relu),
    }
    for op, kernel in kernels.items():
        register_kernel(op, TOY.name, kernel, [dtypes.float32])


_register()
