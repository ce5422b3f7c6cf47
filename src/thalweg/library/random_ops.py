"""Random tensors. Every run draws new numbers; seeds make the sequence of runs reproducible (random_seed)."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base.tensor_shape import Dimension
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import scope
from thalweg.library.array_ops import broadcast_dynamic_shape, broadcast_to
from thalweg.library.array_ops import shape as shape_of
from thalweg.library.check_ops import Assert
from thalweg.library.grouping import with_dependencies
from thalweg.library.random_seed import get_seed, set_random_seed
from thalweg.library.reduction_ops import reduce_all

__all__ = [
    "categorical",
    "gamma",
    "get_seed",
    "multinomial",
    "normal",
    "poisson",
    "random_crop",
    "random_gamma",
    "random_normal",
    "random_poisson",
    "random_shuffle",
    "random_uniform",
    "set_random_seed",
    "shuffle",
    "stateless_categorical",
    "stateless_multinomial",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
]


def _seeds(op_seed: int | None) -> dict[str, Any]:
    seed, seed2 = get_seed(op_seed)
    return {"seed": seed or 0, "seed2": seed2 or 0}


def _shape_tensor(shape: Any) -> Tensor:
    """A shape given as a list (of numbers, Dimensions, tensors), TensorShape or tensor."""
    if isinstance(shape, list | tuple):
        if not shape:
            return convert_to_tensor(shape, dtypes.int32, name="shape")
        shape = [d.value if isinstance(d, Dimension) else d for d in shape]
    elif hasattr(shape, "as_list"):
        shape = np.array(shape.as_list(), np.int32)
    return convert_to_tensor(shape, name="shape")


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers from [minval, maxval), each as likely as the other; maxval is 1 for floats where None.

    Errors: ValueError for other dtypes than floats, int32 and int64, or integers without maxval.
    """
    kind = dtypes.as_dtype(dtype)
    if not (kind.is_floating or kind in (dtypes.int32, dtypes.int64)):
        raise ValueError(f"Invalid dtype {kind!r}")
    if maxval is None:
        if kind.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {kind!r}")
        maxval = 1
    with scope(name, "random_uniform") as named:
        size = _shape_tensor(shape)
        low = convert_to_tensor(minval, kind, name="min")
        high = convert_to_tensor(maxval, kind, name="max")
        if kind.is_integer:
            return emit("RandomUniformInt", size, low, high, **_seeds(seed), name=named)
        numbers = emit("RandomUniform", size, dtype=kind, **_seeds(seed))
        return emit("AddV2", numbers * (high - low), low, name=named)


def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers from the normal distribution."""
    return _scaled("RandomStandardNormal", "random_normal", shape, mean, stddev, dtype, seed, name)


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers from the normal distribution, those beyond two standard deviations drawn again."""
    return _scaled("TruncatedNormal", "truncated_normal", shape, mean, stddev, dtype, seed, name)


def _scaled(
    op: str, default: str, shape: Any, mean: Any, stddev: Any, dtype: Any, seed: int | None, name: str | None
) -> Tensor:
    kind = dtypes.as_dtype(dtype)
    with scope(name, default) as named:
        size = _shape_tensor(shape)
        centre = convert_to_tensor(mean, kind, name="mean")
        width = convert_to_tensor(stddev, kind, name="stddev")
        numbers = emit(op, size, dtype=kind, **_seeds(seed))
        return emit("AddV2", numbers * width, centre, name=named)


def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """value with its slices along the first axis in random order."""
    return emit("RandomShuffle", value, **_seeds(seed), name=name)


def multinomial(
    logits: Any, num_samples: Any, seed: int | None = None, name: str | None = None, output_dtype: Any = None
) -> Tensor:
    """[batch, num_samples]: classes drawn with the unnormalised log-probabilities logits [batch, classes]."""
    with scope(name, "multinomial"):
        return _classes(logits, num_samples, output_dtype, seed)


def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """[batch, num_samples]: classes drawn with the unnormalised log-probabilities logits [batch, classes]."""
    with scope(name, "categorical"):
        return _classes(logits, num_samples, dtype, seed)


def _classes(logits: Any, num_samples: Any, dtype: Any, seed: int | None) -> Tensor:
    logits = convert_to_tensor(logits, name="logits")
    kind = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    return emit("Multinomial", logits, num_samples, **_seeds(seed), output_dtype=kind)


def random_gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers from gamma distributions: shape + (the shape of alpha and beta, broadcast)."""
    kind = dtypes.as_dtype(dtype)
    with scope(name, "random_gamma"):
        size = convert_to_tensor(shape, dtypes.int32, name="shape")
        alpha = convert_to_tensor(alpha, kind, name="alpha")
        rate = convert_to_tensor(1 if beta is None else beta, kind, name="beta")
        full = broadcast_to(alpha, broadcast_dynamic_shape(shape_of(alpha), shape_of(rate)))
        draws = emit("RandomGamma", size, full, **_seeds(seed)) / rate
        return emit("Maximum", np.finfo(kind.as_numpy_dtype).tiny, draws)


def random_poisson(
    lam: Any, shape: Any, dtype: Any = dtypes.float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Numbers from Poisson distributions with these rates: shape + lam's shape."""
    with scope(name, "random_poisson"):
        size = convert_to_tensor(shape, dtypes.int32, name="shape")
        return emit("RandomPoissonV2", size, lam, dtype=dtypes.as_dtype(dtype), **_seeds(seed))


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A part of value of this size from a random place.

    Error when run: InvalidArgumentError where value is smaller.
    """
    with scope(name, "random_crop") as named:
        value = convert_to_tensor(value, name="value")
        size = convert_to_tensor(size, dtypes.int32, name="size")
        whole = shape_of(value)
        check = Assert(
            reduce_all(whole >= size), ["Need value.shape >= size, got ", whole, size], summarize=1000
        )
        whole = with_dependencies([check], whole)
        places = whole - size + 1
        kind = size.dtype.base_dtype
        drawn = random_uniform(shape_of(whole), dtype=kind, maxval=kind.max, seed=seed)
        return emit("Slice", value, drawn % places, size, name=named)


# ---- stateless: the seed is an input -------------------------------------------------------------------


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """As random_uniform, but the same seed [2] always gives the same numbers."""
    kind = dtypes.as_dtype(dtype)
    if maxval is None:
        if kind.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {kind!r}")
        maxval = 1
    with scope(name, "stateless_random_uniform") as named:
        size = _shape_tensor(shape)
        low = convert_to_tensor(minval, kind, name="min")
        high = convert_to_tensor(maxval, kind, name="max")
        if kind.is_integer:
            return emit("StatelessRandomUniformInt", size, seed, low, high, name=named)
        numbers = emit("StatelessRandomUniform", size, seed, dtype=kind)
        return emit("AddV2", numbers * (high - low), low, name=named)


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """As random_normal, but the same seed [2] always gives the same numbers."""
    return _stateless(
        "StatelessRandomNormal", "stateless_random_normal", shape, seed, mean, stddev, dtype, name
    )


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """As truncated_normal, but the same seed [2] always gives the same numbers."""
    return _stateless(
        "StatelessTruncatedNormal", "stateless_truncated_normal", shape, seed, mean, stddev, dtype, name
    )


def _stateless(
    op: str, default: str, shape: Any, seed: Any, mean: Any, stddev: Any, dtype: Any, name: str | None
) -> Tensor:
    kind = dtypes.as_dtype(dtype)
    with scope(name, default) as named:
        size = _shape_tensor(shape)
        centre = convert_to_tensor(mean, kind, name="mean")
        width = convert_to_tensor(stddev, kind, name="stddev")
        return emit("AddV2", emit(op, size, seed, dtype=kind) * width, centre, name=named)


def stateless_multinomial(
    logits: Any, num_samples: Any, seed: Any, output_dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """As multinomial, but the same seed [2] always gives the same classes."""
    with scope(name, "stateless_multinomial"):
        logits = convert_to_tensor(logits, name="logits")
        kind = dtypes.as_dtype(output_dtype)
        return emit("StatelessMultinomial", logits, num_samples, seed, output_dtype=kind)


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """As categorical, but the same seed [2] always gives the same classes."""
    with scope(name, "stateless_categorical"):
        logits = convert_to_tensor(logits, name="logits")
        return emit("StatelessMultinomial", logits, num_samples, seed, output_dtype=dtypes.as_dtype(dtype))


uniform = random_uniform
normal = random_normal
shuffle = random_shuffle
gamma = random_gamma
poisson = random_poisson
