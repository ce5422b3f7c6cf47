"""Readers over queues: what TensorFlow does (record_files_records.py has its values), and what it leaves open."""

from __future__ import annotations

import gzip
import pathlib
import threading
from typing import Any

import pytest

import thalweg as tf
from thalweg.formats.records import RecordWriter
from thalweg.graph.emitter import emit


def written(path: pathlib.Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def queue_of(names: list[str], closed: bool = True) -> tuple[Any, list[Any]]:
    """A queue, and the operations that fill (and close) it."""
    queue = tf.FIFOQueue(20, [tf.string], shapes=[[]])
    return queue, [queue.enqueue_many([names]), *([queue.close()] if closed else [])]


def read_all(session: Any, pair: Any) -> list[tuple[bytes, bytes]]:
    """Everything up to the end."""
    result = []
    while True:
        try:
            key, value = session.run(list(pair))
        except tf.errors.OutOfRangeError:
            return result
        result.append((key, value))


def started(names: list[str], reader: Any, session: Any) -> tuple[Any, Any]:
    queue, fill = queue_of(names)
    for op in fill:
        session.run(op)
    return queue, reader.read(queue)


def test_lines(tmp_path: pathlib.Path) -> None:
    files = [written(tmp_path / n, d) for n, d in (("a", b"x\ry\r\nz\n\nlast"), ("b", b""), ("c", b"one\n"))]
    with tf.Graph().as_default(), tf.Session() as session:
        reader = tf.TextLineReader()
        _, pair = started(files, reader, session)
        want = [("a", 1, b"x\ry"), ("a", 2, b"z"), ("a", 3, b""), ("a", 4, b"last"), ("c", 1, b"one")]
        assert read_all(session, pair) == [(f"{tmp_path}/{n}:{i}".encode(), line) for n, i, line in want]
        assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [5, 3]
        session.run(reader.reset())
        assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [0, 0]


def test_header_lines_are_skipped(tmp_path: pathlib.Path) -> None:
    files = [written(tmp_path / n, d) for n, d in (("a", b"h1\nh2\nx\n"), ("b", b"h1"), ("c", b"h\nh\ny"))]
    with tf.Graph().as_default(), tf.Session() as session:
        _, pair = started(files, tf.TextLineReader(skip_header_lines=2), session)
        assert [v for _, v in read_all(session, pair)] == [b"x", b"y"]


@pytest.mark.parametrize(
    ("options", "want"),
    [
        (dict(record_bytes=2, header_bytes=2, footer_bytes=1), [b"aa", b"bb", b"cc", b"dd"]),
        (dict(record_bytes=3, header_bytes=2, hop_bytes=2), [b"aab", b"bbc", b"ccd", b"ddF"]),
        (dict(record_bytes=2, hop_bytes=5), [b"HH", b"bc"]),
        (dict(record_bytes=4), [b"HHaa", b"bbcc"]),
        (dict(record_bytes=100), []),
        (dict(record_bytes=1, header_bytes=100), []),
    ],
)
@pytest.mark.parametrize("encoding", ["", "GZIP"])
def test_fixed_length(tmp_path: pathlib.Path, options: dict[str, int], want: list[bytes], encoding: str) -> None:
    data = b"HHaabbccddF"
    name = written(tmp_path / "f", gzip.compress(data) if encoding else data)
    with tf.Graph().as_default(), tf.Session() as session:
        _, pair = started([name], tf.FixedLengthRecordReader(encoding=encoding, **options), session)
        assert read_all(session, pair) == [(f"{name}:{i}".encode(), v) for i, v in enumerate(want)]


def test_fixed_length_of_large_files(tmp_path: pathlib.Path) -> None:
    data = bytes(range(251)) * 4000
    name = written(tmp_path / "f", data)
    with tf.Graph().as_default(), tf.Session() as session:
        reader = tf.FixedLengthRecordReader(record_bytes=1000, header_bytes=300_001, footer_bytes=7, hop_bytes=99_999)
        _, pair = started([name], reader, session)
        starts = range(300_001, len(data) - 1007 + 1, 99_999)
        assert [v for _, v in read_all(session, pair)] == [data[i : i + 1000] for i in starts]


@pytest.mark.parametrize("options", [dict(record_bytes=0), dict(record_bytes=1, header_bytes=-1), dict(record_bytes=1, hop_bytes=-1)])
def test_lengths_must_make_sense(options: dict[str, int]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        _, pair = started(["x"], tf.FixedLengthRecordReader(**options), session)
        with pytest.raises(tf.errors.InvalidArgumentError, match="_bytes must be >="):
            session.run(pair)


def test_whole_files_and_names(tmp_path: pathlib.Path) -> None:
    name = written(tmp_path / "f", b"\0all\n")
    with tf.Graph().as_default(), tf.Session() as session:
        _, whole = started([name], tf.WholeFileReader(), session)
        assert read_all(session, whole) == [(name.encode(), b"\0all\n")]
        _, identity = started(["a", "b"], tf.IdentityReader(), session)
        assert read_all(session, identity) == [(b"a", b"a"), (b"b", b"b")]


def test_state_goes_from_one_reader_to_another() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        queue, fill = queue_of(["a", "b", "c"])
        for op in fill:
            session.run(op)
        first, second = tf.IdentityReader(), tf.IdentityReader()
        session.run(list(first.read(queue)))
        state = session.run(first.serialize_state())
        assert state == b"\x08\x01\x10\x01\x18\x01\x22\x01a"
        session.run(second.restore_state(state))
        assert session.run(second.num_records_produced()) == 1
        session.run(list(second.read(queue)))
        assert session.run(second.num_records_produced()) == 2
        session.run(second.restore_state(b"\x08\x02\x10\x01\x18\x01\x22\x02in"))  # in the middle of "in"
        assert session.run(list(second.read(queue))) == [b"in", b"in"]
        for bad in (b"\xff", b"\x08\x05\x10\x01", b"\x08\x01\x10\x02"):
            with pytest.raises(tf.errors.InvalidArgumentError, match="IdentityReader"):
                session.run(second.restore_state(bad))


def test_other_readers_keep_no_state() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        for reader in (tf.TextLineReader(), tf.TFRecordReader(), tf.FixedLengthRecordReader(1)):
            assert not reader.supports_serialize
            with pytest.raises(tf.errors.UnimplementedError, match="Reader SerializeState"):
                session.run(reader.serialize_state())
        assert tf.WholeFileReader().supports_serialize


def test_a_missing_file_is_an_error_once(tmp_path: pathlib.Path) -> None:
    name = written(tmp_path / "f", b"x\n")
    with tf.Graph().as_default(), tf.Session() as session:
        _, pair = started([f"{tmp_path}/none", name], tf.TextLineReader(), session)
        with pytest.raises(tf.errors.NotFoundError, match="none; No such file"):
            session.run(pair)
        assert session.run(list(pair))[1] == b"x"


def test_a_damaged_record_names_file_and_offset(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "r"
    with RecordWriter(path) as writer:
        writer.write(b"one")
        writer.write(b"two")
    path.write_bytes(path.read_bytes()[:-1])
    with tf.Graph().as_default(), tf.Session() as session:
        reader = tf.TFRecordReader()
        _, pair = started([str(path)], reader, session)
        assert session.run(list(pair)) == [f"{path}:0".encode(), b"one"]
        for _ in range(2):
            with pytest.raises(tf.errors.DataLossError, match=f"{path}: truncated record at 19") as caught:
                session.run(pair)
            assert caught.value.op.type == "ReaderReadV2"
        session.run(reader.reset())
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(pair)


def test_queues_must_have_one_string() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        reader = tf.TFRecordReader()
        for dtypes, message in (([tf.int64], "single string"), ([tf.string, tf.string], "single component")):
            queue = tf.FIFOQueue(2, dtypes)
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                session.run(reader.read(queue))


def test_references_as_in_the_first_graphs(tmp_path: pathlib.Path) -> None:
    name = written(tmp_path / "f", b"x\ny\n")
    with tf.Graph().as_default(), tf.Session() as session:
        queue = emit("FIFOQueue", component_types=[tf.string], shapes=[[]])
        session.run(emit.operation("QueueEnqueueMany", queue, [[name]]))
        reader = tf.ReaderBase(emit("TextLineReader"))
        assert reader.reader_ref.dtype == tf.string._as_ref
        assert session.run(list(reader.read(queue)))[1] == b"x"
        _, values = session.run(list(reader.read_up_to(queue, 5)))
        assert values.tolist() == [b"y"]
        assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [2, 1]
        session.run(reader.reset())


def test_shared_readers(tmp_path: pathlib.Path) -> None:
    name = written(tmp_path / "f", b"x\ny\nz\n")
    with tf.Graph().as_default(), tf.Session() as session:
        queue, fill = queue_of([name])
        for op in fill:
            session.run(op)
        handles = [emit("TextLineReaderV2", shared_name="r", name=n) for n in "ab"]
        got = [session.run(list(tf.ReaderBase(h).read(queue)))[1] for h in handles]
        assert got == [b"x", b"y"]
        other = tf.ReaderBase(emit("TextLineReaderV2", shared_name="r", skip_header_lines=1))
        with pytest.raises(tf.errors.InvalidArgumentError, match="skip_header_lines"):
            session.run(other.read(queue))
        wrong = tf.ReaderBase(emit("WholeFileReaderV2", shared_name="r"))
        with pytest.raises(tf.errors.InvalidArgumentError, match="type"):
            session.run(wrong.read(queue))


def test_reads_wait_for_a_name(tmp_path: pathlib.Path) -> None:
    """Several steps wait in one reader; names come later; each gets a record of its own."""
    names = [written(tmp_path / f"f{i}", b"%d\n" % i) for i in range(4)]
    with tf.Graph().as_default(), tf.Session() as session:
        queue, (fill,) = queue_of(names, closed=False)
        pair = list(tf.TextLineReader().read(queue))
        got: list[bytes] = []
        threads = [threading.Thread(target=lambda: got.append(session.run(pair)[1])) for _ in names]
        for thread in threads:
            thread.start()
        session.run(fill)
        for thread in threads:
            thread.join(20)
        assert sorted(got) == [b"0", b"1", b"2", b"3"]


def test_a_read_that_waits_ends_with_its_deadline_and_takes_nothing(tmp_path: pathlib.Path) -> None:
    name = written(tmp_path / "f", b"x\n")
    with tf.Graph().as_default(), tf.Session() as session:
        queue, (fill,) = queue_of([name], closed=False)
        pair = list(tf.TextLineReader(name="lines").read(queue))
        for _ in range(3):
            with pytest.raises(tf.errors.DeadlineExceededError, match=r"reader 'lines', which waits for queue"):
                session.run(pair, options=tf.RunOptions(timeout_in_ms=30))
        session.run(fill)
        assert session.run(pair)[1] == b"x"


def test_a_queue_that_closes_ends_the_reads_that_wait() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.FIFOQueue(2, [tf.string], shapes=[[]])
        pair = list(tf.IdentityReader().read(queue))
        close = queue.close()
        errors: list[str] = []

        def read() -> None:
            try:
                session.run(pair)
            except tf.errors.OpError as e:
                errors.append(type(e).__name__)

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        session.run(close)
        for thread in threads:
            thread.join(20)
        assert errors == ["OutOfRangeError"] * 3


def test_an_epoch_through_string_input_producer(tmp_path: pathlib.Path) -> None:
    paths = []
    for i in range(3):
        paths.append(str(tmp_path / f"r{i}"))
        with RecordWriter(paths[-1]) as writer:
            for k in range(5):
                writer.write(b"%d" % (5 * i + k))
    with tf.Graph().as_default(), tf.Session() as session:
        names = tf.train.match_filenames_once(f"{tmp_path}/r*")
        queue = tf.train.string_input_producer(names, num_epochs=2, shuffle=True)
        _, value = tf.TFRecordReader().read(queue)
        batch = tf.train.batch([tf.string_to_number(value, tf.int32)], 6, allow_smaller_final_batch=True)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        got: list[int] = []
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                got += session.run(batch).tolist()
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=20)
        assert sorted(got) == sorted(list(range(15)) * 2)
