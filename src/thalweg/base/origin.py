"""Where in the user's program a node was made.

Every node remembers its origin, so capturing one happens on the hot path of graph building: it records code
objects and instruction offsets, and leaves line numbers and source text for when somebody asks.
"""

from __future__ import annotations

import linecache
import os
import sys
import traceback as _traceback
from types import CodeType

Origin = tuple[tuple[CodeType, int], ...]
"""User frames, innermost first: the code and the offset of the instruction it was at."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

# Whether a file's frames are passed over. By file name: a str keeps its hash, a code object computes it anew.
_hidden: dict[str, bool] = {}


def _is_hidden(filename: str) -> bool:
    """Frames of this package and of the import system say nothing about the user's program."""
    hidden = filename.startswith((_PACKAGE, "<frozen "))
    _hidden[filename] = hidden
    return hidden


def capture(limit: int = 6) -> Origin:
    """Returns up to `limit` innermost frames of the calling thread that lie outside thalweg; maybe none.

    Thread-safe. Costs 1-2 us at the usual depth.
    """
    frames = []
    frame = sys._getframe(1)
    hidden = _hidden
    while True:
        code = frame.f_code
        skip = hidden.get(code.co_filename)
        if skip is None:
            skip = _is_hidden(code.co_filename)
        if not skip:
            # The offset, not f_lineno: that would search the line table of the whole function now.
            frames.append((code, frame.f_lasti))
            limit -= 1
            if not limit:
                break
        caller = frame.f_back
        if caller is None:
            break
        frame = caller
    return tuple(frames)


def _line_number(code: CodeType, offset: int) -> int:
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno


def describe(origin: Origin | str) -> str:
    """Returns "train.py:41: logits = tf.matmul(x, w)" for the innermost frame.

    The source text is left out when the file can't be read. A string is an origin that came with a node from
    elsewhere and is returned as it is; an empty origin gives "".
    """
    if isinstance(origin, str):
        return origin
    if not origin:
        return ""
    code, offset = origin[0]
    line = _line_number(code, offset)
    place = f"{os.path.basename(code.co_filename)}:{line}"
    source = linecache.getline(code.co_filename, line).strip()
    return f"{place}: {source}" if source else place


def traceback(origin: Origin) -> list[_traceback.FrameSummary]:
    """Returns the frames oldest first, as `traceback.extract_stack` does."""
    return [
        _traceback.FrameSummary(code.co_filename, _line_number(code, offset), code.co_name, lookup_line=False)
        for code, offset in reversed(origin)
    ]
