"""Scopes, conversion and seeds: public functions over the default graph."""

from collections.abc import Iterator

import pytest

import thalweg.ops  # noqa: F401  fills the registry
from thalweg.base import dtypes
from thalweg.graph import registry
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.library import framework, random_seed
from thalweg.library.framework import name_scope


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with Graph().as_default() as graph:
        yield graph


def test_name_scopes_are_unique_and_nest() -> None:
    with name_scope("x") as first, name_scope("x") as inner:
        pass
    with name_scope("x") as second:
        with name_scope(None) as top, name_scope("x/") as again:
            pass
        with name_scope(None, "default") as default:
            pass
    assert (first, inner, second, top, again, default) == ("x/", "x/x/", "x_1/", "", "x/", "x_1/default/")
    assert name_scope("y").name == "y"


def test_one_name_scope_object_may_be_entered_again(graph: Graph) -> None:
    scope = name_scope("s")
    with scope as a, scope as b:
        assert (a, b) == ("s/", "s/s/")
    assert graph.get_name_scope() == ""


def test_name_scope_takes_the_graph_of_its_values(graph: Graph) -> None:
    other = Graph()
    with other.as_default():
        x = emit.constant(1.0)
    with name_scope("s", values=[x, None, 3]):
        assert framework.get_default_graph() is other
    assert framework.get_default_graph() is graph
    with pytest.raises(ValueError, match="must be from the same graph as"), name_scope("s", values=[x, emit.constant(1.0)]):
        pass


def test_name_scope_refuses_bad_arguments() -> None:
    with pytest.raises(ValueError, match="At least one of name"):
        name_scope(None, None, [1])
    with pytest.raises(TypeError, match="You likely meant to pass this into the `values` kwarg"):
        name_scope("a", [1])


def test_op_scope() -> None:
    with framework.op_scope([1.0], None, "old") as scope:
        assert scope == "old/"


def test_conversion() -> None:
    assert framework.convert_to_tensor(1, preferred_dtype=dtypes.float32).dtype == dtypes.float32
    assert framework.convert_to_tensor(1.5, dtype_hint=dtypes.int32).dtype == dtypes.float32
    rows = IndexedSlices(emit.constant([1.0]), emit.constant([0]))
    assert framework.convert_to_tensor_or_indexed_slices(rows, dtypes.float32) is rows
    with pytest.raises(ValueError, match="requested dtype int32 for Tensor with dtype float32"):
        framework.convert_to_tensor_or_indexed_slices(rows, dtypes.int32)
    assert not framework.is_tensor(1) and framework.is_tensor(rows)


def test_placeholders() -> None:
    x = framework.placeholder(dtypes.float32, [None, 3], name="x")
    assert (x.name, x.shape.as_list()) == ("x:0", [None, 3])
    assert framework.placeholder(dtypes.float32).shape.rank is None
    y = framework.placeholder_with_default([1.0, 2.0], [None])
    assert (y.name, y.op.inputs[0].name, y.shape.as_list()) == (
        "PlaceholderWithDefault:0",
        "PlaceholderWithDefault/input:0",
        [None],
    )


def test_registered_gradients_take_the_operation_only() -> None:
    @framework.RegisterGradient("TestFrameworkOnly")
    def gradient(op, dy):
        return dy * 2

    found = registry.gradient_function("TestFrameworkOnly")
    assert found(emit, None, 3) == [6]
    with pytest.raises(KeyError, match="Registering two gradient with name 'TestFrameworkOnly'!"):
        framework.NotDifferentiable("TestFrameworkOnly")
    with pytest.raises(TypeError, match="op_type must be a string"):
        framework.RegisterGradient(3)


def test_seeds() -> None:
    assert random_seed.get_seed(None) == (None, None)
    assert random_seed.get_seed(3) == (87654321, 3)
    random_seed.set_random_seed(5)
    assert random_seed.get_seed(3) == (5, 3)
    emit.constant(1)
    assert [random_seed.get_seed(None) for _ in range(2)] == [(5, 0), (5, 1)]  # how often so far
    random_seed.set_random_seed(0)
    assert random_seed.get_seed(0) == (0, 2**31 - 1)
