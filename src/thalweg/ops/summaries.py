"""Summaries as nodes: serialised protocol buffers. Source: TensorFlow's logging_ops.cc, summary_op.cc."""

from __future__ import annotations

from typing import Any

import numpy as np
from tensorboard.compat.proto import summary_pb2

from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import host
from thalweg.ops._types import REAL


def _scalar_kernel(tags: Any, values: Any) -> np.ndarray:
    if np.shape(tags) != np.shape(values):
        raise ValueError(
            f"tags and values are not the same shape: {list(np.shape(tags))} != {list(np.shape(values))}"
        )
    summary = summary_pb2.Summary()
    for tag, value in zip(np.ravel(tags), np.ravel(values), strict=True):
        summary.value.add(tag=tag.decode(), simple_value=float(value))
    result = np.empty((), object)
    result[()] = summary.SerializeToString()
    return result


def _scalar_shape(c: ShapeContext) -> list[Shape]:
    return [()]


define_op(
    "ScalarSummary",
    inputs="tags: string, values: T",
    outputs="summary: string",
    attrs=f"T: {REAL}",
    shape=_scalar_shape,
    kernel=host(_scalar_kernel, foldable=False),
    gradient=NotDifferentiable("it is text"),
    doc="A Summary message that gives each tag its value.",
)
