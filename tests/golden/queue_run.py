"""What the queue programs run in: a graph and a session, and notes of what came out."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

#: names that TensorFlow gives a resource inside errors: '_0_fifo_queue'
_PRIVATE = re.compile(r"(?<=[' ])_\d+_")


class Run:
    """One program's graph and session, and its notes. flow: where StagingArea and Barrier are."""

    def __init__(self, tf: Any, flow: Any, session: Any) -> None:
        self.tf = tf
        self.flow = flow
        self.session = session
        self.notes: list[Any] = []

    def note(self, fetches: Any, feed_dict: Any = None) -> None:
        """Runs, and notes the values or the error."""
        try:
            self.notes.append(plain(self.session.run(fetches, feed_dict)))
        except self.tf.errors.OpError as e:
            self.notes.append([type(e).__name__, self._text(e)])

    def fails(self, make: Callable[[], Any]) -> None:
        """Notes the class of the error that building nodes raises."""
        try:
            make()
        except (TypeError, ValueError) as e:
            self.notes.append(type(e).__name__)
        else:
            self.notes.append("no error")

    def times_out(self, fetches: Any) -> None:
        """Notes that a run takes longer than it may."""
        try:
            self.session.run(fetches, options=self.tf.RunOptions(timeout_in_ms=200))
        except self.tf.errors.DeadlineExceededError:
            self.notes.append("timed out")
        else:
            self.notes.append("came back")

    def run(self, fetches: Any, feed_dict: Any = None) -> Any:
        return self.session.run(fetches, feed_dict)

    def text_of(self, error: Any) -> str:
        return self._text(error)

    @staticmethod
    def _text(error: Any) -> str:
        """The part of a message that says what is wrong."""
        lines = [line for line in error.message.split("\n") if line.strip()]
        marks = ("is closed", "already closed", "insufficient", "mismatch", "require", "was cancelled",
                 "has ", "must be", "xpected", "<", "Reached limit")  # fmt: skip
        skip = ("Detected at", "Original stack", "Graph execution", "  ", "Node:", "\t")
        for line in lines:
            if not line.startswith(skip) and any(mark in line for mark in marks):
                text = re.sub(r"^\w+ '[^']*': ", "", line.strip())
                return _PRIVATE.sub("", re.sub(r"^\(\d+\) \w+: ", "", text))
        return lines[0]


def plain(value: Any) -> Any:
    """A value as JSON."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [plain(v) for v in value]
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in sorted(value.items())}
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype == object or array.dtype.kind == "S":
        return [v.decode() for v in array.reshape(-1)] if array.ndim else array.item().decode()
    return [array.dtype.name, list(array.shape), array.reshape(-1).tolist()]


def in_thread(function: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def programs_of(namespace: dict[str, Any]) -> dict[str, Callable[[Run], None]]:
    """The programs of a module: its functions of a Run."""
    return {
        name: function
        for name, function in namespace.items()
        if callable(function)
        and list(getattr(function, "__annotations__", {}).items()) == [("r", "Run"), ("return", "None")]
    }


def record(tf: Any, flow: Any, program: Callable[[Run], None]) -> dict[str, Any]:
    """What a program notes, and its nodes."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        run = Run(tf, flow, session)
        program(run)
        nodes = [f"{op.name} = {op.type}" for op in graph.get_operations()]
    return {"notes": run.notes, "nodes": nodes}
