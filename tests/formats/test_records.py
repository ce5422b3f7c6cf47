"""TFRecord files: round trips, and everything that can be wrong with one."""

from __future__ import annotations

import gzip
import pathlib
import struct
import zlib

import pytest

from thalweg.base.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from thalweg.formats.crc32c import mask, masked_crc32c, unmask
from thalweg.formats.records import COMPRESSIONS, Deflate, RecordReader, RecordWriter, read_records

RECORDS = [b"", b"one", b"x" * 1000, bytes(range(256)) * 2000, b"last"]


def written(path: pathlib.Path, records: list[bytes] = RECORDS, compression: str = "") -> pathlib.Path:
    with RecordWriter(path, compression) as writer:
        for record in records:
            writer.write(record)
    return path


def framed(record: bytes) -> bytes:
    length = struct.pack("<Q", len(record))
    checks = [struct.pack("<I", masked_crc32c(part)) for part in (length, record)]
    return length + checks[0] + record + checks[1]


def test_checksums() -> None:
    assert masked_crc32c(b"123456789") == mask(0xE3069283)
    assert unmask(mask(0xE3069283)) == 0xE3069283


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_round_trip(tmp_path: pathlib.Path, compression: str) -> None:
    path = written(tmp_path / "r", RECORDS * 3, compression)
    assert list(read_records(path, compression)) == RECORDS * 3
    with RecordReader(path, compression) as reader:
        assert reader.read() == RECORDS[0] and reader.offset == 16
        assert reader.read_many(2) == RECORDS[1:3]
        rest = []
        while batch := reader.read_many(4):
            rest += batch
        assert rest == (RECORDS * 3)[3:]
        assert reader.read() is None
        assert reader.offset == sum(len(r) + 16 for r in RECORDS * 3)


def test_bytes_on_disk(tmp_path: pathlib.Path) -> None:
    path = written(tmp_path / "r", [b"one", b""])
    assert path.read_bytes() == framed(b"one") + framed(b"")
    assert zlib.decompress(written(path, [b"one"], "ZLIB").read_bytes()) == framed(b"one")
    assert gzip.decompress(written(path, [b"one"], "GZIP").read_bytes()) == framed(b"one")


def test_two_streams_in_one_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "r"
    path.write_bytes(gzip.compress(framed(b"one")) + gzip.compress(framed(b"two")))
    assert list(read_records(path, "GZIP")) == [b"one", b"two"]


def test_flushed_records_can_be_read(tmp_path: pathlib.Path) -> None:
    for compression in COMPRESSIONS:
        writer = RecordWriter(tmp_path / "r", compression)
        writer.write(b"one")
        writer.flush()
        with RecordReader(tmp_path / "r", compression) as reader:
            assert reader.read() == b"one"
        writer.close()
        writer.close()
        with pytest.raises(InvalidArgumentError, match="closed"):
            writer.write(b"two")


def test_empty_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "r").write_bytes(b"")
    assert [list(read_records(tmp_path / "r", c)) for c in COMPRESSIONS] == [[], [], []]


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 8, 15, 16, 17])
def test_truncated(tmp_path: pathlib.Path, cut: int) -> None:
    path = written(tmp_path / "r", [b"one", b"two"])
    path.write_bytes(path.read_bytes()[:-cut])
    got = []
    with pytest.raises(DataLossError, match=f"{path}: truncated record at 19"):
        for record in read_records(path):
            got.append(record)
    assert got == [b"one"]


def test_every_flipped_bit_is_found(tmp_path: pathlib.Path) -> None:
    path = written(tmp_path / "r", [b"one", b"two"])
    whole = path.read_bytes()
    for bit in range(len(whole) * 8):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with pytest.raises(DataLossError, match=r"(corrupted|truncated) record at (0|19)"):
            list(read_records(path))


def test_an_error_stays(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "r"
    path.write_bytes(framed(b"one") + b"no record")
    with RecordReader(path) as reader:
        assert reader.read() == b"one"
        for _ in range(3):
            with pytest.raises(DataLossError):
                reader.read()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_length_that_the_file_cannot_hold_is_refused(tmp_path: pathlib.Path, compression: str) -> None:
    length = struct.pack("<Q", 1 << 40)
    data = length + struct.pack("<I", masked_crc32c(length)) + b"rest"
    packed = {"": bytes, "ZLIB": zlib.compress, "GZIP": gzip.compress}[compression](data)
    (tmp_path / "r").write_bytes(packed)
    with pytest.raises(DataLossError, match="truncated record at 0: its length is 1099511627776"):
        list(read_records(tmp_path / "r", compression))


@pytest.mark.parametrize("compression", ["ZLIB", "GZIP"])
def test_damaged_compression(tmp_path: pathlib.Path, compression: str) -> None:
    path = written(tmp_path / "r", RECORDS, compression)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(DataLossError, match=str(path)):
        list(read_records(path, compression))
    path.write_bytes(whole[:40] + b"\0\0\0\0" + whole[44:])
    with pytest.raises(DataLossError, match=str(path)):
        list(read_records(path, compression))
    path.write_bytes(b"not compressed")
    with pytest.raises(DataLossError, match="damaged compressed data"):
        list(read_records(path, compression))


def test_missing_files_folders_and_options(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NotFoundError, match="none"):
        RecordReader(tmp_path / "none")
    with pytest.raises(FailedPreconditionError, match="directory"):
        RecordReader(tmp_path)
    with pytest.raises(NotFoundError):
        RecordWriter(tmp_path / "no" / "where")
    with pytest.raises(InvalidArgumentError, match="SNAPPY"):
        RecordReader(tmp_path / "r", "SNAPPY")
    with pytest.raises(InvalidArgumentError, match="zlib refuses"):
        RecordWriter(tmp_path / "r", "ZLIB", Deflate(level=20))
