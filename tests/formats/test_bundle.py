"""Tensor bundles: round trips, slices, shards, replacing, and what is refused."""

from __future__ import annotations

import errno
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from thalweg.base import dtypes, errors
from thalweg.formats import bundle_writer
from thalweg.formats.bundle_reader import BundleReader, data_path, index_path
from thalweg.formats.bundle_writer import BundleWriter, merge_bundles
from thalweg.formats.sstable import TableWriter
from thalweg.formats.tensor_slices import Extent, parse_slice_spec, slice_key


def _save(prefix: Path | str, values: dict[str, Any]) -> None:
    with BundleWriter(str(prefix)) as writer:
        for name, value in values.items():
            writer.add(name, np.asarray(value))


def _load(prefix: Path | str) -> dict[str, np.ndarray]:
    with BundleReader(str(prefix)) as reader:
        return {name: reader.read(name) for name in reader.names()}


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype == object:
        return a.shape == b.shape and a.ravel().tolist() == b.ravel().tolist()
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# ---- round trips -----------------------------------------------------------------------------------------

NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8).filter(lambda n: n[0] != "\0")
NUMBERS = [np.dtype(n) for n in "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 c8 c16 ?".split()]
ARRAYS = st.sampled_from(NUMBERS).flatmap(
    lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)


def _strings(parts: list[bytes]) -> np.ndarray:
    result = np.empty(len(parts), object)
    result[:] = parts
    return result


STRINGS = st.lists(st.binary(max_size=5) | st.just(b"x" * 200), max_size=5).map(_strings)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(NAMES, ARRAYS | STRINGS, max_size=8))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, values: dict[str, np.ndarray]) -> None:
    prefix = tmp_path_factory.mktemp("b") / "b"
    _save(prefix, values)
    found = _load(prefix)
    assert found.keys() == values.keys()
    assert all(_same(found[n], values[n]) for n in values)
    assert sorted(os.listdir(prefix.parent)) == ["b.data-00000-of-00001", "b.index"]


def test_types_without_a_numpy_name(tmp_path: Path) -> None:
    values = {
        "bfloat16": np.array([1.5, -2.0], ml_dtypes.bfloat16),
        "qint8": np.array([(1,), (-1,)], dtypes.qint8.as_numpy_dtype),
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "every_other": np.arange(10)[::2],
    }
    _save(tmp_path / "b", values)
    found = _load(tmp_path / "b")
    assert all((found[n] == values[n]).all() and found[n].dtype == values[n].dtype for n in values)


def test_many_tensors_over_several_blocks(tmp_path: Path) -> None:
    values = {f"layer_{i:05d}/kernel": np.full(i % 5, i) for i in range(10000)}
    _save(tmp_path / "b", values)
    assert os.path.getsize(index_path(str(tmp_path / "b"))) > 262144  # more than a block
    with BundleReader(str(tmp_path / "b")) as reader:
        assert reader.names() == sorted(values)
        for i in (0, 1, 8191, 9999):
            assert (reader.read(f"layer_{i:05d}/kernel") == np.full(i % 5, i)).all()


# ---- slices ----------------------------------------------------------------------------------------------


@st.composite
def _partitions(draw: Any) -> tuple[np.ndarray, list[tuple[Extent, ...]], tuple[Extent, ...]]:
    """An array, a grid of slices of it, and a slice to read."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=6))
    whole = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    grid: list[tuple[Extent, ...]] = [()]
    for d in shape:
        cuts = sorted({0, d, *draw(st.lists(st.integers(0, d), max_size=2))})
        grid = [(*g, Extent(a, b - a)) for g in grid for a, b in pairwise(cuts)]
    wanted = []
    for d in shape:
        start = draw(st.integers(0, d - 1))
        wanted.append(Extent(start, draw(st.integers(1, d - start))))
    return whole, draw(st.permutations(grid)), tuple(wanted)


def _part(whole: np.ndarray, extents: tuple[Extent, ...]) -> np.ndarray:
    return whole[tuple(slice(e.start, e.start + e.length) for e in extents)]


@settings(deadline=None)
@given(_partitions())
def test_slices(tmp_path_factory: pytest.TempPathFactory, case: Any) -> None:
    whole, grid, wanted = case
    prefix = str(tmp_path_factory.mktemp("b") / "b")
    with BundleWriter(prefix) as writer:
        for extents in grid:
            writer.add_slice("t", whole.shape, extents, _part(whole, extents))
    with BundleReader(prefix) as reader:
        assert (reader.read("t") == whole).all()
        assert (reader.read("t", wanted) == _part(whole, wanted)).all()
        assert reader.names() == ["t"] and reader.shape("t") == whole.shape


def test_slices_that_leave_a_hole(tmp_path: Path) -> None:
    with BundleWriter(str(tmp_path / "b")) as writer:
        writer.add_slice("t", (4, 2), (Extent(0, 2), Extent(0, 2)), np.ones((2, 2)))
        writer.add_slice("t", (4, 2), (Extent(3, 1), Extent(0, 2)), np.ones((1, 2)))
    with BundleReader(str(tmp_path / "b")) as reader:
        assert reader.read("t", (Extent(0, 2), Extent(1, 1))).tolist() == [[1], [1]]
        with pytest.raises(errors.DataLossError, match="slices"):
            reader.read("t")


def test_slices_of_a_whole_tensor_are_cut_from_one_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.arange(12).reshape(4, 3)
    _save(tmp_path / "b", {"t": whole, "u": whole + 1})
    reads = []
    original = BundleReader._read_entry
    monkeypatch.setattr(BundleReader, "_read_entry", lambda self, *a: reads.append(a[1]) or original(self, *a))
    with BundleReader(str(tmp_path / "b")) as reader:
        parts = [reader.read("t", (Extent(i, 1), Extent(0, 3))) for i in range(4)]
        assert len(reads) == 1 and (np.concatenate(parts) == whole).all()
        parts[0][:] = 7  # its own
        assert (reader.read("t") == whole).all() and (reader.read("t", (Extent(0, 1), Extent(0, 3))) == whole[:1]).all()
        assert (reader.read("u", (Extent(0, 2), Extent(0, -1))) == whole[:2] + 1).all()


def test_slices_must_agree(tmp_path: Path) -> None:
    writer = BundleWriter(str(tmp_path / "b"))
    writer.add_slice("t", (4,), (Extent(0, 2),), np.ones(2))
    with pytest.raises(errors.InvalidArgumentError, match="don't agree"):
        writer.add_slice("t", (5,), (Extent(2, 2),), np.ones(2))
    with pytest.raises(errors.InvalidArgumentError, match="another shape than the value"):
        writer.add_slice("t", (4,), (Extent(2, 2),), np.ones(1))
    with pytest.raises(errors.InvalidArgumentError, match="is not in shape"):
        writer.add_slice("t", (4,), (Extent(3, 2),), np.ones(2))
    with pytest.raises(errors.InvalidArgumentError, match="duplicate"):
        writer.add_slice("t", (4,), (Extent(0, 2),), np.ones(2))
    writer.abort()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("spec", ["", "10", "10 0,5:0,1", "a 0,5", "10 -1,5", "10 5,0", "10 8,3", "10 0", "10  0,1", "-"])
def test_bad_slice_specs(spec: str) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        parse_slice_spec(spec)


EXTENTS = st.tuples(st.integers(0, 1 << 62), st.just(-1) | st.integers(1, 1 << 62)).map(lambda e: Extent(*e))


@settings(deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=4), st.lists(EXTENTS, max_size=2)), min_size=2, max_size=2))
def test_keys_of_slices_sort_as_what_they_stand_for(pair: Any) -> None:
    (a, x), (b, y) = pair
    order = (a, len(x), x) < (b, len(y), y)
    same = (a, x) == (b, y)
    keys = slice_key(a, tuple(x)), slice_key(b, tuple(y))
    assert (keys[0] == keys[1]) == same
    assert same or (keys[0] < keys[1]) == order


# ---- replacing -------------------------------------------------------------------------------------------


def test_replacing_is_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after every single change of the folder, the checkpoint is whole: the old or the new one."""
    prefix = tmp_path / "model"
    _save(prefix, {"x": np.zeros(3), "old": np.zeros(1)})
    states = []

    def look() -> None:
        states.append(float(_load(prefix)["x"][0]))

    for module, names in ((os, ("replace", "link", "remove")),):
        for name in names:
            original = getattr(module, name)

            def watched(*args: Any, original: Any = original, **kwargs: Any) -> Any:
                look()
                result = original(*args, **kwargs)
                look()
                return result

            monkeypatch.setattr(module, name, watched)
    _save(prefix, {"x": np.ones(3)})
    assert len(states) > 8 and states == sorted(states) and {*states} == {0.0, 1.0}
    assert sorted(os.listdir(tmp_path)) == ["model.data-00000-of-00001", "model.index"]


@pytest.mark.parametrize("dies_at", range(12))
def test_a_cut_off_save_leaves_a_whole_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_at: int) -> None:
    prefix = tmp_path / "model"
    _save(prefix, {"x": np.zeros(3)})
    count = 0

    class Died(BaseException):
        pass

    with monkeypatch.context() as patch:
        for name in ("replace", "link", "remove", "fsync"):
            original = getattr(os, name)

            def maybe(*args: Any, original: Any = original, **kwargs: Any) -> Any:
                nonlocal count
                count += 1
                if count > dies_at:
                    raise Died
                return original(*args, **kwargs)

            patch.setattr(os, name, maybe)
        try:
            _save(prefix, {"x": np.ones(3)})
        except Died:
            pass
    assert float(_load(prefix)["x"][0]) in (0.0, 1.0)
    _save(prefix, {"x": np.full(3, 2.0)})  # and the next one is as ever
    assert float(_load(prefix)["x"][0]) == 2.0
    left = [n for n in os.listdir(tmp_path) if ".tempstate" not in n]
    assert sorted(left) == ["model.data-00000-of-00001", "model.index"]


def test_without_links_the_new_numbers_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _save(tmp_path / "m", {"x": 1})

    def no_link(*_: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_link)
    _save(tmp_path / "m", {"x": 2})
    assert _load(tmp_path / "m")["x"] == 2
    assert sorted(os.listdir(tmp_path)) == ["m.data-00001-of-00002", "m.index"]
    _save(tmp_path / "m", {"x": 3})
    assert _load(tmp_path / "m")["x"] == 3
    assert sorted(os.listdir(tmp_path)) == ["m.data-00000-of-00001", "m.index"]


def test_abandoned_files_are_removed(tmp_path: Path) -> None:
    old, young, other = (tmp_path / n for n in (f"a.index.tempstate{'0' * 16}", f"b.index.tempstate{'1' * 16}", "x.tempstate"))
    for path in (old, young, other):
        path.touch()
    os.utime(old, (1, 1))
    os.utime(other, (1, 1))
    _save(tmp_path / "m", {"x": 1})
    assert not old.exists() and young.exists() and other.exists()


def test_abandoned_shards_are_removed(tmp_path: Path) -> None:
    kinds = ("old", "young", "mixed", "foreign")
    folders = {kind: tmp_path / f"m_temp_{i:032x}" for i, kind in enumerate(kinds)}
    for kind, folder in folders.items():
        folder.mkdir()
        (folder / ("other" if kind == "foreign" else "part-00000-of-00002.index")).touch()
        if kind != "young":
            for path in (*folder.iterdir(), folder):
                os.utime(path, (1, 1))
    (folders["mixed"] / "part-00001-of-00002.index").touch()
    os.utime(folders["mixed"], (1, 1))
    _save(tmp_path / "part", {"x": 1})
    merge_bundles([str(tmp_path / "part")], str(tmp_path / "m"))
    assert [kind for kind in kinds if folders[kind].exists()] == ["young", "mixed", "foreign"]


# ---- merging ---------------------------------------------------------------------------------------------


def test_merge(tmp_path: Path) -> None:
    whole = np.arange(8.0).reshape(4, 2)
    for i in range(2):
        with BundleWriter(str(tmp_path / "temp" / f"part-{i}")) as writer:
            writer.add(f"only_{i}", np.array([i]))
            extents = (Extent(2 * i, 2), Extent(0, 2))
            writer.add_slice("t", (4, 2), extents, _part(whole, extents))
    merge_bundles([str(tmp_path / "temp" / f"part-{i}") for i in (0, 1)], str(tmp_path / "m"))
    found = _load(tmp_path / "m")
    assert (found["t"] == whole).all() and found["only_0"] == [0] and found["only_1"] == [1]
    assert sorted(os.listdir(tmp_path)) == ["m.data-00000-of-00002", "m.data-00001-of-00002", "m.index", "temp"]
    assert os.listdir(tmp_path / "temp") == []


def test_merge_refuses_what_is_there_twice(tmp_path: Path) -> None:
    for i in range(2):
        _save(tmp_path / f"part-{i}", {"x": i})
    with pytest.raises(errors.InvalidArgumentError, match="Duplicate"):
        merge_bundles([str(tmp_path / f"part-{i}") for i in (0, 1)], str(tmp_path / "m"))
    with pytest.raises(errors.NotFoundError):
        merge_bundles([str(tmp_path / "part-0"), str(tmp_path / "none")], str(tmp_path / "m"))
    merge_bundles([str(tmp_path / "part-0"), str(tmp_path / "none")], str(tmp_path / "m"), allow_missing=True)
    assert _load(tmp_path / "m") == {"x": 0}


def test_replacing_by_another_number_of_shards(tmp_path: Path) -> None:
    _save(tmp_path / "m", {"x": 1})
    for _ in range(2):
        for i in range(2):
            _save(tmp_path / f"part-{i}", {f"x{i}": i})
        merge_bundles([str(tmp_path / f"part-{i}") for i in (0, 1)], str(tmp_path / "m"))
        assert sorted(_load(tmp_path / "m")) == ["x0", "x1"]
        assert sorted(os.listdir(tmp_path)) == ["m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"]
    _save(tmp_path / "m", {"x": 1})
    assert sorted(os.listdir(tmp_path)) == ["m.data-00000-of-00001", "m.index"]


# ---- damage ----------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    _save(tmp_path / "b", {"x": np.arange(10.0), "s": _strings([b"one", b"two"])})
    return tmp_path / "b"


def test_every_flipped_byte_of_data_is_noticed(saved: Path) -> None:
    path = Path(data_path(str(saved), 0, 1))
    good = path.read_bytes()
    for at in range(len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(errors.DataLossError, match=r"b\.data-00000-of-00001"):
            _load(saved)


def test_truncated_data(saved: Path) -> None:
    path = Path(data_path(str(saved), 0, 1))
    good = path.read_bytes()
    path.write_bytes(good[:50])
    with pytest.raises(errors.DataLossError, match=r"offset 80 with 12 bytes is outside of the file, which has 50"):
        _load(saved)


def test_missing_and_unreadable_files(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match=r"nothing\.index"):
        BundleReader(str(tmp_path / "nothing"))
    os.remove(data_path(str(saved), 0, 1))
    with pytest.raises(errors.NotFoundError, match=r"b\.data-00000-of-00001"):
        _load(saved)
    os.mkdir(data_path(str(saved), 0, 1))
    with pytest.raises(errors.FailedPreconditionError, match="directory"):
        _load(saved)
    os.mkdir(tmp_path / "folder.index")
    with pytest.raises(errors.FailedPreconditionError, match="directory"):
        BundleReader(str(tmp_path / "folder"))


def test_no_permission(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # root may read everything
    with pytest.raises(errors.PermissionDeniedError, match=r"b\.index; Permission denied"):
        BundleReader(str(saved))


def test_names(saved: Path) -> None:
    with BundleReader(str(saved)) as reader, pytest.raises(errors.NotFoundError, match="Key y not found in checkpoint"):
        reader.read("y")
    for name in ("", "\0x"):
        with pytest.raises(errors.InvalidArgumentError, match="name of a tensor"), BundleWriter(str(saved)) as writer:
            writer.add(name, np.zeros(1))
    with pytest.raises(errors.InvalidArgumentError, match="duplicate key: x"), BundleWriter(str(saved)) as writer:
        writer.add("x", np.zeros(1))
        writer.add("x", np.zeros(1))
    assert (_load(saved)["x"] == np.arange(10.0)).all()


def _index(path: Path, header: bytes | None, entries: dict[bytes, bytes]) -> str:
    with open(f"{path}.index", "wb") as file:
        writer = TableWriter(file)
        if header is not None:
            writer.add(b"", header)
        for key in sorted(entries):
            writer.add(key, entries[key])
        writer.finish()
    return str(path)


def _header(**fields: Any) -> bytes:
    message = bundle_writer.BundleHeaderProto(num_shards=fields.pop("num_shards", 1))
    for name, value in fields.items():
        setattr(message.version, name, value)
    return message.SerializeToString()


def _entry(**fields: Any) -> bytes:
    shape = fields.pop("shape", [])
    message = bundle_writer.BundleEntryProto(**fields)
    for d in shape:
        message.shape.dim.add(size=d)
    return message.SerializeToString()


def test_headers(tmp_path: Path) -> None:
    cases: list[tuple[Any, Any, str]] = [
        (None, errors.DataLossError, "no header"),
        (b"\xff\xff", errors.DataLossError, "header is damaged"),
        (_header(num_shards=0), errors.DataLossError, "0 shards"),
        (_header(min_consumer=2), errors.InvalidArgumentError, "for readers of version 2 on"),
    ]
    for header, kind, text in cases:
        with pytest.raises(kind, match=text):
            BundleReader(_index(tmp_path / "h", header, {}))


@pytest.mark.parametrize(
    ("entry", "kind", "text"),
    [
        ({"dtype": 1, "shape": [1 << 40], "size": 1 << 42}, errors.DataLossError, "outside of the file"),
        ({"dtype": 1, "shape": [1 << 62, 1 << 62], "size": 8}, errors.DataLossError, "needs"),
        ({"dtype": 1, "shape": [-1], "size": 4}, errors.DataLossError, "no shape"),
        ({"dtype": 1, "shape": [0, 1 << 62], "size": 0}, errors.DataLossError, "no array of shape"),
        ({"dtype": 1, "shape": [1] * 70, "size": 4}, errors.DataLossError, "no shape"),
        ({"dtype": 1, "shape": [1], "size": 4, "shard_id": 3}, errors.DataLossError, "shard 3 of 1"),
        ({"dtype": 1, "shape": [1], "size": 4, "offset": -4}, errors.DataLossError, "offset -4"),
        ({"dtype": 1, "shape": [1], "size": 4}, errors.DataLossError, "wrong checksum of tensor 't' at offset 0"),
        ({"dtype": 7, "shape": [1 << 40], "size": 8}, errors.DataLossError, "strings in 8 bytes"),
        ({"dtype": 7, "shape": [1], "size": 8}, errors.DataLossError, "checksum of the lengths"),
        ({"dtype": 21, "shape": [1], "size": 8}, errors.UnimplementedError, "data type 21"),
        ({"dtype": 20, "shape": [1], "size": 8}, errors.UnimplementedError, "data type 20"),
        ({"dtype": 101, "shape": [1], "size": 4}, errors.UnimplementedError, "data type 101"),
        ({"dtype": 999, "shape": [1], "size": 4}, errors.UnimplementedError, "data type 999"),
    ],
)
def test_hostile_entries(tmp_path: Path, entry: dict[str, Any], kind: Any, text: str) -> None:
    prefix = _index(tmp_path / "e", _header(), {b"t": _entry(**entry)})
    Path(data_path(prefix, 0, 1)).write_bytes(b"\0" * 16)
    with BundleReader(prefix) as reader, pytest.raises(kind, match=text):
        reader.read("t")


def test_hostile_slices(tmp_path: Path) -> None:
    message = bundle_writer.BundleEntryProto(dtype=1)
    message.shape.dim.add(size=1 << 50)
    message.slices.add().extent.add(start=0, length=1 << 49)
    prefix = _index(tmp_path / "e", _header(), {b"t": message.SerializeToString(), b"\0x": _entry(dtype=1)})
    with BundleReader(prefix) as reader, pytest.raises(errors.DataLossError, match="slices don't hold shape"):
        reader.read("t")


def test_big_endian(tmp_path: Path) -> None:
    """Another machine's byte order is turned round, complex numbers part by part."""
    header = bundle_writer.BundleHeaderProto(num_shards=1, endianness=bundle_writer.BundleHeaderProto.BIG)
    values = {"f": np.array([1.5, -2.0], np.float32), "c": np.array([1 + 2j]), "b": np.array([True])}
    swapped = {"f": values["f"].byteswap(), "c": values["c"].byteswap(), "b": values["b"]}
    _save(tmp_path / "e", swapped)
    with BundleReader(str(tmp_path / "e")) as reader:
        entries = {n.encode(): e.SerializeToString() for n, e in reader.entries.items()}
    _index(tmp_path / "e", header.SerializeToString(), entries)
    found = _load(tmp_path / "e")
    assert all(_same(found[n], values[n]) for n in values)


# ---- a disk that fails -----------------------------------------------------------------------------------


def test_full_disk(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_writer, "temporary_name", lambda path: "/dev/full" if ".data" in path else path)
    real_open = open
    monkeypatch.setattr("builtins.open", lambda path, mode="r", **kw: real_open(path, mode.replace("x", "w"), **kw))
    monkeypatch.setattr(bundle_writer, "remove_quietly", lambda path: None)
    with pytest.raises(errors.ResourceExhaustedError, match="No space left"):
        _save(saved, {"x": np.zeros(1 << 20)})
    monkeypatch.undo()
    assert (_load(saved)["x"] == np.arange(10.0)).all()


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("failing", range(8))
def test_disk_gets_full_at_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int, before: bool
) -> None:
    """ENOSPC from whatever call: the error is ResourceExhausted, what was there stays, and nothing is left over."""
    prefix = tmp_path / "b"
    if before:
        _save(prefix, {"x": np.zeros(10)})
    count = -1

    def wrap(original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count >= failing:
                raise OSError(errno.ENOSPC, "No space left on device")
            return original(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        for name in ("replace", "fsync", "link"):
            patch.setattr(os, name, wrap(getattr(os, name)))
        try:
            _save(prefix, {"x": np.ones(10)})
            saved = True
        except errors.ResourceExhaustedError as e:
            assert "No space left" in e.message
            saved = False
    if saved or before:
        assert (_load(prefix)["x"] == saved).all()
        assert len(os.listdir(tmp_path)) == 2
    else:
        assert os.listdir(tmp_path) == []


def test_folders(tmp_path: Path) -> None:
    _save(tmp_path / "new" / "b", {"x": 1})  # one level is made, as in TensorFlow
    assert _load(tmp_path / "new" / "b") == {"x": 1}
    with pytest.raises(errors.NotFoundError, match="No such file"):
        _save(tmp_path / "a" / "b" / "c", {"x": 1})
    (tmp_path / "file").touch()
    with pytest.raises((errors.FailedPreconditionError, errors.AlreadyExistsError)):
        _save(tmp_path / "file" / "b", {"x": 1})
