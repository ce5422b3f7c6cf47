"""Functions of each element: one op each. See math_ops for those that are more than one op."""

from __future__ import annotations

from typing import Any

from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor


def acos(x: Any, name: str | None = None) -> Tensor:
    """The angle in [0, pi] whose cosine is x."""
    return emit("Acos", x, name=name)


def acosh(x: Any, name: str | None = None) -> Tensor:
    """The inverse hyperbolic cosine."""
    return emit("Acosh", x, name=name)


def asin(x: Any, name: str | None = None) -> Tensor:
    """The angle in [-pi/2, pi/2] whose sine is x."""
    return emit("Asin", x, name=name)


def asinh(x: Any, name: str | None = None) -> Tensor:
    """The inverse hyperbolic sine."""
    return emit("Asinh", x, name=name)


def atan(x: Any, name: str | None = None) -> Tensor:
    """The angle in [-pi/2, pi/2] whose tangent is x."""
    return emit("Atan", x, name=name)


def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """The angle of the point (x, y), in [-pi, pi]."""
    return emit("Atan2", y, x, name=name)


def atanh(x: Any, name: str | None = None) -> Tensor:
    """The inverse hyperbolic tangent."""
    return emit("Atanh", x, name=name)


def bessel_i0e(x: Any, name: str | None = None) -> Tensor:
    """exp(-|x|) times the modified Bessel function of order 0."""
    return emit("BesselI0e", x, name=name)


def bessel_i1e(x: Any, name: str | None = None) -> Tensor:
    """exp(-|x|) times the modified Bessel function of order 1."""
    return emit("BesselI1e", x, name=name)


def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularised incomplete beta function."""
    return emit("Betainc", a, b, x, name=name)


def ceil(x: Any, name: str | None = None) -> Tensor:
    """The least integer that is not less than x."""
    return emit("Ceil", x, name=name)


def cos(x: Any, name: str | None = None) -> Tensor:
    """The cosine."""
    return emit("Cos", x, name=name)


def cosh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic cosine."""
    return emit("Cosh", x, name=name)


def digamma(x: Any, name: str | None = None) -> Tensor:
    """The derivative of lgamma."""
    return emit("Digamma", x, name=name)


def erfc(x: Any, name: str | None = None) -> Tensor:
    """One minus the error function."""
    return emit("Erfc", x, name=name)


def exp(x: Any, name: str | None = None) -> Tensor:
    """e to the x."""
    return emit("Exp", x, name=name)


def expm1(x: Any, name: str | None = None) -> Tensor:
    """exp(x) - 1, exact near 0."""
    return emit("Expm1", x, name=name)


def floor(x: Any, name: str | None = None) -> Tensor:
    """The greatest integer that is not greater than x."""
    return emit("Floor", x, name=name)


def floormod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder of division that rounds down: it has y's sign."""
    return emit("FloorMod", x, y, name=name)


def greater(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where x > y."""
    return emit("Greater", x, y, name=name)


def greater_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where x >= y."""
    return emit("GreaterEqual", x, y, name=name)


def igamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The lower regularised incomplete gamma function."""
    return emit("Igamma", a, x, name=name)


def igammac(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The upper regularised incomplete gamma function."""
    return emit("Igammac", a, x, name=name)


def is_finite(x: Any, name: str | None = None) -> Tensor:
    """Where x is neither infinite nor NaN."""
    return emit("IsFinite", x, name=name)


def is_inf(x: Any, name: str | None = None) -> Tensor:
    """Where x is infinite."""
    return emit("IsInf", x, name=name)


def is_nan(x: Any, name: str | None = None) -> Tensor:
    """Where x is NaN."""
    return emit("IsNan", x, name=name)


def less(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where x < y."""
    return emit("Less", x, y, name=name)


def less_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where x <= y."""
    return emit("LessEqual", x, y, name=name)


def lgamma(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""
    return emit("Lgamma", x, name=name)


def log(x: Any, name: str | None = None) -> Tensor:
    """The natural logarithm."""
    return emit("Log", x, name=name)


def log1p(x: Any, name: str | None = None) -> Tensor:
    """log(1 + x), exact near 0."""
    return emit("Log1p", x, name=name)


def logical_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where both are true."""
    return emit("LogicalAnd", x, y, name=name)


def logical_not(x: Any, name: str | None = None) -> Tensor:
    """Where x is false."""
    return emit("LogicalNot", x, name=name)


def logical_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where either is true."""
    return emit("LogicalOr", x, y, name=name)


def maximum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The greater of the two."""
    return emit("Maximum", x, y, name=name)


def minimum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The less of the two."""
    return emit("Minimum", x, y, name=name)


def nextafter(x1: Any, x2: Any, name: str | None = None) -> Tensor:
    """The next number after x1 in the direction of x2."""
    return emit("NextAfter", x1, x2, name=name)


def polygamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The a-th derivative of digamma."""
    return emit("Polygamma", a, x, name=name)


def realdiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y for floating-point numbers."""
    return emit("RealDiv", x, y, name=name)


def reciprocal(x: Any, name: str | None = None) -> Tensor:
    """1 / x."""
    return emit("Reciprocal", x, name=name)


def rint(x: Any, name: str | None = None) -> Tensor:
    """The nearest integer; halves go to the even one."""
    return emit("Rint", x, name=name)


def rsqrt(x: Any, name: str | None = None) -> Tensor:
    """1 / sqrt(x)."""
    return emit("Rsqrt", x, name=name)


def sin(x: Any, name: str | None = None) -> Tensor:
    """The sine."""
    return emit("Sin", x, name=name)


def sinh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic sine."""
    return emit("Sinh", x, name=name)


def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The square of x - y."""
    return emit("SquaredDifference", x, y, name=name)


def tan(x: Any, name: str | None = None) -> Tensor:
    """The tangent."""
    return emit("Tan", x, name=name)


def truncatediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Integer division that rounds towards zero."""
    return emit("TruncateDiv", x, y, name=name)


def truncatemod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder of division that rounds towards zero: it has x's sign."""
    return emit("TruncateMod", x, y, name=name)


def zeta(x: Any, q: Any, name: str | None = None) -> Tensor:
    """The Hurwitz zeta function."""
    return emit("Zeta", x, q, name=name)
