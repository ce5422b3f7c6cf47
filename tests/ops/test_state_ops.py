"""Variables, scatters and reads through handles, in sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import thalweg.ops  # noqa: F401
from thalweg.autodiff.gradients import gradients
from thalweg.base import dtypes, errors
from thalweg.client.session import Session
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph


class World:
    """A graph with a session, and variables of one kind."""

    def __init__(self, resource: bool, session: Session) -> None:
        self.resource = resource
        self.session = session

    def variable(self, value: Any, init: bool = True) -> Any:
        value = np.asarray(value)
        dtype = dtypes.string if value.dtype == object else dtypes.as_dtype(value.dtype)
        kind = "VarHandleOp" if self.resource else "VariableV2"
        # a name of its own: handles with equal names share one variable
        n = len(self.session.graph.get_operations())
        handle = emit(kind, dtype=dtype, shape=value.shape, shared_name=f"v{n}")
        if init:
            self.session.run(self.assign(handle, emit.constant(value, dtype)))
        return handle

    def assign(self, handle: Any, value: Any) -> Any:
        return emit.operation("AssignVariableOp" if self.resource else "Assign", handle, value)

    def update(self, op: str, handle: Any, *args: Any, **attrs: Any) -> Any:
        """Runs ScatterAdd or ResourceScatterAdd ..., returns the new value."""
        self.session.run(self.node(op, handle, *args, **attrs))
        return self.value(handle)

    def node(self, op: str, handle: Any, *args: Any, **attrs: Any) -> Any:
        return emit.operation(f"Resource{op}" if self.resource else op, handle, *args, **attrs)

    def read(self, handle: Any) -> Any:
        return emit("ReadVariableOp", handle, dtype=handle._handle[0]) if self.resource else emit("Identity", handle)

    def value(self, handle: Any) -> Any:
        return self.session.run(self.read(handle))


@pytest.fixture(params=[False, True], ids=["reference", "resource"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with Graph().as_default() as graph, Session(graph=graph) as session:
        yield World(request.param, session)


def unknown(value: Any) -> Any:
    """A tensor of this value whose shape isn't known before it runs."""
    return emit("PlaceholderWithDefault", emit.constant(value), shape=None)


# --- assigning ---


def test_assign_of_another_shape_fails_at_construction(world: World) -> None:
    v = world.variable([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="must be equal, but are 3 and 2"):
        world.assign(v, emit.constant([1.0, 2.0], dtypes.float64))


def test_assign_of_another_shape_fails_when_run(world: World) -> None:
    v = world.variable([1.0, 2.0, 3.0])
    value = unknown(np.array([1.0, 2.0]))
    op = "AssignVariableOp" if world.resource else "Assign"
    wrong = emit.operation(op, v, value, validate_shape=True)
    says = r"Expected \[3\] got \[2\]" if world.resource else r"lhs shape= \[3\] rhs shape= \[2\]"
    with pytest.raises(errors.InvalidArgumentError, match=says):
        world.session.run(wrong)
    np.testing.assert_array_equal(world.value(v), [1.0, 2.0, 3.0])


def test_assign_without_validation_changes_the_shape(world: World) -> None:
    v = world.variable([1.0, 2.0, 3.0])
    value = unknown(np.array([1.0, 2.0]))
    op = "AssignVariableOp" if world.resource else "Assign"
    world.session.run(emit.operation(op, v, value, validate_shape=False))
    np.testing.assert_array_equal(world.value(v), [1.0, 2.0])


def test_assign_add_and_sub(world: World) -> None:
    v = world.variable(np.array([1, 2], np.int32))
    end = "VariableOp" if world.resource else ""
    add = emit.operation(f"AssignAdd{end}", v, np.array([10, 20], np.int32))
    sub = emit.operation(f"AssignSub{end}", v, np.array([1, 1], np.int32))
    world.session.run(add)
    world.session.run(sub)
    np.testing.assert_array_equal(world.value(v), [10, 21])


def test_assign_add_needs_the_same_shape(world: World) -> None:
    v = world.variable([1.0, 2.0])
    op = emit.operation("AssignAddVariableOp" if world.resource else "AssignAdd", v, unknown(np.float64(1)))
    with pytest.raises(errors.InvalidArgumentError, match="must be"):
        world.session.run(op)


def test_read_of_another_dtype() -> None:
    with Graph().as_default():
        v = emit("VarHandleOp", dtype=dtypes.float32, shape=[3])
        with pytest.raises(ValueError, match=r"wrong dtype\. Expected float32 got int32"):
            emit("ReadVariableOp", v, dtype=dtypes.int32)


def test_legacy_variable_has_an_unknown_shape_for_a_scalar() -> None:
    with Graph().as_default():
        assert emit("Variable", shape=[], dtype=dtypes.float32).shape.ndims is None
        assert emit("Variable", shape=[3], dtype=dtypes.float32).shape.as_list() == [3]


def test_is_initialized(world: World) -> None:
    v = world.variable(1.0, init=False)
    if world.resource:
        check = emit("VarIsInitializedOp", v)
    else:
        check = emit("IsVariableInitialized", v)
    assert world.session.run(check) == np.False_
    world.session.run(world.assign(v, emit.constant(2.0, dtypes.float64)))
    assert world.session.run(check) == np.True_


def test_destroy() -> None:
    with Graph().as_default() as graph, Session(graph=graph) as session:
        world = World(True, session)
        v = world.variable(1.0)
        session.run(emit("DestroyResourceOp", v, ignore_lookup_error=False))
        assert not session.run(emit("VarIsInitializedOp", v))
        session.run(emit("DestroyResourceOp", v))
        with pytest.raises(errors.NotFoundError, match="does not exist"):
            session.run(emit("DestroyResourceOp", v, ignore_lookup_error=False))
        with pytest.raises(errors.FailedPreconditionError):
            world.value(v)


def test_variable_shape() -> None:
    with Graph().as_default() as graph, Session(graph=graph) as session:
        world = World(True, session)
        v = world.variable(np.zeros((2, 3), np.float32))
        shape = emit("VariableShape", v)
        assert shape.shape.as_list() == [2]
        np.testing.assert_array_equal(session.run(shape), [2, 3])


def test_count_up_to(world: World) -> None:
    v = world.variable(np.int32(1))
    kind = {"T": dtypes.int32} if world.resource else {}
    count = world.node("CountUpTo", v, limit=3, **kind).outputs[0]
    assert [world.session.run(count) for _ in range(2)] == [1, 2]
    with pytest.raises(errors.OutOfRangeError, match="Reached limit of 3"):
        world.session.run(count)
    assert world.value(v) == 3


# --- rows ---


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Update", [[1, 2], [7, 8], [5, 6], [1, 3]]),
        ("Add", [[1, 2], [3 + 6 + 7, 4 + 7 + 8], [5, 6], [8, 11]]),
        ("Sub", [[1, 2], [3 - 6 - 7, 4 - 7 - 8], [5, 6], [6, 5]]),
        ("Mul", [[1, 2], [3 * 6 * 7, 4 * 7 * 8], [5, 6], [7, 24]]),
        ("Div", [[1, 2], [3 / 6 / 7, 4 / 7 / 8], [5, 6], [7, 8 / 3]]),
        ("Min", [[1, 2], [3, 4], [5, 6], [1, 3]]),
        ("Max", [[1, 2], [7, 8], [5, 6], [7, 8]]),
    ],
)
def test_rows_that_repeat(world: World, op: str, expected: list[Any]) -> None:
    v = world.variable(np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.float32))
    updates = np.array([[6, 7], [1, 3], [7, 8]], np.float32)
    got = world.update(f"Scatter{op}", v, np.array([1, 3, 1]), updates)
    np.testing.assert_allclose(got, np.array(expected, np.float32), rtol=1e-6)


def test_a_scalar_counts_for_every_row(world: World) -> None:
    v = world.variable(np.zeros((3, 2), np.float32))
    got = world.update("ScatterAdd", v, np.array([[0, 2]]), np.float32(5))
    np.testing.assert_array_equal(got, [[5, 5], [0, 0], [5, 5]])


def test_rows_by_a_scalar_index(world: World) -> None:
    v = world.variable(np.zeros((3, 2), np.int64))
    got = world.update("ScatterUpdate", v, np.int64(1), np.array([1, 2], np.int64))
    np.testing.assert_array_equal(got, [[0, 0], [1, 2], [0, 0]])


def test_no_rows(world: World) -> None:
    v = world.variable(np.ones((3, 2), np.float32))
    for op in ("ScatterAdd", "ScatterDiv"):
        got = world.update(op, v, np.zeros((0,), np.int32), np.zeros((0, 2), np.float32))
        np.testing.assert_array_equal(got, np.ones((3, 2)))


def test_integers_divide_towards_zero(world: World) -> None:
    v = world.variable(np.array([4, -5, 6], np.int32))
    got = world.update("ScatterDiv", v, np.array([1, 1]), np.array([2, 2], np.int32))
    np.testing.assert_array_equal(got, [4, -1, 6])
    with pytest.raises(errors.InvalidArgumentError, match="Integer division by zero"):
        world.update("ScatterDiv", v, np.array([0, 1]), np.array([2, 0], np.int32))
    np.testing.assert_array_equal(world.value(v), [4, -1, 6])


def test_rows_of_strings(world: World) -> None:
    v = world.variable(np.array([b"a", b"b", b"c"], object))
    got = world.update("ScatterUpdate", v, np.array([2, 0]), np.array([b"x", b"y"], object))
    np.testing.assert_array_equal(got, np.array([b"y", b"b", b"x"], object))


BAD_ROWS = [
    (np.array([1, 7]), r"indices\[1\] = 7 is not in \[0, 3\)"),
    (np.array([-1, 1]), r"indices\[0\] = -1 is not in \[0, 3\)"),
]


@pytest.mark.parametrize("op", ["ScatterUpdate", "ScatterAdd", "ScatterDiv"])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("indices", "says"), BAD_ROWS)
def test_a_bad_row_changes_nothing(world: World, op: str, constant: bool, indices: Any, says: str) -> None:
    v = world.variable(np.ones(3, np.float32))
    with pytest.raises(errors.InvalidArgumentError, match=says):
        world.update(op, v, indices if constant else unknown(indices), np.array([5, 6], np.float32))
    np.testing.assert_array_equal(world.value(v), np.ones(3))


def test_updates_of_the_wrong_shape(world: World) -> None:
    v = world.variable(np.ones((3, 2), np.float32))
    with pytest.raises(ValueError, match="must be equal, but are 3 and 2"):
        world.node("ScatterAdd", v, np.array([1, 2]), np.ones((2, 3), np.float32))
    with pytest.raises(errors.InvalidArgumentError, match=r"Must have updates.shape = indices.shape"):
        world.update("ScatterAdd", v, np.array([1, 2]), unknown(np.ones((2, 3), np.float32)))


@pytest.mark.parametrize("sparse", ["SparseApplyAdagrad"])
def test_a_bad_row_of_an_optimizer_changes_nothing(world: World, sparse: str) -> None:
    var, accum = world.variable(np.ones((3, 2), np.float32)), world.variable(np.ones((3, 2), np.float32))
    grad = np.ones((2, 2), np.float32)
    node = world.node(sparse, var, accum, np.float32(0.1), grad, unknown(np.array([1, 7])))
    with pytest.raises(errors.InvalidArgumentError, match=r"indices\[1\] = 7 is not in \[0, 3\)"):
        world.session.run(node)
    for v in (var, accum):
        np.testing.assert_array_equal(world.value(v), np.ones((3, 2)))


# --- slices ---


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Update", [[1, 2], [3, 9], [8, 6]]),
        ("Add", [[1, 2], [3, 4 + 7 + 9], [13, 6]]),
        ("Sub", [[1, 2], [3, 4 - 7 - 9], [-3, 6]]),
        ("Min", [[1, 2], [3, 4], [5, 6]]),
        ("Max", [[1, 2], [3, 9], [8, 6]]),
    ],
)
def test_slices_that_repeat(world: World, op: str, expected: list[Any]) -> None:
    v = world.variable(np.array([[1, 2], [3, 4], [5, 6]], np.float32))
    got = world.update(f"ScatterNd{op}", v, np.array([[1, 1], [2, 0], [1, 1]]), np.array([7, 8, 9], np.float32))
    np.testing.assert_array_equal(got, expected)


def test_whole_rows_as_slices(world: World) -> None:
    v = world.variable(np.zeros((3, 2), np.float32))
    got = world.update("ScatterNdUpdate", v, np.array([[2]]), np.array([[7, 8]], np.float32))
    np.testing.assert_array_equal(got, [[0, 0], [0, 0], [7, 8]])


@pytest.mark.parametrize("constant", [False, True])
def test_a_bad_slice_changes_nothing(world: World, constant: bool) -> None:
    v = world.variable(np.ones((3, 2), np.float32))
    indices = np.array([[1, 1], [2, 7]])
    updates = np.array([5, 6], np.float32)
    given = indices if constant else unknown(indices)
    with pytest.raises(errors.InvalidArgumentError, match=r"indices\[1\] = \[2, 7\] does not index into shape \[3,2\]"):
        world.update("ScatterNdAdd", v, given, updates)
    np.testing.assert_array_equal(world.value(v), np.ones((3, 2)))
    got = world.update("ScatterNdAdd", v, given, updates, bad_indices_policy="IGNORE")
    np.testing.assert_array_equal(got, [[1, 1], [1, 6], [1, 1]])


# --- reading through handles ---


def test_resource_gather_and_its_gradient() -> None:
    with Graph().as_default() as graph, Session(graph=graph) as session:
        world = World(True, session)
        v = world.variable(np.arange(6, dtype=np.float32).reshape(3, 2))
        rows = emit("ResourceGather", v, np.array([2, 0, 2]), dtype=dtypes.float32)
        assert rows.shape.as_list() == [3, 2]
        np.testing.assert_array_equal(session.run(rows), [[4, 5], [0, 1], [4, 5]])
        (grad,) = gradients(rows, [v])
        assert isinstance(grad, IndexedSlices)
        np.testing.assert_array_equal(session.run(grad.indices), [2, 0, 2])
        np.testing.assert_array_equal(session.run(grad.dense_shape), [3, 2])
        np.testing.assert_array_equal(session.run(grad.values), np.ones((3, 2)))
        bad = emit("ResourceGather", v, unknown(np.array([0, 3])), dtype=dtypes.float32)
        with pytest.raises(errors.InvalidArgumentError, match=r"indices\[1\] = 3 is not in \[0, 3\)"):
            session.run(bad)


def test_resource_gather_with_batch_dims() -> None:
    with Graph().as_default() as graph, Session(graph=graph) as session:
        v = World(True, session).variable(np.arange(6, dtype=np.float32).reshape(2, 3))
        got = emit("ResourceGather", v, np.array([[1], [2]]), dtype=dtypes.float32, batch_dims=1)
        np.testing.assert_array_equal(session.run(got), [[1], [5]])


def test_resource_gather_nd() -> None:
    with Graph().as_default() as graph, Session(graph=graph) as session:
        v = World(True, session).variable(np.arange(6, dtype=np.float32).reshape(2, 3))
        got = emit("ResourceGatherNd", v, np.array([[1, 2], [0, 1]]), dtype=dtypes.float32)
        np.testing.assert_array_equal(session.run(got), [5, 1])
        (grad,) = gradients(got, [v])
        np.testing.assert_array_equal(session.run(grad), [[0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize("use_resource", [False, True])
def test_assignment_to_slices(use_resource: bool) -> None:
    import thalweg as tf

    start = np.arange(12, dtype=np.float32).reshape(3, 4)
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.Variable(start, use_resource=use_resource)
        cases = [
            (v[1:].assign(np.full((2, 4), 7, np.float32)), np.s_[1:], 7.0),
            (v[::-1, 1].assign([1.0, 2.0, 3.0]), np.s_[::-1, 1], [1.0, 2.0, 3.0]),
            (v[0, ...].assign(np.zeros(4, np.float32)), np.s_[0, ...], 0.0),
            (v[:, -3:-1].assign(np.ones((3, 2), np.float32)), np.s_[:, -3:-1], 1.0),
        ]
        for op, index, value in cases:
            sess.run(tf.global_variables_initializer())
            sess.run(op)
            want = start.copy()
            want[index] = value
            np.testing.assert_array_equal(sess.run(v), want)
        with pytest.raises(ValueError, match="Dimension"):
            v[1:].assign(np.ones((3, 4), np.float32))
