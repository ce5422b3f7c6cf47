"""The ops that save and restore, without a Saver."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

import thalweg as tf
from thalweg.ops import checkpoint

FILES = Path(__file__).parent.parent / "golden" / "data" / "files" / "checkpoints"


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def _save(path: Any, **tensors: Any) -> Any:
    return tf.raw_ops.SaveV2(
        prefix=str(path), tensor_names=list(tensors), shape_and_slices=[""] * len(tensors), tensors=list(tensors.values())
    )


def _restore(path: Any, names: list[str], types: list[Any], slices: list[str] | None = None) -> Any:
    return tf.raw_ops.RestoreV2(
        prefix=str(path), tensor_names=names, shape_and_slices=slices or [""] * len(names), dtypes=types
    )


def _run(*fetches: Any) -> Any:
    with tf.Session() as session:
        return session.run(*fetches)


@pytest.mark.parametrize("op_by_op", [False, True])
def test_save_and_restore(tmp_path: Path, op_by_op: bool) -> None:
    config = tf.ConfigProto()
    if op_by_op:
        config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.OFF
    x = tf.constant([[1.0, 2.0]])
    save = _save(tmp_path / "m", computed=tf.matmul(x, x, transpose_b=True), s=tf.constant([b"a", b"\xff"]))
    restore = _restore(tmp_path / "m", ["s", "computed"], [tf.string, tf.float32])
    with tf.Session(config=config) as session:
        session.run(save)
        strings, numbers = session.run(restore)
    assert strings.tolist() == [b"a", b"\xff"] and numbers.tolist() == [[5.0]]


def test_static_shapes(tmp_path: Path) -> None:
    a, b = _restore("x", ["a", "b"], [tf.float32] * 2, ["", "10 6 0,5:-"])
    assert a.shape.rank is None and b.shape == (5, 6)
    with pytest.raises(ValueError, match="no shape and slice"):
        _restore("x", ["a"], [tf.float32], ["10 6 0,5"])
    with pytest.raises(ValueError, match="2 tensors to restore, but 1 slices"):
        _restore("x", ["a", "b"], [tf.float32] * 2, [""])
    with pytest.raises(ValueError, match="1 tensors to save, but 2 names"):
        tf.raw_ops.SaveV2(prefix="x", tensor_names=["a", "b"], shape_and_slices=[""], tensors=[1.0])
    assert tf.raw_ops.RestoreSlice(file_pattern="x", tensor_name="a", shape_and_slice="4 0,2", dt=tf.int32).shape == (2,)
    assert tf.raw_ops.ShardedFilename(basename="a", shard=1, num_shards=2).shape == ()


def test_all_that_is_wrong_is_said_at_once() -> None:
    fetch = _restore(FILES / "v2", ["rows", "nothing", "rowz", "grid"], [tf.float64, tf.int32, tf.int32, tf.float32])
    with pytest.raises(tf.errors.NotFoundError) as info:
        _run(fetch)
    text = str(info.value)
    assert "RestoreV2 'RestoreV2'" in text and "3 tensors don't fit" in text and "test_checkpoint_ops.py" in text
    assert "Key nothing not found" in text and "Key rowz not found in checkpoint; there are rows" in text
    assert "expected dtype float64 does not equal original dtype float32" in text


def test_sizes_found_at_run_time(tmp_path: Path) -> None:
    names = tf.placeholder(tf.string, [None])
    save = tf.raw_ops.SaveV2(prefix=str(tmp_path / "m"), tensor_names=names, shape_and_slices=[""], tensors=[1.0])
    restore = tf.raw_ops.RestoreV2(prefix=str(tmp_path / "m"), tensor_names=names, shape_and_slices=[""], dtypes=[tf.float32])
    with tf.Session() as session:
        for op in (save, restore):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"got 2 names and 1 slices for 1 tensors"):
                session.run(op, {names: ["a", "b"]})
    assert os.listdir(tmp_path) == []


def test_a_save_that_fails_leaves_nothing(tmp_path: Path) -> None:
    for slices, text in ((["3 0,2"], "another shape than the value"), (["nonsense"], "no shape and slice")):
        save = tf.raw_ops.SaveV2(prefix=str(tmp_path / "m"), tensor_names=["a"], shape_and_slices=slices, tensors=[[1.0]])
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            _run(save)
    assert os.listdir(tmp_path) == []


def test_merge(tmp_path: Path) -> None:
    parts = [str(tmp_path / "m_temp" / f"part-{i}") for i in range(2)]
    saves = [_save(parts[0], a=1.0), _save(parts[1], b=2.0)]
    with tf.control_dependencies(saves):
        merge = tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=str(tmp_path / "m"))
    _run(merge)
    assert sorted(os.listdir(tmp_path)) == ["m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"]
    assert _run(_restore(tmp_path / "m", ["a", "b"], [tf.float32] * 2)) == [1.0, 2.0]
    with pytest.raises(tf.errors.NotFoundError, match="MergeV2Checkpoints"):
        _run(tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=["nothing"], destination_prefix=str(tmp_path / "m")))


def test_version_1() -> None:
    pattern = str(FILES / "v1-?????-of-00002")
    whole = tf.raw_ops.Restore(file_pattern=pattern, tensor_name="rows", dt=tf.float32)
    part = tf.raw_ops.RestoreSlice(file_pattern=pattern, tensor_name="rows", shape_and_slice="10 6 2,5:1,2", dt=tf.float32)
    both = _restore(pattern, ["rows", "types/int32"], [tf.float32, tf.int32])
    x, y, (z, _) = _run([whole, part, both])
    assert (x[2:7, 1:3] == y).all() and (x == z).all()
    with pytest.raises(tf.errors.NotFoundError, match="Key row not found"):
        _run(tf.raw_ops.Restore(file_pattern=pattern, tensor_name="row", dt=tf.float32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="dtype int32"):
        _run(tf.raw_ops.Restore(file_pattern=pattern, tensor_name="rows", dt=tf.int32))


def test_saving_version_1(tmp_path: Path) -> None:
    path = str(tmp_path / "m")
    _run(tf.raw_ops.Save(filename=path, tensor_names=["b", "a"], data=[[1.0], tf.constant([b"x"])]))
    assert os.listdir(tmp_path) == ["m"]
    assert tf.train.list_variables(path) == [("a", [1]), ("b", [1])]
    save = tf.raw_ops.SaveSlices(
        filename=path, tensor_names=["t", "t", "u"], shapes_and_slices=["2 2 0,1:-", "2 2 1,1:-", ""], data=[[[1, 2]], [[3, 4]], 5]
    )
    _run(save)
    assert tf.train.load_variable(path, "t").tolist() == [[1, 2], [3, 4]] and tf.train.load_variable(path, "u") == 5


def test_version_1_refuses(tmp_path: Path) -> None:
    path = str(tmp_path / "m")

    def save(names: list[str], data: list[Any], slices: list[str] | None = None) -> None:
        slices = slices or [""] * len(names)
        _run(tf.raw_ops.SaveSlices(filename=path, tensor_names=names, shapes_and_slices=slices, data=data))

    for arguments, text in (
        ((["a"], [tf.constant(1, tf.uint32)]), "data type uint32"),
        ((["a", "a"], [1, 2]), "twice"),
        ((["a", "b"], [1]), "2 names and 2 slices for 1 tensors"),
        ((["a"], [[1]], ["3 0,2"]), "another shape"),
        ((["a", "a"], [[1], [2]], ["3 0,1", "4 1,1"]), "don't agree"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            save(*arguments)
    with pytest.raises(tf.errors.NotFoundError):
        _run(tf.raw_ops.Save(filename=str(tmp_path / "none" / "m"), tensor_names=["a"], data=[1]))
    assert os.listdir(tmp_path) == []


def test_file_names() -> None:
    name = tf.raw_ops.ShardedFilename(basename="a/b", shard=3, num_shards=12)
    spec = tf.raw_ops.ShardedFilespec(basename="a/b", num_shards=12)
    assert _run([name, spec]) == [b"a/b-00003-of-00012", b"a/b-?????-of-00012"]


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_checkpoint_is_of_one_moment(tmp_path: Path, use_resource: bool) -> None:
    """Updates of other threads wait for a save: all variables are as they were at one time."""
    variables = [tf.get_variable(f"v{i}", [50000], initializer=tf.zeros_initializer(), use_resource=use_resource) for i in range(4)]
    step = tf.group(*[v.assign_add(tf.ones([50000])) for v in variables])
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        stop = threading.Event()

        def train() -> None:
            while not stop.is_set():
                session.run(step)

        thread = threading.Thread(target=train)
        thread.start()
        try:
            for i in range(5):
                path = saver.save(session, str(tmp_path / "m"), global_step=i, write_meta_graph=False)
                values = [tf.train.load_variable(path, f"v{k}") for k in range(4)]
                assert all((v == values[0][0]).all() for v in values)
        finally:
            stop.set()
            thread.join()


def test_reads_under_control_dependencies(tmp_path: Path) -> None:
    """A read that others wait for isn't put off until the save."""
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    value = v.read_value()
    with tf.control_dependencies([value]):
        assign = v.assign(2.0, read_value=False)
    with tf.control_dependencies([assign]):
        save = _save(tmp_path / "before", v=value)
        after = _save(tmp_path / "after", v=v.read_value())
    with tf.Session() as session:
        session.run(v.initializer)
        session.run([save, after])
    assert tf.train.load_variable(str(tmp_path / "before"), "v") == 1.0
    assert tf.train.load_variable(str(tmp_path / "after"), "v") == 2.0


def test_a_cancelled_save_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(self: Any, *_: Any) -> None:
        started.set()
        assert go_on.wait(30)

    monkeypatch.setattr(checkpoint.BundleWriter, "add", slow)
    save = _save(tmp_path / "m", a=1.0, b=2.0)
    failures: list[Exception] = []

    def run() -> None:
        try:
            session.run(save)
        except tf.errors.CancelledError as e:
            failures.append(e)

    session = tf.Session()
    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(30)
    session.close()  # cancels the step
    go_on.set()
    thread.join(30)
    assert len(failures) == 1 and os.listdir(tmp_path) == []
