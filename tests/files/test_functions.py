"""Functions in GraphDefs: what a call does, in which order, and what is said of calls that can't be.

That TensorFlow's functions give TensorFlow's numbers is test_graph_files.py's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import thalweg as tf
from thalweg.base.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


# ---- graphs by hand --------------------------------------------------------------------------------------


def function(name: str, args: str, results: str, nodes: str, ret: str, control: str = "", attrs: str = "") -> str:
    """A FunctionDef as text. args, results: "x:DT_FLOAT y:DT_INT32"."""

    def arg(text: str) -> str:
        n, kind = text.split(":")
        what = f"type: {kind}" if kind.startswith("DT_") else f'type_attr: "{kind}"'
        return f'name: "{n}" {what}'

    signature = " ".join(f"input_arg {{ {arg(a)} }}" for a in args.split())
    signature += " ".join(f" output_arg {{ {arg(r)} }}" for r in results.split()) + attrs
    pairs = lambda text, field: " ".join(
        '{} {{ key: "{}" value: "{}" }}'.format(field, *pair.split("=")) for pair in text.split()
    )
    return (
        f'function {{ signature {{ name: "{name}" {signature} }} {nodes} {pairs(ret, "ret")} '
        f'{pairs(control, "control_ret")} }}'
    )


def node(name: str, op: str, inputs: str = "", field: str = "node_def", **attrs: str) -> str:
    given = " ".join(f'attr {{ key: "{k}" value {{ {v} }} }}' for k, v in attrs.items())
    return f'{field} {{ name: "{name}" op: "{op}" ' + " ".join(f'input: "{i}"' for i in inputs.split()) + f" {given} }}"


F, I, B, R = "type: DT_FLOAT", "type: DT_INT32", "type: DT_BOOL", "type: DT_RESOURCE"


def types(*kinds: str) -> str:
    return "list { " + " ".join(kinds) + " }"


def named(name: str) -> str:
    return f'func {{ name: "{name}" }}'


def call(name: str, f: str, inputs: str, tin: str, tout: str, field: str = "node", op: str = "StatefulPartitionedCall") -> str:
    return node(name, op, inputs, field, f=named(f), Tin=tin, Tout=tout)


X = node("x", "Placeholder", field="node", dtype=F)
TWICE = function("twice", "x:DT_FLOAT", "y:DT_FLOAT", node("add", "AddV2", "x x", T=F), "y=add:z:0")


def load(text: str, library: str) -> None:
    message = tf.GraphDef()
    text_format.Parse(f"{text} library {{ {library} }}", message)
    tf.import_graph_def(message, name="")


def run(fetch: Any, feed: dict[str, Any] | None = None, init: Any = None) -> Any:
    with tf.Session() as session:
        if init is not None:
            session.run(init)
        return session.run(fetch, feed)


# ---- what calls do ---------------------------------------------------------------------------------------


def test_a_call_by_the_function_s_name(graph: tf.Graph) -> None:
    load(X + node("y", "twice", "x", "node"), TWICE)
    assert run("y:0", {"x:0": 3.0}) == 6.0
    y = graph.get_tensor_by_name("y:0")
    assert run(tf.gradients(y * y, graph.get_tensor_by_name("x:0")), {"x:0": 3.0}) == [24.0]
    with tf.Graph().as_default() as other:
        tf.import_graph_def(graph.as_graph_def(), name="")
        assert run("y:0", {"x:0": 4.0}) == 8.0
        assert other.as_graph_def() == graph.as_graph_def()


def test_attributes_of_the_signature() -> None:
    """A function over any type: its nodes have placeholders for it."""
    add = node("add", "AddV2", "x x", T='placeholder: "T"')
    generic = function("generic", "x:T", "y:T", add, "y=add:z:0", attrs=' attr { name: "T" type: "type" }')
    f = 'func { name: "generic" attr { key: "T" value { type: DT_INT32 } } }'
    text = node("x", "Placeholder", field="node", dtype=I)
    load(text + node("y", "PartitionedCall", "x", "node", f=f, Tin=types(I), Tout=types(I)), generic)
    assert run("y:0", {"x:0": 21}) == 42


def test_a_gradient_through_calls_in_calls(graph: tf.Graph) -> None:
    outer = function("outer", "x:DT_FLOAT", "y:DT_FLOAT",
                     node("a", "PartitionedCall", "x", f=named("twice"), Tin=types(F), Tout=types(F))
                     + node("b", "Mul", "a:output:0 x", T=F), "y=b:z:0")  # fmt: skip
    load(X + call("y", "outer", "x", types(F), types(F)), TWICE + outer)
    x = graph.get_tensor_by_name("x:0")
    assert run(tf.gradients(graph.get_tensor_by_name("y:0"), x), {"x:0": 3.0}) == [12.0]


def counter(name: str = "count", control: str = "add=add") -> str:
    """A function that adds one to a variable, and returns its argument."""
    nodes = node("one", "Const", dtype=I, value="tensor { dtype: DT_INT32 int_val: 1 tensor_shape { } }") + node(
        "add", "AssignAddVariableOp", "v one:output:0", dtype=I
    )
    return function(name, "v:DT_RESOURCE x:DT_FLOAT", "y:DT_FLOAT", nodes, "y=x", control)


def variable() -> Any:
    return tf.get_variable("v", [], tf.int32, initializer=tf.zeros_initializer(), use_resource=True)


@pytest.mark.parametrize("control", ["add=add", ""], ids=["named", "not named"])
def test_what_a_body_changes_happens_once_wherever_the_call_runs(graph: tf.Graph, control: str) -> None:
    """Also where nobody asks for it, and before whoever takes a result or waits for the call."""
    v = variable()
    node_v = graph.as_graph_def()
    del node_v
    library = counter(control=control)
    text = X + node("h", "VarHandleOp", "", "node", dtype=I, shape="shape { }", shared_name='s: "v"')
    text += call("y", "count", "h x", types(R, F), types(F))
    text += node("after", "ReadVariableOp", "h ^y", "node", dtype=I)
    load(text, library)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run("y:0", {"x:0": 2.0}) == 2.0
        assert session.run(v) == 1
        assert session.run("after:0", {"x:0": 2.0}) == 2
        session.run("y", {"x:0": 2.0})
        assert session.run(v) == 3
        assert session.run(["y:0", "after:0"], {"x:0": 1.0}) == [1.0, 4]


def test_effects_in_branches_and_loops_keep_their_order(graph: tf.Graph) -> None:
    v = variable()
    const = lambda name, value: node(
        name, "Const", dtype=I, value=f"tensor {{ dtype: DT_INT32 int_val: {value} tensor_shape {{ }} }}"
    )
    ten = function("ten", "v:DT_RESOURCE", "y:DT_INT32",
                   const("c", 10) + node("a", "AssignAddVariableOp", "v c:output:0", dtype=I)
                   + node("r", "ReadVariableOp", "v ^a", dtype=I), "y=r:value:0", "a=a r=r")  # fmt: skip
    none = function("none", "v:DT_RESOURCE", "y:DT_INT32", node("r", "ReadVariableOp", "v", dtype=I), "y=r:value:0", "r=r")
    cond = function("cond", "i:DT_INT32 v:DT_RESOURCE", "go:DT_BOOL",
                    const("n", 4) + node("l", "Less", "i n:output:0", T=I), "go=l:z:0")  # fmt: skip
    body = function("body", "i:DT_INT32 v:DT_RESOURCE", "j:DT_INT32 w:DT_RESOURCE",
                    const("two", 2) + const("one", 1) + node("m", "FloorMod", "i two:output:0", T=I)
                    + node("b", "Cast", "m:z:0", SrcT=I, DstT=B)
                    + node("if", "If", "b:y:0 v", Tcond=B, Tin=types(R), Tout=types(I), then_branch=named("ten"), else_branch=named("none"))
                    + node("add", "AddV2", "i one:output:0", T=I), "j=add:z:0 w=v", "if=if")  # fmt: skip
    text = node("h", "VarHandleOp", "", "node", dtype=I, shape="shape { }", shared_name='s: "v"')
    text += node("i", "Const", "", "node", dtype=I, value="tensor { dtype: DT_INT32 int_val: 0 tensor_shape { } }")
    text += node("loop", "While", "i h", "node", T=types(I, R), cond=named("cond"), body=named("body"))
    text += node("after", "ReadVariableOp", "h ^loop", "node", dtype=I)
    load(text, ten + none + cond + body)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(["loop:0", "after:0"]) == [4, 20]
        assert session.run("loop:0") == 4
        assert session.run(v) == 40


def test_what_waits_for_a_call_in_a_branch_runs_only_there(graph: tf.Graph) -> None:
    """Even where the call hands on what it got, from one side of a Switch."""
    v = variable()
    same = function("same", "x:DT_FLOAT", "y:DT_FLOAT", "", "y=x")
    one = node("one", "Const", "^c", dtype=I, value="tensor { dtype: DT_INT32 int_val: 1 tensor_shape { } }")
    then = function("then", "x:DT_FLOAT v:DT_RESOURCE", "y:DT_FLOAT",
                    call("c", "same", "x", types(F), types(F), "node_def", "PartitionedCall") + one
                    + node("a", "AssignAddVariableOp", "v one:output:0", dtype=I), "y=c:output:0", "a=a")  # fmt: skip
    other = function("other", "x:DT_FLOAT v:DT_RESOURCE", "y:DT_FLOAT", "", "y=x")
    text = X + node("h", "VarHandleOp", "", "node", dtype=I, shape="shape { }", shared_name='s: "v"')
    text += node("b", "Placeholder", field="node", dtype=B)
    text += node("y", "If", "b x h", "node", Tcond=B, Tin=types(F, R), Tout=types(F), then_branch=named("then"), else_branch=named("other"))
    load(text, same + then + other)
    with tf.Session() as session:
        session.run(v.initializer)
        for b, count in ((False, 0), (True, 1), (False, 1)):
            assert session.run("y:0", {"x:0": 2.0, "b:0": b}) == 2.0
            assert session.run(v) == count


@pytest.mark.parametrize(("value", "chosen"), [(0.0, 5.0), (2.5, 10.0), ([], 5.0), ([0.0], 10.0)])
def test_conditions_that_are_no_booleans(value: Any, chosen: float) -> None:
    same = function("same", "x:DT_FLOAT", "y:DT_FLOAT", "", "y=x")
    text = X + node("c", "Placeholder", field="node", dtype=F)
    text += node("y", "StatelessIf", "c x", "node", Tcond=F, Tin=types(F), Tout=types(F),
                 then_branch=named("twice"), else_branch=named("same"))  # fmt: skip
    load(text, TWICE + same)
    assert run("y:0", {"x:0": 5.0, "c:0": value}) == chosen


def test_a_gradient_through_a_branch_of_functions_is_not_built(graph: tf.Graph) -> None:
    text = X + node("c", "Placeholder", field="node", dtype=B)
    text += node("y", "If", "c x", "node", Tcond=B, Tin=types(F), Tout=types(F), then_branch=named("twice"), else_branch=named("twice"))
    load(text, TWICE)
    with pytest.raises(UnimplementedError, match=r"the gradient of If 'y' is not built in thalweg: a branch or loop"):
        tf.gradients(graph.get_tensor_by_name("y:0"), graph.get_tensor_by_name("x:0"))


def test_a_gradient_of_what_changes_something_is_not_built(graph: tf.Graph) -> None:
    text = X + node("h", "VarHandleOp", "", "node", dtype=I, shape="shape { }", shared_name='s: "v"')
    load(text + call("y", "count", "h x", types(R, F), types(F)), counter())
    with pytest.raises(UnimplementedError, match="'count' changes something when it runs"):
        tf.gradients(graph.get_tensor_by_name("y:0"), graph.get_tensor_by_name("x:0"))


# ---- calls that can't be ---------------------------------------------------------------------------------


def bad(text: str, library: str, error: type[Exception], says: str) -> None:
    load(X + text, library)
    with pytest.raises(error, match=says):
        run("y:0", {"x:0": 1.0})


@pytest.mark.parametrize(
    ("nodes", "ret", "says"),
    [
        (node("a", "AddV2", "x q", T=F), "y=a:z:0", "function 'f': node 'a': Unknown input node 'q'"),
        (node("a", "AddV2", "x", T=F), "y=a:z:0", r"NodeDef 'a' \(AddV2\) expects 2 inputs, has 1"),
        (node("a", "AddV2", "x x", T=F), "y=a:nothing:0", "'a:nothing:0': AddV2 'a' has no such output"),
        (node("a", "AddV2", "x x", T=F), "y=a:z:1", "'a:z:1': the output 'z' has 1 tensors"),
        (node("a", "AddV2", "x x", T=F), "z=a:z:0", "no result is given for y"),
        (node("a", "AddV2", "b:z:0 x", T=F) + node("b", "AddV2", "a:z:0 x", T=F), "y=a:z:0", "cycle"),
        (node("a", "AddV2", "x x", T=F) * 2, "y=a:z:0", "two nodes share a name"),
        (node("a", "AddV2", "x x"), "y=a:z:0", r"'a' \(AddV2\) is missing attr 'T'"),
        (node("a", "AddV2", "x x", T='placeholder: "T"'), "y=a:z:0", "the call gives no attr 'T'"),
        (node("a", "Cast", "x", SrcT=F, DstT=I), "y=a:y:0", "result 0 of StatefulPartitionedCall 'y' is float32, but its function gives int32"),
    ],
)  # fmt: skip
def test_malformed_bodies(nodes: str, ret: str, says: str) -> None:
    f = function("f", "x:DT_FLOAT", "y:DT_FLOAT", nodes, ret)
    bad(call("y", "f", "x", types(F), types(F)), f, InvalidArgumentError, says)


def test_unknown_ops_of_a_body_are_all_named() -> None:
    f = function("f", "x:DT_FLOAT", "y:DT_FLOAT", node("a", "Foo", "x") + node("b", "Bar", "x"), "y=x")
    bad(call("y", "f", "x", types(F), types(F)), f, UnimplementedError, "function 'f' uses ops .*: Bar, Foo")


def test_wrong_calls() -> None:
    bad(call("y", "g", "x", types(F), types(F)), TWICE, InvalidArgumentError, "no function 'g'")


def test_arguments_that_do_not_fit() -> None:
    load(X + call("y", "twice", "x x", types(F, F), types(F)), TWICE)
    with pytest.raises(InvalidArgumentError, match=r"gives function 'twice' \(float32, float32\), which takes \(float32\)"):
        run("y:0", {"x:0": 1.0})


@pytest.mark.parametrize("op", ["PartitionedCall", "direct"])
def test_a_function_that_calls_itself(op: str) -> None:
    again = node("a", "f", "x") if op == "direct" else call("a", "f", "x", types(F), types(F), "node_def")
    output = "a:y:0" if op == "direct" else "a:output:0"
    f = function("f", "x:DT_FLOAT", "y:DT_FLOAT", again, f"y={output}")
    bad(call("y", "f", "x", types(F), types(F)), f, UnimplementedError, "call themselves are not built: f -> f")


def chain(n: int, times: int) -> str:
    """n functions, each of which calls the next one so many times; the last one adds."""
    library = function(f"f{n}", "x:DT_FLOAT", "y:DT_FLOAT", node("a", "AddV2", "x x", T=F), "y=a:z:0")
    for i in range(n):
        calls = call("c0", f"f{i + 1}", "x", types(F), types(F), "node_def")
        for k in range(1, times):
            calls += call(f"c{k}", f"f{i + 1}", f"c{k - 1}:output:0", types(F), types(F), "node_def")
        library += function(f"f{i}", "x:DT_FLOAT", "y:DT_FLOAT", calls, f"y=c{times - 1}:output:0")
    return library


def test_nested_calls() -> None:
    load(X + call("y", "f0", "x", types(F), types(F)), chain(40, 1))
    assert run("y:0", {"x:0": 1.0}) == 2.0


def test_calls_nested_too_deep() -> None:
    bad(call("y", "f0", "x", types(F), types(F)), chain(2000, 1), UnimplementedError, "nested more than 64 deep")


def test_calls_that_double_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thalweg.plan.inline.MAX_NODES", 2000)
    bad(call("y", "f0", "x", types(F), types(F)), chain(40, 2), ResourceExhaustedError, "more than 2000 nodes")


def test_another_function_of_the_same_name(graph: tf.Graph) -> None:
    load(X + node("y", "twice", "x", "node"), TWICE)
    load(X, TWICE)
    other = function("twice", "x:DT_FLOAT", "y:DT_FLOAT", "", "y=x")
    before = len(graph.get_operations())
    with pytest.raises(ValueError, match="Cannot add function 'twice' because a different function"):
        load(X, other)
    assert len(graph.get_operations()) == before


@pytest.mark.parametrize("signature", ['input_arg { name: "x" }', 'input_arg { name: "x" type_attr: "T" }', 'attr { name: "a" type: "odd" }'])
def test_malformed_signatures(signature: str) -> None:
    with pytest.raises(ValueError, match="the signature of function 'f' is malformed"):
        load(X + node("y", "f", "x", "node"), f'function {{ signature {{ name: "f" {signature} }} }}')


def gradient_node(f: str) -> str:
    return node("y", "SymbolicGradient", "x x", "node", f=named(f), Tin=types(F, F), Tout=types(F))


def test_the_gradient_of_a_function_as_a_node() -> None:
    square = function("square", "x:DT_FLOAT", "y:DT_FLOAT",
                      call("a", "twice", "x", types(F), types(F), "node_def") + node("b", "Mul", "a:output:0 x", T=F),
                      "y=b:z:0")  # fmt: skip
    load(X + gradient_node("square"), TWICE + square)
    assert run("y:0", {"x:0": 3.0}) == 36.0, "4 x, times x for the gradient of the result"


@pytest.mark.parametrize("symbolic", [False, True])
def test_a_function_with_a_gradient_of_its_own(graph: tf.Graph, symbolic: bool) -> None:
    own = function("own", "x:DT_FLOAT dy:DT_FLOAT", "dx:DT_FLOAT", node("n", "Neg", "dy", T=F), "dx=n:y:0")
    library = TWICE + own + ' gradient { function_name: "twice" gradient_func: "own" }'
    load(X + (gradient_node("twice") if symbolic else call("y", "twice", "x", types(F), types(F))), library)
    y, x = graph.get_tensor_by_name("y:0"), graph.get_tensor_by_name("x:0")
    assert run(y if symbolic else tf.gradients(y, x)[0], {"x:0": 3.0}) == (-3.0 if symbolic else -1.0)
    with tf.Graph().as_default() as other:
        tf.import_graph_def(graph.as_graph_def(), name="")
        assert other.as_graph_def() == graph.as_graph_def()


def test_gradients_of_functions_that_are_not_built() -> None:
    branch = function("branch", "x:DT_FLOAT", "y:DT_FLOAT",
                      node("b", "If", "x x", Tcond=F, Tin=types(F), Tout=types(F), then_branch=named("twice"), else_branch=named("twice")),
                      "y=b:output:0")  # fmt: skip
    bad(gradient_node("branch"), TWICE + branch, UnimplementedError, "the gradient of If .* is not built")


@pytest.mark.parametrize("symbolic", [False, True])
def test_gradients_of_functions_without_end(graph: tf.Graph, symbolic: bool) -> None:
    again = function("f", "x:DT_FLOAT", "y:DT_FLOAT", node("a", "f", "x"), "y=a:y:0")
    for library, f, says in ((again, "f", "'f' calls itself"), (chain(200, 1), "f0", "nested more than 16 deep")):
        with tf.Graph().as_default() as graph:
            if symbolic:
                bad(gradient_node(f), library, UnimplementedError, says)
                continue
            load(X + call("y", f, "x", types(F), types(F)), library)
            with pytest.raises(UnimplementedError, match=says):
                tf.gradients(graph.get_tensor_by_name("y:0"), graph.get_tensor_by_name("x:0"))


# ---- lists of tensors ------------------------------------------------------------------------------------


def test_lists() -> None:
    ops = tf.raw_ops
    rows = tf.placeholder(tf.float32, [3, 2])
    lst = ops.TensorListFromTensor(tensor=rows, element_shape=[2])
    more = ops.TensorListPushBack(input_handle=lst, tensor=[7.0, 8.0])
    changed = ops.TensorListSetItem(input_handle=more, index=0, item=[0.0, 1.0])
    rest, last = ops.TensorListPopBack(input_handle=changed, element_shape=[2], element_dtype=tf.float32)
    stacked = ops.TensorListStack(input_handle=rest, element_shape=[2], element_dtype=tf.float32)
    picked = ops.TensorListGather(input_handle=changed, indices=[3, 0], element_shape=[2], element_dtype=tf.float32)
    item = ops.TensorListGetItem(input_handle=more, index=0, element_shape=[2], element_dtype=tf.float32)
    assert stacked.shape == (None, 2) and picked.shape == (2, 2) and item.shape == (2,)
    longer = ops.TensorListResize(input_handle=lst, size=4)
    value = np.arange(6.0).reshape(3, 2).astype(np.float32)
    with tf.Session() as session:
        got = session.run(
            [stacked, last, picked, item, ops.TensorListLength(input_handle=longer), lst_shape(lst)], {rows: value}
        )
    assert got[0].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert got[1].tolist() == [7, 8]
    assert got[2].tolist() == [[7, 8], [0, 1]]
    assert got[3].tolist() == [0, 1], "the list before it was changed"
    assert got[4] == 4 and got[5].tolist() == [2]


def lst_shape(lst: Any) -> Any:
    return tf.raw_ops.TensorListElementShape(input_handle=lst, shape_type=tf.int64)


def test_elements_that_were_not_set() -> None:
    ops = tf.raw_ops
    lst = ops.TensorListReserve(element_shape=[2], num_elements=3, element_dtype=tf.int32)
    lst = ops.TensorListSetItem(input_handle=lst, index=1, item=[5, 6])
    stacked = ops.TensorListStack(input_handle=lst, element_shape=[2], element_dtype=tf.int32, num_elements=3)
    scattered = ops.TensorListScatterV2(tensor=[[1.0], [2.0]], indices=[2, 0], element_shape=[1], num_elements=-1)
    back = ops.TensorListStack(input_handle=scattered, element_shape=[1], element_dtype=tf.float32)
    empty = ops.EmptyTensorList(element_shape=[2], max_num_elements=-1, element_dtype=tf.float32)
    nothing = ops.TensorListStack(input_handle=empty, element_shape=[2], element_dtype=tf.float32)
    assert stacked.shape == (3, 2)
    got = run([stacked, back, nothing])
    assert got[0].tolist() == [[0, 0], [5, 6], [0, 0]]
    assert got[1].tolist() == [[2], [0], [1]]
    assert got[2].shape == (0, 2)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda o, l: o.TensorListGetItem(input_handle=l, index=9, element_shape=[2], element_dtype=tf.float32), "access element 9 in a list with 3"),
        (lambda o, l: o.TensorListGetItem(input_handle=l, index=0, element_shape=[2], element_dtype=tf.int32), "Invalid data types"),
        (lambda o, l: o.TensorListGetItem(input_handle=l, index=0, element_shape=[5], element_dtype=tf.float32), "another shape"),
        (lambda o, l: o.TensorListStack(input_handle=l, element_shape=[2], element_dtype=tf.float32, num_elements=4), "expected a list with 4 elements"),
        (lambda o, l: o.TensorListLength(input_handle=o.TensorListSetItem(input_handle=l, index=0, item=[1.0])), "incompatible shape"),
        (lambda o, l: o.TensorListLength(input_handle=o.TensorListPushBack(input_handle=l, tensor=[[1.0]])), "incompatible shape"),
        (lambda o, l: o.TensorListLength(input_handle=o.TensorListReserve(element_shape=[2], num_elements=-1, element_dtype=tf.float32)), "non negative"),
        (lambda o, l: o.TensorListStack(input_handle=o.TensorListReserve(element_shape=-1, num_elements=2, element_dtype=tf.float32), element_shape=-1, element_dtype=tf.float32), "uninitialized"),
    ],
)  # fmt: skip
def test_bad_lists(make: Any, says: str) -> None:
    lst = tf.raw_ops.TensorListReserve(element_shape=[2], num_elements=3, element_dtype=tf.float32)
    with pytest.raises(InvalidArgumentError, match=says):
        run(make(tf.raw_ops, lst))


def test_a_list_too_long() -> None:
    lst = tf.raw_ops.TensorListReserve(element_shape=[2], num_elements=2**31 - 1, element_dtype=tf.float32)
    with pytest.raises(ResourceExhaustedError, match="a list of 2147483647 tensors"):
        run(tf.raw_ops.TensorListLength(input_handle=lst))


# ---- small ops of exported models ------------------------------------------------------------------------


def test_strings() -> None:
    names = tf.constant(["a", "bc"])
    ops = tf.raw_ops
    joined = ops.StringJoin(inputs=["x", names, "y"], separator="-")
    assert joined.shape == (2,)
    got = run([joined, ops.StaticRegexFullMatch(input=names, pattern="[ab]"), ops.RegexFullMatch(input=names, pattern="b.")])
    assert got[0].tolist() == [b"x-a-y", b"x-bc-y"]
    assert got[1].tolist() == [True, False] and got[2].tolist() == [False, True]
    with pytest.raises(InvalidArgumentError, match="Invalid pattern"):
        run(ops.StaticRegexFullMatch(input=names, pattern="(("))
    with pytest.raises(ValueError, match="must be equal"):
        ops.StringJoin(inputs=[names, ["a", "b", "c"]])


@pytest.mark.parametrize(("value", "wanted"), [(0.0, False), (0.5, True), ("", False), ("x", True), ([0], True), ([], False)])
def test_to_bool(value: Any, wanted: bool) -> None:
    assert run(tf.raw_ops.ToBool(input=tf.constant(value))) == wanted


def test_fake_param() -> None:
    assert run(tf.raw_ops.FakeParam(dtype=tf.float32, shape=[2])).shape == (2,)
    v = variable()
    assert run(tf.raw_ops.DisableCopyOnRead(resource=v.handle), init=v.initializer) is None
