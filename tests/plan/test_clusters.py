"""Which nodes share an executable: each rule of plan.mark, on small graphs."""

from __future__ import annotations

import thalweg.ops  # noqa: F401
from thalweg.graph.graph import Graph
from thalweg.graph.text import parse
from thalweg.plan.mark import mark_clusters
from thalweg.plan.order import order_state
from thalweg.plan.pipeline import Plan, PlanOptions, make_plan
from thalweg.plan.prune import prune


def signature(graph: Graph, fetch: str, feeds: str, targets: str) -> tuple[list, list, list]:
    return (
        [graph.get_tensor_by_name(f"{n}:0") for n in feeds.split()],
        [graph.get_tensor_by_name(f"{n}:0") for n in fetch.split()],
        [graph.get_operation_by_name(n) for n in targets.split()],
    )


def clusters(text: str, fetch: str = "", feeds: str = "", targets: str = "", cap: int = 1000) -> list[list[str]]:
    """The names of the members of each cluster."""
    graph = parse(text)
    new = prune(graph, *signature(graph, fetch, feeds, targets))
    return [[op.name for op in members] for members in mark_clusters(order_state(new), cap).members]


def plan(text: str, fetch: str = "", feeds: str = "", targets: str = "") -> Plan:
    graph = parse(text)
    return make_plan(graph, *signature(graph, fetch, feeds, targets), PlanOptions(check=True))


def test_a_chain_is_one_cluster() -> None:
    assert clusters("x = Placeholder[dtype=float](); a = Exp(x); b = Neg(a); c = Tanh(b)", "c", "x") == [["a", "b", "c"]]


def test_a_path_through_a_host_node_parts_the_cluster() -> None:
    text = "x = Placeholder[dtype=float](); a = Exp(x); u = Unique(a); b = Neg(u); c = Tanh(a); d = Mul(b, c)"
    assert clusters(text, "d", "x") == [["a"], ["b", "c", "d"]]


def test_strings_stay_outside() -> None:
    text = "x = Placeholder[dtype=string](); a = Identity(x); y = Placeholder[dtype=float](); b = Exp(y)"
    assert clusters(text, "a b", "x y") == [["b"]]


def test_shapes_are_known_while_tracing() -> None:
    text = "x = Placeholder[dtype=float](); s = Shape(x); y = Placeholder[dtype=float](); r = Reshape(y, s); e = Exp(r)"
    assert clusters(text, "e", "x y") == [["s", "r", "e"]]


def test_a_computed_shape_ends_the_cluster() -> None:
    text = "x = Placeholder[dtype=float](); i = Cast[DstT=int32](x); y = Placeholder[dtype=float](); e = Exp(y); r = Reshape(e, i)"
    assert clusters(text, "r", "x y") == [["i"], ["e", "r"]]


def test_a_fed_shape_is_a_static_argument() -> None:
    text = "n = Placeholder[dtype=int32](); p = Pack[axis=0](n, 3); y = Placeholder[dtype=float](); r = Reshape(y, p); e = Exp(r)"
    assert clusters(text, "e", "n y") == [["p", "r", "e"]]


def test_reading_and_updating_join() -> None:
    text = """v = VariableV2[dtype=float, shape=[]]()
    r = Identity(v)
    x = Placeholder[dtype=float]()
    y = Mul(r, x)
    a = AssignAdd(v, y)"""
    assert clusters(text, "", "x", "a") == [["r", "y", "a"]]


def test_an_update_behind_a_condition_is_masked() -> None:
    text = """v = VariableV2[dtype=float, shape=[3]]()
    r = Identity(v)
    i = Placeholder[dtype=int32]()
    axis = Const[value=0]()
    g = GatherV2(r, i, axis)
    k = Const[value=[0]]()
    s = Sum(g, k)
    a = AssignAdd(v, r) after(s)"""
    graph = parse(text)
    new = prune(graph, *signature(graph, "", "i", "a"))
    marks = mark_clusters(order_state(new))
    assert len(marks.members) == 1
    assert [op.name for op in marks.masked] == ["a"]


def test_a_scatter_behind_a_condition_is_a_cluster_of_its_own() -> None:
    text = """v = VariableV2[dtype=float, shape=[3]]()
    r = Identity(v)
    i = Placeholder[dtype=int32]()
    axis = Const[value=0]()
    g = GatherV2(r, i, axis)
    e = Exp(g)
    a = ScatterAdd(v, i, e)"""
    assert clusters(text, "", "i", "a") == [["r", "g"], ["e", "a"]]


def test_an_initialiser_without_arithmetic_is_not_compiled() -> None:
    text = "v = VariableV2[dtype=float, shape=[]](); c = Const[value=1.]; a = Assign(v, 1.0)".replace("c = Const[value=1.]; ", "")
    assert clusters(text, "", "", "a") == []


def test_large_clusters_are_cut() -> None:
    text = "x = Placeholder[dtype=float](); n0 = Exp(x); " + "; ".join(f"n{i} = Tanh(n{i - 1})" for i in range(1, 10))
    assert [len(c) for c in clusters(text, "n9", "x", cap=4)] == [4, 4, 2]


def test_reads_come_before_writes_where_the_order_is_open() -> None:
    text = """v = VariableV2[dtype=float, shape=[]]()
    w = AssignAdd(v, 1.0)
    r = Identity(v)
    e = Exp(r)"""
    graph = parse(text)
    new = prune(graph, *signature(graph, "e", "", "w"))
    names = [op.name for op in order_state(new)]
    assert names.index("r") < names.index("w")


def test_a_read_that_depends_on_a_write_comes_after_it() -> None:
    text = """v = VariableV2[dtype=float, shape=[]]()
    w = AssignAdd(v, 1.0)
    r = Identity(v) after(w)
    u = AssignSub(v, 3.0)
    e = Exp(r)"""
    graph = parse(text)
    new = prune(graph, *signature(graph, "e", "", "w u"))
    names = [op.name for op in order_state(new)]
    assert names.index("w") < names.index("r") < names.index("u")


def test_encapsulated_graph_is_well_formed() -> None:
    text = """v = VariableV2[dtype=float, shape=[]]()
    r = Identity(v)
    x = Placeholder[dtype=float]()
    y = Mul(r, x)
    u = Unique(x)
    a = AssignAdd(v, y) after(u)
    z = Add(u, y)"""
    p = plan(text, "z", "x", "a")
    kinds = sorted(op.type for op in p.graph._ops)
    assert kinds == ["Unique", "VariableV2", "_Arg", "_Cluster", "_Retval"]


def test_devices_don_t_wait_for_each_other_inside_clusters() -> None:
    text = """x = Placeholder[dtype=float]()
    a = Exp(x) on(/device:CPU:0)
    b = Neg(a) on(/device:CPU:1)
    c = Mul(a, b) on(/device:CPU:0)
    d = Tanh(b) on(/device:CPU:1)"""
    assert clusters(text, "c d", "x") == [["a"], ["b", "d"], ["c"]]
