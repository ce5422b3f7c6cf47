"""Values out of serialised tf.train.Example messages: one column per key, over a batch of examples.

Two ways give the same columns. `scan_batch` reads all examples of a batch in step with NumPy, where each is
laid out as serialisers lay it out. `_exact` reads any message, one at a time. Neither builds message objects.
Source: TensorFlow's example_proto_fast_parsing.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg.formats import wire
from thalweg.formats.example_batches import scan_batch
from thalweg.formats.wire import WireError

#: kinds of lists, by their field number in Feature
BYTES, FLOAT, INT64 = 1, 2, 3

KIND_NAMES = {BYTES: "string", FLOAT: "float", INT64: "int64"}
DTYPES = {BYTES: np.dtype(object), FLOAT: np.dtype(np.float32), INT64: np.dtype(np.int64)}


class ExampleError(ValueError):
    """An example of a batch is no message, or holds what wasn't asked for. `index`: which one."""

    def __init__(self, index: int, message: str, key: bytes | None = None) -> None:
        super().__init__(message)
        self.index = index
        self.key = key


class WrongKind(ExampleError):
    """A key has a list of another kind than was asked for."""

    def __init__(self, index: int, key: bytes, found: int, wanted: int) -> None:
        message = (
            f"Data types don't match. Data type: {KIND_NAMES[found]} but expected type: {KIND_NAMES[wanted]}"
        )
        super().__init__(index, message, key)


@dataclass
class Column:
    """The values of one key: those of all examples, one after the other, and how many are of each.

    present: which examples have the key at all (with a list, empty or not). each: how many values every
    example has, where that is known to be the same for all; else -1.
    """

    values: np.ndarray
    counts: np.ndarray
    present: np.ndarray
    each: int = -1


#: below so many features, reading them one by one is faster
_FEW = 64
#: examples larger than this on average have values that are too large to be read in step
_LARGE = 16_384


def columns(serialized: Sequence[bytes], kinds: Mapping[bytes, int]) -> dict[bytes, Column]:
    """The column of each key. ExampleError where an example is damaged, or a key has another kind of list."""
    n = len(serialized)
    if n * len(kinds) > _FEW and sum(map(len, serialized)) < n * _LARGE:
        found = scan_batch(serialized, kinds)
        if found is not None:
            return {key: Column(*parts) for key, parts in found.items()}
    return _exact(serialized, kinds)


def _exact(serialized: Sequence[bytes], kinds: Mapping[bytes, int]) -> dict[bytes, Column]:
    lists: dict[bytes, list[Any]] = {key: [] for key in kinds}
    for index, data in enumerate(serialized):
        try:
            found = example_features(data)
        except WireError:
            raise ExampleError(index, could_not_parse(data)) from None
        for key, kind in kinds.items():
            place = found.get(key)
            lists[key].append(None if place is None else feature_values(data, *place, kind, index, key))
    return {key: as_column(values, kinds[key]) for key, values in lists.items()}


def could_not_parse(data: bytes) -> str:
    """TensorFlow's words for bytes that are no example."""
    shown = "".join(chr(b) if 32 <= b < 127 else f"\\{b:03o}" for b in data[:200])
    return f"Could not parse example input, value: '{shown}'{'...' if len(data) > 200 else ''}"


def as_column(lists: Sequence[Any], kind: int) -> Column:
    """A column of one array of values per example; None: the key is missing."""
    n = len(lists)
    present = np.fromiter((v is not None for v in lists), np.bool_, n)
    counts = np.fromiter((0 if v is None else len(v) for v in lists), np.int64, n)
    parts = [v for v in lists if v is not None]
    if kind == BYTES:
        values = objects([item for part in parts for item in part])
    elif len(parts) == 1:
        values = parts[0]
    else:
        values = np.concatenate(parts) if parts else np.empty(0, DTYPES[kind])
    return Column(values, counts, present)


def objects(items: list[bytes]) -> np.ndarray:
    """Byte strings as a vector."""
    result = np.empty(len(items), object)
    result[:] = items
    return result


def example_features(data: bytes) -> dict[bytes, tuple[int, int]]:
    """Where the Feature of each key of an Example is; of a key that comes twice the last one."""
    found: dict[bytes, tuple[int, int]] = {}
    for number, kind, start, end in wire.fields(data, 0, len(data)):
        if number == 1:
            if kind != wire.BYTES:
                raise WireError("Example.features is no message")
            read_map(data, start, end, found)
    return found


def read_map(data: bytes, start: int, end: int, found: dict[bytes, tuple[int, int]]) -> None:
    """Adds the entries of a message that is nothing but a map from strings to messages (Features, say)."""
    for number, kind, at, stop in wire.fields(data, start, end):
        if number != 1 or kind != wire.BYTES:
            raise WireError(f"field {number} in a map")
        key, value = b"", (stop, stop)
        for number, kind, inner, inner_stop in wire.fields(data, at, stop):
            if kind != wire.BYTES or number > 2:
                raise WireError(f"field {number} in an entry of a map")
            if number == 1:
                key = data[inner:inner_stop]
            else:
                value = inner, inner_stop
        found[key] = value


def feature_values(data: bytes, start: int, end: int, kind: int, index: int, key: bytes) -> Any:
    """The values of a Feature that must be of a kind: an array, or a list of bytes; None where it has none.

    ExampleError with TensorFlow's text where it is of another kind, or damaged.
    """
    try:
        found = 0
        parts: list[tuple[int, int]] = []
        for number, wire_type, at, stop in wire.fields(data, start, end):
            if not BYTES <= number <= INT64 or wire_type != wire.BYTES:
                raise WireError("Unsupported datatype.")
            if number != found:  # a list in several parts is their sum; of lists of different kinds, the last
                found, parts = number, []
            parts.append((at, stop))
        if not found:
            return None
        if found != kind:
            raise WrongKind(index, key, found, kind)
        if len(parts) > 1:
            data = b"".join([data[at:stop] for at, stop in parts])
            return list_values(data, 0, len(data), kind)
        return list_values(data, *parts[0], kind)
    except WireError as e:
        raise ExampleError(index, f"Can't parse serialized Example: {e}", key) from None


def list_values(data: bytes, start: int, end: int, kind: int) -> Any:
    """The values of a BytesList, FloatList or Int64List: packed or not."""
    if kind == BYTES:
        return bytes_items(data, start, end)
    packed: list[tuple[int, int]] = []
    loose = False
    for number, wire_type, at, stop in wire.fields(data, start, end):
        if number != 1 or wire_type not in (wire.BYTES, wire.FIXED32 if kind == FLOAT else wire.VARINT):
            raise WireError(f"field {number} in a list")
        loose |= wire_type != wire.BYTES
        packed.append((at, stop))
    if len(packed) == 1:
        payload = data[packed[0][0] : packed[0][1]]
    else:
        payload = b"".join([data[at:stop] for at, stop in packed])
    if kind == INT64:
        if len(payload) <= 24:
            return _few_varints(payload)
        return wire.decode_varints(np.frombuffer(payload, np.uint8))[0]
    if len(payload) % 4:
        raise WireError("a list of floats that aren't of 4 bytes each")
    return np.frombuffer(payload, "<f4").astype(np.float32, copy=False)


def _few_varints(payload: bytes) -> np.ndarray:
    values = []
    at, end = 0, len(payload)
    while at < end:
        value, at = wire.varint(payload, at, end)
        values.append(value if value < 1 << 63 else value - (1 << 64))
    return np.array(values, np.int64)


def bytes_items(data: bytes, start: int, end: int) -> list[bytes]:
    """The items of a BytesList."""
    items = []
    for number, wire_type, at, stop in wire.fields(data, start, end):
        if number != 1 or wire_type != wire.BYTES:
            raise WireError(f"field {number} in a list of strings")
        items.append(data[at:stop])
    return items
