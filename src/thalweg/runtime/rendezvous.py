"""Where Sends and Recvs of one step meet: messages by key. A state machine; nothing here waits or moves data.

A key is TensorFlow's: `send device;incarnation in hex;recv device;tensor name;frame:iteration`. The
incarnation tells a device from one of the same name in a process that is gone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from thalweg.base import device_name
from thalweg.base.errors import InternalError, InvalidArgumentError, OpError
from thalweg.graph.operation import Operation
from thalweg.runtime.waiting import Done, Resource, Wait, tell_all


class _Dead:
    """The message that there will be no value: what was sent is on the branch that wasn't taken."""

    def __repr__(self) -> str:
        return "<dead>"


DEAD = _Dead()

#: frame and iteration of what is in no loop
NO_LOOP = "0:0"


class Key(NamedTuple):
    """The parts of a key."""

    send_device: str
    incarnation: int
    recv_device: str
    tensor_name: str
    frame: int = 0
    iteration: int = 0

    def __str__(self) -> str:
        return f"{self.prefix}{self.frame}:{self.iteration}"

    @property
    def prefix(self) -> str:
        """All but frame and iteration, up to the last semicolon."""
        return f"{self.send_device};{self.incarnation:x};{self.recv_device};{self.tensor_name};"

    def check(self) -> Key:
        """The key; InvalidArgumentError where a part can't be one."""
        for part, name in (("send_device", self.send_device), ("recv_device", self.recv_device)):
            if ";" in name or not _is_full(name):
                raise _malformed(str(self), f"{part} '{name}' is not the full name of a device")
        if not self.tensor_name or ";" in self.tensor_name:
            raise _malformed(str(self), f"'{self.tensor_name}' can't be a tensor's name")
        return self


def parse_key(text: str) -> Key:
    """The parts of a key. InvalidArgumentError, which says what is wrong, where it isn't of its form."""
    parts = text.split(";")
    if len(parts) != 5:
        raise _malformed(text, f"it has {len(parts)} parts between semicolons, not 5")
    send, incarnation, recv, name, place = parts
    frame, colon, iteration = place.partition(":")
    if not colon or not _is_number(frame) or not _is_number(iteration):
        raise _malformed(text, f"'{place}' is not FRAME:ITERATION")
    try:
        if not incarnation or incarnation.strip("0123456789abcdefABCDEF"):
            raise ValueError
        number = int(incarnation, 16)
    except ValueError:
        raise _malformed(text, f"the incarnation '{incarnation}' is not a hexadecimal number") from None
    return Key(send, number, recv, name, int(frame), int(iteration)).check()


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _is_full(name: str) -> bool:
    try:
        return None not in device_name.parse(name)
    except ValueError:
        return False


def _malformed(text: str, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        None, None, f"Invalid rendezvous key '{text}': {why}. Expected 'SEND_DEVICE;INCARNATION;RECV_DEVICE;"
        "TENSOR;FRAME:ITERATION'",
    )  # fmt: skip


class Rendezvous(Resource):
    """The messages of one step that were sent and not received yet, and who waits for which. Thread-safe.

    Each key is sent once and received once, in either order. After `abort` what is sent is dropped, and who
    receives gets the error.
    """

    def __init__(self) -> None:
        super().__init__("rendezvous")
        self._values: dict[str, Any] = {}
        self._waiting: dict[str, Wait] = {}
        self._keys: dict[Wait, str] = {}
        self._error: OpError | None = None

    def __len__(self) -> int:
        return len(self._values) + len(self._waiting)

    def put(self, key: str, value: Any, op: Operation | None = None) -> bool:
        """A message, sent by op: a value or DEAD. Whether somebody waited for it.

        InternalError where the key was sent before and not received yet.
        """
        with self.lock:
            if self._error is not None:
                return False
            wait = self._waiting.pop(key, None)
            if wait is None:
                if key in self._values:
                    raise InternalError(None, op, f"The message '{key}' was sent twice")
                self._values[key] = value
                return False
            del self._keys[wait]
            wait.end(value)
        wait.tell()
        return True

    def take(self, key: str, op: Operation) -> Wait | Done:
        """The future of a message, for op: its result is what was sent."""
        with self.lock:
            if self._error is None:
                if key in self._values:
                    return Done(self._values.pop(key))
                if key in self._waiting:
                    raise InternalError(None, op, f"The message '{key}' is received twice")
            wait = Wait(self, op)
            if self._error is not None:
                wait.end(error=self._error)
            else:
                self._waiting[key] = wait
                self._keys[wait] = key
            return wait

    def abort(self, error: OpError) -> None:
        """Drops all messages and ends all waits with the error; later ones too. The first error is kept."""
        with self.lock:
            if self._error is None:
                self._error = error
            ended = list(self._waiting.values())
            self._values.clear()
            self._waiting.clear()
            self._keys.clear()
            for wait in ended:
                wait.end(error=self._error)
        tell_all(ended)

    def unreceived(self) -> list[str]:
        """The keys of messages that nobody has taken."""
        with self.lock:
            return list(self._values)

    def forget(self, wait: Wait) -> None:
        """See Resource."""
        key = self._keys.pop(wait, None)
        if key is not None:  # else KeyboardInterrupt came while it was told
            self._waiting.pop(key, None)

    def advance(self, ended: list[Wait]) -> None:
        """See Resource: one message ends one wait, in `put`."""

    def describe(self, wait: Wait) -> str:
        """See Wait.describe."""
        key = self._keys.get(wait)
        if key is None:
            return "a message"
        name = parse_key(key)
        where = f", iteration {name.iteration}" if name.frame else ""
        return f"'{name.tensor_name}' from {name.send_device}{where}"
