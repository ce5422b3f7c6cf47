"""Small files that are there whole or not at all."""

from __future__ import annotations

import ctypes
import functools
import os
import secrets
import sys
from typing import Any

from thalweg.base.errors import OpError
from thalweg.formats.file_errors import file_errors


def temporary_name(path: str) -> str:
    """A name beside `path` to write to before it is renamed."""
    return f"{path}.tempstate{secrets.token_hex(8)}"


def write_atomically(path: str, data: bytes) -> None:
    """Replaces a file at one moment; on return it is on the disk. An error leaves the old one.

    It is written under another name in the same folder, flushed and renamed.
    """
    temporary = temporary_name(path)
    try:
        with file_errors(path):
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
    except OpError:
        remove_quietly(temporary)
        raise
    sync_folder(os.path.dirname(path))


class EarlyWriter:
    """Has the system write a file to the disk while more of it is made, so that the sync at the end is short.

    Call `wrote` after each write. It doesn't wait, and errors are for the sync to tell. Where the system has
    no such call it does nothing. (Measured: a save of 400 MB takes 0.15 s instead of 0.2 s. Syncing from a
    thread is as good on an idle machine, and worse than nothing on a busy one.)
    """

    _EVERY = 8 << 20
    _WRITE = 2  # SYNC_FILE_RANGE_WRITE

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._begun = self._end = 0
        self._call = _sync_file_range()

    def wrote(self, size: int) -> None:
        """Says that so many bytes more were handed to the system."""
        self._end += size
        if self._call is not None and self._end - self._begun >= self._EVERY:
            self._call(self._fd, self._begun, self._end - self._begun, self._WRITE)
            self._begun = self._end


@functools.cache
def _sync_file_range() -> Any:
    """Linux's sync_file_range, which Python doesn't have; None elsewhere."""
    if sys.platform != "linux":
        return None
    call = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if call is not None:
        call.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return call


def remove_quietly(path: str) -> None:
    """Removes a file; nothing where it isn't there or can't be removed."""
    try:
        os.remove(path)
    except OSError:
        pass  # it is nobody's


def sync_folder(folder: str) -> None:
    """Renames in the folder are on the disk when it returns, where the file system can do that."""
    try:
        fd = os.open(folder or ".", os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(fd)
    except OSError:
        pass  # not every file system syncs folders
    finally:
        os.close(fd)
