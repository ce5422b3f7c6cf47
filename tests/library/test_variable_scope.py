"""get_variable, variable scopes, partitioned variables and templates; names and messages are TensorFlow's."""

from collections.abc import Iterator
from typing import Any

import pytest

import thalweg.ops  # noqa: F401  fills the registry
from thalweg.base import dtypes
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.library import framework, operators, variables  # noqa: F401  `*` on tensors
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.initializers import constant_initializer, ones_initializer
from thalweg.library.partitioners import (
    fixed_size_partitioner,
    min_max_variable_partitioner,
    variable_axis_size_partitioner,
)
from thalweg.library.template import make_template
from thalweg.library.variable_scope import (
    AUTO_REUSE,
    create_partitioned_variables,
    get_local_variable,
    get_variable,
    get_variable_scope,
    variable_op_scope,
    variable_scope,
)


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with Graph().as_default() as graph:
        yield graph


def node() -> str:
    return emit.constant(0).op.name


# ---- names -----------------------------------------------------------------------------------------------


def test_variables_share_a_scope_and_nodes_do_not() -> None:
    with variable_scope("a") as a:
        v = get_variable("v", [1])
        with variable_scope("b"):
            assert (get_variable("w", [1]).name, node()) == ("a/b/w:0", "a/b/Const")
    with variable_scope("a", reuse=True):
        assert get_variable("v", [1]) is v
        assert node() == "a_1/Const"
    with variable_scope(a, reuse=True) as again:
        assert get_variable("v") is v
        assert (node(), again.original_name_scope) == ("a_2/Const", "a/")


def test_a_scope_object_leads_back_from_anywhere() -> None:
    with variable_scope("a") as a:
        pass
    with variable_scope("outer"):
        with variable_scope(a, auxiliary_name_scope=False) as scope:
            assert (scope.name, scope.original_name_scope, node()) == ("a", "a/", "outer/Const")
        with variable_scope(a):
            assert (get_variable("v", [1]).name, node()) == ("a/v:0", "outer/a/Const")


def test_name_scopes_do_not_touch_get_variable() -> None:
    with framework.name_scope("ns"), variable_scope("vs"):
        assert get_variable("v", [1]).name == "vs/v:0"
        assert variables.Variable(1.0, name="z").name == "ns/vs/z:0"


def test_default_names_are_unique_within_their_scope() -> None:
    names = []
    for _ in range(2):
        with variable_scope(None, "dense") as scope:
            names += [scope.name, node()]
    for _ in range(2):
        with variable_scope("p"), variable_scope(None, "dense") as scope:
            names += [scope.name, node()]
    assert names == [
        "dense",
        "dense/Const",
        "dense_1",
        "dense_1/Const",
        "p/dense",
        "p/dense/Const",
        "p/dense",
        "p_1/dense/Const",
    ]


def test_one_scope_object_may_be_entered_twice() -> None:
    scope = variable_scope("s")
    with scope:
        v = get_variable("v", [1])
    with scope as entered:
        entered.reuse_variables()
        assert get_variable("v") is v
    assert get_variable_scope().name == ""


def test_variable_op_scope() -> None:
    with variable_op_scope([emit.constant(1.0)], None, "old") as scope:
        assert scope.name == "old"


# ---- defaults --------------------------------------------------------------------------------------------


def test_inner_scopes_inherit() -> None:
    initializer = constant_initializer(2.0)
    with (
        variable_scope("o", initializer=initializer, use_resource=True, dtype=dtypes.float64, caching_device="/cpu:0"),
        variable_scope("i") as scope,
    ):
        assert (scope.initializer, scope.use_resource, scope.caching_device) == (initializer, True, "/cpu:0")
        v = get_variable("v", [1])
        assert isinstance(v, variables.ResourceVariable) and v.dtype == dtypes.float64
        assert v.initial_value.name == "o/i/v/Initializer/Const:0"
        assert isinstance(variables.Variable(1.0), variables.ResourceVariable)


def test_reuse_is_inherited_and_cannot_be_taken_back() -> None:
    with variable_scope("a", reuse=True), variable_scope("b", reuse=False) as scope:
        assert scope.reuse is True
    assert get_variable_scope().reuse is False
    with variable_scope("c", reuse=AUTO_REUSE):
        assert get_variable("v", [1]) is get_variable("v", [1])


def test_custom_getters_nest() -> None:
    calls = []

    def outer(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        calls.append(("outer", name))
        return getter(name + "_o", *args, **kwargs)

    def inner(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        calls.append(("inner", name))
        return getter(name + "_i", *args, **kwargs)

    with variable_scope("s", custom_getter=outer), variable_scope("t", custom_getter=inner):
        assert get_variable("v", [1]).name == "s/t/v_i_o:0"
    assert calls == [("inner", "s/t/v"), ("outer", "s/t/v_i")]


def test_a_regularizer_adds_its_loss_to_the_collection() -> None:
    def loss(v: Any) -> Any:
        return emit("Neg", v)

    v = get_variable("v", [1], regularizer=loss)
    get_variable("w", [1], regularizer=lambda v: None)
    (found,) = framework.get_collection(GraphKeys.REGULARIZATION_LOSSES)
    assert found.name == "v/Regularizer/Neg:0"
    assert found.op.inputs[0] is v.value()
    assert found.op._attrs["_class"] == (b"loc:@v",)


def test_local_variables() -> None:
    v = get_local_variable("l", [1])
    assert variables.local_variables() == [v]
    assert variables.global_variables() == variables.trainable_variables() == []
    assert not v.trainable


def test_default_initializers() -> None:
    assert get_variable("f", [2]).initial_value.name == "f/Initializer/random_uniform:0"
    assert get_variable("i", [2], dtype=dtypes.int32).initial_value.name == "i/Initializer/zeros:0"
    assert get_variable("c", [2], initializer=ones_initializer).initial_value.name == "c/Initializer/ones:0"
    assert get_variable("n", initializer=lambda: emit.constant([1.0])).initial_value.name == "n/Initializer/Const:0"
    with pytest.raises(ValueError, match=r"An initializer for variable z of .* is required"):
        get_variable("z", [2], dtype=dtypes.complex64)


# ---- errors ----------------------------------------------------------------------------------------------


def test_a_second_variable_of_a_name_is_refused_and_says_where_the_first_is() -> None:
    get_variable("v", [1])  # the first
    with pytest.raises(ValueError, match=r"Variable v already exists, disallowed. Did you mean to set reuse=True") as e:
        get_variable("v", [1])
    assert "Originally defined at:\n\n" in str(e.value) and "# the first" in str(e.value)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"name": "nope", "shape": [1]}, "Variable nope does not exist, or was not created with tf.get_variable()"),
        ({"name": "v", "shape": [2]}, "Trying to share variable v, but specified shape (2,) and found shape (1,)."),
        (
            {"name": "v", "dtype": dtypes.int32},
            "Trying to share variable v, but specified dtype int32 and found dtype float32_ref.",
        ),
    ],
)
def test_reuse_refuses_what_does_not_fit(arguments: dict, text: str) -> None:
    get_variable("v", [1])
    with variable_scope("", reuse=True), pytest.raises(ValueError) as e:
        get_variable(**arguments)
    assert text in str(e.value)


def test_a_new_variable_needs_a_shape_or_a_value() -> None:
    with pytest.raises(ValueError, match=r"Shape of a new variable \(v\) must be fully defined"):
        get_variable("v")
    with pytest.raises(ValueError, match=r"If initializer is a constant, do not specify shape."):
        get_variable("v", [2], initializer=emit.constant([1.0, 2.0]))
    with pytest.raises(ValueError, match="Initializer type 'float32' and explicit dtype 'int32' don't match"):
        get_variable("v", dtype=dtypes.int32, initializer=emit.constant([1.0]))
    with pytest.raises(ValueError, match="The initializer passed for variable v is not valid"):
        get_variable("v", [None], initializer=ones_initializer())


def test_bad_scopes() -> None:
    with pytest.raises(TypeError, match="If default_name is None then name_or_scope is required"):
        variable_scope(None)
    with pytest.raises(ValueError, match="reuse=True cannot be used without a name_or_scope"):
        variable_scope(None, "d", reuse=True)
    with pytest.raises(ValueError, match="The reuse parameter must be True or False or None"):
        variable_scope("x", reuse=3)
    with pytest.raises(TypeError, match="name_or_scope must be a string or VariableScope"):
        variable_scope(3)


def test_a_scope_is_left_when_its_body_fails(graph: Graph) -> None:
    with pytest.raises(RuntimeError, match="body"), variable_scope("a"):
        raise RuntimeError("body")
    assert (get_variable_scope().name, graph.get_name_scope()) == ("", "")


# ---- partitioned variables -------------------------------------------------------------------------------


def test_partitioners() -> None:
    def cut(partitioner: Any) -> list[int]:
        cut.count += 1
        return get_variable(f"p{cut.count}", [10, 3], partitioner=partitioner)._get_partitions()

    cut.count = 0
    assert cut(fixed_size_partitioner(3)) == [3, 1]
    assert cut(fixed_size_partitioner(2, axis=1)) == [1, 2]
    assert cut(variable_axis_size_partitioner(30)) == [5, 1]
    assert cut(variable_axis_size_partitioner(30, max_shards=2)) == [2, 1]
    assert cut(min_max_variable_partitioner(4, min_slice_size=16)) == [4, 1]
    with pytest.raises(ValueError, match="Can only slice a variable along one dimension"):
        cut(lambda **_: [2, 2])


def test_partitioned_variables_are_slices() -> None:
    whole = get_variable("q", [10, 3], partitioner=fixed_size_partitioner(3))
    assert [(v.name, v.shape.as_list(), v._get_save_slice_info().spec) for v in whole] == [
        ("q/part_0:0", [4, 3], "10 3 0,4:0,3"),
        ("q/part_1:0", [3, 3], "10 3 4,3:0,3"),
        ("q/part_2:0", [3, 3], "10 3 7,3:0,3"),
    ]
    assert len(whole) == 3 and whole.shape.as_list() == [10, 3]
    tensor = framework.convert_to_tensor(whole)
    assert (tensor.name, tensor.op.inputs[0].name) == ("q:0", "q/ConcatPartitions/concat:0")
    with variable_scope("", reuse=True):
        assert get_variable("q") is whole
    with pytest.raises(ValueError, match="a partitioned version of the variable was found: q/part_0"):
        get_variable("q", [10, 3])
    with pytest.raises(ValueError, match="Partitioned variable with name q already exists"):
        get_variable("q", [10, 3], partitioner=fixed_size_partitioner(3))


def test_a_value_is_sliced_for_the_parts() -> None:
    whole = get_variable("q", initializer=emit.constant([1.0, 2.0]), partitioner=fixed_size_partitioner(2))
    assert [v.initial_value.name for v in whole] == [
        "q/part_0/PartitionedInitializer/Slice:0",
        "q/part_1/PartitionedInitializer/Slice:0",
    ]


def test_create_partitioned_variables() -> None:
    parts = create_partitioned_variables([4, 2], [2, 1], ones_initializer())
    assert [v.name for v in parts] == ["PartitionedVariable/part_0:0", "PartitionedVariable/part_1:0"]


# ---- templates -------------------------------------------------------------------------------------------


def test_a_template_shares_its_variables_between_calls() -> None:
    template = make_template("t", lambda x: get_variable("w", [x]), x=1)
    w = template()
    assert template() is w and template.variables == template.trainable_variables == [w]
    other = make_template("t", lambda: get_variable("w", [1]))
    assert (w.name, other().name, template.variable_scope.name) == ("t/w:0", "t_1/w:0", "t")


def test_a_template_may_open_its_scope_at_once() -> None:
    template = make_template("t", lambda: get_variable("w", [1]), create_scope_now_=True)
    with variable_scope("elsewhere"):
        assert template().name == template().name == "t/w:0"


def test_a_template_makes_no_trainable_variable_twice() -> None:
    template = make_template("t", lambda: variables.Variable(1.0))
    template()
    with pytest.raises(ValueError, match="Trainable variable created when calling a template") as e:
        template()
    assert "originally defined at:" in str(e.value)
