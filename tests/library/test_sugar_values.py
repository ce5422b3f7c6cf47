"""The sugar of the library computes what TensorFlow computes (recorded with the graphs: golden/record_sugar.py)."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thalweg as tf

HERE = Path(__file__).parent


def _load(name: str, path: Path) -> Any:
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


graphs = _load("sugar_graphs", HERE / "test_sugar_graphs.py")


def _cases() -> list[tuple[str, str]]:
    return [
        (family, code)
        for family, code in graphs.CASES
        if isinstance(graphs.RECORDED[family][code].get("values"), list)
    ]


def _array(recorded: Any, like: np.ndarray) -> np.ndarray:
    if like.dtype.kind == "c":
        pairs = np.asarray(recorded, np.float64).reshape(-1, 2)
        return (pairs[:, 0] + 1j * pairs[:, 1]).reshape(like.shape)
    if like.dtype.kind in "OS":
        return np.array([s.encode() for s in np.ravel(recorded)], object).reshape(np.shape(recorded))
    return np.asarray(recorded)


@pytest.mark.parametrize(("family", "code"), _cases(), ids=[f"{f}:{c[:60]}" for f, c in _cases()])
def test_values(family: str, code: str) -> None:
    try:
        graph, result, feeds = graphs.build(code)
    except graphs.UnimplementedError as e:
        assert graphs._missing(e), e
        return
    with graph.as_default(), tf.Session() as session:
        tensors = [t for t in graphs.flat(result) if isinstance(t, tf.Tensor)]
        computed = session.run(tensors, feeds)
    for got, expected in zip(computed, graphs.RECORDED[family][code]["values"], strict=True):
        if expected is None:  # too large to record
            continue
        got = np.asarray(got)
        wanted = _array(expected, got)
        if got.size == 0:  # a list can't say more of an empty array than that
            assert wanted.size == 0
            continue
        assert got.shape == wanted.shape
        if got.dtype.kind in "fcV":
            tolerance = 1e-2 if got.dtype.itemsize == 2 else 2e-5
            np.testing.assert_allclose(got.astype(np.complex128), wanted.astype(np.complex128), tolerance, 1e-6)
        else:
            np.testing.assert_array_equal(got, wanted)
