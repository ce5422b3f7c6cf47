"""Saver, the state file, readers, init_from_checkpoint: what programs see."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.library import saver_builder

GOLDEN = Path(__file__).parent.parent / "golden"
FILES = GOLDEN / "data" / "files" / "checkpoints"
sys.path.insert(0, str(GOLDEN))

import checkpoint_values as cv  # noqa: E402


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def _start(*tensors: Any) -> Any:
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


def _files(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("arguments", [{}, {"sharded": True}, {"reshape": True}, {"restore_sequentially": True}, {"builder": "base"}])
def test_save_and_restore(tmp_path: Path, use_resource: bool, arguments: dict[str, Any]) -> None:
    with tf.variable_scope("net", use_resource=use_resource):
        a = tf.get_variable("a", initializer=np.arange(6, dtype=np.float32).reshape(2, 3))
        b = tf.get_variable("b", initializer=[True, False], dtype=tf.bool)
        s = tf.Variable([b"\xff\x00", b""], name="s", use_resource=use_resource)
        p = tf.get_variable("p", [5, 2], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(3))
    if arguments.get("builder") == "base":
        arguments = {"builder": saver_builder.BaseSaverBuilder()}
    saver = tf.train.Saver(**arguments)
    clear = [tf.assign(a, tf.zeros([2, 3])), tf.assign(b, [False, True]), tf.assign(s, [b"x", b"y"])]
    clear += [tf.assign(v, tf.zeros(v.shape)) for v in p]
    with _start() as session:
        path = saver.save(session, str(tmp_path / "model"))
        assert path == str(tmp_path / "model")
        before = session.run([a, b, s, p.as_tensor()])
        session.run(clear)
        saver.restore(session, path)
        for x, y in zip(before, session.run([a, b, s, p.as_tensor()]), strict=True):
            assert x.tolist() == y.tolist()
    data = "model.data-00000-of-00001"
    assert _files(tmp_path) == ["checkpoint", data, "model.index", "model.meta"]
    assert tf.train.list_variables(path) == [("net/a", [2, 3]), ("net/b", [2]), ("net/p", [5, 2]), ("net/s", [2])]


def test_names(tmp_path: Path) -> None:
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
    saver = tf.train.Saver({"x/y": a, "z": b})
    with _start() as session:
        path = saver.save(session, str(tmp_path / "m"), write_meta_graph=False)
        assert tf.train.load_variable(path, "x/y") == 1.0
        swapped = tf.train.Saver({"z": a, "x/y": b})
        swapped.restore(session, path)
        assert session.run([a, b]) == [2.0, 1.0]


def test_a_slice_of_a_whole_tensor(tmp_path: Path) -> None:
    """A variable that is partitioned otherwise, or not at all, than when it was saved."""
    for parts in (1, 2, 3, 5):
        with tf.Graph().as_default(), tf.Session() as session:
            partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
            v = tf.get_variable("rows", [10, 6], partitioner=partitioner)
            tf.train.Saver().restore(session, str(FILES / "v2"))
            assert (session.run(v if parts == 1 else v.as_tensor()) == cv.partitioned()).all()


# ---- which checkpoints are kept --------------------------------------------------------------------------


def test_max_to_keep(tmp_path: Path) -> None:
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver(max_to_keep=2)
    with _start() as session:
        paths = [saver.save(session, str(tmp_path / "m"), global_step=i) for i in range(4)]
        assert saver.last_checkpoints == paths[2:]
        assert [tf.train.checkpoint_exists(p) for p in paths] == [False, False, True, True]
        assert not os.path.exists(f"{paths[0]}.meta")
        state = tf.train.get_checkpoint_state(str(tmp_path))
        assert state.model_checkpoint_path == paths[3] == tf.train.latest_checkpoint(tmp_path)
        assert list(state.all_model_checkpoint_paths) == paths[2:]
        again = saver.save(session, str(tmp_path / "m"), global_step=2)
        assert saver.last_checkpoints == [paths[3], again]


@pytest.mark.parametrize("keep", [None, 0])
def test_keeping_all(tmp_path: Path, keep: int | None) -> None:
    tf.Variable(1.0)
    saver = tf.train.Saver(max_to_keep=keep)
    with _start() as session:
        paths = [saver.save(session, str(tmp_path / "m"), global_step=i) for i in range(7)]
    assert all(tf.train.checkpoint_exists(p) for p in paths)
    assert saver.last_checkpoints == []
    assert list(tf.train.get_checkpoint_state(tmp_path).all_model_checkpoint_paths) == [paths[-1]]


def test_keeping_one_from_time_to_time(tmp_path: Path) -> None:
    tf.Variable(1.0)
    saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=1.0)
    with _start() as session:
        paths = []
        for i in range(4):
            paths.append(saver.save(session, str(tmp_path / "m"), global_step=i, write_meta_graph=False))
            # as if three quarters of an hour passed between two
            saver._next_checkpoint_time -= 2700
    assert [tf.train.checkpoint_exists(p) for p in paths] == [False, True, True, True]


def test_recovering_after_a_restart(tmp_path: Path) -> None:
    tf.Variable(1.0)
    first = tf.train.Saver(max_to_keep=2)
    with _start() as session:
        paths = [first.save(session, str(tmp_path / "m"), global_step=i) for i in range(2)]
        saver = tf.train.Saver(max_to_keep=2)
        saver.recover_last_checkpoints([*paths, str(tmp_path / "gone-7")])
        assert saver.last_checkpoints == paths
        times = tf.train.get_checkpoint_mtimes([*paths, str(tmp_path / "gone-7")])
        assert len(times) == 2 and all(abs(t - time.time()) < 100 for t in times)
        saver.save(session, str(tmp_path / "m"), global_step=2)
        assert not tf.train.checkpoint_exists(paths[0])
        saver.set_last_checkpoints(["a", "b"])
        assert saver.last_checkpoints == ["a", "b"]
        saver.set_last_checkpoints_with_time([("c", 1.0)])
        assert saver.last_checkpoints == ["c"]


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = tf.train.create_global_step()
    with _start() as session:
        path = tf.train.Saver(pad_step_number=True).save(session, tmp_path / "m", global_step=step)
        assert path == str(tmp_path / "m-00000000")
        path = tf.train.Saver().save(session, str(tmp_path / "m"), global_step="global_step:0")
        assert path == str(tmp_path / "m-0")
        path = tf.train.Saver().save(session, str(tmp_path / "m"), global_step=np.int32(5), latest_filename="other")
        assert tf.train.latest_checkpoint(str(tmp_path), "other") == path
        assert tf.train.latest_checkpoint(str(tmp_path)) != path
        monkeypatch.chdir(tmp_path)
        assert tf.train.Saver().save(session, "here") == "here"
        assert tf.train.latest_checkpoint(".") == "./here"
        assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "here")


def test_a_folder_that_moves(tmp_path: Path) -> None:
    v = tf.Variable(3.0)
    (tmp_path / "old").mkdir()
    with _start() as session:
        tf.train.Saver(save_relative_paths=True).save(session, str(tmp_path / "old" / "m"))
        os.rename(tmp_path / "old", tmp_path / "new")
        assert 'model_checkpoint_path: "m"' in (tmp_path / "new" / "checkpoint").read_text()
        path = tf.train.latest_checkpoint(tmp_path / "new")
        assert path == str(tmp_path / "new" / "m")
        tf.train.Saver().restore(session, path)


def test_state_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert tf.train.get_checkpoint_state(tmp_path) is None
    assert tf.train.latest_checkpoint(tmp_path) is None
    tf.train.update_checkpoint_state(str(tmp_path), "m-2", ["m-1"], None, [1.0, 2.0], 0.5)
    text = (tmp_path / "checkpoint").read_text()
    assert text == (
        'model_checkpoint_path: "m-2"\nall_model_checkpoint_paths: "m-1"\nall_model_checkpoint_paths: "m-2"\n'
        "all_model_checkpoint_timestamps: 1.0\nall_model_checkpoint_timestamps: 2.0\n"
        "last_preserved_timestamp: 0.5\n"
    )
    assert tf.train.latest_checkpoint(tmp_path) is None  # there is no such checkpoint
    with pytest.raises(ValueError, match="timestamps"):
        tf.train.generate_checkpoint_state_proto(str(tmp_path), "m", ["m"], [1.0, 2.0])
    with pytest.raises(RuntimeError, match="conflicts"):
        tf.train.update_checkpoint_state(str(tmp_path), str(tmp_path / "checkpoint"))
    (tmp_path / "checkpoint").write_bytes(b"\xff not a state")
    assert tf.train.get_checkpoint_state(tmp_path) is None
    (tmp_path / "checkpoint").write_text("")
    with pytest.raises(ValueError, match="Invalid checkpoint state"):
        tf.train.get_checkpoint_state(tmp_path)


def test_relative_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    state = tf.train.generate_checkpoint_state_proto("d", "d/m-2", ["d/m-1", "d/m-2"])
    assert state.model_checkpoint_path == "m-2" and list(state.all_model_checkpoint_paths) == ["m-1", "m-2"]


# ---- arguments -------------------------------------------------------------------------------------------


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No variables to save"):
        tf.train.Saver()
    v, w = tf.Variable(1.0, name="v"), tf.Variable(1.0, name="w")
    with pytest.raises(ValueError, match="build cannot be deferred"):
        tf.train.Saver([v], defer_build=True)
    with pytest.raises(ValueError, match="restored with two names"):
        tf.train.Saver({"a": v, "b": v})
    with pytest.raises(ValueError, match="same name"):
        tf.train.Saver([v, v])
    with pytest.raises(TypeError, match="dict or a list"):
        tf.train.Saver("v")
    with pytest.raises(TypeError, match="Not a variable"):
        tf.train.Saver({"a": tf.constant(1.0)})
    with pytest.raises(TypeError, match="not a string"):
        tf.train.Saver({1: v})
    saver = tf.train.Saver()
    with _start() as session:
        with pytest.raises(TypeError, match="must be a Session"):
            saver.save(None, str(tmp_path / "m"))
        with pytest.raises(ValueError, match="path components"):
            saver.save(session, str(tmp_path / "m"), latest_filename="a/b")
        with pytest.raises(ValueError, match="collides"):
            saver.save(session, str(tmp_path / "checkpoint"))
        with pytest.raises(ValueError, match=r"Parent directory of .* doesn't exist"):
            saver.save(session, str(tmp_path / "a" / "b" / "m"))
        with pytest.raises(ValueError, match="None"):
            saver.restore(session, None)
        with pytest.raises(ValueError, match="not a valid checkpoint"):
            saver.restore(session, str(tmp_path / "none"))
        with pytest.raises(ValueError, match="not a valid checkpoint"):
            saver.restore(session, str(tmp_path))


def test_empty(tmp_path: Path) -> None:
    saver = tf.train.Saver(allow_empty=True)
    with tf.Session() as session:
        assert saver.save(session, str(tmp_path / "m"), write_meta_graph=False) is None
        saver.restore(session, "anything")
    assert _files(tmp_path) == []


def test_deferred(tmp_path: Path) -> None:
    saver = tf.train.Saver(defer_build=True)
    v = tf.Variable(1.0)
    with _start() as session:
        with pytest.raises(RuntimeError, match="build"):
            saver.save(session, str(tmp_path / "m"))
        saver.build()
        saver.build()
        saver.save(session, str(tmp_path / "m"))


def test_saver_defs(tmp_path: Path) -> None:
    v = tf.Variable(1.0, name="v")
    saver = tf.train.Saver(max_to_keep=3, keep_checkpoint_every_n_hours=2.0, name="mine")
    proto = saver.as_saver_def()
    assert isinstance(proto, tf.train.SaverDef)
    assert proto.filename_tensor_name == "mine/Const:0" and proto.restore_op_name == "mine/restore_all"
    assert (proto.max_to_keep, proto.keep_checkpoint_every_n_hours, proto.version) == (3, 2.0, tf.train.SaverDef.V2)
    assert saver.to_proto("other") is None
    inside = saver.to_proto("mine")
    assert inside.save_tensor_name == "control_dependency:0"
    outside = tf.train.Saver.from_proto(inside, import_scope="mine")
    with _start() as session:
        path = outside.save(session, str(tmp_path / "m"))
        tf.train.Saver(saver_def=proto).restore(session, path)
    for broken in (tf.train.SaverDef(save_tensor_name="a"), tf.train.SaverDef(restore_op_name="a")):
        with pytest.raises(ValueError, match="must specify"):
            tf.train.Saver(saver_def=broken)
    with pytest.raises(ValueError, match="must be a saver_pb2"):
        tf.train.Saver(saver_def="x")


@pytest.mark.parametrize("sharded", [False, True])
def test_version_1(tmp_path: Path, sharded: bool) -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    p = tf.get_variable("p", [5, 2], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(3))
    saver = tf.train.Saver(write_version=tf.train.SaverDef.V1, sharded=sharded, max_to_keep=1)
    assert saver.as_saver_def().version == tf.train.SaverDef.V1
    with _start() as session:
        for step in range(2):
            path = saver.save(session, str(tmp_path / "m"), global_step=step)
        end = "-00000-of-00001" if sharded else ""
        assert _files(tmp_path) == ["checkpoint", f"m-1{end}", "m-1.meta"] or _files(tmp_path) == ["checkpoint", "m-1.meta", f"m-1{end}"]
        assert path == str(tmp_path / ("m-1-?????-of-00001" if sharded else "m-1"))
        session.run([tf.assign(v, [0.0, 0.0]), *(tf.assign(x, tf.zeros(x.shape)) for x in p)])
        saver.restore(session, tf.train.latest_checkpoint(tmp_path))
        assert session.run(v).tolist() == [1.0, 2.0] and session.run(p.as_tensor()).all()


def test_saveable_objects(tmp_path: Path) -> None:
    """A program's own object, of two tensors, restored by its own nodes."""

    class Pair(saver_builder.BaseSaverBuilder.SaveableObject):
        def __init__(self, a: Any, b: Any) -> None:
            specs = [saver_builder.BaseSaverBuilder.SaveSpec(v._ref(), "", n) for v, n in ((a, "pair/a"), (b, "pair/b"))]
            super().__init__(a, specs, "pair")
            self.pair = a, b

        def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
            return tf.group(*[tf.assign(v, -t) for v, t in zip(self.pair, restored_tensors, strict=True)])

    a, b = tf.Variable(1.0, collections=[]), tf.Variable(2.0, collections=[])
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, Pair(a, b))
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run([a.initializer, b.initializer])
        saver.restore(session, saver.save(session, str(tmp_path / "m")))
        assert session.run([a, b]) == [-1.0, -2.0]


# ---- restoring what doesn't fit --------------------------------------------------------------------------


def test_nothing_is_restored_where_something_does_not_fit(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        tf.get_variable("a", initializer=[1.0, 2.0])
        tf.get_variable("b/kernel", initializer=[[1.0]])
        with _start() as session:
            path = tf.train.Saver().save(session, str(tmp_path / "m"))
    for arguments in ({}, {"builder": saver_builder.BaseSaverBuilder()}):
        with tf.Graph().as_default():
            a = tf.get_variable("a", initializer=[0.0, 0.0])
            b = tf.get_variable("b/kernel", initializer=[[0.0, 0.0]], use_resource=True)
            saver = tf.train.Saver(**arguments)
            with _start() as session:
                with pytest.raises(tf.errors.InvalidArgumentError, match=r"kernel; shape \[1,2\].*does not match shape \[1,1\]"):
                    saver.restore(session, path)
                assert session.run([a, b])[0].tolist() == [0.0, 0.0]
            tf.get_variable("c/kernel", initializer=1.0)
            saver = tf.train.Saver(**arguments)
            with _start() as session:
                with pytest.raises(tf.errors.NotFoundError) as info:
                    saver.restore(session, path)
                assert "Restoring from checkpoint failed" in str(info.value)
                assert "Key c/kernel not found in checkpoint; there are b/kernel" in str(info.value)
                assert "shape [1,2]" in str(info.value)
                assert session.run(a).tolist() == [0.0, 0.0]


def test_damage_that_one_of_several_nodes_meets(tmp_path: Path) -> None:
    a, b = tf.Variable([1.0] * 9, name="a"), tf.Variable([2.0] * 9, name="b")
    saver = tf.train.Saver(builder=saver_builder.BaseSaverBuilder())
    with _start() as session:
        path = saver.save(session, str(tmp_path / "m"))
        data = bytearray((tmp_path / "m.data-00000-of-00001").read_bytes())
        data[-1] ^= 1
        (tmp_path / "m.data-00000-of-00001").write_bytes(data)
        session.run(tf.assign(a, [0.0] * 9))
        with pytest.raises(tf.errors.DataLossError, match="wrong checksum of tensor 'b'"):
            saver.restore(session, path)
        assert session.run(a).tolist() == [0.0] * 9


def test_reshape_of_another_size(tmp_path: Path) -> None:
    a, b = tf.Variable([1.0] * 6, name="a"), tf.Variable([2.0] * 6, name="b")
    with _start() as session:
        path = tf.train.Saver().save(session, str(tmp_path / "m"))
    with tf.Graph().as_default():
        a = tf.get_variable("a", initializer=tf.zeros([2, 3]))
        b = tf.get_variable("b", initializer=tf.zeros([2, 2]))
        with _start() as session:
            with pytest.raises(tf.errors.InvalidArgumentError, match="can't be reshaped to 4 elements"):
                tf.train.Saver(reshape=True).restore(session, path)
            assert not session.run(a).any()
            tf.train.Saver({"a": a}, reshape=True).restore(session, path)
            assert session.run(a).tolist() == [[1.0] * 3] * 2


def test_uninitialised_variables(tmp_path: Path) -> None:
    v = tf.Variable(1.0, name="v")
    saver = tf.train.Saver()
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
        saver.save(session, str(tmp_path / "m"))
    assert _files(tmp_path) == []


# ---- TensorFlow's files ----------------------------------------------------------------------------------


def _check(found: Any, expected: np.ndarray) -> None:
    assert np.asarray(found).tolist() == expected.tolist() or np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize("file", ["v2", "v1", "v1-?????-of-00002"])
def test_restoring_tensorflows(file: str) -> None:
    values = {n: v for n, v in cv.values(cv.NUMBERS_V1).items() if n != "shapes/empty"}
    variables = {
        name: tf.get_variable(f"v{i}", value.shape, tf.string if value.dtype == object else value.dtype, use_resource=bool(i % 2), initializer=tf.zeros_initializer() if value.dtype != object else lambda shape, dtype, partition_info=None: tf.fill(shape, b""))
        for i, (name, value) in enumerate(values.items())
    }
    variables["rows"] = tf.get_variable("rows", [10, 6], partitioner=tf.fixed_size_partitioner(3))
    with tf.Session() as session:
        tf.train.Saver(variables).restore(session, str(FILES / file))
        for name, value in values.items():
            _check(session.run(variables[name]), value)
        _check(session.run(variables["rows"].as_tensor()), cv.partitioned())


def test_objects_of_tensorflow_2() -> None:
    """By the names that the variables had in TensorFlow 2."""
    kernel, bias = tf.get_variable("kernel", [1, 2]), tf.get_variable("bias", [1])
    saver = tf.train.Saver()
    with tf.Session() as session:
        for _ in range(2):
            saver.restore(session, str(FILES / "objects"))
        assert session.run(kernel).tolist() == [[1.0, 2.0]] and session.run(bias).tolist() == [3.0]
    tf.get_variable("more", [1])
    with tf.Session() as session, pytest.raises(tf.errors.NotFoundError, match=r"more.*bias, kernel"):
        tf.train.Saver().restore(session, str(FILES / "objects"))


# ---- looking into checkpoints ----------------------------------------------------------------------------


def test_readers(tmp_path: Path) -> None:
    reader = tf.train.NewCheckpointReader(str(FILES / "v2"))
    assert reader.has_tensor("rows") and reader.has_tensor(b"rows") and not reader.has_tensor("row")
    assert reader.get_variable_to_shape_map()["rows"] == [10, 6]
    assert reader.get_variable_to_dtype_map()["types/bfloat16"] is tf.bfloat16
    assert reader.get_tensor("shapes/scalar") == 2.5 and reader.get_tensor("shapes/scalar_string") == b"one"
    assert b"rows (DT_FLOAT) [10,6]\n" in reader.debug_string()
    with pytest.raises(tf.errors.NotFoundError, match="not found in checkpoint"):
        reader.get_tensor("row")
    with pytest.raises(tf.errors.NotFoundError):
        tf.train.NewCheckpointReader(str(tmp_path / "none"))
    with pytest.raises(ValueError, match="Couldn't find 'checkpoint' file"):
        tf.train.load_checkpoint(str(tmp_path))
    assert tf.train.load_variable(str(FILES / "v1"), "rows:0").shape == (10, 6)
    assert ("rows", [10, 6]) in tf.train.list_variables(str(FILES / "v1"))


def test_iterator(tmp_path: Path) -> None:
    assert list(tf.train.checkpoints_iterator(str(tmp_path), timeout=0)) == []
    v = tf.Variable(1.0)
    saver = tf.train.Saver()
    with _start() as session:
        saver.save(session, str(tmp_path / "m"), global_step=1)
        seen = []
        for path in tf.train.checkpoints_iterator(str(tmp_path), timeout=0):
            seen.append(path)
            if len(seen) < 3:
                saver.save(session, str(tmp_path / "m"), global_step=len(seen) + 1)
    assert seen == [str(tmp_path / f"m-{i}") for i in (1, 2, 3)]


# ---- initialising ----------------------------------------------------------------------------------------


def test_init_from_checkpoint() -> None:
    with tf.variable_scope("new"):
        a = tf.get_variable("a", [3, 4], tf.float64)
        b = tf.get_variable("b", [1, 4], tf.int32, initializer=tf.zeros_initializer(), use_resource=True)
        parts = tf.get_variable("parts", [10, 6], partitioner=tf.fixed_size_partitioner(3))
    with tf.variable_scope("mine/types"):
        c = tf.get_variable("float32", [3, 4])
    follower = tf.Variable(b.initialized_value() * 0 + 1, name="follower")
    tf.train.init_from_checkpoint(str(FILES / "v2"), {"types/float64": "new/a", "types/int32": b, "rows": "new/parts", "types/": "mine/types/"})
    with _start() as session:
        _check(session.run(a), cv.number("float64"))
        _check(session.run(b), cv.number("int32"))
        _check(session.run(parts.as_tensor()), cv.partitioned())
        _check(session.run(c), cv.number("float32"))
        assert session.run(follower).tolist() == [[1] * 4]


def test_init_from_checkpoint_by_the_root() -> None:
    with tf.variable_scope("deep"):
        rows = tf.get_variable("rows", [10, 6])
    tf.train.init_from_checkpoint(str(FILES / "v1"), [("/", "deep/")])
    with _start() as session:
        _check(session.run(rows), cv.partitioned())


def test_init_from_checkpoint_refuses() -> None:
    v = tf.get_variable("v", [2])
    with tf.variable_scope("s"):
        tf.get_variable("w", [2])
    path = str(FILES / "v2")
    with pytest.raises(ValueError, match="Tensor none is not found"):
        tf.train.init_from_checkpoint(path, {"none": v})
    with pytest.raises(ValueError, match=r"Shape of variable v:0 \(\(2,\)\) doesn't match with shape of tensor rows"):
        tf.train.init_from_checkpoint(path, {"rows": "v"})
    with pytest.raises(ValueError, match="should map to scope only"):
        tf.train.init_from_checkpoint(path, {"rows": "s/"})
    with pytest.raises(ValueError, match=r"Tensor types/w \(w in types/\) is not found"):
        tf.train.init_from_checkpoint(path, {"types/": "s/"})


def test_warm_start(tmp_path: Path) -> None:
    with tf.variable_scope("types"):
        a = tf.get_variable("float32", [3, 4])
        b = tf.get_variable("int32", [1, 4], tf.int32, initializer=tf.zeros_initializer(), trainable=False)
    rows = tf.get_variable("renamed", [10, 6], partitioner=tf.fixed_size_partitioner(3))
    cold = tf.get_variable("cold", [2], initializer=tf.zeros_initializer())
    path = str(FILES / "v2")
    tf.train.warm_start(path, "types|renamed", var_name_to_prev_var_name={"renamed": "rows"})
    tf.train.warm_start(path, ["types/int"])
    tf.train.warm_start(path, None)
    with _start() as session:
        _check(session.run(a), cv.number("float32"))
        _check(session.run(b), cv.number("int32"))
        _check(session.run(rows.as_tensor()), cv.partitioned())
        assert session.run(cold).tolist() == [0, 0]
    tf.train.warm_start(path, [a, rows], var_name_to_prev_var_name={"renamed": "rows"})
    with pytest.raises(ValueError, match=r"not used: typo. Perhaps .* viable variable names: types/float32"):
        tf.train.warm_start(path, [a], var_name_to_prev_var_name={"typo": "rows"})
    with pytest.raises(ValueError, match="Tensor cold is not found"):
        tf.train.warm_start(path, "cold")
    with pytest.raises(TypeError, match="must hold variables"):
        tf.train.warm_start(path, [1])
    with pytest.raises(tf.errors.UnimplementedError, match="vocabularies: e"):
        tf.train.warm_start(path, None, {"e": tf.train.VocabInfo("a", 1, 0, "b")})


# ---- memory, and many at once ----------------------------------------------------------------------------


@pytest.mark.parametrize("use_resource", [False, True])
def test_saving_copies_no_variable(tmp_path: Path, use_resource: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written is the variables' own memory."""
    from thalweg.ops import checkpoint

    seen = []
    monkeypatch.setattr(checkpoint.BundleWriter, "add", lambda self, name, value: seen.append((name, value.ctypes.data)))
    monkeypatch.setattr(checkpoint.BundleWriter, "add_slice", lambda self, name, shape, extents, value: seen.append((name, value.ctypes.data)))
    monkeypatch.setattr(checkpoint.BundleWriter, "finish", lambda self: self.abort())
    v = tf.get_variable("v", [300, 300], use_resource=use_resource)
    p = tf.get_variable("p", [300, 300], partitioner=tf.fixed_size_partitioner(2), use_resource=use_resource)
    saver = tf.train.Saver()
    with _start() as session:
        session.run([tf.assign_add(x, tf.ones(x.shape)) for x in (v, *p)])
        for _ in range(2):
            session.run(saver.saver_def.save_tensor_name, {saver.saver_def.filename_tensor_name: str(tmp_path / "m")})
    assert len(seen) == 6 and seen[:3] == seen[3:]
