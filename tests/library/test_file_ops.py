"""Files as nodes, and tf.gfile."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

import thalweg as tf
from thalweg import gfile


def run(make: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(make())


def test_read_and_write(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a" / "b" / "c"
    run(lambda: tf.write_file(str(path), b"\0data\n"))
    assert path.read_bytes() == b"\0data\n"
    assert run(lambda: tf.read_file(str(path))) == b"\0data\n"
    run(lambda: tf.io.write_file(str(path), b"less"))
    assert run(lambda: tf.io.read_file(str(path))) == b"less"


def test_errors_name_the_file_and_the_node(tmp_path: pathlib.Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match=r"ReadFile 'ReadFile': .*none; No such file"):
        run(lambda: tf.read_file(f"{tmp_path}/none"))
    with pytest.raises(tf.errors.FailedPreconditionError, match="directory"):
        run(lambda: tf.read_file(str(tmp_path)))
    with pytest.raises(tf.errors.FailedPreconditionError, match="directory"):
        run(lambda: tf.write_file(str(tmp_path), b""))
    with pytest.raises(tf.errors.InvalidArgumentError, match="null byte"):
        run(lambda: tf.read_file(b"a\0b"))
    with pytest.raises(ValueError, match="rank 0"):
        run(lambda: tf.read_file(["a"]))


def test_matching_files(tmp_path: pathlib.Path) -> None:
    for name in ("a1", "a2", "b1", ".a3", "[x]", "d/a1", "d/e/a1", "e/a2"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def match(*patterns: str) -> list[str]:
        full = [f"{tmp_path}/{p}" for p in patterns]
        found = run(lambda: tf.matching_files(full if len(full) > 1 else full[0]))
        assert found.tolist() == sorted(found.tolist())
        return [f.decode().removeprefix(f"{tmp_path}/") for f in found]

    assert match("a*") == ["a1", "a2"]
    assert match("*a?") == [".a3", "a1", "a2"]
    assert match("b*", "a1") == ["a1", "b1"]
    assert match("?/a*") == ["d/a1", "e/a2"]
    assert match("*/*/a1") == ["d/e/a1"]
    assert match("[ab]1") == ["a1", "b1"]
    assert match("[!a]1") == match("[^a]1") == ["b1"]
    assert match("[[]x]") == match("\\[x\\]") == ["[x]"]
    assert match("[") == match("none*") == match("a1/*") == match("[z-a]") == []
    assert match("a1") == ["a1"]
    assert gfile.Glob([f"{tmp_path}/b*", f"{tmp_path}/a*"]) == [f"{tmp_path}/{n}" for n in ("b1", "a1", "a2")]


def test_relative_patterns(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert gfile.Glob("d/*.txt") == gfile.Glob("*/x.*") == ["d/x.txt"]
    assert gfile.Glob("*") == ["d"]


def test_match_filenames_once(tmp_path: pathlib.Path) -> None:
    (tmp_path / "x").touch()
    with tf.Graph().as_default(), tf.Session() as session:
        names = tf.train.match_filenames_once(f"{tmp_path}/*")
        assert [v.name for v in tf.local_variables()] == ["matching_filenames:0"]
        session.run(tf.local_variables_initializer())
        (tmp_path / "y").touch()
        assert session.run(names).tolist() == [f"{tmp_path}/x".encode()]


def test_gfile_reads_and_writes(tmp_path: pathlib.Path) -> None:
    name = tmp_path / "f"
    with gfile.GFile(name, "w") as f:
        f.write("höhe\n")
        f.write(b"two\r\n")
        assert f.tell() == 11
        with pytest.raises(tf.errors.PermissionDeniedError, match="reading"):
            f.read()
        assert f.size() == 11
    assert name.read_bytes() == "höhe\ntwo\r\n".encode()
    with gfile.Open(str(name)) as f:
        assert f.readline() == "höhe\n"
        assert f.tell() == 6
        assert f.readlines() == ["two\n"]
        assert f.read() == ""
        f.seek(0)
        assert f.read(5) == "höhe"
        assert [f.name, f.mode, f.seekable()] == [str(name), "r", True]
        with pytest.raises(tf.errors.PermissionDeniedError, match="writing"):
            f.write("x")
    with gfile.FastGFile(name, "rb") as f:
        assert list(f) == ["höhe\n".encode(), b"two\r\n"]
        f.seek(-3, 2)
        assert f.read() == b"o\r\n"
    with gfile.GFile(name, "ab") as f:
        f.write("end")
    with gfile.GFile(name, "r+") as f:
        f.write("H")
        f.seek(0)
        assert f.readline() == "Höhe\n"
        assert next(f) == "two\n"
        assert f.next() == "end"
        with pytest.raises(StopIteration):
            next(f)
    gfile.GFile(tmp_path / "empty", "w").close()
    assert gfile.Stat(tmp_path / "empty").length == 0


def test_gfile_errors(tmp_path: pathlib.Path) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="mode is not"):
        gfile.GFile("x", "x")
    for act in (
        lambda p: gfile.GFile(p).read(),
        gfile.ListDirectory,
        gfile.Remove,
        gfile.DeleteRecursively,
        gfile.Stat,
        lambda p: gfile.Rename(p, tmp_path / "y"),
        lambda p: gfile.Copy(p, tmp_path / "y"),
        lambda p: gfile.MkDir(p / "sub"),
        lambda p: gfile.GFile(p / "sub", "w").write("x"),
    ):
        with pytest.raises(tf.errors.NotFoundError, match=f"{tmp_path}/none"):
            act(tmp_path / "none")
    with pytest.raises(tf.errors.FailedPreconditionError, match="directory"):
        gfile.GFile(tmp_path).read()
    with pytest.raises(tf.errors.FailedPreconditionError, match="directory"):
        gfile.Remove(tmp_path)


@pytest.mark.parametrize("v2", [False, True])
def test_folders(tmp_path: pathlib.Path, v2: bool) -> None:
    io = tf.io.gfile
    make, make_all, listed, exists, is_folder, copy, rename, remove, remove_all, walk, stat = (
        (io.mkdir, io.makedirs, io.listdir, io.exists, io.isdir, io.copy, io.rename, io.remove, io.rmtree, io.walk, io.stat)
        if v2
        else (gfile.MkDir, gfile.MakeDirs, gfile.ListDirectory, gfile.Exists, gfile.IsDirectory, gfile.Copy,
              gfile.Rename, gfile.Remove, gfile.DeleteRecursively, gfile.Walk, gfile.Stat)
    )  # fmt: skip
    base = str(tmp_path / "base")
    make(base)
    make(base)
    make_all(f"{base}/a/b")
    make_all(f"{base}/a/b")
    io.GFile(f"{base}/a/f", "w").write("data")
    (tmp_path / "base/a/g").write_text("g")
    assert listed(f"{base}/a") == ["b", "f", "g"]
    assert exists(f"{base}/a/f") and not exists(f"{base}/none")
    assert is_folder(f"{base}/a") and not is_folder(f"{base}/a/f") and not is_folder(f"{base}/none")
    copy(f"{base}/a/g", f"{base}/h")
    for act in (copy, rename):
        with pytest.raises(tf.errors.AlreadyExistsError, match="already exists"):
            act(f"{base}/a/g", f"{base}/h")
        act(f"{base}/a/g", f"{base}/h", overwrite=True)
    assert not exists(f"{base}/a/g")
    assert stat(f"{base}/h").length == 1 and stat(base).is_directory and stat(base).mtime_nsec > 0
    whole = [(base, ["a"], ["h"]), (f"{base}/a", ["b"], ["f"]), (f"{base}/a/b", [], [])]
    assert list(walk(base)) == whole
    assert list(walk(base, False)) == whole[::-1]
    assert list(walk(f"{base}/none")) == []
    remove(f"{base}/h")
    remove_all(base)
    assert not exists(base)


def test_paths_of_all_kinds(tmp_path: pathlib.Path) -> None:
    (tmp_path / "x").write_text("data")
    for path in (tmp_path / "x", str(tmp_path / "x"), str(tmp_path / "x").encode(), f"file://{tmp_path}/x"):
        assert gfile.Exists(path)
        assert gfile.GFile(path).read() == "data"
    assert tf.io.gfile.join("a", "b", "c") == "a/b/c"
    assert tf.io.gfile.join("a", "/b") == "/b"
    assert tf.io.gfile.join("a", "gs://b/c", "d") == "gs://b/c/d"


def test_other_schemes() -> None:
    fsspec = pytest.importorskip("fsspec", reason="an extra")
    del fsspec
    with gfile.GFile("memory://box/a/x", "w") as f:
        f.write("data")
    assert gfile.Exists("memory://box/a/x") and gfile.IsDirectory("memory://box/a")
    assert gfile.ListDirectory("memory://box/a") == ["x"]
    assert gfile.Glob("memory://box/*/x") == ["memory://box/a/x"]
    assert run(lambda: tf.read_file("memory://box/a/x")) == b"data"
    with tf.python_io.TFRecordWriter("memory://box/r") as writer:
        writer.write(b"one")
    assert list(tf.python_io.tf_record_iterator("memory://box/r")) == [b"one"]
    gfile.Copy("memory://box/r", "memory://box/s")
    gfile.Rename("memory://box/s", "memory://box/t")
    assert gfile.Stat("memory://box/t").length == gfile.Stat("memory://box/r").length == 19
    with pytest.raises(tf.errors.NotFoundError, match="memory://box/none"):
        gfile.GFile("memory://box/none").read()
    gfile.Remove("memory://box/t")
    gfile.DeleteRecursively("memory://box")
    assert not gfile.Exists("memory://box/r")


def test_unknown_schemes() -> None:
    with pytest.raises(tf.errors.UnimplementedError, match="nosuch"):
        gfile.Exists("nosuch://a/b")
