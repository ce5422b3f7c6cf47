import linecache
import os
import time
from typing import Any

from thalweg.base import origin, shape


def _user_function() -> origin.Origin:
    return origin.capture()  # the innermost line


def test_capture_describes_the_callers_line() -> None:
    captured = _user_function()
    line = _user_function.__code__.co_firstlineno + 1
    text = f"test_origin.py:{line}: return origin.capture()  # the innermost line"
    assert origin.describe(captured) == text


def test_capture_is_limited_and_innermost_first() -> None:
    assert len(origin.capture(limit=2)) == 2
    code, _ = _user_function()[0]
    assert code is _user_function.__code__
    assert len(origin.capture()) <= 6


def test_traceback_is_oldest_first_with_source() -> None:
    captured = _user_function()
    frames = origin.traceback(captured)
    assert [frame.name for frame in frames[-2:]] == [
        "test_traceback_is_oldest_first_with_source",
        "_user_function",
    ]
    filename, _, name, source = frames[-2]
    assert os.path.basename(filename) == "test_origin.py"
    assert (name, source) == ("test_traceback_is_oldest_first_with_source", "captured = _user_function()")


def test_frames_inside_the_package_are_skipped() -> None:
    captured: list[origin.Origin] = []

    class Spy:
        def __index__(self) -> int:
            captured.append(origin.capture())
            return 1

    shape.as_shape([Spy()])  # the spy is called from frames in thalweg
    names = [code.co_name for code, _ in captured[0]]
    assert names[:2] == ["__index__", "test_frames_inside_the_package_are_skipped"]


def test_each_line_of_a_statement_over_lines() -> None:
    captured = [
        origin.capture(),
        origin.capture(),
    ]
    first, second = (origin.traceback(one)[-1].lineno for one in captured)
    assert first is not None and second == first + 1


def test_source_that_cannot_be_read() -> None:
    scope: dict[str, Any] = {"origin": origin}
    exec(compile("\n\ncaptured = origin.capture()", "/nowhere/prog.py", "exec"), scope)
    assert origin.describe(scope["captured"]) == "prog.py:3"
    linecache.checkcache()


def test_origins_from_elsewhere() -> None:
    assert origin.describe("far.py:1: x = 2") == "far.py:1: x = 2"
    assert origin.describe(()) == ""


def test_capture_is_cheap() -> None:
    def many() -> float:
        start = time.perf_counter()
        for _ in range(1000):
            origin.capture()
        return (time.perf_counter() - start) / 1000

    assert min(many() for _ in range(5)) < 20e-6  # 1-2 us on an idle machine
