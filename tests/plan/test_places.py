"""Plans with loops and branches: places of nodes, and clusters that keep to them."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np
import pytest

import thalweg.ops  # noqa: F401
from thalweg.base import dtypes
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.text import parse
from thalweg.plan.pipeline import Plan, PlanOptions, make_plan
from thalweg.plan.places import Place, find_places

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "runtime"))
from loops import loop

BRANCH = """p = Placeholder[dtype=bool, shape=[]](); x = Placeholder[dtype=float, shape=[4]]()
s = Switch(x, p); f = Exp(s); t = Neg(s:1); t2 = Exp(t); m = Merge(f, t2); y = Tanh(m)"""


def live(graph: Graph, name: str) -> set[tuple[str, int]]:
    place: Place | None = graph.get_operation_by_name(name)._control_flow_context
    return set() if place is None else {(what.name, side) for what, side in place.live}


def planned(graph: Graph, fetch: str, feeds: str = "", **options: Any) -> Plan:
    tensors = [graph.get_tensor_by_name(f"{n}:0") for n in fetch.split()]
    given = [graph.get_tensor_by_name(f"{n}:0") for n in feeds.split()]
    return make_plan(graph, given, tensors, [], PlanOptions(check=True, loops=False, **options))


def clusters(plan: Plan) -> list[list[str]]:
    bodies = [op._attrs["body"] for op in plan.graph._ops if op.type == "_Cluster"]
    return sorted([op.name for op in body.nodes] for body in bodies)


def test_conditions_of_a_branch() -> None:
    graph = parse(BRANCH)
    assert find_places(graph)
    assert (live(graph, "f"), live(graph, "t2")) == ({("p:0", 0)}, {("p:0", 1)})
    assert live(graph, "m") == live(graph, "y") == set()


def test_conditions_add_up_and_end_where_both_sides_meet() -> None:
    text = BRANCH + """
    q = Placeholder[dtype=bool, shape=[]](); s2 = Switch(t, q); a = Neg(s2); b = Exp(s2:1)
    m2 = Merge(a, b); c = Neg(m2); m3 = Merge(f, c); d = Exp(m3); three = Merge(f, a, b); odd = Neg(three)"""
    graph = parse(text)
    find_places(graph)
    assert live(graph, "a") == {("p:0", 1), ("q:0", 0)}
    assert live(graph, "c") == {("p:0", 1)}
    assert live(graph, "d") == set()
    assert live(graph, "odd") == {("three", 0)}


def test_graphs_without_control_flow_have_no_places() -> None:
    graph = parse("x = Placeholder[dtype=float](); y = Exp(x)")
    assert not find_places(graph)
    assert all(op._control_flow_context is None for op in graph._ops)


def test_clusters_keep_to_their_side() -> None:
    assert clusters(planned(parse(BRANCH), "y", "p x")) == [["f"], ["t", "t2"], ["y"]]


def test_a_path_through_a_branch_parts_a_cluster() -> None:
    text = BRANCH + "; before = Exp(x); after = Mul(before, y)"
    assert clusters(planned(parse(text), "after", "p x")) == [["f"], ["t", "t2"], ["y", "before", "after"]]
    text = "p0 = Placeholder[dtype=float, shape=[]](); p = Cast[DstT=bool](p0)" + BRANCH[BRANCH.index("\n") :]
    text = text.replace("\n", "\nx = Exp(p0); ")
    assert [c for c in clusters(planned(parse(text), "y", "p0")) if "x" in c] == [["p", "x"]]


def growing() -> Graph:
    """A loop with a counter and a matrix; what is multiplied in the loop is computed before it."""
    graph = Graph()
    with graph.as_default():
        n = emit("Placeholder", dtype=dtypes.int32, shape=[], name="n")
        x = emit("Placeholder", dtype=dtypes.float32, shape=[8, 8], name="x")
        factor = emit("Exp", x, name="factor")

        def body(v: Any, k: Any) -> list[Any]:
            half = emit("Mul", v[1], 0.5, name="half")
            number = emit("Cast", v[0], DstT=dtypes.float32, name="number")
            return [emit("Add", v[0], 1, name="next"), emit("Add", emit("MatMul", half, k[1], name="dot"), number)]

        zero = emit.constant(np.int32(0), name="zero")
        ends = loop(graph, [zero, x], lambda v, k: emit("Less", v[0], k[0], name="less"), body, [n, factor])
        emit("Mul", emit("Tanh", ends[1], name="tanh"), factor, name="result")
    return graph


def test_a_body_is_one_cluster_and_its_counter_runs_on_the_host() -> None:
    plan = planned(growing(), "result", "n x")
    assert clusters(plan) == [
        ["factor"],
        ["loop/half", "loop/dot", "loop/Add"],
        ["loop/less"],
        ["loop/number", "loop/next"],
        ["tanh", "result"],
    ]
    scalar = [op._attrs["body"].nodes[0].name for op in plan.graph._ops if op.type == "_Cluster" and op._attrs["body"].scalar]
    assert sorted(scalar) == ["loop/less", "loop/number"]


def test_what_a_loop_returns_comes_after_all_that_enters_it() -> None:
    """`late` enters the loop as a constant that only the body uses: it can't be in one cluster with `result`."""
    graph = growing()
    with graph.as_default():
        count = graph.get_tensor_by_name("loop/Exit:0")
        emit("Mul", emit("Cast", count, DstT=dtypes.float32, name="cast"), graph.get_tensor_by_name("factor:0"), name="z")
    assert ["factor", "cast", "z"] in clusters(planned(graph, "z", "n x"))  # the matrix isn't needed
    assert ["factor"] in clusters(planned(graph, "z result", "n x"))


@pytest.mark.parametrize("freed", [False, True])
def test_a_merge_that_takes_a_constant_is_always_alive(freed: bool) -> None:
    """The shape in the gradient of a branch that gathers is such a constant: it waits for nothing."""
    graph = Graph()
    with graph.as_default():
        x = emit("Placeholder", dtype=dtypes.float32, shape=[3], name="x")
        _, taken = emit("Switch", x, emit("Placeholder", dtype=dtypes.bool, shape=[], name="p"))
        merged, _ = emit("Merge", [emit.constant(np.zeros(3, np.float32)), emit("Exp", taken, name="side")])
        result = emit("Neg", merged)
    assert find_places(graph, freed)
    assert merged.op._control_flow_context is None and result.op._control_flow_context is None
    assert taken.op._outputs[1]._consumers[0]._control_flow_context is not None


def test_constants_of_a_loop_are_folded_and_stay_there() -> None:
    graph = Graph()
    with graph.as_default():
        n = emit("Placeholder", dtype=dtypes.int32, shape=[], name="n")

        def body(v: Any, k: Any) -> list[Any]:
            two = emit("Add", emit.constant(np.int32(1)), emit.constant(np.int32(1)), name="two")
            return [emit("Add", v[0], 1), two]

        zero = emit.constant(np.int32(0))
        ends = loop(graph, [zero, zero], lambda v, k: emit("Less", v[0], k[0]), body, [n])
        emit("Neg", ends[1], name="result")
    plan = planned(graph, "result", "n")
    two = plan.graph.get_operation_by_name("loop/two")
    assert two.type == "Const" and [c.name for c in two._control_inputs] == ["loop/pivot"]


def test_reads_and_writes_are_ordered_within_a_place_only() -> None:
    text = """v = VariableV2[dtype=float, shape=[4]]()
    """ + BRANCH.replace("t = Neg(s:1)", "t = AssignAdd(v, s:1); r = Identity(v) after(s)")
    plan = planned(parse(text), "y r", "p x", cluster=False)
    for op in plan.graph._ops:
        for control in op._control_inputs:
            assert control._control_flow_context is op._control_flow_context or op.type == "_Retval" or (
                control.type == "Switch"
            )
