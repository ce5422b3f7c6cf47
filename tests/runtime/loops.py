"""Loops and branches made node by node, for tests below the library."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Tensor

Variables = list[Tensor]


def on_the_executor(session: Any) -> Any:
    """The session, which compiles no loop or conditional from now on."""
    session._master.options = dataclasses.replace(session._master.options, loops=False)
    return session


def loop(
    graph: Graph,
    initial: Sequence[Any],
    go_on: Callable[[Variables, Variables], Tensor],
    body: Callable[[Variables, Variables], Sequence[Any]],
    constants: Sequence[Any] = (),
    name: str = "loop",
    parallel: int = 10,
) -> Variables:
    """A while loop as TensorFlow builds it; body and go_on get the variables and the loop's constants."""
    attrs = {"frame_name": name, "parallel_iterations": parallel}
    with graph.name_scope(name), graph.control_dependencies(None):
        enters = [emit("Enter", v, **attrs) for v in initial]
        inside = [emit("Enter", v, is_constant=True, **attrs) for v in constants]
        merges = [emit("Merge", [e, e])[0] for e in enters]
        with graph.control_dependencies([merges[0].op]):
            decision = emit("LoopCond", go_on(merges, inside))
        switches = [emit("Switch", m, decision) for m in merges]
        pivot = emit("Identity", switches[0][1], name="pivot")
        with graph.control_dependencies([pivot.op]):
            results = body([s[1] for s in switches], inside)
        for merge, result in zip(merges, results, strict=True):
            merge.op._update_input(1, emit("NextIteration", result))
        return [emit("Exit", s[0]) for s in switches]
