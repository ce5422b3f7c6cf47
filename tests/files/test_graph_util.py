"""graph_util, write_graph, and what GraphDefs may hold."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import thalweg as tf

util = tf.graph_util


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def names(graph_def: Any) -> list[str]:
    return [n.name for n in graph_def.node]


def test_a_part_of_a_graph(graph: tf.Graph) -> None:
    a = tf.constant(1.0, name="a")
    with tf.control_dependencies([tf.constant(2.0, name="b")]):
        tf.identity(a, name="c")
    tf.negative(a, name="d")
    graph_def = graph.as_graph_def()
    assert names(util.extract_sub_graph(graph_def, ["c"])) == ["a", "b", "c"]
    assert util.extract_sub_graph(graph_def, ["c"]).versions == graph_def.versions
    with pytest.raises(AssertionError, match="q is not in graph"):
        util.extract_sub_graph(graph_def, ["q"])
    with pytest.raises(TypeError, match="iterable of strings"):
        util.extract_sub_graph(graph_def, "c")
    with pytest.raises(TypeError, match=r"graph_pb2\.GraphDef"):
        util.extract_sub_graph(graph, ["c"])


def frozen(y: Any, **options: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return util.convert_variables_to_constants(session, session.graph_def, [y.op.name], **options)


@pytest.mark.parametrize("resource", [False, True])
def test_freezing(resource: bool) -> None:
    """Variables read in a loop and a branch, and rows of one, become constants."""
    x = tf.placeholder(tf.float32, [1, 2], "x")
    w = tf.get_variable("w", initializer=tf.constant([[1.0, 2.0], [3.0, 4.0]]), use_resource=resource)
    table = tf.get_variable("t", initializer=tf.constant([[5.0, 6.0], [7.0, 8.0]]), use_resource=resource)

    def body(i: Any, a: Any) -> Any:
        rows = tf.nn.embedding_lookup(table, [i])
        return i + 1, tf.cond(tf.reduce_sum(a) > 20.0, lambda: a - w[0], lambda: tf.matmul(a, w) + rows)

    y = tf.identity(tf.while_loop(lambda i, a: i < 2, body, [0, x])[1], name="y")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        expected = [session.run(y, {x: v}) for v in ([[1.0, 1.0]], [[9.0, 9.0]])]
    graph_def = frozen(y)
    assert not {"VariableV2", "VarHandleOp", "ReadVariableOp", "ResourceGather", "Assign"} & {n.op for n in graph_def.node}
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        got = [session.run("y:0", {"x:0": v}) for v in ([[1.0, 1.0]], [[9.0, 9.0]])]
    np.testing.assert_allclose(got, expected)


def test_which_variables_are_frozen() -> None:
    a = tf.get_variable("a", initializer=1.0)
    b = tf.get_variable("b", initializer=2.0, use_resource=True)
    y = tf.add(a, b, name="y")
    ops = lambda graph_def: {n.name: n.op for n in graph_def.node if n.name in "ab"}
    assert ops(frozen(y, variable_names_whitelist=["a"])) == {"a": "Const", "b": "VarHandleOp"}
    assert ops(frozen(y, variable_names_blacklist=["a"])) == {"a": "VariableV2", "b": "Const"}


def test_variables_that_can_not_be_frozen() -> None:
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    y = tf.identity(v.assign_add(1.0), name="y")
    with pytest.raises(ValueError, match="the variable 'v' can't become a constant: AssignAddVariableOp"):
        frozen(y)
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError):
        util.convert_variables_to_constants(session, session.graph_def, ["v/Read/ReadVariableOp"])


def test_nodes_of_training(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [], "x")
    checked = tf.check_numerics(tf.identity(x, name="i"), "bad", name="n")
    kept = tf.identity(checked, name="kept")
    with tf.control_dependencies([checked, kept]):
        tf.identity(tf.negative(checked), name="y")
    result = util.remove_training_nodes(graph.as_graph_def(), protected_nodes=["y"])
    assert {n.name: list(n.input) for n in result.node} == {"x": [], "kept": ["x"], "Neg": ["x", "^kept"], "y": ["Neg"]}


def test_small_ones(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [None, 2], "x")
    assert util.tensor_shape_from_node_def_name(graph, "x").as_list() == [None, 2]
    assert util.must_run_on_cpu(tf.constant("a").op) and util.must_run_on_cpu(tf.constant(1).op.node_def)
    assert not util.must_run_on_cpu(x.op)
    v = tf.get_variable("v", [])
    assert not util.must_run_on_cpu(v.op) and util.must_run_on_cpu(v.op, pin_variables_on_cpu=True)


@pytest.mark.parametrize("as_text", [False, True])
def test_write_graph(tmp_path: pathlib.Path, graph: tf.Graph, as_text: bool) -> None:
    tf.constant(1.0, name="a")
    path = tf.train.write_graph(graph, str(tmp_path / "new" / "folder"), "g", as_text)
    assert path == str(tmp_path / "new" / "folder" / "g")
    message = tf.GraphDef()
    if as_text:
        text_format.Parse(pathlib.Path(path).read_text(), message)
    else:
        message.ParseFromString(pathlib.Path(path).read_bytes())
    assert message == graph.as_graph_def()
    assert [p.name for p in (tmp_path / "new" / "folder").iterdir()] == ["g"]


def test_graphs_over_two_gigabytes(graph: tf.Graph) -> None:
    big = np.broadcast_to(np.float32(1), (1 << 28,))  # takes no memory
    for i in range(2):
        tf.raw_ops.Const(value=big, dtype=tf.float32, name=f"c{i}")
    with pytest.raises(ValueError, match=r"GraphDef cannot be larger than 2GB. The constants up to 'c1'"):
        graph.as_graph_def()
    with pytest.raises(ValueError, match="larger than 2GB"):
        tf.train.export_meta_graph()


def test_versions_of_a_graph(graph: tf.Graph) -> None:
    first = tf.constant(1.0, name="a")
    version = graph.version
    tf.negative(first, name="b")
    assert names(graph.as_graph_def(from_version=version)) == ["b"]
    (node,) = graph.as_graph_def(from_version=version, add_shapes=True).node
    assert [s.dim for s in node.attr["_output_shapes"].list.shape] == [[]]
