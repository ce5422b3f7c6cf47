"""Clusters and op-by-op mode agree on random graphs with variables, control edges and several dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import thalweg.ops  # noqa: F401
from thalweg.client.session import Session, config_pb2
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.library.script_ops import py_func

UNARY = {
    "float32": ["Neg", "Tanh", "Sigmoid", "Square", "Abs", "Identity", "Sin"],
    "float64": ["Neg", "Tanh", "Square", "Abs", "Identity", "Cos"],
    "int32": ["Neg", "Abs", "Square", "Identity"],
    "int64": ["Neg", "Abs", "Identity"],
}
BINARY = {
    "float32": ["Add", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference"],
    "float64": ["Add", "Sub", "Mul", "Maximum"],
    "int32": ["Add", "Sub", "Mul", "Maximum", "FloorDiv"],
    "int64": ["Add", "Sub", "Minimum"],
}
DTYPES = sorted(UNARY)


@st.composite
def programs(draw: Any) -> list[tuple[Any, ...]]:
    """A list of statements; each refers to earlier ones by numbers that are taken modulo what is there."""
    number = st.integers(0, 10**6)
    statement = st.one_of(
        st.tuples(st.just("unary"), number, number),
        st.tuples(st.just("binary"), number, number, number),
        st.tuples(st.just("cast"), number, st.sampled_from(DTYPES)),
        st.tuples(st.just("read"), number),
        st.tuples(st.just("update"), number, number, st.sampled_from(["AssignAdd", "AssignSub", "Assign"])),
        st.tuples(st.just("after"), number, number, number),
        st.tuples(st.just("sum"), number),
        st.tuples(st.just("host"), number),
        st.tuples(st.just("gather"), number, number),
        st.tuples(st.just("later"), number),
    )
    return draw(st.lists(statement, min_size=3, max_size=25))


class Builder:
    """Builds a graph from statements; the same graph for the same statements."""

    def __init__(self, statements: list[tuple[Any, ...]]) -> None:
        self.graph = Graph()
        self.values: list[Any] = []
        self.variables: list[Any] = []
        self.targets: list[Any] = []
        self.feeds: dict[Any, Any] = {}
        with self.graph.as_default():
            self._start()
            for statement in statements:
                getattr(self, statement[0])(*statement[1:])

    def _start(self) -> None:
        rng = np.random.default_rng(5)
        self.initial = []
        for dtype in DTYPES:
            x = emit("Placeholder", dtype=dtype, shape=[2, 3])
            value = rng.integers(-4, 5, (2, 3)).astype(dtype) if "int" in dtype else rng.standard_normal((2, 3)).astype(dtype)
            self.feeds[x] = value
            self.values.append(x)
            v = emit("VariableV2", dtype=dtype, shape=[2, 3])
            self.variables.append(v)
            self.initial.append(emit.operation("Assign", v, np.ones((2, 3), dtype)))

    def _pick(self, n: int, dtype: Any = None) -> Any:
        among = [v for v in self.values if dtype is None or v.dtype == dtype]
        return among[n % len(among)]

    def unary(self, a: int, which: int) -> None:
        x = self._pick(a)
        names = UNARY[x.dtype.name]
        self.values.append(emit(names[which % len(names)], x))

    def binary(self, a: int, b: int, which: int) -> None:
        x = self._pick(a)
        y = self._pick(b, x.dtype)
        names = BINARY[x.dtype.name]
        name = names[which % len(names)]
        if name == "FloorDiv":
            y = emit("Add", emit("Abs", y), np.array(1, x.dtype.as_numpy_dtype))
        self.values.append(emit(name, x, y))

    def cast(self, a: int, dtype: str) -> None:
        x = emit("Tanh", self._pick(a)) if self._pick(a).dtype.is_floating else self._pick(a)
        self.values.append(emit("Cast", x, DstT=dtype))

    def read(self, a: int) -> None:
        self.values.append(emit("Identity", self.variables[a % len(self.variables)]))

    def update(self, a: int, b: int, kind: str) -> None:
        v = self.variables[a % len(self.variables)]
        x = self._pick(b, v.dtype.base_dtype)
        if x.dtype.is_floating:
            x = emit("Tanh", x)
        self.targets.append(emit.operation(kind, v, x))

    def after(self, a: int, b: int, c: int) -> None:
        """A value that waits for an update."""
        if self.targets:
            with self.graph.control_dependencies([self.targets[a % len(self.targets)]]):
                if c % 2:
                    self.read(b)
                else:
                    self.values.append(emit("Identity", self._pick(b)))

    def sum(self, a: int) -> None:
        x = self._pick(a)
        self.values.append(emit("Add", x, emit("Sum", x, [0])))

    def host(self, a: int) -> None:
        """Through a node that is never compiled."""
        x = self._pick(a, "int32")
        unique, index = emit("Unique", emit("Reshape", x, [-1]))
        self.values.append(emit("Reshape", emit("GatherV2", unique, index, 0), [2, 3]))

    def later(self, a: int) -> None:
        """Through a function of Python, whose kernel is asynchronous."""
        x = self._pick(a)
        y = py_func(lambda x: x, [x], x.dtype)
        y.set_shape([2, 3])
        self.values.append(y)

    def gather(self, a: int, b: int) -> None:
        """With a condition that always holds, but isn't known to."""
        x = self._pick(a)
        rows = emit("FloorMod", emit("Sum", emit("Abs", self._pick(b, "int32")), [1]), 2)
        self.values.append(emit("GatherV2", x, rows, 0))


def run(statements: list[tuple[Any, ...]], level: int) -> list[Any]:
    b = Builder(statements)
    config = config_pb2.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    results = []
    with Session(graph=b.graph, config=config) as session:
        session.run(b.initial)
        fetches = [v for v in b.values if v.graph.is_fetchable(v)]
        for _ in range(2):
            results.extend(session.run([fetches, b.targets], b.feeds)[0])
        results.extend(session.run(b.variables))
    return results


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_modes_agree(statements: list[tuple[Any, ...]]) -> None:
    optimizer = config_pb2.OptimizerOptions
    clustered, single = run(statements, optimizer.DEFAULT), run(statements, optimizer.OFF)
    for a, b in zip(clustered, single, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)
