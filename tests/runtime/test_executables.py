"""Executables by content: levels, sharing, the disk, and what is said of programs that churn shapes."""

from __future__ import annotations

import logging
import pathlib
import threading
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.graph import opdef
from thalweg.graph.registry import OpRecord
from thalweg.graph.text import parse
from thalweg.kernel.body import Body
from thalweg.kernel.convention import traceable
from thalweg.plan.pipeline import PlanOptions, make_plan
from thalweg.runtime import executables
from thalweg.runtime.arrays import devices
from thalweg.runtime.executables import Compiled, ExecutableStore
from thalweg.runtime.xla import ArgSpec

CHAIN = "x = Placeholder[dtype=float](); a = Exp(x); b = Neg(a)"


def body_of(graph: tf.Graph, fetch: str = "b", feed: str = "x") -> Body:
    """The body of the one cluster that a fetch needs."""
    feeds, fetches = [graph.get_tensor_by_name(f"{feed}:0")], [graph.get_tensor_by_name(f"{fetch}:0")]
    plan = make_plan(graph, feeds, fetches, [], PlanOptions())
    (body,) = (op._attrs["body"] for op in plan.graph._ops if op.type == "_Cluster")
    return body


def vector(n: int) -> tuple[ArgSpec, ...]:
    return (ArgSpec((n,), np.dtype(np.float32)),)


def get(store: ExecutableStore, body: Body, n: int = 3) -> Compiled:
    return store.get(body, [], vector(n), (), devices()[0])


@pytest.fixture
def store() -> ExecutableStore:
    store = ExecutableStore()
    store.use_disk(None)
    return store


def test_two_cheap_runs_and_then_fast_ones(store: ExecutableStore) -> None:
    body = body_of(parse(CHAIN))
    compiled = get(store, body)
    runs = [compiled.next(body, []) for _ in range(5)]
    assert runs[0] is runs[1] is not runs[2]
    assert runs[2] is runs[3] is runs[4] is compiled.final
    for executable in runs:
        (result,) = executable(np.zeros(3, np.float32))
        np.testing.assert_array_equal(result, [-1.0, -1.0, -1.0])


def test_content_is_what_counts(store: ExecutableStore) -> None:
    first = body_of(parse(CHAIN))
    same = body_of(parse("o = Placeholder[dtype=float](); p = Exp(o); q = Neg(p)"), "q", "o")
    third = body_of(parse(CHAIN.replace("Neg", "Abs")))
    assert get(store, first) is get(store, same)
    assert get(store, first) is not get(store, first, 4)
    assert get(store, first) is not get(store, third)
    assert store.compiles == 3


def test_threads_that_want_the_same_compile_it_once(store: ExecutableStore) -> None:
    bodies = [body_of(parse(CHAIN)) for _ in range(6)]
    start, found = threading.Barrier(len(bodies)), []

    def ask(body: Body) -> None:
        start.wait(10)
        compiled = get(store, body)
        found.append(compiled)
        for _ in range(4):
            compiled.next(body, [])

    threads = [threading.Thread(target=ask, args=(body,)) for body in bodies]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert len(found) == len(bodies) and len(set(map(id, found))) == 1
    assert store.compiles == 1
    assert found[0].final is not None


def test_a_failure_is_not_kept(store: ExecutableStore) -> None:
    body = body_of(parse("x = Placeholder[dtype=float](); k = Const[value=[2, 3]](); b = Reshape(x, k)"))
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match="4 values, but the requested shape has 6"):
            get(store, body, 4)
    assert get(store, body, 6).next(body, []).out_specs[0].shape == (2, 3)
    assert store._making == {}


def test_a_later_process_starts_fast(tmp_path: pathlib.Path) -> None:
    body = body_of(parse(CHAIN))
    stores = []
    for _ in range(2):
        store = ExecutableStore()
        store.use_disk(tmp_path / "cache")
        stores.append(store)
    first = get(stores[0], body)
    assert first.final is None
    for _ in range(3):
        first.next(body, [])
    second = get(stores[1], body)
    assert second.final is not None
    assert second.next(body, []) is second.final


def test_a_folder_that_cannot_be_used_is_done_without(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert executables._open_disk(tmp_path / "file") is None


def test_what_was_used_longest_ago_is_forgotten(store: ExecutableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executables, "MEMORY_LIMIT", 2)
    body = body_of(parse(CHAIN))
    one = get(store, body, 1)
    get(store, body, 2)
    assert get(store, body, 1) is one
    get(store, body, 3)
    assert get(store, body, 1) is one
    assert len(store._found) == 2
    store.forget()
    assert get(store, body, 1) is not one


def foreign(factor: float) -> Body:
    """A body with a kernel that is not part of thalweg: its code isn't known from its name."""
    record = OpRecord(
        opdef.parse("TestTimes", "x: float", "y: float"), lambda c: [c.shape(0)], traceable(lambda x: x * factor)
    )
    graph = parse("x = Placeholder[dtype=float]()")
    with graph.as_default():
        graph.add_node(record, [graph.get_tensor_by_name("x:0")], {}, "b")
    return body_of(graph)


def test_other_people_s_kernels_are_not_shared(tmp_path: pathlib.Path) -> None:
    store = ExecutableStore()
    store.use_disk(tmp_path / "cache")
    two, three = foreign(2.0), foreign(3.0)
    assert two.key == three.key, "all that is known of the two is the same"
    for body, factor in ((two, 2.0), (three, 3.0)):
        (result,) = get(store, body).next(body, [])(np.ones(3, np.float32))
        assert np.asarray(result)[0] == factor
    assert get(store, two) is get(store, two)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_program_that_churns_shapes_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with tf.Graph().as_default(), tf.Session() as sess, caplog.at_level(logging.WARNING, "thalweg"):
        x = tf.placeholder(tf.float32, [None], name="x")
        y = tf.exp(x, name="churned") * 2.0
        for n in range(1, executables.CHURN + 5):
            sess.run(y, {x: np.ones(n)})
    told = [r.getMessage() for r in caplog.records if "was compiled for" in r.getMessage()]
    assert len(told) == 1
    assert "round 'churned'" in told[0] and f"({executables.CHURN},)" in told[0]


def test_shapes_without_end_are_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from thalweg.runtime import cluster

    monkeypatch.setattr(cluster, "KEPT_SHAPES", 3)
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None])
        y = tf.exp(x) * 2.0
        for n in range(1, 6):
            sess.run(y, {x: np.ones(n)})
        (program,) = sess._master._programs.values()
        assert program.single is not None and len(program.single.runner._by_shape) == 3
        assert sess.run(y, {x: np.zeros(1)}).tolist() == [2.0]


def static_shape(sess: Any, y: tf.Tensor, n: tf.Tensor, *values: int) -> list[int]:
    return [int(sess.run(y, {n: v}).shape[0]) for v in values]


def test_static_values_make_executables_of_their_own() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        n = tf.placeholder(tf.int32, [])
        y = tf.fill([n], 2.0) * tf.placeholder_with_default(3.0, [])
        assert static_shape(sess, y, n, 2, 3, 2, 2, 3, 4) == [2, 3, 2, 2, 3, 4]
