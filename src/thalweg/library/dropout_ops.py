"""Dropout."""

from __future__ import annotations

import numbers
from typing import Any

from thalweg.base import shape as shapes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import renamed, scope
from thalweg.library.array_ops import shape
from thalweg.library.casting import cast
from thalweg.library.random_ops import random_uniform


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """x with a share `rate` (= 1 - keep_prob) of its elements set to 0, at random, the others scaled up to
    make up.

    noise_shape: the shape of the random choice; where it is 1 and x's is not, elements are kept or dropped
    together.
    Errors: ValueError for a rate outside [0, 1), or for integers.
    """
    if keep_prob is not None:
        try:
            keep_prob = 1.0 - keep_prob
        except TypeError:
            raise ValueError(
                f"keep_prob must be a floating point number or Tensor, got {keep_prob!r}"
            ) from None
    rate = renamed("rate", rate, "keep_prob", keep_prob)
    if rate is None:
        raise ValueError("You must provide a rate to dropout.")
    with scope(name, "dropout"):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_floating:
            raise ValueError(
                f"x has to be a floating point tensor since it's going to be scaled. Got a {x.dtype.name} "
                "tensor instead."
            )
        if isinstance(rate, numbers.Real):
            rate = float(rate)
            if not 0 <= rate < 1:
                raise ValueError(f"rate must be a scalar tensor or a float in the range [0, 1), got {rate}")
            if rate == 0:
                return x
        return _dropped(x, convert_to_tensor(rate, x.dtype.base_dtype, name="rate"), noise_shape, seed)


def _dropped(x: Tensor, rate: Tensor, noise_shape: Any, seed: int | None) -> Tensor:
    if rate._shape not in (None, ()):
        raise ValueError(f"rate must be a scalar, got shape {shapes.format_shape(rate._shape)}")
    if emit.known_value(rate) == 0:
        return x
    noise = random_uniform(_noise_shape(x, noise_shape), seed=seed, dtype=x.dtype.base_dtype)
    scale = 1 / (1 - rate)
    keep = noise >= rate
    result = x * scale * cast(keep, x.dtype.base_dtype)
    result.set_shape(x._shape)
    return result


def _noise_shape(x: Tensor, noise_shape: Any) -> Any:
    """noise_shape, with x's dimensions where it has None."""
    if noise_shape is None:
        return shape(x)
    try:
        given = shapes.as_shape(noise_shape)
    except (TypeError, ValueError):
        return noise_shape  # it holds tensors
    if given is not None and x._shape is not None and len(given) == len(x._shape):
        merged = [d if n is None else n for n, d in zip(given, x._shape, strict=True)]
        if None not in merged:
            return merged
    return noise_shape
