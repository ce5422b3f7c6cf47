"""Sorted-string tables: round trips round every block limit, look-ups, and what is refused."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.base.errors import DataLossError, InvalidArgumentError, UnimplementedError
from thalweg.formats.crc32c import crc32c, mask, masked_crc32c, unmask
from thalweg.formats.file_errors import RandomAccessFile
from thalweg.formats.sstable import FOOTER_SIZE, TableReader, TableWriter, separator, successor
from thalweg.formats.table_blocks import get_varint, put_varint


def _write(path: Path, entries: dict[bytes, bytes], block_size: int = 4096) -> Path:
    with path.open("wb") as file:
        writer = TableWriter(file, block_size)
        for key in sorted(entries):
            writer.add(key, entries[key])
        writer.finish()
    return path


def _open(path: Path) -> TableReader:
    return TableReader(RandomAccessFile(str(path)))


KEYS = st.binary(max_size=20) | st.sampled_from([b"", b"\0", b"\xff" * 5, b"a" * 30, b"a" * 29 + b"b"])


@settings(deadline=None)
@given(
    st.dictionaries(KEYS, st.binary(max_size=60), max_size=60),
    st.sampled_from([1, 20, 64, 4096]),
    st.lists(KEYS, max_size=10),
)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, entries: dict[bytes, bytes], size: int, other: list[bytes]) -> None:
    table = _open(_write(tmp_path_factory.mktemp("t") / "t", entries, size))
    assert list(table.items()) == sorted(entries.items())
    for key in [*entries, *other]:
        assert table.get(key) == entries.get(key)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 32, 33, 500])
def test_counts_round_the_restarts(tmp_path: Path, count: int) -> None:
    entries = {b"key%05d" % i: b"v" * (i % 7) for i in range(count)}
    table = _open(_write(tmp_path / "t", entries, 300))
    assert list(table.items()) == sorted(entries.items())
    assert table.get(b"key") is None and table.get(b"zzz") is None


@given(st.binary(max_size=8), st.binary(max_size=8))
def test_separators(a: bytes, b: bytes) -> None:
    low, high = sorted((a, b))
    if low != high:
        assert low <= separator(low, high) < high
    assert successor(a) >= a and len(successor(a)) <= len(a)


@given(st.integers(0, (1 << 64) - 1))
def test_varints(value: int) -> None:
    data = bytearray()
    put_varint(data, value)
    assert get_varint(bytes(data), 0, len(data)) == (value, len(data))
    with pytest.raises(ValueError):
        get_varint(bytes(data), 0, len(data) - 1)


@pytest.mark.parametrize("data", [b"\x80" * 12, b"\xff" * 9 + b"\x7f", b""])
def test_no_varints(data: bytes) -> None:
    with pytest.raises(ValueError):
        get_varint(data, 0, len(data))


def test_checksums() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value of the polynomial
    assert unmask(mask(0xE3069283)) == 0xE3069283


def test_keys_rise() -> None:
    writer = TableWriter(io.BytesIO())
    writer.add(b"b", b"")
    for key in (b"b", b"a"):
        with pytest.raises(InvalidArgumentError, match="comes after"):
            writer.add(key, b"")


@pytest.mark.parametrize("data", [b"", b"x" * 47, b"x" * 48, b"\0" * 1000])
def test_no_table(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "t").write_bytes(data)
    with pytest.raises(DataLossError, match="not a table file"):
        _open(tmp_path / "t")


def test_compressed_blocks_are_refused(tmp_path: Path) -> None:
    path = _write(tmp_path / "t", {b"k": b"v"})
    data = bytearray(path.read_bytes())
    size = 3 + 2 + 8  # the first block: one entry of 5 bytes, a restart, their number
    data[size] = 1
    data[size + 1 : size + 5] = masked_crc32c(bytes(data[: size + 1])).to_bytes(4, "little")
    path.write_bytes(data)
    table = _open(path)
    with pytest.raises(UnimplementedError, match=r"offset 0 is compressed \(snappy\)"):
        table.get(b"k")


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    entries = {b"key%d" % i: b"value" for i in range(40)}
    path = _write(tmp_path / "t", entries, 100)
    good = path.read_bytes()
    for at in range(len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        try:
            found = dict(_open(path).items())
        except DataLossError:
            continue
        assert len(good) - FOOTER_SIZE <= at < len(good) - 8  # the footer's padding
        assert found == entries


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    path = _write(tmp_path / "t", {b"key%d" % i: b"value" for i in range(40)}, 100)
    good = path.read_bytes()
    for size in range(len(good)):
        path.write_bytes(good[:size])
        with pytest.raises(DataLossError):
            _open(path)
