"""What the documentation shows is true: its programs run, and print what the pages say."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_CODE = [p for p in PAGES if "```python\n" in p.read_text()]
MAX_LINES = 400  # of docs/from_scratch.py: it is meant to be read in one go
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
_PATH = re.compile(r"`((?:src|docs|tests|examples|benchmarks)/[\w./-]+|[a-z]+/[a-z_/]+\.py)`")
_LATER = {"docs/performance.md"}  # pages that are linked before they are written


def run(tmp_path: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python process of its own: pages register ops and passes that no other test should see."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONWARNINGS": "error",
        "XDG_CACHE_HOME": str(tmp_path),
    }
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: p.name)
def test_page(page: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = run(tmp_path, "tests/docs/pages.py", str(page))
    assert done.returncode == 0, done.stdout + done.stderr


def test_from_scratch(tmp_path: pathlib.Path) -> None:
    assert len((ROOT / "docs" / "from_scratch.py").read_text().splitlines()) <= MAX_LINES
    done = run(tmp_path, "docs/from_scratch.py")
    assert done.returncode == 0, done.stderr
    assert "no update was lost" in done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_and_paths_exist(page: pathlib.Path) -> None:
    text = _CODE.sub("", page.read_text())
    links = [page.parent / t for t in _LINK.findall(re.sub("`[^`]*`", "", text)) if "://" not in t]
    wrong = [str(link.resolve().relative_to(ROOT)) for link in links if not link.exists()]
    for path in _PATH.findall(text):
        if not any((folder / path).exists() for folder in (ROOT, ROOT / "src" / "thalweg")):
            wrong.append(path)
    assert set(wrong) <= _LATER
