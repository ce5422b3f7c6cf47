"""Runs the Python blocks of a page, in order, in one namespace, and compares what they print.

    python tests/docs/pages.py docs/journey_of_a_step.md            run and compare
    python tests/docs/pages.py --write docs/journey_of_a_step.md    run, and put what was printed into the page

A ```python block that is followed by a ```text block must print exactly that. One that is not must print nothing.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import pathlib
import re
import sys
from dataclasses import dataclass

_FENCED = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    """A Python block, the line it starts in, and what it must print: None where no ```text block follows."""

    code: str
    line: int
    expected: str | None
    span: tuple[int, int] | None


def blocks(page: str) -> list[Block]:
    """The Python blocks of a page. A ```text block belongs to the one before it if only blank lines lie between."""
    found = list(_FENCED.finditer(page))
    result = []
    for i, match in enumerate(found):
        if match["language"] != "python":
            continue
        after = found[i + 1] if i + 1 < len(found) else None
        if after is not None and (after["language"] != "text" or page[match.end() : after.start()].strip()):
            after = None
        line = page.count("\n", 0, match.start("text"))
        span = after.span("text") if after is not None else None
        result.append(Block(match["text"], line, after["text"] if after is not None else None, span))
    return result


def run(path: pathlib.Path) -> list[tuple[Block, str]]:
    """Runs a page. Returns each block with what it printed; raises what a block raises, at the page's line."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    result = []
    for block in blocks(path.read_text()):
        printed = io.StringIO()
        code = compile("\n" * block.line + block.code, str(path), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        result.append((block, printed.getvalue()))
    return result


def differences(path: pathlib.Path) -> str:
    """What a page shows against what is printed, as a diff; "" where they agree."""
    lines: list[str] = []
    for block, printed in run(path):
        shown, got = (block.expected or "").splitlines(), printed.splitlines()
        if shown != got:
            lines.append(f"{path.name}, line {block.line}:")
            lines += difflib.unified_diff(shown, got, "shown in the page", "printed", lineterm="")
    return "\n".join(lines)


def write(path: pathlib.Path) -> None:
    """Puts what the blocks print into the page's ```text blocks."""
    page = path.read_text()
    for block, printed in reversed(run(path)):
        if block.span is not None:
            page = page[: block.span[0]] + printed.rstrip("\n") + "\n" + page[block.span[1] :]
    path.write_text(page)


def main(arguments: list[str]) -> int:
    """The command. The exit status is 1 where a page differs."""
    pages = [pathlib.Path(a) for a in arguments if a != "--write"]
    status = 0
    for page in pages:
        if "--write" in arguments:
            write(page)
        elif text := differences(page):
            print(text)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
