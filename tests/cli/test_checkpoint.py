"""thalweg checkpoint list, show, compare, convert."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import thalweg as tf
from thalweg.cli.main import main
from thalweg.formats.bundle_writer import BundleWriter
from thalweg.formats.checkpoint_reader import open_checkpoint

FILES = Path(__file__).parent.parent / "golden" / "data" / "files" / "checkpoints"


def _run(*arguments: Any) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["checkpoint", *map(str, arguments)], catch_exceptions=False)
    return result.exit_code, result.output


def _row(output: str, name: str) -> list[str]:
    (line,) = [line for line in output.splitlines() if f" {name} " in line]
    return [cell.strip() for cell in line.strip("│").split("│")]


def _save(prefix: Path, **values: Any) -> Path:
    with BundleWriter(str(prefix)) as writer:
        for name, value in values.items():
            writer.add(name.replace("__", "/"), np.asarray(value))
    return prefix


def test_list() -> None:
    code, output = _run("list", FILES / "v2")
    assert code == 0 and "23 tensors, 242 elements, 1.1 KB; version 2" in output
    assert _row(output, "rows") == ["rows", "float32", "[10,6]", "240 B", "4"]
    assert _row(output, "types/string") == ["types/string", "string", "[2,3]", "", ""]
    code, output = _run("list", FILES / "v1", "--match", "types/*", "--by-size")
    assert "13 tensors" in output and "version 1" in output and "rows" not in output
    assert output.index("types/complex128") < output.index("types/bool")
    assert _run("list", f"{FILES / 'v2'}.index")[0] == 0  # the name of a file of it


def test_list_a_folder(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0], name="v")
        session.run(v.initializer)
        saver = tf.train.Saver()
        for step in (1, 2):
            saver.save(session, str(tmp_path / "m"), global_step=step, write_meta_graph=False)
    _save(tmp_path / "other", x=1)
    os.remove(tmp_path / "m-1.index")
    code, output = _run("list", tmp_path)
    assert code == 0
    assert _row(output, "m-1")[1] == "missing" and _row(output, "m-2")[2] == "latest"
    assert _row(output, "other")[2] == "not in the state file" and _row(output, "v")[2] == "[2]"


@pytest.mark.parametrize("command", ["list", "show", "compare"])
def test_what_is_not_there(tmp_path: Path, command: str) -> None:
    more = {"list": [], "show": ["x"], "compare": [FILES / "v2"]}[command]
    code, output = _run(command, tmp_path, *more)
    assert code == 1 and f"{tmp_path}: no checkpoint in this folder" in output
    code, output = _run(command, tmp_path / "none", *more)
    assert code == 1 and "Failed to find any matching files" in output
    (tmp_path / "broken").write_text("x")
    code, output = _run(command, tmp_path / "broken", *more)
    assert code == 1 and "not a table file" in output


def test_show() -> None:
    code, output = _run("show", FILES / "v2", "types/float32", "types/int32", "types/string", "rows", "*/complex64")
    assert code == 0
    assert "types/float32  float32 [3,4]\n  min -0  max 2.66667" in output and "not finite: 3 elements" in output
    assert "-2147483648" in output and r"b'\xff\x00\xff'" in output
    assert "rows  float32 [10,6]\n  slice 0,3:0,6\n" in output and "types/complex64  complex64" in output
    code, output = _run("show", FILES / "v2", "none*")
    assert code == 1 and "has no tensor 'none*'" in output


def test_show_full(tmp_path: Path) -> None:
    path = _save(tmp_path / "m", x=np.arange(100))
    assert "..." in _run("show", path, "x")[1]
    assert "..." not in _run("show", path, "x", "--full")[1]


def test_compare(tmp_path: Path) -> None:
    nan = [np.nan, 1.0]
    a = _save(tmp_path / "a", same=1, nan=nan, gone=1, typed=1, shaped=[1], close=[1.0, 2.0], s=np.array(b"x", object))
    b = _save(tmp_path / "b", same=1, nan=nan, new=1, typed=1.0, shaped=[[1]], close=[1.0, 2.5], s=np.array(b"y", object))
    code, output = _run("compare", a, b)
    assert code == 1 and "8 tensors, 6 differ" in output
    assert _row(output, "gone")[1] == "only in the first" and _row(output, "new")[1] == "only in the second"
    assert _row(output, "typed")[1] == "int64 and float64" and _row(output, "shaped")[1] == "[1] and [1,1]"
    assert _row(output, "close")[1] == "1 of 2 elements, by up to 0.5" and _row(output, "s")[1] == "other strings"
    assert "close" not in _run("compare", a, b, "--tolerance", 0.5)[1]
    assert _run("compare", a, a) == (0, f"{a} and {a}\n7 tensors, 0 differ\n")


def test_convert(tmp_path: Path) -> None:
    new = tmp_path / "new"
    code, output = _run("convert", FILES / "v1-?????-of-00002", new, "--rename", "^types/=t/", "--rename", r"^(r)ows=\1", "--drop", "^shapes")
    assert code == 0 and "types/int32 -> t/int32" in output and "rows -> r" in output
    assert "15 tensors written" in output and "3 left out" in output
    with open_checkpoint(str(new)) as reader, open_checkpoint(str(FILES / "v1")) as old:
        assert all(n.startswith(("t/", "r", "g")) for n in reader.names())
        assert (reader.read("r") == old.read("rows")).all() and len(reader.slices("r")) == 4
        assert (reader.read("t/int8") == old.read("types/int8")).all()
    code, output = _run("convert", new, tmp_path / "again", "--only", "int", "--dry-run")
    assert "tensors would be written" in output and not os.path.exists(f"{tmp_path / 'again'}.index")


def test_convert_refuses(tmp_path: Path) -> None:
    path = _save(tmp_path / "m", a=1, b=2)
    for arguments, text in (
        (["--rename", "[ab]=c"], "two tensors would be named 'c'"),
        (["--rename", "a"], "is not PATTERN=NAME"),
        (["--rename", "(=c"], "is no regular expression"),
    ):
        code, output = _run("convert", path, tmp_path / "new", *arguments)
        assert code != 0 and text in output
    code, output = _run("convert", path, path)
    assert code == 1 and "the same" in output
    assert not (tmp_path / "new.index").exists()
