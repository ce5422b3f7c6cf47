"""Division, remainders and powers as TensorFlow's CPU kernels compute them; on JAX arrays and on NumPy.

Integers: zero as a divisor and negative powers are errors. Private to the op families.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

from thalweg.graph.operation import Operation
from thalweg.graph.shape_context import constant_value
from thalweg.kernel import checks
from thalweg.ops._broadcast import is_integer


def may_divide_by_zero(op: Operation) -> bool:
    """Whether an integer division may fail: false where the divisor is known and has no zero."""
    if not op._inputs[0]._dtype.is_integer:
        return False
    divisor = constant_value(op._inputs[1])
    return divisor is None or bool((divisor == 0).any())


def may_be_negative_power(op: Operation) -> bool:
    """Whether an integer power may fail: false where the exponent is known and nowhere negative."""
    if not op._inputs[0]._dtype.is_integer:
        return False
    exponent = constant_value(op._inputs[1])
    return exponent is None or bool((exponent < 0).any())


def _all(condition: Any) -> Any:
    if isinstance(condition, np.ndarray | np.bool_):
        return bool(np.all(condition))
    return lax.reduce_and(condition, tuple(range(condition.ndim)))


def _require_divisor(x: Any, y: Any) -> None:
    """The divisor has no zero. Known ones are looked at now, so that no check is left in the executable."""
    if x.size == 0:  # nothing is divided
        return
    if isinstance(y, np.ndarray):
        checks.require(bool(np.all(y != 0)), lambda: "Integer division by zero")
        return
    checks.require(_all(lax.ne(y, lax.full_like(y, 0))), lambda: "Integer division by zero")


def _differs(x: Any, y: Any) -> Any:
    """Whether the signs of x and y differ."""
    zero = lax.full_like(x, 0)
    return lax.ne(lax.lt(x, zero), lax.lt(y, zero))


def floor_div(x: Any, y: Any) -> Any:
    """floor(x / y)."""
    if not is_integer(x):
        return lax.floor(lax.div(x, y))
    _require_divisor(x, y)
    quotient = lax.div(x, y)
    if x.dtype.kind == "u":
        return quotient
    inexact = lax.ne(lax.rem(x, y), lax.full_like(x, 0))
    down = lax.bitwise_and(inexact, _differs(x, y))
    return lax.select(down, lax.sub(quotient, lax.full_like(x, 1)), quotient)


def floor_div_host(x: np.ndarray, y: np.ndarray) -> Any:
    """floor(x / y)."""
    if not is_integer(x):
        return np.floor(x / y)
    _require_divisor(x, y)
    return np.floor_divide(x, y)


def truncate_div(x: Any, y: Any) -> Any:
    """x / y without its fraction."""
    if is_integer(x):
        _require_divisor(x, y)
        return lax.div(x, y)
    quotient = lax.div(x, y)
    return lax.select(lax.lt(quotient, lax.full_like(quotient, 0)), lax.ceil(quotient), lax.floor(quotient))


def truncate_div_host(x: np.ndarray, y: np.ndarray) -> Any:
    """x / y without its fraction."""
    if not is_integer(x):
        return np.trunc(x / y)
    _require_divisor(x, y)
    quotient = np.floor_divide(x, y)
    up = (np.remainder(x, y) != 0) & ((x < 0) != (y < 0))
    return quotient + up.astype(quotient.dtype)


def truncate_div_or_div(x: Any, y: Any) -> Any:
    """Div: C's division."""
    return truncate_div(x, y) if is_integer(x) else lax.div(x, y)


def truncate_div_or_div_host(x: np.ndarray, y: np.ndarray) -> Any:
    """Div: C's division."""
    return truncate_div_host(x, y) if is_integer(x) else x / y


def real_div_host(x: np.ndarray, y: np.ndarray) -> Any:
    """RealDiv; of integers, for which TensorFlow has no kernel, as Div's."""
    return truncate_div_host(x, y) if is_integer(x) else x / y


def floor_mod(x: Any, y: Any) -> Any:
    """The remainder with the divisor's sign."""
    if is_integer(x):
        _require_divisor(x, y)
    remainder = lax.rem(x, y)
    if x.dtype.kind == "u":
        return remainder
    inexact = lax.ne(remainder, lax.full_like(x, 0))
    wrong = lax.bitwise_and(inexact, _differs(remainder, y))
    return lax.select(wrong, lax.add(remainder, y), remainder)


def floor_mod_host(x: np.ndarray, y: np.ndarray) -> Any:
    """The remainder with the divisor's sign."""
    if is_integer(x):
        _require_divisor(x, y)
    remainder = np.fmod(x, y)
    wrong = (remainder != 0) & ((remainder < 0) != (y < 0))
    return np.where(wrong, remainder + y, remainder)


def truncate_mod(x: Any, y: Any) -> Any:
    """The remainder with the dividend's sign."""
    if is_integer(x):
        _require_divisor(x, y)
    return lax.rem(x, y)


def truncate_mod_host(x: np.ndarray, y: np.ndarray) -> Any:
    """The remainder with the dividend's sign."""
    if is_integer(x):
        _require_divisor(x, y)
    return np.fmod(x, y)


_NEGATIVE_POWER = "Integers to negative integer powers are not allowed"


def power(x: Any, y: Any) -> Any:
    """x to the y; integers wrap around."""
    if not is_integer(x):
        return lax.pow(x, y)
    if isinstance(y, np.ndarray):
        checks.require(bool(np.all(y >= 0)), lambda: _NEGATIVE_POWER)
        bits = int(y.max(initial=0)).bit_length()
    else:
        checks.require(_all(lax.ge(y, lax.full_like(y, 0))), lambda: _NEGATIVE_POWER)
        bits = y.dtype.itemsize * 8 - 1
    one = lax.full_like(y, 1)

    def square_and_multiply(_: Any, carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        result, base, exponent = carry
        odd = lax.eq(lax.bitwise_and(exponent, one), one)
        result = lax.select(odd, lax.mul(result, base), result)
        return result, lax.mul(base, base), lax.shift_right_logical(exponent, one)

    start = (lax.full_like(x, 1), lax.convert_element_type(x, x.dtype), lax.convert_element_type(y, y.dtype))
    return lax.fori_loop(0, bits, square_and_multiply, start)[0]


def power_host(x: np.ndarray, y: np.ndarray) -> Any:
    """x to the y; integers wrap around."""
    if is_integer(x):
        checks.require(bool(np.all(y >= 0)), lambda: _NEGATIVE_POWER)
    return np.power(x, y)
