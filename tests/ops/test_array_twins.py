"""Array kernels compute the same traced as on the host, for every row of an op that has both forms."""

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
from thalweg.base import dtypes
from thalweg.base.errors import InvalidArgumentError
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.registry import lookup
from thalweg.kernel import checks
from thalweg.kernel.convention import Kind, group_inputs, kernel_attrs
from thalweg.kernel.trace_names import input_names

FAMILIES = (
    "diagonals",
    "filling",
    "gathering",
    "identity",
    "joining",
    "moving",
    "padding",
    "partitioning",
    "scattering",
    "searching",
    "shapes",
    "slicing",
    "space",
    "sparse_dense",
    "strided_slices",
)


def has_twins(row: Any) -> bool:
    kernel = lookup(row.op).kernel
    return kernel.kind is Kind.TRACEABLE and kernel.host is not None


ALL = [
    r
    for f in FAMILIES
    for r, *_ in rows.load(f)
    if has_twins(r) and r.error in (None, "InvalidArgumentError")
]


def build(row: Any) -> tuple[Any, list[np.ndarray]]:
    """The node of a row, and its input values in order."""
    values: list[np.ndarray] = []
    arguments: list[Any] = []
    with Graph().as_default():
        for i, value in enumerate(row.inputs):
            tensors = []
            for v in value if isinstance(value, list) else [value]:
                v = np.asarray(v)
                values.append(v)
                dtype = dtypes.string if v.dtype == object else dtypes.as_dtype(v.dtype)
                known = i in row.const
                tensors.append(
                    emit.constant(v, dtype) if known else emit("Placeholder", dtype=dtype, shape=v.shape)
                )
            arguments.append(tensors if isinstance(value, list) else tensors[0])
        return emit.operation(row.op, *arguments, **row.attrs), values


def run_host(op: Any, values: list[np.ndarray]) -> list[Any]:
    kernel, definition = op._record.kernel, op._record.definition
    checks.set_op(op)
    result = kernel.host(
        *group_inputs(definition, op._attrs, values), **kernel_attrs(kernel.host_attrs, op._attrs)
    )
    return list(result) if isinstance(result, list | tuple) else [result]


def run_traced(op: Any, values: list[np.ndarray]) -> list[Any]:
    """fn under jit, with every input traced that may be; broken conditions are raised."""
    kernel, definition = op._record.kernel, op._record.definition
    static = kernel.static_names(op)
    traced = [i for i, n in enumerate(input_names(op)) if n.partition(".")[0] not in static]
    found: list[checks.Check] = []

    def function(*arrays: Any) -> tuple[list[Any], list[Any]]:
        every = list(values)
        for i, a in zip(traced, arrays, strict=True):
            every[i] = a
        with checks.collecting() as collected:
            checks.set_op(op)
            result = kernel.fn(
                *group_inputs(definition, op._attrs, every), **kernel_attrs(kernel.fn_attrs, op._attrs)
            )
        found[:] = collected
        return (list(result) if isinstance(result, list | tuple) else [result]), [
            (c.ok, c.values) for c in collected
        ]

    with jax.enable_x64(True):
        outputs, conditions = jax.jit(function)(*[values[i] for i in traced])
    for check, (ok, seen) in zip(found, conditions, strict=True):
        if not bool(ok):
            check.raise_with([np.asarray(v) for v in seen])
    return [np.asarray(o) for o in outputs]


@pytest.mark.parametrize("row", ALL, ids=[r.name for r in ALL])
def test_traced_is_host(row: Any) -> None:
    op, values = build(row)
    kinds = [np.dtype(t.dtype.as_numpy_dtype) for t in op.outputs]
    if row.error is not None:
        with pytest.raises(InvalidArgumentError) as on_host:
            run_host(op, values)
        with pytest.raises(InvalidArgumentError) as in_trace:
            run_traced(op, values)
        assert str(on_host.value) == str(in_trace.value)
        return
    host = run_host(op, values)
    assert all(isinstance(v, np.ndarray | np.generic) for v in host)
    assert [v.dtype for v in host] == kinds
    if any(v.dtype == object for v in values):
        return
    traced = run_traced(op, values)
    assert [v.dtype for v in traced] == kinds
    for a, b in zip(host, traced, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(np.asarray(a, b.dtype).astype(b.dtype), b, rtol=1e-6, atol=1e-6)
