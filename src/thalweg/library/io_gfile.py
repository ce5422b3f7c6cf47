"""tf.io.gfile: tf.gfile under TensorFlow 2's names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from thalweg.base.errors import OpError
from thalweg.formats import file_system
from thalweg.formats.file_system import FileStatistics
from thalweg.library import gfile
from thalweg.library.gfile import GFile

__all__ = [
    "GFile",
    "copy",
    "exists",
    "glob",
    "isdir",
    "join",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "walk",
]


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file. AlreadyExistsError where the target exists and overwrite is not set."""
    file_system.copy(src, dst, overwrite)


def exists(path: Any) -> bool:
    """Whether the path exists."""
    return file_system.exists(path)


def glob(pattern: Any) -> list[str]:
    """The paths that match a pattern, or any of a list of patterns."""
    return gfile.Glob(pattern)


def isdir(path: Any) -> bool:
    """Whether the path is a folder."""
    return file_system.is_directory(path)


def join(path: Any, *paths: Any) -> str:
    """Paths put together; one that starts at the root or has a scheme stands for itself."""
    result = file_system.as_path(path)
    for part in map(file_system.as_path, paths):
        result = part if "://" in part else os.path.join(result, part)
    return result


def listdir(path: Any) -> list[str]:
    """The names in a folder."""
    return file_system.list_directory(path)


def makedirs(path: Any) -> None:
    """Makes a folder and those above it; nothing where it exists."""
    file_system.make_directories(path)


def mkdir(path: Any) -> None:
    """Makes a folder; nothing where it exists."""
    gfile.MkDir(path)


def remove(path: Any) -> None:
    """Removes a file."""
    file_system.remove(path)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Renames a file. AlreadyExistsError where the target exists and overwrite is not set."""
    file_system.rename(src, dst, overwrite)


def rmtree(path: Any) -> None:
    """Removes a folder and all in it."""
    gfile.DeleteRecursively(path)


def stat(path: Any) -> FileStatistics:
    """Size, time of change (ns) and kind of a path."""
    return file_system.stat(path)


def walk(
    top: Any, topdown: bool = True, onerror: Callable[[OpError], Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """(folder, folders in it, files in it) for a folder and all below it."""
    return gfile.Walk(top, topdown, onerror)
