"""Gradients of running products where TensorFlow's are wrong: at zeros, and of second order."""

from __future__ import annotations

import numpy as np
import pytest

import thalweg.ops  # noqa: F401
from thalweg.autodiff.gradients import gradients
from thalweg.client.session import Session
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph

INPUTS = ([1.0, 2, 4], [0, 2, 3], [2, 3, 0], [2, 0, 0, 3], [0], [-1, 0, 2, 0.5])


def _total(x: np.ndarray, weights: np.ndarray, exclusive: bool, reverse: bool) -> float:
    x = x[::-1] if reverse else x
    products = np.cumprod(x)
    if exclusive:
        products = np.concatenate([[1.0], products[:-1]])
    return float(((products[::-1] if reverse else products) * weights).sum())


def _slope(f, x: np.ndarray) -> np.ndarray:
    """The gradient of f, which is linear in every element: a central difference is exact."""
    steps = np.eye(len(x)) * 0.5
    return np.array([f(x + s) - f(x - s) for s in steps])


def _gradient(x: np.ndarray, weights: np.ndarray, exclusive: bool, reverse: bool) -> np.ndarray:
    return _slope(lambda u: _total(u, weights, exclusive, reverse), x)


def _second(x: np.ndarray, weights: np.ndarray, exclusive: bool, reverse: bool) -> np.ndarray:
    """The gradient of the gradient's product with weights + 1."""
    return _slope(lambda u: float(_gradient(u, weights, exclusive, reverse) @ (weights + 1)), x)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumprod_gradient(exclusive: bool, reverse: bool) -> None:
    with Graph().as_default() as graph:
        x = emit("Placeholder", dtype="float64", shape=[None])
        w = emit("Placeholder", dtype="float64", shape=[None])
        v = emit("Placeholder", dtype="float64", shape=[None])
        y = emit("Cumprod", x, 0, exclusive=exclusive, reverse=reverse)
        (first,) = gradients([y], [x], grad_ys=[w])
        (second,) = gradients([first], [x], grad_ys=[v])
    with Session(graph=graph) as session:
        for values in INPUTS:
            at = np.array(values)
            weights = np.cos(np.arange(len(at)))
            got = session.run([first, second], {x: at, w: weights, v: weights + 1})
            np.testing.assert_allclose(got[0], _gradient(at, weights, exclusive, reverse), atol=1e-12)
            np.testing.assert_allclose(got[1], _second(at, weights, exclusive, reverse), atol=1e-9)
