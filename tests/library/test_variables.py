"""Variables: their nodes as TensorFlow makes them, and what their constructors and lists promise.

The lines of expected graphs are TensorFlow's, but for the nodes of type _InitializedValue (there: a cond).
"""

from collections.abc import Iterator

import pytest

import thalweg.ops  # noqa: F401  fills the registry
from thalweg.base import dtypes
from thalweg.client.session import Session
from thalweg.graph import registry
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.library import framework, grouping, operators, state_ops, variables  # noqa: F401  `+` on tensors
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.variable_base import variable_creator_scope
from thalweg.library.variables import Variable, VariableSynchronization
from thalweg.runtime.resources import Variable as Storage


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with Graph().as_default() as graph:
        yield graph


def lines(graph: Graph) -> list[str]:
    """One line a node: name, type, inputs, control inputs, device, colocation group."""
    result = []
    for op in graph.get_operations():
        inputs = [t.name.removesuffix(":0") for t in op.inputs] + ["^" + c.name for c in op.control_inputs]
        group = "".join(" @" + g.decode().removeprefix("loc:@") for g in op._attrs.get("_class", ()))
        result.append(f"{op.name} = {op.type}({', '.join(inputs)}){' on ' + op.device if op.device else ''}{group}")
    return result


def ref(value: object = 0.0, **arguments: object) -> Variable:
    return Variable(value, **arguments)


def res(value: object = 0.0, **arguments: object) -> Variable:
    return Variable(value, use_resource=True, **arguments)


# ---- the nodes -------------------------------------------------------------------------------------------


def test_reference_variable_is_three_nodes_and_a_read(graph: Graph) -> None:
    v = ref([1.0, 2.0])
    assert lines(graph) == [
        "Variable/initial_value = Const()",
        "Variable = VariableV2()",
        "Variable/Assign = Assign(Variable, Variable/initial_value) @Variable",
        "Variable/read = Identity(Variable) @Variable",
    ]
    assert (v.name, v.dtype, v.shape.as_list()) == ("Variable:0", dtypes.float32._as_ref, [2])
    assert (v.initializer.name, v.value().name, v.op.type) == ("Variable/Assign", "Variable/read:0", "VariableV2")
    assert v.initializer._attrs["validate_shape"] is v.initializer._attrs["use_locking"] is True
    assert v.initial_value.name == "Variable/initial_value:0"
    assert repr(v) == "<tf.Variable 'Variable:0' shape=(2,) dtype=float32_ref>"


def test_a_function_makes_its_nodes_under_initializer_beside_the_variable(graph: Graph) -> None:
    with framework.device("/cpu:0"):
        ref(lambda: emit.constant([0.0, 0.0], name="zeros"), name="w", dtype=dtypes.float32)
    assert lines(graph) == [
        "w/Initializer/zeros = Const() @w",
        "w = VariableV2() on /device:CPU:0 @w",
        "w/Assign = Assign(w, w/Initializer/zeros) on /device:CPU:0 @w",
        "w/read = Identity(w) on /device:CPU:0 @w",
    ]


def test_caching_device_holds_the_read(graph: Graph) -> None:
    ref(1.0, name="c", caching_device="/cpu:1")
    assert lines(graph)[-1] == "c/read = Identity(c) on /device:CPU:1"


def test_resource_variable(graph: Graph) -> None:
    v = res([1.0, 2.0])
    assert lines(graph) == [
        "Variable/Initializer/initial_value = Const() @Variable",
        "Variable = VarHandleOp() @Variable",
        "Variable/IsInitialized/VarIsInitializedOp = VarIsInitializedOp(Variable)",
        "Variable/Assign = AssignVariableOp(Variable, Variable/Initializer/initial_value)",
        "Variable/Read/ReadVariableOp = ReadVariableOp(Variable)",
    ]
    assert v.handle.op._attrs["shared_name"] == b"Variable"
    assert (v.name, v.dtype, v.shape.as_list()) == ("Variable:0", dtypes.float32, [2])
    assert repr(v) == "<tf.Variable 'Variable:0' shape=(2,) dtype=float32>"


def test_resource_variable_with_a_caching_device(graph: Graph) -> None:
    v = res(1.0, name="c", caching_device="/cpu:1")
    assert lines(graph)[-1] == "c/Read/Identity = Identity(c/Read/ReadVariableOp) on /device:CPU:1"
    assert v.value().name == "c/Read/Identity:0"


def test_reads_and_updates_of_a_reference(graph: Graph) -> None:
    v = ref([1.0, 2.0])
    start = len(lines(graph))
    v.assign([3.0, 4.0])
    v.assign_add([1.0, 1.0])
    v + 1.0
    v.read_value()
    state_ops.assign(v, [1.0, 1.0])
    v.scatter_add(IndexedSlices(emit.constant([1.0]), emit.constant([0])))
    assert lines(graph)[start:] == [
        "Assign/value = Const()",
        "Assign = Assign(Variable, Assign/value) @Variable",
        "AssignAdd/value = Const()",
        "AssignAdd = AssignAdd(Variable, AssignAdd/value) @Variable",
        "add/y = Const()",
        "add = AddV2(Variable/read, add/y)",
        "read = Identity(Variable)",
        "Assign_1/value = Const()",
        "Assign_1 = Assign(Variable, Assign_1/value) @Variable",
        "Const = Const()",
        "Const_1 = Const()",
        "ScatterAdd = ScatterAdd(Variable, Const_1, Const) @Variable",
    ]
    assert graph.get_operation_by_name("Assign")._attrs["use_locking"] is False
    assert graph.get_operation_by_name("Assign_1")._attrs["use_locking"] is True


def test_reads_and_updates_through_a_handle(graph: Graph) -> None:
    v = res([1.0, 2.0])
    start = len(lines(graph))
    after = v.assign([3.0, 4.0])
    v.assign_sub([1.0, 1.0], read_value=False)
    v + 1.0
    v.read_value()
    emit("Identity", after)
    v.sparse_read([0])
    v.scatter_nd_add([[0]], [1.0])
    assert lines(graph)[start:] == [
        "Const = Const()",
        "AssignVariableOp = AssignVariableOp(Variable, Const)",
        "ReadVariableOp = ReadVariableOp(Variable, ^AssignVariableOp)",
        "Const_1 = Const()",
        "AssignSubVariableOp = AssignSubVariableOp(Variable, Const_1)",
        "ReadVariableOp_1 = ReadVariableOp(Variable)",
        "add/y = Const()",
        "add = AddV2(ReadVariableOp_1, add/y)",
        "Read/ReadVariableOp = ReadVariableOp(Variable)",
        "Identity = Identity(Read/ReadVariableOp)",
        "Identity_1/ReadVariableOp = ReadVariableOp(Variable, ^AssignVariableOp)",
        "Identity_1 = Identity(Identity_1/ReadVariableOp)",
        "Gather/indices = Const()",
        "Gather = ResourceGather(Variable, Gather/indices)",
        "Const_2 = Const()",
        "ResourceScatterNdAdd/indices = Const()",
        "ResourceScatterNdAdd = ResourceScatterNdAdd(Variable, ResourceScatterNdAdd/indices, Const_2)",
        "ReadVariableOp_2 = ReadVariableOp(Variable, ^ResourceScatterNdAdd)",
    ]
    assert (after.name, after.op.name) == ("AssignVariableOp", "AssignVariableOp")


def test_an_update_of_an_updated_variable_comes_after_it(graph: Graph) -> None:
    res([1.0]).assign([2.0]).assign_add([1.0])
    assert "AssignAddVariableOp = AssignAddVariableOp(Variable, Const_1, ^AssignVariableOp)" in lines(graph)


def test_assignment_to_a_slice(graph: Graph) -> None:
    ref([1.0, 2.0])[0:1].assign([2.0])
    assert lines(graph)[-3:] == [
        "strided_slice = StridedSlice(Variable/read, strided_slice/stack, strided_slice/stack_1, strided_slice/stack_2)",
        "strided_slice/_assign/value = Const()",
        "strided_slice/_assign = StridedSliceAssign(Variable, strided_slice/stack, strided_slice/stack_1, "
        "strided_slice/stack_2, strided_slice/_assign/value) @Variable",
    ]


def test_control_dependencies_do_not_reach_a_new_variable(graph: Graph) -> None:
    with framework.control_dependencies([grouping.no_op("before")]):
        v = ref(1.0)
    assert v.initializer.control_inputs == [] and v.value().op.control_inputs == []


# ---- initial values that depend on variables --------------------------------------------------------------


@pytest.mark.parametrize("make", [ref, res])
def test_an_initial_value_reads_other_variables_safely(graph: Graph, make: object) -> None:
    v = make([1.0], name="v")
    w = make(v * 2.0, name="w")
    x = make(w * 3.0, name="x")
    source = w.initializer.inputs[1].op
    assert (source.name, source.type) == ("mul_w", "Mul")
    first = source.inputs[0].op
    if make is ref:
        assert (first.name, first.type) == ("v/read_w", "Identity")
        first = first.inputs[0].op
    assert first.name == "w/initialized_value"
    assert [t.name for t in first.inputs] == ["v:0", v.initial_value.name]
    # x starts from what w starts from, not from an unguarded read of v
    inner = next(op for op in graph.get_operations() if op.name == "x/initialized_value")
    assert inner.inputs[1] is w.initializer.inputs[1]
    assert w.initial_value.name == "mul:0"
    assert x.initializer.inputs[1].name == "mul_1_x:0"


def test_initialized_value_starts_from_the_guarded_value() -> None:
    v = ref([1.0], name="v")
    w = ref(v + 1.0, name="w")
    node = w.initialized_value().op
    assert (node.name, node.type) == ("initialized_value", "_InitializedValue")
    assert node.inputs[1] is w.initializer.inputs[1]


@pytest.mark.parametrize("make", [ref, res])
def test_dependent_variables_initialise_in_order_from_what_is_there(make: object) -> None:
    v = make([1.0, 2.0], name="v")
    w = make(v * 2.0, name="w")
    x = make(w + v, name="x")
    with Session() as session:
        session.run(x.initializer)
        assert session.run(x).tolist() == [3.0, 6.0]
        assert session.run(variables.report_uninitialized_variables()).tolist() == [b"v", b"w"]
        session.run(variables.global_variables_initializer())
        assert [value.tolist() for value in session.run([v, w, x])] == [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]
        v.load([10.0, 10.0], session)
        session.run(w.initializer)
        assert w.eval(session).tolist() == [20.0, 20.0]


@pytest.mark.parametrize("op_type", ["_InitializedValue", "_InitializedResourceValue"])
def test_the_kernel_prefers_the_value_that_there_is(op_type: str) -> None:
    kernel = registry.lookup(op_type).kernel
    storage = Storage(("variable", "", "v"))
    assert kernel.fn(None, storage, 1.0) == 1.0
    storage.value = 2.0
    assert kernel.fn(None, storage, 1.0) == 2.0
    assert storage.escaped  # the result is the variable's own array


def test_an_independent_initial_value_is_taken_as_it_is() -> None:
    value = emit.constant([1.0])
    assert ref(value).initializer.inputs[1] is value


def test_a_long_chain_of_nodes_is_no_trouble(graph: Graph) -> None:
    x = ref([1.0], name="v").value()
    for _ in range(2000):
        x = emit("Neg", x)
    assert ref(x, name="w").initializer.inputs[1].name.endswith("_w:0")


# ---- arguments -------------------------------------------------------------------------------------------


def test_collections(graph: Graph) -> None:
    a = ref(1.0)
    b = ref(1.0, trainable=False)
    c = ref(1.0, collections=[GraphKeys.LOCAL_VARIABLES])
    assert variables.global_variables() == [a, b]
    assert variables.trainable_variables() == [a, c]
    assert variables.local_variables() == [c]
    assert [v.trainable for v in (a, b, c)] == [True, False, True]
    assert not ref(1.0, synchronization=VariableSynchronization.ON_READ).trainable


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, ValueError, "initial_value must be specified."),
        ({"initial_value": 1.0, "collections": "x"}, ValueError, "must be a list, tuple, or set. Got x of type"),
        ({"initial_value": 1.0, "constraint": 3}, ValueError, "The `constraint` argument must be a callable."),
        ({"initial_value": 1.0, "synchronization": 77}, ValueError, "Invalid variable synchronization mode: 77"),
        ({"initial_value": 1.0, "aggregation": 77}, ValueError, "Invalid variable aggregation mode: 77"),
        ({"initial_value": 1.0, "colour": "red"}, TypeError, "unexpected keyword argument 'colour'"),
        ({"initial_value": [1.0], "shape": [2], "use_resource": True}, ValueError, "is not compatible with"),
    ],
)
def test_bad_arguments(arguments: dict, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Variable(**arguments)


def test_an_initial_value_of_unknown_shape() -> None:
    with pytest.raises(ValueError, match="initial_value must have a shape specified: "):
        ref(framework.placeholder(dtypes.float32))
    v = ref(framework.placeholder(dtypes.float32, [None]), validate_shape=False)
    assert v.shape.rank is None and v.initializer._attrs["validate_shape"] is False
    v.set_shape([3])
    assert v.value().shape.as_list() == [3]


def test_the_kind_follows_the_argument_and_the_process() -> None:
    assert not variables.resource_variables_enabled()
    variables.enable_resource_variables()
    try:
        assert isinstance(Variable(1.0), variables.ResourceVariable)
        assert isinstance(Variable(1.0, use_resource=False), variables.RefVariable)
    finally:
        variables.disable_resource_variables()
    assert isinstance(Variable(1.0), variables.RefVariable) and isinstance(Variable(1.0), Variable)


def test_creators_go_from_the_inside_out() -> None:
    def renames(next_creator, **arguments):
        return next_creator(**{**arguments, "name": arguments["name"] + "_out"})

    def freezes(next_creator, **arguments):
        return next_creator(**{**arguments, "name": "in", "trainable": False})

    with variable_creator_scope(renames), variable_creator_scope(freezes):
        v = Variable(1.0)
    assert (v.name, v.trainable) == ("in_out:0", False)


def test_use_as_a_tensor() -> None:
    for v in (ref([1.0, 2.0]), res([1.0, 2.0])):
        assert framework.is_tensor(v)
        assert (1.0 - v).shape.as_list() == [2]
        assert v != v.value() and v == v and len({v, v}) == 1
        with pytest.raises(TypeError, match="'Variable' object is not iterable"):
            list(v)
        with pytest.raises(ValueError, match="Incompatible type conversion requested to type 'int32'"):
            framework.convert_to_tensor(v, dtypes.int32)
    with pytest.raises(TypeError, match="be a mutable tensor"):
        emit("Assign", res([1.0]), [2.0])
    with pytest.raises(ValueError, match=r"variable shape \[1\] and value shape \[2\] are incompatible"):
        res([1.0]).assign([1.0, 2.0])
    with pytest.raises(TypeError, match="sparse_delta is not IndexedSlices"):
        ref([1.0]).scatter_add([1.0])


# ---- initialisation and checks ---------------------------------------------------------------------------


def test_initializers_of_lists(graph: Graph) -> None:
    ref(1.0, name="a")
    res(1.0, name="b")
    assert variables.global_variables_initializer().name == "init"
    assert lines(graph)[-1] == "init = NoOp(^a/Assign, ^b/Assign)"
    assert variables.local_variables_initializer().control_inputs == []


def test_reports(graph: Graph) -> None:
    v, w = ref([1.0], name="v"), res([1.0], name="w")
    names = variables.report_uninitialized_variables()
    assert names.name == "report_uninitialized_variables/boolean_mask/GatherV2:0"
    assert names.dtype == dtypes.string and names.device == "/device:CPU:0"
    checks = [line for line in lines(graph) if line.startswith("report") and "Initialized" in line.split()[0]]
    assert checks == [
        "report_uninitialized_variables/IsVariableInitialized = IsVariableInitialized(v) @v",
        "report_uninitialized_variables/VarIsInitializedOp = VarIsInitializedOp(w)",
    ]
    assert variables.report_uninitialized_variables([]).shape.as_list() == [0]
    assert variables.assert_variables_initialized().op.type == "Pack"
    assert variables.assert_variables_initialized([v]).op.type == "Rank"
    assert variables.is_variable_initialized(w).op.type == "VarIsInitializedOp"


def test_variable_nodes_without_objects_are_reported() -> None:
    emit("VariableV2", shape=[1], dtype=dtypes.float32, name="imported")
    report = variables.report_uninitialized_variables()
    assert any(t.op.type == "IsVariableInitialized" for t in _ancestors(report))


def _ancestors(tensor) -> Iterator:
    yield tensor
    for t in tensor.op.inputs:
        yield from _ancestors(t)


# ---- waiting ---------------------------------------------------------------------------------------------


def test_group_and_tuple(graph: Graph) -> None:
    v, w = ref([1.0], name="v"), res([1.0], name="w")
    start = len(lines(graph))
    grouping.group(v, [w.op, v.initializer])
    grouping.tuple([v, w, None])
    assert lines(graph)[start:] == [
        "group_deps = NoOp(^v, ^w, ^v/Assign)",
        "tuple/group_deps = NoOp(^v, ^w)",
        "tuple/control_dependency = Identity(v/read, ^tuple/group_deps) @v",
        "tuple/control_dependency_1/ReadVariableOp = ReadVariableOp(w, ^tuple/group_deps)",
        "tuple/control_dependency_1 = Identity(tuple/control_dependency_1/ReadVariableOp) @w",
    ]


def test_group_waits_once_per_device(graph: Graph) -> None:
    with framework.device("/cpu:0"):
        a = emit.constant(1.0)
    with framework.device("/cpu:1"):
        b = emit.constant(1.0)
    grouping.group(a, b, name="both")
    assert lines(graph)[2:] == [
        "both/NoOp = NoOp(^Const) on /device:CPU:0",
        "both/NoOp_1 = NoOp(^Const_1) on /device:CPU:1",
        "both = NoOp(^both/NoOp, ^both/NoOp_1)",
    ]


def test_group_and_tuple_refuse_what_is_no_node() -> None:
    with pytest.raises(TypeError, match=r"Expected tf.Operation, tf.Tensor or tf.Variable in group, not 1"):
        grouping.group(1)
    with pytest.raises(ValueError, match="Unknown keyword arguments: nme"):
        grouping.group(nme="x")
    with pytest.raises(ValueError, match="Must have at least one Tensor"):
        grouping.tuple([None])
