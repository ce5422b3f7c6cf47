"""Random draws from states of their own. Source: TensorFlow's random_op, multinomial_op, random_shuffle_op.

The numbers are TensorFlow's for the same seeds. A node's state is a Philox counter and key
(kernel/philox.py), private to a session; an execution moves it on by what TensorFlow reserves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.operation import Operation
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import (
    ShapeContext,
    constant_value,
    constant_value_as_shape,
    shape_value_of_scalar,
)
from thalweg.kernel import checks, distributions, host_distributions
from thalweg.kernel.convention import random
from thalweg.kernel.initializing import initializes
from thalweg.kernel.philox import advance, advanced, initial_state, reserved_groups
from thalweg.ops._arrays import fail_unless, ints, shape_text
from thalweg.ops._no_gradient import undefined
from thalweg.ops._types import FLOATS, INDEX, REAL

_SEEDS = "seed: int = 0, seed2: int = 0"
_DRAWN = NotDifferentiable("a draw does not depend on the inputs, which say its shape")

#: larger draws than this are compiled, however seldom they run: NumPy works on one core
_LARGEST_ON_HOST = 1 << 24


def _state(op: Operation) -> np.ndarray:
    return initial_state(op._attrs["seed"], op._attrs["seed2"])


# -- shapes -------------------------------------------------------------------------------------------------


def _draw_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 1)
    known = c.value(0)
    if known is not None and (known < -1).any():
        raise ValueError(f"Dimensions must be >= 0, got {known.tolist()}")
    return [c.value_as_shape(0)]


def _int_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(1, 0)
    c.with_rank(2, 0)
    return _draw_shape(c)


def _multinomial_shape(c: ShapeContext) -> list[Shape]:
    logits = c.with_rank(0, 2)
    c.with_rank(1, 0)
    assert logits is not None
    return [(logits[0], shape_value_of_scalar(c.op._inputs[1]))]


# -- kernels ------------------------------------------------------------------------------------------------


def _target(shape: Any) -> tuple[int, ...]:
    """The shape to draw, checked."""
    target = tuple(ints(shape))
    fail_unless(min(target, default=0) >= 0, lambda: f"Dimensions must be >= 0, got {shape_text(target)}")
    return target


def _draw(op_type: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """fn(state, shape, dtype) as a kernel that moves the state on."""

    def kernel(state: Any, shape: Any, *, dtype: np.dtype) -> Any:
        target = _target(shape)
        return fn(state, target, dtype), advanced(state, reserved_groups(op_type, target))

    return kernel


def _host_draw(op_type: str, fn: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """The same on NumPy arrays."""

    def kernel(state: np.ndarray, shape: np.ndarray, *, dtype: np.dtype) -> Any:
        target = _target(shape)
        return fn(state, target, dtype), advance(state, op_type, target)

    return kernel


def _uniform_int(state: Any, shape: Any, minval: Any, maxval: Any) -> Any:
    target = _target(shape)
    for name, bound in (("minval", minval), ("maxval", maxval)):
        given = shape_text(bound.shape)
        fail_unless(given == "[]", lambda n=name, s=given: f"{n} must be 0-D, got shape {s}")
    if 0 not in target:
        checks.require(minval < maxval, _bounds_message, minval, maxval)
    out = distributions.random_uniform_int(state, target, minval, maxval)
    return out, advanced(state, reserved_groups("RandomUniformInt", target))


def _bounds_message(low: np.ndarray, high: np.ndarray) -> str:
    return f"Need minval < maxval, got {low} >= {high}"


def _bounds_may_fail(op: Operation) -> bool:
    low, high = constant_value(op._inputs[1]), constant_value(op._inputs[2])
    return low is None or high is None or bool(low >= high)


def _multinomial(state: Any, logits: Any, num_samples: Any, *, output_dtype: np.dtype) -> Any:
    samples = int(num_samples)
    fail_unless(logits.ndim == 2, lambda: f"logits should be a matrix, got shape {shape_text(logits.shape)}")
    fail_unless(samples >= 0, lambda: f"num_samples should be nonnegative, got {samples}")
    batch, classes = logits.shape
    fail_unless(classes > 0 or not batch, lambda: f"num_classes should be positive, got {classes}")
    out = distributions.multinomial(state, logits, samples, output_dtype)
    return out, advanced(state, reserved_groups("Multinomial", (batch, samples)))


def _shuffle(state: np.ndarray, value: np.ndarray) -> Any:
    if value.ndim == 0 or value.size <= 1:
        return value, state
    order = distributions.shuffle_permutation(state, value.shape[0])
    return value[order], advance(state, "RandomShuffle", value.shape)


# -- where they run -----------------------------------------------------------------------------------------


def _is_small(op: Operation) -> bool:
    count = shapes.num_elements(constant_value_as_shape(op._inputs[0]))
    return count is None or count <= _LARGEST_ON_HOST


def _made_once(op: Operation) -> bool:
    return _is_small(op) and constant_value(op._inputs[0]) is not None and initializes(op)


# -- definitions --------------------------------------------------------------------------------------------


def _define_draw(
    name: str,
    fn: Callable[..., Any],
    host: Callable[..., Any],
    on_host: Callable[[Operation], bool],
    doc: str,
) -> None:
    define_op(
        name,
        inputs="shape: T",
        outputs="output: dtype",
        attrs=f"{_SEEDS}, dtype: {FLOATS}, T: {INDEX}",
        shape=_draw_shape,
        kernel=random(
            _draw(name, fn), state=_state, static=("shape",), host=_host_draw(name, host), on_host=on_host
        ),
        stateful=True,
        gradient=_DRAWN,
        doc=doc,
    )


_define_draw(
    "RandomUniform",
    distributions.random_uniform,
    host_distributions.random_uniform,
    _made_once,
    "Numbers drawn uniformly from [0, 1).",
)
_define_draw(
    "RandomStandardNormal",
    distributions.random_standard_normal,
    host_distributions.random_standard_normal,
    _made_once,
    "Numbers drawn from the normal distribution of mean 0 and deviation 1.",
)
# The traced form takes 400 ms to compile, so the host's is preferred wherever the draw goes.
_define_draw(
    "TruncatedNormal",
    distributions.truncated_normal,
    host_distributions.truncated_normal,
    _is_small,
    "Numbers drawn from the normal distribution of mean 0 and deviation 1, redrawn while outside (-2, 2).",
)

define_op(
    "RandomUniformInt",
    inputs="shape: T, minval: Tout, maxval: Tout",
    outputs="output: Tout",
    attrs=f"{_SEEDS}, Tout: {INDEX}, T: {INDEX}",
    shape=_int_shape,
    kernel=random(_uniform_int, state=_state, static=("shape",), may_fail=_bounds_may_fail),
    stateful=True,
    gradient=NotDifferentiable("integers"),
    doc="Integers drawn uniformly from [minval, maxval).",
)

define_op(
    "Multinomial",
    inputs="logits: T, num_samples: int32",
    outputs="output: output_dtype",
    attrs=f"{_SEEDS}, T: {REAL}, output_dtype: {INDEX} = int64",
    shape=_multinomial_shape,
    kernel=random(_multinomial, state=_state, static=("num_samples",)),
    stateful=True,
    gradient=NotDifferentiable("class numbers are integers"),
    doc="For each row of unnormalised log odds, num_samples class numbers.",
)

define_op(
    "RandomShuffle",
    inputs="value: T",
    outputs="output: T",
    attrs=f"{_SEEDS}, T: type",
    shape=lambda c: [c.shape(0)],
    # each swap needs the one before it: nothing for a compiler, and strings shuffle too
    kernel=random(_shuffle, state=_state, host=_shuffle, on_host=lambda op: True),
    stateful=True,
    gradient=undefined,
    doc="value with its rows (along the first axis) in random order.",
)
