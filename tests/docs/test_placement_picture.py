"""docs/placement.svg is the picture that docs/placement.md makes.

python tests/docs/test_placement_picture.py    draws it again
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"


def picture() -> str:
    """What the page's blocks leave in `picture`."""
    spec = importlib.util.spec_from_file_location("pages", Path(__file__).with_name("pages.py"))
    assert spec is not None and spec.loader is not None
    pages: Any = importlib.util.module_from_spec(spec)
    sys.modules["pages"] = pages
    spec.loader.exec_module(pages)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in pages.blocks((DOCS / "placement.md").read_text()):
            exec(block.code, namespace)
    return str(namespace["picture"])


def test_the_picture_is_the_pages() -> None:
    assert picture() == (DOCS / "placement.svg").read_text(), "draw it again: see this file's first lines"


if __name__ == "__main__":
    (DOCS / "placement.svg").write_text(picture())
