"""Assertions, printing and time stamps. Source: TensorFlow's logging_ops.cc, string_format_op.cc."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import host, stateful
from thalweg.ops._summarize import pretty, summarize

_log = logging.getLogger("thalweg")


def _bracketed(values: Sequence[Any], limit: int) -> list[str]:
    return [f"[{summarize(v, limit)}]" for v in values]


def _scalar_shape(c: ShapeContext) -> list[Shape]:
    return [()]


def _assert_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    return []


def _assert_kernel(context: Any, condition: Any, data: list[Any], *, summarize: int) -> None:
    if np.ndim(condition):
        raise context.fail(InvalidArgumentError, f"In[0] should be a scalar: got shape {np.shape(condition)}")
    if not condition:
        raise context.fail(
            InvalidArgumentError, f"assertion failed: {' '.join(_bracketed(data, summarize))}"
        )


define_op(
    "Assert",
    inputs="condition: bool, data: T",
    attrs="T: list(type) >= 1, summarize: int = 3",
    shape=_assert_shape,
    kernel=stateful(_assert_kernel),
    stateful=True,
    gradient=NotDifferentiable("no outputs"),
    doc="InvalidArgumentError that shows `data` where the condition is false.",
)


class _Counter:
    """How often a Print node of this session has printed."""

    def __init__(self) -> None:
        self.count = 0


def _print_kernel(
    context: Any, value: Any, data: list[Any], *, message: str, first_n: int, summarize: int
) -> Any:
    if first_n >= 0:
        counter = context.resources.get_or_create(("print", "", context.op.name), _Counter)
        if counter.count >= first_n:
            return value
        counter.count += 1
    print(message + "".join(_bracketed(data, summarize)), file=sys.stderr, flush=True)
    return value


define_op(
    "Print",
    inputs="input: T, data: U",
    outputs="output: T",
    attrs="T: type, U: list(type) >= 0, message: string = '', first_n: int = -1, summarize: int = 3",
    shape=lambda c: [c.shape(0)],
    kernel=stateful(_print_kernel),
    stateful=True,
    gradient=lambda emit, op, dy: [dy] + [None] * (len(op.inputs) - 1),
    doc="Its input; when it runs, message and data are printed to the standard error stream.",
)

_LEVELS = {"log(info)": logging.INFO, "log(warning)": logging.WARNING, "log(error)": logging.ERROR}


def _print_v2_kernel(context: Any, text: Any, *, output_stream: str, end: str) -> None:
    if np.ndim(text):
        raise context.fail(InvalidArgumentError, f"Input is expected to be scalar, but got {np.shape(text)}")
    line: str = np.asarray(text).item().decode("utf-8", "replace")
    if output_stream in ("stderr", "stdout"):
        stream = sys.stderr if output_stream == "stderr" else sys.stdout
        print(line, end=end, file=stream, flush=True)
    elif output_stream in _LEVELS:
        _log.log(_LEVELS[output_stream], "%s%s", line, end.rstrip("\n"))
    elif output_stream.startswith("file://"):
        with open(output_stream[len("file://") :], "a", encoding="utf-8") as file:
            file.write(line + end)
    else:
        known = "stdout, stderr, log(info), log(warning), log(error), file://<path>"
        raise context.fail(
            InvalidArgumentError, f"Unknown output stream: {output_stream}, must be one of {known}"
        )


define_op(
    "PrintV2",
    inputs="input: string",
    attrs="output_stream: string = 'stderr', end: string = '\\n'",
    shape=_assert_shape,
    kernel=stateful(_print_v2_kernel),
    stateful=True,
    gradient=NotDifferentiable("no outputs"),
    doc="Prints a string to a stream, a log or a file.",
)


def _format_kernel(values: list[Any], *, template: str, placeholder: str, summarize: int) -> np.ndarray:
    parts = template.split(placeholder)
    text = parts[0]
    for value, part in zip(values, parts[1:], strict=True):
        text += pretty(value, summarize) + part
    return np.array(text.encode(), object)


def _format_shape(c: ShapeContext) -> list[Shape]:
    places = c.text("template").count(c.text("placeholder"))
    if places != len(c):
        raise ValueError(
            f"num placeholders in template and num inputs must match: {places} vs. {len(c)}"
        )
    return [()]


define_op(
    "StringFormat",
    inputs="inputs: T",
    outputs="output: string",
    attrs="T: list(type) >= 0, template: string = '%s', placeholder: string = '%s', summarize: int = 3",
    shape=_format_shape,
    kernel=host(_format_kernel),
    gradient=NotDifferentiable("strings have no gradients"),
    doc="The template with its placeholders replaced by tensors as text.",
)


def _timestamp_kernel(context: Any) -> np.float64:
    return np.float64(time.time())


define_op(
    "Timestamp",
    outputs="ts: double",
    shape=_scalar_shape,
    kernel=stateful(_timestamp_kernel),
    stateful=True,
    gradient=NotDifferentiable("no inputs"),
    doc="Seconds since the epoch, when the node runs.",
)
