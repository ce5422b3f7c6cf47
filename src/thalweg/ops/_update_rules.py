"""What optimizers' updates compute: one pure function a rule, of the variable, its slots and its inputs.

Every rule works element by element, so the same function serves whole variables and some rows of them.
Formulas as TensorFlow's CPU kernels have them (training_ops.cc); arguments in the order of the ops' inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax

from thalweg.ops._arrays import is_host


@dataclass(frozen=True)
class Rule:
    """An update of a variable and of its slots.

    compute: f(var, *slots, *inputs, **attrs) -> (new var, *new slots).
    inputs: in order; among them `gradient`, which has the variable's shape. The others are scalars.
    """

    name: str
    compute: Callable[..., tuple[Any, ...]]
    slots: tuple[str, ...]
    inputs: tuple[str, ...]
    gradient: str = "grad"
    attrs: str = ""
    doc: str = ""


def gradient_descent(var: Any, alpha: Any, delta: Any) -> tuple[Any, ...]:
    return (var - alpha * delta,)


def proximal(var: Any, rate: Any, l1: Any, l2: Any) -> Any:
    """Shrinks towards zero: l1 by a constant, l2 by a factor, each times the rate."""
    shrunk = lax.sign(var) * jnp.maximum(lax.abs(var) - rate * l1, 0)
    return jnp.where(l1 > 0, shrunk, var) / (1 + rate * l2)


def proximal_gradient_descent(var: Any, alpha: Any, l1: Any, l2: Any, delta: Any) -> tuple[Any, ...]:
    return (proximal(var - alpha * delta, alpha, l1, l2),)


def momentum(
    var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, *, use_nesterov: bool
) -> tuple[Any, ...]:
    accum = accum * momentum + grad
    step = grad * lr + accum * momentum * lr if use_nesterov else accum * lr
    return var - step, accum


def keras_momentum(
    var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, *, use_nesterov: bool
) -> tuple[Any, ...]:
    accum = accum * momentum - grad * lr
    return var + (accum * momentum - grad * lr if use_nesterov else accum), accum


def adagrad(var: Any, accum: Any, lr: Any, grad: Any, *, update_slots: bool) -> tuple[Any, ...]:
    if update_slots:
        accum = accum + grad * grad
    return var - grad * lr * lax.rsqrt(accum), accum


def adagrad_v2(
    var: Any, accum: Any, lr: Any, epsilon: Any, grad: Any, *, update_slots: bool
) -> tuple[Any, ...]:
    if update_slots:
        accum = accum + grad * grad
    return var - grad * lr / (lax.sqrt(accum) + epsilon), accum


def proximal_adagrad(var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any) -> tuple[Any, ...]:
    accum = accum + grad * grad
    rate = lr * lax.rsqrt(accum)
    return proximal(var - grad * rate, rate, l1, l2), accum


def adagrad_da(
    var: Any, total: Any, squares: Any, grad: Any, lr: Any, l1: Any, l2: Any, global_step: Any
) -> tuple[Any, ...]:
    total = total + grad
    squares = squares + grad * grad
    steps = lax.convert_element_type(global_step, total.dtype)
    shrunk = lax.sign(total) * jnp.maximum(lax.abs(total) - l1 * steps, 0)
    push = jnp.where(l1 > 0, shrunk, total)
    return -lr * push / (l2 * steps * lr + lax.sqrt(squares)), total, squares


def adadelta(
    var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any
) -> tuple[Any, ...]:
    accum = accum * rho + grad * grad * (1 - rho)
    step = lax.sqrt(accum_update + epsilon) * lax.rsqrt(accum + epsilon) * grad
    return var - step * lr, accum, accum_update * rho + step * step * (1 - rho)


def adam(
    var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
    epsilon: Any, grad: Any, *, use_nesterov: bool,
) -> tuple[Any, ...]:  # fmt: skip
    alpha = lr * lax.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    direction = grad * (1 - beta1) + beta1 * m if use_nesterov else m
    return var - direction * alpha / (lax.sqrt(v) + epsilon), m, v


def adam_with_amsgrad(
    var: Any, m: Any, v: Any, vhat: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
    epsilon: Any, grad: Any,
) -> tuple[Any, ...]:  # fmt: skip
    alpha = lr * lax.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    vhat = jnp.maximum(vhat, v)
    return var - m * alpha / (lax.sqrt(vhat) + epsilon), m, v, vhat


def ada_max(
    var: Any, m: Any, v: Any, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, grad: Any
) -> tuple[Any, ...]:
    m = m + (grad - m) * (1 - beta1)
    v = jnp.maximum(beta2 * v, lax.abs(grad))
    return var - lr / (1 - beta1_power) * (m / (v + epsilon)), m, v


def rms_prop(
    var: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> tuple[Any, ...]:
    ms = ms + (grad * grad - ms) * (1 - rho)
    mom = mom * momentum + grad * lr / lax.sqrt(ms + epsilon)
    return var - mom, ms, mom


def centered_rms_prop(
    var: Any, mg: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> tuple[Any, ...]:
    ms = ms + (grad * grad - ms) * (1 - rho)
    mg = mg + (grad - mg) * (1 - rho)
    mom = mom * momentum + grad * lr / lax.sqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


def ftrl(
    var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any,
    *, multiply_linear_by_lr: bool,
) -> tuple[Any, ...]:  # fmt: skip
    return _ftrl(var, accum, linear, grad, grad, lr, l1, l2, lr_power, multiply_linear_by_lr)


def ftrl_v2(
    var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, l2_shrinkage: Any, lr_power: Any,
    *, multiply_linear_by_lr: bool,
) -> tuple[Any, ...]:  # fmt: skip
    shrinking = grad + 2 * l2_shrinkage * var
    return _ftrl(var, accum, linear, grad, shrinking, lr, l1, l2, lr_power, multiply_linear_by_lr)


def _ftrl(
    var: Any, accum: Any, linear: Any, grad: Any, push: Any, lr: Any, l1: Any, l2: Any, lr_power: Any,
    times_lr: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """times_lr: `linear` is kept times the learning rate, which may then be zero."""
    total = accum + grad * grad
    power, old_power = _minus_power(total, lr_power), _minus_power(accum, lr_power)
    if times_lr:
        linear = linear + push * lr - (power - old_power) * var
        quadratic, l1 = power + 2 * l2 * lr, l1 * lr
    else:
        linear = linear + push - (power - old_power) / lr * var
        quadratic = power / lr + 2 * l2
    var = (jnp.clip(linear, -l1, l1) - linear) / quadratic
    return var, total, linear


def _minus_power(x: Any, power: Any) -> Any:
    """x ** -power, quickly where the power is a constant -0.5 (it nearly always is)."""
    if is_host(power) and power == -0.5:
        return lax.sqrt(x)
    return x ** -power


def add_sign(
    var: Any, m: Any, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Any
) -> tuple[Any, ...]:
    m = m * beta + grad * (1 - beta)
    agree = lax.sign(grad) * lax.sign(m)
    return var - lr * (alpha + sign_decay * agree) * grad, m


def power_sign(
    var: Any, m: Any, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Any
) -> tuple[Any, ...]:
    m = m * beta + grad * (1 - beta)
    agree = lax.sign(grad) * lax.sign(m)
    return var - lr * lax.exp(logbase * sign_decay * agree) * grad, m


_NESTEROV = "use_nesterov: bool = False"
_SLOTS = "update_slots: bool = True"
_FTRL = "multiply_linear_by_lr: bool = False"

#: rules that have ops for whole variables, of both kinds
DENSE = (
    Rule("GradientDescent", gradient_descent, (), ("alpha", "delta"), "delta",
         doc="var -= alpha * delta"),
    Rule("ProximalGradientDescent", proximal_gradient_descent, (), ("alpha", "l1", "l2", "delta"), "delta",
         doc="a gradient step, then L1 and L2 shrinkage"),
    Rule("Momentum", momentum, ("accum",), ("lr", "grad", "momentum"), attrs=_NESTEROV,
         doc="accum = momentum * accum + grad; var -= lr * accum"),
    Rule("Adagrad", adagrad, ("accum",), ("lr", "grad"), attrs=_SLOTS,
         doc="accum += grad^2; var -= lr * grad / sqrt(accum)"),
    Rule("AdagradV2", adagrad_v2, ("accum",), ("lr", "epsilon", "grad"), attrs=_SLOTS,
         doc="accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon)"),
    Rule("ProximalAdagrad", proximal_adagrad, ("accum",), ("lr", "l1", "l2", "grad"),
         doc="an Adagrad step, then L1 and L2 shrinkage"),
    Rule("AdagradDA", adagrad_da, ("gradient_accumulator", "gradient_squared_accumulator"),
         ("grad", "lr", "l1", "l2", "global_step"),
         doc="Adagrad by dual averaging: var from the sums of gradients and of their squares"),
    Rule("Adadelta", adadelta, ("accum", "accum_update"), ("lr", "rho", "epsilon", "grad"),
         doc="steps as long as recent steps were, against recent gradients"),
    Rule("Adam", adam, ("m", "v"),
         ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"), attrs=_NESTEROV,
         doc="m, v: running means of grad and grad^2; var -= lr_t * m / (sqrt(v) + epsilon)"),
    Rule("AdaMax", ada_max, ("m", "v"), ("beta1_power", "lr", "beta1", "beta2", "epsilon", "grad"),
         doc="Adam by the infinity norm: v = max(beta2 * v, |grad|)"),
    Rule("RMSProp", rms_prop, ("ms", "mom"), ("lr", "rho", "momentum", "epsilon", "grad"),
         doc="mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var -= mom"),
    Rule("CenteredRMSProp", centered_rms_prop, ("mg", "ms", "mom"),
         ("lr", "rho", "momentum", "epsilon", "grad"),
         doc="RMSProp by the estimated variance, ms - mg^2"),
    Rule("Ftrl", ftrl, ("accum", "linear"), ("grad", "lr", "l1", "l2", "lr_power"), attrs=_FTRL,
         doc="follow the regularised leader (proximal)"),
    Rule("FtrlV2", ftrl_v2, ("accum", "linear"), ("grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"),
         attrs=_FTRL, doc="Ftrl with L2 shrinkage of the gradient"),
    Rule("AddSign", add_sign, ("m",), ("lr", "alpha", "sign_decay", "beta", "grad"),
         doc="steps by sign(grad) * sign(m), the agreement: lr * (alpha + sign_decay * agreement)"),
    Rule("PowerSign", power_sign, ("m",), ("lr", "logbase", "sign_decay", "beta", "grad"),
         doc="steps by sign(grad) * sign(m), the agreement: lr * e^(logbase * sign_decay * agreement)"),
)  # fmt: skip

#: rules that have ops for resource variables only
DENSE_RESOURCE = (
    Rule("KerasMomentum", keras_momentum, ("accum",), ("lr", "grad", "momentum"), attrs=_NESTEROV,
         doc="accum = momentum * accum - lr * grad; var += accum"),
    Rule("AdamWithAmsgrad", adam_with_amsgrad, ("m", "v", "vhat"),
         ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"),
         doc="Adam by the largest v so far"),
)  # fmt: skip
