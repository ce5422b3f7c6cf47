"""Sessions that run loops and branches: errors, ends, state, several threads."""

from __future__ import annotations

import pathlib
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.text import parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from loops import loop, on_the_executor

BRANCH = """p = Placeholder[dtype=bool](); x = Placeholder[dtype=float]()
s = Switch(x, p); f = Exp(s); t = Neg(s:1); m = Merge(f, t)"""


def run(graph: Graph, fetches: Any, feeds: dict[str, Any] | None = None, **options: Any) -> Any:
    with on_the_executor(tf.Session(graph=graph)) as session:
        return session.run(fetches, feeds, **options)


def endless(graph: Graph, body: Any = lambda v, k: [emit("Add", v[0], 1)]) -> Any:
    with graph.as_default():
        return loop(graph, [emit.constant(0)], lambda v, k: emit("Less", emit("Minimum", v[0], 0), 1), body)[0]


def test_a_dead_fetch() -> None:
    graph = parse(BRANCH)
    assert run(graph, "t:0", {"p:0": True, "x:0": 3.0}) == -3.0
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Retval\[1\] does not have value") as e:
        run(graph, ["m:0", "f:0"], {"p:0": True, "x:0": 3.0})
    assert e.value.op.name == "f"


def test_a_dead_target_is_no_error() -> None:
    assert run(parse(BRANCH), ["f", "m:0"], {"p:0": True, "x:0": 3.0}) == [None, -3.0]


def test_a_predicate_that_is_no_scalar() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'p:0' has shape \[2\]|'_arg_p_0:0' has shape \[2\]"):
        run(parse(BRANCH), "m:0", {"p:0": [True, False], "x:0": 3.0})


def test_a_fetch_from_inside_a_loop() -> None:
    graph = Graph()
    endless(graph)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'loop/Add:0' can't be fetched.*loop 'loop'"):
        run(graph, "loop/Add:0")


def test_inputs_from_different_frames() -> None:
    graph = Graph()
    with graph.as_default():
        (end,) = loop(graph, [emit.constant(0)], lambda v, k: emit("Less", v[0], 3), lambda v, k: [emit("Add", v[0], 1)])
        emit("Add", end, graph.get_tensor_by_name("loop/Add:0"), name="wrong")
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"'wrong' has inputs from different frames.*'loop/Exit' is in frame ''"
    ):
        run(graph, "wrong:0")


def test_a_cycle_without_next_iteration() -> None:
    graph = parse(BRANCH)
    m = graph.get_operation_by_name("m")
    graph.get_operation_by_name("s")._update_input(0, m.outputs[0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"cycle through .*only a NextIteration may close a loop"):
        run(graph, "m:0", {"p:0": True})


@pytest.mark.parametrize("body", ["scalars", "a cluster", "the host"])
def test_an_endless_loop_ends_with_its_deadline(body: str) -> None:
    def work(v: Any, k: Any) -> Any:
        if body == "a cluster":
            big = emit("Fill", emit.constant([3]), 1.0)
            return [emit("Add", v[0], emit("Cast", emit("Sum", emit("Exp", big), [0]), DstT=tf.int32))]
        if body == "the host":
            found = emit("Unique", emit("Pack", [v[0], v[0]])).y
            return [emit("Add", v[0], emit("Size", found))]
        return [emit("Add", v[0], 1)]

    graph = Graph()
    end = endless(graph, work)
    start = time.monotonic()
    with pytest.raises(tf.errors.DeadlineExceededError):
        run(graph, end, options=tf.RunOptions(timeout_in_ms=300))
    assert time.monotonic() - start < 30  # with compiling


def test_close_ends_an_endless_loop() -> None:
    graph = Graph()
    end = endless(graph)
    session = on_the_executor(tf.Session(graph=graph))
    raised: list[BaseException] = []

    def go() -> None:
        try:
            session.run(end)
        except BaseException as e:
            raised.append(e)

    thread = threading.Thread(target=go)
    thread.start()
    while not session._master._steps:
        pass
    session.close()
    thread.join(20)
    assert not thread.is_alive() and isinstance(raised[0], tf.errors.CancelledError)


def test_an_error_in_an_iteration_names_the_node() -> None:
    graph = Graph()
    with graph.as_default():
        values = emit.constant(np.arange(3, dtype=np.float32))
        n = emit("Placeholder", dtype=tf.int32, shape=[], name="n")

        def body(v: Any, k: Any) -> list[Any]:
            at = emit("GatherV2", k[0], v[0], emit.constant(0), name="at")
            return [emit("Add", v[0], 1), emit("Add", v[1], at)]

        ends = loop(graph, [emit.constant(0), emit.constant(0.0)], lambda v, k: emit("Less", v[0], k[1]), body, [values, n])
    with on_the_executor(tf.Session(graph=graph)) as session:
        assert session.run(ends, {n: 3}) == [3, 3.0]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"loop/at.*3 is not in \[0, 3\)"):
            session.run(ends, {n: 5})
        assert session.run(ends, {n: 2}) == [2, 1.0]


def test_random_numbers_are_fresh_in_each_iteration() -> None:
    graph = Graph()
    with graph.as_default():
        shape = emit.constant([1])

        def body(v: Any, k: Any) -> list[Any]:
            new = emit("RandomUniform", k[0], dtype=tf.float32, seed=3, seed2=4)
            return [emit("Add", v[0], 1), emit("ConcatV2", [v[1], new], emit.constant(0))]

        start = emit("Placeholder", dtype=tf.float32, shape=[None], name="start")
        ends = loop(graph, [emit.constant(0), start], lambda v, k: emit("Less", v[0], 5), body, [shape])
    with on_the_executor(tf.Session(graph=graph)) as session:
        first, second = (session.run(ends[1], {start: np.zeros(0, np.float32)}) for _ in range(2))
    assert len(set(first) | set(second)) == 10


def test_a_branch_that_is_not_taken_changes_nothing() -> None:
    graph = Graph()
    with graph.as_default(), on_the_executor(tf.Session(graph=graph)) as session:
        v = tf.Variable(1.0, use_resource=False)
        w = tf.Variable(1.0, use_resource=True)
        p = tf.placeholder(tf.bool, [])
        ref = emit("RefSwitch", v._ref(), p)
        handle = emit("Switch", w.handle, p)
        emit("AssignAdd", ref[1], 2.0, name="ref")
        emit.operation("AssignAddVariableOp", handle[0], 3.0, name="resource")
        session.run(tf.global_variables_initializer())
        for value, expected in ((True, (3.0, 1.0)), (False, (3.0, 4.0)), (True, (5.0, 4.0))):
            session.run(["ref", "resource"], {p: value})
            assert session.run((v, w)) == expected


def test_threads_share_a_program() -> None:
    graph = Graph()
    with graph.as_default():
        n = emit("Placeholder", dtype=tf.int32, shape=[], name="n")
        ends = loop(graph, [emit.constant(0)], lambda v, k: emit("Less", v[0], k[0]), lambda v, k: [emit("Add", v[0], 1)], [n])
    wrong: list[Any] = []

    def go(first: int, session: Any) -> None:
        wrong.extend(i for i in range(first, first + 50) if session.run(ends[0], {n: i}) != i)

    with on_the_executor(tf.Session(graph=graph)) as session:
        threads = [threading.Thread(target=go, args=(i * 10, session)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not wrong


def test_loops_are_in_the_step_statistics() -> None:
    graph = Graph()
    with graph.as_default():
        (end,) = loop(
            graph,
            [emit.constant(0)],
            lambda v, k: emit("Less", v[0], 3),
            lambda v, k: [emit("Add", v[0], emit("Size", emit("Unique", emit("Pack", [v[0]])).y))],
            name="short",
        )
    metadata = tf.RunMetadata()
    assert run(graph, end, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata) == 3
    names = [s.node_name for s in metadata.step_stats.dev_stats[0].node_stats]
    assert names.count("short/Unique") == 3


def dequeuing() -> tuple[Graph, Any, Any]:
    """A loop that adds up what it takes from a queue, and what puts a number in."""
    graph = Graph()
    with graph.as_default():
        q = emit("FIFOQueueV2", component_types=[tf.float32], shapes=[()], capacity=100, shared_name="q")
        put = emit.operation("QueueEnqueueV2", q, [emit("Placeholder", dtype=tf.float32, shape=[], name="x")])

        def body(v: Any, k: Any) -> list[Any]:
            (taken,) = emit.operation("QueueDequeueV2", k[0], component_types=[tf.float32], name="take").outputs
            return [emit("Add", v[0], 1), emit("Add", v[1], taken)]

        start = [emit.constant(0), emit.constant(0.0)]
        ends = loop(graph, start, lambda v, k: emit("Less", v[0], 20), body, [q])
    return graph, ends[1], put


def test_a_loop_waits_for_a_queue() -> None:
    graph, total, put = dequeuing()
    with on_the_executor(tf.Session(graph=graph)) as session:

        def fill() -> None:
            for i in range(20):
                session.run(put, {"x:0": float(i)})

        thread = threading.Thread(target=fill)
        thread.start()
        assert session.run(total) == 190.0
        thread.join(20)


def test_a_loop_stuck_on_a_queue_says_so_when_it_times_out() -> None:
    graph, total, put = dequeuing()
    with on_the_executor(tf.Session(graph=graph)) as session:
        session.run(put, {"x:0": 1.0})
        with pytest.raises(tf.errors.DeadlineExceededError, match="loop/take"):
            session.run(total, options=tf.RunOptions(timeout_in_ms=200))
