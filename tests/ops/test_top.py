"""The compiled top-k against a stable sort on the host: ties, NaN, zeros, every width of number."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

from thalweg.ops._top import top


def expected(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """By a stable sort; NaN is the largest."""
    places = np.empty((*x.shape[:-1], k), np.int32)
    for row in np.ndindex(x.shape[:-1]):
        values = [(v != v, 0 if v != v else v) for v in x[row].astype(object)]
        places[row] = sorted(range(x.shape[-1]), key=lambda i: values[i], reverse=True)[:k]  # stable too
    return np.take_along_axis(x, places, -1), places


def check(x: np.ndarray, k: int) -> None:
    with jax.enable_x64(True):
        values, places = jax.jit(top, static_argnums=1)(x, k)
    wanted_values, wanted_places = expected(x, k)
    np.testing.assert_array_equal(places, wanted_places)
    np.testing.assert_array_equal(np.asarray(values).view(np.uint8), wanted_values.view(np.uint8))
    assert values.dtype == x.dtype


DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int32, np.uint32, np.int64]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(("shape", "k"), [((3, 700), 5), ((2, 2, 130), 100), ((257,), 1), ((2, 20), 3), ((5000,), 40)])
def test_all_types_and_sizes(dtype: Any, shape: tuple[int, ...], k: int) -> None:
    rng = np.random.default_rng(k)
    check((rng.standard_normal(shape) * 40 + 60).clip(0, 127).astype(dtype), k)


@pytest.mark.parametrize("n", [64, 1000])
def test_negative_numbers(n: int) -> None:
    rng = np.random.default_rng(n)
    check((rng.standard_normal((2, n)) - 3).astype(np.float32), 7)
    check(rng.integers(-(2**31), 2**31 - 1, (2, n)).astype(np.int32), 7)
    check(rng.integers(0, 2**32 - 1, (2, n)).astype(np.uint32), 7)


@pytest.mark.parametrize("k", [1, 9, 400, 1000])
def test_equal_elements_come_in_order_of_place(k: int) -> None:
    rng = np.random.default_rng(k)
    check(rng.integers(0, 4, (2, 1000)).astype(np.float32), k)
    check(np.zeros((1, 1000), np.float32), k)


def test_zeros_are_equal_and_nan_is_the_largest() -> None:
    x = np.full((2, 400), -1, np.float32)
    x[0, [3, 50, 51, 300]] = [0.0, -0.0, 0.0, -0.0]
    x[1, [7, 90, 200]] = [np.nan, -np.nan, np.inf]
    x[1, 399] = -np.inf
    check(x, 3)
    check(x, 399)


def test_nothing() -> None:
    with jax.enable_x64(True):
        values, places = jax.jit(top, static_argnums=1)(np.zeros((0, 100), np.float32), 3)
        assert values.shape == places.shape == (0, 3)
        values, places = jax.jit(top, static_argnums=1)(np.zeros((2, 100), np.float32), 0)
        assert values.shape == places.shape == (2, 0)
