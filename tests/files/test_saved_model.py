"""SavedModels written and read here; what is said where one doesn't fit."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.formats.protos.saved_model_pb2 import SavedModel


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def model(session: tf.Session | None = None) -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [None, 2], "x")
    w = tf.get_variable("w", initializer=tf.constant([[1.0], [2.0]]))
    tf.get_variable("r", initializer=tf.constant([3.0]), use_resource=True)
    return x, tf.matmul(x, w, name="y") + tf.global_variables()[1]


def saved(path: pathlib.Path, **options: Any) -> str:
    """A SavedModel in a folder."""
    folder = str(path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = model()
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, folder, {"x": x}, {"y": y}, **options)
    return folder


def test_simple_save(tmp_path: pathlib.Path) -> None:
    folder = saved(tmp_path)
    assert tf.saved_model.maybe_saved_model_directory(folder)
    assert not tf.saved_model.contains_saved_model(str(tmp_path))
    with tf.Session() as session:
        message = tf.saved_model.load(session, [tf.saved_model.SERVING], folder)
        signature = message.signature_def[tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY]
        assert tf.saved_model.is_valid_signature(signature)
        y = tf.saved_model.get_tensor_from_tensor_info(signature.outputs["y"])
        assert session.run(y, {"x:0": [[1.0, 1.0]]}).tolist() == [[6.0]]
        assert [v.name for v in tf.global_variables()] == ["w:0", "r:0"]


def test_a_scope_to_load_into(tmp_path: pathlib.Path) -> None:
    folder = saved(tmp_path)
    with tf.Session() as session:
        message = tf.saved_model.loader.load(session, ["serve"], folder, import_scope="a")
        info = message.signature_def["serving_default"].outputs["y"]
        y = tf.saved_model.get_tensor_from_tensor_info(info, import_scope="a")
        assert session.run(y, {"a/x:0": [[1.0, 1.0]]}).tolist() == [[6.0]]


def test_a_predictor(tmp_path: pathlib.Path) -> None:
    predictor = tf.saved_model.predictor.from_saved_model(saved(tmp_path))
    assert predictor({"x": [[1.0, 1.0]]})["y"].tolist() == [[6.0]]
    assert list(predictor.feed_tensors) == ["x"] and list(predictor.fetch_tensors) == ["y"]
    with pytest.raises(ValueError, match=r"unexpected keys in input_dict: \['z'\]. Expected keys are: \['x'\]"):
        predictor({"z": 1})
    with pytest.raises(ValueError, match=r'signature_def_key "q". Available signatures are \[\'serving_default\'\]'):
        tf.saved_model.predictor.from_saved_model(saved(tmp_path / "b"), "q")


@pytest.mark.parametrize("as_text", [False, True])
def test_tags_assets_and_main_op(tmp_path: pathlib.Path, graph: tf.Graph, as_text: bool) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "words.txt").write_text(f"words {name}")
    assets = [tf.constant(str(tmp_path / n / "words.txt"), name=f"asset_{n}") for n in ("a", "b", "a")]
    x, y = model()
    local = tf.get_variable("local", [], initializer=tf.zeros_initializer(), collections=["local_variables"])
    signature = tf.saved_model.signature_def_utils.predict_signature_def({"x": x}, {"y": y})
    folder = str(tmp_path / "model")
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        builder = tf.saved_model.builder.SavedModelBuilder(folder)
        with pytest.raises(AssertionError, match="has not been saved yet"):
            builder.add_meta_graph(["serve"])
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"sig": signature}, assets, main_op=tf.group(tf.assign(local, 7.0), name="main")
        )
        with pytest.raises(AssertionError, match="has already been saved"):
            builder.add_meta_graph_and_variables(session, ["serve"])
        with tf.Graph().as_default():
            tf.get_variable("w", [2, 1])
            builder.add_meta_graph([tf.saved_model.TRAINING, tf.saved_model.GPU])
        assert builder.save(as_text).endswith(b".pbtxt" if as_text else b".pb")
    assert sorted(p.name for p in (tmp_path / "model" / "assets").iterdir()) == ["words.txt", "words.txt_1"]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, {"serve"}, folder)
        assert session.run("local:0") == 7.0
    with tf.Graph().as_default() as new, tf.Session() as session:
        tf.saved_model.load(session, ["gpu", "train"], folder)
        assert [op.name for op in new.get_operations() if op.type == "VariableV2"] == ["w"]
        assert session.run("w:0").tolist() == [[1.0], [2.0]]
    says = r"tags \['other'\] could not be found .*\['gpu', 'train'\]"
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(RuntimeError, match=says):
        tf.saved_model.load(session, ["other"], folder)


def test_the_main_op_is_fed_the_paths_of_assets(tmp_path: pathlib.Path) -> None:
    (tmp_path / "words.txt").write_text("words")
    asset = tf.constant(str(tmp_path / "words.txt"), name="asset")
    path = tf.get_variable("path", initializer=tf.constant(""), collections=["local_variables"])
    main = tf.group(tf.assign(path, asset), name="main")
    folder = str(tmp_path / "model")
    with tf.Session() as session:
        session.run(path.initializer)
        builder = tf.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(session, ["t"], assets_collection=[asset], main_op=main)
        builder.save()
    (tmp_path / "words.txt").unlink()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, ["t"], folder)
        found = pathlib.Path(session.run("path:0").decode())
        assert found == tmp_path / "model" / "assets" / "words.txt" and found.read_text() == "words"


def test_legacy_init_op(tmp_path: pathlib.Path) -> None:
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer(), collections=["local_variables"])
    folder = str(tmp_path / "model")
    with tf.Session() as session:
        builder = tf.saved_model.Builder(folder)
        init = tf.group(tf.assign(v, 3.0), name="init")
        with pytest.raises(TypeError, match="needs to be an Operation"):
            builder.add_meta_graph_and_variables(session, ["t"], legacy_init_op=v)
        builder.add_meta_graph_and_variables(session, ["t"], legacy_init_op=init)
        builder.save()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, ["t"], folder)
        assert session.run("v:0") == 3.0


def test_main_op_of_the_library(tmp_path: pathlib.Path) -> None:
    v = tf.get_variable("v", initializer=1.0)
    w = tf.get_variable("w", initializer=2.0, collections=["local_variables"])
    with tf.Session() as session:
        session.run(tf.saved_model.main_op_with_restore(tf.saved_model.main_op.main_op()))
        assert session.run([v, w]) == [1.0, 2.0]


def test_folders_that_do_not_fit(tmp_path: pathlib.Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    with pytest.raises(AssertionError, match="already exists, and isn't empty"):
        tf.saved_model.Builder(str(tmp_path / "full"))
    (tmp_path / "full" / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    for folder, says in (("none", "SavedModel file does not exist at: .*none"), ("full", "Cannot parse file .*saved_model.pb")):
        with tf.Session() as session, pytest.raises(OSError, match=says):
            tf.saved_model.load(session, ["serve"], str(tmp_path / folder))


def test_assets_that_are_none() -> None:
    from thalweg.library.saved_model.builder import _asset_path

    for value, says in (("text", "must be a Tensor"), (tf.constant(1), "dtype string"), (tf.identity("a"), "type constant"), (tf.constant(["a", "b"]), "scalar")):
        with pytest.raises(TypeError, match=says):
            _asset_path(value)
    with pytest.raises(ValueError, match="Invalid asset filepath"):
        _asset_path(tf.constant(""))


def test_an_asset_outside_of_the_folder(tmp_path: pathlib.Path) -> None:
    """A hostile file must not get the program to read elsewhere."""
    folder = pathlib.Path(saved(tmp_path))
    message = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    for name in ("../../secret", "/etc/passwd"):
        del message.meta_graphs[0].asset_file_def[:]
        message.meta_graphs[0].asset_file_def.add(filename=name).tensor_info.name = "x:0"
        (folder / "saved_model.pb").write_bytes(message.SerializeToString())
        with tf.Graph().as_default(), tf.Session() as session, pytest.raises(ValueError, match="is not inside"):
            tf.saved_model.load(session, ["serve"], str(folder))


def test_several_main_ops(tmp_path: pathlib.Path) -> None:
    folder = pathlib.Path(saved(tmp_path))
    message = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    message.meta_graphs[0].collection_def["saved_model_main_op"].node_list.value.extend(["y", "x"])
    (folder / "saved_model.pb").write_bytes(message.SerializeToString())
    with tf.Session() as session, pytest.raises(RuntimeError, match="exactly one SavedModel init op"):
        tf.saved_model.load(session, ["serve"], str(folder))


def test_a_model_without_variables(tmp_path: pathlib.Path) -> None:
    folder = str(tmp_path / "model")
    with tf.Session() as session:
        x = tf.placeholder(tf.float32, [], "x")
        tf.saved_model.simple_save(session, folder, {"x": x}, {"y": x * 2.0})
    with tf.Graph().as_default(), tf.Session() as session:
        message = tf.saved_model.load(session, ["serve"], folder)
        assert session.run(message.signature_def["serving_default"].outputs["y"].name, {"x:0": 2.0}) == 4.0


# ---- signatures ------------------------------------------------------------------------------------------


def test_signatures() -> None:
    utils = tf.saved_model.signature_def_utils
    examples, scores = tf.placeholder(tf.string, [None]), tf.placeholder(tf.float32, [None, 3])
    classes = tf.placeholder(tf.string, [3])
    for signature, outputs in (
        (utils.regression_signature_def(examples, scores), ["outputs"]),
        (utils.classification_signature_def(examples, classes, scores), ["classes", "scores"]),
        (utils.classification_signature_def(examples, None, scores), ["scores"]),
        (utils.predict_signature_def({"a": scores}, {"b": scores}), ["b"]),
    ):
        assert utils.is_valid_signature(signature) and sorted(signature.outputs) == outputs
        signature.method_name = "other"
        assert not utils.is_valid_signature(signature)
    assert not utils.is_valid_signature(utils.build_signature_def())
    assert not utils.is_valid_signature(None)
    for make in (
        lambda: utils.regression_signature_def(scores, scores),
        lambda: utils.regression_signature_def(examples, examples),
        lambda: utils.regression_signature_def(None, scores),
        lambda: utils.classification_signature_def(examples, None, None),
        lambda: utils.classification_signature_def(examples, scores, None),
        lambda: utils.predict_signature_def({}, {"b": scores}),
        lambda: utils.predict_signature_def({"a": scores}, {}),
    ):
        with pytest.raises(ValueError):
            make()


def test_tensor_infos(graph: tf.Graph) -> None:
    sparse = tf.sparse_placeholder(tf.float32, name="s")
    info = tf.saved_model.build_tensor_info(sparse)
    back = tf.saved_model.get_tensor_from_tensor_info(info)
    assert (back.indices, back.values) == (sparse.indices, sparse.values)
    v = tf.get_variable("v", [2, 3])
    info = tf.saved_model.utils.build_tensor_info(v)
    assert (info.name, info.dtype, [d.size for d in info.tensor_shape.dim]) == ("v:0", 1, [2, 3])
    with pytest.raises(ValueError, match=r"Invalid TensorInfo\.encoding"):
        tf.saved_model.get_tensor_from_tensor_info(tf.TensorInfo())


def test_signatures_that_a_builder_refuses(tmp_path: pathlib.Path) -> None:
    x = tf.placeholder(tf.float32, [])
    good = tf.saved_model.predict_signature_def({"x": x}, {"y": x})
    with tf.Session() as session:
        builder = tf.saved_model.Builder(str(tmp_path / "m"))
        with pytest.raises(KeyError, match="is reserved"):
            builder.add_meta_graph_and_variables(session, ["t"], {"__saved_model_init_op": good})
        good.inputs["x"].dtype = 0
        with pytest.raises(AssertionError, match="must have the name and dtype fields set"):
            builder.add_meta_graph_and_variables(session, ["t"], {"a": good})
        good.inputs["x"].Clear()
        with pytest.raises(AssertionError, match="one of the 'encoding' fields"):
            builder.add_meta_graph_and_variables(session, ["t"], {"a": good})


def test_the_public_constants() -> None:
    assert tf.saved_model.constants.ASSETS_KEY == tf.saved_model.ASSETS_KEY == "saved_model_assets"
    assert tf.saved_model.tag_constants.SERVING == tf.saved_model.SERVING == "serve"
    assert tf.saved_model.signature_constants.PREDICT_METHOD_NAME == "tensorflow/serving/predict"
    assert np.isclose(tf.saved_model.SAVED_MODEL_SCHEMA_VERSION, 1)
