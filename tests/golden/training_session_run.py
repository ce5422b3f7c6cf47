"""What the programs in training_session_programs.py run in: a graph, a folder, and notes of what came out."""

from __future__ import annotations

import glob
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class Run:
    """One program's graph and folder, and its notes."""

    def __init__(self, tf: Any, folder: str) -> None:
        self.tf = tf
        self.folder = folder
        self.notes: list[Any] = []

    def note(self, *values: Any) -> None:
        """Notes values, as JSON holds them."""
        self.notes.append([plain(v) for v in values] if len(values) != 1 else plain(values[0]))

    @contextmanager
    def noting_error(self) -> Iterator[None]:
        """Notes the class of the error that ends the block."""
        try:
            yield
        except Exception as e:
            self.notes.append(f"{type(e).__name__}")
        else:
            self.notes.append("no error")

    def path(self, *parts: str) -> str:
        return os.path.join(self.folder, *parts)

    def files(self, folder: str = "") -> None:
        """Notes the names of the files in the folder."""
        names = [re.sub(r"events\.out\.tfevents\.\d{10}\..*?(\.\w*suffix)?$", r"events\1", n) for n in os.listdir(self.path(folder))]
        self.note(sorted(names))

    def events(self, folder: str = "", values: bool = True) -> None:
        """Notes the events in the folder, file by file: kind, step, tags and numbers (no times)."""
        for path in sorted(glob.glob(self.path(folder, "events.out.tfevents.*"))):
            self.note([event(e, values) for e in self.tf.train.summary_iterator(path)])

    @contextmanager
    def log(self) -> Iterator[None]:
        """Notes what is logged inside, without times."""
        handler = _Lines()
        logger = logging.getLogger("tensorflow")
        before = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before)
        self.note(handler.lines)


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = re.sub(r"\(\d+\.\d+ sec\)", "(... sec)", record.getMessage())
        line = re.sub(r"(/sec: ).*", r"\1...", line)
        self.lines.append(re.sub(r"/\S*/thalweg_run_\w+", "<folder>", line))


def event(e: Any, values: bool) -> Any:
    kind = e.WhichOneof("what")
    if kind == "file_version":
        return [kind, e.file_version]
    if kind == "summary":
        return [kind, e.step, [[v.tag, summary_value(v) if values else v.WhichOneof("value")] for v in e.summary.value]]
    if kind == "session_log":
        path = os.path.basename(e.session_log.checkpoint_path)
        return [kind, e.step, e.session_log.status, path]
    if kind == "tagged_run_metadata":
        return [kind, e.step, e.tagged_run_metadata.tag]
    return [kind, e.step]


def summary_value(v: Any) -> Any:
    kind = v.WhichOneof("value")
    if kind == "simple_value":
        return ["..."] if v.tag.endswith("/sec") else [kind, round(v.simple_value, 5)]
    if kind == "histo":
        return [kind, v.histo.num, round(v.histo.min, 5), round(v.histo.max, 5)]
    if kind == "tensor":
        return [kind, v.metadata.plugin_data.plugin_name, [s.decode() for s in v.tensor.string_val]]
    if kind == "image":
        return [kind, v.image.height, v.image.width, v.image.colorspace]
    if kind == "audio":
        return [kind, v.audio.sample_rate, v.audio.num_channels, v.audio.length_frames, v.audio.content_type]
    return kind


def plain(value: Any) -> Any:
    """A value as JSON; numbers with five digits after the point."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return "nan" if value != value else round(value, 5)
    if value is None or isinstance(value, bool | int | str):
        return value
    return type(value).__name__


def programs_of(namespace: dict[str, Any]) -> dict[str, Callable[[Run], None]]:
    """The programs of a module: its functions of a Run."""
    return {
        name: function
        for name, function in namespace.items()
        if callable(function)
        and list(getattr(function, "__annotations__", {}).items()) == [("r", "Run"), ("return", "None")]
    }


def record(tf: Any, program: Callable[[Run], None]) -> list[Any]:
    """What a program notes."""
    folder = tempfile.mkdtemp(prefix="thalweg_run_")
    try:
        with tf.Graph().as_default():
            run = Run(tf, folder)
            program(run)
        return run.notes
    finally:
        tf.summary.FileWriterCache.clear()
        shutil.rmtree(folder, ignore_errors=True)
