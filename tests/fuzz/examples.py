"""Examples and SequenceExamples: several of them behind one another, with their sizes.

The readers of batches and of single examples must agree.
"""

from __future__ import annotations

import random

import numpy as np
from tests.fuzz.driver import mutate_bytes

from thalweg.formats import examples, sequence_examples
from thalweg.formats.example_batches import scan_batch
from thalweg.formats.examples import BYTES, FLOAT, INT64, ExampleError
from thalweg.formats.protos import example_pb2 as pb

NAME = "examples"
ALLOWED = (ExampleError,)
_KINDS = {b"i": INT64, b"f": FLOAT, b"s": BYTES, b"a key of more than 16 bytes": INT64}


def _joined(parts: list[bytes]) -> bytes:
    return b"".join(len(p).to_bytes(2, "big") + p for p in parts)


def _cut(data: bytes) -> list[bytes]:
    parts = []
    while data:
        size = int.from_bytes(data[:2], "big")
        parts.append(data[2 : 2 + size])
        data = data[2 + size :]
    return parts


def seeds() -> list[bytes]:
    """Examples of different sizes, and sequences."""

    def feature(key: str, n: int) -> pb.Feature:
        if key == "f":
            return pb.Feature(float_list=pb.FloatList(value=[0.5] * n))
        if key == "s":
            return pb.Feature(bytes_list=pb.BytesList(value=[b"text" * 9] * n))
        return pb.Feature(int64_list=pb.Int64List(value=[(-1) ** k * 7**k for k in range(n)]))

    result = []
    for sizes in ((1, 1, 1), (0, 3, 12), (2, 2, 2, 2, 2)):
        made = []
        for n in sizes:
            features = {k: feature(k, n) for k in ("i", "f", "s", "a key of more than 16 bytes", "other")}
            made.append(pb.Example(features=pb.Features(feature=features)).SerializeToString())
        result.append(_joined(made))
    steps = pb.FeatureList(feature=[feature("f", k) for k in range(3)])
    lists = pb.FeatureLists(feature_list={"f": steps, "i": pb.FeatureList(feature=[feature("i", 2)])})
    context = pb.Features(feature={"i": feature("i", 1)})
    result.append(_joined([pb.SequenceExample(context=context, feature_lists=lists).SerializeToString()] * 2))
    return result


def mutate(rng: random.Random, data: bytes) -> bytes:
    """One of the messages changed; or all the bytes."""
    parts = _cut(data)
    if rng.random() < 0.1 or not parts:
        return mutate_bytes(rng, data)
    at = rng.randrange(len(parts))
    parts[at] = mutate_bytes(rng, parts[at])
    return _joined(parts)


def run(data: bytes) -> None:
    """Reads them in every way."""
    parts = _cut(data)
    errors = []
    found = scan_batch(parts, _KINDS) if parts else None
    try:
        exact = examples._exact(parts, _KINDS)
    except ExampleError as e:
        assert found is None, "only one of two readers found damage"
        errors.append(e)
    else:
        for key, column in exact.items():
            if found is not None:
                for mine, other in zip(found[key][:3], (column.values, column.counts, column.present), strict=True):
                    np.testing.assert_array_equal(mine, other)
    try:
        sequence_examples.sequence_columns(parts, {b"i": INT64, b"s": BYTES}, {b"f": FLOAT, b"i": INT64})
    except ExampleError as e:
        errors.append(e)
    if len(errors) == 2:
        raise errors[0]
