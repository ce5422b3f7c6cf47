"""import_graph_def: what fits together, and what is said where something doesn't.

The cases and classes of errors are TensorFlow's (2.21, compat.v1).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import text_format

import thalweg as tf

FLOAT = 'attr{key:"T" value{type:DT_FLOAT}} '
A = 'node{name:"a" op:"Placeholder" attr{key:"dtype" value{type:DT_FLOAT}}} '
POOL = FLOAT + 'attr{key:"ksize" value{list{i:1 i:1 i:1 i:1}}} '


def node(name: str, op: str, inputs: str = "", attrs: str = FLOAT) -> str:
    return f'node{{name:"{name}" op:"{op}" ' + " ".join(f'input:"{i}"' for i in inputs.split()) + f" {attrs}}} "


def graph_def(text: str) -> Any:
    message = tf.GraphDef()
    text_format.Parse(text, message)
    return message


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def names(graph: tf.Graph) -> list[str]:
    return [op.name for op in graph.get_operations()]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (A + node("b", "Neg", "q"), "'b': Unknown input node 'q'"),
        (A + node("b", "Neg", "a ^q"), r"'b': Unknown input node '\^q'"),
        (A + node("b", "Neg", "a:3"), "'b': Connecting to invalid output 3 of source node a which has 1 outputs"),
        (A + node("b", "FooBar") + node("c", "Quux"), "not registered: FooBar, Quux"),
        (A + A, "'a' is not unique"),
        (A + node("", "Neg", "a"), "must have a name"),
        (A + node("b c", "Neg", "a"), "'p/b c' is not a valid node name"),
        (A + node("b", "Neg", "a", ""), r"'b' \(Neg\) is missing attr 'T'"),
        (A + node("b", "Neg", "a", 'attr{key:"T" value{i:3}}'), r"'b' \(Neg\): attr 'T' of type type holds a 'i'"),
        (A + node("b", "Neg", "a", 'attr{key:"T" value{type:DT_STRING}}'), "'b'.*string not in list of allowed"),
        (A + node("b", "Neg", "a", 'attr{key:"T" value{type:DT_INT32}}'), "'b' was passed float32 from p/a:0.*int32"),
        (A + node("b", "Mul", "a"), r"'b' \(Mul\) expects 2 inputs, has 1"),
        (A + node("b", "Neg", "a a"), r"'b' \(Neg\) expects 1 inputs, has 2"),
        (A + node("b", "Add", "a c") + node("c", "Neg", "b"), "cycle through 'c' and 'b'"),
        (node("b", "Neg", "b"), "cycle through 'b' and 'b'"),
        (A + node("b", "Pack", "a", FLOAT + 'attr{key:"N" value{i:4611686018427387904}}'), "expects 4611686018427387904 tensors"),
        (A + node("b", "Unpack", "a", FLOAT + 'attr{key:"num" value{i:4611686018427387904}}'), "are too many"),
        (node("b", "Pack", "", FLOAT + 'attr{key:"N" value{i:0}}'), "'b'.*'N'.*less than minimum 1"),
        (A + node("b", "MaxPool", "a", POOL + 'attr{key:"strides" value{i:1}}'), "'strides' of type .* holds a 'i'"),
        (A + node("b", "MaxPool", "a", POOL + 'attr{key:"strides" value{list{f:1}}}'), "holds a list of 'f'"),
        (node("b", "NoOp", "", 'attr{key:"_class" value{list{s:"loc:@zz"}}}'), "colocated with unknown node 'zz'"),
        (node("b", "NoOp", "", 'device:"/nonsense"'), "Unknown attribute 'nonsense'"),
        (A + node("b", "MatMul", "m m") + node("m", "Sum", "a k", "") , "Unknown input node 'k'"),
    ],
)  # fmt: skip
def test_what_does_not_fit(graph: tf.Graph, text: str, says: str) -> None:
    before = tf.constant(1.0, name="before")
    message = graph_def(text)
    with pytest.raises(ValueError, match=says):
        tf.import_graph_def(message, name="p")
    assert names(graph) == ["before"], "a failed import leaves nothing behind"
    assert before.consumers() == []


def test_shapes_that_do_not_fit(graph: tf.Graph) -> None:
    shape = 'attr{key:"shape" value{shape{dim{size:2}}}}'
    text = f'node{{name:"a" op:"Placeholder" attr{{key:"dtype" value{{type:DT_FLOAT}}}} {shape}}} '
    with pytest.raises(ValueError, match="MatMul 'p/b': Shape must be rank 2 but is rank 1"):
        tf.import_graph_def(graph_def(text + node("b", "MatMul", "a a")), name="p")
    assert names(graph) == []


def test_nodes_may_come_in_any_order(graph: tf.Graph) -> None:
    tf.import_graph_def(graph_def(node("c", "Mul", "b a ^a") + node("b", "Neg", "a") + A), name="")
    c = graph.get_operation_by_name("c")
    assert [t.name for t in c.inputs] == ["b:0", "a:0"]
    assert [op.name for op in c.control_inputs] == ["a"]


def test_attributes_that_the_definition_has_not(graph: tf.Graph, caplog: pytest.LogCaptureFixture) -> None:
    """Private ones stay; others come from a newer producer and are ignored, as TensorFlow does, but said."""
    text = A + node("b", "Neg", "a", FLOAT + 'attr{key:"_mine" value{i:3}} attr{key:"new" value{i:3}}')
    with caplog.at_level(logging.WARNING, "thalweg"):
        (b,) = tf.import_graph_def(graph_def(text), return_elements=["b"], name="")
    assert b.get_attr("_mine") == 3
    with pytest.raises(ValueError, match="no attr named 'new'"):
        b.get_attr("new")
    assert "'b' has the attr 'new'" in caplog.text


def test_names_and_scopes(graph: tf.Graph) -> None:
    message = graph_def(A + node("s/b", "Neg", "a"))
    tf.import_graph_def(message)
    tf.import_graph_def(message)
    tf.import_graph_def(message, name="p")
    with tf.name_scope("outer"):
        tf.import_graph_def(message, name="p")
    tf.import_graph_def(message, name="")
    assert names(graph) == [
        "import/a", "import/s/b", "import_1/a", "import_1/s/b", "p/a", "p/s/b", "outer/p/a", "outer/p/s/b", "a", "s/b",
    ]  # fmt: skip


def test_names_that_are_taken(graph: tf.Graph) -> None:
    tf.constant(1.0, name="a")
    (b,) = tf.import_graph_def(graph_def(A + node("b", "Neg", "a")), name="", return_elements=["b"])
    assert b.inputs[0].name == "a_1:0"
    assert tf.constant(1.0, name="b").name == "b_1:0", "an imported name is taken"
    assert graph.get_operation_by_name("b") is b


def test_an_imported_device_joins_the_scope_s(graph: tf.Graph) -> None:
    with tf.device("/job:ps"):
        (op,) = tf.import_graph_def(graph_def(node("n", "NoOp", "", 'device:"/cpu:1"')), return_elements=["n"])
    assert op.device == "/job:ps/device:CPU:1"


def test_colocation_gets_the_prefix(graph: tf.Graph) -> None:
    text = node("a", "NoOp", "", "") + node("b", "NoOp", "", 'attr{key:"_class" value{list{s:"loc:@a"}}}')
    (b,) = tf.import_graph_def(graph_def(text), name="p", return_elements=["b"])
    assert b.colocation_groups() == [b"loc:@p/a"]


def test_mapping_inputs(graph: tf.Graph) -> None:
    x, y = tf.constant(3.0, name="x"), tf.constant(4.0, name="y")
    message = graph_def(A + node("b", "Neg", "a") + node("c", "NoOp", "^a", ""))
    b, a, c = tf.import_graph_def(message, {"a:0": x}, ["b:0", "a:0", "c"], name="p")
    assert b.op.inputs[0] is x and a is x
    assert c.control_inputs == [x.op]
    b, c = tf.import_graph_def(message, {"a": "y:0", b"^a": x.op}, ["b:0", "c"], name="q")
    assert b.op.inputs[0] is y
    assert c.control_inputs == [x.op]


@pytest.mark.parametrize(
    ("key", "dtype", "says"),
    [
        ("q:0", tf.float32, r"not found in graph_def: \[q:0\]"),
        ("a:5", tf.float32, r"not found in graph_def: \[a:5\]"),
        ("^q", tf.float32, r"not found in graph_def: \[\^q\]"),
        ("a:x", tf.float32, "'a:x' is not a valid tensor name"),
        ("a", tf.int32, "'b' was passed int32 from x:0, incompatible with expected float32"),
    ],
)
def test_bad_mappings(graph: tf.Graph, key: str, dtype: tf.DType, says: str) -> None:
    x = tf.constant(1, dtype, name="x")
    with pytest.raises(ValueError, match=says):
        tf.import_graph_def(graph_def(A + node("b", "Neg", "a")), {key: x})
    assert names(graph) == ["x"]


def test_elements_to_return(graph: tf.Graph) -> None:
    assert tf.import_graph_def(graph_def(A)) is None
    op, tensor = tf.import_graph_def(graph_def(A), return_elements=["a", b"a:0"], name="p")
    assert op is tensor.op is graph.get_operation_by_name("p/a")
    for wanted in ("q", "q:0", "a:4"):
        with pytest.raises(ValueError, match=f"return_element '{wanted}' not found"):
            tf.import_graph_def(graph_def(A), return_elements=[wanted])


def test_wrong_arguments(graph: tf.Graph) -> None:
    with pytest.raises(TypeError, match="must be a GraphDef proto"):
        tf.import_graph_def("text")
    with pytest.raises(TypeError, match="mapping strings to Tensor"):
        tf.import_graph_def(graph_def(A), {3: tf.constant(1.0)})
    graph.finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        tf.import_graph_def(graph_def(A))


def test_there_and_back(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with tf.name_scope("layer"), tf.control_dependencies([x]):
        y = tf.matmul(x, tf.constant([[1.0], [2.0], [3.0]]), name="y")
    with tf.device("/cpu:0"):
        tf.reduce_sum(y, 0, name="z")
    message = graph.as_graph_def()
    with tf.Graph().as_default() as other:
        tf.import_graph_def(message, name="")
        assert other.as_graph_def() == message
        with tf.Session() as sess:
            assert sess.run("z:0", {"x:0": [[1.0, 1.0, 1.0]]}).tolist() == [6.0]


def test_shapes_that_the_producer_wrote_down(graph: tf.Graph) -> None:
    shape = 'attr{key:"_output_shapes" value{list{shape{dim{size:2} dim{size:-1}}}}}'
    text = f'node{{name:"a" op:"Placeholder" attr{{key:"dtype" value{{type:DT_FLOAT}}}} {shape}}} '
    tf.import_graph_def(graph_def(text), name="")
    a = graph.get_tensor_by_name("a:0")
    assert a.shape.as_list() == [2, None]
    with pytest.raises(ValueError, match="no attr named '_output_shapes'"):
        a.op.get_attr("_output_shapes")
    known = 'attr{key:"shape" value{shape{dim{size:3}}}}'
    with pytest.raises(ValueError, match="'q/a' has an _output_shapes attribute inconsistent with the GraphDef"):
        tf.import_graph_def(graph_def(text.replace("attr{", known + " attr{", 1)), name="q")
    with pytest.raises(ValueError, match=r"has 1 outputs but .* shapes for 2 outputs"):
        tf.import_graph_def(graph_def(text.replace("list{", "list{shape{}")), name="q")


def test_versions(graph: tf.Graph) -> None:
    message = graph_def(A)
    message.versions.producer, message.versions.min_consumer = 27, 12
    tf.import_graph_def(message)
    assert (graph.graph_def_versions.producer, graph.graph_def_versions.min_consumer) == (27, 12)
    message.versions.min_consumer = 1_000_000
    with pytest.raises(ValueError, match="GraphDef min consumer version 1000000 above current version"):
        tf.import_graph_def(message)
    message.versions.min_consumer = 0
    message.versions.bad_consumers.append(tf.version.GRAPH_DEF_VERSION)
    with pytest.raises(ValueError, match="disallows consumer version"):
        tf.import_graph_def(message)


def test_colocation_follows_new_names(graph: tf.Graph) -> None:
    tf.no_op(name="a")
    text = node("a", "NoOp", "", "") + node("b", "NoOp", "", 'attr{key:"_class" value{list{s:"loc:@a"}}}')
    (b,) = tf.import_graph_def(graph_def(text), name="", return_elements=["b"])
    assert b.colocation_groups() == [b"loc:@a_1"]


def test_inputs_that_only_the_map_gives(graph: tf.Graph) -> None:
    """What a part of a graph takes from the rest; see export_scoped_meta_graph."""
    x = tf.constant(2.0, name="x")
    message = graph_def(node("b", "Neg", "outside ^before"))
    (b,) = tf.import_graph_def(message, {"outside": x, "^before": x.op}, ["b"])
    assert b.inputs[0] is x and b.control_inputs == [x.op]
    with pytest.raises(ValueError, match="'b': Unknown input node 'outside'"):
        tf.import_graph_def(message, {"^before": x.op})


@pytest.mark.parametrize(
    ("dtype", "tensor", "says"),
    [
        ("DT_INT32", "dtype:DT_FLOAT float_val:1", "its value is not of type int32"),
        ("DT_FLOAT", "dtype:DT_FLOAT float_val:1 tensor_shape{dim{size:1000000000000}}", "stands for 4000000000000 bytes"),
        ("DT_FLOAT", "dtype:DT_FLOAT tensor_shape{dim{size:-2}}", "no full shape"),
        ("DT_FLOAT", 'dtype:DT_FLOAT tensor_content:"abc" tensor_shape{dim{size:3}}', "needs 12 bytes of content, has 3"),
    ],
)  # fmt: skip
def test_constants_that_are_none(graph: tf.Graph, dtype: str, tensor: str, says: str) -> None:
    attrs = f'attr{{key:"dtype" value{{type:{dtype}}}}} attr{{key:"value" value{{tensor{{{tensor}}}}}}}'
    with pytest.raises(ValueError, match=f"'c'.*{says}"):
        tf.import_graph_def(graph_def(node("c", "Const", "", attrs)))


def test_a_large_constant_of_one_value_takes_no_memory(graph: tf.Graph) -> None:
    tensor = "dtype:DT_FLOAT float_val:3 tensor_shape{dim{size:300000000}}"
    attrs = f'attr{{key:"dtype" value{{type:DT_FLOAT}}}} attr{{key:"value" value{{tensor{{{tensor}}}}}}}'
    (c,) = tf.import_graph_def(graph_def(node("c", "Const", "", attrs)), return_elements=["c"])
    value = c._attrs["value"]
    assert value.shape == (300000000,) and value.strides == (0,) and value[7] == 3


def test_back_edges(graph: tf.Graph) -> None:
    """Only a Merge may take what a NextIteration gives; which of its inputs that is doesn't matter."""
    enter = node("e", "Enter", "a", FLOAT + 'attr{key:"frame_name" value{s:"f"}}')
    for inputs, types in (("e n", ["Enter", "NextIteration"]), ("n e", ["NextIteration", "Enter"])):
        merge = node("m", "Merge", inputs, FLOAT + 'attr{key:"N" value{i:2}}')
        (m,) = tf.import_graph_def(graph_def(A + enter + merge + node("n", "NextIteration", "m")), None, ["m"])
        assert [t.op.type for t in m.inputs] == types
    with pytest.raises(ValueError, match="cycle through"):
        tf.import_graph_def(graph_def(node("n", "NextIteration", "b") + node("b", "Neg", "n")))
    two = node("m", "Merge", "n n", FLOAT + 'attr{key:"N" value{i:2}}') + node("n", "NextIteration", "m")
    with pytest.raises(ValueError, match=r"'m' \(Merge\) takes next iterations only"):
        tf.import_graph_def(graph_def(two))


@pytest.mark.parametrize("op", ["Reshape", "Slice", "Pad", "Transpose", "ReverseV1"])
def test_ranks_that_no_tensor_has(graph: tf.Graph, op: str) -> None:
    """A vector of a billion elements that stands for a shape takes no memory."""
    x = tf.placeholder(tf.float32, name="x")
    n = 1 << 30
    long = tf.placeholder(tf.int32, [n])
    ops = tf.raw_ops
    result = {
        "Reshape": lambda: ops.Reshape(tensor=x, shape=long),
        "Slice": lambda: ops.Slice(input=x, begin=long, size=long),
        "Pad": lambda: ops.Pad(input=x, paddings=tf.placeholder(tf.int32, [n, 2])),
        "Transpose": lambda: ops.Transpose(x=x, perm=long),
        "ReverseV1": lambda: ops.Reverse(tensor=x, dims=tf.placeholder(tf.bool, [n])),
    }[op]()
    assert result.shape.ndims is None


def test_numbers_that_wrap_round(graph: tf.Graph) -> None:
    tensor = "dtype:DT_UINT8 int_val:-1 int_val:258 tensor_shape{dim{size:2}}"
    attrs = f'attr{{key:"dtype" value{{type:DT_UINT8}}}} attr{{key:"value" value{{tensor{{{tensor}}}}}}}'
    (c,) = tf.import_graph_def(graph_def(node("c", "Const", "", attrs)), return_elements=["c:0"])
    with tf.Session() as session:
        assert session.run(c).tolist() == [255, 2]
