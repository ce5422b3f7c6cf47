"""Results do not depend on placement: random graphs on 1 to 4 devices agree with the same graph on one."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import thalweg as tf
from thalweg.client.session import plan_options
from thalweg.graph.graph import Graph

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "plan"))
from test_loops import _build as build_loops
from test_loops import _programs as loop_programs
from test_random_graphs import Builder, programs


def config(devices: int, loops: bool = True, level: int | None = None) -> Any:
    made = tf.ConfigProto(device_count={"CPU": devices}, allow_soft_placement=True, operation_timeout_in_ms=60_000)
    if level is not None:
        made.graph_options.optimizer_options.global_jit_level = level
    if not loops:
        rewrite = made.graph_options.rewrite_options
        rewrite.loop_optimization = rewrite.OFF
    assert plan_options(made).loops is loops
    return made


class Scatter:
    """Puts each operation on a device by a number drawn for it: the same for the same numbers."""

    def __init__(self, devices: int, seed: int, sticky: float, asked: float) -> None:
        self._random = np.random.default_rng(seed)
        self._devices, self._sticky, self._asked = devices, sticky, asked
        self._last = 0

    def __call__(self, op: Any) -> str:
        if op.device:
            return ""
        if self._random.random() >= self._sticky:
            self._last = int(self._random.integers(self._devices))
        return f"/device:CPU:{self._last}" if self._random.random() < self._asked else ""


def scattered(graph: Graph, devices: int, seed: int, sticky: float, asked: float = 1.0) -> None:
    """Asks for a random device for nodes of a finished graph; those that ask for none are left to the placer."""
    scatter = Scatter(devices, seed, sticky, asked)
    for op in graph.get_operations():
        op._set_device(scatter(op))


def equal(ours: list[Any], theirs: list[Any]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=5e-5, atol=2e-5)


#: devices, seed, how often a node is where the one before is, and how often a node asks for a device
placements = st.tuples(
    st.integers(2, 4), st.integers(0, 10**6), st.sampled_from([0.0, 0.6, 0.9]), st.sampled_from([1.0, 0.4, 0.1])
)
Placement = tuple[int, int, float, float]


def run_statements(statements: Any, placement: Placement | None, level: int | None) -> list[Any]:
    b = Builder(statements)
    if placement is not None:
        scattered(b.graph, *placement)
    results = []
    with tf.Session(graph=b.graph, config=config(placement[0] if placement else 1, level=level)) as session:
        session.run(b.initial)
        fetches = [v for v in b.values if v.graph.is_fetchable(v)]
        for _ in range(2):
            results.extend(session.run([fetches, b.targets], b.feeds)[0])
        results.extend(session.run(b.variables))
    return results


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), placements, st.booleans())
def test_graphs_with_state_and_control_edges(statements: Any, placement: Placement, cluster: bool) -> None:
    level = None if cluster else tf.OptimizerOptions.OFF
    equal(run_statements(statements, placement, level), run_statements(statements, None, level))


def run_loops(make: Callable[[Any, Any], list[Any]], placement: Placement | None, loops: bool) -> list[Any]:
    with Graph().as_default() as graph:
        a, b = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
        fetches = make(a, b)
        if placement is not None:
            scattered(graph, *placement)
        values = np.random.default_rng(5).normal(size=(2, 3)).astype(np.float32)
        with tf.Session(graph=graph, config=config(placement[0] if placement else 1, loops)) as session:
            return [v for k in (1.0, -1.0) for v in session.run(fetches, {a: values[0] * k, b: values[1]})]


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(loop_programs, placements, st.booleans(), st.booleans())
def test_loops_and_conditionals(program: Any, placement: Placement, loops: bool, gradients: bool) -> None:
    def make(a: Any, b: Any) -> list[Any]:
        y = build_loops(program, a, b)
        return [y, *(g for g in tf.gradients(y, [a, b]) if g is not None)] if gradients else [y]

    equal(run_loops(make, placement, loops), run_loops(make, None, loops))


@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize("seed", range(6))
def test_variables_in_loops(devices: int, seed: int) -> None:
    """Reads and updates of variables in loops and branches, and control edges between devices in them."""

    def results(n: int) -> list[Any]:
        with Graph().as_default() as graph:
            v = tf.Variable(np.ones(3, np.float32), name="v")
            r = tf.Variable(np.ones(3, np.float32), name="r", use_resource=True)
            start = tf.global_variables_initializer()

            def body(i: Any, x: Any) -> Any:
                add = tf.assign_add(v, x)
                with tf.control_dependencies([add]):
                    y = tf.tanh(x) + 0.5
                with tf.control_dependencies([r.assign_add(y)]):
                    z = tf.cond(tf.equal(i % 2, 0), lambda: y + r.read_value(), lambda: tf.sin(y))
                return i + 1, z

            x = tf.while_loop(lambda i, x: i < 6, body, [tf.constant(0), tf.ones([3])], parallel_iterations=3)[1]
            with tf.control_dependencies([x]):
                after = [tf.identity(v), r.read_value()]
            if n > 1:
                scattered(graph, n, seed, 0.3)
            with tf.Session(config=config(n)) as session:
                session.run(start)
                return [*session.run([x, *after]), *session.run([x, v, r])]

    equal(results(devices), results(1))
