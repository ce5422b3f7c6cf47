"""Values out of serialised SequenceExample messages. Source: TensorFlow's example_proto_fast_parsing.cc."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg.formats import wire
from thalweg.formats.examples import (
    DTYPES,
    Column,
    ExampleError,
    as_column,
    could_not_parse,
    feature_values,
    objects,
    read_map,
)
from thalweg.formats.wire import WireError


@dataclass
class Lists:
    """The feature lists of one key: all values, how many of each step, how many steps of each example.

    present: which examples have the key at all.
    """

    values: np.ndarray
    counts: np.ndarray
    steps: np.ndarray
    present: np.ndarray


def sequence_columns(
    serialized: Sequence[bytes], context: Mapping[bytes, int], lists: Mapping[bytes, int]
) -> tuple[dict[bytes, Column], dict[bytes, Lists]]:
    """The columns of context keys and of feature lists. ExampleError where an example isn't as asked for."""
    contexts: dict[bytes, list[Any]] = {key: [] for key in context}
    sequences: dict[bytes, list[Any]] = {key: [] for key in lists}
    for index, data in enumerate(serialized):
        try:
            features, feature_lists = _maps(data)
            steps = {key: _steps(data, *feature_lists[key]) for key in lists if key in feature_lists}
        except WireError:
            raise ExampleError(index, could_not_parse(data)) from None
        for key, kind in context.items():
            place = features.get(key)
            contexts[key].append(None if place is None else feature_values(data, *place, kind, index, key))
        for key, kind in lists.items():
            found = steps.get(key)
            sequences[key].append(
                None if found is None else [feature_values(data, *place, kind, index, key) for place in found]
            )
    return (
        {key: as_column(values, context[key]) for key, values in contexts.items()},
        {key: _as_lists(values, lists[key]) for key, values in sequences.items()},
    )


def _maps(data: bytes) -> tuple[dict[bytes, tuple[int, int]], dict[bytes, tuple[int, int]]]:
    """Where the Feature of each context key, and the FeatureList of each key is."""
    context: dict[bytes, tuple[int, int]] = {}
    lists: dict[bytes, tuple[int, int]] = {}
    for number, kind, start, end in wire.fields(data, 0, len(data)):
        if number in (1, 2):
            if kind != wire.BYTES:
                raise WireError("SequenceExample holds no messages")
            read_map(data, start, end, context if number == 1 else lists)
    return context, lists


def _steps(data: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """Where the Features of a FeatureList are."""
    result = []
    for number, kind, at, stop in wire.fields(data, start, end):
        if number != 1 or kind != wire.BYTES:
            raise WireError(f"field {number} in a list of features")
        result.append((at, stop))
    return result


def _as_lists(examples: list[list[Any] | None], kind: int) -> Lists:
    present = np.fromiter((e is not None for e in examples), np.bool_, len(examples))
    steps = np.fromiter((0 if e is None else len(e) for e in examples), np.int64, len(examples))
    parts = [step for e in examples if e is not None for step in e]
    counts = np.fromiter((0 if p is None else len(p) for p in parts), np.int64, len(parts))
    if DTYPES[kind].kind == "O":
        values = objects([item for part in parts if part is not None for item in part])
    else:
        values = np.concatenate([np.empty(0, DTYPES[kind]), *(p for p in parts if p is not None)])
    return Lists(values, counts, steps, present)
