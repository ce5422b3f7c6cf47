"""SavedModels read: the graph of a set of tags, its variables, its assets.

Source: TensorFlow's loader_impl.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from google.protobuf.message import DecodeError
from tensorboard.compat.proto import meta_graph_pb2

from thalweg.formats.protos.saved_model_pb2 import SavedModel
from thalweg.graph.convert import get_default_graph
from thalweg.graph.graph import Graph
from thalweg.library import gfile, tf_logging
from thalweg.library.meta_graph import parse_message
from thalweg.library.meta_graph_import import import_meta_graph_with_return_elements
from thalweg.library.proto_functions import prepend_name_scope
from thalweg.library.saved_model import constants, signature_def_utils
from thalweg.library.saver import Saver
from thalweg.library.variables import saveable_objects


def maybe_saved_model_directory(export_dir: Any) -> bool:
    """Whether a folder has a SavedModel's file in it."""
    return any(gfile.Exists(path) for path in _files(export_dir))


contains_saved_model = maybe_saved_model_directory


def _files(export_dir: Any) -> tuple[str, str]:
    folder = export_dir.decode() if isinstance(export_dir, bytes) else os.fspath(export_dir)
    return (
        os.path.join(folder, constants.SAVED_MODEL_FILENAME_PB),
        os.path.join(folder, constants.SAVED_MODEL_FILENAME_PBTXT),
    )


def parse_saved_model(export_dir: Any) -> Any:
    """The SavedModel message of a folder.

    OSError, as TensorFlow, where there is none, or the file holds something else.
    """
    binary, text = _files(export_dir)
    for path in (binary, text):
        if gfile.Exists(path):
            result = parse_message(gfile.GFile(path, "rb").read(), SavedModel, path, text_only=path is text)
            version = result.saved_model_schema_version
            if version != constants.SAVED_MODEL_SCHEMA_VERSION:
                tf_logging.warning("%s has schema version %s; version 1 is known", path, version)
            return result
    raise OSError(
        f"SavedModel file does not exist at: {os.fspath(export_dir)}/"
        f"{{{constants.SAVED_MODEL_FILENAME_PBTXT}|{constants.SAVED_MODEL_FILENAME_PB}}}"
    )


def _inside(folder: str, name: str) -> str:
    """A file in a folder. ValueError for a name that leads out of it."""
    path = os.path.normpath(os.path.join(folder, name))
    if os.path.isabs(name) or not path.startswith(os.path.normpath(folder) + os.sep):
        raise ValueError(f"the asset '{name}' is not inside the model's folder '{folder}'")
    return path


def get_asset_tensors(
    export_dir: Any, meta_graph_def: Any, import_scope: str | None = None
) -> dict[str, str]:
    """The paths of a model's assets, by the names of the tensors that hold them."""
    assets = list(meta_graph_def.asset_file_def)
    if not assets and constants.ASSETS_KEY in meta_graph_def.collection_def:
        for item in meta_graph_def.collection_def[constants.ASSETS_KEY].any_list.value:
            assets.append(_asset(item.value))
    folder = os.path.join(os.fspath(export_dir), constants.ASSETS_DIRECTORY)
    return {prepend_name_scope(a.tensor_info.name, import_scope): _inside(folder, a.filename) for a in assets}


def _asset(data: bytes) -> Any:
    asset = meta_graph_pb2.AssetFileDef()
    try:
        asset.ParseFromString(data)
    except DecodeError as e:
        raise ValueError(f"an asset's {len(data)} bytes are no AssetFileDef: {e}") from None
    return asset


def get_init_op(meta_graph_def: Any, import_scope: str | None = None) -> Any:
    """The operation that a loaded model is initialised by, or None. RuntimeError where it names several."""
    key = constants.INIT_OP_SIGNATURE_KEY
    if key in meta_graph_def.signature_def:
        return signature_def_utils.load_op_from_signature_def(
            meta_graph_def.signature_def[key], key, import_scope
        )
    for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
        if key not in meta_graph_def.collection_def:
            continue
        names = meta_graph_def.collection_def[key].node_list.value
        if len(names) != 1:
            raise RuntimeError(f"Expected exactly one SavedModel init op. Found: {list(names)}")
        return get_default_graph().as_graph_element(prepend_name_scope(names[0], import_scope))
    return None


class SavedModelLoader:
    """A SavedModel's folder. OSError where there is none."""

    def __init__(self, export_dir: Any) -> None:
        self._export_dir = export_dir.decode() if isinstance(export_dir, bytes) else os.fspath(export_dir)
        self._saved_model = parse_saved_model(self._export_dir)

    @property
    def export_dir(self) -> str:
        """The folder."""
        return self._export_dir

    @property
    def variables_path(self) -> str:
        """The prefix of the checkpoint with the variables."""
        return os.path.join(self._export_dir, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME)

    @property
    def saved_model(self) -> Any:
        """The SavedModel message."""
        return self._saved_model

    def get_meta_graph_def_from_tags(self, tags: Iterable[str]) -> Any:
        """The MetaGraphDef with exactly these tags. RuntimeError names the sets of tags that there are."""
        wanted = set(tags)
        available = []
        for meta_graph_def in self._saved_model.meta_graphs:
            found = set(meta_graph_def.meta_info_def.tags)
            if found == wanted:
                return meta_graph_def
            available.append(found)
        raise RuntimeError(
            f"MetaGraphDef associated with tags {sorted(wanted)} could not be found in SavedModel. The "
            f"tag-sets in it: {[sorted(a) for a in available]}"
        )

    def load_graph(
        self, graph: Graph, tags: Iterable[str], import_scope: str | None = None, **saver_kwargs: Any
    ) -> tuple[Any, Any]:
        """Adds the graph with these tags to `graph`; returns its Saver (or None) and return_elements."""
        meta_graph_def = self.get_meta_graph_def_from_tags(tags)
        with graph.as_default():
            return import_meta_graph_with_return_elements(
                meta_graph_def, import_scope=import_scope, **saver_kwargs
            )

    def restore_variables(self, sess: Any, saver: Any, import_scope: str | None = None) -> None:
        """Restores the variables. ValueError where there are variables, but no Saver."""
        with sess.graph.as_default():
            if isinstance(saver, Saver):
                saver.restore(sess, self.variables_path)
            elif saver is not None or saveable_objects(import_scope):
                raise ValueError(
                    "No tf.train.Saver object was passed to the function "
                    "`SavedModelLoader.restore_variables`. Since there are variables in the graph, a "
                    "saver is required."
                )
            else:
                tf_logging.info("The specified SavedModel has no variables; no checkpoints were restored.")

    def run_init_ops(self, sess: Any, tags: Iterable[str], import_scope: str | None = None) -> None:
        """Runs what initialises the model, with the paths of its assets fed."""
        meta_graph_def = self.get_meta_graph_def_from_tags(tags)
        with sess.graph.as_default():
            assets = get_asset_tensors(self._export_dir, meta_graph_def, import_scope)
            init_op = get_init_op(meta_graph_def, import_scope)
            if init_op is not None:
                sess.run([init_op], feed_dict=assets)

    def load(
        self, sess: Any, tags: Iterable[str], import_scope: str | None = None, **saver_kwargs: Any
    ) -> Any:
        """Adds the graph with these tags to the session's, restores and initialises it.

        Returns the MetaGraphDef.
        """
        tags = list(tags)
        saver, _ = self.load_graph(sess.graph, tags, import_scope, **saver_kwargs)
        self.restore_variables(sess, saver, import_scope)
        self.run_init_ops(sess, tags, import_scope)
        return self.get_meta_graph_def_from_tags(tags)


def load(
    sess: Any, tags: Iterable[str], export_dir: Any, import_scope: str | None = None, **saver_kwargs: Any
) -> Any:
    """Loads the graph of a SavedModel that has exactly these tags into a session.

    Adds its nodes to the session's graph, restores its variables, runs its main op. Returns the MetaGraphDef,
    with the signatures. Errors: OSError where there is no SavedModel, RuntimeError where no graph in it has
    these tags.
    """
    return SavedModelLoader(export_dir).load(sess, tags, import_scope, **saver_kwargs)
