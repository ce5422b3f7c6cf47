"""tf.gfile: files and folders of the local file system. Missing paths raise tf.errors.NotFoundError."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from thalweg.base import errors


@contextmanager
def _errors(path: Any) -> Iterator[None]:
    """Python's file errors as TensorFlow's."""
    try:
        yield
    except FileNotFoundError as e:
        raise errors.NotFoundError(None, None, f"{path}; No such file or directory") from e
    except FileExistsError as e:
        raise errors.AlreadyExistsError(None, None, f"{path}; File exists") from e
    except PermissionError as e:
        raise errors.PermissionDeniedError(None, None, f"{path}; Permission denied") from e
    except (IsADirectoryError, NotADirectoryError) as e:
        raise errors.FailedPreconditionError(None, None, f"{path}; {e.strerror}") from e
    except OSError as e:
        raise errors.FailedPreconditionError(None, None, f"{path}; {e.strerror}") from e


def _local(path: Any) -> str:
    text = os.fspath(path)
    text = text.decode() if isinstance(text, bytes) else text
    if text.startswith("file://"):
        return text[7:]
    if "://" in text:
        raise errors.UnimplementedError(
            None, None, f"File system scheme of '{text}' is not built: local files only"
        )
    return text


class GFile:
    """A file, opened when first read or written. mode: "r", "w", "a", with "+" and "b"."""

    def __init__(self, name: Any, mode: str = "r") -> None:
        if mode.replace("b", "").replace("+", "") not in ("r", "w", "a"):
            raise errors.InvalidArgumentError(None, None, f"mode is not 'r' or 'w' or 'a': {mode}")
        self._name = name
        self._mode = mode
        self._file: Any = None

    @property
    def name(self) -> Any:
        """The file's name."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode it was opened in."""
        return self._mode

    def _open(self) -> Any:
        if self._file is None:
            with _errors(self._name):
                text = None if "b" in self._mode else "utf-8"
                self._file = open(_local(self._name), self._mode, encoding=text)  # noqa: SIM115 - closed by close()
        return self._file

    def read(self, n: int = -1) -> Any:
        """Up to n characters (bytes in a binary mode); the rest where n is negative."""
        return self._open().read(n)

    def readline(self) -> Any:
        """The next line, with its line end; empty at the end of the file."""
        return self._open().readline()

    def readlines(self) -> list[Any]:
        """The lines that are left."""
        return list(self._open().readlines())

    def write(self, file_content: Any) -> None:
        """Writes text (bytes in a binary mode; TensorFlow takes either in both)."""
        if "b" in self._mode and isinstance(file_content, str):
            file_content = file_content.encode()
        elif "b" not in self._mode and isinstance(file_content, bytes):
            file_content = file_content.decode()
        self._open().write(file_content)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Moves to a position."""
        self._open().seek(position if offset is None else offset, whence)

    def tell(self) -> int:
        """The position."""
        return int(self._open().tell())

    def size(self) -> int:
        """The file's size in bytes."""
        with _errors(self._name):
            return os.path.getsize(_local(self._name))

    def flush(self) -> None:
        """Writes out what is buffered."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line


FastGFile = Open = GFile


def Exists(filename: Any) -> bool:
    """Whether the path exists."""
    return os.path.exists(_local(filename))


def IsDirectory(dirname: Any) -> bool:
    """Whether the path is a folder."""
    return os.path.isdir(_local(dirname))


def ListDirectory(dirname: Any) -> list[str]:
    """The names in a folder."""
    with _errors(dirname):
        return sorted(os.listdir(_local(dirname)))


def MakeDirs(dirname: Any) -> None:
    """Makes a folder and those above it; nothing where it exists."""
    with _errors(dirname):
        os.makedirs(_local(dirname), exist_ok=True)


def MkDir(dirname: Any) -> None:
    """Makes a folder."""
    with _errors(dirname):
        os.mkdir(_local(dirname))


def Remove(filename: Any) -> None:
    """Removes a file."""
    with _errors(filename):
        os.remove(_local(filename))


def DeleteRecursively(dirname: Any) -> None:
    """Removes a folder and all in it."""
    with _errors(dirname):
        shutil.rmtree(_local(dirname))


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """Copies a file. AlreadyExistsError where the target exists and overwrite is not set."""
    _check_target(newpath, overwrite)
    with _errors(oldpath):
        shutil.copyfile(_local(oldpath), _local(newpath))


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """Renames a file. AlreadyExistsError where the target exists and overwrite is not set."""
    _check_target(newname, overwrite)
    with _errors(oldname):
        os.replace(_local(oldname), _local(newname))


def _check_target(path: Any, overwrite: bool) -> None:
    if not overwrite and Exists(path):
        raise errors.AlreadyExistsError(None, None, f"{path}: file already exists")


def Glob(filename: Any) -> list[str]:
    """The paths that match a pattern, or any of a list of patterns."""
    patterns = filename if isinstance(filename, list | tuple) else [filename]
    return [p for pattern in patterns for p in sorted(glob.glob(_local(pattern)))]


class FileStatistics:
    """What Stat tells."""

    def __init__(self, length: int, mtime_nsec: int, is_directory: bool) -> None:
        self.length = length
        self.mtime_nsec = mtime_nsec
        self.is_directory = is_directory


def Stat(filename: Any) -> FileStatistics:
    """Size, time of change (ns) and kind of a path."""
    with _errors(filename):
        stat = os.stat(_local(filename))
    return FileStatistics(stat.st_size, stat.st_mtime_ns, IsDirectory(filename))


def Walk(
    top: Any, in_order: bool = True, onerror: Callable[[OSError], Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """(folder, folders in it, files in it) for a folder and all below it."""
    yield from os.walk(_local(top), topdown=in_order, onerror=onerror)
