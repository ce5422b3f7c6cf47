"""A directory of compiled executables that several processes share.

An entry is one file: a magic word, the length of a JSON header, the header, the
compiler's bytes, and a SHA-256 over all of that. Nothing in it is a pickle. The
bytes are machine code, so the directory must be as private as a program is: it is
made with mode 0700, and one that others own or can write to is refused.

Writers write aside and rename, so a reader meets a whole entry or none. An entry
that fails its checksum is removed and counts as a miss. Input and output errors
(a full disk, a vanished directory) never fail a compile: they are logged and the
cache behaves as if it were empty.
"""

import contextlib
import hashlib
import json
import logging
import os
import stat
import struct
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)

_MAGIC = b"thalweg-xla-1\n\0\0"
_LENGTH = struct.Struct("<I")
_DIGEST_BYTES = 32
_SUFFIX = ".xla"
_ASIDE = ".aside-"
# A file aside this old was left by a process that died while writing.
_ASIDE_SECONDS = 3600.0
# A read marks its entry as recent, but not more often than this.
_TOUCH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Entry:
    """What one cache file holds: a JSON object and the serialized executable."""

    header: dict[str, Any]
    payload: bytes


class ExecutableCache:
    """Executables by content key, kept in `directory`, at most about `max_bytes`.

    Safe to use from any number of threads and processes at once. When a put takes
    the directory over `max_bytes`, the entries used longest ago go first.

    Raises:
      PermissionError: `directory` belongs to someone else, or others may write to it.
      OSError: `directory` doesn't exist and can't be made.
    """

    def __init__(self, directory: str | os.PathLike[str], max_bytes: int = 1 << 30) -> None:
        if max_bytes <= 0:
            raise ValueError(f"max_bytes must be positive, got {max_bytes}")
        self.directory = Path(directory)
        self.max_bytes = max_bytes
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(self.directory)

    def get(self, key: str) -> Entry | None:
        """The entry under `key`, or None. A damaged entry is removed."""
        path = self._path(key)
        try:
            with path.open("rb") as file:
                data = file.read()
                written = os.fstat(file.fileno()).st_mtime
            if time.time() - written > _TOUCH_SECONDS:
                os.utime(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("executable cache: can't read %s: %s", path, error)
            return None
        entry = _decode(data)
        if entry is None or entry.header.get("key") != key:
            _log.warning("executable cache: %s is damaged; it is removed", path)
            self.remove(key)
            return None
        return entry

    def put(self, key: str, header: dict[str, Any], payload: bytes) -> None:
        """Store an entry, replacing what was under `key`; then evict if need be.

        `header` is a JSON object; the cache adds its own field "key".
        """
        data = _encode({**header, "key": key}, payload)
        if len(data) > self.max_bytes:
            _log.info("executable cache: an entry of %d bytes is over the limit", len(data))
            return
        aside = None
        try:
            handle, aside = tempfile.mkstemp(prefix=_ASIDE, dir=self.directory)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(aside, self._path(key))
            self._evict()
        except OSError as error:
            _log.warning("executable cache: can't write to %s: %s", self.directory, error)
            if aside is not None:
                with contextlib.suppress(OSError):
                    os.unlink(aside)

    def remove(self, key: str) -> None:
        """Forget `key`. Nothing happens if it isn't there."""
        with contextlib.suppress(OSError):
            self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        # The key is the caller's text; its digest is a safe file name of fixed length.
        return self.directory / (hashlib.sha256(key.encode()).hexdigest()[:40] + _SUFFIX)

    def _evict(self) -> None:
        entries: list[tuple[float, int, str]] = []
        with os.scandir(self.directory) as files:
            for file in files:
                with contextlib.suppress(FileNotFoundError):  # another process evicts too
                    info = file.stat(follow_symlinks=False)
                    if file.name.endswith(_SUFFIX):
                        entries.append((info.st_mtime, info.st_size, file.path))
                    elif file.name.startswith(_ASIDE):
                        if time.time() - info.st_mtime > _ASIDE_SECONDS:
                            os.unlink(file.path)
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.max_bytes:
                return
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            total -= size


def _check_private(directory: Path) -> None:
    """Refuse a directory from which someone else could feed us machine code."""
    if os.name != "posix":
        return
    info = directory.stat()
    if info.st_uid != os.geteuid():
        raise PermissionError(
            f"executable cache {directory} belongs to user {info.st_uid}, not to {os.geteuid()}"
        )
    if stat.S_IMODE(info.st_mode) & 0o022:
        raise PermissionError(
            f"executable cache {directory} can be written by others; make it private: chmod 700 {directory}"
        )


def _encode(header: dict[str, Any], payload: bytes) -> bytes:
    text = json.dumps(header, sort_keys=True).encode()
    body = b"".join((_MAGIC, _LENGTH.pack(len(text)), text, payload))
    return body + hashlib.sha256(body).digest()


def _decode(data: bytes) -> Entry | None:
    """The entry in `data`, or None if it isn't one, whole and undamaged."""
    start = len(_MAGIC) + _LENGTH.size
    if len(data) < start + _DIGEST_BYTES or not data.startswith(_MAGIC):
        return None
    view = memoryview(data)
    body, digest = view[:-_DIGEST_BYTES], view[-_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        return None
    (length,) = _LENGTH.unpack_from(data, len(_MAGIC))
    end = start + length
    if end > len(body):
        return None
    try:
        header = json.loads(bytes(body[start:end]))
    except ValueError:
        return None
    return Entry(header, bytes(body[end:])) if isinstance(header, dict) else None
