"""Ops that hand their inputs on. Source: TensorFlow's array_ops.cc, array_grad.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.base.shape import Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import (
    ShapeContext,
    constant_value_as_shape,
    shape_value_of_scalar,
)
from thalweg.kernel import checks
from thalweg.kernel.convention import traceable
from thalweg.ops._arrays import is_host
from thalweg.ops._types import FLOATS


def _same_shape(c: ShapeContext) -> list[Shape]:
    for i, tensor in enumerate(c.op._inputs):
        if tensor._handle is not None:
            c.handles[i] = tensor._handle
    return c.shapes()


def _same_value(op: Operation) -> Shape:
    x = op._inputs[0]
    return (shape_value_of_scalar(x),) if x._shape == () else constant_value_as_shape(x)


define_op(
    "Identity",
    inputs="input: T",
    outputs="output: T",
    attrs="T: type",
    shape=_same_shape,
    kernel=traceable(lambda x: x, host=lambda x: x),
    gradient=lambda emit, op, dy: [dy],
    shape_value=_same_value,
    doc="Its input.",
)

define_op(
    "RefIdentity",
    inputs="input: Ref(T)",
    outputs="output: Ref(T)",
    attrs="T: type",
    shape=_same_shape,
    kernel=traceable(lambda x: x),
    allows_uninitialized_input=True,
    gradient=lambda emit, op, dy: [dy],
    doc="Its input, a reference.",
)

define_op(
    "IdentityN",
    inputs="input: T",
    outputs="output: T",
    attrs="T: list(type) >= 1",
    shape=_same_shape,
    kernel=traceable(lambda values: values, host=lambda values: values),
    gradient=lambda emit, op, *dys: list(dys),
    doc="Its inputs.",
)

define_op(
    "StopGradient",
    inputs="input: T",
    outputs="output: T",
    attrs="T: type",
    shape=_same_shape,
    kernel=traceable(lambda x: x, host=lambda x: x),
    gradient=NotDifferentiable("it is there to stop gradients"),
    shape_value=_same_value,
    doc="Its input, a constant to gradients.",
)


def _prevent_gradient(emit: Emitter, op: Operation, dy: Tensor) -> Sequence[Tensor]:
    raise LookupError(f"Gradient explicitly disabled. Reason: {op._attrs['message'].decode()}")


define_op(
    "PreventGradient",
    inputs="input: T",
    outputs="output: T",
    attrs="T: type, message: string = ''",
    shape=_same_shape,
    kernel=traceable(lambda x: x, host=lambda x: x),
    gradient=_prevent_gradient,
    doc="Its input; asking for a gradient through it is a LookupError that says `message`.",
)

define_op(
    "Snapshot",
    inputs="input: T",
    outputs="output: T",
    attrs="T: type",
    shape=_same_shape,
    kernel=traceable(lambda x: x, host=lambda x: x),
    gradient=lambda emit, op, dy: [dy],
    doc="Its input, as it is now.",
)


def _check_numerics_kernel(x: Any, *, message: str) -> Any:
    nan: Any
    inf: Any
    ok: Any
    if is_host(x):
        nan, inf = np.isnan(x).any(), np.isinf(x).any()
        ok = np.bool_(not nan and not inf)
    else:
        nan = jnp.any(lax.ne(x, x))
        ok = jnp.all(lax.is_finite(x))
        inf = jnp.logical_not(jnp.all(lax.bitwise_or(lax.is_finite(x), lax.ne(x, x))))
    checks.require(ok, lambda n, i: f"{message} : Tensor had {_bad_kinds(n, i)} values", nan, inf)
    return x


def _bad_kinds(nan: np.ndarray, inf: np.ndarray) -> str:
    return "Inf and NaN" if nan and inf else "NaN" if nan else "Inf"


def _check_numerics_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Tensor]:
    text = (
        "Not a number (NaN) or infinity (Inf) values detected in gradient. "
        f"{op._attrs['message'].decode()}"
    )
    return [emit("CheckNumerics", dy, message=text)]


define_op(
    "CheckNumerics",
    inputs="tensor: T",
    outputs="output: T",
    attrs=f"T: {FLOATS}, message: string",
    shape=_same_shape,
    kernel=traceable(_check_numerics_kernel, host=_check_numerics_kernel, may_fail=True),
    gradient=_check_numerics_gradient,
    stateful=True,
    doc="Its input, which must hold no NaN and no infinity.",
)
