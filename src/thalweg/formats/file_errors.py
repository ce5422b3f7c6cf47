"""Python's file errors as tf.errors, and files to read at any place."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from thalweg.base import errors

_BY_NUMBER: dict[int, type[errors.OpError]] = {
    errno.ENOENT: errors.NotFoundError,
    errno.EEXIST: errors.AlreadyExistsError,
    errno.EACCES: errors.PermissionDeniedError,
    errno.EPERM: errors.PermissionDeniedError,
    errno.EROFS: errors.PermissionDeniedError,
    errno.EISDIR: errors.FailedPreconditionError,
    errno.ENOTDIR: errors.FailedPreconditionError,
    errno.ENOTEMPTY: errors.FailedPreconditionError,
    errno.ENOSPC: errors.ResourceExhaustedError,
    errno.EDQUOT: errors.ResourceExhaustedError,
    errno.EFBIG: errors.ResourceExhaustedError,
    errno.EMFILE: errors.ResourceExhaustedError,
    errno.ENFILE: errors.ResourceExhaustedError,
    errno.ENAMETOOLONG: errors.InvalidArgumentError,
    errno.EINVAL: errors.InvalidArgumentError,
}


def file_error(path: Any, e: OSError) -> errors.OpError:
    """The tf.errors error that says what a file operation failed of."""
    number = e.errno or (errno.ENOENT if isinstance(e, FileNotFoundError) else 0)  # fsspec sets no number
    kind = _BY_NUMBER.get(number, errors.UnknownError)
    return kind(None, None, f"{os.fsdecode(path)}; {e.strerror or e or 'No such file or directory'}")


@contextmanager
def file_errors(path: Any) -> Iterator[None]:
    """Inside, Python's file errors are raised as tf.errors, with the path."""
    try:
        yield
    except OSError as e:
        raise file_error(path, e) from e
    except ValueError as e:  # a null byte in the path
        raise errors.InvalidArgumentError(None, None, f"{path!r}: {e}") from e


class RandomAccessFile:
    """A file to read at any place, from any thread. Its size is what it was when opened.

    Errors: NotFoundError, PermissionDeniedError, FailedPreconditionError (a folder) when it is opened;
    DataLossError for a place that isn't there.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with file_errors(path):
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with file_errors(path):
                self.size = os.fstat(self._fd).st_size
                if os.path.isdir(path):
                    raise IsADirectoryError(errno.EISDIR, "Is a directory")
        except BaseException:
            self.close()
            raise

    def check(self, offset: int, size: int, what: str) -> None:
        """DataLossError unless size bytes from offset on are in the file."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise errors.DataLossError(
                None,
                None,
                f"{self.path}: {what} at offset {offset} with {size} bytes is outside of the file, "
                f"which has {self.size}",
            )

    def read(self, offset: int, size: int, what: str) -> bytes:
        """The bytes there; what: what they are, for the error."""
        self.check(offset, size, what)
        with file_errors(self.path):
            data = os.pread(self._fd, size, offset)
            while len(data) < size:
                more = os.pread(self._fd, size - len(data), offset + len(data))
                if not more:
                    break
                data += more
        if len(data) < size:
            self._ended(offset + len(data), what)
        return data

    def read_into(self, array: np.ndarray, offset: int, what: str) -> None:
        """Fills a contiguous array with the bytes there."""
        size = array.nbytes
        self.check(offset, size, what)
        buffer = memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]  # it is one
        done = 0
        while done < size:
            with file_errors(self.path):
                n = os.preadv(self._fd, [buffer[done:]], offset + done)
            if n == 0:
                self._ended(offset + done, what)
            done += n

    def _ended(self, offset: int, what: str) -> None:
        raise errors.DataLossError(
            None, None, f"{self.path}: the file ends at offset {offset}, in the middle of {what}"
        )

    def close(self) -> None:
        """Closes the file; nothing where it is closed."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()
