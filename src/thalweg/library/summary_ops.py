"""tf.summary: nodes that make summaries. Source: TensorFlow's summary.py, summary_op_util.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from google.protobuf import json_format
from tensorboard.compat.proto import summary_pb2

from thalweg.base import dtypes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library import framework, tf_logging
from thalweg.library.framework import name_scope
from thalweg.library.graph_keys import GraphKeys

_NOT_IN_TAGS = re.compile(r"[^-/\w\.]")


def _clean(name: str | None) -> str | None:
    """A name that can be a tag and a node's name."""
    if name is None:
        return None
    clean = _NOT_IN_TAGS.sub("_", name).lstrip("/")
    if clean != name:
        tf_logging.info("Summary name %s is illegal; using %s instead.", name, clean)
    return clean


@contextmanager
def _scope(
    name: str | None, family: str | None, value: Any, default: str | None = None
) -> Iterator[tuple[str, str]]:
    """The name scope of a summary; yields its tag and the node's name. A family stands in the tag twice."""
    name, family = _clean(name), _clean(family)
    base = name if family is None else f"{family}/{name}"
    with name_scope(base, default, [value]) as scope:
        tag = scope.rstrip("/")
        yield (tag if family is None else f"{family}/{tag}"), scope


def _collect(summary: Tensor, collections: Sequence[str] | None) -> Tensor:
    for key in (GraphKeys.SUMMARIES,) if collections is None else collections:
        framework.add_to_collection(key, summary)
    return summary


def scalar(
    name: str, tensor: Any, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """A Summary of one number, as a string tensor.

    name: of the node, and the tag that TensorBoard shows. collections: SUMMARIES where None. family: put
    before the tag; TensorBoard groups by it.
    """
    with _scope(name, family, tensor) as (tag, scope):
        return _collect(emit("ScalarSummary", tag, tensor, name=scope), collections)


def histogram(
    name: str, values: Any, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """A Summary with a histogram of numbers of any shape. InvalidArgumentError where one is not finite."""
    with _scope(name, family, values, "HistogramSummary") as (tag, scope):
        return _collect(emit("HistogramSummary", tag, values, name=scope), collections)


def image(
    name: str,
    tensor: Any,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A Summary with up to max_outputs pictures of a batch [batch, height, width, 1, 3 or 4 channels].

    Bytes are shown as they are. Floats are scaled, each picture by itself: the largest value becomes 255;
    where some are negative, 0 becomes 128, and the value farthest from it 1 or 255.
    """
    with _scope(name, family, tensor) as (tag, scope):
        return _collect(emit("ImageSummary", tag, tensor, max_images=max_outputs, name=scope), collections)


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A Summary with up to max_outputs sounds of a batch [batch, frames] or [batch, frames, channels].

    Values lie between -1 and 1. sample_rate: frames per second.
    """
    with _scope(name, family, tensor) as (tag, scope):
        rate = convert_to_tensor(sample_rate, dtypes.float32, name="sample_rate")
        node = emit("AudioSummaryV2", tag, tensor, rate, max_outputs=max_outputs, name=scope)
        return _collect(node, collections)


def text(name: str, tensor: Any, collections: Sequence[str] | None = None) -> Tensor:
    """A Summary of strings, for TensorBoard's text page (Markdown). ValueError for other types."""
    tensor = convert_to_tensor(tensor)
    if tensor.dtype != dtypes.string:
        raise ValueError(f"Expected tensor {tensor.name} to have dtype string, got {tensor.dtype}")
    plugin = summary_pb2.SummaryMetadata.PluginData(plugin_name="text")
    metadata = summary_pb2.SummaryMetadata(plugin_data=plugin)
    return tensor_summary(name, tensor, collections=collections, summary_metadata=metadata)


def tensor_summary(
    name: str,
    tensor: Any,
    summary_description: str | None = None,
    collections: Sequence[str] | None = None,
    summary_metadata: Any = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """A Summary with a tensor of any type and shape.

    summary_metadata: a SummaryMetadata that says which plugin shows it; summary_description and display_name
    go into it.
    """
    metadata = summary_pb2.SummaryMetadata()
    if summary_metadata is not None:
        metadata.CopyFrom(summary_metadata)
    if summary_description is not None:
        metadata.summary_description = summary_description
    if display_name is not None:
        metadata.display_name = display_name
    with _scope(name, family, tensor) as (tag, scope):
        node = emit("TensorSummaryV2", tag, tensor, metadata.SerializeToString(), name=scope)
        return _collect(node, collections)


def merge(inputs: Sequence[Any], collections: Sequence[str] | None = None, name: str | None = None) -> Tensor:
    """One Summary with all values of the inputs.

    When run: InvalidArgumentError where two values have one tag.
    """
    name = _clean(name)
    with name_scope(name, "Merge", inputs):
        return _collect(emit("MergeSummary", inputs, name=name), collections or ())


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """All summaries of a collection merged; None where there are none."""
    summaries = framework.get_collection(key, scope=scope)
    return merge(summaries, name=name) if summaries else None


def get_summary_description(node_def: Any) -> Any:
    """The SummaryDescription of a TensorSummary node. ValueError for other nodes."""
    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    description = summary_pb2.SummaryDescription()
    json_format.Parse(node_def.attr["description"].s.decode(), description)
    return description
