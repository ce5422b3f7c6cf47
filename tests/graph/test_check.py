"""The stage checks find what a pass breaks, and show it with what is round it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import thalweg.ops
from thalweg.base.errors import InternalError
from thalweg.graph.check import check
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation
from thalweg.graph.subgraph import relink
from thalweg.graph.text import parse

TEXT = "x = Placeholder[dtype=float](); e = Exp(x); n = NoOp() after(e); y = Mul(e, e) after(n)"
OTHER = parse("far = Placeholder[dtype=float]()")


def op(graph: Graph, name: str) -> Operation:
    return graph.get_operation_by_name(name)


def share_a_name(graph: Graph) -> None:
    op(graph, "e")._name = "x"


def rename_only_half(graph: Graph) -> None:
    op(graph, "e")._name = "other"


def take_from_elsewhere(graph: Graph) -> None:
    op(graph, "e")._inputs[0] = op(OTHER, "far").outputs[0]
    op(graph, "x").outputs[0]._consumers.clear()


def forget_a_consumer(graph: Graph) -> None:
    op(graph, "x").outputs[0]._consumers.clear()


def invent_a_consumer(graph: Graph) -> None:
    op(graph, "x").outputs[0]._consumers.append(op(graph, "y"))


def wait_for_somebody_elsewhere(graph: Graph) -> None:
    op(graph, "y")._control_inputs.append(op(OTHER, "far"))


def forget_a_control_output(graph: Graph) -> None:
    op(graph, "n")._control_outputs.clear()


def invent_a_control_output(graph: Graph) -> None:
    op(graph, "x")._control_outputs.append(op(graph, "y"))


def change_a_type(graph: Graph) -> None:
    op(graph, "y")._attrs["T"] = thalweg.dtypes.int32


def drop_an_input(graph: Graph) -> None:
    op(graph, "y")._inputs.pop()


def a_target_elsewhere(graph: Graph) -> None:
    graph._targets.append(op(OTHER, "far"))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (share_a_name, "two nodes share a name"),
        (rename_only_half, "it is not the node of its name"),
        (take_from_elsewhere, "its input far:0 is not in the graph"),
        (forget_a_consumer, "its input x:0 doesn't know it"),
        (invent_a_consumer, "its consumer y doesn't take it"),
        (wait_for_somebody_elsewhere, "its control input far is not in the graph"),
        (forget_a_control_output, "its control input n doesn't know it"),
        (invent_a_control_output, "its control output y doesn't wait for it"),
        (change_a_type, "its input e:0 is float32, not int32"),
        (drop_an_input, "it has 1 inputs, its definition says 2"),
        (a_target_elsewhere, "it is a target, but not in the graph"),
    ],
)
def test_damage_is_found(damage: Callable[[Graph], None], says: str) -> None:
    graph = parse(TEXT)
    check(graph, "start")
    damage(graph)
    with pytest.raises(InternalError, match="after 'here' the graph is broken") as caught:
        check(graph, "here")
    assert says in str(caught.value)


def test_the_fault_is_shown_with_what_is_round_it() -> None:
    graph = parse(TEXT)
    drop_an_input(graph)
    with pytest.raises(InternalError) as caught:
        check(graph, "here")
    shown = caught.value.message.splitlines()[1:]
    assert shown == ["  e = Exp(x)", "  y = Mul(e) after(n)"]


def test_arguments_have_numbers_of_their_own() -> None:
    graph = parse("a = _Arg[T=float, index=0](); b = _Arg[T=float, index=1](); c = Add(a, b)")
    check(graph, "start")
    op(graph, "b")._attrs["index"] = 0
    with pytest.raises(InternalError, match="share an index"):
        check(graph, "here")


def test_relinking_mends_what_can_be_known_from_inputs() -> None:
    graph = parse(TEXT)
    for damage in (forget_a_consumer, invent_a_consumer, forget_a_control_output, invent_a_control_output):
        damage(graph)
    relink(graph)
    check(graph, "mended")
