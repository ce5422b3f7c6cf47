"""Imports point down, stand at the top of a file, and every folder has its place in the list of layers."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "thalweg"

# What stands above the public names and may be written with them.
ABOVE_PUBLIC = {"cli", "testing", "tools"}


def _layers() -> set[str]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = {contract["id"]: contract for contract in config["tool"]["importlinter"]["contracts"]}
    return set(re.findall(r"\w+", " ".join(contracts["layers"]["layers"])))


def _folders() -> set[str]:
    return {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def _python_files() -> Iterator[Path]:
    return PACKAGE.rglob("*.py")


def test_contracts() -> None:
    """In a process of its own: the linter's console closes pytest's captured output."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--no-logo"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert result.returncode == 0, result.stdout


def test_every_folder_is_a_layer() -> None:
    assert _folders() <= _layers(), "say in pyproject.toml which layer a new folder is"


def test_every_folder_with_code_is_a_package() -> None:
    folders = {path.parent for path in _python_files()}
    assert {str(folder) for folder in folders if not (folder / "__init__.py").exists()} == set()


def test_folders_do_not_import_public_namespaces() -> None:
    graph = grimp.build_graph("thalweg", cache_dir=None)
    public = {"thalweg"} | {f"thalweg.{path.stem}" for path in PACKAGE.glob("*.py") if path.stem != "__init__"}
    wrong = [
        f"{importer} imports {name}"
        for name in public
        for importer in graph.find_modules_that_directly_import(name)
        if importer not in public and importer.split(".")[1] not in ABOVE_PUBLIC
    ]
    assert sorted(wrong) == []


def _imports_inside_functions(path: Path) -> Iterator[str]:
    for function in ast.walk(ast.parse(path.read_text())):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = ["thalweg" if node.level else str(node.module)]
            else:
                continue
            if any(name.split(".")[0] == "thalweg" for name in names):
                yield f"{path.relative_to(ROOT)}:{node.lineno}"


def test_no_import_of_thalweg_inside_a_function() -> None:
    assert [place for path in _python_files() for place in _imports_inside_functions(path)] == []


def test_the_check_for_late_imports_finds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    late = tmp_path / "late.py"
    late.write_text("import thalweg\ndef f():\n  import os, thalweg.base\ndef g():\n  from . import x\n  import re\n")
    assert list(_imports_inside_functions(late)) == ["late.py:3", "late.py:5"]
