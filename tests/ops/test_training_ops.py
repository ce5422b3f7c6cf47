"""Optimizer ops against TensorFlow's (tests/golden/record_training_ops.py)."""

from __future__ import annotations

import pathlib
import re
import sys
from typing import Any

import jax
import numpy as np
import pytest

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))
import arrays  # noqa: E402
import training_cases  # noqa: E402

import thalweg.ops  # noqa: E402, F401
from thalweg.base import dtypes  # noqa: E402
from thalweg.client.session import Session  # noqa: E402
from thalweg.graph.emitter import emit  # noqa: E402
from thalweg.graph.graph import Graph  # noqa: E402
from thalweg.graph.registry import all_records, lookup  # noqa: E402
from thalweg.kernel import checks  # noqa: E402

DATA, META = arrays.load(GOLDEN / "data" / "training_ops.npz")
OPS = META["ops"]
#: TensorFlow computes reciprocal square roots of float32 in fewer bits
TOLERANCE = {"float32": 2e-6, "float64": 1e-12, "float16": 4e-3}


def variable(value: np.ndarray, name: str, resource: bool) -> tuple[Any, Any]:
    """A variable's handle and its initialiser."""
    dtype = dtypes.as_dtype(value.dtype)
    if resource:
        handle = emit("VarHandleOp", dtype=dtype, shape=value.shape, shared_name=name)
        return handle, emit("AssignVariableOp", handle, emit.constant(value, dtype))
    ref = emit("VariableV2", dtype=dtype, shape=value.shape, shared_name=name)
    return ref, emit("Assign", ref, emit.constant(value, dtype)).op


class Case:
    """One case in a graph: its variables, its initialisers, its update."""

    def __init__(self, op: str, case: str, overrides: dict[str, Any], values: dict[str, np.ndarray]) -> None:
        resource = op.startswith("Resource")
        names = [a.name for a in lookup(op).definition.inputs]
        self.slots = training_cases.slots_of(names)
        self.expected = DATA.get(f"{op}.{case}")
        if self.expected is None:
            self.expected = DATA[f"{op.removeprefix('Resource')}.{case}"]
        made = {s: variable(values[s], f"{case}/{s}", resource) for s in self.slots}
        self.initializers = [i for _, i in made.values()]
        arguments = [
            made[n][0] if n in made else emit.constant(values[n], dtypes.as_dtype(values[n].dtype))
            for n in names
        ]
        attrs = {k: v for k, v in overrides.items() if k not in names}
        self.update = emit.operation(op, *arguments, **attrs)
        self.reads = [
            emit("ReadVariableOp", made[s][0], dtype=values[s].dtype) if resource else made[s][0]
            for s in self.slots
        ]


@pytest.mark.parametrize("op", [n for name in OPS for n in (name, f"Resource{name}") if n in all_records()])
def test_new_values(op: str) -> None:
    recorded = OPS.get(op) or OPS[op.removeprefix("Resource")]
    names = [a.name for a in lookup(op).definition.inputs]
    with Graph().as_default() as graph:
        cases = {
            case: Case(op, case, overrides, training_cases.inputs_of(names, dtype, overrides, rows))
            for case, dtype, overrides, rows in recorded
        }
        with Session(graph=graph) as session:
            session.run([i for c in cases.values() for i in c.initializers])
            session.run([c.update for c in cases.values()])
            for name, case in cases.items():
                got = session.run(case.reads)
                for slot, value, wanted in zip(case.slots, got, case.expected, strict=True):
                    assert value.dtype == wanted.dtype
                    tolerance = TOLERANCE[wanted.dtype.name]
                    np.testing.assert_allclose(
                        value, wanted, rtol=tolerance, atol=tolerance, err_msg=f"{op}.{name} {slot}"
                    )


def test_every_op_is_recorded() -> None:
    mine = {n for n in all_records() if "Apply" in n and "Accumulator" not in n}
    assert mine == {n for name in OPS for n in (name, f"Resource{name}") if n in mine}
    assert set(OPS) <= mine


@pytest.mark.parametrize(
    ("op", "arguments", "says"),
    [
        ("ApplyGradientDescent", ([4, 3], 0.1, [4, 2]), "must be equal, but are 3 and 2"),
        ("ApplyGradientDescent", ([4, 3], [0.1], [4, 3]), "must be rank 0 but is rank 1"),
        ("ApplyMomentum", ([4, 3], [3, 3], 0.1, [4, 3], 0.9), "must be equal, but are 4 and 3"),
        ("SparseApplyAdagrad", ([4, 3], [4, 3], 0.1, [2, 2], "ids"), "must be equal, but are 3 and 2"),
        ("SparseApplyAdagrad", ([4, 3], [4, 3], 0.1, [3, 3], "ids"), "must be equal, but are 2 and 3"),
    ],
)
def test_shapes_that_do_not_fit(op: str, arguments: tuple[Any, ...], says: str) -> None:
    refs = [a.is_ref for a in lookup(op).definition.inputs]
    with Graph().as_default():
        values = []
        for is_ref, argument in zip(refs, arguments, strict=True):
            if is_ref:
                values.append(emit("VariableV2", shape=argument, dtype=dtypes.float32))
            elif argument == "ids":
                values.append(emit.constant([0, 1], dtypes.int32))
            elif isinstance(argument, list) and isinstance(argument[0], int):
                values.append(emit.constant(np.zeros(argument, np.float32)))
            else:
                values.append(emit.constant(argument, dtypes.float32))
        with pytest.raises(ValueError, match=says):
            emit(op, *values)


@pytest.mark.parametrize(
    ("op", "tables", "rest"),
    [
        ("ScatterAdd", 1, ["indices", "rows"]),
        ("ScatterUpdate", 1, ["indices", "rows"]),
        ("ScatterDiv", 1, ["indices", "rows"]),
        ("SparseApplyAdagrad", 2, ["scalar", "rows", "indices"]),
        ("SparseApplyMomentum", 2, ["scalar", "rows", "indices", "scalar"]),
    ],
)
def test_rows_change_in_place(op: str, tables: int, rest: list[str]) -> None:
    """A step that changes some rows must not cost what the table costs: XLA may not copy it."""
    kernel = lookup(op).kernel
    defaults = {a.name: a.default for a in lookup(op).definition.attrs if a.has_default}
    attrs = {n: defaults[n] for n in kernel.fn_attrs}
    specs = {
        "scalar": jax.ShapeDtypeStruct((), np.float32),
        "rows": jax.ShapeDtypeStruct((32, 8), np.float32),
        "indices": jax.ShapeDtypeStruct((32,), np.int32),
    }
    table = jax.ShapeDtypeStruct((4096, 8), np.float32)
    node = type("Node", (), {"type": op, "name": op})()

    def update(*values: Any) -> Any:
        with checks.collecting():
            checks.set_op(node)
            return kernel.fn(*values, **attrs)

    with jax.enable_x64(True):
        jitted = jax.jit(update, donate_argnums=tuple(range(tables)))
        text = jitted.lower(*[table] * tables, *(specs[r] for r in rest)).compile().as_text()
    assert "f32[4096,8]" in text
    assert not [line for line in text.splitlines() if re.search(r"= f32\[4096,8\]\S* copy\(", line)]
