"""Assert, Print, StringFormat, PyFunc."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tensorboard.compat.proto import config_pb2

import thalweg.ops  # noqa: F401
from thalweg.base import dtypes, errors
from thalweg.client.session import Session
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.ops import py_func
from thalweg.ops._summarize import pretty, summarize


@pytest.fixture
def session() -> Iterator[Session]:
    with Graph().as_default() as graph, Session(graph=graph) as session:
        yield session


STRINGS = np.array([b"a", b"b", b"c", b"d"], object)
CUBE = np.arange(12, dtype=np.float32).reshape(2, 3, 2) / np.float32(3)
NUMBERS = np.array([1e10, 1e-10, np.nan, -np.inf, 123456789.0, 0.1])


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (np.arange(5.0), 3, "0 1 2..."),
        (np.arange(5.0), -1, "0 1 2 3 4"),
        (np.arange(5.0), 0, "..."),
        (CUBE, 3, "[[0 0.333333343][0.666666687...]]..."),
        (CUBE, 5, "[[0 0.333333343][0.666666687 1][1.33333337...]]..."),
        (
            CUBE, -1,
            "[[0 0.333333343][0.666666687 1][1.33333337 1.66666663]]"
            "[[2 2.33333325][2.66666675 3][3.33333325 3.66666675]]",
        ),
        (np.array([[1, 2], [3, 4]]), 3, "[1 2][3...]..."),
        (np.array(b'hi\n"x"', object), 3, r"hi\n\"x\""),
        (STRINGS, 3, "a b c..."),
        (np.array([True, False]), 3, "1 0"),
        (np.zeros((2, 0)), 3, ""),
        (NUMBERS, -1, "10000000000 1e-10 nan -inf 123456789 0.1"),
        (np.float16(0.1), 3, "0.0999755859"),
    ],
)  # fmt: skip
def test_summaries_as_tensorflow_writes_them(value: Any, limit: int, text: str) -> None:
    assert summarize(value, limit) == text


@pytest.mark.parametrize(
    ("value", "edge", "text"),
    [
        (np.arange(9), 3, "[0 1 2 ... 6 7 8]"),
        (np.arange(9), -1, "[0 1 2 3 4 5 6 7 8]"),
        (np.array([[1, 2], [3, 4]]), 3, "[[1 2]\n [3 4]]"),
        (
            CUBE, 3,
            "[[[0 0.333333343]\n  [0.666666687 1]\n  [1.33333337 1.66666663]]\n\n"
            " [[2 2.33333325]\n  [2.66666675 3]\n  [3.33333325 3.66666675]]]",
        ),
        (STRINGS, 1, '["a" ... "d"]'),
        (np.array(b"x", object), 3, '"x"'),
    ],
)  # fmt: skip
def test_pretty_tensors_as_tensorflow_writes_them(value: Any, edge: int, text: str) -> None:
    assert pretty(value, edge) == text


def test_string_format(session: Session) -> None:
    text = emit("StringFormat", [np.array([1, 2]), np.array(b"x", object)], template="a {} b {} c", placeholder="{}")
    assert session.run(text) == b'a [1 2] b "x" c'
    with pytest.raises(ValueError, match="must match: 2 vs"):
        emit("StringFormat", [np.array([1, 2])], template="{} {}", placeholder="{}")


def test_assert(session: Session) -> None:
    holds = emit("Placeholder", dtype=dtypes.bool, shape=[])
    check = emit("Assert", holds, [emit.constant("x is"), np.arange(5)], summarize=3)
    session.run(check, {holds: True})
    with pytest.raises(errors.InvalidArgumentError, match=re.escape("assertion failed: [x is] [0 1 2...]")):
        session.run(check, {holds: False})


def test_print(session: Session, capfd: pytest.CaptureFixture[str]) -> None:
    x = emit("Placeholder", dtype=dtypes.float32, shape=[])
    shown = emit("Print", x, [np.array([1, 2, 3, 4]), emit.constant("x")], message="msg: ", first_n=2)
    assert [session.run(shown, {x: v}) for v in (1, 2, 3)] == [1, 2, 3]
    assert capfd.readouterr().err == "msg: [1 2 3...][x]\n" * 2


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_print_v2(session: Session, capfd: pytest.CaptureFixture[str], stream: str) -> None:
    session.run(emit("PrintV2", emit.constant("hello"), output_stream=stream, end="!\n"))
    out, err = capfd.readouterr()
    assert (out if stream == "stdout" else err) == "hello!\n"


def test_print_v2_to_a_file(session: Session, tmp_path: Any) -> None:
    path = tmp_path / "log"
    for _ in range(2):
        session.run(emit("PrintV2", emit.constant("hello"), output_stream=f"file://{path}"))
    assert path.read_text() == "hello\nhello\n"
    with pytest.raises(errors.InvalidArgumentError, match="Unknown output stream: nowhere"):
        session.run(emit("PrintV2", emit.constant("hello"), output_stream="nowhere"))


def test_timestamp(session: Session) -> None:
    stamp = emit("Timestamp")
    assert session.run(stamp) <= session.run(stamp)


# --- Python functions ---


def py(function: Callable[..., Any], inputs: list[Any], *types: Any) -> Any:
    """A PyFunc node, and the function that it needs alive."""
    return emit.operation("PyFunc", inputs, token=py_func.register(function), Tout=list(types)), function


def test_py_func_gets_numpy_values(session: Session) -> None:
    seen: list[Any] = []

    def function(scalar: Any, vector: Any, text: Any) -> Any:
        seen.extend((type(scalar), type(vector), text))
        vector += 1  # its own copy
        return vector * scalar

    fed = np.ones(2, np.float32)
    vector = emit("Placeholder", dtype=dtypes.float32, shape=[2])
    node, _keep = py(function, [np.float32(3), vector, emit.constant("s")], dtypes.float32)
    np.testing.assert_array_equal(session.run(node.outputs[0], {vector: fed}), [6, 6])
    np.testing.assert_array_equal(fed, [1, 1])
    assert seen == [np.float32, np.ndarray, b"s"]


@pytest.mark.parametrize(
    ("result", "types", "expected"),
    [
        ("é", [dtypes.string], ["é".encode()]),
        (b"x", [dtypes.string], [b"x"]),
        (("a", b"bc"), [dtypes.string, dtypes.string], [b"a", b"bc"]),
        (np.array(["a", "bcd"]), [dtypes.string], [np.array([b"a", b"bcd"], object)]),
        (3, [dtypes.int64], [np.int64(3)]),
        ([[1.0, 2.0]], [dtypes.float64], [np.array([1.0, 2.0])]),
        ((), [], []),
        (None, [], []),
    ],
)
def test_py_func_results(session: Session, result: Any, types: list[Any], expected: list[Any]) -> None:
    node, _keep = py(lambda: result, [], *types)
    if not types:
        session.run(node)
    for got, wanted in zip(session.run(node.outputs), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("result", "types", "says"),
    [
        (1.0, [dtypes.float32], "0-th value returned by pyfunc_[0-9]+ is double, but expects float"),
        (3, [dtypes.int32], "0-th value returned by pyfunc_[0-9]+ is int64, but expects int32"),
        ((1.0, 2.0), [dtypes.float64], "returns 2 values, but expects to see 1 values"),
        (None, [dtypes.float64], "returns 0 values, but expects to see 1 values"),
        ({}, [dtypes.float64], "Unsupported object type dict"),
    ],
)
def test_py_func_results_of_the_wrong_kind(session: Session, result: Any, types: list[Any], says: str) -> None:
    node, _keep = py(lambda: result, [], *types)
    with pytest.raises(errors.InvalidArgumentError, match=says):
        session.run(node.outputs[0])


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (ValueError, errors.InvalidArgumentError),
        (TypeError, errors.InvalidArgumentError),
        (StopIteration, errors.OutOfRangeError),
        (MemoryError, errors.ResourceExhaustedError),
        (NotImplementedError, errors.UnimplementedError),
        (KeyError, errors.UnknownError),
    ],
)
def test_exceptions_of_py_func(session: Session, raised: type[Exception], kind: type[errors.OpError]) -> None:
    def function() -> Any:
        raise raised("boom")

    node, _keep = py(function, [], dtypes.float32)
    with pytest.raises(kind, match=r"(?s)boom.*in function\n +raise raised") as caught:
        session.run(node.outputs[0])
    assert type(caught.value) is kind


def test_a_step_does_not_wait_for_a_py_func_beyond_its_deadline(session: Session) -> None:
    release = threading.Event()
    node, _keep = py(lambda: release.wait(60), [], dtypes.bool)
    with pytest.raises(errors.DeadlineExceededError):
        session.run(node.outputs[0], options=config_pb2.RunOptions(timeout_in_ms=50))
    release.set()


def test_py_funcs_of_one_step_run_at_the_same_time(session: Session) -> None:
    both = threading.Barrier(2, timeout=30)
    first, _a = py(lambda: both.wait() >= 0, [], dtypes.bool)
    second, _b = py(lambda: both.wait() >= 0, [], dtypes.bool)
    assert session.run([first.outputs[0], second.outputs[0]]) == [True, True]


def test_a_function_that_is_gone(session: Session) -> None:
    node, function = py(lambda: 1.0, [], dtypes.float64)
    del function
    with pytest.raises(errors.InvalidArgumentError, match="no function is registered as 'pyfunc_"):
        session.run(node.outputs[0])
