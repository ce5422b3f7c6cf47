"""Scalars as Python code give, to the bit, what compiled code gives."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import thalweg.ops  # noqa: F401
from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation
from thalweg.kernel import scalars
from thalweg.kernel.checks import collecting, set_op
from thalweg.kernel.trace import apply_kernel

TYPES = (dtypes.bool, dtypes.int8, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.float32, dtypes.float64)
UNARY = ("Identity", "LogicalNot", "Neg", "Square", "StopGradient")
BINARY = (
    "Add", "AddV2", "Div", "Equal", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "Less", "LessEqual",
    "LogicalAnd", "LogicalOr", "Maximum", "Minimum", "Mul", "NotEqual", "RealDiv", "Sub",
)  # fmt: skip


def values(dtype: DType) -> list[Any]:
    kind = np.dtype(dtype.as_numpy_dtype)
    if kind.kind == "b":
        return [np.True_, np.False_]
    if kind.kind == "f":
        return [kind.type(v) for v in (0.0, -0.0, 1.5, -2.25, 1e30, 0.1, np.inf, np.nan)]
    info = np.iinfo(kind)
    return [kind.type(v) for v in dict.fromkeys((3, 7, 1, info.max, info.min, 100, max(info.min, -1), max(info.min, -5)))]


def compiled(op: Operation) -> Callable[..., Any]:
    record = op._record

    def run(*given: Any) -> Any:
        with collecting():
            set_op(op)
            return apply_kernel(record.kernel, record.definition, op._attrs, list(given))[0]

    return jax.jit(run)


def check(op: Operation, inputs: list[list[Any]]) -> None:
    assert scalars.is_scalar(op)
    slots = [(t, i) for i, t in enumerate(op._inputs)]
    function = scalars.scalar_function([op], [], slots, [(op._outputs[0], len(slots))])
    reference = compiled(op)
    for given in itertools.product(*inputs):
        if op.type in ("FloorDiv", "FloorMod") and given[1] == 0:
            continue  # the planner takes constant divisors only
        found = [*given, None]
        with np.errstate(all="ignore"):
            function(found, None)
        with jax.enable_x64(True):
            expected = np.asarray(reference(*given))
        assert isinstance(found[-1], np.generic) and found[-1].dtype == expected.dtype
        assert found[-1].tobytes() == expected.tobytes() or (found[-1] != found[-1] and expected != expected), given


def make(kind: str, types: list[DType], **attrs: Any) -> Operation | None:
    """A node over scalars of these types; None where the op doesn't take them, or has no expression."""
    with Graph().as_default():
        inputs = [emit("Placeholder", dtype=t, shape=[]) for t in types]
        try:
            op = emit.operation(kind, *inputs, **attrs)
        except (TypeError, ValueError):
            return None
    return op if scalars.is_scalar(op) else None


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize("kind", UNARY + BINARY)
def test_arithmetic(kind: str, dtype: DType) -> None:
    n = 1 if kind in UNARY else 2
    op = make(kind, [dtype] * n)
    if op is not None:
        check(op, [values(dtype)] * n)


@pytest.mark.parametrize("source", TYPES, ids=lambda t: t.name)
def test_casts(source: DType) -> None:
    for target in TYPES:
        op = make("Cast", [source], DstT=target)
        if op is not None:
            check(op, [values(source)])


def test_select() -> None:
    op = make("Select", [dtypes.bool, dtypes.float32, dtypes.float32])
    assert op is not None
    check(op, [values(dtypes.bool), values(dtypes.float32), values(dtypes.float32)])


def test_what_is_no_scalar_arithmetic() -> None:
    assert make("Exp", [dtypes.float32]) is None
    assert make("Add", [dtypes.bfloat16, dtypes.bfloat16]) is None
    assert make("Cast", [dtypes.float32], DstT=dtypes.int32) is None
    with Graph().as_default():
        vector = emit("Placeholder", dtype=dtypes.int32, shape=[3])
        assert not scalars.is_scalar(emit.operation("Neg", vector))
