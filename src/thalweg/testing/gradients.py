"""Gradients checked against differences, in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from thalweg.client.session import Session
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Tensor
from thalweg.library.framework import placeholder
from thalweg.library.gradient_checker import compute_gradient


def assert_gradients_match(
    function: Callable[..., Any],
    *inputs: Any,
    delta: float = 1e-3,
    rtol: float = 1e-3,
    atol: float = 1e-3,
    wrt: Sequence[int] | None = None,
) -> None:
    """AssertionError where the gradients of function(*tensors) differ from central differences at `inputs`.

    inputs: NumPy arrays (float64 gives the sharpest check). function: builds a graph and returns a tensor.
    wrt: the positions of the inputs to differentiate by; all by default. Runs in a graph of its own.
    """
    values = [np.asarray(v) for v in inputs]
    with Graph().as_default(), Session() as session:
        tensors = [placeholder(v.dtype, v.shape) for v in values]
        y: Tensor = convert_to_tensor(function(*tensors))
        feeds = dict(zip(tensors, values, strict=True))
        shape = session.run(y, feeds).shape
        for i in range(len(values)) if wrt is None else wrt:
            others = {t: v for t, v in feeds.items() if t is not tensors[i]}
            theoretical, numeric = compute_gradient(
                tensors[i], values[i].shape, y, shape, values[i], delta, extra_feed_dict=others
            )
            message = f"the gradient by input {i} differs from differences"
            np.testing.assert_allclose(theoretical, numeric, rtol, atol, err_msg=message)
