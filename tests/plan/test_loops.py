"""Compiled loops and conditionals: what the pass makes of graphs, and that both ways give the same numbers."""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tf
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.text import format_op
from thalweg.plan.pipeline import Plan, PlanOptions, make_plan

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "runtime"))
from loops import on_the_executor


def planned(fetches: Any, **options: Any) -> Plan:
    fetches = tf.nest.flatten(fetches) if isinstance(fetches, list | tuple) else [fetches]
    graph = fetches[0].graph
    feeds = [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]
    return make_plan(graph, feeds, fetches, [], PlanOptions(check=True, **options))


def verdicts(plan: Plan) -> list[str]:
    """What the report says of loops, conditionals and arrays."""
    return [text for text, _ in plan.report if text.startswith(("loop ", "cond ", "TensorArray "))]


def nodes(plan: Plan) -> list[str]:
    """The nodes of clusters and the rest of the graph, by type."""
    found: list[str] = []
    for op in plan.graph.get_operations():
        found += [o.type for o in op._attrs["body"].nodes] if op.type == "_Cluster" else [op.type]
    return found


def statements(body: Any) -> list[str]:
    """The nodes of a body as text; copies of constants by the constant's name."""
    return [re.sub(r"(/y)_1\b", r"\1", format_op(op).split(" on(")[0]).replace("AddV2", "Add") for op in body.nodes]


def both(fetches: Any, feeds: dict[Any, Any] | None = None) -> tuple[Any, Any]:
    """The values, compiled and on the executor."""
    graph = (fetches[0] if isinstance(fetches, list) else fetches).graph
    with tf.Session(graph=graph) as session:
        compiled = session.run(fetches, feeds)
    with on_the_executor(tf.Session(graph=graph)) as session:
        return compiled, session.run(fetches, feeds)


def agree(fetches: Any, feeds: dict[Any, Any] | None = None) -> Any:
    compiled, stepped = both(fetches, feeds)
    for a, b in zip(tf.nest.flatten(compiled), tf.nest.flatten(stepped), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)
    return compiled


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as made:
        yield made


def counted(n: Any, body: Callable[[Any], Any], x: Any, **options: Any) -> Any:
    """x after n rounds of body."""
    return tf.while_loop(lambda i, _: i < n, lambda i, v: (i + 1, body(v)), [tf.constant(0), x], **options)[1]


# ---- what the pass makes -----------------------------------------------------------------------------------


def test_a_loop_becomes_one_node() -> None:
    x = tf.placeholder(tf.float32, [2])
    plan = planned(counted(5, lambda v: v * 2.0 + x, x))
    assert verdicts(plan) == ["loop 'while/while_context' compiled"]
    assert not plan.dynamic
    (cluster,) = (op for op in plan.graph.get_operations() if op.type == "_Cluster")
    (loop,) = cluster._attrs["body"].nodes
    assert loop.type == "_CompiledLoop"
    body = loop._attrs["body"]
    assert statements(loop._attrs["cond"]) == ["while/Less = Less(while/Merge, while/Less/y)"]
    assert statements(body) == [
        "while/add = Add(while/Merge, while/add/y)",
        "while/mul = Mul(while/Merge_1, while/mul/y)",
        "while/add_1 = Add(while/mul, while/add_1/Enter)",
    ]
    assert loop._attrs["finish"].nodes == []


def test_a_conditional_becomes_one_node() -> None:
    x = tf.placeholder(tf.float32, [2])
    y = tf.cond(x[0] > 0, lambda: tf.exp(x), lambda: tf.tanh(x) - x)
    plan = planned(y)
    assert verdicts(plan) == ["cond 'cond/Merge' compiled"]
    assert "_CompiledCond" in nodes(plan)
    assert not plan.dynamic


def test_inner_loops_come_first() -> None:
    x = tf.placeholder(tf.float32, [])
    plan = planned(counted(3, lambda v: counted(2, lambda w: w + x, v), x))
    assert verdicts(plan) == [
        "loop 'while/while/while_context' compiled",
        "loop 'while/while_context' compiled",
    ]


def test_what_stays_on_the_executor_and_why() -> None:
    x = tf.placeholder(tf.float32, [2])
    host = counted(3, lambda v: tf.cast(tf.unique(v)[1], tf.float32) + v, x)
    (why,) = verdicts(planned(host))
    assert why.startswith("loop 'while/while_context' runs on the executor: 'while/Unique' (Unique) is a host op")
    free = tf.while_loop(lambda v: v[0] < 5, lambda v: v + 1, [x])
    assert "nothing bounds its iterations" in verdicts(planned(free))[0]
    drawn = counted(3, lambda v: v + tf.random_uniform([2]), x)
    assert "draws random numbers" in verdicts(planned(drawn))[0]
    grows = tf.while_loop(
        lambda i, v: i < 2, lambda i, v: (i + 1, tf.concat([v, v], 0)), [tf.constant(0), x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )[1]  # fmt: skip
    assert "may change its shape" in verdicts(planned(grows))[0]


def test_it_can_be_switched_off() -> None:
    y = counted(3, lambda v: v + 1, tf.placeholder(tf.float32, []))
    for options in ({"loops": False}, {"cluster": False}):
        plan = planned(y, **options)
        assert plan.dynamic
        assert verdicts(plan) == []


def test_a_gradient_takes_what_the_loop_kept() -> None:
    x = tf.placeholder(tf.float32, [])
    y = counted(4, lambda v: tf.sin(v) * x, x)
    plan = planned([y, tf.gradients(y, x)[0]])
    assert not plan.dynamic
    assert nodes(plan).count("_CompiledLoop") == 2
    assert not any("Stack" in kind for kind in nodes(plan))


def test_a_gradient_without_a_bound_stays_on_the_executor() -> None:
    x, n = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    y = counted(tf.cast(n, tf.int32), lambda v: tf.sin(v) * x, x)
    dx = tf.gradients(y, x)[0]
    assert any("bound of its iterations that is known" in text for text in verdicts(planned([y, dx])))
    agree([y, dx], {x: 0.5, n: 3.0})


def test_arrays_become_buffers() -> None:
    x = tf.placeholder(tf.float32, [4, 3])
    source, out = tf.TensorArray(tf.float32, 4).unstack(x), tf.TensorArray(tf.float32, 4)
    out = tf.while_loop(
        lambda i, _: i < 4, lambda i, out: (i + 1, out.write(i, source.read(i) * 2.0)), [tf.constant(0), out]
    )[1]
    y = out.stack()
    plan = planned([y, tf.gradients(y, x)[0]])
    assert not plan.dynamic
    assert not any(kind.startswith("TensorArray") for kind in nodes(plan))


def test_an_array_that_may_be_written_to_twice_stays() -> None:
    out = tf.TensorArray(tf.float32, 4)
    out = tf.while_loop(lambda i, _: i < 4, lambda i, out: (i + 1, out.write(i // 2, 1.0)), [tf.constant(0), out])[1]
    assert any("may write to a place twice" in text for text in verdicts(planned(out.stack())))


# ---- both ways give the same ----------------------------------------------------------------------------------


def test_a_condition_that_fails_inside_names_its_node() -> None:
    x, n = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i, _: i < n, lambda i, v: (i + 1, v + tf.gather(x, i)), [tf.constant(0), 0.0])[1]
    assert agree(y, {x: [1, 2, 3], n: 3}) == 6
    error = pytest.raises(tf.errors.InvalidArgumentError, match=r"indices = 3 is not in \[0, 3\)")
    with tf.Session() as session, error as e:
        session.run(y, {x: [1, 2, 3], n: 7})
    assert e.value.op.name.startswith("while/Gather")


def test_only_the_chosen_side_fails() -> None:
    x, i = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])
    y = tf.cond(i < 3, lambda: tf.gather(x, i), lambda: tf.constant(-1.0))
    assert (agree(y, {x: [1, 2, 3], i: 1}), agree(y, {x: [1, 2, 3], i: 7})) == (2, -1)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="indices = -1"):
        session.run(y, {x: [1, 2, 3], i: -1})


def test_shapes_that_change_after_all() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = counted(3, lambda v: tf.concat([v, v], 0), x, shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])
    z = tf.cond(x[0] > 0, lambda: tf.concat([x, x], 0), lambda: -x)
    assert agree(y, {x: [1, 2]}).shape == (16,)
    assert (agree(z, {x: [1, 2]}).shape, agree(z, {x: [-1, 2]}).shape) == ((4,), (2,))


def test_conditionals_of_one_predicate_around_a_loop() -> None:
    """What the loop takes only as an invariant comes before what it returns: they can't be one node."""
    x, p = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.bool, [])
    first = tf.cond(p, lambda: tf.sin(x), lambda: tf.cos(x))

    def body(i: Any, y: Any) -> Any:
        y = tf.py_func(lambda a: a * np.float32(2), [y + first], tf.float32)
        return i + 1, tf.reshape(y, [3])

    looped = tf.while_loop(lambda i, y: i < 2, body, [0, x])[1]
    last = tf.cond(p, lambda: tf.exp(looped), lambda: tf.tanh(looped))
    assert "cond 'cond_1/Merge' compiled" in verdicts(planned(last))
    for value in (True, False):
        agree(last, {x: np.array([0.1, -0.2, 0.3], np.float32), p: value})


@pytest.mark.parametrize("value", [True, False])
def test_a_branch_that_others_take_too(value: bool) -> None:
    """A node of a compiled branch that is used outside of it stays dead where its branch isn't taken."""
    x, p = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.bool, [])
    no, yes = emit("Switch", x, p)
    shared = tf.sin(no)
    compiled, _ = emit("Merge", [shared, tf.cos(yes)])
    same = tf.logical_not(tf.logical_not(p))  # what the planner doesn't know to be the same
    _, other = emit("Switch", tf.py_func(lambda a: a, [x], tf.float32), same)
    merged, _ = emit("Merge", [tf.exp(shared), other * 3.0])
    assert verdicts(planned([compiled, merged])) == ["cond 'Merge' compiled"]
    fed = np.array([0.1, -0.2, 0.3], np.float32)
    found = agree([compiled, merged], {x: fed, p: value})
    wanted = [np.cos(fed), fed * 3] if value else [np.sin(fed), np.exp(np.sin(fed))]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_recurrent_net(dynamic: bool) -> None:
    rng = np.random.default_rng(3)
    xs = tf.placeholder(tf.float32, [None, None, 3] if dynamic else [4, 2, 3])
    w = tf.placeholder(tf.float32, [3, 3])
    b = tf.placeholder(tf.float32, [3])
    n = tf.shape(xs)[0]
    source, out = tf.TensorArray(tf.float32, n).unstack(xs), tf.TensorArray(tf.float32, n)

    def body(i: Any, h: Any, out: Any) -> Any:
        h = tf.tanh(tf.matmul(source.read(i) + h, w) + b)
        return i + 1, h, out.write(i, h)

    start = tf.zeros([tf.shape(xs)[1], 3])
    _, h, out = tf.while_loop(lambda i, *_: i < n, body, [tf.constant(0), start, out])
    ys = out.stack()
    grads = tf.gradients(tf.reduce_sum(ys * ys) + tf.reduce_sum(h), [xs, w, b])
    assert not planned([ys, *grads]).dynamic
    for steps in (4, 1) if dynamic else (4,):
        agree([ys, *grads], {xs: rng.normal(size=(steps, 2, 3)), w: rng.normal(size=(3, 3)), b: rng.normal(size=3)})


#: bodies: one value from two, which keeps the shape
_STEPS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + 0.5 * b,
    lambda a, b: tf.tanh(a) * b,
    lambda a, b: tf.where(a > b, a - b, b),
    lambda a, b: tf.maximum(a, 0.25) - tf.reduce_mean(b),
    lambda a, b: tf.reverse(a, [0]) + 0.125,
    lambda a, b: tf.reshape(tf.matmul(tf.expand_dims(a, 0), tf.stack([b, a, b])), [3]) * 0.25,
]
_leaf = st.tuples(st.just("step"), st.integers(0, len(_STEPS) - 1))
_programs = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.tuples(st.just("loop"), st.integers(0, 4), st.integers(1, 2), inner),
        st.tuples(st.just("cond"), st.integers(-2, 2), inner, inner),
        st.tuples(st.just("both"), inner, inner),
        st.tuples(st.just("array"), st.integers(1, 3), inner),
    ),
    max_leaves=4,
)


def _build(program: Any, a: Any, b: Any) -> Any:
    """The value of a generated program; b never changes in it (what loops capture)."""
    kind = program[0]
    if kind == "step":
        return _STEPS[program[1]](a, b)
    if kind == "both":
        return _build(program[2], _build(program[1], a, b), b)
    if kind == "cond":
        pred = tf.reduce_sum(a) > float(program[1])
        return tf.cond(pred, lambda: _build(program[2], a, b), lambda: _build(program[3], a, b))
    if kind == "array":
        n = program[1]
        out = tf.TensorArray(tf.float32, n)

        def write(i: Any, v: Any, out: Any) -> Any:
            v = _build(program[2], v, b)
            return i + 1, v, out.write(i, v)

        _, v, out = tf.while_loop(lambda i, *_: i < n, write, [tf.constant(0), a, out])
        return v + tf.reduce_sum(out.stack(), 0)
    n, step, inner = program[1:]
    return tf.while_loop(
        lambda i, _: i < n, lambda i, v: (i + step, _build(inner, v, b)), [tf.constant(0), a]
    )[1]


def _has_nested_loop(program: Any, loops: int = 0, conds: int = 0) -> bool:
    """Whether a loop inside a loop lies in a branch: such a branch may stay on the executor."""
    kind = program[0]
    if kind == "step":
        return False
    loops += kind in ("loop", "array")
    conds += kind == "cond"
    return (conds > 0 and loops > 1) or any(
        _has_nested_loop(p, loops, conds) for p in program[1:] if isinstance(p, tuple)
    )


@settings(max_examples=25, deadline=None)
@given(program=_programs, seed=st.integers(0, 3))
def test_generated_programs(program: Any, seed: int) -> None:
    with Graph().as_default():
        a, b = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
        y = _build(program, a, b)
        values = np.random.default_rng(seed).normal(size=(2, 3)).astype(np.float32)
        plan = planned(y)
        if not _has_nested_loop(program):
            assert not any("executor" in text for text in verdicts(plan)), verdicts(plan)
        agree(y, {a: values[0], b: values[1]})


@settings(max_examples=12, deadline=None)
@given(program=_programs, seed=st.integers(0, 3))
def test_generated_gradients(program: Any, seed: int) -> None:
    with Graph().as_default():
        a, b = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
        y = _build(program, a, b)
        grads = [g for g in tf.gradients(y, [a, b]) if g is not None]
        values = np.random.default_rng(seed).normal(size=(2, 3)).astype(np.float32)
        agree([y, *grads], {a: values[0], b: values[1]})
