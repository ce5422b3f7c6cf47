"""The rewriting passes, as graphs before and after."""

from __future__ import annotations

import pytest

import thalweg.ops  # noqa: F401
from thalweg.graph.check import check
from thalweg.graph.text import format_graph, parse
from thalweg.plan.prune import prune
from thalweg.plan.rewrite.common import merge_common
from thalweg.plan.rewrite.fold import fold_constants, remove_unused
from thalweg.plan.rewrite.simplify import remove_identities


def planned(text: str, fetch: str, feeds: str = "", targets: str = "") -> object:
    """The pruned graph of a text for a signature."""
    graph = parse(text)
    return prune(
        graph,
        [graph.get_tensor_by_name(f"{n}:0") for n in feeds.split()],
        [graph.get_tensor_by_name(f"{n}:0") for n in fetch.split()],
        [graph.get_operation_by_name(n) for n in targets.split()],
    )


def shown(graph: object) -> str:
    """The nodes that aren't arguments or results."""
    return "; ".join(
        line for line in format_graph(graph).splitlines() if "_Retval" not in line and "= _Arg" not in line
    )


def test_prune_keeps_what_a_fetch_needs() -> None:
    graph = planned("a = Placeholder[dtype=float](); b = Neg(a); c = Exp(a); d = Abs(c)", "d", "a")
    assert shown(graph) == "c = Exp(_arg_a_0); d = Abs(c)"


def test_prune_stops_at_a_feed_in_the_middle() -> None:
    graph = planned("a = Placeholder[dtype=float](); b = Neg(a); c = Exp(b)", "c", "b")
    assert shown(graph) == "c = Exp(_arg_b_0)"


def test_prune_drops_controls_on_a_fed_placeholder_only() -> None:
    graph = planned("a = Placeholder[dtype=float](); b = Neg(a); c = Exp(1.0) after(a, b)", "c", "a")
    assert shown(graph) == "b = Neg(_arg_a_0); c = Exp(1.0) after(b)"


def test_fold_replaces_what_follows_from_constants() -> None:
    graph = planned("c = Add(2, 3); x = Placeholder[dtype=int32](); y = Mul(x, c)", "y", "x")
    assert fold_constants(graph) == 1
    remove_unused(graph)
    check(graph, "fold")
    assert shown(graph) == "y = Mul(_arg_x_0, 5)"


def test_fold_knows_static_shapes() -> None:
    graph = planned("x = Placeholder[dtype=float, shape=[4,?]](); s = Shape(x); y = Placeholder[dtype=float, shape=[2,3]](); t = Shape(y)", "s t", "x y")
    assert fold_constants(graph) == 1
    assert "s = Shape" in shown(graph)
    assert "t = Const[value=[2, 3]]()" in shown(graph)


def test_fold_keeps_control_edges() -> None:
    graph = planned("x = Placeholder[dtype=int32](); e = Neg(x); c = Add(2, 3) after(e); y = Mul(x, c)", "y", "x")
    fold_constants(graph)
    check(graph, "fold")
    assert "c = Const[value=5]() after(e)" in shown(graph)


def test_fold_does_not_regroup() -> None:
    text = "p = Placeholder[dtype=float](); a = Sub(1.0, p); b = Add(a, 0.5)"
    graph = planned(text, "b", "p")
    assert fold_constants(graph) == 0


def test_merge_common() -> None:
    graph = planned("x = Placeholder[dtype=float](); a = Exp(x); b = Exp(x); c = Mul(a, b)", "c", "x")
    assert merge_common(graph) == 1
    check(graph, "merge")
    assert shown(graph) == "a = Exp(_arg_x_0); c = Mul(a, a)"


def test_merge_sorts_commutative_inputs() -> None:
    graph = planned("x = Placeholder[dtype=float](); y = Placeholder[dtype=float](); a = Mul(x, y); b = Mul(y, x); c = Sub(a, b)", "c", "x y")
    assert merge_common(graph) == 1


def test_merge_keeps_different_controls_and_devices_apart() -> None:
    text = "x = Placeholder[dtype=float](); n = NoOp(); a = Exp(x); b = Exp(x) after(n); d = Exp(x) on(/device:CPU:1); c = AddN(a, b, d)"
    assert merge_common(planned(text, "c", "x")) == 0


def test_merge_never_touches_random_ops() -> None:
    text = "a = RandomUniform[dtype=float](s); b = RandomUniform[dtype=float](s); c = Sub(a, b)"
    assert merge_common(planned("s = Const[value=[2]](); " + text, "c")) == 0


def test_identities_give_way() -> None:
    graph = planned("x = Placeholder[dtype=float](); e = Exp(x); a = Identity(e); b = StopGradient(a); c = Neg(b)", "c", "x")
    assert remove_identities(graph) == 2
    check(graph, "simplify")
    assert shown(graph) == "e = Exp(_arg_x_0); c = Neg(e)"


def test_identity_with_controls_stays() -> None:
    graph = planned("x = Placeholder[dtype=float](); n = Exp(x); a = Identity(x) after(n); c = Neg(a)", "c", "x")
    assert remove_identities(graph) == 0


def test_reading_a_variable_stays() -> None:
    graph = planned("v = VariableV2[dtype=float, shape=[]](); r = Identity(v); c = Neg(r)", "c")
    assert remove_identities(graph) == 0


@pytest.mark.parametrize("kind", ["Reshape", "Transpose"])
def test_moves_that_move_nothing_go(kind: str) -> None:
    arg = {"Reshape": "[2,3]", "Transpose": "[0,1]"}[kind]
    graph = planned(f"x = Placeholder[dtype=float, shape=[2,3]](); k = Const[value={arg}](); m = {kind}(x, k); c = Neg(m)", "c", "x")
    assert remove_identities(graph) == 1


def test_a_cycle_is_an_error_that_names_it() -> None:
    from thalweg.graph.subgraph import topological_order

    graph = parse("a = Placeholder[dtype=float](); b = Exp(a); c = Neg(b)")
    b, c = graph.get_operation_by_name("b"), graph.get_operation_by_name("c")
    b._update_input(0, c.outputs[0])
    with pytest.raises(ValueError, match=r"cycle through b, c"):
        topological_order(graph)
