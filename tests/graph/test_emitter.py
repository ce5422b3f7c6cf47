"""Making nodes from Python arguments: what is inferred, what is refused, and in which words.

The classes of errors, and the names of nodes that arguments become, are TensorFlow's (2.21, compat.v1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.graph.emitter import emit
from thalweg.graph.opdef import parse


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def f() -> tf.Tensor:
    return tf.constant([[1.0, 2.0]], name="f")


def i() -> tf.Tensor:
    return tf.constant([[1, 2]], name="i")


def pool(**attrs: Any) -> Any:
    given = {"ksize": [1, 1, 1, 1], "strides": [1, 1, 1, 1], "padding": "SAME", **attrs}
    return emit("MaxPool", tf.zeros([1, 2, 2, 1]), **given)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: emit("AddV2", f(), i()), TypeError, "'y' of 'AddV2' .* int32 that does not match type float32 of argument 'x'"),
        (lambda: emit("AddV2", i(), 3.5), TypeError, "'y' of 'AddV2' Op: Expected int32, but got 3.5"),
        (lambda: emit("AddV2", 2, 3.5), TypeError, "'y' of 'AddV2' Op: Expected int32"),
        (lambda: emit("MatMul", [["a"]], [["b"]]), TypeError, "'a' has DataType string not in list of allowed values"),
        (lambda: emit("Select", f(), f(), f()), TypeError, "'condition' of 'Select' .* float32 .* expected type of bool"),
        (lambda: emit("Sum", f(), 1.5), TypeError, "'reduction_indices' has DataType float32 not in list"),
        (lambda: emit("GatherV2", f(), [0.5], 0), TypeError, "'indices' has DataType float32"),
        (lambda: emit("Neg", None), ValueError, "None values not supported"),
        (lambda: emit("AddV2", f(), None), ValueError, "None values not supported"),
        (lambda: emit("Neg", [[1.0], [1.0, 2.0]]), ValueError, "non-rectangular"),
        (lambda: emit("Neg", object()), TypeError, "type object"),
        (lambda: emit("Pack", f()), TypeError, "Expected list for 'values' argument to 'Pack' Op, not <tf.Tensor 'f:0'"),
        (lambda: emit("Pack", []), ValueError, "length 0 shorter than minimum length 1"),
        (lambda: emit("Pack", [f(), i()]), TypeError, "int32 that does not match type float32"),
        (lambda: emit("Pack", [1, f()]), ValueError, "equal rank, but are 0 and 2"),
        (lambda: emit("AddN", [f()], N=2), ValueError, "length 1 must match length 2"),
        (lambda: emit("Assign", f(), f()), TypeError, "'ref' be a mutable tensor"),
        (lambda: emit("ReadVariableOp", f(), dtype=tf.float32), TypeError, "expected type of resource"),
        (lambda: emit("MatMul", f()), TypeError, "MatMul is missing its input 'b'"),
        (lambda: emit("Neg", f(), f()), TypeError, "Neg takes 1 inputs, got 2"),
        (lambda: emit("MatMul", f(), f(), c=1), TypeError, r"unexpected arguments: c; it has inputs \['a', 'b'\]"),
        (lambda: emit("MatMul", f(), f(), transpose_a=3), TypeError, "Expected bool for attr 'transpose_a'"),
        (lambda: emit("Cast", f(), DstT="nothing"), TypeError, "Expected type for attr 'DstT'"),
        (lambda: emit("Cast", f()), TypeError, "Cast 'Cast': no value for attr 'DstT'"),
        (lambda: pool(padding="NOPE"), ValueError, 'must be one of .*SAME.*, got "NOPE"'),
        (lambda: pool(ksize=1), TypeError, "Expected list for attr ksize of 'MaxPool'"),
        (lambda: pool(ksize=[1, 1]), ValueError, "length 2 less than minimum 4"),
        (lambda: pool(ksize=[1, 1, "a", 1]), TypeError, "Expected int for attr 'ksize'"),
        (lambda: emit("Pack", [f()], axis=1.5), TypeError, "Expected int for attr 'axis'.*not an integer"),
        (lambda: emit("Pack", [f()], axis=float("nan")), TypeError, "Expected int for attr 'axis'"),
        (lambda: emit("LeakyRelu", f(), alpha="a"), TypeError, "Expected float for attr 'alpha'"),
        (lambda: emit("Placeholder", dtype=tf.float32, shape="ab"), TypeError, "Expected shape for attr 'shape'"),
        (lambda: emit("Neg", 1.0, name="a b"), ValueError, "'a b' is not a valid"),
        (lambda: emit("Nothing", f()), Exception, "Nothing"),
    ],
)  # fmt: skip
def test_what_is_refused(make: Callable[[], Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()


def test_a_refused_node_leaves_nothing_behind(graph: tf.Graph) -> None:
    a, b = f(), tf.constant([[1.0, 2.0, 3.0]])
    with tf.control_dependencies([a]), pytest.raises(ValueError, match="MatMul"):
        emit("MatMul", b, b)
    assert [op.type for op in graph.get_operations()] == ["Const", "Const"]
    assert b.consumers() == [] and a.op._control_outputs == []
    assert emit("MatMul", a, b, transpose_a=True).name == "MatMul_1:0", "the name is used up, as in TensorFlow"


@pytest.mark.parametrize(
    ("make", "dtype", "nodes"),
    [
        (lambda: emit("AddV2", f(), 2), "float32", ["f", "AddV2/y", "AddV2"]),
        (lambda: emit("AddV2", 2.5, 3), "float32", ["AddV2/x", "AddV2/y", "AddV2"]),
        (lambda: emit("AddV2", f(), True), "float32", ["f", "AddV2/y", "AddV2"]),
        (lambda: emit("AddV2", np.float64(2.0), 3), "float64", ["AddV2/x", "AddV2/y", "AddV2"]),
        (lambda: emit("Sum", f(), 1), "float32", ["f", "Sum/reduction_indices", "Sum"]),
        (lambda: emit("Sum", f(), np.int64(1)), "float32", ["f", "Sum/reduction_indices", "Sum"]),
        (lambda: emit("Pack", [1, 2]), "int32", ["Pack/values_0", "Pack/values_1", "Pack"]),
        (lambda: emit("Pack", [1.5]), "float32", ["Pack/values_0", "Pack"]),
        (lambda: emit("Pack", [1, tf.constant(2.5, name="c")]), "float32", ["c", "Pack/values_0", "Pack"]),
        (lambda: emit("Range", 0, 3, 1), "int32", ["Range/start", "Range/limit", "Range/delta", "Range"]),
        (lambda: emit("Range", 0.5, 3, 1), "float32", ["Range/start", "Range/limit", "Range/delta", "Range"]),
        (lambda: emit("Cast", f(), DstT="int64"), "int64", ["f", "Cast"]),
        (lambda: emit("Neg", 1.0, name="scope/neg"), "float32", ["scope/neg/x", "scope/neg"]),
        (lambda: emit("Neg", f(), name="exact/"), "float32", ["f", "exact"]),
        (lambda: emit("AddV2", y=1.0, x=f()), "float32", ["f", "AddV2/y", "AddV2"]),
    ],
)
def test_what_arguments_become(graph: tf.Graph, make: Callable[[], Any], dtype: str, nodes: list[str]) -> None:
    assert make().dtype.name == dtype
    assert [op.name for op in graph.get_operations()] == nodes


@pytest.mark.parametrize(
    ("attrs", "value"),
    [
        ({"axis": 1}, 1), ({"axis": np.int32(1)}, 1), ({"axis": 1.0}, 1), ({"axis": True}, 1), ({"axis": None}, 0),
        ({}, 0),
    ],
)  # fmt: skip
def test_integers_as_attributes(attrs: dict[str, Any], value: int) -> None:
    held = emit("Pack", [f()], **attrs).op._attrs["axis"]
    assert held == value and type(held) is int


def test_attributes_are_canonical() -> None:
    attrs = pool(ksize=(1, np.int64(1), 1, 1)).op._attrs
    assert attrs["ksize"] == (1, 1, 1, 1) and all(type(v) is int for v in attrs["ksize"])
    assert attrs["padding"] == b"SAME" and attrs["T"] is tf.float32
    assert emit("LeakyRelu", f(), alpha=1).op._attrs["alpha"] == 1.0
    assert emit("MatMul", f(), f(), transpose_b=np.bool_(True)).op._attrs["transpose_b"] is True
    assert emit("Placeholder", dtype="float", shape=[2, None]).op._attrs["shape"] == (2, None)
    assert emit("Neg", f(), _mine=3).op._attrs["_mine"] == 3


def test_several_outputs() -> None:
    values, index = emit("Unique", [1, 2, 1])
    assert (values.name, index.name) == ("Unique:0", "Unique:1")
    assert [t.dtype.name for t in emit("IdentityN", [1.0, 2])] == ["float32", "int32"]
    assert emit("NoOp").type == "NoOp"
    assert emit.operation("Neg", f()).type == "Neg"


def test_what_is_known_is_a_constant(graph: tf.Graph) -> None:
    known, open_ = tf.zeros([2, 3]), tf.placeholder(tf.float32, [None, 3])
    anything = tf.placeholder(tf.float32)
    kinds = [t.op.type for t in (emit.shape(known), emit.size(known), emit.rank(known))]
    assert kinds == ["Const"] * 3
    assert emit.known_value(emit.shape(known)).tolist() == [2, 3] and emit.known_value(emit.size(known)) == 6
    assert [t.op.type for t in (emit.shape(open_), emit.size(open_), emit.rank(open_))] == ["Shape", "Size", "Const"]
    assert emit.rank(anything).op.type == "Rank"
    assert emit.shape(known, tf.int64).dtype == tf.int64
    assert emit.known_value(emit.shape(open_)) is None


def test_long_chains_of_constants_are_known() -> None:
    n = tf.constant(1)
    for _ in range(3000):
        n = n + 1
    assert tf.zeros([n]).shape.as_list() == [3001]


def test_an_update_lives_with_its_variable(graph: tf.Graph) -> None:
    with tf.device("/cpu:0"):
        v = emit("VariableV2", shape=[], dtype=tf.float32, name="v")
    with tf.device("/gpu:0"):
        a = emit("Assign", v, 1.0)
    assert a.device == "/device:CPU:0" and a.op.colocation_groups() == [b"loc:@v"]


def test_names_of_inputs() -> None:
    definition = parse("Op", "a: int32, many: N * float, rest: Ts", "", "N: int, Ts: list(type)")
    attrs = {"N": 2, "Ts": (tf.int32,)}
    assert definition.input_names(attrs) == ["a", "many.0", "many.1", "rest.0"]
    assert parse("Op", "a: int32, b: float").input_names({}) == ["a", "b"]


def test_an_error_of_shapes_names_the_inputs() -> None:
    with pytest.raises(ValueError) as caught:
        emit("ConcatV2", [f(), tf.zeros([3, 3])], 0, name="both")
    assert str(caught.value).splitlines()[-1] == "  values.0 = 'f:0' [1,2], values.1 = 'zeros:0' [3,3], axis = 'both/axis:0' []"
