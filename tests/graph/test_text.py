"""Graphs as text, and back."""

from __future__ import annotations

import numpy as np
import pytest

import thalweg as tf
from thalweg.graph.text import format_graph, format_op, parse


@pytest.mark.parametrize(
    "text",
    [
        "x = Placeholder[dtype=float32](); y = Neg(x)",
        "x = Placeholder[dtype=float32, shape=[2,?]](); y = Sum[keep_dims=True](x, 1)",
        "x = Placeholder[dtype=float32, shape=[]](); y = Mul(x, 2.0); z = Add(y, -0.001)",
        "x = Placeholder[dtype=float32](); y = Neg(x) on(/device:CPU:1)",
        "x = Placeholder[dtype=float32](); n = NoOp(); y = Neg(x) after(n)",
        "x = Placeholder[dtype=float32](); n = NoOp(); y = Neg(x) after(n, x) on(/job:ps)",
        "x = Placeholder[dtype=float32](); u = Unique(x); i = Neg(u:1); y = Mul(u, u)",
        "x = Placeholder[dtype=float32](); y = ConcatV2(x, x, x, 0)",
        "x = Placeholder[dtype=float32](); y = MaxPool[ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding='SAME'](x)",
        "v = VariableV2[shape=[3], dtype=float32](); r = Identity(v); a = AssignAdd(v, r)",
        "c = Const[value=[1, 2]](); y = Neg(c)",
        "c = Const[value=[1, 2], dtype=int64](); y = Neg(c)",
        "c = Const[value=2, dtype=int64](); y = Neg(c)",
        "c = Const[value=2.5, dtype=float64](); y = Neg(c)",
        "c = Const[value=inf](); y = Neg(c)".replace("inf", "1e+30"),
        "c = Const[value=True](); y = LogicalNot(c)",
        "c = Const[value=b'words'](); y = Identity(c)",
        "c = Const[value=3](); n = NoOp() after(c)",
        "scope/x = Placeholder[dtype=float32](); scope/in-ner/y = Neg(scope/x)",
    ],
)
def test_what_is_written_can_be_read(text: str) -> None:
    written = format_graph(parse(text))
    assert format_graph(parse(written)) == written
    if "1e+30" not in text:
        assert written.replace("\n", "; ") == text


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("x", ValueError, "cannot read 'x'"),
        ("x = Neg(", ValueError, "cannot read"),
        ("y = Neg(q)", KeyError, "'q', does not exist"),
        ("x = Placeholder[dtype=nothing]()", ValueError, "'nothing' is no element type"),
        ("x = Placeholder[dtype=float](); y = Neg(x, x)", ValueError, "Neg takes 1 inputs, not also x"),
        ("x = Placeholder[dtype=float](); y = Mul(x)", TypeError, "missing its input 'y'"),
        ("x = Placeholder[shape=[2]]()", TypeError, "no value for attr 'dtype'"),
    ],
)
def test_bad_text(text: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        parse(text)


def test_a_number_is_a_constant_of_the_other_operand_s_type() -> None:
    graph = parse("x = Placeholder[dtype=int64](); y = Add(x, 3)")
    constant = graph.get_operation_by_name("y").inputs[1]
    assert constant.dtype == tf.int64 and constant.op.name == "y/y"


def test_large_constants_are_abridged() -> None:
    with tf.Graph().as_default():
        c = tf.constant(np.zeros((3, 4), np.float64), name="c")
        assert format_op(c.op) == "c = Const[value=<float64[3, 4]>, dtype=float64]()"
