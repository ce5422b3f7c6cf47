"""Complex numbers and their parts. Source: TensorFlow's math_ops.cc and math_grad.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import GradientFn, OpRecord, define_op
from thalweg.kernel.convention import traceable
from thalweg.ops._broadcast import broadcast_shape, broadcasting, on_host, same_shape
from thalweg.ops._gradient_nodes import mul, neg, reduce_to_inputs, zeros_like


def _define_part(
    name: str,
    input_name: str,
    output_name: str,
    fn: Callable[[Any], Any],
    host: Callable[[Any], Any],
    gradient: GradientFn,
    doc: str,
) -> OpRecord:
    return define_op(
        name,
        inputs=f"{input_name}: T",
        outputs=f"{output_name}: Tout",
        attrs="T: {complex64, complex128} = complex64, Tout: {float, double} = float",
        shape=same_shape,
        kernel=traceable(fn, host=on_host(host)),
        gradient=gradient,
        doc=doc,
    )


def _complex(emit: Emitter, real: Tensor, imag: Tensor) -> Tensor:
    """As tf.complex: the output type follows from the parts."""
    kind = "complex128" if real._dtype.size == 8 else "complex64"
    return emit("Complex", real, imag, Tout=kind)


def _part(emit: Emitter, name: str, x: Tensor) -> Tensor:
    return emit(name, x, Tout="float64" if x._dtype.size == 16 else "float32")


def _real_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [_complex(emit, dy, emit.constant(0, dy._dtype.base_dtype))]


def _imag_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    return [_complex(emit, emit.constant(0, dy._dtype.base_dtype), dy)]


def _angle_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    """-dy / (Im(x) + i Re(x))."""
    x = op._inputs[0]
    real, imag = _part(emit, "Real", x), _part(emit, "Imag", x)
    z = emit("Reciprocal", _complex(emit, imag, real))
    grad = _complex(emit, dy, emit.constant(0, dy._dtype.base_dtype))
    return [mul(emit, neg(emit, grad), z)]


def _abs_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    y = op._outputs[0]
    direction = mul(emit, _complex(emit, dy, zeros_like(emit, dy)), op._inputs[0])
    return [emit("DivNoNan", direction, _complex(emit, y, zeros_like(emit, y)), name="div_no_nan")]


def _complex_gradient(emit: Emitter, op: Operation, dy: Tensor) -> list[Any]:
    x, y = op._inputs
    return reduce_to_inputs(emit, x, y, _part(emit, "Real", dy), _part(emit, "Imag", dy))


def _complex_host(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    kind = np.complex64 if real.dtype == np.float32 else np.complex128
    out = np.empty(np.broadcast_shapes(real.shape, imag.shape), kind)
    out.real, out.imag = real, imag
    return out


def _angle(x: Any) -> Any:
    return lax.atan2(lax.imag(x), lax.real(x))


_define_part("Real", "input", "output", lax.real, np.real, _real_gradient, "The real part.")
_define_part("Imag", "input", "output", lax.imag, np.imag, _imag_gradient, "The imaginary part.")
_define_part("Angle", "input", "output", _angle, np.angle, _angle_gradient, "The argument, in radians.")
_define_part("ComplexAbs", "x", "y", lax.abs, np.abs, _abs_gradient, "|x| of a complex x.")

conj = define_op(
    "Conj",
    inputs="input: T",
    outputs="output: T",
    attrs="T: {complex64, complex128, variant} = complex64",
    shape=same_shape,
    kernel=traceable(lax.conj, host=on_host(np.conj)),
    gradient=lambda emit, op, dy: [emit("Conj", dy)],
    doc="The complex conjugate.",
)

make_complex = define_op(
    "Complex",
    inputs="real: T, imag: T",
    outputs="out: Tout",
    attrs="T: {float, double} = float, Tout: {complex64, complex128} = complex64",
    shape=broadcast_shape,
    kernel=traceable(broadcasting(lax.complex), host=on_host(_complex_host)),
    gradient=_complex_gradient,
    doc="real + i * imag.",
)
