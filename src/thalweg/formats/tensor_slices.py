"""Slices of tensors in checkpoints: as text ("10 20 0,5:0,20"), as keys of tables, and their overlaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from thalweg.base.errors import DataLossError, InvalidArgumentError

FULL = -1  # the length of an extent that is the whole axis


class Extent(NamedTuple):
    """Part of an axis: from start on; length FULL is all of it."""

    start: int
    length: int


Slice = tuple[Extent, ...]
Shape = tuple[int, ...]


def parse_slice_spec(text: str) -> tuple[Shape, Slice]:
    """The full shape and the slice of a spec like "10 20 0,5:-". InvalidArgumentError for a bad one."""
    *dims, extents = text.split(" ")
    try:
        shape = tuple(int(d) for d in dims)
        parts = tuple(Extent(0, FULL) if e == "-" else _extent(e) for e in extents.split(":"))
    except ValueError as e:
        raise InvalidArgumentError(
            None, None, f"'{text}' is no shape and slice like '10 20 0,5:-': {e}"
        ) from e
    if not shape or len(parts) != len(shape):
        raise InvalidArgumentError(
            None, None, f"'{text}' is no shape and slice: {len(shape)} axes and {len(parts)} extents"
        )
    slice_shape(shape, parts, f"'{text}'")
    return shape, parts


def _extent(text: str) -> Extent:
    start, length = (int(n) for n in text.split(","))
    if start < 0 or length <= 0:
        raise ValueError(f"expected a start and a positive length, got '{text}'")
    return Extent(start, length)


def slice_shape(full: Shape, extents: Slice, where: str) -> Shape:
    """The shape of a slice. InvalidArgumentError, with `where`, for one that isn't in the full shape."""
    if len(full) != len(extents) or any(
        not 0 <= e.start <= e.start + max(e.length, 0) <= d for d, e in zip(full, extents, strict=False)
    ):
        raise InvalidArgumentError(
            None, None, f"{where}: slice {format_slice(extents)} is not in shape {list(full)}"
        )
    return tuple(d if e.length == FULL else e.length for d, e in zip(full, extents, strict=True))


def format_slice(extents: Slice) -> str:
    """A slice as in specs: "0,5:-"."""
    return ":".join("-" if e.length == FULL else f"{e.start},{e.length}" for e in extents)


def slice_from_proto(proto: Any) -> Slice:
    """The slice of a TensorSliceProto."""
    return tuple(Extent(e.start, e.length) if e.HasField("length") else Extent(0, FULL) for e in proto.extent)


def slice_to_proto(extents: Slice, proto: Any) -> None:
    """Fills in a TensorSliceProto."""
    for extent in extents:
        message = proto.extent.add()
        if extent.length != FULL:
            message.start = extent.start
            message.length = extent.length


# ---- keys ------------------------------------------------------------------------------------------------


_ESCAPES = {0: b"\0\xff", 0xFF: b"\xff\0"}


def slice_key(name: bytes, extents: Slice) -> bytes:
    """The key of a slice's entry in a table: sorts as (name, number of axes, start and length of each)."""
    key = b"\0" + b"".join(_ESCAPES.get(c) or bytes((c,)) for c in name) + b"\0\1" + _unsigned(len(extents))
    for extent in extents:
        key += _signed(extent.start) + _signed(extent.length)
    return key


def _unsigned(value: int) -> bytes:
    """How many bytes, then the bytes, the highest first."""
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes((len(data),)) + data


def _signed(value: int) -> bytes:
    """As many leading bits as the number has bytes (ones; zeros for a negative one), then the number."""
    size = (value if value >= 0 else ~value).bit_length() // 7 + 1
    data = int.from_bytes(value.to_bytes(size, "big", signed=True), "big")
    if size <= 8:
        head = ((1 << size) - 1 << 8 - size) << 8 * (size - 1)
    else:
        head = ((1 << size) - 1 << 16 - size) << 8 * (size - 2)
    return (data ^ head).to_bytes(size, "big")


# ---- overlaps --------------------------------------------------------------------------------------------


def index_of(full: Shape, extents: Slice) -> tuple[slice, ...]:
    """The slice as a NumPy index."""
    return tuple(
        slice(0, d) if e.length == FULL else slice(e.start, e.start + e.length)
        for d, e in zip(full, extents, strict=True)
    )


def assemble(
    result: np.ndarray,
    wanted: Sequence[slice],
    stored: Iterable[tuple[Sequence[slice], Any]],
    where: str,
) -> None:
    """Fills `result`, the part `wanted` of a tensor, from stored parts: (index, function that reads it).

    Parts that don't overlap it are not read. DataLossError, with `where`, if the parts don't cover it.
    """
    covered = 0
    for index, read in stored:
        common = [(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(wanted, index, strict=True)]
        if any(low >= high for low, high in common):
            continue
        target = tuple(
            slice(low - w.start, high - w.start) for (low, high), w in zip(common, wanted, strict=True)
        )
        source = tuple(
            slice(low - s.start, high - s.start) for (low, high), s in zip(common, index, strict=True)
        )
        result[target] = read()[source]
        covered += result[target].size
    if covered != result.size:
        raise DataLossError(
            None, None, f"{where}: its slices give {covered} of {result.size} elements that are asked for"
        )
