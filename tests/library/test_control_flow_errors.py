"""What branches, loops and TensorArrays say of bad input, and what they promise about their nodes."""

from collections.abc import Callable
from typing import Any

import pytest

import thalweg as tf


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def _loop(body: Callable[..., Any], *variables: Any, **kwargs: Any) -> Any:
    return tf.while_loop(lambda i, *_: i < 3, body, list(variables), **kwargs)


WHILE_ERRORS = [
    (TypeError, "'cond' must be callable", lambda: tf.while_loop(1, lambda i: i, [0])),
    (TypeError, "'body' must be callable", lambda: tf.while_loop(lambda i: i < 3, 1, [0])),
    (TypeError, "positive integer", lambda: _loop(lambda i: i + 1, 0, parallel_iterations=0)),
    (ValueError, "'loop_vars' must be provided", lambda: tf.while_loop(lambda: True, lambda: [], [])),
    (ValueError, "same number of elements", lambda: _loop(lambda i, j: [i + 1], 0, 1)),
    (TypeError, "same sequence type", lambda: _loop(lambda i, j: (i + 1, (j[0],)), 0, [1])),
    (ValueError, "is a sequence", lambda: _loop(lambda i, j: (i + 1, [j]), 0, 1)),
    (
        ValueError,
        r"'zeros:0' enters the loop with shape \[2\], but has shape \[4\] after one iteration",
        lambda: _loop(lambda i, j: [i + 1, tf.concat([j, j], 0)], 0, tf.zeros([2])),
    ),
    (
        ValueError,
        r"specified for zeros:0 is not compatible .* shape \[2\], but the specified shape invariant is \[3\]",
        lambda: _loop(
            lambda i, j: [i + 1, j],
            0,
            tf.zeros([2]),
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([3])],
        ),
    ),
    (
        TypeError,
        "'shape' must be one of",
        lambda: _loop(lambda i, j: [i + 1, j], 0, 1, shape_invariants=[tf.TensorShape([]), 3]),
    ),
    (ValueError, "must be a scalar", lambda: _loop(lambda i: i + 1, 0, maximum_iterations=[1])),
    (
        tf.errors.InvalidArgumentError,
        "enters the loop with type int32, but has type float32",
        lambda: _loop(lambda i: tf.cast(i, tf.float32), 0),
    ),
    (TypeError, "bool", lambda: tf.while_loop(lambda i: i, lambda i: i + 1, [0])),
]


@pytest.mark.parametrize(("error", "text", "build"), WHILE_ERRORS, ids=range(len(WHILE_ERRORS)))
def test_while_loop(error: type[Exception], text: str, build: Callable[[], Any]) -> None:
    with pytest.raises(error, match=text):
        build()


def _cond(true: Any, false: Any, **kwargs: Any) -> Any:
    return tf.cond(tf.placeholder(tf.bool, []), true, false, **kwargs)


COND_ERRORS = [
    (TypeError, "must not be a Python bool", lambda: tf.cond(True, lambda: 1, lambda: 2)),
    (TypeError, "'true_fn' argument required", lambda: tf.cond(tf.constant(True))),
    (TypeError, "'false_fn' argument required", lambda: tf.cond(tf.constant(True), lambda: 1)),
    (TypeError, "'true_fn' must be callable", lambda: _cond(1, lambda: 1)),
    (TypeError, "may not be set simultaneously", lambda: _cond(lambda: 1, lambda: 1, fn1=lambda: 1)),
    (ValueError, "'false_fn' must have a return value", lambda: _cond(lambda: 1, lambda: None)),
    (
        ValueError,
        "must have the same type.* Received int32 from 'true_fn' and float32 from 'false_fn'",
        lambda: _cond(lambda: 1, lambda: 1.0),
    ),
    (ValueError, "Incompatible return values", lambda: _cond(lambda: (1, 2), lambda: 1)),
    (TypeError, "Incompatible return types", lambda: _cond(lambda: (1, 2), lambda: [1, 2])),
    (ValueError, "at least one result", lambda: _cond(list, list, strict=True)),
    (TypeError, "must be a list, tuple, or dict", lambda: tf.case(1)),
    (TypeError, "must be a 2-tuple", lambda: tf.case([1])),
    (TypeError, "pred must be a Tensor", lambda: tf.case([(True, lambda: 1)])),
    (TypeError, "type bool", lambda: tf.case([(tf.constant(1), lambda: 1)])),
    (TypeError, "must be callable", lambda: tf.case([(tf.constant(True), 1)])),
    (TypeError, "'branch_index' must be a Tensor", lambda: tf.switch_case(1, [lambda: 1])),
    (ValueError, "contiguous range", lambda: tf.switch_case(tf.constant(1), {0: lambda: 1, 2: lambda: 2})),
]


@pytest.mark.parametrize(("error", "text", "build"), COND_ERRORS, ids=range(len(COND_ERRORS)))
def test_cond(error: type[Exception], text: str, build: Callable[[], Any]) -> None:
    with pytest.raises(error, match=text):
        build()


ARRAY_ERRORS = [
    (ValueError, "`size` must be provided", lambda: tf.TensorArray(tf.float32)),
    (ValueError, r"saw \[3\] but expected \[2\]", lambda: _array(element_shape=[2]).write(0, [1.0, 2.0, 3.0])),
    (ValueError, r"saw \[1\] but expected \[\]", lambda: _array().write(0, 1.0).write(1, [1.0])),
    (TypeError, "can't hold .* int32", lambda: _array().write(0, tf.constant(1))),
    (
        ValueError,
        "Cannot provide both `handle` and `size`",
        lambda: tf.TensorArray(tf.float32, 3, handle=_array().handle, flow=_array().flow),
    ),
    (ValueError, "flow must not be None", lambda: tf.TensorArray(tf.float32, handle=_array().handle)),
    (TypeError, "to be a Tensor", lambda: tf.TensorArray(tf.float32, handle=1, flow=_array().flow)),
]


def _array(**kwargs: Any) -> Any:
    return tf.TensorArray(tf.float32, 3, **kwargs)


@pytest.mark.parametrize(("error", "text", "build"), ARRAY_ERRORS, ids=range(len(ARRAY_ERRORS)))
def test_tensor_array(error: type[Exception], text: str, build: Callable[[], Any]) -> None:
    with pytest.raises(error, match=text):
        build()


def test_a_tensor_of_a_loop_stays_inside(graph: Any) -> None:
    inside: list[Any] = []

    def body(i: Any) -> Any:
        inside.append(i + 1)
        return inside[0]

    _loop(body, 0)
    before = len(graph.get_operations())
    with pytest.raises(ValueError, match="'while/add' is in a while loop"):
        tf.identity(inside[0])
    assert len(graph.get_operations()) == before
    with pytest.raises(ValueError, match="are in different while loops"):
        _loop(lambda i: i + inside[0], 0)


def test_what_is_inside_can_not_be_fetched_or_fed(graph: Any) -> None:
    inside: list[Any] = []

    def body(i: Any) -> Any:
        inside.append(i + 1)
        return inside[0]

    result = _loop(body, 0)
    assert graph.is_fetchable(result)
    assert not graph.is_fetchable(inside[0])
    assert not graph.is_feedable(inside[0])


def test_merge_of_unequal_types() -> None:
    with pytest.raises(TypeError, match="float32 that does not match type int32"):
        tf.raw_ops.Merge(inputs=[tf.constant(1), tf.constant(1.0)])


def test_initial_value_from_a_loop() -> None:
    def body(i: Any) -> Any:
        tf.Variable(i * 2)
        return i + 1

    with pytest.raises(ValueError, match="inside a control-flow construct"):
        _loop(body, 0)


def test_contexts_in_collections(graph: Any) -> None:
    tf.cond(tf.constant(True), lambda: _loop(lambda i: i + 1, 0), lambda: tf.constant(1))
    assert [c.branch for c in graph.get_collection(tf.GraphKeys.COND_CONTEXT)] == [1, 0]
    assert graph.get_collection(tf.GraphKeys.WHILE_CONTEXT) == []
    _loop(lambda i: i + 1, 0)
    assert [c.name for c in graph.get_collection(tf.GraphKeys.WHILE_CONTEXT)] == ["while/while_context"]


@pytest.mark.parametrize("fn", [tf.map_fn, tf.foldl, tf.foldr, tf.scan])
def test_functions_over_rows(fn: Any) -> None:
    with pytest.raises(TypeError, match="not callable"):
        fn(1, tf.constant([1.0]))


def test_map_fn_wants_rows() -> None:
    with pytest.raises(ValueError, match="not scalars"):
        tf.map_fn(lambda x: x, tf.constant(1.0))
    with pytest.raises(ValueError, match="does not contain any Tensors"):
        tf.map_fn(lambda x: x, [])
    with pytest.raises(TypeError, match="sparse tensor"):
        tf.map_fn(lambda x: x, tf.SparseTensor([[0]], [1.0], [1]))
    with pytest.raises((TypeError, ValueError), match="same nested structure"):
        tf.map_fn(lambda x: (x, x), tf.constant([1.0]))
