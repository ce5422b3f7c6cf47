"""Kernels with two forms, traced and NumPy: both give the same."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import jax
import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import rows
import thalweg.ops  # noqa: F401
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.registry import lookup
from thalweg.kernel import checks
from thalweg.kernel.convention import group_inputs, kernel_attrs

FAMILIES = (
    "aggregate",
    "comparison",
    "complex_parts",
    "conversion",
    "elementwise_binary",
    "elementwise_unary",
    "reductions",
    "scan",
)
ROWS = [r for f in FAMILIES for r, *_ in rows.load(f) if r.error is None and lookup(r.op).kernel.host is not None]
HALVES = ("float16", "bfloat16")


def _numbers(dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Values of a type, the awkward ones among them."""
    if dtype == np.bool_:
        return rng.integers(0, 2, 12).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.concatenate([rng.integers(0 if dtype.kind == "u" else -6, 7, 8), [info.max, info.min, 1, 0]]).astype(dtype)
    values = np.concatenate([rng.normal(size=6) * 3, [0.0, -0.0, 0.5, -2.5, np.inf, np.nan]])
    if dtype.kind == "c":
        return (rng.normal(size=12) + 1j * rng.normal(size=12)).astype(dtype)
    return values.astype(dtype)


def _both(op: str, values: list[np.ndarray], attrs: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    record = lookup(op)
    kernel, definition = record.kernel, record.definition
    with Graph().as_default():
        grouped = group_inputs(definition, {**attrs, "N": len(values)}, values)
        node = emit.operation(op, *grouped, **attrs)
    known = node._attrs
    host = kernel.host(*group_inputs(definition, known, values), **kernel_attrs(kernel.host_attrs, known))
    names = [a.name for a in definition.inputs]
    still = [definition.inputs[0].is_list is False and names[i] in kernel.static for i in range(len(values))]

    def traced(*moving: np.ndarray) -> list[Any]:
        left = iter(moving)
        given = [v if s else next(left) for v, s in zip(values, still, strict=True)]
        checks.set_op(node)
        with checks.collecting():
            result = kernel.fn(*group_inputs(definition, known, given), **kernel_attrs(kernel.fn_attrs, known))
        return list(result) if isinstance(result, list | tuple) else [result]

    with jax.enable_x64(True):
        out = jax.jit(traced)(*[v for v, s in zip(values, still, strict=True) if not s])
    return [np.asarray(o) for o in out], list(host) if isinstance(host, list | tuple) else [host]


def _compare(op: str, values: list[np.ndarray], attrs: dict[str, Any]) -> None:
    for traced, host in zip(*_both(op, values, attrs), strict=True):
        assert isinstance(host, np.ndarray)
        assert traced.dtype == host.dtype and traced.shape == host.shape, (traced.dtype, host.dtype, traced.shape, host.shape)
        if host.dtype.kind in "biu":
            np.testing.assert_array_equal(traced, host)
            continue
        tolerance = 2e-2 if host.dtype.name in HALVES else 1e-5
        wide = np.complex128 if host.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(traced.astype(wide), host.astype(wide), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("row", ROWS, ids=[r.name for r in ROWS])
def test_rows(row: Any) -> None:
    values = [np.asarray(v) for group in row.inputs for v in (group if isinstance(group, list) else [group])]
    if any(v.dtype == object for v in values):
        pytest.skip("strings have one form only")
    _compare(row.op, values, row.attrs)


UNARY = sorted({r.op for r in ROWS if len(r.inputs) == 1 and not r.attrs and r.op not in ("AddN", "Cast")})
BINARY = sorted({r.op for f in ("elementwise_binary", "comparison") for r, *_ in rows.load(f) if len(r.inputs) == 2} & {r.op for r in ROWS})


@pytest.mark.parametrize("op", [*UNARY, *BINARY])
def test_awkward_values(op: str) -> None:
    definition = lookup(op).definition
    allowed = definition.attr_by_name["T"].allowed_list if "T" in definition.attr_by_name else ()
    rng = np.random.default_rng(0)
    for dtype in allowed:
        if dtype.name not in ("int8", "int32", "uint8", "int64", "float32", "float64"):
            continue
        values = [_numbers(np.dtype(dtype.as_numpy_dtype), rng) for _ in definition.inputs]
        if len(values) == 2 and dtype.is_integer:
            if "Div" in op or "Mod" in op:
                values[1] = np.where(values[1] == 0, 3, values[1]).astype(values[1].dtype)
            if op == "Pow":
                values[1] = np.abs(values[1] % 7).astype(values[1].dtype)
        if op in ("BroadcastGradientArgs", "RealDiv"):
            continue
        _compare(op, values, {})


@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool", "bfloat16"])
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64", "int64", "uint8", "bool"])
def test_casts(source: str, target: str) -> None:
    from ml_dtypes import bfloat16

    kind = np.dtype(bfloat16 if source == "bfloat16" else source)
    values = np.array([0, 1.7, -1.7, 100.5, 300, -300, 70000, 1e10, -1e10, 1e30, -1e30, np.inf, -np.inf, np.nan])
    if kind.kind in "iub":
        values = np.array([0, 1, -1, 127, 128, 255, 256, -300, 2**31, 2**40])
    with np.errstate(all="ignore"):
        _compare("Cast", [values.astype(kind)], {"DstT": target})
