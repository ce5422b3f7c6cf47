"""Learning rates that change with the training step.

Each function returns a scalar of the type of the learning rate. The names of the nodes are TF 1.15's, but
for those where it builds conditionals (piecewise_constant, cosine_decay_restarts): these select among values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from thalweg.base import dtypes, nest
from thalweg.base.dtypes import DType
from thalweg.graph.convert import constant, convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import scope
from thalweg.library.casting import cast
from thalweg.library.random_ops import random_normal

__all__ = [
    "cosine_decay",
    "cosine_decay_restarts",
    "exponential_decay",
    "inverse_time_decay",
    "linear_cosine_decay",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
]


def _rate(learning_rate: Any) -> tuple[Any, DType]:
    """The initial learning rate as a tensor, and its type, which is that of the result."""
    rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
    return rate, rate.dtype.base_dtype


def _check_step(global_step: Any, function: str) -> None:
    if global_step is None:
        raise ValueError(f"global_step is required for {function}.")


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """learning_rate * decay_rate ^ (global_step / decay_steps); staircase: the exponent is rounded down."""
    _check_step(global_step, "exponential_decay")
    with scope(name, "ExponentialDecay") as named:
        rate, dtype = _rate(learning_rate)
        steps, base, step = cast(decay_steps, dtype), cast(decay_rate, dtype), cast(global_step, dtype)
        exponent = step / steps
        if staircase:
            exponent = emit("Floor", exponent)
        return emit("Mul", rate, emit("Pow", base, exponent), name=named)


def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """learning_rate * exp(-decay_rate * global_step / decay_steps); staircase rounds the quotient down."""
    base = emit("Exp", emit("Neg", decay_rate))
    return exponential_decay(learning_rate, global_step, decay_steps, base, staircase, name)


def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """learning_rate / (1 + decay_rate * global_step / decay_steps); staircase rounds the quotient down."""
    _check_step(global_step, "inverse_time_decay")
    with scope(name, "InverseTimeDecay") as named:
        rate, dtype = _rate(learning_rate)
        steps, factor, step = cast(decay_steps, dtype), cast(decay_rate, dtype), cast(global_step, dtype)
        periods = step / steps
        if staircase:
            periods = emit("Floor", periods)
        one = cast(constant(1), dtype)
        return emit("RealDiv", rate, emit("AddV2", one, emit("Mul", factor, periods), name="Add"), name=named)


def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """From learning_rate to end_learning_rate within decay_steps, as (1 - global_step / decay_steps) ^ power.

    cycle: instead of staying at the end, starts again with decay_steps times the smallest whole number that
    isn't past.
    """
    _check_step(global_step, "polynomial_decay")
    with scope(name, "PolynomialDecay") as named:
        rate, dtype = _rate(learning_rate)
        end, exponent = cast(end_learning_rate, dtype), cast(power, dtype)
        step, steps = cast(global_step, dtype), cast(decay_steps, dtype)
        if cycle:
            # the first period holds at step 0 too, where the quotient rounds up to 0
            periods = emit("Maximum", emit("Ceil", step / steps), constant(1.0, dtype))
            steps = emit("Mul", steps, periods)
        else:
            step = emit("Minimum", step, steps)
        progress = step / steps
        fall = emit("Mul", rate - end, emit("Pow", 1 - progress, exponent))
        return emit("AddV2", fall, end, name=named)


def piecewise_constant(
    x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Tensor:
    """values[0] for x <= boundaries[0], values[1] up to boundaries[1], ..., values[-1] beyond the last.

    Errors: ValueError where boundaries are not of x's type (int32 for an int64 x will do), or the values of
    several types, or there isn't one value more than boundaries.

    Where TensorFlow builds a conditional for each piece, this picks by one Select for each boundary.
    """
    limits = [convert_to_tensor(b) for b in nest.flatten(boundaries)]
    pieces = [convert_to_tensor(v) for v in nest.flatten(values)]
    if len(limits) != len(pieces) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    x = convert_to_tensor(x)
    dtype = x.dtype.base_dtype
    for limit in limits:
        kind = limit.dtype.base_dtype
        if kind != dtype and not (kind == dtypes.int32 and dtype == dtypes.int64):
            raise ValueError(f"Boundaries ({kind}) must have the same dtype as x ({dtype}).")
    for piece in pieces[1:]:
        if piece.dtype.base_dtype != pieces[0].dtype.base_dtype:
            raise ValueError(
                "Values must have elements all with the same dtype "
                f"({pieces[0].dtype.base_dtype} vs {piece.dtype.base_dtype})."
            )
    with scope(name, "PiecewiseConstant"):
        result = pieces[-1]
        for limit, piece in reversed(list(zip(limits, pieces, strict=False))):
            result = emit("Select", emit("LessEqual", x, cast(limit, dtype)), piece, result)
        return result


piecewise_constant_decay = piecewise_constant


def _cosine(fraction: Any, dtype: DType, factor: Any = 0.5) -> Any:
    """factor * (1 + cos(pi * fraction))."""
    return factor * (1.0 + emit("Cos", constant(math.pi, dtype) * fraction))


def cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0, name: str | None = None
) -> Tensor:
    """Half a cosine from learning_rate to alpha * learning_rate within decay_steps.

    https://arxiv.org/abs/1608.03983
    """
    _check_step(global_step, "cosine decay")
    with scope(name, "CosineDecay"):
        rate, dtype = _rate(learning_rate)
        steps = cast(decay_steps, dtype)
        step = emit("Minimum", cast(global_step, dtype), steps)
        decayed = (1 - alpha) * _cosine(step / steps, dtype) + alpha
        return emit("Mul", rate, decayed)


def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: Any = 2.0,
    m_mul: Any = 1.0,
    alpha: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """cosine_decay again and again, each time t_mul times as long and m_mul times as high as before."""
    _check_step(global_step, "cosine decay restarts")
    with scope(name, "SGDRDecay") as named:
        rate, dtype = _rate(learning_rate)
        first, alpha = cast(first_decay_steps, dtype), cast(alpha, dtype)
        t_mul, m_mul = cast(t_mul, dtype), cast(m_mul, dtype)
        done = cast(global_step, dtype) / first
        same_length = emit("Equal", t_mul, constant(1.0, dtype))
        # where all periods are as long, the formula of the geometric series would divide 0 by 0: it gets a 2
        ratio: Any = emit("Select", same_length, constant(2.0, dtype), t_mul)
        restarts = emit("Floor", emit("Log", 1.0 - done * (1.0 - ratio)) / emit("Log", ratio))
        scale = ratio**restarts
        inside = (done - (1.0 - scale) / (1.0 - ratio)) / scale
        whole: Any = emit("Floor", done)
        restarts = emit("Select", same_length, whole, restarts)
        inside = emit("Select", same_length, done - whole, inside)
        decayed = (1 - alpha) * _cosine(inside, dtype, 0.5 * m_mul**restarts) + alpha
        return emit("Mul", rate, decayed, name=named)


def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """learning_rate * ((alpha + linear decay) * cosine decay + beta) (https://arxiv.org/abs/1709.07417)."""
    _check_step(global_step, "linear cosine decay")
    with scope(name, "LinearCosineDecay") as named:
        rate, dtype = _rate(learning_rate)
        steps, periods = cast(decay_steps, dtype), cast(num_periods, dtype)
        alpha, beta = cast(alpha, dtype), cast(beta, dtype)
        step = emit("Minimum", cast(global_step, dtype), steps)
        linear = (steps - step) / steps
        fraction = 2.0 * periods * (step / steps)
        return emit("Mul", rate, (alpha + linear) * _cosine(fraction, dtype) + beta, name=named)


def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: Any = 1.0,
    variance_decay: Any = 0.55,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """linear_cosine_decay with noise on the linear part.

    The noise's variance is initial_variance / (1 + step) ^ variance_decay.
    """
    _check_step(global_step, "noisy linear cosine decay")
    with scope(name, "NoisyLinearCosineDecay") as named:
        rate, dtype = _rate(learning_rate)
        steps, periods = cast(decay_steps, dtype), cast(num_periods, dtype)
        alpha, beta = cast(alpha, dtype), cast(beta, dtype)
        step = emit("Minimum", cast(global_step, dtype), steps)
        linear = (steps - step) / steps
        variance = cast(initial_variance, dtype) / emit("Pow", 1.0 + step, cast(variance_decay, dtype))
        noise = random_normal(linear.shape, stddev=emit("Sqrt", variance), dtype=dtype)
        linear = linear + noise
        fraction = 2.0 * periods * (step / steps)
        return emit("Mul", rate, (alpha + linear) * _cosine(fraction, dtype) + beta, name=named)
