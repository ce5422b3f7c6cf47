"""What a SaveV2 borrows: graphs before and after."""

from __future__ import annotations

import pytest

import thalweg.ops  # noqa: F401
from thalweg.graph.check import check
from thalweg.graph.text import format_graph, parse
from thalweg.plan.prune import prune
from thalweg.plan.rewrite.lend import lend_variables

HEAD = (
    "p = Placeholder[dtype=string](); n = Placeholder[dtype=string](); s = Placeholder[dtype=string](); "
    "h = VarHandleOp[dtype=float, shape=[2]](); v = VariableV2[dtype=float, shape=[2]](); "
)


def _lent(text: str, target: str = "save") -> tuple[int, str]:
    graph = parse(HEAD + text)
    names = ("p:0", "n:0", "s:0")
    plan = prune(
        graph,
        [graph.get_tensor_by_name(n) for n in names],
        [],
        [graph.get_operation_by_name(t) for t in target.split()],
    )
    count = lend_variables(plan)
    check(plan, "lend_variables")
    lines = [line for line in format_graph(plan).splitlines() if "_Arg" not in line and "_Retval" not in line]
    return count, "; ".join(line.replace("_arg_", "").replace("_0,", ",") for line in lines)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("r = ReadVariableOp[dtype=float](h); save = SaveV2(p, n, s, r)", "SaveV2(p, n, s, h)"),
        ("r = Identity(v); save = SaveV2(p, n, s, r)", "SaveV2(p, n, s, v)"),
        ("r = ReadVariableOp[dtype=float](h); save = SaveV2(p, n, s, r, v)", "SaveV2(p, n, s, h, v)"),
        ("e = NoOp(); r = ReadVariableOp[dtype=float](h) after(e); save = SaveV2(p, n, s, r)", "SaveV2(p, n, s, h) after(e)"),
    ],
)
def test_reads_give_way(before: str, after: str) -> None:
    count, text = _lent(before)
    assert count == 1 and after in text and "ReadVariableOp" not in text and "Identity" not in text


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("save = SaveV2(p, n, s, v)", "save"),
        ("r = ReadVariableOp[dtype=float](h); save = SaveV2(p, n, s, r, r)", "save"),
        ("r = ReadVariableOp[dtype=float](h); x = Neg(r); save = SaveV2(p, n, s, r) after(x)", "save"),
        ("r = ReadVariableOp[dtype=float](h); e = NoOp() after(r); save = SaveV2(p, n, s, r) after(e)", "save"),
        ("r = ReadVariableOp[dtype=float](h); save = SaveV2(p, n, s, r)", "save r"),
        ("r = ReadVariableOp[dtype=float](h); x = Neg(r); save = SaveV2(p, n, s, x)", "save"),
    ],
)
def test_reads_that_others_need_stay(text: str, target: str) -> None:
    assert _lent(text, target)[0] == 0


def test_another_device(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = parse(HEAD + "r = ReadVariableOp[dtype=float](h); save = SaveV2(p, n, s, r)")
    graph.get_operation_by_name("r")._device = "/device:GPU:0"
    plan = prune(graph, [graph.get_tensor_by_name(n) for n in ("p:0", "n:0", "s:0")], [], [graph.get_operation_by_name("save")])
    assert lend_variables(plan) == 0
