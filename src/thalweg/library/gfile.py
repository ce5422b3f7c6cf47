"""tf.gfile: files and folders. Local paths, and other schemes ("gs://...") through fsspec, an extra.

Missing paths raise tf.errors.NotFoundError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from thalweg.base import errors
from thalweg.formats import file_system
from thalweg.formats.file_errors import file_errors
from thalweg.formats.file_system import FileStatistics as FileStatistics
from thalweg.formats.file_system import as_path

_MODES = ("r", "w", "a", "r+", "w+", "a+")


class GFile:
    """A file, opened when first read or written. mode: "r", "w", "a", with "+" and "b".

    Text is UTF-8. Positions and sizes are in bytes in every mode.
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        if mode.replace("b", "", 1) not in _MODES:
            raise errors.InvalidArgumentError(
                None, None, "mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'"
            )
        self._name = name
        self._mode = mode
        self._is_text = "b" not in mode
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
            mode = self._mode.replace("b", "")
            self._file = file_system.open_file(self._name, mode[0] + "b" + mode[1:])
        return self._file

    def _readable(self) -> Any:
        if not ("r" in self._mode or "+" in self._mode):
            raise errors.PermissionDeniedError(None, None, "File isn't open for reading")
        return self._open()

    def _writable(self) -> Any:
        if self._mode.replace("b", "") == "r":
            raise errors.PermissionDeniedError(None, None, "File isn't open for writing")
        return self._open()

    def _text(self, data: bytes) -> Any:
        return data.decode() if self._is_text else data

    def read(self, n: int = -1) -> Any:
        """Up to n bytes (as text, in a text mode); the rest where n is negative."""
        file = self._readable()
        with file_errors(self._name):
            return self._text(file.read(n))

    def readline(self) -> Any:
        r"""The next line, with its "\n"; empty at the end of the file. In a text mode "\r\n" is "\n"."""
        file = self._readable()
        with file_errors(self._name):
            line: bytes = file.readline()
        if self._is_text and line.endswith(b"\r\n"):
            line = line[:-2] + b"\n"
        return self._text(line)

    def readlines(self) -> list[Any]:
        """The lines that are left."""
        return list(self)

    def write(self, file_content: Any) -> None:
        """Writes bytes, or text as UTF-8."""
        file = self._writable()
        data = file_content.encode() if isinstance(file_content, str) else bytes(file_content)
        with file_errors(self._name):
            file.write(data)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Moves to a position."""
        if offset is None and position is None:
            raise TypeError("seek(): offset argument required")
        file = self._open()
        with file_errors(self._name):
            file.seek(position if offset is None else offset, whence)

    def tell(self) -> int:
        """The position."""
        return int(self._open().tell())

    def seekable(self) -> bool:
        """True."""
        return True

    def size(self) -> int:
        """The file's size in bytes."""
        if self._file is not None:
            self.flush()
        return file_system.stat(self._name).length

    def flush(self) -> None:
        """Writes out what is buffered."""
        if self._file is not None:
            with file_errors(self._name):
                self._file.flush()

    def close(self) -> None:
        """Closes the file; one opened to write exists then."""
        if self._file is None and self._mode.replace("b", "")[0] != "r":
            self._open()
        file, self._file = self._file, None
        if file is not None:
            with file_errors(self._name):
                file.close()

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        file = getattr(self, "_file", None)
        if file is not None:
            file.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    next = __next__


FastGFile = Open = GFile


def Exists(filename: Any) -> bool:
    """Whether the path exists."""
    return file_system.exists(filename)


def IsDirectory(dirname: Any) -> bool:
    """Whether the path is a folder."""
    return file_system.is_directory(dirname)


def ListDirectory(dirname: Any) -> list[str]:
    """The names in a folder."""
    return file_system.list_directory(dirname)


def MakeDirs(dirname: Any) -> None:
    """Makes a folder and those above it; nothing where it exists."""
    file_system.make_directories(dirname)


def MkDir(dirname: Any) -> None:
    """Makes a folder; nothing where it exists. NotFoundError where the one above is missing."""
    if not file_system.is_directory(dirname):
        file_system.make_directory(dirname)


def Remove(filename: Any) -> None:
    """Removes a file. FailedPreconditionError for a folder."""
    file_system.remove(filename)


def DeleteRecursively(dirname: Any) -> None:
    """Removes a folder and all in it, or a file."""
    if file_system.is_directory(dirname):
        file_system.remove_directory(dirname)
    else:
        file_system.remove(dirname)


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """Copies a file. AlreadyExistsError where the target exists and overwrite is not set."""
    file_system.copy(oldpath, newpath, overwrite)


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """Renames a file. AlreadyExistsError where the target exists and overwrite is not set."""
    file_system.rename(oldname, newname, overwrite)


def Glob(filename: Any) -> list[str]:
    """The paths that match a pattern, or any of a list of patterns."""
    patterns = filename if isinstance(filename, list | tuple) else [filename]
    return [path for pattern in patterns for path in file_system.matching(pattern)]


def Stat(filename: Any) -> FileStatistics:
    """Size, time of change (ns) and kind of a path."""
    return file_system.stat(filename)


def Walk(
    top: Any, in_order: bool = True, onerror: Callable[[errors.OpError], Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """(folder, folders in it, files in it) for a folder and all below it; nothing where there is none."""
    folder = as_path(top)
    try:
        names = file_system.list_directory(folder)
    except errors.OpError as e:
        if onerror is not None:
            onerror(e)
        return
    base = folder if folder.endswith("/") else f"{folder}/"
    folders = [n for n in names if file_system.is_directory(base + n)]
    inside = set(folders)
    here = folder, folders, [n for n in names if n not in inside]
    if in_order:
        yield here
    for name in folders:
        yield from Walk(base + name, in_order, onerror)
    if not in_order:
        yield here
