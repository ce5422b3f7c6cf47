"""Names, scopes, control dependencies, devices, collections: TensorFlow's rules, recorded from it (2.21)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import thalweg as tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def made(name: str) -> str:
    """The name that a node gets."""
    return tf.no_op(name=name).name


# --- names ---


def test_names_are_made_unique(graph: tf.Graph) -> None:
    assert [made(n) for n in ("x_1", "x", "x", "x")] == ["x_1", "x", "x_2", "x_3"]
    assert [made(n) for n in ("A", "a", "A")] == ["A", "a_1", "A_2"], "case does not distinguish"


def test_scopes_and_nodes_share_names(graph: tf.Graph) -> None:
    with tf.name_scope("s"):
        pass
    assert made("s") == "s_1"
    assert made("t") == "t"
    with tf.name_scope("t") as scope:
        assert scope == "t_1/"
        assert made("x") == "t_1/x"


def test_a_name_with_a_slash_is_taken_as_it_is(graph: tf.Graph) -> None:
    assert made("exact/") == "exact"
    assert made("exact") == "exact_1"
    with pytest.raises(ValueError, match="Duplicate node name in graph: 'exact'"):
        made("exact/")


def test_a_scope_can_be_entered_again_and_left(graph: tf.Graph) -> None:
    with tf.name_scope("a") as scope:
        assert made("x") == "a/x"
        with tf.name_scope("b"):
            assert graph.get_name_scope() == "a/b"
            with tf.name_scope(None) as top:
                assert (top, made("x")) == ("", "x")
        with tf.name_scope("b") as second:
            assert second == "a/b_1/"
    with tf.name_scope(scope):
        assert made("x") == "a/x_1"


@pytest.mark.parametrize("name", ["_a", "a b", "-a", "\u00e9", "a:0"])
def test_bad_names(name: str) -> None:
    with pytest.raises(ValueError, match="is not a valid node name: it takes letters"):
        made(name)
    for scope in (name, name + "/"):
        with pytest.raises(ValueError, match="is not a valid scope name"), tf.name_scope(scope):
            pass


@pytest.mark.parametrize("name", ["a/b", "a>b", "a\\b", ".a", "0", "a-b.c"])
def test_good_names(name: str) -> None:
    assert made(name) == name


def test_inside_a_scope_more_is_allowed(graph: tf.Graph) -> None:
    with tf.name_scope("a"):
        assert made("_x") == "a/_x"
        with tf.name_scope("_s") as scope:
            assert scope == "a/_s/"


def test_unique_names_without_nodes(graph: tf.Graph) -> None:
    assert [graph.unique_name("n", mark_as_used=False) for _ in range(2)] == ["n", "n"]
    assert [graph.unique_name("n") for _ in range(3)] == ["n", "n_1", "n_2"]


def test_threads_that_name_at_once(graph: tf.Graph) -> None:
    start = threading.Barrier(4)

    def work() -> None:
        start.wait(10)
        with graph.as_default(), tf.name_scope("t"):
            for _ in range(100):
                tf.no_op(name="x")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    names = [op.name for op in graph.get_operations()]
    assert len(names) == len(set(names)) == 400
    assert graph.get_name_scope() == "", "scopes are a thread's own"


# --- control dependencies ---


def waits_for(tensor: Any) -> list[str]:
    return [op.name for op in getattr(tensor, "op", tensor).control_inputs]


def test_what_waits_for_what(graph: tf.Graph) -> None:
    a, b = tf.constant(1, name="a"), tf.constant(2, name="b")
    with tf.control_dependencies([a]):
        c = tf.constant(3, name="c")
        assert waits_for(c) == ["a"]
        assert waits_for(tf.add(c, b)) == [], "an input made inside the scope has waited"
        assert waits_for(tf.add(a, b)) == [], "an input is waited for anyhow"
        assert waits_for(tf.add(b, b)) == ["a"]
        with tf.control_dependencies(None):
            assert waits_for(tf.add(b, b)) == []
        with tf.control_dependencies([b]):
            assert waits_for(tf.identity(c)) == ["b"]
            assert waits_for(tf.no_op()) == ["a", "b"]
    assert waits_for(tf.no_op()) == []


def test_what_can_be_waited_for(graph: tf.Graph) -> None:
    a, v = tf.constant(1, name="a"), tf.Variable(1, name="v")
    with tf.control_dependencies([a, a.op, "a", v]):
        assert waits_for(tf.no_op()) == ["a", "v"]
    with pytest.raises(TypeError, match="Can not convert a int into a Tensor or Operation"):
        tf.control_dependencies([3]).__enter__()
    with tf.Graph().as_default():
        far = tf.constant(1)
    with pytest.raises(ValueError, match="is not an element of this graph"):
        tf.control_dependencies([far]).__enter__()


def test_control_edges_added_later(graph: tf.Graph) -> None:
    a, b = tf.no_op(name="a"), tf.no_op(name="b")
    before = graph._mutations
    b._add_control_input(a)
    assert waits_for(b) == ["a"] and graph._mutations > before
    before = graph._mutations
    b._add_control_inputs([a])
    b._add_control_inputs([])
    assert waits_for(b) == ["a"]
    assert graph._mutations == before, "plans stay good where nothing was changed"


# --- devices, colocation, containers ---


def test_devices(graph: tf.Graph) -> None:
    def choose(op: tf.Operation) -> str | None:
        return "/gpu:1" if op.type == "NoOp" else None

    with tf.device("/job:ps"):
        with tf.device("/cpu:0"):
            assert tf.no_op().device == "/job:ps/device:CPU:0"
            with tf.device(choose):
                assert tf.no_op().device == "/job:ps/device:GPU:1"
                assert tf.constant(1).device == "/job:ps/device:CPU:0"
            with tf.device(None):
                assert tf.no_op().device == ""
        with tf.device(tf.DeviceSpec(job="worker", task=3)):
            assert tf.no_op().device == "/job:worker/task:3"
    with pytest.raises(ValueError, match="nonsense"), tf.device("/nonsense"):
        pass


def test_colocation(graph: tf.Graph) -> None:
    with tf.device("/cpu:0"):
        a = tf.no_op(name="a")
    with graph.colocate_with(a):
        b = tf.no_op(name="b")
    with tf.device("/gpu:0"), graph.colocate_with(b):
        c = tf.no_op(name="c")
        with graph.colocate_with(None, ignore_existing=True):
            d = tf.no_op(name="d")
    assert [op.colocation_groups() for op in (a, b, c, d)] == [[b"loc:@a"]] * 3 + [[b"loc:@d"]]
    assert [op.device for op in (a, b, c)] == ["/device:CPU:0"] * 3
    with pytest.raises(ValueError, match="ignore_existing is not True"):
        graph.colocate_with(None).__enter__()


def test_containers_and_overrides(graph: tf.Graph) -> None:
    with graph.container("q"), graph.gradient_override_map({"Neg": "Mine"}):
        v = tf.raw_ops.VariableV2(shape=[], dtype=tf.float32)
        n = tf.negative(v)
    assert v.op.get_attr("container") == b"q"
    assert n.op.get_attr("_gradient_op_type") == b"Mine"
    with pytest.raises(TypeError, match="mapping strings to strings"):
        graph.gradient_override_map({"Neg": 3}).__enter__()


# --- collections, elements, the end ---


def test_collections(graph: tf.Graph) -> None:
    graph.add_to_collection("k", 1)
    graph.add_to_collections(["k", "m", "k"], 2)
    graph.add_to_collections("k", 3)
    graph.get_collection_ref("n").append(4)
    assert [graph.get_collection(k) for k in ("k", "m", "n", "none")] == [[1, 2, 3], [2], [4], []]
    assert graph.get_all_collection_keys() == graph.collections == ["k", "m", "n"]
    graph.get_collection("k").append(9)
    assert graph.get_collection("k") == [1, 2, 3], "a copy"
    graph.clear_collection("k")
    assert graph.get_collection("k") == []


def test_collections_by_scope(graph: tf.Graph) -> None:
    with tf.name_scope("s"):
        a = tf.constant(1, name="a")
    b = tf.constant(1, name="b")
    for value in (a, b, 7):
        graph.add_to_collection("k", value)
    assert graph.get_collection("k", "s") == [a]
    assert graph.get_collection("k", "") == [a, b], "what has a name"


@pytest.mark.parametrize(
    ("asked", "kinds", "outcome"),
    [
        ("a", {}, "operation"), ("a:0", {}, "tensor"), (b"a:0", {}, "tensor"),
        ("a:1", {}, KeyError), ("b", {}, KeyError), ("b:0", {}, KeyError), ("a:x", {}, ValueError),
        (3, {}, TypeError), ("a", {"allow_operation": False}, ValueError),
        ("a:0", {"allow_tensor": False}, ValueError), ("b", {"allow_operation": False}, ValueError),
        ("b:0", {"allow_tensor": False}, ValueError), (lambda a: a.op, {"allow_operation": False}, TypeError),
        (lambda a: a, {"allow_tensor": False}, TypeError), (lambda a: a, {}, "tensor"),
    ],
)  # fmt: skip
def test_elements(graph: tf.Graph, asked: Any, kinds: dict[str, bool], outcome: Any) -> None:
    a = tf.constant(1, name="a")
    asked = asked(a) if isinstance(asked, Callable) else asked  # type: ignore[arg-type]
    if isinstance(outcome, str):
        assert graph.as_graph_element(asked, **kinds) is (a if outcome == "tensor" else a.op)
    else:
        with pytest.raises(outcome):
            graph.as_graph_element(asked, **kinds)


def test_near_matches_are_named(graph: tf.Graph) -> None:
    with tf.name_scope("model"):
        tf.constant(1, name="logits")
    with pytest.raises(KeyError, match="Near matches: model/logits"):
        graph.get_tensor_by_name("Logits:0")


def test_a_finalized_graph_stays_as_it_is(graph: tf.Graph) -> None:
    graph.finalize()
    assert graph.finalized
    for change in (tf.no_op, lambda: graph.add_to_collection("k", 1)):
        with pytest.raises(RuntimeError, match="Graph is finalized and cannot be modified"):
            change()


def test_a_tensor_of_another_graph(graph: tf.Graph) -> None:
    here = tf.constant(1.0)
    with tf.Graph().as_default():
        far = tf.constant(1.0)
    with pytest.raises(ValueError, match="graph"):
        tf.add(here, far)


def test_versions_and_seeds(graph: tf.Graph) -> None:
    assert graph.version == 0
    tf.no_op()
    assert graph.version == 1
    assert graph.seed is None
    tf.set_random_seed(3)
    assert graph.seed == 3
