"""Files and folders by path: local ones, and those of other schemes ("gs://...") through fsspec.

A path is text, bytes or os.PathLike. Errors are TensorFlow's, with the path: NotFoundError,
AlreadyExistsError, PermissionDeniedError, FailedPreconditionError, ResourceExhaustedError. Thread-safe.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import shutil
import stat as stat_bits
from dataclasses import dataclass
from typing import Any, BinaryIO

from thalweg.base import errors
from thalweg.formats.file_errors import file_errors


@dataclass(frozen=True)
class FileStatistics:
    """Size in bytes, time of the last change in nanoseconds, and kind of a path."""

    length: int
    mtime_nsec: int
    is_directory: bool


def as_path(path: Any) -> str:
    """A path as text."""
    text = os.fspath(path)
    return text.decode(errors="surrogateescape") if isinstance(text, bytes) else text


class _Local:
    """The machine's own files."""

    def open(self, path: str, mode: str) -> BinaryIO:
        return open(path, mode)  # type: ignore[return-value]

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_directory(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_directory(self, path: str) -> None:
        os.mkdir(path)

    def make_directories(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_directory(self, path: str) -> None:
        shutil.rmtree(path)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def copy(self, old: str, new: str) -> None:
        shutil.copyfile(old, new)

    def stat(self, path: str) -> FileStatistics:
        found = os.stat(path)
        return FileStatistics(found.st_size, found.st_mtime_ns, stat_bits.S_ISDIR(found.st_mode))


class _Remote:
    """Files of another scheme; `fs` is an fsspec file system, whose methods take whole URLs."""

    def __init__(self, fs: Any) -> None:
        self._fs = fs

    def open(self, path: str, mode: str) -> BinaryIO:
        return self._fs.open(path, mode)

    def exists(self, path: str) -> bool:
        return bool(self._fs.exists(path))

    def is_directory(self, path: str) -> bool:
        return bool(self._fs.isdir(path))

    def list_directory(self, path: str) -> list[str]:
        if not self._fs.isdir(path):
            raise FileNotFoundError(errno.ENOENT, "No such directory", path)
        return sorted(p.rstrip("/").rsplit("/", 1)[-1] for p in self._fs.ls(path, detail=False))

    def make_directory(self, path: str) -> None:
        if self._fs.exists(path):
            raise FileExistsError(errno.EEXIST, "File exists", path)
        self._fs.mkdir(path, create_parents=False)

    def make_directories(self, path: str) -> None:
        self._fs.makedirs(path, exist_ok=True)

    def remove(self, path: str) -> None:
        self._fs.rm_file(path)

    def remove_directory(self, path: str) -> None:
        self._fs.rm(path, recursive=True)

    def rename(self, old: str, new: str) -> None:
        self._fs.mv(old, new, recursive=self._fs.isdir(old))

    def copy(self, old: str, new: str) -> None:
        self._fs.cp_file(old, new)

    def stat(self, path: str) -> FileStatistics:
        info = self._fs.info(path)
        changed = next((info[k] for k in ("mtime", "created", "LastModified", "updated") if info.get(k)), 0)
        seconds = changed.timestamp() if hasattr(changed, "timestamp") else changed
        seconds = seconds if isinstance(seconds, int | float) else 0
        return FileStatistics(int(info.get("size") or 0), int(seconds * 1e9), info["type"] == "directory")


_LOCAL = _Local()
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://")


def split_scheme(path: Any) -> tuple[str, str]:
    """The scheme of a path ("" for local files) and the path as its file system takes it."""
    text = as_path(path)
    found = _SCHEME.match(text)
    if found is None:
        return "", text
    return ("", text[7:]) if found[1] == "file" else (found[1], text)


def _system(path: Any) -> tuple[Any, str]:
    scheme, text = split_scheme(path)
    if not scheme:
        return _LOCAL, text
    try:
        fsspec = importlib.import_module("fsspec")
    except ImportError:
        message = (
            f"File system scheme '{scheme}' (of '{text}') needs the fsspec package: "
            "pip install 'thalweg[remote]'"
        )
        raise errors.UnimplementedError(None, None, message) from None
    try:
        return _Remote(fsspec.filesystem(scheme)), text
    except (ValueError, ImportError) as e:
        message = f"File system scheme '{scheme}' not implemented (file: '{text}'): {e}"
        raise errors.UnimplementedError(None, None, message) from None


def open_file(path: Any, mode: str) -> BinaryIO:
    """A file opened in a binary mode ("rb", "wb", "ab", "r+b" ...); the caller closes it."""
    system, text = _system(path)
    with file_errors(path):
        return system.open(text, mode)


def read_whole(path: Any) -> bytes:
    """All of a file."""
    with file_errors(path), open_file(path, "rb") as f:
        return f.read()


def write_whole(path: Any, data: bytes) -> None:
    """Makes or replaces a file."""
    with file_errors(path), open_file(path, "wb") as f:
        f.write(data)


def exists(path: Any) -> bool:
    """Whether there is a file or folder of that path."""
    system, text = _system(path)
    with file_errors(path):
        return system.exists(text)


def is_directory(path: Any) -> bool:
    """Whether there is a folder of that path."""
    system, text = _system(path)
    with file_errors(path):
        return system.is_directory(text)


def list_directory(path: Any) -> list[str]:
    """The names in a folder, sorted."""
    system, text = _system(path)
    if system is _LOCAL and not os.path.isdir(text):
        raise errors.NotFoundError(None, None, f"Could not find directory {as_path(path)}")
    with file_errors(path):
        return system.list_directory(text)


def make_directory(path: Any) -> None:
    """Makes a folder. AlreadyExistsError, NotFoundError where the folder above is missing."""
    system, text = _system(path)
    with file_errors(path):
        system.make_directory(text)


def make_directories(path: Any) -> None:
    """Makes a folder and those above it; nothing where it exists."""
    system, text = _system(path)
    with file_errors(path):
        system.make_directories(text)


def remove(path: Any) -> None:
    """Removes a file. FailedPreconditionError for a folder."""
    system, text = _system(path)
    with file_errors(path):
        system.remove(text)


def remove_directory(path: Any) -> None:
    """Removes a folder and all in it."""
    system, text = _system(path)
    with file_errors(path):
        system.remove_directory(text)


def rename(old: Any, new: Any, overwrite: bool = False) -> None:
    """Renames a file or folder. AlreadyExistsError where the target exists and overwrite is not set."""
    _check_target(new, overwrite)
    (source, old_text), (_, new_text) = _system(old), _system(new)
    if split_scheme(old)[0] != split_scheme(new)[0]:
        message = f"Renaming {as_path(old)} to {as_path(new)} not implemented: the file systems differ"
        raise errors.UnimplementedError(None, None, message)
    with file_errors(old):
        source.rename(old_text, new_text)


def copy(old: Any, new: Any, overwrite: bool = False) -> None:
    """Copies a file, between file systems too. AlreadyExistsError as for rename."""
    _check_target(new, overwrite)
    (source, old_text), (_, new_text) = _system(old), _system(new)
    if split_scheme(old)[0] == split_scheme(new)[0]:
        with file_errors(old):
            source.copy(old_text, new_text)
        return
    with file_errors(old), open_file(old, "rb") as f, open_file(new, "wb") as g:
        shutil.copyfileobj(f, g, 1 << 20)


def _check_target(path: Any, overwrite: bool) -> None:
    if not overwrite and exists(path):
        raise errors.AlreadyExistsError(None, None, f"{as_path(path)}: file already exists")


def stat(path: Any) -> FileStatistics:
    """Size, time of change and kind of a path."""
    system, text = _system(path)
    with file_errors(path):
        return system.stat(text)


def matching(pattern: Any) -> list[str]:
    """The paths that match a pattern, sorted: *, ? and [...] within a part of a path, \\ before a character.

    As TensorFlow, and unlike a shell, * matches names that start with a dot. Folders that can't be read match
    nothing.
    """
    text = as_path(pattern)
    scheme = _SCHEME.match(text)
    start = text[: scheme.end()] if scheme else ""
    head, *parts = text[len(start) :].split("/")
    found = [start] if head == "" and not start else [start + p for p in _matches(start, head)]
    if head == "" and not start:
        found = ["/"] if parts else []
    for part in parts:
        found = [_join(folder, name) for folder in found for name in _matches(folder, part)]
    return sorted(found)


def _join(folder: str, name: str) -> str:
    return folder + name if folder.endswith("/") else f"{folder}/{name}"


def _matches(folder: str, part: str) -> list[str]:
    """The names in a folder ("" for the current one) that match one part of a pattern."""
    if part == "":
        return [""] if is_directory(folder) else []
    if not re.search(r"[*?\[\\]", part):
        return [part] if exists(_join(folder, part) if folder else part) else []
    pattern = _translated(part)
    try:
        return [n for n in list_directory(folder or ".") if pattern.fullmatch(n)]
    except errors.OpError:
        return []


def _translated(part: str) -> re.Pattern[str]:
    """One part of a pattern, as fnmatch(3) reads it, as a regular expression."""
    out, i = "", 0
    while i < len(part):
        c = part[i]
        i += 1
        if c == "*":
            out += ".*"
        elif c == "?":
            out += "."
        elif c == "\\" and i < len(part):
            out += re.escape(part[i])
            i += 1
        elif c == "[" and (end := _bracket_end(part, i)) > 0:
            inside = part[i:end]
            negated = inside[:1] in ("!", "^")
            body = inside[negated:].replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
            body = body.replace("^", "\\^").replace("&&", "&\\&").replace("~~", "~\\~").replace("||", "|\\|")
            out += f"[{'^' if negated else ''}{body}]"
            i = end + 1
        else:
            out += re.escape(c)
    try:
        return re.compile(out, re.DOTALL)
    except re.error:  # [z-a]
        return re.compile(re.escape(part))


def _bracket_end(part: str, start: int) -> int:
    """Where the "]" of a bracket is whose inside starts at `start`; -1 where it isn't closed."""
    first = start + (part[start : start + 1] in ("!", "^"))
    return part.find("]", first + 1)
