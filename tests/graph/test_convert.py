"""Python and NumPy values as constants: the element types that TensorFlow gives them, and what it refuses.

The types in the tables are TensorFlow's (2.21, compat.v1). Where it wraps numbers that don't fit or reads foreign
byte order as it is, thalweg refuses or converts; those rows say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import thalweg as tf
from thalweg.graph import convert
from thalweg.graph.convert import to_array


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


OBJECT = object()


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, "int32"), (1.5, "float32"), (True, "bool"), (1j, "complex128"), ("a", "string"), (b"a", "string"),
        (2**31 - 1, "int32"), (2**31, "int64"), (-(2**31), "int32"), (-(2**31) - 1, "int64"), (2**63, "uint64"),
        ([1, 2], "int32"), ([1, 2.5], "float32"), ([True, False], "bool"), ([1, True], "int32"),
        ([True, 1], "int32"), ([1.0, True], "float32"), ([1, 2**40], "int64"), ([1, 1j], "complex128"),
        (["a", b"b"], "string"), ([], "float32"), ([[], []], "float32"), ((1, 2), "int32"), (((1,), [2]), "int32"),
        ([[1, 2], [3.5, 4]], "float32"), ([float("inf"), 1], "float32"), ("\u00e9", "string"),
        (np.int64(3), "int64"), (np.float64(2.0), "float64"), (np.bool_(True), "bool"), (np.uint64(2**63), "uint64"),
        (np.array([1.0]), "float64"), (np.array([1]), "int64"), (np.array([1], np.uint32), "uint32"),
        (np.array([1], np.float16), "float16"), (np.array(3.0), "float64"), (np.zeros([0, 2]), "float64"),
        (np.array(["a", "bc"]), "string"), (np.array([b"a"]), "string"), (np.array(["a", b"b"], object), "string"),
        (np.array([], object), "string"), (ml_dtypes.bfloat16(1.5), "bfloat16"),
        # NumPy scalars in lists count as Python's
        ([np.float64(1.0), 2.0], "float32"), ([np.float32(1.0), 2.0], "float32"), ([np.int64(1), 2], "int32"),
        ([1, np.int64(2)], "int32"), ([np.int8(1), np.int8(2)], "int8"), ([ml_dtypes.bfloat16(1.5)], "bfloat16"),
    ],
)  # fmt: skip
def test_the_type_of_a_value(value: Any, dtype: str) -> None:
    for tensor in (tf.constant(value), tf.convert_to_tensor(value)):
        assert tensor.dtype.name == dtype
        assert tensor.shape.as_list() == list(np.shape(value))


@pytest.mark.parametrize(
    ("value", "dtype", "result"),
    [
        (1, tf.float32, 1.0), (1, tf.complex64, 1 + 0j), (1.5, tf.float64, 1.5), (1.5, tf.bfloat16, 1.5),
        (1, tf.uint8, 1), (2**63, tf.uint64, 2**63), (2**64, tf.float32, 2.0**64), (2**64, tf.complex64, 2.0**64),
        (True, tf.float32, 1.0), (True, tf.int32, 1), (True, tf.complex64, 1.0), ([True, False], tf.int8, [1, 0]),
        (np.float64(1.5), tf.float32, 1.5), (np.array([1.7]), tf.int32, [1]), (np.array([2.0]), tf.bool, [True]),
        (np.array([1, 2], object), tf.float32, [1.0, 2.0]), ([], tf.int32, []), ("a", tf.string, b"a"),
        (np.array([1, 2], ">i4"), tf.int32, [1, 2]),
    ],
)  # fmt: skip
def test_a_type_that_is_asked_for(value: Any, dtype: tf.DType, result: Any) -> None:
    tensor = tf.constant(value, dtype)
    assert tensor.dtype == dtype
    held = tensor.op._attrs["value"]
    assert held.dtype == np.dtype(dtype.as_numpy_dtype) and held.dtype.isnative
    assert held.tolist() == result


@pytest.mark.parametrize(
    ("value", "dtype", "error", "says"),
    [
        (None, None, ValueError, "None values"), (None, tf.float32, ValueError, "None values"),
        (None, tf.string, ValueError, "None values"), ([1, None], None, TypeError, "None values"),
        ([[1], [1, 2]], None, ValueError, "non-rectangular"), ([[1], [1, 2]], tf.int32, ValueError, "non-rectangular"),
        (1.5, tf.int32, TypeError, "Expected int32, but got 1.5"), ([1.5], tf.int64, TypeError, "Expected int64"),
        (1, tf.bool, TypeError, "Expected bool"), (1.0, tf.bool, TypeError, "Expected bool"),
        (1j, tf.float32, TypeError, "Expected float32"), ("a", tf.float32, TypeError, "Expected float32"),
        ([1, "a"], tf.int32, TypeError, "Expected int32"), (1, tf.string, TypeError, "Expected string, but got 1"),
        (np.array(["a"]), tf.float32, TypeError, "type str"), (np.array([b"a"]), tf.int32, TypeError, "type bytes"),
        (np.array(["a"], object), tf.bool, TypeError, "type str"), (np.array([1, 2], object), None, TypeError, "string"),
        (2**31, tf.int32, ValueError, "out of the range of int32"), (-1, tf.uint8, ValueError, "range of uint8"),
        (2**63, tf.int64, ValueError, "range of int64"), (2**64, tf.int64, TypeError, "int"),
        (OBJECT, None, TypeError, "type object"), ({1}, None, TypeError, "type set"), ({1: 2}, None, TypeError, "dict"),
        (np.datetime64("2020-01-01"), None, TypeError, "M8"),
    ],
)  # fmt: skip
def test_what_is_refused(value: Any, dtype: Any, error: type[Exception], says: str) -> None:
    for function in (tf.constant, tf.convert_to_tensor):
        with pytest.raises(error, match=says):
            function(value, dtype)


def test_a_constant_keeps_a_copy() -> None:
    array = np.ones(3, np.float32)
    held = tf.constant(array).op._attrs["value"]
    array[:] = 7.0
    assert held.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        held[0] = 2.0


def test_a_constant_fills_its_shape() -> None:
    assert tf.constant(7, shape=[2, 2]).op._attrs["value"].tolist() == [[7, 7], [7, 7]]
    assert tf.constant([1, 2, 3], shape=[5]).op._attrs["value"].tolist() == [1, 2, 3, 3, 3]
    assert tf.constant([1, 2, 3, 4], shape=[2, 2]).op._attrs["value"].tolist() == [[1, 2], [3, 4]]
    for value, shape, says in (([1, 2, 3], [2], "Too many elements"), ([], [2], "from no elements")):
        with pytest.raises(ValueError, match=says):
            tf.constant(value, shape=shape)
    with pytest.raises(ValueError, match="fully known shape"):
        tf.constant(1, shape=[None])
    with pytest.raises(TypeError, match=r"Expected Tensor's shape: \(3,\), got \(\)"):
        tf.constant(1, shape=[3], verify_shape=True)


def test_a_tensor_is_what_it_is() -> None:
    t = tf.constant(1.0)
    assert tf.convert_to_tensor(t) is t is tf.convert_to_tensor(t, tf.float32)
    with pytest.raises(ValueError, match="requested dtype int32 for Tensor with dtype float32"):
        tf.convert_to_tensor(t, tf.int32)


def test_a_preferred_type_is_given_up_silently() -> None:
    assert tf.convert_to_tensor(1, preferred_dtype=tf.float64).dtype == tf.float64
    assert tf.convert_to_tensor(1.5, preferred_dtype=tf.int64).dtype == tf.float32
    assert tf.convert_to_tensor("a", preferred_dtype=tf.int64).dtype == tf.string
    assert tf.convert_to_tensor(1, tf.int8, preferred_dtype=tf.float64).dtype == tf.int8


def test_lists_with_tensors_are_packed() -> None:
    x = tf.placeholder(tf.float32, [])
    packed = tf.convert_to_tensor([[x, 1.0], [2.0, x]])
    assert packed.op.type == "Pack" and packed.shape.as_list() == [2, 2]
    with tf.Session() as sess:
        assert sess.run(packed, {x: 5.0}).tolist() == [[5.0, 1.0], [2.0, 5.0]]


class Celsius:
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees


class Kelvin(Celsius):
    pass


def test_other_types_say_how_they_become_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "_conversions", convert._conversions.copy())
    monkeypatch.setattr(convert, "_conversion_cache", {})

    def of_celsius(value: Celsius, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
        return NotImplemented if isinstance(value, Kelvin) else tf.constant(value.degrees, dtype, name=name or "C")

    def of_kelvin(value: Kelvin, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
        return tf.constant(value.degrees + 273.0, dtype, name=name or "K")

    tf.register_tensor_conversion_function(Celsius, of_celsius)
    tf.register_tensor_conversion_function(Celsius, of_kelvin, 200)
    assert tf.convert_to_tensor(Celsius(1.0)).op.name == "C"
    assert tf.convert_to_tensor(Kelvin(1.0), tf.float64).op._attrs["value"] == 274.0
    total = tf.constant([1.0, 2.0]) + [Celsius(1.0), Kelvin(0.0)]
    with tf.Session() as sess:
        assert sess.run(total).tolist() == [2.0, 275.0]
    tf.register_tensor_conversion_function(Kelvin, lambda value, dtype, name, as_ref: 3, 10)
    with pytest.raises(RuntimeError, match="returned 3, not a Tensor"):
        tf.convert_to_tensor(Kelvin(1.0))
    with pytest.raises(TypeError, match="must be callable"):
        tf.register_tensor_conversion_function(Celsius, 3)  # type: ignore[arg-type]


def test_strings_of_any_bytes() -> None:
    array = to_array(["caf\u00e9", b"\x00\xff\x00", ""])
    assert array.dtype == object and array.tolist() == ["caf\u00e9".encode(), b"\x00\xff\x00", b""]


def test_default_graphs(graph: tf.Graph) -> None:
    assert tf.get_default_graph() is graph
    other = tf.Graph()
    with other.as_default():
        with graph.as_default():
            assert tf.get_default_graph() is graph
        assert tf.get_default_graph() is other
        with other.as_default():
            pass
        assert tf.get_default_graph() is other
    with pytest.raises(AssertionError, match="nested graphs"):
        tf.reset_default_graph()


def test_contexts_that_are_left_out_of_order(graph: tf.Graph) -> None:
    outer, inner = tf.Graph().as_default(), tf.Graph().as_default()
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(AssertionError, match="Nesting violated"):
        outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    tf_stack = convert.scope_stacks.default_stack.stack
    del tf_stack[tf_stack.index(graph) + 1 :]
