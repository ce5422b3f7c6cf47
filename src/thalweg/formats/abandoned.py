"""What processes left behind that were killed while they saved."""

from __future__ import annotations

import os
import re
import time

from thalweg.formats.atomic import remove_quietly

#: what nobody wrote to for so long has no writer any more
ABANDONED_SECONDS = 3600.0

_TEMPORARY = re.compile(r".*\.tempstate[0-9a-f]{16}")
#: the folder in which the shards of a checkpoint are until they become one (see Saver)
_SHARDS = re.compile(r".*_temp_[0-9a-f]{32}")


def remove_abandoned(folder: str) -> None:
    """Removes from a folder files under temporary names, and folders of shards, that have no writer."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return  # whoever writes there will hear of it
    for entry in entries:
        if _TEMPORARY.fullmatch(entry.name):
            if _is_old(entry.path):
                remove_quietly(entry.path)
        elif _SHARDS.fullmatch(entry.name):
            _remove_shards(entry.path)


def _is_old(path: str) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime > ABANDONED_SECONDS
    except OSError:
        return False  # somebody else removed it


def _remove_shards(folder: str) -> None:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    paths = [os.path.join(folder, name) for name in names]
    if not all(name.startswith("part-") for name in names) or not all(map(_is_old, [folder, *paths])):
        return
    for path in paths:
        remove_quietly(path)
    try:
        os.rmdir(folder)
    except OSError:
        pass  # it is in use after all
