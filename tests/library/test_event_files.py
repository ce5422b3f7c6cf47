"""Event files beside TensorFlow's (tests/golden/record_files_events.py), and how their writer behaves."""

from __future__ import annotations

import gc
import io
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from PIL import Image

import thalweg as tf
from thalweg.formats.records import RecordWriter
from thalweg.library.event_writer import EventFileWriter

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import files_events  # noqa: E402

FILES = GOLDEN / "data" / "files"
RECORDED = json.loads((FILES / "events.json").read_text())


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)))


def event(step: int) -> Any:
    return tf.Event(step=step, summary=tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=step)]))


def steps(folder: Any) -> list[list[int]]:
    """The steps in each file of the folder, in the order of names; the first event aside."""
    paths = sorted(pathlib.Path(folder).glob("events.out.tfevents.*"))
    return [[e.step for e in tf.train.summary_iterator(p)][1:] for p in paths]


def test_reads_what_tensorflow_wrote(tmp_path: pathlib.Path) -> None:
    copy = tmp_path / "events.out.tfevents.0"
    copy.write_bytes((FILES / "events.tfevents").read_bytes())
    assert json.loads(json.dumps(files_events.read(tf, str(tmp_path), pixels))) == RECORDED


def test_writes_what_tensorflow_wrote(tmp_path: pathlib.Path) -> None:
    files_events.write(tf, str(tmp_path))
    assert json.loads(json.dumps(files_events.read(tf, str(tmp_path), pixels))) == RECORDED


def test_damaged_files(tmp_path: pathlib.Path) -> None:
    data = (FILES / "events.tfevents").read_bytes()
    path = tmp_path / "events"
    for damaged in (data[:-5], data[:100] + b"x" + data[101:], b"no event file at all"):
        path.write_bytes(damaged)
        with pytest.raises(tf.errors.DataLossError, match="events"):
            list(tf.train.summary_iterator(path))
    with RecordWriter(path) as writer:
        writer.write(b"\xff\xff")
    with pytest.raises(tf.errors.DataLossError, match="record 0 is no Event"):
        list(tf.train.summary_iterator(path))
    path.write_bytes(b"")
    assert list(tf.train.summary_iterator(path)) == []
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        next(tf.train.summary_iterator(tmp_path / "nowhere"))


def test_the_largest_number_in_a_histogram() -> None:
    """TensorFlow writes outside of its array of buckets here."""
    largest = np.finfo(np.float64).max
    with tf.Graph().as_default(), tf.Session() as session:
        summary = tf.Summary.FromString(session.run(tf.summary.histogram("h", tf.constant([largest, -1e300], tf.float64))))
    histogram = summary.value[0].histo
    assert histogram.bucket[-1] == 1
    assert histogram.bucket_limit[-1] == largest
    assert sum(histogram.bucket) == 2


def test_the_old_audio_op() -> None:
    sound = np.zeros((1, 4, 2), np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        new = tf.raw_ops.AudioSummaryV2(tag="a", tensor=sound, sample_rate=8000.0)
        old = tf.raw_ops.AudioSummary(tag="a", tensor=sound, sample_rate=8000.0)
        assert session.run(old) == session.run(new)


def loggers() -> int:
    """How many threads write events."""
    return sum(t.name == "EventLoggerThread" for t in threading.enumerate())


# ---- the writer ------------------------------------------------------------------------------------------


def test_what_is_added_later_is_not_what_was_added(tmp_path: pathlib.Path) -> None:
    writer = EventFileWriter(tmp_path)
    added = event(1)
    writer.add_event(added)
    added.step = 2
    writer.close()
    assert steps(tmp_path) == [[1]]


def test_reopened_writers_overwrite_nothing(tmp_path: pathlib.Path) -> None:
    """In TensorFlow a file of the same second is lost."""
    writer = EventFileWriter(tmp_path, filename_suffix=".mine")
    for i in range(3):
        writer.add_event(event(i))
        writer.close()
        writer.add_event(event(100))
        writer.reopen()
        writer.reopen()
    writer.add_event(event(3))
    writer.close()
    other = EventFileWriter(tmp_path, filename_suffix=".mine")
    other.add_event(event(4))
    other.close()
    assert [s for file in steps(tmp_path) for s in file] == [0, 1, 2, 3, 4]


def test_nothing_is_made_before_there_is_an_event(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "a" / "b"
    writer = EventFileWriter(folder)
    assert list(folder.iterdir()) == []
    writer.flush()
    assert steps(folder) == [[]]
    writer.close()


def test_the_first_event_is_there_at_once_and_flush_waits(tmp_path: pathlib.Path) -> None:
    writer = EventFileWriter(tmp_path, flush_secs=1000)
    writer.add_event(event(1))
    deadline = time.monotonic() + 10
    while steps(tmp_path) != [[1]] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert steps(tmp_path) == [[1]]
    for i in range(2, 100):
        writer.add_event(event(i))
    writer.flush()
    assert steps(tmp_path) == [list(range(1, 100))]
    writer.close()


def test_an_idle_writer_flushes(tmp_path: pathlib.Path) -> None:
    writer = EventFileWriter(tmp_path, flush_secs=0.05)
    for i in range(3):
        writer.add_event(event(i))
    deadline = time.monotonic() + 10
    while steps(tmp_path) != [[0, 1, 2]] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert steps(tmp_path) == [[0, 1, 2]]
    writer.close()


def test_many_threads(tmp_path: pathlib.Path) -> None:
    writer = EventFileWriter(tmp_path, max_queue=2)

    def work(first: int) -> None:
        for i in range(first, first + 50):
            writer.add_event(event(i))
        writer.flush()

    threads = [threading.Thread(target=work, args=(50 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    (found,) = steps(tmp_path)
    assert sorted(found) == list(range(200))


def test_a_deleted_file_starts_anew(tmp_path: pathlib.Path) -> None:
    writer = EventFileWriter(tmp_path)
    writer.add_event(event(1))
    writer.flush()
    for path in tmp_path.iterdir():
        path.unlink()
    writer.add_event(event(2))
    writer.close()
    assert steps(tmp_path) == [[2]]


def test_errors_of_the_file_are_raised_where_events_are_added(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "f"
    writer = EventFileWriter(folder, max_queue=1)
    folder.rmdir()
    with pytest.raises(tf.errors.NotFoundError, match="tfevents"):
        for i in range(100):
            writer.add_event(event(i))
    with pytest.raises(tf.errors.NotFoundError, match="tfevents"):
        writer.flush()
    with pytest.raises(tf.errors.NotFoundError, match="tfevents"):
        writer.close()
    writer.close()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(tf.errors.OpError, match="file"):
        EventFileWriter(tmp_path / "file")


def test_writers_that_are_forgotten_are_closed(tmp_path: pathlib.Path) -> None:
    writer = EventFileWriter(tmp_path, flush_secs=1000)
    for i in range(5):
        writer.add_event(event(i))
    before = loggers()
    del writer
    gc.collect()
    assert loggers() < before
    assert steps(tmp_path) == [[0, 1, 2, 3, 4]]


def test_what_was_added_is_written_when_the_program_ends(tmp_path: pathlib.Path) -> None:
    program = (
        "import sys, thalweg as tf\n"
        "writer = tf.summary.FileWriter(sys.argv[1])\n"
        "for i in range(50):\n"
        "    writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag='t', simple_value=i)]), i)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], env=environment, check=True, timeout=60)
    assert steps(tmp_path) == [list(range(50))]
