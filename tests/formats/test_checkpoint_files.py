"""Checkpoints that TensorFlow made (tests/golden/record_files_checkpoints.py) read equal; ours are the same bytes."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thalweg.base import dtypes, errors
from thalweg.formats.bundle_reader import BundleReader
from thalweg.formats.bundle_writer import BundleWriter
from thalweg.formats.checkpoint_reader import Wanted, check_fit, open_checkpoint
from thalweg.formats.checkpoint_v1 import CheckpointV1Reader
from thalweg.formats.checkpoint_v1_writer import SliceToSave, write_checkpoint_v1
from thalweg.formats.tensor_slices import FULL, Extent, parse_slice_spec

GOLDEN = Path(__file__).parent.parent / "golden"
FILES = GOLDEN / "data" / "files" / "checkpoints"
sys.path.insert(0, str(GOLDEN))

import checkpoint_values as cv  # noqa: E402


def _check(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    if expected.dtype == object:
        assert found.ravel().tolist() == expected.ravel().tolist()
    else:
        assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def test_version_2() -> None:
    with open_checkpoint(str(FILES / "v2")) as reader:
        assert isinstance(reader, BundleReader)
        values = cv.values()
        assert reader.names() == sorted([*values, "rows", "grid"], key=str.encode)
        for name, value in values.items():
            _check(reader.read(name), value)
            assert reader.shape(name) == value.shape
        for name in ("rows", "grid"):
            _check(reader.read(name), cv.partitioned())
            assert len(reader.slices(name)) == 4


def test_version_2_is_written_byte_by_byte_as_tensorflow_writes_it(tmp_path: Path) -> None:
    with BundleWriter(str(tmp_path / "v2")) as writer:
        for name, value in cv.values().items():
            writer.add(name, value)
        for name, specs in (("rows", cv.ROWS), ("grid", cv.GRID)):
            for spec in specs:
                writer.add_slice(name, *parse_slice_spec(spec), cv.cut(cv.partitioned(), spec))
    for end in (".index", ".data-00000-of-00001"):
        assert (tmp_path / f"v2{end}").read_bytes() == (FILES / f"v2{end}").read_bytes()


@pytest.mark.parametrize("spec", [*cv.ROWS, *cv.GRID, "10 6 2,5:1,4", "10 6 9,1:5,1", "10 6 -:-"])
@pytest.mark.parametrize(("file", "name"), [("v2", "rows"), ("v2", "grid"), ("v1", "rows"), ("v1-?????-of-00002", "rows"), ("sharded", "rows")])
def test_slices(file: str, name: str, spec: str) -> None:
    with open_checkpoint(str(FILES / file)) as reader:
        _check(reader.read(name, parse_slice_spec(spec)[1]), cv.cut(cv.partitioned(), spec))


def test_shards() -> None:
    with open_checkpoint(str(FILES / "sharded")) as reader:
        assert isinstance(reader, BundleReader) and reader.shards == 2
        _check(reader.read("rows"), cv.partitioned())
        _check(reader.read("bias"), cv.number("int64"))


@pytest.mark.parametrize("file", ["v1", "v1-?????-of-00002"])
def test_version_1(file: str) -> None:
    with open_checkpoint(str(FILES / file)) as reader:
        assert isinstance(reader, CheckpointV1Reader)
        values = {n: v for n, v in cv.values(cv.NUMBERS_V1).items() if n != "shapes/empty"}
        assert reader.names() == sorted([*values, "rows"])
        for name, value in values.items():
            found = reader.read(name)
            if name == "types/float16":  # TensorFlow stores a half NaN as it likes
                assert np.array_equal(found, value, equal_nan=True)
            else:
                _check(found, value)
            assert reader.slices(name) == []
        _check(reader.read("rows"), cv.partitioned())


def test_version_1_is_written_byte_by_byte_as_tensorflow_writes_it(tmp_path: Path) -> None:
    slices = [
        SliceToSave(name, value.shape, (Extent(0, FULL),) * value.ndim, lambda value=value: value)
        for name, value in cv.values(cv.NUMBERS_V1).items()
        if name != "shapes/empty"
    ]
    for spec in reversed(cv.ROWS):  # TensorFlow sorts by name, and turns round what has the same one
        slices.append(SliceToSave("rows", *parse_slice_spec(spec), lambda spec=spec: cv.cut(cv.partitioned(), spec)))
    write_checkpoint_v1(str(tmp_path / "v1"), slices)
    assert (tmp_path / "v1").read_bytes() == (FILES / "v1").read_bytes()


def test_version_1_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = [SliceToSave("x", (), (), lambda: np.array(1.0))]
    write_checkpoint_v1(str(tmp_path / "m"), one)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(errors.ResourceExhaustedError, match="No space left"):
                write_checkpoint_v1(str(tmp_path / "m"), [one[0]._replace(name="y")])
        assert os.listdir(tmp_path) == ["m"]
    with CheckpointV1Reader(str(tmp_path / "m")) as reader:
        assert reader.names() == ["x"]


def test_version_1_in_part() -> None:
    """One file of two: what is whole in it is read; a tensor that isn't says so."""
    with CheckpointV1Reader(str(FILES / "v1-00001-of-00002")) as reader:
        assert reader.names() == ["rows"]
        _check(reader.read("rows", parse_slice_spec(cv.ROWS[3])[1]), cv.cut(cv.partitioned(), cv.ROWS[3]))
        with pytest.raises(errors.DataLossError, match="slices give 24 of 60 elements"):
            reader.read("rows")


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="Failed to find any matching files for"):
        open_checkpoint(str(tmp_path / "nothing"))
    (tmp_path / "empty").touch()
    (tmp_path / "foreign").write_bytes(b"\x89PNG" * 100)
    for name in ("empty", "foreign"):
        with pytest.raises(errors.DataLossError, match="not a table file"):
            open_checkpoint(str(tmp_path / name))
    with pytest.raises(errors.FailedPreconditionError, match="directory"):
        open_checkpoint(str(tmp_path))
    for end in (".index", ".data-00000-of-00001"):
        with pytest.raises(errors.DataLossError, match=r"version 2 is its prefix, '.*/v2'"):
            open_checkpoint(str(FILES / f"v2{end}"))


def test_every_flipped_byte_of_version_1_is_noticed(tmp_path: Path) -> None:
    good = (FILES / "v1-00001-of-00002").read_bytes()
    spec = parse_slice_spec(cv.ROWS[3])[1]
    for at in range(len(good) - 8):
        (tmp_path / "v1").write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :])
        try:
            with CheckpointV1Reader(str(tmp_path / "v1")) as reader:
                found = reader.read("rows", spec)
        except errors.DataLossError:
            continue
        _check(found, cv.cut(cv.partitioned(), cv.ROWS[3]))
        assert at >= len(good) - 48


# ---- what doesn't fit ------------------------------------------------------------------------------------


def _fit(*wanted: Any) -> None:
    with open_checkpoint(str(FILES / "v2")) as reader:
        check_fit(reader, [Wanted(*w) for w in wanted])


def test_what_fits() -> None:
    _fit(
        ("types/float32", "", dtypes.float32),
        ("types/float32", "", dtypes.float32_ref, (3, 4)),
        ("types/float32", "", dtypes.float32, (None, 4)),
        ("types/float32", "", dtypes.float32, None, 12),
        ("rows", "10 6 2,5:-", dtypes.float32, (5, 6)),
    )


def test_everything_that_does_not_fit_is_named_at_once() -> None:
    with pytest.raises(errors.NotFoundError) as info:
        _fit(
            ("types/float31", "", dtypes.float32),
            ("quite_different", "", dtypes.float32),
            ("other/scalar", "", dtypes.float32),
            ("types/int32", "", dtypes.int64, (4,)),
            ("rows", "11 6 2,5:-", dtypes.float32),
            ("rows", "", dtypes.float32, None, 61),
            ("grid", "", dtypes.float32, (10, 6)),
        )
    assert info.value.message.splitlines()[0] == f"7 tensors don't fit checkpoint {FILES / 'v2'}; nothing is restored:"
    assert [line.strip() for line in info.value.message.splitlines()[1:]] == [
        "Key types/float31 not found in checkpoint; there are types/float32, types/float16, types/bfloat16",
        "Key quite_different not found in checkpoint",
        "Key other/scalar not found in checkpoint; there are shapes/scalar",
        "tensor_name = types/int32; expected dtype int64 does not equal original dtype int32",
        "tensor_name = types/int32; shape [4] in the graph does not match shape [1,4] in the checkpoint",
        "tensor_name = rows; shape in shape_and_slice spec [11,6] does not match the shape stored in checkpoint: [10,6]",
        "tensor_name = rows; shape [10,6] in the checkpoint can't be reshaped to 61 elements",
    ]


def test_a_single_misfit_is_one_line() -> None:
    with pytest.raises(errors.InvalidArgumentError) as info:
        _fit(("types/int32", "", dtypes.int64))
    assert "\n" not in info.value.message and "expected dtype int64" in info.value.message
