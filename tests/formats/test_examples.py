"""Examples: the reader of batches gives what the exact one gives, and that is what protobuf reads."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from thalweg.formats import examples
from thalweg.formats.example_batches import scan_batch
from thalweg.formats.examples import BYTES, FLOAT, INT64, Column, ExampleError
from thalweg.formats.protos import example_pb2 as pb

KEYS = ("a", "b", "word", "a longer key, of more than 16 bytes", "a longer key; of more than 16 bytes", "x" * 100, "")
KINDS = {key.encode(): (INT64, FLOAT, BYTES)[i % 3] for i, key in enumerate(KEYS)}


def random_feature(rng: random.Random, kind: int) -> pb.Feature:
    n = rng.choice((0, 1, 1, 1, 2, 5, 40))
    if kind == INT64:
        values = [rng.choice((rng.randrange(100), rng.randrange(-(1 << 63), 1 << 63))) for _ in range(n)]
        return pb.Feature(int64_list=pb.Int64List(value=values))
    if kind == FLOAT:
        return pb.Feature(float_list=pb.FloatList(value=[rng.random() for _ in range(n)]))
    return pb.Feature(bytes_list=pb.BytesList(value=[rng.randbytes(rng.choice((0, 3, 200))) for _ in range(n)]))


def random_example(rng: random.Random, missing: float) -> bytes:
    keys = [k for k in (*KEYS, "nobody asks") if rng.random() >= missing]
    rng.shuffle(keys)
    features = {k: random_feature(rng, KINDS.get(k.encode(), rng.choice((BYTES, FLOAT, INT64)))) for k in keys}
    if rng.random() < 0.5:
        return pb.Example(features=pb.Features(feature=features)).SerializeToString()
    # every feature as a message of its own, in the order drawn
    parts = [pb.Features(feature={k: f}).SerializeToString() for k, f in features.items()]
    inside = b"".join(parts)
    return b"\x0a" + length(len(inside)) + inside


def length(n: int) -> bytes:
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def assert_same(got: Column, want: Column) -> None:
    assert got.values.dtype == want.values.dtype
    np.testing.assert_array_equal(got.values, want.values)
    np.testing.assert_array_equal(got.counts, want.counts)
    np.testing.assert_array_equal(got.present, want.present)


def by_protobuf(serialized: list[bytes]) -> dict[bytes, list[Any]]:
    result: dict[bytes, list[Any]] = {key: [] for key in KINDS}
    for data in serialized:
        found = pb.Example.FromString(data).features.feature
        for key, kind in KINDS.items():
            feature = found.get(key.decode())
            name = {BYTES: "bytes_list", FLOAT: "float_list", INT64: "int64_list"}[kind]
            present = feature is not None and feature.WhichOneof("kind") is not None
            result[key].append(list(getattr(feature, name).value) if present else None)
    return result


@pytest.mark.parametrize("seed", range(40))
def test_batches(seed: int) -> None:
    rng = random.Random(seed)
    missing = rng.choice((0.0, 0.0, 0.3))
    serialized = [random_example(rng, missing) for _ in range(rng.choice((1, 2, 30)))]
    exact = examples._exact(serialized, KINDS)
    want = by_protobuf(serialized)
    for key, lists in want.items():
        column = exact[key]
        assert column.present.tolist() == [v is not None for v in lists]
        assert column.counts.tolist() == [len(v or ()) for v in lists]
        flat = [item for v in lists if v is not None for item in v]
        assert column.values.tolist() == flat
    fast = scan_batch(serialized, KINDS)
    if fast is not None:
        for key in KINDS:
            assert_same(Column(*fast[key]), exact[key])


def test_plain_batches_are_read_in_step() -> None:
    rng = random.Random(1)
    for missing in (0.0, 0.3):
        serialized = [random_example(rng, missing) for _ in range(30)]
        assert scan_batch(serialized, KINDS) is not None


def test_large_values_take_the_exact_way() -> None:
    big = pb.Feature(bytes_list=pb.BytesList(value=[b"x" * 100_000]))
    data = pb.Example(features=pb.Features(feature={"word": big})).SerializeToString()
    assert scan_batch([data] * 3, KINDS) is None
    assert examples.columns([data] * 30, KINDS)[b"word"].values[29] == b"x" * 100_000


def test_damage_is_an_error_or_the_same_in_both(seed: int = 5) -> None:
    rng = random.Random(seed)
    good = [random_example(rng, 0.0) for _ in range(4)]
    for _ in range(3000):
        batch = list(good)
        data = bytearray(batch[1])
        for _ in range(rng.randrange(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        batch[1] = bytes(data)
        fast = scan_batch(batch, KINDS)
        try:
            exact = examples._exact(batch, KINDS)
        except ExampleError as e:
            assert e.index == 1
            assert fast is None
            continue
        if fast is not None:
            for key in KINDS:
                assert_same(Column(*fast[key]), exact[key])


def test_many_features_in_one_example() -> None:
    data = b"\x0a" + length(2 * 20_000) + b"\x0a\x00" * 20_000
    assert scan_batch([data, data], KINDS) is None
    assert not examples.columns([data] * 10, KINDS)[b"a"].present.any()


def test_no_examples() -> None:
    for column in examples.columns([], KINDS).values():
        assert len(column.values) == len(column.counts) == 0
